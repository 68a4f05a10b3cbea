//! The core of both parsers: goes through a text once and cuts it into text, thinking and calls.
//!
//! Decides what is thinking, where blocks are looked for, and how reading goes on after a broken one.
//! What stands inside a block is left to the dialect. The scanner keeps its place: the whole-text parser
//! shows it everything at once, the incremental one shows it a growing text, and since every decision
//! waits until no later byte could change it, both come to the same result.

use std::borrow::Cow;

use crate::block::{BlockCall, BlockFault, BlockInput, BlockProgress, BlockReader};
use crate::place::{Lines, excerpt};
use crate::tag_table::{At, THINK_CLOSE, THINK_OPEN, TagKind, TagTable};
use crate::{
    MAX_MALFORMED, MalformedBlock, Opener, ParseEvent, ParseOptions, ParsedReply, Segment, SegmentKind, Span,
    StrayTag, ToolCall,
};

/// What was read in vain is read again only up to this many bytes more than four times the length of
/// what was read, or else texts could be made whose every block is read to the end of the text.
const REREAD_ALLOWANCE: usize = 64 * 1024;

enum State {
    Text,
    Thinking,
    Block {
        start: usize,
        opener: Opener,
        reader: Box<dyn BlockReader>,
    },
    /// After a broken block: its own closer, or anything that begins something new, is looked for.
    Skip {
        start: usize,
        opener: Opener,
        fault: BlockFault,
    },
}

/// Where to send what is found.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(ParseEvent<'_>);

pub(crate) struct Scanner<'o> {
    options: ParseOptions<'o>,
    table: TagTable,
    state: State,
    /// From where on is still to be read.
    at: usize,
    /// Where the segment begins that is being read.
    segment_start: usize,
    /// Where its content begins.
    content_start: usize,
    /// Up to where deltas were sent.
    told: usize,
    reply: ParsedReply,
    /// Whether there was thinking, or is by the options.
    saw_thinking: bool,
    /// `<think>` markers inside thinking, each of which may have its own closer.
    unmatched: usize,
    /// Where the last thinking ended.
    thinking_end: usize,
    /// Bytes read for bare blocks that were none.
    bare_waste: usize,
    /// Bytes read for broken blocks, and then once more.
    reread: usize,
    lines: Lines,
}

impl<'o> Scanner<'o> {
    pub(crate) fn new(options: ParseOptions<'o>) -> Self {
        let thinking = options.starts_in_thinking;
        Self {
            table: TagTable::new(options.dialect),
            options,
            state: if thinking { State::Thinking } else { State::Text },
            at: 0,
            segment_start: 0,
            content_start: 0,
            told: 0,
            reply: ParsedReply::default(),
            saw_thinking: thinking,
            unmatched: 0,
            thinking_end: 0,
            bare_waste: 0,
            reread: 0,
            lines: Lines::default(),
        }
    }

    /// Reads as far as can be told. With `complete`, to the end; afterwards only [`Self::finish`] is left.
    pub(crate) fn advance(&mut self, text: &str, complete: bool, sink: Sink<'_>) {
        while self.step(text, complete, sink) {}
        if complete {
            self.end(text, sink);
        }
    }

    /// Passes over a piece that is about to be appended to a text of `length` bytes, if nothing is held
    /// back and no tag can begin in it. Else false, and it must be read.
    pub(crate) fn skim(&mut self, length: usize, piece: &str, sink: Sink<'_>) -> bool {
        let is_thinking = match self.state {
            State::Text => false,
            State::Thinking => true,
            State::Block { .. } | State::Skip { .. } => return false,
        };
        if self.told < length || self.at < length || piece.is_empty() {
            return false;
        }
        let found = if is_thinking {
            memchr::memchr(b'<', piece.as_bytes())
        } else {
            self.table.first_in(piece.as_bytes())
        };
        if found.is_some() {
            return false;
        }
        self.at = length + piece.len();
        self.told = self.at;
        sink(if is_thinking { ParseEvent::ThinkingDelta(piece) } else { ParseEvent::TextDelta(piece) });
        true
    }

