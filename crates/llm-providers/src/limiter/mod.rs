//! One place for everybody who asks the same server with the same key: how many requests may be under way, who is
//! next, and how long nobody may ask.
//!
//! Decides who waits and for how long; how the allowance moves is decided in [`rules`]. Whoever came first is served
//! first, a retry keeps the place of its call. Waiting can be given up at any time: a future that is dropped leaves
//! its place to the next. A [`Limiters`] is handed to every client that should share; there is no hidden global one.

pub mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::config::ConcurrencyConfig;
use crate::{LlmError, Secret};

use rules::{Cause, Observation, Rules, State};

/// Moves that are remembered; older ones are forgotten.
const HISTORY: usize = 1_000;

/// Limits the requests to one server with one key. Clones are the same limiter.
#[derive(Clone)]
pub struct Limiter(Arc<Shared>);

struct Shared {
    name: String,
    rules: Rules,
    began: Instant,
    tickets: AtomicU64,
    inner: Mutex<Inner>,
}

struct Inner {
    state: State,
    /// Who waits, by place in the queue.
    queue: BTreeMap<u64, Arc<Notify>>,
    history: VecDeque<Move>,
    admitted: u64,
    refused: u64,
    waited: Duration,
}

/// One move of the allowance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Move {
    /// When, from the limiter's beginning.
    pub at: Duration,
    /// Requests that may be under way from then on.
    pub allowance: u32,
    /// Why.
    pub cause: Cause,
    /// How long nothing is sent from then on, where the server asked for a pause.
    pub pause: Duration,
}

/// What a limiter is doing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimiterStatus {
    /// Provider and address.
    pub name: String,
    /// Requests that may be under way at once.
    pub allowance: u32,
    /// Requests that are.
    pub in_flight: u32,
    /// Requests that wait.
    pub waiting: usize,
    /// How long nothing is sent.
    pub pause: Duration,
    /// Requests let through so far.
    pub admitted: u64,
    /// Requests refused by the server so far.
    pub refused: u64,
    /// Time that all requests together have waited.
    pub waited: Duration,
    /// The latest moves, oldest first.
    pub history: Vec<Move>,
}

/// A call's place in the queue. One for all tries of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

impl Limiter {
    /// A limiter of its own.
    #[must_use]
    pub fn new(name: impl Into<String>, config: &ConcurrencyConfig) -> Self {
        let rules = Rules::new(config);
        let state = State::new(&rules);
        let start = Move {
            at: Duration::ZERO,
            allowance: state.allowance(),
            cause: Cause::Start,
            pause: Duration::ZERO,
        };
        Self(Arc::new(Shared {
            name: name.into(),
            rules,
            began: Instant::now(),
            tickets: AtomicU64::new(0),
            inner: Mutex::new(Inner {
                state,
                queue: BTreeMap::new(),
                history: VecDeque::from([start]),
                admitted: 0,
                refused: 0,
                waited: Duration::ZERO,
            }),
        }))
    }

    /// A place at the end of the queue, kept by all tries of a call.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        Ticket(self.0.tickets.fetch_add(1, Ordering::Relaxed))
    }

    /// Waits until a request may be sent. The permit says how long that took and is told how the request went.
    ///
    /// Dropping the future gives the place up.
    ///
    /// # Errors
    ///
    /// The server asked for a pause that is longer than `longest_pause`; the rest of it.
    pub async fn acquire(&self, ticket: Ticket, longest_pause: Duration) -> Result<Permit, Duration> {
        let place = Place::take(self, ticket);
        let mut began = None;
        loop {
            let next = match self.try_admit(ticket, longest_pause) {
                Admission::Granted { epoch } => {
                    let waited = began.map_or(Duration::ZERO, |began: Instant| began.elapsed());
                    self.inner().waited += waited;
                    return Ok(Permit { limiter: self.clone(), epoch, waited, open: true });
                }
                Admission::Refused(pause) => return Err(pause),
                Admission::Paused(pause) => Some(Instant::now() + pause),
                Admission::Queued => None,
            };
            began.get_or_insert_with(Instant::now);
            match next {
                // Only the first in the queue watches the clock; the others are woken one after another.
                Some(until) => {
                    tokio::select! {
                        () = place.notify.notified() => {}
                        () = tokio::time::sleep_until(until) => {}
                    }
                }
                None => place.notify.notified().await,
            }
        }
    }

    /// What it is doing, with its latest moves.
    #[must_use]
    pub fn status(&self) -> LimiterStatus {
        let now = self.now();
        let inner = self.inner();
        LimiterStatus {
            name: self.0.name.clone(),
            allowance: inner.state.allowance(),
            in_flight: inner.state.in_flight(),
            waiting: inner.queue.len(),
            pause: inner.state.pause(now),
            admitted: inner.admitted,
            refused: inner.refused,
            waited: inner.waited,
            history: inner.history.iter().copied().collect(),
        }
    }

    fn now(&self) -> Duration {
        self.0.began.elapsed()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_admit(&self, ticket: Ticket, longest_pause: Duration) -> Admission {
        let now = self.now();
        let mut inner = self.inner();
        let pause = inner.state.pause(now);
        if pause > longest_pause {
            return Admission::Refused(pause);
        }
        if inner.queue.first_key_value().is_none_or(|(first, _)| *first != ticket.0) {
            return Admission::Queued;
        }
        if !pause.is_zero() {
            return Admission::Paused(pause);
        }
        if !inner.state.admits(now) {
            return Admission::Queued;
        }
        let epoch = inner.state.epoch();
        inner.queue.pop_first();
        inner.admitted += 1;
        inner.observe(&self.0.rules, Observation::Admitted, now);
        inner.wake_next(now);
        Admission::Granted { epoch }
    }

    fn ended(&self, seen: impl FnOnce(&Inner) -> Observation) {
        let now = self.now();
        let mut inner = self.inner();
        let seen = seen(&inner);
        if matches!(seen, Observation::Refused { .. }) {
            inner.refused += 1;
        }
        inner.observe(&self.0.rules, seen, now);
        inner.wake_next(now);
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        formatter
            .debug_struct("Limiter")
            .field("name", &self.0.name)
            .field("allowance", &inner.state.allowance())
            .field("in_flight", &inner.state.in_flight())
            .field("waiting", &inner.queue.len())
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn observe(&mut self, rules: &Rules, seen: Observation, now: Duration) {
        let (state, cause) = self.state.after(rules, seen, now);
        self.state = state;
        if let Some(cause) = cause {
            if self.history.len() == HISTORY {
                self.history.pop_front();
            }
            let entry = Move { at: now, allowance: state.allowance(), cause, pause: state.pause(now) };
            self.history.push_back(entry);
        }
    }

    /// Wakes the first in the queue where there may be a place for it, or a pause to watch.
    fn wake_next(&self, now: Duration) {
        if let Some((_, notify)) = self.queue.first_key_value()
            && (self.state.admits(now) || !self.state.pause(now).is_zero())
        {
            notify.notify_one();
        }
    }
}

enum Admission {
    Granted {
        epoch: u64,
    },
    /// The rest of the pause.
    Paused(Duration),
    Queued,
    /// The rest of a pause that is too long to wait for.
    Refused(Duration),
}

/// A place in the queue while somebody waits there.
struct Place<'a> {
    limiter: &'a Limiter,
    ticket: Ticket,
    notify: Arc<Notify>,
}

