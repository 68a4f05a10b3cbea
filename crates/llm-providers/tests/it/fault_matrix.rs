//! Everything that a server can do wrong, for every wire format, and what comes of it: as data.
//!
//! Each fault says whether it is tried again, what kind of error it is, and what had been shown of the
//! reply by then, which a retry makes void.

use std::time::{Duration, Instant, SystemTime};

use core_protocol::Message;
use llm_providers::{CallEvent, CallOutcome, Environment, LlmClient, LlmError, RetryConfig};
use serde_json::{Value, json};

use crate::common::{config, question};
use crate::scripted_server::{Reply, Request, ScriptedServer};

/// A wire format, by a provider that speaks it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Chat,
    Messages,
    Responses,
}

use Format::{Chat, Messages, Responses};

const ALL: [Format; 3] = [Chat, Messages, Responses];

impl Format {
    const fn yaml(self) -> &'static str {
        match self {
            Chat => "{provider: vllm}",
            Messages => "{provider: anthropic, model_name: claude-sonnet-4-5, api_key: sk-ant-some-key}",
            Responses => "{provider: openai_responses, model_name: m, api_key: sk-some-key}",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Chat => "/v1/chat/completions",
            Messages => "/v1/messages",
            Responses => "/v1/responses",
        }
    }

    fn client(self, server: &ScriptedServer, retries: Option<RetryConfig>) -> LlmClient {
        let url = if self == Messages { server.root_url() } else { server.base_url() };
        let mut config = config(&url, self.yaml());
        if let Some(retries) = retries {
            config.retries = retries;
        }
        LlmClient::from_config(&config, &Environment::default()).unwrap()
    }

    /// The bytes of a reply as a stream.
    fn stream(self, reply: &Reply) -> String {
        let request = Request {
            method: "POST".into(),
            path: self.path().into(),
            headers: Vec::new(),
            body: json!({"stream": true}),
            at: Instant::now(),
            connection: 0,
        };
        String::from_utf8(reply.rendered(&request)).unwrap()
    }

    /// The events with which a reply begins whose text is `half`.
    fn beginning(self) -> String {
        let event = |value: Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
        match self {
            Chat => format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "half"}}]})),
            Messages => {
                event(
                    json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}),
                ) + &event(
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                ) + &event(
                    json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half"}}),
                )
            }
            Responses => {
                event(
                    json!({"type": "response.created", "response": {"status": "in_progress", "error": null}}),
                ) + &event(
                    json!({"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "delta": "half"}),
                )
            }
        }
    }

    /// An error as this format has it inside a stream.
    fn error_event(self, kind: &str, message: &str) -> String {
        match self {
            Chat => format!("data: {}\n\n", json!({"error": {"type": kind, "message": message}})),
            Messages => {
                format!(
                    "event: error\ndata: {}\n\n",
                    json!({"type": "error", "error": {"type": kind, "message": message}})
                )
            }
            Responses => {
                format!(
                    "event: error\ndata: {}\n\n",
                    json!({"type": "error", "code": kind, "message": message})
                )
            }
        }
    }

    /// What keeps only the connection open.
    const fn keep_alive(self) -> &'static str {
        match self {
            Chat => "data: : keepalive\n\n",
            Messages => "event: ping\ndata: {\"type\": \"ping\"}\n\n",
            Responses => {
                "event: response.in_progress\ndata: {\"type\": \"response.in_progress\", \"response\": {}}\n\n"
            }
        }
    }
}

