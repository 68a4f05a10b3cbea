//! Chat completions: what goes out, and what is made of what comes in.

use std::sync::Arc;

use core_protocol::{ContentBlock, FinishReason, MediaSource, Message, Role, Usage};
use llm_providers::unreadable_arguments;
use serde_json::{Value, json};

use crate::common::{call, client, complete, question, request, tool, tool_call, tool_result};
use crate::scripted_server::{Reply, ScriptedServer};

const VLLM: &str = "{provider: vllm}";
const NATIVE: &str = "{provider: vllm, tool_protocol: native}";

fn thinking(text: &str) -> ContentBlock {
    ContentBlock::Thinking { text: text.into(), signature: None }
}

#[tokio::test]
async fn a_plain_request_and_its_streamed_reply() {
    let server =
        ScriptedServer::start(vec![Reply::sse_text("Forty-two, 深度 🦀.").usage_cached(120, 7, 100)]).await;
    let client = client(
        &server.base_url(),
        "{provider: qwen, model_name: m, api_key: sk-some-key-1, temperature: 0.6, top_p: 0.95, top_k: 20, min_p: 0.0,
          repetition_penalty: 1.05, max_tokens: 500}",
    );
    let (outcome, seen) = call(&client, &question()).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.completion.message, Message::assistant("Forty-two, 深度 🦀."));
    assert_eq!(seen.text, "Forty-two, 深度 🦀.");
    assert_eq!(outcome.completion.finish_reason, FinishReason::Stop);
    assert_eq!(outcome.completion.model.as_deref(), Some("scripted"));
    assert_eq!(
        outcome.completion.usage,
        Some(Usage { input: 120, output: 7, cache_read: 100, ..Usage::default() })
    );
    assert_eq!(outcome.retries, 0);

    let sent = server.requests().remove(0);
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(sent.header("authorization"), Some("Bearer sk-some-key-1"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(
        sent.body,
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be exact."},
                {"role": "user", "content": "What is it?"},
            ],
            "max_tokens": 500,
            "stream": true,
            "stream_options": {"include_usage": true},
            "temperature": 0.6,
            "top_p": 0.95,
            "top_k": 20,
            "repetition_penalty": 1.05,
        })
    );
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let reply = || Reply::json_text("Yes.").reasoning("Hm.").usage(9, 2);
    let server = ScriptedServer::start(vec![reply(), reply()]).await;
    for yaml in [VLLM, "{provider: vllm, quirks: {stream: false}}"] {
        let (outcome, seen) = call(&client(&server.base_url(), yaml), &question()).await;
        let completion = outcome.unwrap().completion;
        assert_eq!(completion.message.content, [thinking("Hm."), ContentBlock::text("Yes.")]);
        assert_eq!(completion.usage.unwrap().input, 9);
        assert_eq!((seen.text.as_str(), seen.thinking.as_str()), ("Yes.", "Hm."));
    }
    let bodies = server.bodies();
    assert_eq!(bodies[0]["stream"], json!(true));
    assert_eq!(bodies[1]["stream"], json!(false));
    assert!(bodies[1].get("stream_options").is_none());
}

#[tokio::test]
async fn the_users_own_fields_win() {
    let server = ScriptedServer::start(vec![Reply::text("x")]).await;
    let yaml =
        "{provider: vllm, temperature: 0.2, extra_body: {temperature: 0.9, stream_options: null, seed: 7}}";
    complete(&client(&server.base_url(), yaml), &question()).await;
    let body = &server.bodies()[0];
    assert_eq!((&body["temperature"], &body["seed"]), (&json!(0.9), &json!(7)));
    assert!(body.get("stream_options").is_none());
}

#[tokio::test]
async fn a_stop_sequence_stays_in_the_text() {
    let server = ScriptedServer::start_with(|_| Reply::text("x")).await;
    let cases = [
        ("{provider: vllm, extra_body: {stop: [a]}}", Some(true)),
        ("{provider: vllm, extra_body: {stop: [a], include_stop_str_in_output: false}}", Some(false)),
        ("{provider: vllm}", None),
    ];
    for (yaml, expected) in cases {
        complete(&client(&server.base_url(), yaml), &question()).await;
        let sent = server.bodies().pop().unwrap();
        assert_eq!(
            sent.get("include_stop_str_in_output"),
            expected.map(|value| json!(value)).as_ref(),
            "{yaml}"
        );
    }
}

