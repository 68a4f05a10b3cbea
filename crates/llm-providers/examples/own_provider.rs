//! A provider of one's own, found by its name in the configuration.
//!
//! Run with `cargo run -p llm-providers --example own_provider`.

use std::sync::Arc;

use async_trait::async_trait;
use core_protocol::{Completion, FinishReason, Message, Role};
use futures_util::{StreamExt, stream};
use llm_providers::{
    CallEvent, Capabilities, ChatRequest, Environment, EventStream, LlmConfig, LlmError, Provider, Registry,
    StreamEvent,
};

/// Repeats the last message in capitals, word by word.
struct Shouter;

#[async_trait]
impl Provider for Shouter {
    fn name(&self) -> &str {
        "shouter"
    }

    fn model(&self) -> &str {
        "shouter-1"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { context_length: Some(8_192), ..Capabilities::default() }
    }

    async fn stream(&self, request: &ChatRequest) -> Result<EventStream, LlmError> {
        let heard = request.messages.iter().rev().find(|message| message.role == Role::User);
        let text = heard.map(|message| message.joined_text().to_uppercase()).unwrap_or_default();
        let mut events: Vec<_> =
            text.split_inclusive(' ').map(|word| Ok(StreamEvent::TextDelta(word.to_owned()))).collect();
        events.push(Ok(StreamEvent::Done(Box::new(Completion {
            message: Message::assistant(text),
            finish_reason: FinishReason::Stop,
            usage: None,
            model: None,
        }))));
        Ok(stream::iter(events).boxed())
    }
}

#[tokio::main]
async fn main() -> Result<(), LlmError> {
    let mut registry = Registry::builtin();
    registry.register("shouter", |_config, _environment| Ok(Arc::new(Shouter)));

    let config = LlmConfig { provider: "shouter".to_owned(), ..LlmConfig::default() };
    let client = registry.client(&config, &Environment::default())?;
    let request = ChatRequest::new("", vec![Arc::new(Message::user("plug in whatever you like"))]);
    let mut pieces = 0;
    let outcome = client
        .complete(&request, &mut |event| {
            if let CallEvent::TextDelta(_) = event {
                pieces += 1;
            }
        })
        .await?;
    assert_eq!(outcome.completion.message.joined_text(), "PLUG IN WHATEVER YOU LIKE");
    assert_eq!(pieces, 5);
    Ok(())
}
