//! When a request is made again.
//!
//! Decides which statuses may pass and how long to wait; what is asked again is up to the caller.

use std::time::Duration;

/// Tries of one request.
const TRIES: u32 = 4;
/// Longest wait that a server may ask for: a tool's call has a limit of its own.
const LONGEST: Duration = Duration::from_secs(20);

/// Whether another try may get another status.
pub(crate) fn is_retryable_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

/// The pauses between the tries of one request.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    tries: u32,
}

impl Backoff {
    /// Pauses of `first`, twice that, and so on, each a little shorter or longer.
    pub(crate) fn new(first: Duration) -> Self {
        Self { first, tries: 1 }
    }

    /// The next pause; none where there were tries enough, or the server asks for too long a wait.
    pub(crate) fn next(&mut self, asked: Option<u64>) -> Option<Duration> {
        if self.tries >= TRIES {
            return None;
        }
        let own = self.first.saturating_mul(1 << (self.tries - 1));
        self.tries += 1;
        let asked = asked.map(Duration::from_secs).unwrap_or_default();
        if asked > LONGEST {
            return None;
        }
        Some(own.mul_f64(0.8 + 0.4 * unit()).max(asked))
    }
}

/// A number from 0 to 1 by the hash of nothing, which the standard library seeds from the system.
fn unit() -> f64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    let bits = std::hash::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_that_may_pass() {
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            assert!(is_retryable_status(status), "{status}");
        }
        for status in [200, 301, 400, 401, 402, 403, 404, 410, 422, 451] {
            assert!(!is_retryable_status(status), "{status}");
        }
    }

    #[test]
    fn pauses_grow_and_end() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        for expected in [1.0, 2.0, 4.0] {
            let pause = backoff.next(None).unwrap().as_secs_f64();
            assert!((expected * 0.79..expected * 1.21).contains(&pause), "{pause} {expected}");
        }
        assert_eq!(backoff.next(None), None);
        let mut backoff = Backoff::new(Duration::from_millis(10));
        assert_eq!(backoff.next(Some(5)), Some(Duration::from_secs(5)));
        assert_eq!(backoff.next(Some(3600)), None);
    }
}
