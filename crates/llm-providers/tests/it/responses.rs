//! OpenAI's Responses: what goes out, and what is made of what comes in.

use std::sync::Arc;

use core_protocol::{Completion, ContentBlock, FinishReason, MediaSource, Message, Role, Usage};
use llm_providers::{Capabilities, unreadable_arguments};
use serde_json::{Value, json};

use crate::common::{call, client, complete, question, request, tool, tool_call, tool_result};
use crate::scripted_server::{Reply, ScriptedServer};

const PLAIN: &str =
    "{provider: openai_responses, model_name: my-own, api_key: sk-some-key-1, retries: {max_tries: 1}}";
const THINKS: &str =
    "{provider: openai_responses, model_name: gpt-5, api_key: sk-some-key-1, tool_protocol: native}";

fn encrypted(id: &str, content: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": content, "status": null})
}

fn function_call(id: &str, call_id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments, "status": "completed"})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

fn response(status: &str, output: Value) -> Value {
    json!({"id": "resp_1", "object": "response", "status": status, "model": "m", "output": output, "error": null})
}

fn ended(output: Value) -> Value {
    json!({"type": "response.completed", "response": response("completed", output)})
}

/// What a stream of these events comes to.
async fn completion_of(events: &[Value]) -> Completion {
    let server = ScriptedServer::start(vec![Reply::events(events)]).await;
    complete(&client(&server.base_url(), PLAIN), &question()).await.completion
}

/// Ids, tools and arguments of the calls of a reply.
fn shown(completion: &Completion) -> Vec<(String, String, Value)> {
    let calls = completion.message.tool_calls.iter();
    calls.map(|call| (call.id.clone(), call.tool.clone(), Value::Object(call.arguments.clone()))).collect()
}

#[tokio::test]
async fn a_plain_request_and_its_streamed_reply() {
    let server =
        ScriptedServer::start(vec![Reply::sse_text("Forty-two, 深度 🦀.").usage_cached(120, 7, 100)]).await;
    let yaml = "{provider: openai_responses, model_name: my-own, api_key: sk-some-key-1, temperature: 0.6, top_p: 0.95,
        max_tokens: 500, extra_body: {reasoning: {effort: low}}}";
    let client = client(&server.base_url(), yaml);
    let (outcome, seen) = call(&client, &question()).await;
    let completion = outcome.unwrap().completion;
    assert_eq!(completion.message, Message::assistant("Forty-two, 深度 🦀."));
    assert_eq!(seen.text, "Forty-two, 深度 🦀.");
    assert_eq!(completion.finish_reason, FinishReason::Stop);
    assert_eq!(completion.model.as_deref(), Some("scripted"));
    assert_eq!(completion.usage, Some(Usage { input: 120, output: 7, cache_read: 100, ..Usage::default() }));

    let sent = server.requests().remove(0);
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/responses"));
    assert_eq!(sent.header("authorization"), Some("Bearer sk-some-key-1"));
    assert_eq!(
        sent.body,
        json!({
            "model": "my-own",
            "instructions": "Be exact.",
            "input": [{"role": "user", "content": "What is it?"}],
            "max_output_tokens": 500,
            "stream": true,
            "store": false,
            "temperature": 0.6,
            "top_p": 0.95,
            "reasoning": {"effort": "low"},
        })
    );
    assert_eq!(
        client.capabilities(),
        Capabilities {
            native_tools: true,
            images: true,
            context_length: Some(128_000),
            ..Capabilities::default()
        }
    );
}

