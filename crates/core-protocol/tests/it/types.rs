//! The JSON of the shared types: what is stored today is read tomorrow.

use core_protocol::{
    ArgumentRepair, Completion, ContentBlock, FinishReason, MediaSource, Message, Role, Span, ToolCall,
    ToolDefinition, ToolResult, Usage,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::fmt::Debug;

#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T, written: Value) {
    assert_eq!(serde_json::to_value(&value).expect("JSON"), written);
    assert_eq!(serde_json::from_value::<T>(written).expect("readable"), value);
}

#[test]
fn messages() {
    for (role, name) in
        [(Role::System, "system"), (Role::User, "user"), (Role::Assistant, "assistant"), (Role::Tool, "tool")]
    {
        check(role, json!(name));
    }
    check(Message::user("hi"), json!({"role": "user", "content": [{"type": "text", "text": "hi"}]}));
    let call = ToolCall { id: "c1".into(), ..ToolCall::new("s", "t", Map::new()) };
    check(
        Message { tool_calls: vec![call], ..Message::assistant("so") },
        json!({"role": "assistant", "content": [{"type": "text", "text": "so"}],
            "tool_calls": [{"id": "c1", "server": "s", "tool": "t", "arguments": {}}]}),
    );
    check(
        Message {
            tool_call_id: Some("c1".into()),
            name: Some("s-t".into()),
            ..Message::text(Role::Tool, "42")
        },
        json!({"role": "tool", "content": [{"type": "text", "text": "42"}], "tool_call_id": "c1", "name": "s-t"}),
    );
}

#[test]
fn blocks() {
    let base64 = MediaSource::Base64 { media_type: "image/png".into(), data: "AA==".into() };
    let url = MediaSource::Url { url: "https://example.org/a.wav".into() };
    for (block, written) in [
        (ContentBlock::text("a"), json!({"type": "text", "text": "a"})),
        (
            ContentBlock::Image { source: base64 },
            json!({"type": "image", "source": {"kind": "base64", "media_type": "image/png", "data": "AA=="}}),
        ),
        (
            ContentBlock::Audio { source: url },
            json!({"type": "audio", "source": {"kind": "url", "url": "https://example.org/a.wav"}}),
        ),
        (
            ContentBlock::File { uri: "a.pdf".into(), media_type: None },
            json!({"type": "file", "uri": "a.pdf"}),
        ),
        (
            ContentBlock::Thinking { text: "hm".into(), signature: None },
            json!({"type": "thinking", "text": "hm"}),
        ),
        (
            ContentBlock::Thinking { text: String::new(), signature: Some("sig".into()) },
            json!({"type": "thinking", "text": "", "signature": "sig"}),
        ),
        (
            ContentBlock::RedactedThinking { data: "xyz".into() },
            json!({"type": "redacted_thinking", "data": "xyz"}),
        ),
    ] {
        check(block, written);
    }
}

#[test]
fn calls_results_and_definitions() {
    let call = ToolCall {
        id: "call_0".into(),
        span: Some(Span::new(3, 9)),
        server_span: Some(Span::new(4, 5)),
        repaired: Some(ArgumentRepair::Json5),
        provider_data: Some(json!({"signature": "x"})),
        ..ToolCall::new("s", "t", Map::from_iter([("a".to_owned(), json!(1))]))
    };
    check(
        call,
        json!({"id": "call_0", "server": "s", "tool": "t", "arguments": {"a": 1},
            "span": {"start": 3, "end": 9}, "server_span": {"start": 4, "end": 5},
            "repaired": "json5", "provider_data": {"signature": "x"}}),
    );
    check(ToolResult::error("no"), json!({"content": [{"type": "text", "text": "no"}], "is_error": true}));
    let read: ToolResult = serde_json::from_value(json!({"content": []})).expect("readable");
    assert!(!read.is_error, "success is the default");
    check(
        ToolDefinition {
            server: "s".into(),
            name: "t".into(),
            description: "Does it.".into(),
            input_schema: json!({"type": "object"}),
        },
        json!({"server": "s", "name": "t", "description": "Does it.", "input_schema": {"type": "object"}}),
    );
}

#[test]
fn completions() {
    for (reason, name) in [
        (FinishReason::Stop, "stop"),
        (FinishReason::Length, "length"),
        (FinishReason::ToolCalls, "tool_calls"),
        (FinishReason::ContentFilter, "content_filter"),
        (FinishReason::Refusal, "refusal"),
        (FinishReason::Other("eos".into()), "eos"),
        (FinishReason::Other(String::new()), ""),
    ] {
        check(reason, json!(name));
    }
    let usage = Usage { input: 10, output: 5, cache_read: 3, cache_write: 2, reasoning: 1 };
    check(usage, json!({"input": 10, "output": 5, "cache_read": 3, "cache_write": 2, "reasoning": 1}));
    let read: Usage = serde_json::from_value(json!({"input": 1, "output": 2})).expect("readable");
    assert_eq!(read, Usage { input: 1, output: 2, ..Usage::default() });
    let mut sum = usage;
    sum += Usage { input: u64::MAX, ..read };
    assert_eq!((sum.input, sum.output), (u64::MAX, 7), "sums stop at the largest number");
    check(
        Completion {
            message: Message::assistant("a"),
            finish_reason: FinishReason::Stop,
            usage: None,
            model: Some("m".into()),
        },
        json!({"message": {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
            "finish_reason": "stop", "model": "m"}),
    );
}
