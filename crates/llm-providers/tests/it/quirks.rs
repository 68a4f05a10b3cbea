//! What servers are known to do, each with its own test.
//!
//! | habit | where it is tested |
//! |---|---|
//! | reasoning models want `max_completion_tokens` and no temperature | `chat_completions::reasoning_models_get_the_names_that_they_take` |
//! | results are paired by call id, an item's id is left out | `responses::a_native_conversation_goes_out_and_comes_back` |
//! | an item's id may be missing | `responses::items_need_no_id_and_arguments_may_be_an_object` |
//! | responses end in four ways, one of them cut off | `responses::a_response_ends_in_many_ways` |
//! | calls of a response interleave | `responses::interleaved_calls_are_told_apart` |
//! | going on with a message needs two flags | `chat_completions::a_prefix_is_gone_on_with_in_each_servers_way` |
//! | a prefix that closes its thinking puts the text into the wrong field | `chat_completions::after_a_closed_think_block_all_is_text` |
//! | the field for thinking was renamed | `chat_completions::thinking_is_read_from_either_field_and_from_parts` |
//! | thinking without its opening tag; an answer in the field for thinking | here |
//! | calls quoted in thinking | here |
//! | finish reasons are wrong, and open-ended | `chat_completions::finish_reasons_are_open_and_calls_decide`, here |
//! | empty arguments mean none | here, for every format |
//! | index missing or always 0; arguments as an object | `chat_completions::calls_come_in_every_form`, units of `openai::calls` |
//! | usage in a chunk without choices, in the last chunk, unasked | `chat_completions::usage_is_found_wherever_it_stands` |
//! | comments and empty data keep a connection open; every line end; split characters | `chat_completions::odd_events_and_line_ends_do_not_disturb`, units of `sse` |
//! | errors inside a good stream | `fault_matrix` |
//! | overload by status and inside a stream; retried only before the first text | `anthropic::overload_after_a_good_status_is_tried_again`. After the first text it is retried as well: [`llm_providers::CallEvent::Retry`] says that what streamed so far is void |
//! | the version header; the stream ends at `message_stop` | `anthropic::a_plain_request_and_its_streamed_reply`, here |
//! | thinking keeps its signature, empty or not, and goes back unchanged; unsigned is dropped | `anthropic::results_of_a_turn_stand_in_one_message_before_text`, here |
//! | temperature and top_p exclude each other; thinking excludes both | `anthropic::a_plain_request_and_its_streamed_reply`, `anthropic::with_thinking_on_no_sampling_parameter_is_sent` |
//! | at most four cache breakpoints, tools before system before messages, the long-lived first | `anthropic::at_most_four_cache_breakpoints_are_set`: all of a request live equally long |
//! | seven stop reasons, open-ended | `anthropic::stop_reasons_are_open` |
//! | all results of a turn in one message, before text | `anthropic::results_of_a_turn_stand_in_one_message_before_text` |
//! | input arrives in fragments that are no JSON by themselves | here |
//! | a call that was cut off is not completed | here, for every format |
//! | Retry-After in seconds, as a date, in milliseconds, too long | `fault_matrix`, units of `retry_after` |
//! | thought signatures come back with their call; no index; `stop` beside calls | `chat_completions::a_providers_own_data_comes_back_with_its_call` |
//! | DeepSeek wants its thinking back, by reports that contradict each other: data | `chat_completions::thinking_goes_back_where_the_server_wants_it` |
//! | a stop sequence is taken out of the text | `chat_completions::a_stop_sequence_stays_in_the_text`, here |
//! | OpenRouter wants its `reasoning_details` back | here |

use std::sync::Arc;

use core_protocol::{
    Completion, ContentBlock, DialectName, FinishReason, Message, Outcome, ParseOptions, parse_reply,
};
use llm_providers::{Environment, LlmClient, unreadable_arguments};
use serde_json::{Value, json};

