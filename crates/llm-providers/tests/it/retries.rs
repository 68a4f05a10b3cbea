//! Tries of a call over time: pauses, replies that are not good enough, room in the window.
//!
//! Pauses are tested with a provider of the test's own and a clock that jumps; what goes over the wire,
//! with a server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use core_protocol::{Completion, FinishReason, Message, Usage};
use futures_util::{StreamExt, stream};
use llm_providers::{
    Capabilities, ChatRequest, Endpoint, EventStream, LlmClient, LlmConfig, LlmError, Provider, RetryConfig,
    StreamEvent,
};
use serde_json::json;
use tokio::time::Instant;

use crate::common::{call, client, complete, config, question, request};
use crate::scripted_server::{Reply, ScriptedServer};

/// A provider that plays a list of outcomes; once it is empty, the last one for ever.
struct Script {
    outcomes: Mutex<VecDeque<Result<Completion, LlmError>>>,
    asked: Mutex<Vec<(Instant, Option<u64>)>>,
}

impl Script {
    fn new(outcomes: Vec<Result<Completion, LlmError>>) -> Arc<Self> {
        Arc::new(Self { outcomes: Mutex::new(outcomes.into()), asked: Mutex::default() })
    }

    fn client(self: &Arc<Self>, retries: RetryConfig) -> LlmClient {
        let config = LlmConfig { retries, ..LlmConfig::default() };
        LlmClient::with_provider(Arc::clone(self) as Arc<dyn Provider>, &config)
    }

    /// Seconds between the tries.
    fn pauses(&self) -> Vec<f64> {
        let asked = self.asked.lock().unwrap();
        asked.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64()).collect()
    }
}

#[async_trait]
impl Provider for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn model(&self) -> &str {
        "script-1"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { context_length: Some(100_000), ..Capabilities::default() }
    }

    async fn stream(&self, request: &ChatRequest) -> Result<EventStream, LlmError> {
        self.asked.lock().unwrap().push((Instant::now(), request.max_tokens));
        let mut outcomes = self.outcomes.lock().unwrap();
        let outcome = if outcomes.len() > 1 { outcomes.pop_front() } else { outcomes.front().cloned() };
        let completion = outcome.unwrap()?;
        let events = [
            Ok(StreamEvent::TextDelta(completion.message.joined_text())),
            Ok(StreamEvent::Done(Box::new(completion))),
        ];
        Ok(stream::iter(events).boxed())
    }
}

fn reply(text: &str, finish_reason: FinishReason, output: u64) -> Result<Completion, LlmError> {
    let usage = Some(Usage { input: 10, output, ..Usage::default() });
    Ok(Completion { message: Message::assistant(text), finish_reason, usage, model: None })
}

fn good() -> Result<Completion, LlmError> {
    reply("good", FinishReason::Stop, 1)
}

fn endpoint() -> Arc<Endpoint> {
    Arc::new(Endpoint { provider: "script".into(), model: "script-1".into(), ..Endpoint::default() })
}

fn server_error(retry_after: Option<u64>) -> Result<Completion, LlmError> {
    let retry_after = retry_after.map(Duration::from_secs);
    Err(LlmError::Server { endpoint: endpoint(), status: Some(500), retry_after, detail: "broken".into() })
}

#[tokio::test(start_paused = true)]
async fn pauses_double_within_a_fifth_and_ten_tries_are_made() {
    let script = Script::new(vec![server_error(None)]);
    let (outcome, seen) = call(&script.client(RetryConfig::default()), &question()).await;
    assert_eq!(outcome.unwrap_err().kind(), "server_error");
    assert_eq!(seen.retries.len(), 9);
    let pauses = script.pauses();
    assert_eq!(pauses.len(), 9);
    for (pause, plain) in pauses.iter().zip([2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]) {
        let range = plain * 0.8 - 0.01..=f64::min(plain * 1.2, 60.0) + 0.01;
        assert!(range.contains(pause), "{pause} for {plain}");
    }
}

