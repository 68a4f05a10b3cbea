//! What the targets share: how an input is taken apart, and the check that time grows with length.
//!
//! Decides the layout of an input. The first byte holds options, the rest is text, so that a file of
//! the corpus can be read and written by hand.

use core_protocol::{DialectName, ParseOptions, ToolDefinition};
use std::time::Duration;

/// The options that the first byte of an input stands for.
#[derive(Debug, Clone, Copy)]
pub struct Choice(pub u8);

impl Choice {
    /// One of the four dialects: bits 0 and 1.
    pub fn dialect(self) -> DialectName {
        DialectName::ALL[usize::from(self.0) % 4]
    }

    /// Thinking at the start (bit 2), unclosed calls (bit 3), and known tools (bit 4).
    pub fn options<'t>(self, tools: &'t [ToolDefinition]) -> ParseOptions<'t> {
        ParseOptions {
            starts_in_thinking: self.0 & 4 != 0,
            accept_unclosed_at_end: self.0 & 8 != 0,
            known_tools: if self.0 & 16 != 0 { tools } else { &[] },
            ..ParseOptions::new(self.dialect().dialect())
        }
    }

    /// Whether the time is looked at instead of the result: one input in eight.
    pub fn wants_growth(self) -> bool {
        self.0 >= 0xE0
    }
}

/// The tools of the case tables.
pub fn known_tools() -> Vec<ToolDefinition> {
    serde_json::from_str(include_str!("../../tests/it/cases/tools.json")).expect("tools.json")
}

/// The options and the text of an input; of bytes that are not UTF-8 what comes before them.
pub fn choice_and_text(data: &[u8]) -> Option<(Choice, &str)> {
    let (choice, text) = data.split_first()?;
    Some((Choice(*choice), valid_part(text)))
}

/// The text up to the first byte that is not UTF-8.
pub fn valid_part(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// Bytes of the shorter of the two texts whose times are compared.
const SHORT: usize = 4_000;
/// How much longer the other one is.
const FACTOR: u32 = 16;
/// Times below this are not compared: they are noise.
const NOISE: Duration = Duration::from_millis(5);

/// Time that this thread was on a processor, so that a busy machine does not count.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Repeats the second half of the text and fails if `run` takes far more than 16 times as long for 16
/// times the length, where anything quadratic takes 256 times as long. What looks so is measured again,
/// and the fastest run counts.
pub fn assert_linear(text: &str, run: impl Fn(&str)) {
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (head, unit) = text.split_at(middle);
    if unit.is_empty() {
        return;
    }
    let of_length = |bytes: usize| format!("{head}{}", unit.repeat(bytes / unit.len() + 1));
    let (short, long) = (of_length(SHORT), of_length(SHORT * FACTOR as usize));
    let time = |text: &str| {
        let start = cpu_time();
        run(text);
        cpu_time().saturating_sub(start)
    };
    let (mut short_time, mut long_time) = (Duration::MAX, Duration::MAX);
    for _ in 0..6 {
        short_time = short_time.min(time(&short));
        long_time = long_time.min(time(&long));
        if long_time < NOISE || long_time < short_time * FACTOR * 5 {
            return;
        }
    }
    panic!("{} bytes take {short_time:?}, {} bytes {long_time:?}", short.len(), long.len());
}