use crate::common::{call, client, complete, config, question, request, tool, tool_result};
use crate::scripted_server::{Reply, ScriptedServer};

const CHAT: &str = "{provider: vllm, tool_protocol: native, retries: {max_tries: 1}}";
const MESSAGES: &str = "{provider: anthropic, model_name: claude-sonnet-4-5, api_key: k, tool_protocol: native, retries: {max_tries: 1}}";
const RESPONSES: &str =
    "{provider: openai_responses, model_name: m, api_key: k, tool_protocol: native, retries: {max_tries: 1}}";

fn url_for(server: &ScriptedServer, yaml: &str) -> String {
    if yaml.contains("anthropic") { server.root_url() } else { server.base_url() }
}

/// What a reply comes to under a configuration.
async fn completion_of(yaml: &str, reply: Reply) -> Completion {
    let server = ScriptedServer::start(vec![reply]).await;
    complete(&client(&url_for(&server, yaml), yaml), &question()).await.completion
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[tokio::test]
async fn thinking_without_its_opening_tag_is_for_the_parser() {
    let text = "I could guess.</think>The answer is 4.";
    let completion = completion_of(CHAT, Reply::text(text)).await;
    assert_eq!(completion.message, Message::assistant(text), "the text is handed on as it came");
    let dialect = DialectName::McpXml.dialect();
    let options = ParseOptions { starts_in_thinking: true, ..ParseOptions::new(dialect) };
    assert_eq!(parse_reply(text, &options).text(text), "The answer is 4.");
}

#[tokio::test]
async fn an_answer_in_the_field_for_thinking_is_text_where_thinking_is_off() {
    let off = [
        "{chat_template_kwargs: {enable_thinking: false}}",
        "{chat_template_kwargs: {thinking: false}}",
        "{enable_thinking: false}",
        "{thinking: {type: disabled}}",
    ];
    let thinking = |text: &str| ContentBlock::Thinking { text: text.into(), signature: None };
    for (body, expected) in off
        .iter()
        .map(|body| (*body, ContentBlock::text("whole answer")))
        .chain([("{thinking: {type: enabled}}", thinking("whole answer")), ("{}", thinking("whole answer"))])
    {
        let yaml = format!("{{provider: sglang, extra_body: {body}}}");
        let reply =
            Reply::chunks(&[delta(json!({"reasoning": "whole answer", "content": null})), finish("stop")]);
        assert_eq!(completion_of(&yaml, reply).await.message.content, [expected], "{body}");
    }
}

#[tokio::test]
async fn a_call_in_thinking_is_no_call() {
    let quoted = "<use_mcp_tool>\n<server_name>s</server_name>\n<tool_name>t</tool_name>\n<arguments>\n{}\n</arguments>\n</use_mcp_tool>";
    for yaml in [CHAT, MESSAGES, RESPONSES] {
        let message = completion_of(yaml, Reply::text("Done.").reasoning(quoted)).await.message;
        assert!(message.tool_calls.is_empty());
        let text = message.joined_text();
        let parsed = parse_reply(&text, &ParseOptions::new(DialectName::McpXml.dialect()));
        assert_eq!((text.as_str(), parsed.outcome()), ("Done.", Outcome::NoCall), "{yaml}");
    }
}

#[tokio::test]
async fn a_servers_own_failure_is_no_reply() {
    for word in ["error", "abort", "network_error"] {
        let server = ScriptedServer::start(vec![Reply::text("half").finish(word)]).await;
        let error = call(&client(&server.base_url(), CHAT), &question()).await.0.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), ("server_error", true), "{word}");
    }
}

#[tokio::test]
async fn empty_arguments_are_no_arguments() {
    for yaml in [CHAT, MESSAGES, RESPONSES] {
        for arguments in ["", "{}"] {
            let reply = Reply::sse_text("").tool_call("c", "s-t", arguments);
            let calls = completion_of(yaml, reply).await.message.tool_calls;
            assert_eq!(calls.len(), 1, "{yaml}");
            assert!(calls[0].arguments.is_empty() && unreadable_arguments(&calls[0]).is_none(), "{yaml}");
        }
    }
}

