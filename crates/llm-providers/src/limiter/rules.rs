//! How many requests may be under way at once: the rules, without clock, waiting or chance.
//!
//! Decides how the allowance moves. A request that succeeds while the allowance is in full use adds a `step` for
//! each round of requests; a refusal multiplies the allowance by `factor`, once for all requests that were under
//! way together. Where the server refused last is remembered: below that the allowance comes back at once step a
//! round, at that level it stays until enough requests have succeeded to make another try worth a refusal. A pause
//! that the server asks for holds for everybody. Times are durations since the limiter began.

use std::time::Duration;

use serde::Serialize;

use crate::config::ConcurrencyConfig;

/// Successes after a refusal before the level that was refused is tried again: one refusal in fifty is 2 %.
const PROBE_AFTER: u32 = 50;
/// Each probe that is refused where the one before was doubles the wait for the next, up to this many times.
const PROBE_DOUBLINGS: u32 = 2;
/// A refusal that cost a pause is not risked again before so many times that pause: one part in twenty is 5 %.
const PROBE_PAUSES: u32 = 20;
/// Two refusals at levels that differ by less than this share are the same limit.
const SAME_LEVEL: f64 = 0.1;
/// Largest share of the allowance by which a round of unrefused probing may raise it.
const FASTEST_GROWTH: f64 = 0.25;
/// Least share of the allowance that a single refusal leaves, however many came before it.
const DEEPEST_CUT: f64 = 0.3;

/// The numbers that the rules go by, put into an order that holds together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    start: f64,
    floor: f64,
    ceiling: f64,
    step: f64,
    factor: f64,
}

impl Rules {
    /// The rules of a configuration. Numbers that contradict each other are brought into the nearest order: the
    /// floor is at least 1, the ceiling at least the floor, the start between them, the factor between 0.1 and 0.99.
    #[must_use]
    pub fn new(config: &ConcurrencyConfig) -> Self {
        let floor = f64::from(config.floor.max(1));
        let ceiling = f64::from(config.ceiling).max(floor);
        let number = |value: f64, otherwise: f64| if value.is_finite() { value } else { otherwise };
        let default = ConcurrencyConfig::default();
        Self {
            start: f64::from(config.start).clamp(floor, ceiling),
            floor,
            ceiling,
            step: number(config.step, default.step).clamp(0.01, ceiling),
            factor: number(config.factor, default.factor).clamp(0.1, 0.99),
        }
    }
}

/// Everything that a decision depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    allowance: f64,
    in_flight: u32,
    /// Number of cuts so far. A request belongs to the epoch that it was admitted in.
    epoch: u64,
    /// Requests under way when the server last refused one, that one included.
    refused_at: Option<f64>,
    /// Successes since then.
    successes: u32,
    /// Probes in a row that were refused where the one before was.
    failed_probes: u32,
    /// Cuts without a success in between.
    streak: u32,
    /// Steps that a round adds; doubles with each round beyond what was refused last.
    boost: f64,
    /// Successes of the present round beyond that level.
    round: f64,
    paused_until: Option<Duration>,
    /// When the level that was refused may be tried again, where the refusal cost a pause.
    probe_from: Duration,
}

/// What was seen of one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Observation {
    /// It was let through.
    Admitted,
    /// It was answered. `epoch`: that of its admission. `contended`: somebody else was waiting for a place.
    Succeeded {
        /// Epoch of its admission.
        epoch: u64,
        /// Whether the allowance kept others waiting.
        contended: bool,
    },
    /// The server had too much to do (429, 529, overloaded).
    Refused {
        /// Epoch of its admission.
        epoch: u64,
        /// The pause that the server asks for.
        retry_after: Option<Duration>,
    },
    /// It ended in another way, which tells nothing about the allowance: cancelled, failed, timed out. A pause that
    /// the server asked for holds all the same.
    Ended {
        /// The pause that the server asks for.
        retry_after: Option<Duration>,
    },
}

/// Why the allowance is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It began so.
    Start,
    /// Requests succeeded while all of it was in use.
    Success,
    /// The server refused a request.
    Refused,
    /// The server asked for a pause.
    Paused,
}

impl State {
    /// The state before the first request.
    #[must_use]
    pub fn new(rules: &Rules) -> Self {
        Self {
            allowance: rules.start,
            in_flight: 0,
            epoch: 0,
            refused_at: None,
            successes: 0,
            failed_probes: 0,
            streak: 0,
            boost: 1.0,
            round: 0.0,
            paused_until: None,
            probe_from: Duration::ZERO,
        }
    }

