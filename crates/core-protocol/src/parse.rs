//! The whole-text parser: one reply in, its pieces and calls out.
//!
//! Decides the options of parsing and the failure summary. The work is the scanner's.

use crate::scanner::Scanner;
use crate::{Dialect, ParsedReply, SegmentKind, ToolDefinition};

/// How a reply is read.
#[derive(Clone, Copy)]
pub struct ParseOptions<'a> {
    /// The spelling of calls.
    pub dialect: &'a dyn Dialect,
    /// Whether the chat template has already opened thinking, so that the reply begins inside of it.
    pub starts_in_thinking: bool,
    /// Whether a last call may lack its closing tags, if its arguments are complete JSON and end the
    /// text. For servers that strip the tags; a reply that was cut there cannot be told from it.
    pub accept_unclosed_at_end: bool,
    /// The tools that can be called: by them names are resolved and values typed. May be empty.
    pub known_tools: &'a [ToolDefinition],
}

impl<'a> ParseOptions<'a> {
    /// The dialect, and nothing else: no thinking at the start, closed blocks only, no known tools.
    #[must_use]
    pub fn new(dialect: &'a dyn Dialect) -> Self {
        Self { dialect, starts_in_thinking: false, accept_unclosed_at_end: false, known_tools: &[] }
    }
}

impl std::fmt::Debug for ParseOptions<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ParseOptions")
            .field("dialect", &self.dialect.name())
            .field("starts_in_thinking", &self.starts_in_thinking)
            .field("accept_unclosed_at_end", &self.accept_unclosed_at_end)
            .field("known_tools", &self.known_tools.len())
            .finish()
    }
}

/// Reads a whole reply. Never fails, and takes time linear in the length of the text: what cannot be
/// read is in [`ParsedReply::malformed`].
#[must_use]
pub fn parse_reply(text: &str, options: &ParseOptions<'_>) -> ParsedReply {
    let mut scanner = Scanner::new(*options);
    scanner.advance(text, true, &mut |_| {});
    scanner.finish()
}

/// The failure summary in a reply: the text after the thinking and before any call, trimmed; where
/// that is empty, the thinking, trimmed.
#[must_use]
pub fn failure_summary_text(source: &str, options: &ParseOptions<'_>) -> String {
    let reply = parse_reply(source, options);
    let after_thinking = reply
        .segments
        .iter()
        .rposition(|segment| segment.kind == SegmentKind::Thinking)
        .map_or(0, |position| position + 1);
    let mut summary = String::new();
    for segment in reply.segments.iter().skip(after_thinking) {
        if segment.kind != SegmentKind::Text {
            break;
        }
        summary.push_str(segment.content.of(source));
    }
    let summary = summary.trim();
    if summary.is_empty() { reply.thinking(source).trim().to_owned() } else { summary.to_owned() }
}