#[tokio::test]
async fn reasoning_models_get_the_names_that_they_take() {
    let server = ScriptedServer::start(vec![Reply::text("x"), Reply::text("x")]).await;
    let url = server.base_url();
    complete(
        &client(&url, "{provider: openai, model_name: o3-mini, temperature: 0.3, max_tokens: 90}"),
        &question(),
    )
    .await;
    let other = client(&url, "{provider: openai, model_name: my-own, temperature: 0.3, max_tokens: 90}");
    complete(&other, &question()).await;
    let bodies = server.bodies();
    assert_eq!(bodies[0]["max_completion_tokens"], json!(90));
    assert!(bodies[0].get("max_tokens").is_none() && bodies[0].get("temperature").is_none());
    assert_eq!(bodies[1]["max_tokens"], json!(90));
    assert_eq!(bodies[1]["temperature"], json!(0.3));
}

#[tokio::test]
async fn a_prefix_is_gone_on_with_in_each_servers_way() {
    let cases = [
        (
            "{provider: vllm}",
            json!({"continue_final_message": true, "add_generation_prompt": false}),
            json!({}),
        ),
        ("{provider: llamacpp}", json!({}), json!({})),
        ("{provider: mistral, api_key: k}", json!({}), json!({"prefix": true})),
        ("{provider: moonshot, api_key: k}", json!({}), json!({"partial": true})),
    ];
    let server = ScriptedServer::start_with(|_| Reply::text("summary")).await;
    for (yaml, in_body, in_message) in cases {
        let client = client(&server.base_url(), yaml);
        assert!(client.capabilities().assistant_prefix, "{yaml}");
        let mut asked =
            request(vec![Message::user("Sum up."), Message::assistant("<think>\nLet me.\n</think>\n")]);
        asked.continue_final_message = true;
        complete(&client, &asked).await;
        let body = server.bodies().pop().unwrap();
        let last = &body["messages"][2];
        assert_eq!(last["content"], json!("<think>\nLet me.\n</think>\n"));
        for field in ["continue_final_message", "add_generation_prompt"] {
            assert_eq!(body.get(field), in_body.get(field), "{yaml}");
        }
        for field in ["prefix", "partial"] {
            assert_eq!(last.get(field), in_message.get(field), "{yaml}");
        }
    }
    let refused = client(&server.base_url(), "{provider: ollama}");
    let mut asked = request(vec![Message::user("a"), Message::assistant("b")]);
    asked.continue_final_message = true;
    let error = call(&refused, &asked).await.0.unwrap_err();
    assert_eq!(error.kind(), "unsupported");
}

#[tokio::test]
async fn after_a_closed_think_block_all_is_text() {
    let server = ScriptedServer::start_with(|_| Reply::text("").reasoning("the whole summary")).await;
    let client = client(&server.base_url(), "{provider: sglang}");
    let mut asked = request(vec![Message::user("Sum up."), Message::assistant("<think>\n</think>\n")]);
    asked.continue_final_message = true;
    assert_eq!(complete(&client, &asked).await.completion.message, Message::assistant("the whole summary"));
    let plain = complete(&client, &question()).await.completion.message;
    assert_eq!(plain.content, [thinking("the whole summary")]);
}

#[tokio::test]
async fn a_native_conversation_goes_out_and_comes_back() {
    let server = ScriptedServer::start(vec![
        Reply::text("Looking.").tool_call("c1", "search-web_search", r#"{"q":"rust"}"#).tool_call(
            "c2",
            "tool-python-run",
            "",
        ),
    ])
    .await;
    let client = client(&server.base_url(), NATIVE);
    let mut reply = Message::assistant("");
    reply.tool_calls = vec![
        tool_call("a", "search", "web_search", json!({"q": "old"})),
        tool_call("b", "tool-python", "run", json!({})),
    ];
    let mut asked = request(vec![
        Message::user("Find it."),
        reply,
        tool_result("b", "second"),
        tool_result("a", "first"),
    ]);
    asked.tools = Arc::from([tool("search", "web_search"), tool("tool-python", "run")]);
    let completion = complete(&client, &asked).await.completion;
    assert_eq!(completion.finish_reason, FinishReason::ToolCalls);
    let calls: Vec<_> = completion
        .message
        .tool_calls
        .iter()
        .map(|call| {
            (
                call.id.as_str(),
                call.server.as_str(),
                call.tool.as_str(),
                Value::Object(call.arguments.clone()),
            )
        })
        .collect();
    assert_eq!(
        calls,
        [("c1", "search", "web_search", json!({"q": "rust"})), ("c2", "tool-python", "run", json!({}))]
    );
    let body = &server.bodies()[0];
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "Be exact."},
            {"role": "user", "content": "Find it."},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "search-web_search", "arguments": "{\"q\":\"old\"}"}},
                {"id": "b", "type": "function", "function": {"name": "tool-python-run", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "first"},
            {"role": "tool", "tool_call_id": "b", "content": "second"},
        ])
    );
    assert_eq!(
        body["tools"][0],
        json!({"type": "function", "function": {"name": "search-web_search", "description": "Does web_search.",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}})
    );
}