#[tokio::test]
async fn a_reply_that_is_not_streamed_is_understood() {
    let reply =
        || Reply::json_text("Yes.").reasoning("Hm.").tool_call("c1", "s-one", r#"{"q":1}"#).usage(9, 2);
    let server = ScriptedServer::start(vec![reply(), reply()]).await;
    for yaml in [PLAIN, "{provider: openai_responses, model_name: m, api_key: k, quirks: {stream: false}}"] {
        let (outcome, seen) = call(&client(&server.base_url(), yaml), &question()).await;
        let completion = outcome.unwrap().completion;
        assert_eq!(completion.message.joined_text(), "Yes.");
        assert_eq!(completion.message.joined_thinking(), "Hm.");
        assert_eq!(shown(&completion), [("c1".into(), "one".into(), json!({"q": 1}))]);
        assert_eq!(completion.finish_reason, FinishReason::ToolCalls);
        assert_eq!(completion.usage.unwrap().input, 9);
        assert_eq!((seen.text.as_str(), seen.thinking.as_str()), ("Yes.", "Hm."));
    }
    assert_eq!(server.bodies()[1]["stream"], json!(false));
}

#[tokio::test]
async fn a_native_conversation_goes_out_and_comes_back() {
    let server = ScriptedServer::start(vec![
        Reply::text("Looking.")
            .reasoning("Where?")
            .tool_call("call_1", "search-web_search", r#"{"q":"rust"}"#)
            .tool_call("call_2", "tool-python-run", ""),
        Reply::text("done"),
    ])
    .await;
    let client = client(&server.base_url(), THINKS);
    let mut asked = request(vec![Message::user("Find it.")]);
    asked.tools = Arc::from([tool("search", "web_search"), tool("tool-python", "run")]);
    let (outcome, seen) = call(&client, &asked).await;
    let completion = outcome.unwrap().completion;
    assert_eq!((seen.thinking.as_str(), seen.text.as_str()), ("Where?", "Looking."));
    assert_eq!(completion.finish_reason, FinishReason::ToolCalls);
    assert_eq!(
        shown(&completion),
        [
            ("call_1".into(), "web_search".into(), json!({"q": "rust"})),
            ("call_2".into(), "run".into(), json!({})),
        ]
    );
    asked.messages.push(Arc::new(completion.message));
    asked.messages.push(Arc::new(tool_result("call_2", "second")));
    asked.messages.push(Arc::new(tool_result("call_1", "first")));
    complete(&client, &asked).await;

    let bodies = server.bodies();
    assert_eq!(
        bodies[0]["tools"][0],
        json!({"type": "function", "name": "search-web_search", "description": "Does web_search.", "strict": false,
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}})
    );
    assert_eq!(bodies[0]["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(
        bodies[1]["input"],
        json!([
            {"role": "user", "content": "Find it."},
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "b3BhcXVl",
                "summary": [{"type": "summary_text", "text": "Where?"}]},
            {"role": "assistant", "content": "Looking."},
            {"type": "function_call", "call_id": "call_1", "name": "search-web_search", "arguments": "{\"q\":\"rust\"}"},
            {"type": "function_call", "call_id": "call_2", "name": "tool-python-run", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "first"},
            {"type": "function_call_output", "call_id": "call_2", "output": "second"},
        ])
    );
}

#[tokio::test]
async fn calls_in_the_text_are_text() {
    let written = "<use_mcp_tool>\n<server_name>s</server_name>\n<tool_name>t</tool_name>\n<arguments>\n{}\n</arguments>\n</use_mcp_tool>";
    let server = ScriptedServer::start(vec![Reply::text(written), Reply::text("done")]).await;
    let client = client(&server.base_url(), PLAIN);
    let reply = complete(&client, &question()).await.completion.message;
    assert_eq!(reply, Message::assistant(written));
    complete(&client, &request(vec![Message::user("q"), reply, Message::user("the result")])).await;
    let body = &server.bodies()[1];
    assert_eq!(
        body["input"],
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": written},
            {"role": "user", "content": "the result"},
        ])
    );
    assert!(body.get("tools").is_none() && body.get("include").is_none());
}

