//! How long a server asks to wait.
//!
//! Decides how `Retry-After` (seconds or an HTTP date) and `retry-after-ms` are read. Whether the wait
//! is granted is decided in [`retry`](crate::retry).

use std::time::{Duration, SystemTime};

/// Longest wait that is represented: a day. Beyond it the number means nothing to a waiting program.
const LONGEST: f64 = 86_400.0;

/// The wait that the two headers ask for; `retry-after-ms` is finer and wins. A date that has passed
/// means now.
pub(crate) fn parse(
    retry_after: Option<&str>,
    retry_after_ms: Option<&str>,
    now: SystemTime,
) -> Option<Duration> {
    let milliseconds = retry_after_ms.and_then(number).map(|ms| ms / 1000.0);
    let seconds = milliseconds.or_else(|| retry_after.and_then(number));
    if let Some(seconds) = seconds {
        return Some(Duration::from_secs_f64(seconds.min(LONGEST)));
    }
    let date = httpdate::parse_http_date(retry_after?.trim()).ok()?;
    let wait = date.duration_since(now).unwrap_or_default();
    Some(wait.min(Duration::from_secs_f64(LONGEST)))
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::parse;

    #[test]
    fn reads_every_form() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let check = |after: Option<&str>, ms: Option<&str>, expected: Option<f64>| {
            assert_eq!(parse(after, ms, now), expected.map(Duration::from_secs_f64), "{after:?} {ms:?}");
        };
        check(Some("17"), None, Some(17.0));
        check(Some(" 0.5 "), None, Some(0.5));
        check(Some("0"), None, Some(0.0));
        check(None, Some("250"), Some(0.25));
        check(Some("3"), Some("2500"), Some(2.5));
        check(Some("3"), Some("nonsense"), Some(3.0));
        check(Some("Sun, 06 Nov 1994 08:50:07 GMT"), None, Some(30.0));
        check(Some("Sun, 06 Nov 1994 08:00:00 GMT"), None, Some(0.0));
        check(Some("1e300"), None, Some(86_400.0));
        check(Some("-4"), None, None);
        check(Some("soon"), None, None);
        check(None, None, None);
        assert!(parse(Some("NaN"), Some("inf"), SystemTime::now()).is_none());
    }
}