#[tokio::test]
async fn thinking_goes_back_where_the_server_wants_it() {
    let server = ScriptedServer::start_with(|_| Reply::text("x")).await;
    let mut with_call = Message::new(Role::Assistant, vec![thinking("why"), ContentBlock::text("so")]);
    with_call.tool_calls = vec![tool_call("a", "s", "t", json!({}))];
    let without_call = Message::new(Role::Assistant, vec![thinking("because"), ContentBlock::text("done")]);
    let messages =
        vec![Message::user("q"), with_call, tool_result("a", "r"), without_call, Message::user("and?")];
    let cases = [
        ("{provider: vllm}", "reasoning_content", None, None),
        ("{provider: deepseek, api_key: k}", "reasoning_content", Some("why"), None),
        ("{provider: moonshot, api_key: k}", "reasoning_content", Some("why"), Some("because")),
        ("{provider: openrouter, api_key: k}", "reasoning", Some("why"), None),
        (
            "{provider: vllm, quirks: {send_reasoning: always, reasoning_field: reasoning}}",
            "reasoning",
            Some("why"),
            Some("because"),
        ),
        (
            "{provider: deepseek, api_key: k, quirks: {send_reasoning: never}}",
            "reasoning_content",
            None,
            None,
        ),
    ];
    for (yaml, field, first, second) in cases {
        complete(&client(&server.base_url(), yaml), &request(messages.clone())).await;
        let sent = server.bodies().pop().unwrap();
        assert_eq!(sent["messages"][2].get(field), first.map(|text| json!(text)).as_ref(), "{yaml}");
        assert_eq!(sent["messages"][4].get(field), second.map(|text| json!(text)).as_ref(), "{yaml}");
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
    complete(&client(&server.base_url(), "{provider: openai, model_name: gpt-4o, api_key: k}"), &asked).await;
    complete(&client(&server.base_url(), VLLM), &asked).await;
    let bodies = server.bodies();
    let part = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    assert_eq!(bodies[0]["messages"][1]["content"], json!([{"type": "text", "text": "What is this?"}, part]));
    assert_eq!(bodies[0]["messages"][3]["content"], json!("taken\n[shown in the next message]"));
    assert_eq!(bodies[0]["messages"][4], json!({"role": "user", "content": [part]}));
    assert_eq!(
        bodies[1]["messages"][1]["content"],
        json!("What is this?\n[image: this model does not take pictures]")
    );
}

/// Sent where a server is known to take them, named elsewhere.
#[tokio::test]
async fn videos_are_parts_of_their_own() {
    let server = ScriptedServer::start_with(|_| Reply::text("a cat")).await;
    let video = ContentBlock::Video {
        source: MediaSource::Base64 { media_type: "video/mp4".into(), data: "AAAA".into() },
    };
    let asked =
        request(vec![Message::new(Role::User, vec![video, ContentBlock::text("What happens in it?")])]);
    let part = json!({"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}});
    let text = json!({"type": "text", "text": "What happens in it?"});
    for (yaml, takes) in [
        ("{provider: vllm, model_name: Qwen/Qwen2.5-VL-7B-Instruct}", true),
        ("{provider: openai_compatible, model_name: m, quirks: {video: true}}", true),
        ("{provider: openai_compatible, model_name: m}", false),
        ("{provider: openai, model_name: gpt-4o, api_key: k}", false),
    ] {
        let client = client(&server.base_url(), yaml);
        assert_eq!(client.capabilities().video, takes, "{yaml}");
        complete(&client, &asked).await;
        let content = server.bodies().pop().unwrap()["messages"][1]["content"].clone();
        let expected = match takes {
            true => json!([part, text]),
            false => json!("[video: this model does not take videos]\nWhat happens in it?"),
        };
        assert_eq!(content, expected, "{yaml}");
    }
}

/// What a stream of these chunks comes to.
async fn completion_of(chunks: &[Value]) -> core_protocol::Completion {
    let server = ScriptedServer::start(vec![Reply::chunks(chunks)]).await;
    complete(&client(&server.base_url(), NATIVE), &question()).await.completion
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[tokio::test]
async fn usage_is_found_wherever_it_stands() {
    let usage = json!({"prompt_tokens": 11, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3}});
    let text = delta(json!({"content": "x"}));
    let cases = [
        vec![text.clone(), finish("stop"), json!({"choices": [], "usage": usage})],
        vec![text.clone(), finish("stop"), json!({"usage": usage})],
        vec![text.clone(), json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage})],
        vec![text.clone(), json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": usage}]})],
        vec![text.clone(), finish("stop"), json!({"choices": [], "x_groq": {"usage": usage}})],
        vec![
            json!({"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage}),
        ],
    ];
    for chunks in cases {
        let found = completion_of(&chunks).await.usage;
        assert_eq!(
            found,
            Some(Usage { input: 11, output: 5, reasoning: 3, ..Usage::default() }),
            "{chunks:?}"
        );
    }
    assert_eq!(
        completion_of(&[text, json!({"choices": [], "usage": null}), finish("stop")]).await.usage,
        None
    );
}

#[tokio::test]
async fn finish_reasons_are_open_and_calls_decide() {
    let piece =
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "s-t", "arguments": "{}"}}]});
    let check = |delta_value: Value, reason: &'static str, expected: FinishReason| async move {
        let completion = completion_of(&[delta(delta_value), finish(reason)]).await;
        assert_eq!(completion.finish_reason, expected, "{reason}");
    };
    check(piece.clone(), "stop", FinishReason::ToolCalls).await;
    check(json!({"content": "x", "tool_calls": []}), "tool_calls", FinishReason::Stop).await;
    check(json!({"content": "x"}), "eos", FinishReason::Stop).await;
    check(json!({"content": "x"}), "safety", FinishReason::ContentFilter).await;
    check(json!({"content": "x"}), "something_new", FinishReason::Other("something_new".into())).await;
    check(json!({"refusal": "I cannot."}), "stop", FinishReason::Refusal).await;
}

