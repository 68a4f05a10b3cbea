//! Whether and when a failed try is followed by another.
//!
//! Decides, from the error and what went before, without clock and without chance: the caller hands in
//! the jitter and does the waiting.

use std::time::Duration;

use crate::config::seconds;
use crate::{LlmError, RetryConfig, Unreachable};

/// Share by which a pause is lengthened or shortened by chance.
const JITTER: f64 = 0.2;
/// Tries where nothing listens on this machine and nothing ever did: a server that was just started
/// gets some seconds, a person at a terminal is not left waiting.
const TRIES_REFUSED_HERE: u32 = 3;
/// Tries where the host name does not resolve and never did: most likely it is misspelt.
const TRIES_UNKNOWN_HOST: u32 = 4;

/// What follows a failed try.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Another try after this pause.
    Again(Duration),
    /// No further try; the error that the caller is given.
    GiveUp(LlmError),
}

/// Counts the tries of one call.
#[derive(Debug)]
pub(crate) struct RetryState {
    max_tries: u32,
    base_wait: f64,
    max_wait: f64,
    retry_after_max: Duration,
    /// Whether this client has ever had an answer from the server.
    answered_before: bool,
    /// Tries that count.
    failures: u32,
}

impl RetryState {
    pub(crate) fn new(config: &RetryConfig, answered_before: bool) -> Self {
        Self {
            max_tries: config.max_tries.max(1),
            base_wait: seconds(config.base_wait).as_secs_f64(),
            max_wait: seconds(config.max_wait).as_secs_f64(),
            retry_after_max: seconds(config.retry_after_max),
            answered_before,
            failures: 0,
        }
    }

    /// A try failed. `jitter` is between −1 and 1.
    ///
    /// A pause that the server asks for is granted in full and does not count as a try; one that is
    /// too long ends the call with [`LlmError::RateLimited`]. A pause of nothing is no pause: it counts.
    pub(crate) fn failed(&mut self, error: LlmError, jitter: f64) -> Verdict {
        if !error.is_retryable() {
            return Verdict::GiveUp(error);
        }
        match error.retry_after() {
            Some(wait) if wait > self.retry_after_max => return Verdict::GiveUp(rate_limited(error)),
            Some(wait) if !wait.is_zero() => return Verdict::Again(wait),
            _ => {}
        }
        self.failures += 1;
        if self.failures >= self.tries_for(&error) {
            return Verdict::GiveUp(error);
        }
        let doublings = i32::try_from(self.failures - 1).unwrap_or(i32::MAX).min(64);
        let plain = (self.base_wait * 2f64.powi(doublings)).min(self.max_wait);
        let wait = (plain * (1.0 + JITTER * jitter.clamp(-1.0, 1.0))).min(self.max_wait);
        Verdict::Again(seconds(wait))
    }

    /// A reply came that is not good enough. Whether another try is left.
    pub(crate) fn unsatisfied(&mut self) -> bool {
        self.failures += 1;
        self.failures < self.max_tries
    }

    /// An answer came.
    pub(crate) fn answered(&mut self) {
        self.answered_before = true;
    }

    fn tries_for(&self, error: &LlmError) -> u32 {
        let most = match error {
            LlmError::Unreachable { reason: Unreachable::Refused, local: true, .. }
                if !self.answered_before =>
            {
                TRIES_REFUSED_HERE
            }
            LlmError::Unreachable { reason: Unreachable::UnknownHost, .. } if !self.answered_before => {
                TRIES_UNKNOWN_HOST
            }
            _ => self.max_tries,
        };
        most.min(self.max_tries)
    }
}

