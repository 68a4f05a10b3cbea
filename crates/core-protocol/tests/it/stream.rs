//! The incremental parser: any split gives what the whole text gives, and what it tells adds up.

use core_protocol::{
    DialectName, MAX_MALFORMED, ParseEvent, ParseOptions, ParsedReply, StreamError, StreamParser, ToolCall,
    parse_reply,
};

/// What the events of a stream come to for somebody who only listens.
#[derive(Default)]
struct Listener {
    text: String,
    thinking: String,
    /// Text and its place in the reply, to undo it.
    calls: Vec<ToolCall>,
    malformed: usize,
    reclassified: usize,
}

/// Feeds the bytes in pieces and checks that the events agree with the result.
pub(crate) fn stream_reply(bytes: &[u8], size: usize, options: &ParseOptions<'_>) -> ParsedReply {
    stream_pieces(bytes.chunks(size.max(1)), options)
}

pub(crate) fn stream_pieces<'b>(
    pieces: impl IntoIterator<Item = &'b [u8]>,
    options: &ParseOptions<'_>,
) -> ParsedReply {
    let mut listener = Listener::default();
    let mut parser = StreamParser::new(*options);
    for piece in pieces {
        parser.push(piece, |event| listener.hear(event));
    }
    let streamed = parser.finish(|event| listener.hear(event)).expect("UTF-8");
    let reply = streamed.reply;
    if listener.reclassified == 0 {
        assert_eq!(listener.text, reply.text(&streamed.text), "text told");
        assert_eq!(listener.thinking, reply.thinking(&streamed.text), "thinking told");
        assert_eq!(listener.malformed, reply.malformed.len(), "malformed blocks told");
    }
    assert_eq!(listener.calls, reply.calls, "calls told");
    reply
}

impl Listener {
    fn hear(&mut self, event: ParseEvent<'_>) {
        match event {
            ParseEvent::TextDelta(text) => self.text.push_str(text),
            ParseEvent::ThinkingDelta(text) => self.thinking.push_str(text),
            ParseEvent::Call(call) => self.calls.push(call.clone()),
            ParseEvent::Malformed(_) => self.malformed += 1,
            ParseEvent::Reclassify { from } => {
                self.reclassified += 1;
                self.calls.retain(|call| call.span.is_some_and(|span| span.start < from));
            }
        }
    }
}

fn events(pieces: &[&str], options: &ParseOptions<'_>) -> Vec<String> {
    let mut heard = Vec::new();
    let mut parser = StreamParser::new(*options);
    let mut tell = |event: ParseEvent<'_>| {
        heard.push(match event {
            ParseEvent::TextDelta(text) => format!("text {text:?}"),
            ParseEvent::ThinkingDelta(text) => format!("thinking {text:?}"),
            ParseEvent::Call(call) => format!("call {} {}", call.id, call.tool),
            ParseEvent::Malformed(block) => format!("malformed {}..{}", block.span.start, block.span.end),
            ParseEvent::Reclassify { from } => format!("reclassify {from}"),
        });
    };
    for piece in pieces {
        parser.push(piece.as_bytes(), &mut tell);
    }
    parser.finish(&mut tell).expect("UTF-8");
    heard
}

const CALL: &str = "<use_mcp_tool><server_name>s</server_name><tool_name>t</tool_name><arguments>{}</arguments></use_mcp_tool>";

#[test]
fn text_is_told_at_once_and_only_a_partial_tag_is_held_back() {
    let options = ParseOptions::new(DialectName::McpXml.dialect());
    assert_eq!(
        events(&["Hello <", "b> wor", "ld <use_mcp", "_tool is", " it"], &options),
        ["text \"Hello \"", "text \"<b> wor\"", "text \"ld \"", "text \"<use_mcp_tool is\"", "text \" it\""]
    );
}