#[tokio::test]
async fn interleaved_calls_are_told_apart() {
    let added = |index: u64, item: Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
    let piece = |id: Value, index: Value, delta: &str| json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": delta});
    let begun = |id: &str, call_id: &str, name: &str| function_call(id, call_id, name, "");
    let expected = [("a".into(), "x".into(), json!({"n": 1})), ("b".into(), "y".into(), json!({"n": 2}))];
    let end = || json!({"type": "response.completed", "response": {"status": "completed"}});
    // By id; by index, where ids are missing or other ones in every event; by id, where the index is always 0.
    for (first, second, ids, indices) in [
        ("fc_1", "fc_2", ["fc_1", "fc_2"], [Some(0), Some(1)]),
        ("fc_1", "fc_2", ["fc_1", "fc_2"], [None, None]),
        ("", "", ["", ""], [Some(0), Some(1)]),
        ("fc_1", "fc_2", ["other_1", "other_2"], [Some(0), Some(1)]),
        ("fc_1", "fc_2", ["fc_1", "fc_2"], [Some(0), Some(0)]),
    ] {
        let item_id = |at: usize| if ids[at].is_empty() { Value::Null } else { json!(ids[at]) };
        let completion = completion_of(&[
            added(0, begun(first, "a", "s-x")),
            added(if indices[1] == Some(0) { 0 } else { 1 }, begun(second, "b", "s-y")),
            piece(item_id(0), json!(indices[0]), "{\"n\""),
            piece(item_id(1), json!(indices[1]), "{\"n\":"),
            piece(item_id(0), json!(indices[0]), ":1}"),
            piece(item_id(1), json!(indices[1]), "2}"),
            end(),
        ])
        .await;
        assert_eq!(shown(&completion), expected, "{ids:?} {indices:?}");
    }
}

#[tokio::test]
async fn a_finished_item_counts_for_more_than_its_pieces() {
    let done = |index: u64, item: Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let text = |delta: &str| json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": delta});
    let call_item = function_call("fc_1", "c", "s-t", r#"{"q":"x"}"#);
    // Nothing but the end; items without pieces; pieces without items; arguments told once more at the end.
    let cases: [&[Value]; 5] = [
        &[ended(json!([message("hello"), call_item]))],
        &[done(0, message("hello")), done(1, call_item.clone()), ended(json!([]))],
        &[
            text("hel"),
            text("lo"),
            done(1, call_item.clone()),
            json!({"type": "response.done", "response": {}}),
        ],
        &[
            text("hel"),
            done(0, message("hello")),
            done(1, call_item.clone()),
            ended(json!([message("hello"), call_item])),
        ],
        &[
            text("hello"),
            json!({"type": "response.output_item.added", "output_index": 1, "item": function_call("fc_1", "c", "s-t", "")}),
            json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 1, "arguments": "{\"q\":\"x\"}"}),
            json!({"type": "response.something_new", "delta": {"x": 1}}),
            ended(json!([])),
        ],
    ];
    for events in cases {
        let server = ScriptedServer::start(vec![Reply::events(events)]).await;
        let (outcome, seen) = call(&client(&server.base_url(), PLAIN), &question()).await;
        let completion = outcome.unwrap().completion;
        assert_eq!(completion.message.joined_text(), "hello", "{events:?}");
        assert_eq!(seen.text, "hello", "{events:?}");
        assert_eq!(shown(&completion), [("c".into(), "t".into(), json!({"q": "x"}))], "{events:?}");
    }
}