    pub(crate) fn finish(self) -> ParsedReply {
        self.reply
    }

    /// One step; false where more text is needed.
    fn step(&mut self, text: &str, complete: bool, sink: Sink<'_>) -> bool {
        match &mut self.state {
            State::Block { reader, .. } => {
                let input = BlockInput {
                    text,
                    complete,
                    accept_unclosed: self.options.accept_unclosed_at_end,
                    known_tools: self.options.known_tools,
                };
                match reader.read(&input) {
                    BlockProgress::More if !complete => false,
                    progress => {
                        self.after_read(text, progress, sink);
                        true
                    }
                }
            }
            State::Thinking => self.thinking(text, complete, sink),
            State::Text | State::Skip { .. } => self.plain(text, complete, sink),
        }
    }

    /// The next tag in text or in a broken block.
    fn plain(&mut self, text: &str, complete: bool, sink: Sink<'_>) -> bool {
        let Some(found) = self.table.next(text, self.at) else {
            self.at = text.len();
            self.tell(text, self.at, sink);
            return false;
        };
        let (kind, literal) = match self.table.look(text, found) {
            At::Tag { kind, literal } => (kind, literal),
            At::Partial if !complete => {
                self.at = found;
                self.tell(text, found, sink);
                return false;
            }
            At::Partial | At::Nothing => {
                self.at = found + 1;
                return true;
            }
        };
        let after = found + literal.len();
        if let State::Skip { opener, .. } = &self.state {
            let is_own_closer = literal == opener.closer;
            let is_inside =
                matches!(kind, TagKind::Stray | TagKind::Quiet) || self.is_plain_bare(text, kind, found);
            if is_inside && !is_own_closer {
                self.at = after;
                return true;
            }
            let end = if is_own_closer { after } else { found };
            self.tell(text, end, sink);
            if let State::Skip { start, fault, .. } = std::mem::replace(&mut self.state, State::Text) {
                self.end_malformed(text, Span::new(start, end), fault, sink);
            }
            if is_own_closer {
                return true;
            }
        }
        match kind {
            TagKind::Quiet => self.at = after,
            TagKind::Stray => {
                self.reply.stray_tags.push(StrayTag { tag: Cow::Borrowed(literal), offset: found });
                self.at = after;
            }
            TagKind::Open(_) if self.is_plain_bare(text, kind, found) => self.at = after,
            TagKind::Open(index) => {
                self.tell(text, found, sink);
                let Some(opener) = self.options.dialect.openers().get(index).copied() else {
                    self.at = after;
                    return true;
                };
                let reader = self.options.dialect.reader(index, found);
                self.state = State::Block { start: found, opener, reader };
            }
            TagKind::ThinkOpen => {
                self.tell(text, found, sink);
                self.close_text(found);
                self.open_thinking(found, after);
            }
            TagKind::ThinkClose => self.lone_closer(text, found, after, sink),
        }
        true
    }

    /// The next marker inside thinking.
    fn thinking(&mut self, text: &str, complete: bool, sink: Sink<'_>) -> bool {
        let rest = text.as_bytes().get(self.at..).unwrap_or_default();
        let Some(found) = memchr::memchr(b'<', rest).map(|found| self.at + found) else {
            self.at = text.len();
            self.tell_thinking(text, self.at, sink);
            return false;
        };
        let rest = text.get(found..).unwrap_or_default();
        if rest.starts_with(THINK_CLOSE) {
            self.tell_thinking(text, found, sink);
            self.close_thinking(found, found + THINK_CLOSE.len());
            self.state = State::Text;
        } else if rest.starts_with(THINK_OPEN) {
            let after = found + THINK_OPEN.len();
            let content = Span::new(self.content_start, found);
            if self.segment_start == self.content_start
                && self.unmatched == 0
                && content.of(text).trim().is_empty()
            {
                // The template opened thinking and the model opened it once more.
                self.tell_thinking(text, found, sink);
                self.push(SegmentKind::Thinking, Span::new(self.segment_start, found), content);
                self.open_thinking(found, after);
            } else {
                self.unmatched += 1;
                self.at = after;
            }
        } else if !complete && (THINK_CLOSE.starts_with(rest) || THINK_OPEN.starts_with(rest)) {
            self.at = found;
            self.tell_thinking(text, found, sink);
            return false;
        } else {
            self.at = found + 1;
        }
        true
    }