impl<'a> Place<'a> {
    fn take(limiter: &'a Limiter, ticket: Ticket) -> Self {
        let notify = Arc::new(Notify::new());
        limiter.inner().queue.insert(ticket.0, Arc::clone(&notify));
        Self { limiter, ticket, notify }
    }
}

impl Drop for Place<'_> {
    /// Whoever leaves without having been served may have been woken for nothing: the next one is woken.
    fn drop(&mut self) {
        let now = self.limiter.now();
        let mut inner = self.limiter.inner();
        if inner.queue.remove(&self.ticket.0).is_some() {
            inner.wake_next(now);
        }
    }
}

/// Leave to send one request. Tell it how the request went; dropping it says that it tells nothing.
#[derive(Debug)]
#[must_use = "the place is free again as soon as the permit is dropped"]
pub struct Permit {
    limiter: Limiter,
    epoch: u64,
    waited: Duration,
    open: bool,
}

impl Permit {
    /// How long the request waited for its turn.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// The request was answered.
    pub fn succeeded(mut self) {
        self.open = false;
        let epoch = self.epoch;
        self.limiter.ended(|inner| Observation::Succeeded { epoch, contended: !inner.queue.is_empty() });
    }

    /// The request failed.
    pub fn failed(mut self, error: &LlmError) {
        self.open = false;
        let (epoch, retry_after) = (self.epoch, error.retry_after());
        self.limiter.ended(|_| match error {
            error if error.is_refusal_for_load() => Observation::Refused { epoch, retry_after },
            _ => Observation::Ended { retry_after },
        });
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.open {
            self.limiter.ended(|_| Observation::Ended { retry_after: None });
        }
    }
}

/// The limiters of a program, one for each server and key. Clones are the same set.
#[derive(Clone, Default)]
pub struct Limiters(Arc<Mutex<Set>>);

#[derive(Default)]
struct Set {
    /// Keys are told apart by a hash that is worth nothing outside of this process.
    hasher: RandomState,
    limiters: BTreeMap<(String, u64), Limiter>,
}

impl Limiters {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The limiter of a server (the address up to its path) and key, whatever its provider is called. The first one
    /// to ask says by which rules it goes, and the name that it is shown by.
    #[must_use]
    pub fn of(&self, provider: &str, url: &str, key: Option<&Secret>, config: &ConcurrencyConfig) -> Limiter {
        let place = format!("{provider} {}", server_of(url));
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = set.hasher.hash_one(key.map(|key| key.expose().trim()));
        let known = set.limiters.entry((server_of(url), key));
        known.or_insert_with(|| Limiter::new(place, config)).clone()
    }

    /// All limiters of the set.
    #[must_use]
    pub fn all(&self) -> Vec<Limiter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).limiters.values().cloned().collect()
    }
}

impl fmt::Debug for Limiters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.all()).finish()
    }
}

/// Scheme, host and port of an address, without credentials.
fn server_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{}://{}", scheme.to_lowercase(), host.to_lowercase())
}
