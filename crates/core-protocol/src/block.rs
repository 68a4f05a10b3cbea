//! Reading the inside of a call: what a dialect implements, and the parts it is built from.
//!
//! Decides the contract between the scanner and a dialect. A reader is asked again and again while a
//! text grows, and keeps its place, so that the work is linear however the text is cut: what it was
//! shown before, it is shown again, with more behind it.

use nom::Parser as _;
use nom::bytes::streaming::tag;
use serde_json::{Map, Value};
use std::borrow::Cow;

use crate::arguments::{ArgumentError, ParsedArguments};
use crate::{ArgumentRepair, Span, ToolDefinition};

/// Longest language of a code fence that is read through.
const FENCE_WORD: usize = 16;

/// What a reader may look at.
#[derive(Debug, Clone, Copy)]
pub struct BlockInput<'a> {
    /// The reply from its first byte on, as far as it is there.
    pub text: &'a str,
    /// Whether nothing will follow.
    pub complete: bool,
    /// Whether a last block may lack its closing tags, if its arguments are complete and end the text.
    pub accept_unclosed: bool,
    /// The tools that can be called, where the caller told.
    pub known_tools: &'a [ToolDefinition],
}

/// What a reader found out.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockProgress {
    /// It takes more text to tell. Not allowed once [`BlockInput::complete`] is set.
    More,
    /// A call.
    Call(Box<BlockCall>),
    /// Not readable.
    Malformed(BlockFault),
}

/// A call, as a reader reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockCall {
    /// One past the last byte of the block.
    pub end: usize,
    /// The id that the model gave, if it did.
    pub id: Option<String>,
    /// The server; empty where it is not known.
    pub server: String,
    /// Where the server's name stands, where it has a place of its own.
    pub server_span: Option<Span>,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// How they were mended.
    pub repaired: Option<ArgumentRepair>,
}

/// Why a block cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockFault {
    /// The byte at which reading failed.
    pub offset: usize,
    /// From where on the text may hold other things than this block. The scanner goes on there.
    pub resume: usize,
    /// What is wrong, and what would be right.
    pub problem: Cow<'static, str>,
}

impl BlockProgress {
    /// A fault at `offset`, from which on the scanner goes on.
    pub fn fault(offset: usize, problem: impl Into<Cow<'static, str>>) -> Self {
        Self::Malformed(BlockFault { offset, resume: offset, problem: problem.into() })
    }

    /// A fault at `offset`; the scanner goes on at `resume`.
    pub fn fault_from(offset: usize, resume: usize, problem: impl Into<Cow<'static, str>>) -> Self {
        Self::Malformed(BlockFault { offset, resume, problem: problem.into() })
    }
}

/// Reads one block.
pub trait BlockReader: Send {
    /// Reads on. Called with the same text, or a longer one, until it gives something else than
    /// [`BlockProgress::More`]; must do only work that was not done in an earlier call.
    fn read(&mut self, input: &BlockInput<'_>) -> BlockProgress;
}

/// The answer of a look ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look<T> {
    /// It is there.
    Found(T),
    /// Something else is there.
    Absent,
    /// The text ends before it can be told.
    More,
}

impl BlockInput<'_> {
    /// Which of the literals stands at `at`, by its index. None may be the beginning of another.
    #[must_use]
    pub fn literal_at(&self, at: usize, literals: &[&str]) -> Look<usize> {
        let rest = self.text.get(at..).unwrap_or_default();
        let mut partial = false;
        for (index, literal) in literals.iter().enumerate() {
            match tag::<_, _, nom::error::Error<&str>>(*literal).parse(rest) {
                Ok(_) => return Look::Found(index),
                Err(nom::Err::Incomplete(_)) => partial = true,
                Err(_) => {}
            }
        }
        if partial && !self.complete { Look::More } else { Look::Absent }
    }

    /// The next position at or after `at` that holds one of the two bytes; both must be ASCII.
    pub(crate) fn find2(&self, at: usize, one: u8, other: u8) -> Option<usize> {
        let rest = self.text.as_bytes().get(at..)?;
        memchr::memchr2(one, other, rest).map(|found| at + found)
    }

    /// The next position at or after `at` that holds the ASCII byte.
    pub(crate) fn find(&self, at: usize, byte: u8) -> Option<usize> {
        let rest = self.text.as_bytes().get(at..)?;
        memchr::memchr(byte, rest).map(|found| at + found)
    }

    /// The first position at or after `at` that is not ASCII white space; the length where none is.
    #[must_use]
    pub fn skip_blank(&self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = at;
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    }

    /// A markdown code fence at `at` with its language, if any: where it ends.
    #[must_use]
    pub fn fence_at(&self, at: usize) -> Look<usize> {
        match self.literal_at(at, &["```"]) {
            Look::Found(_) => {}
            Look::More => return Look::More,
            Look::Absent => return Look::Absent,
        }
        let bytes = self.text.as_bytes();
        let mut end = at + 3;
        while end < at + 3 + FENCE_WORD && bytes.get(end).is_some_and(u8::is_ascii_alphanumeric) {
            end += 1;
        }
        if self.waits_at(end) { Look::More } else { Look::Found(end) }
    }

    /// Whether the text ends at `at`, for now or for good.
    #[must_use]
    pub fn ends_at(&self, at: usize) -> bool {
        at >= self.text.len()
    }

    /// Whether the text ends at `at` and more may come.
    #[must_use]
    pub fn waits_at(&self, at: usize) -> bool {
        !self.complete && self.ends_at(at)
    }
}

/// Skips white space and remembers how far it came, so that a long run is not read twice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Blank {
    from: usize,
    upto: usize,
}

impl Blank {
    /// The first position at or after `at` that is not ASCII white space.
    pub fn skip(&mut self, input: &BlockInput<'_>, at: usize) -> usize {
        if self.from != at || self.upto < at {
            self.from = at;
            self.upto = at;
        }
        self.upto = input.skip_blank(self.upto);
        self.upto
    }
}

/// Reads arguments that stand alone between two tags, and puts a failure into words.
pub(crate) fn read_arguments(raw: &str) -> Result<ParsedArguments, String> {
    crate::arguments::parse_arguments(raw).map_err(|error: ArgumentError| error.to_string())
}