    /// Requests that may be under way at once.
    #[must_use]
    pub fn allowance(&self) -> u32 {
        // Within the bounds of a u32 ceiling.
        self.allowance as u32
    }

    /// Requests that are under way.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The epoch that a request admitted now belongs to.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How long nothing may be sent, at the time `now`.
    #[must_use]
    pub fn pause(&self, now: Duration) -> Duration {
        self.paused_until.map_or(Duration::ZERO, |until| until.saturating_sub(now))
    }

    /// Whether one more request may be sent at the time `now`.
    #[must_use]
    pub fn admits(&self, now: Duration) -> bool {
        self.pause(now).is_zero() && self.in_flight < self.allowance()
    }

    /// The state after an observation at the time `now`, and what moved, if anything did.
    #[must_use]
    pub fn after(mut self, rules: &Rules, seen: Observation, now: Duration) -> (Self, Option<Cause>) {
        let before = self.allowance();
        let moved = match seen {
            Observation::Admitted => {
                self.in_flight += 1;
                None
            }
            Observation::Succeeded { epoch, contended } => {
                let full = contended || self.in_flight >= self.allowance();
                self.in_flight = self.in_flight.saturating_sub(1);
                self.successes = self.successes.saturating_add(1);
                if epoch == self.epoch {
                    self.streak = 0;
                    if full {
                        self.grow(rules, now);
                    }
                }
                (self.allowance() != before).then_some(Cause::Success)
            }
            Observation::Refused { epoch, retry_after } => {
                let under_way = f64::from(self.in_flight.max(1));
                self.in_flight = self.in_flight.saturating_sub(1);
                let paused = self.hold(retry_after, now);
                // Those that were under way together are refused together: one cut for all of them.
                if epoch == self.epoch {
                    self.cut(rules, under_way);
                    Some(Cause::Refused)
                } else {
                    paused.then_some(Cause::Paused)
                }
            }
            Observation::Ended { retry_after } => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.hold(retry_after, now).then_some(Cause::Paused)
            }
        };
        (self, moved)
    }

    /// A success while all of the allowance was in use.
    fn grow(&mut self, rules: &Rules, now: Duration) {
        let level = self.allowance.floor().max(1.0);
        let gain = match self.refused_at {
            // Nothing was refused so far: each round doubles the allowance.
            None => rules.step,
            Some(refused_at) => {
                let beyond = self.allowance + rules.step / level >= refused_at;
                let too_early = self.successes < self.next_probe() || now < self.probe_from;
                if beyond && self.allowance < refused_at && too_early {
                    // As near as it gets without asking for a refusal.
                    self.allowance = self.allowance.max(refused_at - 0.01).min(rules.ceiling);
                    return;
                }
                if beyond {
                    self.round += 1.0;
                    if self.round > level {
                        self.round = 0.0;
                        self.boost = (self.boost * 2.0).min((level * FASTEST_GROWTH / rules.step).max(1.0));
                    }
                }
                rules.step * self.boost / level
            }
        };
        self.allowance = (self.allowance + gain).min(rules.ceiling);
    }

    /// Successes after which the level that was refused is tried again.
    fn next_probe(&self) -> u32 {
        PROBE_AFTER << self.failed_probes.min(PROBE_DOUBLINGS)
    }

    /// A refusal with so many requests under way.
    fn cut(&mut self, rules: &Rules, under_way: f64) {
        let again = self.refused_at.is_some_and(|level| {
            (under_way - level).abs() <= (level * SAME_LEVEL).max(1.0) && self.successes >= PROBE_AFTER
        });
        self.failed_probes = if again { self.failed_probes.saturating_add(1) } else { 0 };
        // What follows a cut at once tells that the cut was too small.
        let depth = rules.factor.powi(1 << self.streak.min(4)).max(DEEPEST_CUT.min(rules.factor));
        let base = self.allowance.min(under_way);
        self.allowance = (base * depth).clamp(rules.floor, rules.ceiling);
        self.refused_at = Some(under_way.max(rules.floor + 1.0));
        self.streak = self.streak.saturating_add(1);
        self.epoch += 1;
        self.successes = 0;
        self.boost = 1.0;
        self.round = 0.0;
    }

    /// Holds everybody back for as long as the server asks. Whether that is longer than before.
    fn hold(&mut self, retry_after: Option<Duration>, now: Duration) -> bool {
        let Some(wait) = retry_after.filter(|wait| !wait.is_zero()) else { return false };
        let until = now.saturating_add(wait);
        let longer = self.paused_until.is_none_or(|known| known < until);
        if longer {
            self.paused_until = Some(until);
            self.probe_from = now.saturating_add(wait.saturating_mul(PROBE_PAUSES));
        }
        longer
    }
}