#[tokio::test]
async fn a_cut_call_is_marked_and_goes_back_as_it_was() {
    let cut = "{\"code\": \"print('深";
    for (yaml, finish) in [(CHAT, "length"), (MESSAGES, "max_tokens"), (RESPONSES, "length")] {
        let reply = Reply::sse_text("").tool_call("c", "s-t", cut).finish(finish);
        let server = ScriptedServer::start(vec![reply, Reply::text("sorry")]).await;
        let client = client(&url_for(&server, yaml), yaml);
        let completion = complete(&client, &question()).await.completion;
        assert_eq!(completion.finish_reason, FinishReason::Length);
        assert_eq!(unreadable_arguments(&completion.message.tool_calls[0]), Some(cut), "{yaml}");
        complete(
            &client,
            &request(vec![Message::user("q"), completion.message, tool_result("c", "not run")]),
        )
        .await;
        let sent = server.bodies()[1].to_string();
        assert_eq!(sent.matches("unreadable_arguments").count(), 1, "{sent}");
    }
}

#[tokio::test]
async fn a_message_ends_at_its_stop_event_and_not_at_done() {
    let body = String::from_utf8(Reply::sse_text("whole").rendered(&messages_request())).unwrap();
    assert!(!body.contains("[DONE]"));
    // The connection stays open behind it.
    let reply = Reply::raw(format!("{body}more")).stall_after(body.len());
    let completion = completion_of(MESSAGES, reply).await;
    assert_eq!(completion.message, Message::assistant("whole"));
    // A gateway's `[DONE]` in the middle is none of this format's.
    let early = body.replacen("event: content_block_stop", "data: [DONE]\n\nevent: content_block_stop", 1);
    assert_eq!(completion_of(MESSAGES, Reply::raw(early)).await.message, Message::assistant("whole"));
}

fn messages_request() -> crate::scripted_server::Request {
    crate::scripted_server::Request {
        method: "POST".into(),
        path: "/v1/messages".into(),
        headers: Vec::new(),
        body: Value::Null,
        at: std::time::Instant::now(),
        connection: 0,
    }
}

#[tokio::test]
async fn a_signature_without_text_is_kept_and_goes_back_unchanged() {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let piece =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let reply = Reply::events(&[
        json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        piece(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        piece(0, json!({"type": "signature_delta", "signature": "bmF0dXJl"})),
        start(1, json!({"type": "thinking", "thinking": ""})),
        piece(1, json!({"type": "thinking_delta", "thinking": "unsigned"})),
        start(2, json!({"type": "thinking", "thinking": ""})),
        start(3, json!({"type": "tool_use", "id": "t", "name": "s-t", "input": {}})),
        piece(3, json!({"type": "input_json_delta", "partial_json": "{\"q\": \"de"})),
        piece(3, json!({"type": "input_json_delta", "partial_json": ""})),
        piece(3, json!({"type": "input_json_delta", "partial_json": "ep\", \"n\": [1"})),
        piece(3, json!({"type": "input_json_delta", "partial_json": ", 2]}"})),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}}),
        json!({"type": "message_stop"}),
    ]);
    let server = ScriptedServer::start(vec![reply, Reply::text("done")]).await;
    let client = client(&server.root_url(), MESSAGES);
    let message = complete(&client, &question()).await.completion.message;
    assert_eq!(
        message.content,
        [
            ContentBlock::Thinking { text: String::new(), signature: Some("c2lnbmF0dXJl".into()) },
            ContentBlock::Thinking { text: "unsigned".into(), signature: None },
        ]
    );
    assert_eq!(Value::Object(message.tool_calls[0].arguments.clone()), json!({"q": "deep", "n": [1, 2]}));
    complete(&client, &request(vec![Message::user("q"), message, tool_result("t", "r")])).await;
    assert_eq!(
        server.bodies()[1]["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "", "signature": "c2lnbmF0dXJl"},
            {"type": "tool_use", "id": "t", "name": "s-t", "input": {"q": "deep", "n": [1, 2]}},
        ])
    );
}

