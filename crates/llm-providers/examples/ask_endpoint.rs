//! Asks one question of a server and prints what came of it as one JSON object: text, pieces, usage, why it stopped.
//!
//! `cargo run -p llm-providers --example ask_endpoint -- --base-url http://127.0.0.1:8000/v1 "Count to ten."`
//! Further options: `--provider NAME`, `--model NAME`, `--max-tokens N`, `--stop TEXT`, `--whole` (not streamed).
#![allow(clippy::print_stdout, reason = "prints for a living")]

use std::error::Error;
use std::sync::Arc;

use core_protocol::Message;
use llm_providers::{CallEvent, ChatRequest, Environment, LlmClient, LlmConfig, RetryConfig};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut config = LlmConfig {
        provider: "openai_compatible".to_owned(),
        model_name: "default".to_owned(),
        temperature: Some(0.0),
        max_tokens: 64,
        // A reply that is cut off is what came of it.
        retries: RetryConfig { max_tries: 1, ..RetryConfig::default() },
        ..LlmConfig::default()
    };
    let mut question = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} takes a value"));
        match argument.as_str() {
            "--base-url" => config.base_url = Some(value()?),
            "--provider" => config.provider = value()?,
            "--model" => config.model_name = value()?,
            "--max-tokens" => config.max_tokens = value()?.parse()?,
            "--stop" => {
                config.extra_body.insert("stop".to_owned(), json!([value()?]));
            }
            "--whole" => config.quirks.stream = Some(false),
            _ => question = Some(argument),
        }
    }
    let environment: Environment = std::env::vars().collect();
    let client = LlmClient::from_config(&config, &environment)?;
    let question = Message::user(question.ok_or("a question is missing")?);
    let request = ChatRequest::new("", vec![Arc::new(question)]);
    let (mut pieces, mut streamed) = (0u32, String::new());
    let outcome = client
        .complete(&request, &mut |event| {
            if let CallEvent::TextDelta(text) = event {
                pieces += 1;
                streamed.push_str(text);
            }
        })
        .await?;
    println!(
        "{}",
        json!({
            "text": outcome.completion.message.joined_text(),
            "streamed": streamed,
            "pieces": pieces,
            "finish_reason": outcome.completion.finish_reason,
            "usage": outcome.completion.usage,
            "counted": client.count_request(&request),
            "ms": u64::try_from(outcome.elapsed.as_millis())?,
        })
    );
    Ok(())
}
