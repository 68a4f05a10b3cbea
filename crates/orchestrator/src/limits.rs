//! The bounds of the whole run: wall time, working time, tokens, money. Pure: what was spent goes in, the first bound that was
//! reached comes out.

use std::time::Duration;

use core_protocol::event::StopReason;

use crate::config::RunLimits;

/// What a run has spent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Since the run began.
    pub wall: Duration,
    /// The same without waiting for limiters.
    pub working: Duration,
    /// Prompt and generated tokens.
    pub tokens: u64,
    /// US dollars; none where a price is unknown, and then no bound on money can hold.
    pub cost: Option<f64>,
}

/// A bound that was reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitHit {
    /// The stop reason that follows.
    pub reason: StopReason,
    /// Its name in the configuration.
    pub name: &'static str,
    /// What was spent, in the limit's unit: seconds, tokens, US dollars.
    pub spent: f64,
    /// The limit.
    pub max: f64,
}

/// The first bound that was reached, if any.
#[must_use]
pub fn reached(limits: &RunLimits, spent: Spent) -> Option<LimitHit> {
    #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
    let as_float = |tokens: u64| tokens as f64;
    let checks = [
        (StopReason::LimitWall, "wall", Some(spent.wall.as_secs_f64()), limits.wall),
        (
            StopReason::LimitWorkingTime,
            "working_time",
            Some(spent.working.as_secs_f64()),
            limits.working_time,
        ),
        (StopReason::LimitTokens, "tokens", Some(as_float(spent.tokens)), limits.tokens.map(as_float)),
        (StopReason::LimitCost, "cost", spent.cost, limits.cost),
    ];
    checks.into_iter().find_map(|(reason, name, spent, max)| {
        let (spent, max) = (spent?, max?);
        (spent >= max).then_some(LimitHit { reason, name, spent, max })
    })
}

/// How long the run may go on at least until a bound on time can be reached; none where there is no such bound.
#[must_use]
pub fn time_left(limits: &RunLimits, spent: Spent) -> Option<Duration> {
    let left = |limit: Option<f64>, spent| {
        let limit = Duration::try_from_secs_f64(limit?).ok()?;
        Some(limit.saturating_sub(spent))
    };
    let bounds = [left(limits.wall, spent.wall), left(limits.working_time, spent.working)];
    bounds.into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let limits =
            RunLimits { wall: Some(10.0), working_time: Some(5.0), tokens: Some(1000), cost: Some(0.5) };
        for (wall, working, tokens, cost, expected) in [
            (9, 4, 999, Some(0.49), None),
            (10, 0, 0, None, Some("wall")),
            (9, 5, 0, None, Some("working_time")),
            (0, 0, 1000, None, Some("tokens")),
            (0, 0, 0, Some(0.5), Some("cost")),
            (0, 0, 0, None, None),
            (11, 11, 1001, Some(1.0), Some("wall")),
        ] {
            let (wall, working) = (Duration::from_secs(wall), Duration::from_secs(working));
            let spent = Spent { wall, working, tokens, cost };
            assert_eq!(reached(&limits, spent).map(|hit| hit.name), expected);
            assert_eq!(reached(&RunLimits::default(), spent), None);
            let is_out_of_time = time_left(&limits, spent).is_some_and(|left| left.is_zero());
            assert_eq!(is_out_of_time, matches!(expected, Some("wall" | "working_time")));
        }
        let spent =
            Spent { wall: Duration::from_secs(7), working: Duration::from_secs(1), ..Spent::default() };
        assert_eq!(time_left(&limits, spent), Some(Duration::from_secs(3)));
        assert_eq!(time_left(&RunLimits { tokens: Some(1), ..RunLimits::default() }, spent), None);
    }
}