#[tokio::test]
async fn reasoning_details_come_back_exactly_as_they_came() {
    let entries = json!([
        {"type": "reasoning.text", "text": "I see.", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "rs_1", "index": 1},
    ]);
    let piece = |details: Value| delta(json!({"reasoning": null, "reasoning_details": details}));
    let call =
        json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "s-t", "arguments": "{}"}}]});
    let streamed = Reply::chunks(&[
        piece(json!([{"type": "reasoning.text", "text": "I ", "format": "anthropic-claude-v1", "index": 0}])),
        piece(json!([{"type": "reasoning.text", "text": "see.", "index": 0}])),
        piece(json!([{"type": "reasoning.text", "signature": "c2ln", "index": 0}])),
        piece(json!([{"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "rs_1", "index": 1}])),
        delta(call.clone()),
        finish("tool_calls"),
    ]);
    let mut message = call.clone();
    message["reasoning_details"] = entries.clone();
    let whole = Reply::json(&json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}));
    for reply in [streamed, whole] {
        let server =
            ScriptedServer::start(vec![reply.clone(), Reply::text("done"), reply, Reply::text("done")]).await;
        let client_of = |yaml: &str| client(&server.base_url(), yaml);
        let openrouter = client_of("{provider: openrouter, api_key: k, tool_protocol: native}");
        let mut history = vec![Arc::new(Message::user("q"))];
        let (outcome, seen) = call_once(&openrouter, &history).await;
        assert_eq!(seen, "I see.");
        let kept: Message = serde_json::from_value(serde_json::to_value(&outcome.message).unwrap()).unwrap();
        history.extend([Arc::new(kept), Arc::new(tool_result("c", "r"))]);
        call_once(&openrouter, &history).await;
        let sent = server.bodies().pop().unwrap()["messages"][1].clone();
        assert_eq!((&sent["reasoning_details"], sent.get("reasoning")), (&entries, None));
        // Nobody else is told: the field is OpenRouter's.
        let elsewhere = client_of("{provider: deepseek, api_key: k, tool_protocol: native}");
        call_once(&elsewhere, &history).await;
        let sent = server.bodies().pop().unwrap()["messages"][1].clone();
        assert_eq!((sent.get("reasoning_details"), &sent["reasoning_content"]), (None, &json!("I see.")));
    }
}

async fn call_once(client: &LlmClient, history: &[Arc<Message>]) -> (Completion, String) {
    let asked = llm_providers::ChatRequest::new("", history.to_vec());
    let (outcome, seen) = call(client, &asked).await;
    (outcome.unwrap().completion, seen.thinking)
}

const OPEN_CALL: &str = "I look.\n<use_mcp_tool>\n<server_name>s</server_name>\n<tool_name>t</tool_name>\n<arguments>\n{\"q\": 1}\n</arguments>\n";

#[tokio::test]
async fn a_closing_tag_that_ended_the_reply_is_put_back() {
    let whole = format!("{OPEN_CALL}</use_mcp_tool>");
    let vllm_end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": "</use_mcp_tool>"}]});
    let anthropic_end = |text: &str| {
        Reply::json(&json!({"type": "message", "model": "m", "content": [{"type": "text", "text": text}],
            "stop_reason": "stop_sequence", "stop_sequence": "</use_mcp_tool>"}))
    };
    let chat = "{provider: vllm, stop_after_call: true}";
    let messages = "{provider: anthropic, model_name: claude-sonnet-4-5, api_key: k, stop_after_call: true}";
    let off = "{provider: vllm}";
    let cases = [
        (chat, Reply::text(OPEN_CALL), whole.as_str()),
        (chat, Reply::chunks(&[delta(json!({"content": OPEN_CALL})), vllm_end]), whole.as_str()),
        (chat, Reply::text(whole.as_str()), whole.as_str()),
        (chat, Reply::json_text(OPEN_CALL), whole.as_str()),
        (chat, Reply::text("No call."), "No call."),
        (messages, anthropic_end(OPEN_CALL), whole.as_str()),
        (messages, Reply::text(OPEN_CALL), whole.as_str()),
        (off, Reply::text(OPEN_CALL), OPEN_CALL),
    ];
    for (yaml, reply, expected) in cases {
        let server = ScriptedServer::start(vec![reply]).await;
        let (outcome, seen) = call(&client(&url_for(&server, yaml), yaml), &question()).await;
        let completion = outcome.unwrap().completion;
        assert_eq!(completion.message.joined_text(), expected, "{yaml}");
        assert_eq!(seen.text, expected, "what streamed is what the reply holds");
        let body = &server.bodies()[0];
        let sent = body.get("stop").or_else(|| body.get("stop_sequences"));
        assert_eq!(sent, (yaml != off).then(|| json!(["</use_mcp_tool>"])).as_ref(), "{yaml}");
        assert_eq!(body.get("include_stop_str_in_output"), (yaml == chat).then(|| json!(true)).as_ref());
    }
    // A reply that was cut off is no call.
    let server = ScriptedServer::start(vec![Reply::text(OPEN_CALL).finish("length")]).await;
    let yaml = "{provider: vllm, stop_after_call: true, retries: {max_tries: 1}}";
    let cut = complete(&client(&server.base_url(), yaml), &question()).await.completion;
    assert_eq!(cut.message.joined_text(), OPEN_CALL);
}

#[test]
fn stopping_after_a_call_is_refused_where_it_cannot_be() {
    for (yaml, word) in [
        ("{provider: vllm, tool_protocol: native, stop_after_call: true}", "llm.tool_protocol"),
        (
            "{provider: openai_responses, model_name: m, api_key: k, stop_after_call: true}",
            "openai_responses",
        ),
        ("{provider: openai, model_name: gpt-5, api_key: k, stop_after_call: true}", "gpt-5"),
    ] {
        let config = config("http://127.0.0.1:9/v1", yaml);
        let error = LlmClient::from_config(&config, &Environment::default()).unwrap_err();
        let shown = format!("{error} {:?}", error.hint());
        assert_eq!(error.kind(), "configuration");
        assert!(shown.contains("llm.stop_after_call") && shown.contains(word), "{shown}");
    }
}

#[tokio::test]
async fn tools_with_names_that_no_provider_takes_are_told_apart() {
    let tools = Arc::from([tool("files", "read.file"), tool("files", "read file"), tool("数据", "查询")]);
    for yaml in [CHAT, MESSAGES, RESPONSES] {
        let server = ScriptedServer::start_with(|request| {
            let tools = request.body["tools"].as_array().unwrap();
            let name = |at: usize| {
                let tool: &Value = &tools[at];
                tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap().to_owned()
            };
            Reply::text("").tool_call("a", &name(0), "{}").tool_call("b", &name(1), "{}").tool_call(
                "c",
                &name(2),
                "{}",
            )
        })
        .await;
        let mut asked = question();
        asked.tools = Arc::clone(&tools);
        let calls =
            complete(&client(&url_for(&server, yaml), yaml), &asked).await.completion.message.tool_calls;
        let names: Vec<_> = calls.iter().map(|call| (call.server.as_str(), call.tool.as_str())).collect();
        assert_eq!(names, [("files", "read.file"), ("files", "read file"), ("数据", "查询")], "{yaml}");
    }
}