#[tokio::test]
async fn items_need_no_id_and_arguments_may_be_an_object() {
    let completion = completion_of(&[ended(json!([
        {"type": "function_call", "call_id": "c", "name": "s-t", "arguments": {"q": 1}},
        {"type": "function_call", "name": "s-t", "arguments": ""},
        {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
        {"type": "web_search_call"}, null, 3,
    ]))])
    .await;
    let calls = shown(&completion);
    assert_eq!(calls[0], ("c".into(), "t".into(), json!({"q": 1})));
    assert_eq!((calls[1].0.as_str(), &calls[1].2), ("call_1_1", &json!({})));
    assert_eq!(completion.message.joined_text(), "hi");
}

#[tokio::test]
async fn a_response_ends_in_many_ways() {
    let text =
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": "x"});
    let check = |kind: &'static str, inner: Value, expected: FinishReason| {
        let text = text.clone();
        async move {
            let completion = completion_of(&[text, json!({"type": kind, "response": inner})]).await;
            assert_eq!(completion.finish_reason, expected, "{kind} {inner}");
            assert_eq!(completion.message.joined_text(), "x");
        }
    };
    let why = |reason: &str| json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
    check("response.completed", json!({"status": "completed"}), FinishReason::Stop).await;
    check("response.completed", json!({}), FinishReason::Stop).await;
    check("response.done", json!({"status": "completed"}), FinishReason::Stop).await;
    check("response.done", json!({}), FinishReason::Stop).await;
    check("response.done", why("max_output_tokens"), FinishReason::Length).await;
    check("response.incomplete", why("max_output_tokens"), FinishReason::Length).await;
    check("response.incomplete", json!({}), FinishReason::Length).await;
    check("response.incomplete", why("content_filter"), FinishReason::ContentFilter).await;
    check("response.incomplete", why("new_reason"), FinishReason::Other("new_reason".into())).await;

    let refusal = completion_of(&[
        json!({"type": "response.refusal.delta", "item_id": "msg_1", "output_index": 0, "delta": "No."}),
        ended(json!([])),
    ])
    .await;
    assert_eq!(
        (refusal.finish_reason, refusal.message.joined_text().as_str()),
        (FinishReason::Refusal, "No.")
    );
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_not_completed() {
    let cut = function_call("fc_1", "c", "s-t", "{\"code\": \"rm");
    let completion = completion_of(&[
        json!({"type": "response.incomplete", "response": response("incomplete", json!([cut]))}),
    ])
    .await;
    assert_eq!(completion.finish_reason, FinishReason::Length);
    assert_eq!(unreadable_arguments(&completion.message.tool_calls[0]), Some("{\"code\": \"rm"));
}

#[tokio::test]
async fn encrypted_thinking_comes_back_in_its_place() {
    let output = json!([
        encrypted("rs_1", "QQ=="),
        function_call("fc_1", "a", "s-t", "{}"),
        encrypted("rs_2", "Qg=="),
        function_call("fc_2", "b", "s-t", "{}"),
    ]);
    let server =
        ScriptedServer::start(vec![Reply::json(&response("completed", output)), Reply::text("done")]).await;
    let client = client(&server.base_url(), THINKS);
    let reply = complete(&client, &question()).await.completion.message;
    let stored = serde_json::to_string(&reply).unwrap();
    let reply: Message = serde_json::from_str(&stored).unwrap();
    complete(
        &client,
        &request(vec![Message::user("q"), reply, tool_result("a", "1"), tool_result("b", "2")]),
    )
    .await;
    assert_eq!(
        server.bodies()[1]["input"],
        json!([
            {"role": "user", "content": "q"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "QQ=="},
            {"type": "function_call", "call_id": "a", "name": "s-t", "arguments": "{}"},
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "Qg=="},
            {"type": "function_call", "call_id": "b", "name": "s-t", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {"type": "function_call_output", "call_id": "b", "output": "2"},
        ])
    );
}

#[tokio::test]
async fn open_thinking_goes_back_where_the_server_wants_it() {
    let server = ScriptedServer::start_with(|_| Reply::text("x")).await;
    let thought = |text: &str| ContentBlock::Thinking { text: text.into(), signature: None };
    let mut reply = Message::new(Role::Assistant, vec![thought("why")]);
    reply.tool_calls = vec![tool_call("a", "s", "t", json!({}))];
    // Another provider's proof is nothing that this one could read.
    let signed = ContentBlock::Thinking { text: String::new(), signature: Some("c2ln".into()) };
    reply.content.push(signed);
    let asked = request(vec![Message::user("q"), reply, tool_result("a", "r")]);
    let reasoning =
        json!({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "why"}]});
    for (yaml, expected) in [
        ("{provider: openai_responses, model_name: m, api_key: k}", None),
        (
            "{provider: openai_responses, model_name: m, api_key: k, quirks: {send_reasoning: with_tool_calls}}",
            Some(reasoning),
        ),
    ] {
        complete(&client(&server.base_url(), yaml), &asked).await;
        let input = server.bodies().pop().unwrap()["input"].clone();
        assert_eq!(
            input.as_array().unwrap().iter().find(|item| item["type"] == "reasoning"),
            expected.as_ref()
        );
    }
}