#[tokio::test]
async fn thinking_is_read_from_either_field_and_from_parts() {
    let check = |delta_value: Value| async move {
        let completion =
            completion_of(&[delta(delta_value.clone()), delta(json!({"content": "so"})), finish("stop")])
                .await;
        assert_eq!(completion.message.content, [thinking("why"), ContentBlock::text("so")], "{delta_value}");
    };
    check(json!({"reasoning_content": "why"})).await;
    check(json!({"reasoning": "why"})).await;
    check(json!({"reasoning": "why", "reasoning_content": "why", "content": null})).await;
    check(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}]})).await;
}

#[tokio::test]
async fn calls_come_in_every_form() {
    let calls = |pieces: Vec<Value>| async move {
        let mut chunks: Vec<Value> =
            pieces.into_iter().map(|piece| delta(json!({"tool_calls": [piece]}))).collect();
        chunks.push(finish("stop"));
        completion_of(&chunks).await.message.tool_calls
    };
    // Index always 0, different ids.
    let found = calls(vec![
        json!({"index": 0, "id": "a", "function": {"name": "s-x", "arguments": "{\"n\":1}"}}),
        json!({"index": 0, "id": "b", "function": {"name": "s-y", "arguments": "{\"n\":2}"}}),
    ])
    .await;
    assert_eq!(found.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>(), ["x", "y"]);
    // An object, no id, no index: ids are made, and differ.
    let found = calls(vec![
        json!({"function": {"name": "s-x", "arguments": {"n": 1}}}),
        json!({"function": {"name": "s-x", "arguments": {"n": 2}}}),
    ])
    .await;
    assert_eq!(found[0].arguments["n"], json!(1));
    assert_eq!(found[1].arguments["n"], json!(2));
    assert!(!found[0].id.is_empty() && found[0].id != found[1].id);
    // Arguments that need mending, and some that no mending helps.
    let found =
        calls(vec![json!({"id": "a", "function": {"name": "s-x", "arguments": "{'q': 'rust',}"}})]).await;
    assert_eq!(found[0].arguments["q"], json!("rust"));
    assert!(found[0].repaired.is_some());
    let found = calls(vec![json!({"id": "a", "function": {"name": "s-x", "arguments": "[1,2]"}})]).await;
    assert_eq!(unreadable_arguments(&found[0]), Some("[1,2]"));
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_not_completed() {
    let server = ScriptedServer::start_with(|_| {
        Reply::chunks(&[
            delta(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "s-t", "arguments": "{\"code\": \"rm"}}]})),
            finish("length"),
        ])
    })
    .await;
    let client =
        client(&server.base_url(), "{provider: vllm, tool_protocol: native, retries: {max_tries: 1}}");
    let completion = complete(&client, &question()).await.completion;
    assert_eq!(completion.finish_reason, FinishReason::Length);
    let call = &completion.message.tool_calls[0];
    assert!(call.arguments.is_empty());
    assert_eq!(unreadable_arguments(call), Some("{\"code\": \"rm"));
}

