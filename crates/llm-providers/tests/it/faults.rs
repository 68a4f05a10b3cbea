//! Everything that a server can do wrong, at every stage, and what comes of it.

use std::time::{Duration, Instant};

use core_protocol::Message;
use llm_providers::{Environment, LlmClient, LlmConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{call, client, config, question};
use crate::scripted_server::{Reply, ScriptedServer};

const VLLM: &str = "{provider: vllm}";
const CLAUDE: &str = "{provider: anthropic, model_name: claude-sonnet-4-5, api_key: sk-ant-some-key}";

/// A fault, then a good reply: the kind under which the fault was retried.
#[track_caller]
fn retried(name: &str, yaml: &str, fault: Reply, kind: &str) -> impl Future<Output = ()> {
    let (name, yaml, kind) = (name.to_owned(), yaml.to_owned(), kind.to_owned());
    async move {
        let server = ScriptedServer::start(vec![fault, Reply::text("good")]).await;
        let url = if yaml.contains("anthropic") { server.root_url() } else { server.base_url() };
        let (outcome, seen) = call(&client(&url, &yaml), &question()).await;
        let outcome = outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(seen.retries, [kind], "{name}");
        assert_eq!(outcome.completion.message, Message::assistant("good"), "{name}");
        assert_eq!(seen.text, "good", "{name}");
    }
}

/// A fault that ends the call after one request: its kind.
async fn fatal(name: &str, yaml: &str, fault: Reply, kind: &str) -> String {
    let server = ScriptedServer::start(vec![fault, Reply::text("good")]).await;
    let url = if yaml.contains("anthropic") { server.root_url() } else { server.base_url() };
    let (outcome, seen) = call(&client(&url, yaml), &question()).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (kind, 1), "{name}: {error}");
    assert!(seen.retries.is_empty(), "{name}");
    assert!(error.hint().is_some(), "{name}");
    error.to_string()
}

#[tokio::test]
async fn statuses_that_may_pass_are_tried_again() {
    for status in [408u16, 409, 500, 502, 504] {
        retried(&status.to_string(), VLLM, Reply::status(status), "server_error").await;
    }
    retried("503", VLLM, Reply::status(503), "overloaded").await;
    retried("529", CLAUDE, Reply::status(529), "overloaded").await;
    retried("429", VLLM, Reply::status(429), "rate_limited").await;
    retried("429 anthropic", CLAUDE, Reply::status(429).header("retry-after-ms", "1"), "rate_limited").await;
    retried("429 with seconds", VLLM, Reply::status(429).header("retry-after", "0.01"), "rate_limited").await;
    retried(
        "a page",
        VLLM,
        Reply::status(502).header("content-type", "text/html").body("<html>"),
        "server_error",
    )
    .await;
}

#[tokio::test]
async fn statuses_that_cannot_pass_end_the_call() {
    let error = |message: &str| json!({"error": {"message": message}}).to_string();
    for yaml in [VLLM, CLAUDE] {
        fatal("401", yaml, Reply::status(401), "authentication").await;
        fatal("403", yaml, Reply::status(403), "authentication").await;
        fatal("400", yaml, Reply::status(400).body(error("bad parameter")), "invalid_request").await;
        fatal(
            "404 model",
            yaml,
            Reply::status(404).body(error("The model `x` does not exist")),
            "model_not_found",
        )
        .await;
        fatal("404 path", yaml, Reply::status(404), "not_an_api").await;
        fatal("402", yaml, Reply::status(402), "quota_exhausted").await;
        fatal("413", yaml, Reply::status(413), "context_exceeded").await;
        fatal(
            "400 window",
            yaml,
            Reply::status(400).body(error("prompt is too long: 9 tokens > 8 maximum")),
            "context_exceeded",
        )
        .await;
    }
    let words = fatal(
        "redirect",
        VLLM,
        Reply::status(307).header("location", "https://user:pw@other/v1?k=1"),
        "not_an_api",
    )
    .await;
    assert!(words.contains("https://other/v1") && !words.contains("pw"), "{words}");
}

#[tokio::test]
async fn a_page_instead_of_an_api_ends_the_call() {
    let page = "<!doctype html><html><head><title>Welcome to the dashboard</title></head></html>";
    let reply = Reply::status(200).header("content-type", "text/html; charset=utf-8").body(page);
    let words = fatal("page", VLLM, reply, "not_an_api").await;
    assert!(words.contains("Welcome to the dashboard"), "{words}");
}

