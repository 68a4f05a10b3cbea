//! The embedded reader: an extractive question-answering engine behind the same trait as a model.
//!
//! It is not a language model and does not pose as one. It sees only what a model would be sent, works with
//! whatever search and reading tools are offered, quotes sentences that it has read and says so when it found
//! none. Everything is derived from the request each time: no state, no clock, no randomness.

mod answer;
mod decompose;
mod evidence;
mod history;
mod lexicon;
mod question;
mod search;
mod sentences;
mod spans;
mod strategy;
mod task;
mod text;
mod toolbox;
mod wording;

use std::sync::Arc;

use async_trait::async_trait;
use core_protocol::{Completion, ContentBlock, FinishReason, Message, Role, Usage};
use futures_util::StreamExt;
use futures_util::stream;

use crate::{Capabilities, ChatRequest, EventStream, LlmError, Price, Provider, StreamEvent, Tokenizer};

/// What to tell whoever runs without a model: what this is, and how to plug a real one in.
pub const BANNER: &str = "\
No language model is configured: the embedded extractive reader answers. It quotes sentences from what it finds and reasons no further.
Plug a model in with OPENAI_API_KEY=… fathom ask …, with --llm anthropic (ANTHROPIC_API_KEY), or with the base URL of an Ollama or vLLM server.";

/// The extractive reader as a provider.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReaderProvider;

impl ReaderProvider {
    /// A reader; it needs no configuration.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl Provider for ReaderProvider {
    fn name(&self) -> &'static str {
        "reader"
    }

    fn model(&self) -> &'static str {
        "reader"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { native_tools: true, assistant_prefix: true, ..Capabilities::default() }
    }

    fn tokenizer(&self) -> Tokenizer {
        Tokenizer::QuarterOfBytes
    }

    /// Nobody is asked, so nothing is paid.
    fn price(&self) -> Option<Price> {
        Some(Price::default())
    }

    async fn stream(&self, request: &ChatRequest) -> Result<EventStream, LlmError> {
        let reply = strategy::reply(request);
        let usage =
            Usage { input: prompt_tokens(request), output: tokens_of(reply.text.len()), ..Usage::default() };
        let mut events: Vec<Result<StreamEvent, LlmError>> = pieces(&reply.text)
            .into_iter()
            .map(|piece| Ok(StreamEvent::TextDelta(piece.to_owned())))
            .collect();
        let finish_reason = if reply.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        let content = if reply.text.is_empty() { Vec::new() } else { vec![ContentBlock::text(reply.text)] };
        let mut message = Message::new(Role::Assistant, content);
        message.tool_calls = reply.calls;
        let completion =
            Completion { message, finish_reason, usage: Some(usage), model: Some("reader".to_owned()) };
        events.push(Ok(StreamEvent::Done(Box::new(completion))));
        Ok(stream::iter(events).boxed())
    }
}

/// Tokens are estimated as a quarter of the bytes.
fn tokens_of(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(4)
}

fn prompt_tokens(request: &ChatRequest) -> u64 {
    let messages: usize = request.messages.iter().map(|message: &Arc<Message>| message_bytes(message)).sum();
    tokens_of(request.system.len() + messages)
}

fn message_bytes(message: &Message) -> usize {
    let text: usize = message
        .content
        .iter()
        .map(|block| match block {
            ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => text.len(),
            _ => 0,
        })
        .sum();
    text + message.tool_calls.iter().map(|call| call.tool.len() + 64).sum::<usize>()
}

/// The reply line by line, as it is streamed.
fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests;
