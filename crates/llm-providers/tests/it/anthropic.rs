//! Anthropic's Messages: what goes out, and what is made of what comes in.

use std::sync::Arc;

use core_protocol::{ContentBlock, FinishReason, Message, Role, Usage};
use serde_json::{Value, json};

use crate::common::{call, client, complete, question, request, tool, tool_call, tool_result};
use crate::scripted_server::{Reply, ScriptedServer};

const CLAUDE: &str = "{provider: anthropic, model_name: claude-sonnet-4-5, api_key: sk-ant-some-key}";
const PLAIN: &str = "{provider: anthropic, model_name: claude-sonnet-4-5, api_key: sk-ant-some-key, quirks: {prompt_cache: false}}";

fn marks(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            usize::from(fields.contains_key("cache_control")) + fields.values().map(marks).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(marks).sum(),
        _ => 0,
    }
}

#[tokio::test]
async fn a_plain_request_and_its_streamed_reply() {
    let server =
        ScriptedServer::start(vec![Reply::sse_text("Forty-two 🦀.").usage_cached(120, 7, 100)]).await;
    let yaml =
        "{provider: anthropic, model_name: claude-sonnet-4-5, api_key: sk-ant-some-key, temperature: 0.3,
        top_p: 0.9, max_tokens: 700, quirks: {prompt_cache: false}}";
    let client = client(&server.root_url(), yaml);
    let (outcome, seen) = call(&client, &question()).await;
    let completion = outcome.unwrap().completion;
    assert_eq!(completion.message, Message::assistant("Forty-two 🦀."));
    assert_eq!(seen.text, "Forty-two 🦀.");
    assert_eq!(completion.finish_reason, FinishReason::Stop);
    // `input_tokens` leave cached ones out on the wire.
    assert_eq!(completion.usage, Some(Usage { input: 120, output: 7, cache_read: 100, ..Usage::default() }));

    let sent = server.requests().remove(0);
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(sent.header("x-api-key"), Some("sk-ant-some-key"));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent.header("authorization"), None);
    assert_eq!(
        sent.body,
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 700,
            "system": [{"type": "text", "text": "Be exact."}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}]}],
            "stream": true,
            "temperature": 0.3,
        })
    );
    assert_eq!(client.describe()["left_out"], json!(["top_p"]));
}

