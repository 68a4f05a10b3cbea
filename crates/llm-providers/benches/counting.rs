//! What counting tokens costs: a message that joins a long history, the history itself, text, loading the tables.
//!
//! `cargo bench -p llm-providers --bench counting`
#![allow(clippy::expect_used, reason = "a bench that cannot begin has nothing to measure")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use core_protocol::Message;
use divan::Bencher;
use divan::counter::BytesCount;
use llm_providers::{Capabilities, ChatRequest, EventStream, LlmClient, LlmConfig, LlmError, Provider};

/// Turns of the history: two messages each.
const TURNS: usize = 200;
/// Bytes of a tool result, about 2,000 tokens.
const RESULT: usize = 8 * 1024;

fn main() {
    // Loading is measured by itself.
    let _ = client().count_tokens("warm up");
    divan::main();
}

/// A provider that is never asked.
struct Silent;

#[async_trait::async_trait]
impl Provider for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn model(&self) -> &str {
        "silent"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn stream(&self, _: &ChatRequest) -> Result<EventStream, LlmError> {
        Ok(Box::pin(futures_util::stream::empty::<Result<llm_providers::StreamEvent, LlmError>>()))
    }
}

fn client() -> LlmClient {
    LlmClient::with_provider(Arc::new(Silent), &LlmConfig::default())
}

fn prose(bytes: usize, number: usize) -> String {
    let sentence = "In 1851 the Great Exhibition opened in Hyde Park; six million people came to see it. ";
    let mut text = format!("{number}. ");
    while text.len() < bytes {
        text.push_str(sentence);
    }
    text
}

fn history(turns: usize) -> ChatRequest {
    let messages = (0..turns).flat_map(|turn| {
        [Message::user(prose(RESULT, turn)), Message::assistant(prose(600, turn))].map(Arc::new)
    });
    ChatRequest::new(prose(4096, 0), messages.collect())
}

/// The history is known; one tool result is new.
#[divan::bench(args = [10, TURNS])]
fn message_added_to_a_history_of_turns(bencher: Bencher<'_, '_>, turns: usize) {
    let client = client();
    let known = history(turns);
    let _ = client.count_request(&known);
    let number = AtomicUsize::new(turns);
    bencher
        .with_inputs(|| {
            let number = number.fetch_add(1, Ordering::Relaxed);
            let mut grown = known.clone();
            grown.messages.push(Arc::new(Message::user(prose(RESULT, number))));
            grown
        })
        .bench_values(|grown| client.count_request(&grown));
}

/// The new message by itself: what the one above should cost.
#[divan::bench]
fn message_alone(bencher: Bencher<'_, '_>) {
    let client = client();
    let number = AtomicUsize::new(0);
    bencher
        .with_inputs(|| {
            let number = number.fetch_add(1, Ordering::Relaxed);
            Arc::new(Message::user(prose(RESULT, number)))
        })
        .bench_values(|message| client.count_message(&message));
}

/// A history that was counted before.
#[divan::bench]
fn known_history(bencher: Bencher<'_, '_>) {
    let client = client();
    let known = history(TURNS);
    let _ = client.count_request(&known);
    bencher.bench(|| client.count_request(&known));
}

/// A history that nobody has counted yet.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn unknown_history(bencher: Bencher<'_, '_>) {
    let client = client();
    bencher.with_inputs(|| history(TURNS)).bench_values(|request| client.count_request(&request));
}

#[divan::bench]
fn text(bencher: Bencher<'_, '_>) {
    let client = client();
    let text = prose(64 * 1024, 0);
    bencher.counter(BytesCount::of_str(&text)).bench(|| client.count_tokens(&text));
}