    /// A `</think>` that no `<think>` belongs to.
    fn lone_closer(&mut self, text: &str, found: usize, after: usize, sink: Sink<'_>) {
        self.tell(text, found, sink);
        self.close_text(found);
        let from = if !self.saw_thinking {
            0
        } else if self.unmatched > 0 {
            self.unmatched -= 1;
            self.thinking_end
        } else {
            found
        };
        if from < found {
            self.reclassify(from);
            sink(ParseEvent::Reclassify { from });
        }
        self.segment_start = from;
        self.content_start = from;
        self.close_thinking(found, after);
        self.saw_thinking = true;
    }

    /// Forgets what was found from `from` on.
    fn reclassify(&mut self, from: usize) {
        let reply = &mut self.reply;
        while reply.segments.last().is_some_and(|segment| segment.span.start >= from) {
            reply.segments.pop();
        }
        while reply.calls.last().and_then(|call| call.span).is_some_and(|span| span.start >= from) {
            reply.calls.pop();
        }
        while reply.malformed.last().is_some_and(|block| block.span.start >= from) {
            reply.malformed.pop();
        }
        while reply.stray_tags.last().is_some_and(|tag| tag.offset >= from) {
            reply.stray_tags.pop();
        }
    }

    /// What a block reader found out.
    fn after_read(&mut self, text: &str, progress: BlockProgress, sink: Sink<'_>) {
        let State::Block { start, opener, .. } = &self.state else { return };
        let (start, opener) = (*start, *opener);
        let least = start + opener.literal.len();
        let fault = match progress {
            BlockProgress::More => BlockFault {
                offset: text.len(),
                resume: least,
                problem: "the text ends inside the call".into(),
            },
            BlockProgress::Call(call) if call.end > start && text.is_char_boundary(call.end) => {
                self.end_call(start, *call, sink);
                return;
            }
            BlockProgress::Call(call) => BlockFault {
                offset: start,
                resume: least,
                problem: format!("the dialect reports a call that ends at byte {}", call.end).into(),
            },
            BlockProgress::Malformed(fault) => fault,
        };
        if opener.bare {
            self.bare_waste += fault.offset.saturating_sub(start);
            self.at = least;
            self.state = State::Text;
            return;
        }
        self.reread = self.reread.saturating_add(fault.offset.saturating_sub(fault.resume));
        let is_too_much = self.reread > 4 * text.len().min(fault.offset) + REREAD_ALLOWANCE;
        let resume = if is_too_much { fault.offset.max(fault.resume) } else { fault.resume };
        let mut resume = resume.clamp(least, text.len().max(least));
        while !text.is_char_boundary(resume) && resume < text.len() {
            resume += 1;
        }
        self.at = resume;
        self.state = State::Skip { start, opener, fault };
    }

    fn end_call(&mut self, start: usize, block: BlockCall, sink: Sink<'_>) {
        self.close_text(start);
        let index = self.reply.calls.len();
        let span = Span::new(start, block.end);
        self.push(SegmentKind::Call(index), span, span);
        self.reply.calls.push(ToolCall {
            id: block.id.unwrap_or_else(|| format!("call_{index}")),
            server: block.server,
            tool: block.tool,
            arguments: block.arguments,
            span: Some(span),
            server_span: block.server_span,
            repaired: block.repaired,
            provider_data: None,
        });
        self.restart(block.end);
        if let Some(call) = self.reply.calls.last() {
            sink(ParseEvent::Call(call));
        }
    }