#[test]
fn no_dialect_holds_back_more_than_its_longest_tag() {
    let text = "a < b <use_mcp_too <thin </think </argument <tool_cal <functio x {\"nam <é </use_mcp_to";
    for dialect in DialectName::ALL {
        let dialect = dialect.dialect();
        let tags =
            dialect.tags().iter().copied().chain(dialect.openers().iter().map(|opener| opener.literal));
        let longest = tags.chain(["</think>"]).map(str::len).max().unwrap_or(0);
        let mut parser = StreamParser::new(ParseOptions::new(dialect));
        let mut told = 0;
        for (at, byte) in text.bytes().enumerate() {
            parser.push(&[byte], |event| match event {
                ParseEvent::TextDelta(text) => told += text.len(),
                event => panic!("{event:?}"),
            });
            assert!(at + 1 - told < longest, "{}: {} bytes of {at} held back", dialect.name(), at + 1 - told);
        }
        parser.finish(|event| assert_eq!(event, ParseEvent::TextDelta(&text[told..]))).expect("UTF-8");
    }
}

#[test]
fn a_call_is_told_with_its_last_byte() {
    let options = ParseOptions::new(DialectName::McpXml.dialect());
    let (front, last) = CALL.split_at(CALL.len() - 1);
    assert_eq!(events(&["a ", front, last, " b"], &options), ["text \"a \"", "call call_0 t", "text \" b\""]);
}

#[test]
fn two_calls_and_text_in_one_piece() {
    let options = ParseOptions::new(DialectName::McpXml.dialect());
    assert_eq!(
        events(&[&format!("a{CALL}{CALL}b")], &options),
        ["text \"a\"", "call call_0 t", "call call_1 t", "text \"b\""]
    );
}

#[test]
fn empty_pieces_change_nothing() {
    let options = ParseOptions::new(DialectName::McpXml.dialect());
    assert_eq!(events(&["", "a", "", "", "b", ""], &options), ["text \"a\"", "text \"b\""]);
}

#[test]
fn a_late_end_of_thinking_reclassifies_once() {
    let options = ParseOptions::new(DialectName::McpXml.dialect());
    assert_eq!(
        events(&["hm ", CALL, " so</thi", "nk>answer", "</think> more"], &options),
        [
            "text \"hm \"",
            "call call_0 t",
            "text \" so\"",
            "reclassify 0",
            "text \"answer\"",
            "text \" more\""
        ]
    );
}

#[test]
fn thinking_opened_by_the_template_is_thinking_from_the_first_byte() {
    let options =
        ParseOptions { starts_in_thinking: true, ..ParseOptions::new(DialectName::McpXml.dialect()) };
    assert_eq!(events(&["hm", "</think>", "ok"], &options), ["thinking \"hm\"", "text \"ok\""]);
}

#[test]
fn a_broken_block_is_told_as_text_as_soon_as_it_is_known_to_be_broken() {
    let options = ParseOptions::new(DialectName::McpXml.dialect());
    assert_eq!(
        events(&["a <use_mcp_tool", "> is", " a tag", "</use_mcp_tool>."], &options),
        [
            "text \"a \"",
            "text \"<use_mcp_tool> is\"",
            "text \" a tag\"",
            "text \"</use_mcp_tool>\"",
            "malformed 2..40",
            "text \".\""
        ]
    );
}

#[test]
fn every_split_in_two_gives_the_same() {
    for dialect in DialectName::ALL {
        let options = ParseOptions::new(dialect.dialect());
        let text = format!(
            "é<think>ü</think>{CALL}<tool_call>{{\"name\": \"a\", \"arguments\": {{\"x\": \"</tool_call>🦀\"}}}}</tool_call>\
             <tool_call><function=f><parameter=p>\nv</parameter></function></tool_call> end"
        );
        let whole = parse_reply(&text, &options);
        for at in 0..=text.len() {
            let (front, back) = text.as_bytes().split_at(at);
            assert_eq!(stream_pieces([front, back], &options), whole, "{} split at {at}", dialect.as_str());
        }
    }
}

