//! Pauses that servers ask for in words.

use std::time::Duration;

/// Longest pause that is represented: a day.
const LONGEST: f64 = 86_400.0;

/// What precedes a pause in a message, in lower case.
const LEADS: &[&str] = &["try again in ", "retry after ", "retry in "];

/// The pause that a message names (`try again in 1m2.5s`), from text in lower case.
pub(crate) fn in_text(words: &str) -> Option<Duration> {
    LEADS.iter().find_map(|lead| {
        let start = words.find(lead)? + lead.len();
        span(words.get(start..)?)
    })
}

/// A span at the start of a text: `17s`, `250ms`, `1m2.5s`, `6 seconds`. A bare number is none.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start();
    let mut total: Option<f64> = None;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { break };
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let factor = match unit {
            "ms" | "milliseconds" | "millisecond" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => break,
        };
        total = Some(total.unwrap_or(0.0) + number * factor);
        rest = after;
    }
    total.map(|seconds| Duration::from_secs_f64(seconds.min(LONGEST)))
}