#[tokio::test]
async fn results_of_a_turn_stand_in_one_message_before_text() {
    let server = ScriptedServer::start(vec![Reply::text("done")]).await;
    let mut reply = Message::new(
        Role::Assistant,
        vec![
            ContentBlock::Thinking { text: "I see.".into(), signature: Some("c2ln".into()) },
            ContentBlock::Thinking { text: "unsigned".into(), signature: None },
            ContentBlock::RedactedThinking { data: "b3BhcXVl".into() },
            ContentBlock::text(" "),
        ],
    );
    reply.tool_calls =
        vec![tool_call("call/1", "s", "one", json!({"q": 1})), tool_call("b", "s", "two", json!({}))];
    let mut asked = request(vec![
        Message::user("q"),
        reply,
        tool_result("b", "2"),
        tool_result("call/1", "1"),
        Message::user("Go on."),
    ]);
    asked.tools = Arc::from([tool("s", "one"), tool("s", "two")]);
    complete(&client(&server.root_url(), PLAIN), &asked).await;
    let body = &server.bodies()[0];
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "q"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "I see.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "b3BhcXVl"},
                {"type": "tool_use", "id": "call_1", "name": "s-one", "input": {"q": 1}},
                {"type": "tool_use", "id": "b", "name": "s-two", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "1"}]},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "2"}]},
                {"type": "text", "text": "Go on."},
            ]},
        ])
    );
    assert_eq!(
        body["tools"][0],
        json!({"name": "s-one", "description": "Does one.",
            "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}})
    );
}

#[tokio::test]
async fn at_most_four_cache_breakpoints_are_set() {
    let server = ScriptedServer::start_with(|_| Reply::text("x")).await;
    let mut messages = Vec::new();
    for turn in 0..6 {
        messages.push(Message::user(format!("q{turn}")));
        messages.push(Message::assistant(format!("a{turn}")));
    }
    messages.push(Message::user("last"));
    let mut asked = request(messages);
    asked.tools = Arc::from([tool("s", "one"), tool("s", "two")]);
    complete(&client(&server.root_url(), CLAUDE), &asked).await;
    let body = server.bodies().remove(0);
    assert_eq!(marks(&body), 4);
    let control = json!({"type": "ephemeral"});
    assert_eq!(body["tools"][1]["cache_control"], control);
    assert_eq!(body["system"][0]["cache_control"], control);
    assert_eq!(body["messages"][12]["content"][0]["cache_control"], control);
    assert_eq!(body["messages"][10]["content"][0]["cache_control"], control);

    let hour = "{provider: anthropic, model_name: claude-sonnet-4-5, api_key: k, quirks: {cache_ttl: 1h}}";
    complete(&client(&server.root_url(), hour), &question()).await;
    let body = server.bodies().remove(1);
    assert_eq!(body["system"][0]["cache_control"], json!({"type": "ephemeral", "ttl": "1h"}));
    assert_eq!(marks(&body), 2);
}

#[tokio::test]
async fn thinking_and_calls_survive_the_round_trip() {
    let server = ScriptedServer::start(vec![
        Reply::text("Looking.").reasoning("Where?").tool_call("toolu_1", "s-one", r#"{"q":"深度"}"#),
        Reply::text("done"),
    ])
    .await;
    let client = client(&server.root_url(), PLAIN);
    let mut asked = question();
    asked.tools = Arc::from([tool("s", "one")]);
    let (outcome, seen) = call(&client, &asked).await;
    let completion = outcome.unwrap().completion;
    assert_eq!(seen.thinking, "Where?");
    assert_eq!(completion.finish_reason, FinishReason::ToolCalls);
    assert_eq!(
        completion.message.content,
        [
            ContentBlock::Thinking { text: "Where?".into(), signature: Some("c2lnbmF0dXJl".into()) },
            ContentBlock::text("Looking."),
        ]
    );
    assert_eq!(completion.message.tool_calls[0].arguments["q"], json!("深度"));

    asked.messages.push(Arc::new(completion.message));
    asked.messages.push(Arc::new(tool_result("toolu_1", "r")));
    complete(&client, &asked).await;
    assert_eq!(
        server.bodies()[1]["messages"][1]["content"][0],
        json!({"type": "thinking", "thinking": "Where?", "signature": "c2lnbmF0dXJl"})
    );
}

#[tokio::test]
async fn with_thinking_on_no_sampling_parameter_is_sent() {
    let server = ScriptedServer::start(vec![Reply::text("x")]).await;
    let yaml = "{provider: anthropic, model_name: claude-sonnet-4-5, api_key: k, temperature: 0.3, top_k: 5,
        extra_body: {thinking: {type: enabled, budget_tokens: 2000}}}";
    let client = client(&server.root_url(), yaml);
    assert!(!client.capabilities().assistant_prefix);
    complete(&client, &question()).await;
    let body = &server.bodies()[0];
    assert_eq!(body["thinking"]["budget_tokens"], json!(2000));
    assert!(body.get("temperature").is_none() && body.get("top_k").is_none());
}

#[tokio::test]
async fn a_prefix_stands_last_without_blanks_at_its_end() {
    let server = ScriptedServer::start(vec![Reply::text("x")]).await;
    let mut asked = request(vec![Message::user("Sum up."), Message::assistant("It was \n")]);
    asked.continue_final_message = true;
    complete(&client(&server.root_url(), PLAIN), &asked).await;
    assert_eq!(
        server.bodies()[0]["messages"][1],
        json!({"role": "assistant", "content": [{"type": "text", "text": "It was"}]})
    );
}

#[tokio::test]
async fn stop_reasons_are_open() {
    let check = |word: &'static str, expected: FinishReason| async move {
        let server = ScriptedServer::start_with(move |_| Reply::text("x").finish(word)).await;
        let yaml =
            "{provider: anthropic, model_name: claude-sonnet-4-5, api_key: k, retries: {max_tries: 1}}";
        let completion = complete(&client(&server.root_url(), yaml), &question()).await.completion;
        assert_eq!(completion.finish_reason, expected, "{word}");
    };
    check("end_turn", FinishReason::Stop).await;
    check("stop_sequence", FinishReason::Stop).await;
    check("max_tokens", FinishReason::Length).await;
    check("model_context_window_exceeded", FinishReason::Length).await;
    check("refusal", FinishReason::Refusal).await;
    check("pause_turn", FinishReason::Other("pause_turn".into())).await;
    check("tool_use", FinishReason::Stop).await;
}

#[tokio::test]
async fn a_reply_that_is_not_streamed_is_understood() {
    let reply = Reply::json_text("Yes.").reasoning("Hm.").tool_call("t", "s-one", r#"{"q":1}"#).usage(9, 2);
    let server = ScriptedServer::start(vec![reply]).await;
    let completion = complete(&client(&server.root_url(), CLAUDE), &question()).await.completion;
    assert_eq!(completion.message.joined_text(), "Yes.");
    assert_eq!(completion.message.joined_thinking(), "Hm.");
    assert_eq!(completion.message.tool_calls[0].arguments["q"], json!(1));
    assert_eq!(completion.usage.unwrap().input, 9);
}

#[tokio::test]
async fn overload_after_a_good_status_is_tried_again() {
    let overloaded =
        || json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let start = json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}});
    let text =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "half"}});
    let server = ScriptedServer::start(vec![
        Reply::status(529).body(overloaded().to_string()),
        Reply::events(&[overloaded()]),
        Reply::events(&[start.clone(), text, overloaded()]),
        Reply::text("whole"),
    ])
    .await;
    let (outcome, seen) = call(&client(&server.root_url(), CLAUDE), &question()).await;
    let outcome = outcome.unwrap();
    assert_eq!(seen.retries, ["overloaded", "overloaded", "overloaded"]);
    assert_eq!((outcome.retries, seen.text.as_str()), (3, "whole"));
    assert_eq!(outcome.completion.message, Message::assistant("whole"));
}

#[tokio::test]
async fn events_of_later_versions_are_passed_over() {
    let server = ScriptedServer::start(vec![Reply::events(&[
        json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "x"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "x": 1}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "s-one", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}}),
        json!({"type": "something_new"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}}),
        json!({"type": "message_stop"}),
    ])])
    .await;
    let completion = complete(&client(&server.root_url(), CLAUDE), &question()).await.completion;
    assert_eq!(completion.message.tool_calls.len(), 1);
    assert!(completion.message.tool_calls[0].arguments.is_empty());
    assert_eq!(completion.usage.unwrap().output, 4);
}
