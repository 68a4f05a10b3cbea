//! The last lines that a server printed, for error texts.
//!
//! Decides how many lines, and how much of each, a person is shown when a server has ended.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Lines that are kept.
const MAX_LINES: usize = 12;
/// Bytes of a line that are kept.
const MAX_LINE: usize = 400;

/// A shared ring of lines.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    lines: Mutex<VecDeque<String>>,
}

impl Tail {
    /// Takes a line, without its end; blank ones are left out.
    pub(crate) fn push(&self, line: &[u8]) {
        let line = &line[..line.len().min(MAX_LINE)];
        let text = super::text::clean(&String::from_utf8_lossy(line)).trim_end().to_owned();
        if text.is_empty() {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }

    /// The lines in order, indented by two spaces; none where nothing was printed.
    pub(crate) fn indented(&self) -> Option<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return None;
        }
        Some(lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_lines_and_little_of_each() {
        let tail = Tail::default();
        assert_eq!(tail.indented(), None);
        tail.push(b"  \x1b[0m");
        assert_eq!(tail.indented(), None);
        for number in 0..20 {
            tail.push(format!("line {number}").as_bytes());
        }
        tail.push("ä".repeat(5000).as_bytes());
        let shown = tail.indented().unwrap();
        assert_eq!(shown.lines().count(), MAX_LINES);
        assert!(shown.starts_with("  line 9\n"), "{shown}");
        assert!(shown.len() < MAX_LINES * MAX_LINE);
    }
}