#[tokio::test]
async fn a_stream_cut_at_every_event_is_tried_again() {
    for (yaml, path) in [(VLLM, "/v1/chat/completions"), (CLAUDE, "/v1/messages")] {
        let reply = Reply::sse_text("One, two, 三, four, five, six.").usage(5, 6);
        let probe = ScriptedServer::start(vec![reply.clone()]).await;
        let url = if path.ends_with("messages") { probe.root_url() } else { probe.base_url() };
        call(&client(&url, yaml), &question()).await.0.unwrap();
        let body = reply.rendered(&probe.requests()[0]);
        let text = String::from_utf8(body.clone()).unwrap();
        // A cut after the finish reason loses nothing but the usage.
        let whole_from =
            text.find("stop_reason").or_else(|| text.find("\"finish_reason\":\"stop\"")).unwrap();
        let ends: Vec<usize> =
            text.match_indices("\n\n").map(|(at, _)| at + 2).filter(|at| *at < whole_from).collect();
        assert!(ends.len() >= 5);
        for end in ends {
            for cut in [end, end + 9] {
                retried(&format!("{path} cut at {cut}"), yaml, reply.clone().cut_after(cut), "stream_broken")
                    .await;
            }
        }
    }
}

#[tokio::test]
async fn half_a_character_at_the_end_is_a_broken_stream() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"深\"}}]}\n\n";
    let cut = text.find('深').unwrap() + 1;
    retried("half a character", VLLM, Reply::raw(text).cut_after(cut), "stream_broken").await;
    let half = &text.as_bytes()[..cut];
    retried("a clean end in a character", VLLM, Reply::raw(half), "malformed_response").await;
}

#[tokio::test]
async fn answers_that_cannot_be_read_are_tried_again() {
    let check = |name: &'static str, reply: Reply, kind: &'static str| retried(name, VLLM, reply, kind);
    check("garbage data", Reply::raw("data: {\"choices\": [{\"del\n\n"), "malformed_response").await;
    check("empty body", Reply::raw(""), "stream_broken").await;
    check("only comments", Reply::raw(": hello\n\n: again\n\n"), "malformed_response").await;
    check("no events", Reply::raw("the model is asleep"), "malformed_response").await;
    check("broken JSON", Reply::status(200).body("{\"choices\": [{"), "malformed_response").await;
    check("no choices", Reply::chunks(&[json!({"choices": []})]), "malformed_response").await;
    check("no choices, no end", Reply::raw("data: {\"choices\": []}\n\n"), "stream_broken").await;
    check("nothing but the end", Reply::raw("data: [DONE]\n\n"), "malformed_response").await;
    check("dropped", Reply::drop_connection(), "stream_broken").await;
    check("finish error", Reply::text("half").finish("error"), "server_error").await;
    check(
        "wrong content type",
        Reply::status(200).header("content-type", "text/plain").body("no"),
        "malformed_response",
    )
    .await;
    retried(
        "anthropic: JSON of another kind",
        CLAUDE,
        Reply::json(&json!({"type": "x"})),
        "malformed_response",
    )
    .await;
}

#[tokio::test]
async fn a_wrong_content_type_does_not_hide_a_good_reply() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"good\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    for content_type in ["application/json", "text/plain", "application/octet-stream"] {
        let reply = Reply::raw(body).header("content-type", content_type);
        let server = ScriptedServer::start(vec![reply]).await;
        let outcome = call(&client(&server.base_url(), VLLM), &question()).await.0.unwrap();
        assert_eq!((outcome.completion.message, outcome.retries), (Message::assistant("good"), 0));
    }
}