#[tokio::test]
async fn pictures_are_parts_where_they_are_taken_and_named_where_not() {
    let server = ScriptedServer::start_with(|_| Reply::text("a cat")).await;
    let picture = ContentBlock::Image {
        source: MediaSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() },
    };
    let mut reply = Message::assistant("");
    reply.tool_calls = vec![tool_call("a", "s", "shot", json!({}))];
    let mut result = tool_result("a", "taken");
    result.content.push(picture.clone());
    let asked = request(vec![
        Message::new(Role::User, vec![ContentBlock::text("What is this?"), picture]),
        reply,
        result,
    ]);
    complete(&client(&server.base_url(), PLAIN), &asked).await;
    let blind = "{provider: openai_responses, model_name: m, api_key: k, quirks: {images: false}}";
    complete(&client(&server.base_url(), blind), &asked).await;
    let bodies = server.bodies();
    let part = json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    assert_eq!(bodies[0]["input"][0]["content"], json!([text("What is this?"), part]));
    assert_eq!(bodies[0]["input"][2]["output"], json!([text("taken"), part]));
    assert_eq!(bodies[1]["input"][2]["output"], json!("taken\n[image: this model does not take pictures]"));
}

#[tokio::test]
async fn a_history_without_a_result_is_mended() {
    let server = ScriptedServer::start(vec![Reply::text("x")]).await;
    let mut reply = Message::assistant("");
    reply.tool_calls = vec![tool_call("a", "s", "t", json!({}))];
    let asked =
        request(vec![tool_result("lost", "stray"), Message::user("q"), reply, Message::user("go on")]);
    complete(&client(&server.base_url(), PLAIN), &asked).await;
    let kinds: Vec<String> = server.bodies()[0]["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["role"].as_str().or(item["type"].as_str()).unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["user", "user", "function_call", "function_call_output", "user"]);
}

#[tokio::test]
async fn a_server_with_a_name_of_its_own_can_be_asked_this_way() {
    let server = ScriptedServer::start(vec![Reply::text("x")]).await;
    complete(
        &client(&server.base_url(), "{provider: vllm, engine: openai_responses, temperature: 0.2}"),
        &question(),
    )
    .await;
    let sent = server.requests().remove(0);
    assert_eq!(sent.path, "/v1/responses");
    assert_eq!((&sent.body["temperature"], &sent.body["max_output_tokens"]), (&json!(0.2), &json!(4096)));
    // OpenAI's own reasoning models keep their habits, but not the other format's name for the limit.
    let server = ScriptedServer::start(vec![Reply::text("x")]).await;
    let yaml =
        "{provider: openai, engine: openai_responses, model_name: gpt-5, api_key: k, temperature: 0.2}";
    complete(&client(&server.base_url(), yaml), &question()).await;
    let body = &server.bodies()[0];
    assert!(body.get("max_completion_tokens").is_none() && body.get("temperature").is_none());
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
}

#[tokio::test]
async fn a_beginning_cannot_be_gone_on_with() {
    let mut asked = request(vec![Message::user("a"), Message::assistant("b")]);
    asked.continue_final_message = true;
    let client = client("http://127.0.0.1:9/v1", PLAIN);
    assert_eq!(call(&client, &asked).await.0.unwrap_err().kind(), "unsupported");
}