#[test]
fn bytes_that_are_not_utf8_are_an_error_at_the_end_only() {
    let options = ParseOptions::new(DialectName::McpXml.dialect());
    for (bytes, offset) in
        [(&b"ok \xff more"[..], 3), (b"caf\xc3", 3), (b"\xf0\x9f\xa6", 0), (b"a\xed\xa0\x80", 1)]
    {
        for size in 1..=bytes.len() {
            let mut parser = StreamParser::new(options);
            let mut told = String::new();
            for piece in bytes.chunks(size) {
                parser.push(piece, |event| {
                    if let ParseEvent::TextDelta(text) = event {
                        told.push_str(text);
                    }
                });
            }
            let error = parser.finish(|_| {}).expect_err("not UTF-8");
            let StreamError::InvalidUtf8 { offset: found, read } = &error else { panic!("{error}") };
            assert_eq!(*found, offset, "{bytes:?} in pieces of {size}");
            assert_eq!(read.text.as_bytes(), &bytes[..offset]);
            assert_eq!(told, read.text);
            assert!(error.to_string().contains("UTF-8") && error.is_retryable());
        }
    }
}

#[test]
fn what_was_read_before_bad_bytes_is_kept() {
    let mut parser = StreamParser::new(ParseOptions::new(DialectName::McpXml.dialect()));
    let bytes = [b"a ", CALL.as_bytes(), b" b \xff ", CALL.as_bytes()].concat();
    parser.push(&bytes, |_| {});
    parser.push(b"more", |event| panic!("nothing is told after bad bytes: {event:?}"));
    let StreamError::InvalidUtf8 { offset, read } = parser.finish(|_| {}).expect_err("not UTF-8") else {
        panic!("another error");
    };
    assert_eq!((offset, read.reply.calls.len()), (2 + CALL.len() + 3, 1));
    assert_eq!(read.reply.text(&read.text), "a  b ");
}

#[test]
fn text_and_bytes_may_be_mixed() {
    let options = ParseOptions::new(DialectName::McpXml.dialect());
    let text = format!("é {CALL} <use_mcp ü");
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        let (front, back) = text.split_at(at);
        let mut parser = StreamParser::new(options);
        parser.push_str(front, |_| {});
        parser.push(back.as_bytes(), |_| {});
        assert_eq!(parser.finish(|_| {}).expect("UTF-8").reply, parse_reply(&text, &options), "at {at}");
    }
    let mut parser = StreamParser::new(options);
    parser.push(b"a\xc3", |_| {});
    parser.push_str("b", |_| {});
    parser.push_str("c", |_| {});
    let error = parser.finish(|_| {}).expect_err("a character is cut");
    assert!(matches!(error, StreamError::InvalidUtf8 { offset: 1, .. }), "{error}");
}

/// Reports are bounded; what is broken beyond them is text, and calls are found all the same.
#[test]
fn only_so_many_broken_blocks_are_reported() {
    for dialect in DialectName::ALL {
        let options = ParseOptions::new(dialect.dialect());
        let opener = dialect.dialect().openers()[0].literal;
        let call =
            core_protocol::render_call(dialect.dialect(), &ToolCall::new("s", "t", Default::default()));
        let broken = format!("{opener} ").repeat(MAX_MALFORMED + 500);
        let text = format!("{broken}{call}{broken}</think>{broken}{call} end");
        let reply = parse_reply(&text, &options);
        crate::calls::assert_covers(dialect.as_str(), &text, &reply);
        assert_eq!((reply.calls.len(), reply.malformed.len()), (1, MAX_MALFORMED), "{}", dialect.as_str());
        assert_eq!(reply.text(&text), format!("{broken} end"));
        for size in [7, 1000] {
            assert_eq!(stream_reply(text.as_bytes(), size, &options), reply, "{}", dialect.as_str());
        }
    }
}