#[tokio::test]
async fn errors_inside_a_good_stream_are_errors() {
    let text = json!({"choices": [{"delta": {"content": "half"}}]});
    let check = |error: serde_json::Value| Reply::chunks(&[text.clone(), error]);
    retried(
        "502",
        VLLM,
        check(
            json!({"error": {"code": 502, "message": "upstream"}, "choices": [{"finish_reason": "error"}]}),
        ),
        "server_error",
    )
    .await;
    retried("429", VLLM, check(json!({"error": {"code": 429, "message": "slow down"}})), "rate_limited")
        .await;
    retried("words", VLLM, check(json!({"error": "gone"})), "server_error").await;
    fatal(
        "400",
        VLLM,
        check(json!({"error": {"code": 400, "message": "bad", "type": "BadRequestError"}})),
        "invalid_request",
    )
    .await;
    let window = json!({"object": "error", "code": 400, "message": "The input (9 tokens) is longer than the model's context length (8 tokens)."});
    fatal("window", VLLM, check(window), "context_exceeded").await;
    fatal(
        "whole body",
        VLLM,
        Reply::json(&json!({"error": {"code": 401, "message": "no"}})),
        "authentication",
    )
    .await;
    retried("named event", VLLM, Reply::raw("event: error\ndata: it broke\n\n"), "server_error").await;
}

fn limited(url: &str, yaml: &str, limits: &str) -> LlmClient {
    let mut config: LlmConfig = config(url, yaml);
    let limits: llm_providers::RetryConfig = serde_yaml::from_str(limits).unwrap();
    config.retries = llm_providers::RetryConfig { base_wait: 0.001, ..limits };
    LlmClient::from_config(&config, &Environment::default()).unwrap()
}

/// A mute reply, then a good one, under these limits: what the wait was taken for.
async fn timed_out(reply: Reply, limits: &str) -> String {
    let server = ScriptedServer::start(vec![reply, Reply::text("good")]).await;
    let client = limited(&server.base_url(), VLLM, limits);
    let started = Instant::now();
    let mut messages = Vec::new();
    let outcome = client
        .complete(&question(), &mut |event| {
            if let llm_providers::CallEvent::Retry { message, .. } = event {
                messages.push(message.to_owned());
            }
        })
        .await
        .unwrap();
    assert_eq!(outcome.completion.message, Message::assistant("good"));
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.remove(0)
}

#[tokio::test]
async fn every_stage_has_its_own_limit() {
    let long = Reply::sse_text("A reply of some length, in pieces.");
    let check = |words: String, expected: &str| assert!(words.starts_with(expected), "{words}");
    check(
        timed_out(Reply::text("x").delay(Duration::from_secs(9)), "{first_event_timeout: 0.1}").await,
        "nothing came",
    );
    check(timed_out(long.clone().stall_after(0), "{first_event_timeout: 0.1}").await, "nothing came");
    check(
        timed_out(long.clone().stall_after(400), "{idle_timeout: 0.1}").await,
        "the model made no progress",
    );
    let slow = long.clone().pieces(20, Duration::from_millis(20));
    check(timed_out(slow, "{try_timeout: 0.3, idle_timeout: 5}").await, "the reply was not complete");
    let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let only_role = Reply::raw(format!("{role}more")).stall_after(role.len());
    check(timed_out(only_role, "{first_event_timeout: 0.1}").await, "nothing came");
}

#[tokio::test]
async fn keep_alives_are_no_progress() {
    let quick = Duration::from_millis(20);
    let mute = Reply::sse_text("never").stall_after(0).keep_alive(": keep-alive\n\n", quick);
    assert!(timed_out(mute, "{first_event_timeout: 0.2}").await.starts_with("nothing came"));
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let half =
        Reply::raw(format!("{text}more")).stall_after(text.len()).keep_alive("data: : keepalive\n\n", quick);
    assert!(timed_out(half, "{idle_timeout: 0.2}").await.starts_with("the model made no progress"));

    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    let server = ScriptedServer::start(vec![
        Reply::sse_text("x").stall_after(0).keep_alive(ping, quick),
        Reply::text("good"),
    ])
    .await;
    let client = limited(&server.root_url(), CLAUDE, "{first_event_timeout: 0.2}");
    let (outcome, seen) = call(&client, &question()).await;
    assert!(outcome.is_ok());
    assert_eq!(seen.retries, ["timeout"]);
}

#[tokio::test]
async fn a_long_healthy_stream_is_not_cut() {
    let reply = Reply::sse_text("word ".repeat(40)).pieces(120, Duration::from_millis(15));
    let server = ScriptedServer::start(vec![reply]).await;
    let client = limited(&server.base_url(), VLLM, "{idle_timeout: 0.25, first_event_timeout: 0.25}");
    let outcome = call(&client, &question()).await.0.unwrap();
    assert_eq!(outcome.retries, 0);
}