/// The error of a pause that is too long, whatever asked for it.
fn rate_limited(error: LlmError) -> LlmError {
    match error {
        LlmError::Overloaded { endpoint, retry_after, detail, .. }
        | LlmError::Server { endpoint, retry_after, detail, .. } => {
            LlmError::RateLimited { endpoint, retry_after, detail }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{RetryState, Verdict};
    use crate::{Endpoint, LlmError, RetryConfig, Unreachable};

    fn endpoint() -> Arc<Endpoint> {
        Arc::new(Endpoint { provider: "p".into(), model: "m".into(), ..Endpoint::default() })
    }

    fn server(retry_after: Option<f64>) -> LlmError {
        LlmError::Server {
            endpoint: endpoint(),
            status: Some(500),
            retry_after: retry_after.map(Duration::from_secs_f64),
            detail: String::new(),
        }
    }

    fn unreachable(reason: Unreachable, local: bool) -> LlmError {
        LlmError::Unreachable { endpoint: endpoint(), reason, local, detail: String::new() }
    }

    /// The pauses until the call is given up.
    fn pauses(config: &RetryConfig, error: &LlmError, jitter: f64, answered: bool) -> Vec<f64> {
        let mut state = RetryState::new(config, answered);
        let mut pauses = Vec::new();
        while let Verdict::Again(wait) = state.failed(error.clone(), jitter) {
            pauses.push((wait.as_secs_f64() * 1000.0).round() / 1000.0);
            if pauses.len() > 50 {
                break;
            }
        }
        pauses
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let config = RetryConfig::default();
        let plain = [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0];
        assert_eq!(pauses(&config, &server(None), 0.0, true), plain);
        assert_eq!(pauses(&config, &server(None), -1.0, true)[..2], [1.6, 3.2]);
        assert_eq!(pauses(&config, &server(None), 1.0, true)[..2], [2.4, 4.8]);
        assert!(pauses(&config, &server(None), 1.0, true).iter().all(|pause| *pause <= 60.0));
        assert_eq!(
            pauses(&RetryConfig { max_tries: 1, ..config.clone() }, &server(None), 0.0, true),
            [0.0; 0]
        );
        assert_eq!(pauses(&RetryConfig { max_tries: 0, ..config }, &server(None), 0.0, true), [0.0; 0]);
    }

    #[test]
    fn a_pause_that_is_asked_for_does_not_count() {
        let config = RetryConfig::default();
        assert_eq!(pauses(&config, &server(Some(17.0)), 1.0, true).len(), 51);
        let mut state = RetryState::new(&config, true);
        for _ in 0..20 {
            assert_eq!(state.failed(server(Some(120.0)), 0.5), Verdict::Again(Duration::from_secs(120)));
        }
        assert_eq!(state.failed(server(None), 0.0), Verdict::Again(Duration::from_secs(2)));
    }

    #[test]
    fn a_pause_of_nothing_counts() {
        assert_eq!(pauses(&RetryConfig::default(), &server(Some(0.0)), 0.0, true).len(), 9);
    }

    #[test]
    fn a_pause_that_is_too_long_ends_the_call() {
        let mut state = RetryState::new(&RetryConfig::default(), true);
        match state.failed(server(Some(121.0)), 0.0) {
            Verdict::GiveUp(error) => {
                assert_eq!(error.kind(), "rate_limited");
                assert_eq!(error.retry_after(), Some(Duration::from_secs(121)));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_never_reachable_is_given_up_sooner() {
        let config = RetryConfig::default();
        let check = |error: LlmError, answered: bool, expected: usize| {
            assert_eq!(pauses(&config, &error, 0.0, answered).len(), expected, "{error:?} {answered}");
        };
        check(unreachable(Unreachable::Refused, true), false, 2);
        check(unreachable(Unreachable::Refused, true), true, 9);
        check(unreachable(Unreachable::Refused, false), false, 9);
        check(unreachable(Unreachable::UnknownHost, false), false, 3);
        check(unreachable(Unreachable::UnknownHost, false), true, 9);
        check(unreachable(Unreachable::Other, false), false, 9);
        check(unreachable(Unreachable::Tls, false), false, 0);
    }

    #[test]
    fn what_cannot_be_cured_is_not_tried_again() {
        let error =
            LlmError::Authentication { endpoint: endpoint(), status: Some(401), detail: String::new() };
        assert_eq!(pauses(&RetryConfig::default(), &error, 0.0, true).len(), 0);
    }
}
