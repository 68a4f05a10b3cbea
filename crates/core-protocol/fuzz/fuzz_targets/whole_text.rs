//! Any text in any dialect: no panic, segments without gaps, positions that are right, calls that
//! survive being written in every dialect, and time that grows with the length.
#![no_main]

use core_protocol::{
    DialectName, ParseOptions, ParsedReply, SegmentKind, ToolCall, ToolDefinition, boxed_answer_of_reply,
    correct_server_names, failure_summary_text, parse_reply, render_call,
};
use core_protocol_fuzz::{assert_linear, choice_and_text, known_tools};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = choice_and_text(data) else { return };
    let tools = known_tools();
    let options = choice.options(&tools);
    if choice.wants_growth() {
        assert_linear(text, |text| drop(parse_reply(text, &options)));
        return;
    }
    let reply = parse_reply(text, &options);
    check_positions(text, &reply);
    for call in &reply.calls {
        for dialect in DialectName::ALL {
            check_written_again(call, dialect);
        }
    }
    let same: Vec<_> = reply.calls.iter().map(|call| Some(call.server.clone())).collect();
    assert_eq!(correct_server_names(text, &reply, &same), text);
    let summary = failure_summary_text(text, &options);
    assert_eq!(summary.trim(), summary);
    let _ = boxed_answer_of_reply(text, &reply);
});

fn check_positions(text: &str, reply: &ParsedReply) {
    let mut at = 0;
    let (mut calls, mut malformed) = (0, 0);
    for segment in &reply.segments {
        assert_eq!(segment.span.start, at);
        assert!(segment.span.end > at && text.is_char_boundary(segment.span.end));
        assert!(segment.content.start >= at && segment.content.end <= segment.span.end);
        assert!(text.get(segment.content.start..segment.content.end).is_some());
        at = segment.span.end;
        match segment.kind {
            SegmentKind::Call(index) => {
                assert_eq!((index, reply.calls[index].span), (calls, Some(segment.span)));
                calls += 1;
            }
            SegmentKind::Malformed(index) => {
                assert_eq!((index, reply.malformed[index].span), (malformed, segment.span));
                malformed += 1;
            }
            SegmentKind::Text | SegmentKind::Thinking => {}
        }
    }
    assert_eq!((at, calls, malformed), (text.len(), reply.calls.len(), reply.malformed.len()));
    for block in &reply.malformed {
        assert!(text.is_char_boundary(block.offset), "fault at {}", block.offset);
        assert_eq!(block.line, text[..block.offset].matches('\n').count() + 1);
        assert!(block.span.of(text).contains(&block.excerpt) && !block.problem.is_empty());
    }
    for tag in &reply.stray_tags {
        assert!(text[tag.offset..].starts_with(&*tag.tag));
    }
    for call in &reply.calls {
        if let Some(span) = call.server_span {
            assert_eq!(span.of(text), call.server);
        }
    }
}

/// The call, written in a dialect and read again where its tool is known, is the same.
fn check_written_again(call: &ToolCall, dialect: DialectName) {
    let tool = ToolDefinition {
        server: call.server.clone(),
        name: call.tool.clone(),
        description: String::new(),
        // Types are asked for, or `qwen_xml` could not tell the text `1` from the number.
        input_schema: json!({}),
    };
    let known = [tool];
    let options = ParseOptions { known_tools: &known, ..ParseOptions::new(dialect.dialect()) };
    let written = render_call(options.dialect, call);
    let again = parse_reply(&written, &options);
    assert_eq!(again.calls.len(), 1, "{} {written}\n{:?}", dialect.as_str(), again.malformed);
    let read = &again.calls[0];
    assert_eq!((&read.server, &read.tool), (&call.server, &call.tool), "{written}");
    if dialect != DialectName::QwenXml {
        assert_eq!(read.arguments, call.arguments, "{written}");
    }
}