#[tokio::test]
async fn all_tries_together_have_a_limit() {
    let server = ScriptedServer::start_with(|_| Reply::text("x").stall_after(0)).await;
    let client = limited(&server.base_url(), VLLM, "{first_event_timeout: 0.08, total_timeout: 0.3}");
    let started = Instant::now();
    let error = call(&client, &question()).await.0.unwrap_err();
    assert_eq!(error.kind(), "timeout");
    assert!(started.elapsed() < Duration::from_secs(3));
    assert!((2..=5).contains(&server.requests().len()), "{}", server.requests().len());
}

#[tokio::test]
async fn keys_never_show() {
    let key = "sk-proj-SECRETSECRETSECRET";
    let echo = json!({"error": {"message": format!("Incorrect API key provided: {key} (sk-proj-****CRET)")}});
    let server = ScriptedServer::start_with(move |_| Reply::status(401).body(echo.to_string())).await;
    let url = server.base_url().replace("http://", "http://user:url-password@") + "?token=query-secret";
    let yaml = format!("{{provider: vllm, api_key: {key}, extra_body: {{x: 1}}}}");
    let client = client(&url, &yaml);
    let error = call(&client, &question()).await.0.unwrap_err();
    let shown = format!(
        "{error} {error:?} {:?} {:?} {client:?} {:?}",
        error.hint(),
        client.describe(),
        client.config()
    );
    assert!(shown.contains("***"), "{shown}");
    for secret in ["SECRET", "CRET)", "url-password", "query-secret"] {
        let found = error.to_string().contains(secret) || format!("{:?}", client.describe()).contains(secret);
        assert!(!found, "{secret}: {shown}");
    }
    assert!(!shown.contains("SECRET"), "{shown}");
    assert_eq!(server.requests()[0].path, "/v1/chat/completions?token=query-secret");
    let message = error.to_string();
    assert!(message.contains("vllm") && message.contains("some-model"), "{message}");
    assert!(message.contains(&format!("127.0.0.1:{}/v1/chat/completions", server.port())), "{message}");
}

#[tokio::test]
async fn nothing_listening_here_is_given_up_soon() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let (outcome, seen) = call(&client(&url, VLLM), &question()).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), "unreachable");
    assert_eq!(seen.retries, ["unreachable", "unreachable"]);
    assert!(error.hint().unwrap().contains("start the server"), "{error}");
    assert!(!error.is_permanent() && error.is_retryable());
}

#[tokio::test]
async fn a_server_on_this_machine_is_reached_without_a_proxy() {
    let server = ScriptedServer::start(vec![Reply::text("x")]).await;
    let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"];
    let environment: Environment =
        proxies.iter().map(|name| ((*name).to_owned(), "http://127.0.0.1:1".to_owned())).collect();
    let client = LlmClient::from_config(&config(&server.base_url(), VLLM), &environment).unwrap();
    assert_eq!(call(&client, &question()).await.0.unwrap().retries, 0);
}

#[tokio::test]
async fn another_host_is_reached_through_the_proxy() {
    let proxy = ScriptedServer::start(vec![Reply::text("through the proxy")]).await;
    let environment = Environment::from([("HTTP_PROXY", proxy.root_url().as_str())]);
    let client = LlmClient::from_config(&config("http://model.invalid/v1", VLLM), &environment).unwrap();
    let outcome = call(&client, &question()).await.0.unwrap();
    assert_eq!(outcome.completion.message, Message::assistant("through the proxy"));
    assert_eq!(proxy.requests()[0].path, "http://model.invalid/v1/chat/completions");
    let environment =
        Environment::from([("HTTP_PROXY", proxy.root_url().as_str()), ("NO_PROXY", "model.invalid")]);
    let client = LlmClient::from_config(&config("http://model.invalid/v1", VLLM), &environment).unwrap();
    let error = call(&client, &question()).await.0.unwrap_err();
    assert_eq!(error.kind(), "unreachable");
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn a_server_without_tls_is_told_at_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut hello = [0u8; 1024];
            let _ = stream.read(&mut hello).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    let (outcome, seen) = call(&client(&url, VLLM), &question()).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), seen.retries.len()), ("unreachable", 0), "{error}");
    assert!(error.is_permanent());
    server.abort();
}
