//! What a reply comes to once it was read: its pieces, its calls, and what could not be read.
//!
//! Decides the shape of the result and what it is summed up to ([`Outcome`]). How it is found is the
//! business of the scanner; what follows from an outcome is left to the caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

use crate::{Span, ToolCall};

/// Most blocks of a reply that are reported as malformed. What is broken beyond them is text: nobody
/// reads so many reports, and a text made of broken calls would cost many times its own memory.
pub const MAX_MALFORMED: usize = 1_000;

/// A reply, read. All offsets are bytes of the text that was given to the parser.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParsedReply {
    /// The pieces of the text, in order and without gaps.
    pub segments: Vec<Segment>,
    /// The calls that can be run, in the order of the text.
    pub calls: Vec<ToolCall>,
    /// Blocks that begin like a call and cannot be read, the first [`MAX_MALFORMED`] of them.
    pub malformed: Vec<MalformedBlock>,
    /// Tags of the dialect outside thinking, outside calls and outside malformed blocks.
    pub stray_tags: Vec<StrayTag>,
}

/// One piece of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// What it is.
    pub kind: SegmentKind,
    /// The bytes it covers, markers included.
    pub span: Span,
    /// The bytes without `<think>` and `</think>`; the same as `span` for every other kind.
    pub content: Span,
}

/// What a piece of a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// Text for the reader.
    Text,
    /// Thinking.
    Thinking,
    /// A call: its index in [`ParsedReply::calls`].
    Call(usize),
    /// A block that cannot be read: its index in [`ParsedReply::malformed`].
    Malformed(usize),
}

/// A block that begins like a call and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MalformedBlock {
    /// The whole block; where it is not closed, up to what follows it.
    pub span: Span,
    /// The byte at which reading failed.
    pub offset: usize,
    /// The line of that byte, from 1.
    pub line: usize,
    /// What is wrong and what would be right, for a person and for the model.
    pub problem: Cow<'static, str>,
    /// The text around the failing byte, at most some 160 characters of the block.
    pub excerpt: String,
}

/// A tag of the dialect where no call is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StrayTag {
    /// The tag, as in [`Dialect::tags`](crate::Dialect::tags).
    pub tag: Cow<'static, str>,
    /// Its first byte.
    pub offset: usize,
}

/// What a reply comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// No call and no trace of one.
    NoCall,
    /// At least one call; malformed blocks may stand beside it.
    Calls,
    /// Blocks that cannot be read, and no call.
    MalformedOnly,
    /// Tags of the dialect, but nothing that begins like a call.
    TagsWithoutCall,
}

impl ParsedReply {
    /// Sums the reply up.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        if !self.calls.is_empty() {
            Outcome::Calls
        } else if !self.malformed.is_empty() {
            Outcome::MalformedOnly
        } else if !self.stray_tags.is_empty() {
            Outcome::TagsWithoutCall
        } else {
            Outcome::NoCall
        }
    }

    /// What is outside thinking and outside calls, concatenated; malformed blocks are kept in it.
    ///
    /// `source` is the text that was parsed; with another one the result is meaningless but no panic.
    #[must_use]
    pub fn text(&self, source: &str) -> String {
        self.gather(source, |kind| matches!(kind, SegmentKind::Text | SegmentKind::Malformed(_)))
    }

    /// All thinking, concatenated, without its markers.
    #[must_use]
    pub fn thinking(&self, source: &str) -> String {
        self.gather(source, |kind| matches!(kind, SegmentKind::Thinking))
    }

    fn gather(&self, source: &str, wanted: impl Fn(SegmentKind) -> bool) -> String {
        let mut gathered = String::new();
        for segment in self.segments.iter().filter(|segment| wanted(segment.kind)) {
            gathered.push_str(segment.content.of(source));
        }
        gathered
    }
}