#[tokio::test(start_paused = true)]
async fn asked_for_pauses_are_waited_in_full_and_do_not_count() {
    let mut outcomes = vec![server_error(Some(17)); 12];
    outcomes.push(good());
    let script = Script::new(outcomes);
    let outcome = complete(&script.client(RetryConfig::default()), &question()).await;
    assert_eq!(outcome.retries, 12);
    assert!(script.pauses().iter().all(|pause| (17.0..17.1).contains(pause)), "{:?}", script.pauses());
    assert!((204.0..205.0).contains(&outcome.elapsed.as_secs_f64()));
}

#[tokio::test(start_paused = true)]
async fn asked_for_pauses_end_with_the_total_limit() {
    let script = Script::new(vec![server_error(Some(100))]);
    let started = Instant::now();
    let (outcome, seen) = call(&script.client(RetryConfig::default()), &question()).await;
    assert_eq!(outcome.unwrap_err().kind(), "server_error");
    assert_eq!(seen.retries.len(), 17);
    assert!(started.elapsed() <= Duration::from_secs(1800));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_too_long_is_an_error_with_the_time() {
    let script = Script::new(vec![server_error(Some(3600)), good()]);
    let error = call(&script.client(RetryConfig::default()), &question()).await.0.unwrap_err();
    assert_eq!(error.kind(), "rate_limited");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert!(error.to_string().contains("3600 s"), "{error}");
    assert!(script.pauses().is_empty());
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_tried_again() {
    let error = LlmError::ModelNotFound { endpoint: endpoint(), detail: String::new() };
    let script = Script::new(vec![Err(error.clone()), good()]);
    assert_eq!(call(&script.client(RetryConfig::default()), &question()).await.0, Err(error));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_was_cut_off_is_asked_for_again_with_a_tenth_more() {
    let script = Script::new(vec![
        reply("half", FinishReason::Length, 4096),
        reply("more", FinishReason::Length, 4506),
        good(),
    ]);
    let (outcome, seen) = call(&script.client(RetryConfig::default()), &question()).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.completion.message, Message::assistant("good"));
    assert_eq!((seen.retries, seen.text.as_str()), (vec!["length".to_owned(); 2], "good"));
    assert_eq!(outcome.discarded, Usage { input: 20, output: 8602, ..Usage::default() });
    let asked: Vec<_> = script.asked.lock().unwrap().iter().map(|(_, max_tokens)| *max_tokens).collect();
    assert_eq!(asked, [None, Some(4506), Some(4957)]);
}

#[tokio::test(start_paused = true)]
async fn the_last_try_is_returned_as_it_is() {
    let script = Script::new(vec![reply("half", FinishReason::Length, 1)]);
    let outcome =
        complete(&script.client(RetryConfig { max_tries: 4, ..RetryConfig::default() }), &question()).await;
    assert_eq!(outcome.completion.finish_reason, FinishReason::Length);
    assert_eq!(outcome.retries, 3);
    assert_eq!(script.asked.lock().unwrap().len(), 4);

    let looping = "This sentence is said again and again and again. ".repeat(20);
    let script = Script::new(vec![reply(&looping, FinishReason::Stop, 1)]);
    let (outcome, seen) =
        call(&script.client(RetryConfig { max_tries: 3, ..RetryConfig::default() }), &question()).await;
    assert_eq!(outcome.unwrap().completion.message, Message::assistant(looping.as_str()));
    assert_eq!(seen.retries, ["repetition", "repetition"]);
}

#[tokio::test(start_paused = true)]
async fn a_half_reply_is_better_than_an_error_that_follows_it() {
    let script = Script::new(vec![reply("half", FinishReason::Length, 1), server_error(None)]);
    let outcome = complete(&script.client(RetryConfig::default()), &question()).await;
    assert_eq!(outcome.completion.message, Message::assistant("half"));
    assert_eq!(outcome.discarded, Usage::default());
    let refused = LlmError::Authentication { endpoint: endpoint(), status: None, detail: String::new() };
    let script = Script::new(vec![reply("half", FinishReason::Length, 1), Err(refused)]);
    assert!(call(&script.client(RetryConfig::default()), &question()).await.0.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_limit_grows_no_further_than_the_window() {
    let script = Script::new(vec![reply("half", FinishReason::Length, 1)]);
    let config = LlmConfig { max_tokens: 1000, max_context_length: Some(1300), ..LlmConfig::default() };
    let client = LlmClient::with_provider(Arc::clone(&script) as Arc<dyn Provider>, &config);
    complete(&client, &question()).await;
    let asked: Vec<_> =
        script.asked.lock().unwrap().iter().filter_map(|(_, max_tokens)| *max_tokens).collect();
    assert!(asked.windows(2).all(|pair| pair[0] < pair[1]), "{asked:?}");
    assert!(asked.iter().all(|max_tokens| *max_tokens < 1300), "{asked:?}");
    assert!(asked.len() <= 3, "{asked:?}");
}

#[tokio::test]
async fn max_tokens_fits_into_the_room_that_is_left() {
    let server = ScriptedServer::start_with(|_| Reply::text("x")).await;
    let yaml = "{provider: vllm, max_tokens: 4000, max_context_length: 5000}";
    let client = client(&server.base_url(), yaml);
    let history = request(vec![Message::user("A word here and a word there. ".repeat(300))]);
    complete(&client, &history).await;
    let prompt = client.count_request(&history);
    let sent = server.bodies()[0]["max_tokens"].as_u64().unwrap();
    assert!(sent + prompt <= 5000 && sent + prompt > 4700, "{sent} + {prompt}");
    complete(&client, &question()).await;
    assert_eq!(server.bodies()[1]["max_tokens"], json!(4000));
}

#[tokio::test]
async fn a_window_that_the_server_knows_better_is_kept_to() {
    let words = "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is \
                 8192 tokens and your request has 6000 input tokens (4096 > 8192 - 6000).";
    let refusal = || Reply::status(400).body(json!({"error": {"message": words, "code": 400}}).to_string());
    let server = ScriptedServer::start(vec![refusal(), Reply::text("fits"), refusal(), refusal()]).await;
    let client = client(&server.base_url(), "{provider: vllm}");
    let (outcome, seen) = call(&client, &question()).await;
    assert_eq!(outcome.unwrap().completion.message, Message::assistant("fits"));
    assert_eq!(seen.retries, ["context_exceeded"]);
    let sent = server.bodies()[1]["max_tokens"].as_u64().unwrap();
    assert_eq!(sent, 8192 - 6000 - 64);
    // Once a call: a second refusal is the caller's.
    let error = call(&client, &question()).await.0.unwrap_err();
    assert_eq!(error.kind(), "context_exceeded");
    assert!(!error.is_retryable() && !error.is_permanent());
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn the_servers_counts_correct_ours() {
    let text = "Every claim is checked against a second source before it is used. ".repeat(60);
    let history = request(vec![Message::user(text.as_str())]);
    let server = ScriptedServer::start_with(|_| Reply::text("x").usage(1100, 1)).await;
    let client = client(&server.base_url(), "{provider: vllm}");
    let before = client.count_request(&history);
    let word = client.count_tokens(&text);
    complete(&client, &history).await;
    let after = client.count_request(&history);
    assert!(before < 900 && (1095..=1105).contains(&after), "{before} {after}");
    assert!(client.count_tokens(&text) > word);
    assert_eq!(client.count_message(&history.messages[0]), client.count_message(&history.messages[0]));
}

#[tokio::test]
async fn one_connection_serves_many_calls_and_dropping_a_call_ends_it() {
    let server = ScriptedServer::start_with(|request| match request.last_content() {
        "wait" => Reply::text("never").stall_after(0),
        _ => Reply::text("x"),
    })
    .await;
    let client =
        LlmClient::from_config(&config(&server.base_url(), "{provider: vllm}"), &Default::default()).unwrap();
    for _ in 0..3 {
        complete(&client, &question()).await;
    }
    assert!(server.requests().iter().all(|request| request.connection == 0));
    let waiting = request(vec![Message::user("wait")]);
    tokio::select! {
        _ = call(&client, &waiting) => panic!("it cannot end"),
        () = server.wait_for_requests(4) => {}
    }
    complete(&client, &question()).await;
    assert_eq!(server.requests().len(), 5);
}
