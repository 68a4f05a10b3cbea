//! The incremental parser: a reply in pieces, cut anywhere.
//!
//! Decides how bytes become text. Reading the text is the scanner's work; what is found is told as soon
//! as no later byte can change it, and what is held back is never more than a tag that is not yet
//! whole, or a call that is not yet closed.

use crate::scanner::{Scanner, Sink};
use crate::{MalformedBlock, ParseOptions, ParsedReply, ToolCall};

/// Least room that is made for further pieces, in bytes.
const LEAST_ROOM: usize = 16 * 1024;

/// What is found while a reply comes in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParseEvent<'a> {
    /// More text. All of them make [`ParsedReply::text`], [`ParseEvent::Reclassify`] apart.
    TextDelta(&'a str),
    /// More thinking.
    ThinkingDelta(&'a str),
    /// A call is complete. It may still turn out to be thinking: run nothing before the end.
    Call(&'a ToolCall),
    /// A block could not be read. Its text was told as text.
    Malformed(&'a MalformedBlock),
    /// What was told as text from this byte on was thinking, and calls in it are none.
    Reclassify {
        /// The first byte of it, counted from the beginning of the reply.
        from: usize,
    },
}

/// Reads a reply piece by piece.
///
/// ```
/// use core_protocol::{DialectName, ParseEvent, ParseOptions, StreamParser};
///
/// let mut parser = StreamParser::new(ParseOptions::new(DialectName::McpXml.dialect()));
/// let mut shown = String::new();
/// for piece in ["Hel", "lo <use_", "mcp_tool"] {
///     parser.push(piece.as_bytes(), |event| {
///         if let ParseEvent::TextDelta(text) = event {
///             shown.push_str(text);
///         }
///     });
/// }
/// assert_eq!(shown, "Hello ");
/// assert_eq!(parser.finish(|_| {})?.reply.text("Hello <use_mcp_tool"), "Hello <use_mcp_tool");
/// # Ok::<(), core_protocol::StreamError>(())
/// ```
pub struct StreamParser<'o> {
    text: String,
    /// The beginning of a character whose end has not come.
    pending: Vec<u8>,
    /// Where the first byte stands that cannot be UTF-8.
    invalid_at: Option<usize>,
    scanner: Scanner<'o>,
}

/// A reply that came in pieces.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamedReply {
    /// The whole text.
    pub text: String,
    /// What it comes to; the same as [`parse_reply`](crate::parse_reply) gives for the text.
    pub reply: ParsedReply,
}

/// A stream that cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The bytes are not UTF-8.
    #[error(
        "the reply is not UTF-8 from byte {offset} on: the server sent another encoding or cut a character; the {offset} bytes before it were read"
    )]
    InvalidUtf8 {
        /// The first byte that cannot be read.
        offset: usize,
        /// What was read before it.
        read: Box<StreamedReply>,
    },
}

impl StreamError {
    /// A short name for logs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::InvalidUtf8 { .. } => "invalid_utf8",
        }
    }

    /// Whether asking again may help: the bytes were damaged on their way, so it may.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::InvalidUtf8 { .. } => true,
        }
    }
}

impl<'o> StreamParser<'o> {
    /// A parser at the beginning of a reply.
    #[must_use]
    pub fn new(options: ParseOptions<'o>) -> Self {
        Self { text: String::new(), pending: Vec::new(), invalid_at: None, scanner: Scanner::new(options) }
    }

    /// Takes the next bytes and tells what they settle.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(ParseEvent<'_>)) {
        if bytes.is_empty() || self.invalid_at.is_some() {
            return;
        }
        if self.pending.is_empty() {
            self.take(bytes, &mut sink);
        } else {
            let mut joined = std::mem::take(&mut self.pending);
            joined.extend_from_slice(bytes);
            self.take(&joined, &mut sink);
        }
    }

    /// Takes the next piece where it is known to be text; spares the look whether it is UTF-8.
    pub fn push_str(&mut self, piece: &str, mut sink: impl FnMut(ParseEvent<'_>)) {
        if self.pending.is_empty() && self.invalid_at.is_none() {
            self.append(piece, &mut sink);
        } else {
            self.push(piece.as_bytes(), sink);
        }
    }

    /// The text so far, without a character whose end has not come.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The reply is over: tells what was held back, and gives the result.
    ///
    /// # Errors
    /// [`StreamError::InvalidUtf8`], with what was read before the first bad byte.
    pub fn finish(mut self, mut sink: impl FnMut(ParseEvent<'_>)) -> Result<StreamedReply, StreamError> {
        self.scanner.advance(&self.text, true, &mut sink);
        let offset = self.invalid_at.or((!self.pending.is_empty()).then_some(self.text.len()));
        let read = StreamedReply { text: self.text, reply: self.scanner.finish() };
        match offset {
            None => Ok(read),
            Some(offset) => Err(StreamError::InvalidUtf8 { offset, read: Box::new(read) }),
        }
    }

    /// Takes bytes that begin with a whole character.
    fn take(&mut self, bytes: &[u8], sink: Sink<'_>) {
        match simdutf8::compat::from_utf8(bytes) {
            Ok(piece) => self.append(piece, sink),
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                self.append(simdutf8::basic::from_utf8(valid).unwrap_or_default(), sink);
                match error.error_len() {
                    None => self.pending = rest.to_vec(),
                    Some(_) => self.invalid_at = Some(self.text.len()),
                }
            }
        }
    }

    fn append(&mut self, piece: &str, sink: Sink<'_>) {
        let skimmed = self.scanner.skim(self.text.len(), piece, sink);
        if self.text.capacity() - self.text.len() < piece.len() {
            // Growing moves what is there, which for long replies costs more than reading them.
            self.text.reserve(piece.len().max(LEAST_ROOM).max(3 * self.text.len()));
        }
        self.text.push_str(piece);
        if !skimmed {
            self.scanner.advance(&self.text, false, sink);
        }
    }
}

impl std::fmt::Debug for StreamParser<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StreamParser").field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}