/// What comes of a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    /// Tried again under this kind.
    Retried(&'static str),
    /// The end of the call, with this kind.
    Fatal(&'static str),
}

use Outcome::{Fatal, Retried};

/// What a call showed.
#[derive(Debug, Default)]
struct Seen {
    text: String,
    /// Kind, message, pause, and the text that became void.
    retries: Vec<(String, String, Duration, String)>,
}

async fn observe(client: &LlmClient) -> (Result<CallOutcome, LlmError>, Seen) {
    let mut seen = Seen::default();
    let outcome = client
        .complete(&question(), &mut |event| match event {
            CallEvent::TextDelta(text) => seen.text.push_str(text),
            CallEvent::Retry { kind, message, wait, .. } => {
                let void = std::mem::take(&mut seen.text);
                seen.retries.push((kind.to_owned(), message.to_owned(), wait, void));
            }
            _ => {}
        })
        .await;
    (outcome, seen)
}

/// The fault, then a good reply. `shown`: the text that streamed before the fault was noticed.
async fn check_shown(format: Format, name: &str, fault: Reply, outcome: Outcome, shown: &str) -> String {
    let server = ScriptedServer::start(vec![fault, Reply::text("good")]).await;
    let (result, seen) = observe(&format.client(&server, None)).await;
    let requests = server.requests();
    assert_eq!(requests[0].path, format.path(), "{name}");
    match outcome {
        Retried(kind) => {
            let result = result.unwrap_or_else(|error| panic!("{format:?} {name}: {error}"));
            let retries: Vec<_> =
                seen.retries.iter().map(|retry| (retry.0.as_str(), retry.3.as_str())).collect();
            assert_eq!(retries, [(kind, shown)], "{format:?} {name}");
            assert_eq!(
                (result.completion.message, result.retries),
                (Message::assistant("good"), 1),
                "{name}"
            );
            assert_eq!(seen.text, "good", "{format:?} {name}");
            assert_eq!(requests.len(), 2);
            assert_eq!(requests[0].body, requests[1].body, "the same is asked again");
            seen.retries[0].1.clone()
        }
        Fatal(kind) => {
            let error = result.map(|outcome| outcome.completion.message).unwrap_err();
            assert_eq!((error.kind(), requests.len()), (kind, 1), "{format:?} {name}: {error}");
            assert!(seen.retries.is_empty() && !error.is_retryable(), "{format:?} {name}");
            assert!(error.hint().is_some(), "{name}");
            assert_eq!(seen.text, shown, "{format:?} {name}");
            error.to_string()
        }
    }
}

async fn check(format: Format, name: &str, fault: Reply, outcome: Outcome) -> String {
    check_shown(format, name, fault, outcome, "").await
}

#[tokio::test]
async fn statuses() {
    let retried: [(u16, &'static str); 9] = [
        (408, "server_error"),
        (409, "server_error"),
        (425, "server_error"),
        (429, "rate_limited"),
        (500, "server_error"),
        (502, "server_error"),
        (503, "overloaded"),
        (504, "server_error"),
        (529, "overloaded"),
    ];
    let fatal: [(u16, &'static str); 11] = [
        (307, "not_an_api"),
        (400, "invalid_request"),
        (401, "authentication"),
        (402, "quota_exhausted"),
        (403, "authentication"),
        (404, "not_an_api"),
        (405, "not_an_api"),
        (410, "not_an_api"),
        (413, "context_exceeded"),
        (415, "invalid_request"),
        (422, "invalid_request"),
    ];
    for format in ALL {
        for (status, kind) in retried {
            check(format, &status.to_string(), Reply::status(status), Retried(kind)).await;
        }
        for (status, kind) in fatal {
            check(format, &status.to_string(), Reply::status(status), Fatal(kind)).await;
        }
    }
}

#[tokio::test]
async fn words_in_the_body_of_an_error() {
    let words = |message: &str| json!({"error": {"message": message}}).to_string();
    for format in ALL {
        let refused = |status: u16, message: &str| Reply::status(status).body(words(message));
        check(format, "model", refused(404, "The model `x` does not exist"), Fatal("model_not_found")).await;
        check(format, "key", refused(400, "API key not valid."), Fatal("authentication")).await;
        check(
            format,
            "window",
            refused(400, "prompt is too long: 9 tokens > 8 maximum"),
            Fatal("context_exceeded"),
        )
        .await;
        check(format, "credit", refused(429, "insufficient_quota"), Fatal("quota_exhausted")).await;
        let parameter = refused(400, "Unsupported parameter: 'max_tokens'");
        check(format, "parameter", parameter, Fatal("invalid_request")).await;
    }
}

#[tokio::test]
async fn bodies_of_errors_that_are_no_json() {
    let html = |status: u16, page: &str| Reply::status(status).header("content-type", "text/html").body(page);
    for format in ALL {
        let page = "<!DOCTYPE html><html><head><title>Bad gateway</title></head><body>…</body></html>";
        let shown = check(format, "page", html(502, page), Retried("server_error")).await;
        assert!(shown.contains("a web page: Bad gateway"), "{shown}");
        check(format, "cut page", html(503, "<html><he"), Retried("overloaded")).await;
        let shown =
            check(format, "words", Reply::status(500).body("upstream\r\n\tgone"), Retried("server_error"))
                .await;
        assert!(shown.ends_with("upstream gone"), "{shown}");
        check(format, "bytes", Reply::status(500).body(vec![0xFF, 0x00, 0xC3]), Retried("server_error"))
            .await;
        check(format, "half JSON", Reply::status(500).body("{\"error\": {\"mess"), Retried("server_error"))
            .await;
        check(
            format,
            "JSON of another kind",
            Reply::status(500).body("[[1], null]"),
            Retried("server_error"),
        )
        .await;
        let huge = Reply::status(500).body(vec![b'x'; 5_000_000]);
        let shown = check(format, "huge", huge, Retried("server_error")).await;
        assert!(shown.len() < 2_000, "{}", shown.len());
        let huge =
            Reply::status(401).body(format!("{{\"error\": {{\"message\": \"{}\"}}}}", "no ".repeat(500_000)));
        check(format, "huge and fatal", huge, Fatal("authentication")).await;
        // The body of the error never ends: the status tells enough.
        let cut = Reply::status(500).body("{\"error\": \"half").cut_after(8);
        check(format, "cut", cut, Retried("server_error")).await;
    }
    let away = Reply::status(307).header("location", "https://user:pw@other/v1?k=1");
    let shown = check(Chat, "redirect", away, Fatal("not_an_api")).await;
    assert!(shown.contains("https://other/v1") && !shown.contains("pw"), "{shown}");
}

#[tokio::test]
async fn good_statuses_with_bad_bodies() {
    let page = "<!doctype html><html><head><title>Welcome to the dashboard</title></head></html>";
    let html = || Reply::status(200).header("content-type", "text/html; charset=utf-8").body(page);
    for format in ALL {
        let shown = check(format, "page", html(), Fatal("not_an_api")).await;
        assert!(shown.contains("Welcome to the dashboard"), "{shown}");
        check(format, "empty", Reply::raw(""), Retried("stream_broken")).await;
        check(format, "blanks", Reply::raw("\n \n"), Retried("stream_broken")).await;
        check(format, "only comments", Reply::raw(": hello\n\n: again\n\n"), Retried("malformed_response"))
            .await;
        check(format, "no events", Reply::raw("the model is asleep"), Retried("malformed_response")).await;
        let plain = Reply::status(200).header("content-type", "text/plain").body("no");
        check(format, "plain text", plain, Retried("malformed_response")).await;
        check(
            format,
            "broken JSON",
            Reply::status(200).body("{\"choices\": [{"),
            Retried("malformed_response"),
        )
        .await;
        check(format, "another object", Reply::json(&json!({"type": "x"})), Retried("malformed_response"))
            .await;
        check(format, "a list", Reply::json(&json!([1, 2])), Retried("malformed_response")).await;
        let refused = Reply::json(&json!({"error": {"code": 401, "message": "no"}}));
        check(format, "an error", refused, Fatal("authentication")).await;
        check(format, "dropped", Reply::drop_connection(), Retried("stream_broken")).await;
        // Garbage before and behind the first text.
        let garbage = "data: {\"choices\": [{\"del\n\n";
        check(format, "garbage", Reply::raw(garbage), Retried("malformed_response")).await;
        let late = Reply::raw(format.beginning() + garbage);
        check_shown(format, "late garbage", late, Retried("malformed_response"), "half").await;
        let bytes = [format.beginning().as_bytes(), b"data: \xFF\xFE\n\n"].concat();
        check_shown(format, "no UTF-8", Reply::raw(bytes), Retried("malformed_response"), "half").await;
    }
    let chunks = |values: &[Value]| Reply::chunks(values);
    check(Chat, "no choices", chunks(&[json!({"choices": []})]), Retried("malformed_response")).await;
    check(Chat, "no choices, whole", Reply::json(&json!({"choices": []})), Retried("malformed_response"))
        .await;
    check(Chat, "choices null", chunks(&[json!({"choices": null})]), Retried("malformed_response")).await;
    check(Chat, "no choices, no end", Reply::raw("data: {\"choices\": []}\n\n"), Retried("stream_broken"))
        .await;
    check(Chat, "nothing but the end", Reply::raw("data: [DONE]\n\n"), Retried("malformed_response")).await;
    let ended = json!({"type": "response.completed", "response": {"status": "completed", "output": []}});
    check(Responses, "no output", Reply::events(&[ended]), Retried("malformed_response")).await;
    let queued = Reply::json(&json!({"object": "response", "status": "queued", "output": []}));
    check(Responses, "not begun", queued, Retried("server_error")).await;
    check(Messages, "no content", Reply::json(&json!({"type": "message"})), Retried("malformed_response"))
        .await;
}

#[tokio::test]
async fn errors_inside_a_good_stream() {
    let cases = [
        ("server_error", "it broke", Retried("server_error")),
        ("overloaded_error", "Overloaded", Retried("overloaded")),
        ("rate_limit_exceeded", "slow down", Retried("rate_limited")),
        ("invalid_request_error", "bad parameter", Fatal("invalid_request")),
        ("authentication_error", "no", Fatal("authentication")),
        ("context_length_exceeded", "Your input exceeds the context window", Fatal("context_exceeded")),
    ];
    for format in ALL {
        for (kind, message, outcome) in cases {
            let error = format.error_event(kind, message);
            check(format, kind, Reply::raw(error.clone()), outcome).await;
            let late = Reply::raw(format.beginning() + &error);
            check_shown(format, kind, late, outcome, "half").await;
        }
        let words = Reply::raw(format.beginning() + "event: error\ndata: it broke\n\n");
        check_shown(format, "no JSON", words, Retried("server_error"), "half").await;
    }
    // Codes that are statuses, and an error beside a choice.
    let half = || json!({"choices": [{"delta": {"content": "half"}}]});
    let codes = [
        (
            json!({"error": {"code": 502, "message": "upstream"}, "choices": [{"finish_reason": "error"}]}),
            Retried("server_error"),
        ),
        (json!({"error": {"code": 429, "message": "slow down"}}), Retried("rate_limited")),
        (json!({"error": "gone"}), Retried("server_error")),
        (
            json!({"error": {"code": 400, "message": "bad", "type": "BadRequestError"}}),
            Fatal("invalid_request"),
        ),
        (
            json!({"object": "error", "code": 400, "message": "The input (9 tokens) is longer than the model's context length (8 tokens)."}),
            Fatal("context_exceeded"),
        ),
    ];
    for (error, outcome) in codes {
        check_shown(Chat, &error.to_string(), Reply::chunks(&[half(), error.clone()]), outcome, "half").await;
    }
    check_shown(Chat, "finish", Reply::text("half").finish("error"), Retried("server_error"), "half").await;
    // Responses fail in an event of their own, and without a name before the data.
    let failed = |error: Value| {
        let event = json!({"type": "response.failed", "response": {"status": "failed", "error": error}});
        Reply::raw(Responses.beginning() + &format!("event: response.failed\ndata: {event}\n\n"))
    };
    let over = json!({"code": "rate_limit_exceeded", "message": "Please try again in 10ms."});
    check_shown(Responses, "failed", failed(over), Retried("rate_limited"), "half").await;
    let broke = json!({"code": "server_error", "message": "sorry"});
    check_shown(Responses, "failed", failed(broke), Retried("server_error"), "half").await;
    check_shown(Responses, "failed", failed(Value::Null), Retried("server_error"), "half").await;
    let bare = json!({"type": "error", "code": "server_error", "message": "sorry", "param": null});
    check(Responses, "unnamed", Reply::raw(format!("data: {bare}\n\n")), Retried("server_error")).await;
    check_shown(
        Responses,
        "cancelled",
        Reply::text("half").finish("cancelled"),
        Retried("server_error"),
        "half",
    )
    .await;
}

#[tokio::test]
async fn a_stream_cut_after_every_event_and_inside_each() {
    for format in ALL {
        let reply = Reply::sse_text("One, two, 三, four, five.").reasoning("Hm, hm.").usage(5, 6);
        let text = format.stream(&reply);
        // A cut after the word for the end loses nothing but the usage.
        let end = match format {
            Chat => text.find("\"finish_reason\":\"stop\""),
            Messages => text.find("stop_reason"),
            Responses => text.find("response.completed"),
        };
        let cuts: Vec<usize> = text
            .match_indices("\n\n")
            .flat_map(|(at, _)| [at + 2, at + 11])
            .filter(|cut| *cut < end.unwrap())
            .collect();
        assert!(cuts.len() >= 16, "{format:?}: {}", cuts.len());
        for cut in cuts {
            let server = ScriptedServer::start(vec![reply.clone().cut_after(cut), Reply::text("good")]).await;
            let (outcome, seen) = observe(&format.client(&server, None)).await;
            let outcome = outcome.unwrap();
            assert_eq!(outcome.completion.message, Message::assistant("good"), "{format:?} {cut}");
            let [(kind, _, _, void)] = seen.retries.as_slice() else { panic!("{format:?} {cut}: {seen:?}") };
            assert_eq!(kind, "stream_broken", "{format:?} {cut}");
            assert!("One, two, 三, four, five.".starts_with(void.as_str()), "{void}");
            assert_eq!(seen.text, "good");
        }
    }
}

#[tokio::test]
async fn half_a_character() {
    for format in ALL {
        let text = format.beginning().replace("half", "深");
        let cut = text.find('深').unwrap() + 1;
        let cut_off = Reply::raw(text.clone()).cut_after(cut);
        check(format, "cut in a character", cut_off, Retried("stream_broken")).await;
        let half = Reply::raw(&text.as_bytes()[..cut]);
        check(format, "a clean end in a character", half, Retried("malformed_response")).await;
        // Split over two writes it is a whole one.
        let whole = format.stream(&Reply::sse_text("深度研究"));
        let server = ScriptedServer::start(vec![Reply::raw(whole).pieces(1, Duration::ZERO)]).await;
        let outcome = observe(&format.client(&server, None)).await.0.unwrap();
        assert_eq!((outcome.completion.message, outcome.retries), (Message::assistant("深度研究"), 0));
    }
}

#[tokio::test]
async fn a_wrong_content_type_does_not_hide_a_good_reply() {
    for format in ALL {
        let body = format.stream(&Reply::sse_text("good"));
        for content_type in ["application/json", "text/plain", "application/octet-stream", "text/html"] {
            let reply = Reply::raw(body.clone()).header("content-type", content_type);
            let server = ScriptedServer::start(vec![reply]).await;
            let outcome = observe(&format.client(&server, None)).await.0.unwrap();
            assert_eq!((outcome.completion.message, outcome.retries), (Message::assistant("good"), 0));
        }
        let reply = Reply::json_text("good").header("content-type", "text/event-stream");
        let server = ScriptedServer::start(vec![reply]).await;
        let outcome = observe(&format.client(&server, None)).await.0.unwrap();
        assert_eq!(outcome.completion.message, Message::assistant("good"), "{format:?}");
    }
}

/// Limits under which only what a test sets ends a wait.
fn limits(yaml: &str) -> RetryConfig {
    RetryConfig { base_wait: 0.001, ..serde_yaml::from_str(yaml).unwrap() }
}

#[tokio::test]
async fn a_mute_server_is_given_up_at_every_stage() {
    let quick = Duration::from_millis(20);
    let (first, idle) = ("{first_event_timeout: 2}", "{idle_timeout: 2}");
    for format in ALL {
        let beginning = format.beginning();
        let mute = |bytes: &str| Reply::raw(format!("{bytes}more")).stall_after(bytes.len());
        let nothing = "nothing came from the model";
        let stalled = "the model made no progress";
        let cases = [
            ("no status", Reply::text("x").delay(Duration::from_secs(60)), first, nothing, ""),
            ("no event", mute(""), first, nothing, ""),
            ("comments only", mute("").keep_alive(": keep-alive\n\n", quick), first, nothing, ""),
            ("keep-alives only", mute("").keep_alive(format.keep_alive(), quick), first, nothing, ""),
            ("silence", mute(&beginning), idle, stalled, "half"),
            ("comments", mute(&beginning).keep_alive(": keep-alive\n\n", quick), idle, stalled, "half"),
            ("keep-alives", mute(&beginning).keep_alive(format.keep_alive(), quick), idle, stalled, "half"),
            (
                "too slow as a whole",
                Reply::sse_text("half").pieces(1, Duration::from_millis(50)),
                "{try_timeout: 2}",
                "the reply was not complete",
                "",
            ),
        ];
        let all = cases.map(|(name, reply, yaml, words, shown)| async move {
            let server = ScriptedServer::start(vec![reply, Reply::text("good")]).await;
            let (outcome, seen) = observe(&format.client(&server, Some(limits(yaml)))).await;
            assert_eq!(outcome.unwrap().completion.message, Message::assistant("good"), "{name}");
            let [(kind, message, _, void)] = seen.retries.as_slice() else { panic!("{name}: {seen:?}") };
            assert!(kind == "timeout" && message.starts_with(words), "{format:?} {name}: {message}");
            assert!(name.starts_with("too slow") || void == shown, "{format:?} {name}: {void}");
        });
        futures_util::future::join_all(all).await;
    }
    // A chunk that says only whose turn it is, is no progress.
    let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let only_role = Reply::raw(format!("{role}more")).stall_after(role.len());
    let server = ScriptedServer::start(vec![only_role, Reply::text("good")]).await;
    let (_, seen) = observe(&Chat.client(&server, Some(limits(first)))).await;
    assert!(seen.retries[0].1.starts_with("nothing came"), "{seen:?}");
}

#[tokio::test]
async fn a_server_that_takes_no_connection_is_given_up() {
    // Its queue is full and nobody empties it: further connections are not answered.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    for _ in 0..8 {
        let connect = tokio::net::TcpStream::connect(address);
        waiting.push(tokio::time::timeout(Duration::from_millis(50), connect).await);
    }
    assert!(waiting.last().unwrap().is_err(), "the queue takes more than it should");
    let mut config = config(&format!("http://{address}/v1"), Chat.yaml());
    config.retries = limits("{connect_timeout: 0.2, max_tries: 2}");
    let client = LlmClient::from_config(&config, &Environment::default()).unwrap();
    let (outcome, seen) = observe(&client).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), seen.retries.len()), ("timeout", 1), "{error}");
    assert!(error.to_string().starts_with("no connection within 0.2 s"), "{error}");
    assert!(error.hint().unwrap().contains("llm.retries.connect_timeout"));
}

