//! A completion out of Messages events, or out of one whole message.
//!
//! Decides how content blocks are put together: fragments of a call's input are joined and read once
//! at the block's end, thinking keeps its signature, thinking without one is dropped from what is sent
//! back later (it stays in the log). The stream ends at `message_stop`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use core_protocol::{Completion, ContentBlock, FinishReason, Message, Role, Usage};
use serde_json::Value;

use crate::function_name::FunctionNames;
use crate::http::HttpEndpoint;
use crate::native_call::RawCall;
use crate::sse::SseEvent;
use crate::wire::{Assembler, error_in, event_json};
use crate::{LlmError, StreamEvent, classify};

/// A content block while it grows.
enum Block {
    Text(String),
    Thinking { text: String, signature: String },
    Redacted(String),
    Call(RawCall),
    Other,
}

/// Gathers a reply.
pub(super) struct ReplyAssembler {
    http: Arc<HttpEndpoint>,
    names: FunctionNames,
    call_prefix: String,
    blocks: BTreeMap<u64, Block>,
    stop: Option<String>,
    usage: Tokens,
    model: Option<String>,
    started: bool,
    done: bool,
}

/// Token counts as the server splits them up.
#[derive(Default)]
struct Tokens {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: u64,
    cache_write: u64,
}

impl ReplyAssembler {
    pub(super) fn new(http: Arc<HttpEndpoint>, names: FunctionNames, call_prefix: String) -> Self {
        Self {
            http,
            names,
            call_prefix,
            blocks: BTreeMap::new(),
            stop: None,
            usage: Tokens::default(),
            model: None,
            started: false,
            done: false,
        }
    }

    fn message_start(&mut self, message: &Value) {
        self.started = true;
        self.model = message.get("model").and_then(Value::as_str).map(str::to_owned);
        self.usage.take(message.get("usage"));
    }

    fn block_start(&mut self, index: u64, block: &Value, out: &mut VecDeque<StreamEvent>) {
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let grown = match block.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text" => {
                let text = text("text");
                if !text.is_empty() {
                    out.push_back(StreamEvent::TextDelta(text.clone()));
                }
                Block::Text(text)
            }
            "thinking" => {
                let thinking = text("thinking");
                if !thinking.is_empty() {
                    out.push_back(StreamEvent::ThinkingDelta(thinking.clone()));
                }
                Block::Thinking { text: thinking, signature: text("signature") }
            }
            "redacted_thinking" => Block::Redacted(text("data")),
            "tool_use" => {
                let input =
                    block.get("input").filter(|input| input.as_object().is_some_and(|i| !i.is_empty()));
                Block::Call(RawCall {
                    id: text("id"),
                    name: text("name"),
                    arguments: input.map(Value::to_string).unwrap_or_default(),
                    provider_data: None,
                })
            }
            _ => Block::Other,
        };
        self.blocks.insert(index, grown);
        out.push_back(StreamEvent::Progress);
    }

    fn block_delta(&mut self, index: u64, delta: &Value, out: &mut VecDeque<StreamEvent>) {
        let text = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        match (delta.get("type").and_then(Value::as_str).unwrap_or_default(), self.blocks.get_mut(&index)) {
            ("text_delta", Some(Block::Text(grown))) => {
                grown.push_str(text("text"));
                out.push_back(StreamEvent::TextDelta(text("text").to_owned()));
            }
            ("thinking_delta", Some(Block::Thinking { text: grown, .. })) => {
                grown.push_str(text("thinking"));
                out.push_back(StreamEvent::ThinkingDelta(text("thinking").to_owned()));
            }
            ("signature_delta", Some(Block::Thinking { signature, .. })) => {
                signature.push_str(text("signature"));
                out.push_back(StreamEvent::Progress);
            }
            ("input_json_delta", Some(Block::Call(call))) => {
                call.arguments.push_str(text("partial_json"));
                out.push_back(StreamEvent::Progress);
            }
            _ => {}
        }
    }
}