#[tokio::test]
async fn a_providers_own_data_comes_back_with_its_call() {
    let extra = json!({"google": {"thought_signature": "c2ln"}});
    let server = ScriptedServer::start(vec![
        Reply::chunks(&[
            delta(json!({"tool_calls": [{"id": "a", "function": {"name": "s-t", "arguments": "{}"}, "extra_content": extra}]})),
            finish("stop"),
        ]),
        Reply::text("done"),
    ])
    .await;
    let client = client(&server.base_url(), "{provider: gemini, api_key: k, tool_protocol: native}");
    let reply = complete(&client, &question()).await.completion.message;
    complete(&client, &request(vec![Message::user("q"), reply, tool_result("a", "r")])).await;
    assert_eq!(server.bodies()[1]["messages"][2]["tool_calls"][0]["extra_content"], extra);
}

#[tokio::test]
async fn a_history_without_a_result_is_mended() {
    let server = ScriptedServer::start(vec![Reply::text("x")]).await;
    let mut reply = Message::assistant("");
    reply.tool_calls = vec![tool_call("a", "s", "t", json!({}))];
    let asked =
        request(vec![tool_result("lost", "stray"), Message::user("q"), reply, Message::user("go on")]);
    complete(&client(&server.base_url(), NATIVE), &asked).await;
    let roles: Vec<_> = server.bodies()[0]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(roles, ["system", "user", "user", "assistant", "tool", "user"]);
}

#[tokio::test]
async fn odd_events_and_line_ends_do_not_disturb() {
    let body = ": OPENROUTER PROCESSING\r\n\r\ndata: : keepalive\r\n\r\ndata:\r\n\r\n\
        data:{\"choices\":[{\"delta\":{\"content\":\"深度\"}}]}\r\n\r\n: again\r\n\r\n\
        data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n";
    for (body, piece) in
        [(body.to_owned(), 1), (body.replace("\r\n", "\r"), 3), (body.replace("\r\n", "\n"), 1)]
    {
        let reply = Reply::raw(body).pieces(piece, std::time::Duration::ZERO);
        let server = ScriptedServer::start(vec![reply]).await;
        let outcome = complete(&client(&server.base_url(), VLLM), &question()).await;
        assert_eq!(outcome.completion.message, Message::assistant("深度"));
        assert_eq!(outcome.retries, 0);
    }
}

#[tokio::test]
async fn a_stream_may_end_without_its_last_marks() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    let stop = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    for body in [
        format!("{text}{stop}"),
        format!("{text}data: [DONE]\n\n"),
        format!("{text}{stop}").trim_end().to_owned(),
    ] {
        let server = ScriptedServer::start(vec![Reply::raw(body)]).await;
        let outcome = complete(&client(&server.base_url(), VLLM), &question()).await;
        assert_eq!(outcome.completion.message, Message::assistant("x"));
    }
    // The connection stays open after [DONE]: nothing more is waited for.
    let body = format!("{text}{stop}data: [DONE]\n\n");
    let server = ScriptedServer::start(vec![Reply::raw(format!("{body}more")).stall_after(body.len())]).await;
    assert_eq!(complete(&client(&server.base_url(), VLLM), &question()).await.retries, 0);
}