/// What a `Retry-After` leads to.
#[derive(Debug, Clone, Copy)]
enum Wait {
    /// It is waited for, and the try does not count. Seconds.
    Granted(f64),
    /// It says nothing: the usual pause of about 2 seconds.
    Usual,
    /// It is too long: the call ends and names the seconds.
    TooLong(f64),
}

/// With the clock stopped and every other limit off, time passes in pauses only.
#[tokio::test(start_paused = true)]
async fn every_form_of_retry_after() {
    let date = |seconds: u64| httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(seconds));
    let past = httpdate::fmt_http_date(SystemTime::now() - Duration::from_secs(600));
    let header = |name: &'static str, value: &str| vec![(name, value.to_owned())];
    let cases = [
        (header("retry-after", "17"), Wait::Granted(17.0)),
        (header("retry-after", "0.5"), Wait::Granted(0.5)),
        (header("retry-after", "120"), Wait::Granted(120.0)),
        (header("retry-after", &date(90)), Wait::Granted(90.0)),
        (header("retry-after-ms", "2500"), Wait::Granted(2.5)),
        (vec![("retry-after", "30".to_owned()), ("retry-after-ms", "1500".to_owned())], Wait::Granted(1.5)),
        (vec![("retry-after", "30".to_owned()), ("retry-after-ms", "soon".to_owned())], Wait::Granted(30.0)),
        (header("retry-after", "0"), Wait::Usual),
        (header("retry-after", "-4"), Wait::Usual),
        (header("retry-after", "soon"), Wait::Usual),
        (header("retry-after", ""), Wait::Usual),
        (header("retry-after", "NaN"), Wait::Usual),
        (header("retry-after", &past), Wait::Usual),
        (header("retry-after", "121"), Wait::TooLong(121.0)),
        (header("retry-after-ms", "3600000"), Wait::TooLong(3600.0)),
        (header("retry-after", &date(3600)), Wait::TooLong(3600.0)),
    ];
    let unlimited = "{connect_timeout: 0, first_event_timeout: 0, idle_timeout: 0, try_timeout: 0, total_timeout: 0, max_tries: 2}";
    for (status, kind) in
        [(429u16, "rate_limited"), (503, "overloaded"), (529, "overloaded"), (500, "server_error")]
    {
        for (headers, wait) in &cases {
            let fault =
                headers.iter().fold(Reply::status(status), |reply, (name, value)| reply.header(name, value));
            // Twice: a pause that counted would use up the tries.
            let granted = matches!(wait, Wait::Granted(_));
            let replies = if granted {
                vec![fault.clone(), fault, Reply::text("good")]
            } else {
                vec![fault, Reply::text("good")]
            };
            let server = ScriptedServer::start(replies).await;
            let retries: RetryConfig = serde_yaml::from_str(unlimited).unwrap();
            let (outcome, seen) = observe(&Chat.client(&server, Some(retries))).await;
            let pauses: Vec<f64> = seen.retries.iter().map(|retry| retry.2.as_secs_f64()).collect();
            assert!(seen.retries.iter().all(|retry| retry.0 == kind), "{headers:?}");
            match wait {
                Wait::Granted(seconds) => {
                    assert_eq!(outcome.unwrap().retries, 2, "{headers:?}");
                    // A date has whole seconds, and some have passed since it was written.
                    assert!(
                        pauses.iter().all(|pause| (seconds - 3.0..=*seconds).contains(pause)),
                        "{headers:?} {pauses:?}"
                    );
                }
                Wait::Usual => {
                    assert_eq!(outcome.unwrap().retries, 1, "{headers:?}");
                    assert!((1.6..=2.4).contains(&pauses[0]), "{headers:?} {pauses:?}");
                }
                Wait::TooLong(seconds) => {
                    let error = outcome.map(|outcome| outcome.retries).unwrap_err();
                    assert_eq!((error.kind(), server.requests().len()), ("rate_limited", 1), "{headers:?}");
                    let named = error.retry_after().unwrap().as_secs_f64();
                    assert!((seconds - 3.0..=*seconds).contains(&named), "{headers:?} {named}");
                    assert!(error.hint().unwrap().starts_with("try again in "), "{error}");
                }
            }
        }
    }
}
