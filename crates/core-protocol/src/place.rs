//! Where in a text a fault is: its line, and the text around it.
//!
//! Decides how a place is told to a person and to a model. What is wrong there is the readers' business.

use memchr::memchr_iter;

use crate::Span;

/// Bytes shown on each side of the place where reading failed.
const EXCERPT_REACH: usize = 80;

/// Counts lines without counting twice.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    at: usize,
    before: usize,
}

impl Lines {
    /// The line, from 1, that the byte is in.
    pub(crate) fn line_of(&mut self, text: &str, offset: usize) -> usize {
        let bytes = text.as_bytes();
        if offset >= self.at {
            self.before += newlines(bytes.get(self.at..offset).unwrap_or_default());
        } else {
            self.before -= newlines(bytes.get(offset..self.at).unwrap_or_default()).min(self.before);
        }
        self.at = offset;
        self.before + 1
    }
}

fn newlines(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).count()
}

/// The text around `offset`, inside `span`.
pub(crate) fn excerpt(text: &str, span: Span, offset: usize) -> String {
    let offset = offset.clamp(span.start, span.end);
    let mut start = offset.saturating_sub(EXCERPT_REACH).max(span.start);
    let mut end = (offset + EXCERPT_REACH).min(span.end);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(start..end).unwrap_or_default().to_owned()
}