    fn end_malformed(&mut self, text: &str, span: Span, fault: BlockFault, sink: Sink<'_>) {
        if self.reply.malformed.len() == MAX_MALFORMED {
            self.state = State::Text;
            self.at = span.end;
            return;
        }
        self.close_text(span.start);
        let index = self.reply.malformed.len();
        self.push(SegmentKind::Malformed(index), span, span);
        let offset = fault.offset.min(text.len());
        self.reply.malformed.push(MalformedBlock {
            span,
            offset,
            line: self.lines.line_of(text, offset),
            problem: fault.problem,
            excerpt: excerpt(text, span, offset),
        });
        self.restart(span.end);
        if let Some(block) = self.reply.malformed.last() {
            sink(ParseEvent::Malformed(block));
        }
    }

    /// The end of the text.
    fn end(&mut self, text: &str, sink: Sink<'_>) {
        let end = text.len();
        match std::mem::replace(&mut self.state, State::Text) {
            State::Thinking => {
                self.tell_thinking(text, end, sink);
                self.close_thinking(end, end);
            }
            State::Skip { start, fault, .. } => {
                self.tell(text, end, sink);
                self.end_malformed(text, Span::new(start, end), fault, sink);
            }
            State::Text | State::Block { .. } => {
                self.tell(text, end, sink);
                self.close_text(end);
            }
        }
        self.restart(end);
    }

    fn restart(&mut self, at: usize) {
        self.state = State::Text;
        self.at = at;
        self.segment_start = at;
        self.content_start = at;
        self.told = at;
    }

    fn close_text(&mut self, end: usize) {
        let span = Span::new(self.segment_start, end);
        self.push(SegmentKind::Text, span, span);
        self.segment_start = end;
    }

    fn open_thinking(&mut self, start: usize, content: usize) {
        self.state = State::Thinking;
        self.saw_thinking = true;
        self.segment_start = start;
        self.content_start = content;
        self.told = content;
        self.at = content;
    }

    /// Ends thinking whose content ends at `content_end`, and its marker at `end`.
    fn close_thinking(&mut self, content_end: usize, end: usize) {
        let span = Span::new(self.segment_start, end);
        self.push(SegmentKind::Thinking, span, Span::new(self.content_start, content_end));
        self.thinking_end = end;
        self.restart(end);
    }

    fn push(&mut self, kind: SegmentKind, span: Span, content: Span) {
        if !span.is_empty() {
            self.reply.segments.push(Segment { kind, span, content });
        }
    }

    fn tell(&mut self, text: &str, upto: usize, sink: Sink<'_>) {
        let delta = Span::new(self.told, upto).of(text);
        if !delta.is_empty() {
            sink(ParseEvent::TextDelta(delta));
            self.told = upto;
        }
    }

    fn tell_thinking(&mut self, text: &str, upto: usize, sink: Sink<'_>) {
        let delta = Span::new(self.told, upto).of(text);
        if !delta.is_empty() {
            sink(ParseEvent::ThinkingDelta(delta));
            self.told = upto;
        }
    }

    /// Whether an opener that may be plain text is that: inside a line, or tried in vain too often.
    fn is_plain_bare(&self, text: &str, kind: TagKind, found: usize) -> bool {
        let TagKind::Open(index) = kind else { return false };
        let bare = self.options.dialect.openers().get(index).is_some_and(|opener| opener.bare);
        if !bare {
            return false;
        }
        if self.bare_waste > 4 * found + REREAD_ALLOWANCE {
            return true;
        }
        let before = text.get(..found).unwrap_or_default();
        let line = before.trim_end_matches([' ', '\t']);
        !(line.is_empty()
            || line.ends_with('\n')
            || self.reply.segments.last().is_some_and(|last| last.span.end == line.len()))
    }
}