impl Assembler for ReplyAssembler {
    fn event(&mut self, event: SseEvent, out: &mut VecDeque<StreamEvent>) -> Result<(), LlmError> {
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let endpoint = Arc::clone(self.http.endpoint());
        let value = event_json(&endpoint, &self.http, &event)?;
        let index = value.get("index").and_then(Value::as_u64).unwrap_or(0);
        let empty = Value::Null;
        let field = |name: &str| value.get(name).unwrap_or(&empty);
        match value.get("type").and_then(Value::as_str).unwrap_or(&event.event) {
            "message_start" => self.message_start(field("message")),
            "content_block_start" => self.block_start(index, field("content_block"), out),
            "content_block_delta" => self.block_delta(index, field("delta"), out),
            "message_delta" => {
                self.usage.take(value.get("usage"));
                if let Some(stop) = field("delta").get("stop_reason").and_then(Value::as_str) {
                    self.stop = Some(stop.to_owned());
                }
            }
            "message_stop" => self.done = true,
            // `ping` keeps the connection open; events of later versions are none of ours.
            _ => {}
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    fn whole(&mut self, body: &Value, out: &mut VecDeque<StreamEvent>) -> Result<(), LlmError> {
        if let Some(mut error) = error_in(body, false) {
            error.message = self.http.scrubber().scrub(&error.message);
            return Err(classify::from_stream(self.http.endpoint(), error));
        }
        let Some(content) = body.get("content").and_then(Value::as_array) else {
            let endpoint = Arc::clone(self.http.endpoint());
            return Err(LlmError::Malformed { endpoint, detail: "there is no content in it".to_owned() });
        };
        self.message_start(body);
        for (index, block) in (0..).zip(content) {
            self.block_start(index, block, out);
        }
        self.stop = body.get("stop_reason").and_then(Value::as_str).map(str::to_owned);
        self.done = true;
        Ok(())
    }

    fn finish(&mut self) -> Result<Completion, LlmError> {
        let endpoint = Arc::clone(self.http.endpoint());
        if !self.started {
            let detail = "it ended before the model said anything".to_owned();
            return Err(LlmError::StreamBroken { endpoint, detail });
        }
        if !self.done && self.stop.is_none() {
            let detail = "it ended without a stop reason".to_owned();
            return Err(LlmError::StreamBroken { endpoint, detail });
        }
        let stop = self.stop.take().unwrap_or_default();
        let blocks = std::mem::take(&mut self.blocks);
        if stop == "model_context_window_exceeded" && blocks.is_empty() {
            let detail = "the window was full before the first token".to_owned();
            return Err(LlmError::ContextExceeded { endpoint, prompt_tokens: None, limit: None, detail });
        }
        let mut reason = finish_reason(&stop);
        let whole = reason != FinishReason::Length;
        let mut message = Message::new(Role::Assistant, Vec::new());
        for block in blocks.into_values() {
            match block {
                Block::Text(text) if !text.is_empty() => message.content.push(ContentBlock::text(text)),
                Block::Thinking { text, signature } if !(text.is_empty() && signature.is_empty()) => {
                    let signature = (!signature.is_empty()).then_some(signature);
                    message.content.push(ContentBlock::Thinking { text, signature });
                }
                Block::Redacted(data) => message.content.push(ContentBlock::RedactedThinking { data }),
                Block::Call(call) => {
                    let fallback = format!("{}{}", self.call_prefix, message.tool_calls.len());
                    message.tool_calls.push(call.read(&self.names, fallback, whole));
                }
                Block::Text(_) | Block::Thinking { .. } | Block::Other => {}
            }
        }
        if reason == FinishReason::Stop && !message.tool_calls.is_empty() {
            reason = FinishReason::ToolCalls;
        } else if reason == FinishReason::ToolCalls && message.tool_calls.is_empty() {
            reason = FinishReason::Stop;
        }
        Ok(Completion { message, finish_reason: reason, usage: self.usage.total(), model: self.model.take() })
    }
}

/// The reason behind the server's word; the list is open.
fn finish_reason(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::Refusal,
        _ => FinishReason::Other(word.to_owned()),
    }
}

impl Tokens {
    /// Counts are cumulative: what comes later stands for the whole.
    fn take(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let number = |name: &str| usage.get(name).and_then(Value::as_u64);
        self.input = number("input_tokens").or(self.input);
        self.output = number("output_tokens").or(self.output);
        self.cache_read = number("cache_read_input_tokens").unwrap_or(self.cache_read);
        self.cache_write = number("cache_creation_input_tokens").unwrap_or(self.cache_write);
    }

    /// The server's `input_tokens` leave cached ones out; ours count them in.
    fn total(&self) -> Option<Usage> {
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        let plain = self.input.unwrap_or(0);
        Some(Usage {
            input: plain.saturating_add(self.cache_read).saturating_add(self.cache_write),
            output: self.output.unwrap_or(0),
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            reasoning: 0,
        })
    }
}
