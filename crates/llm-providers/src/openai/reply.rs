//! A completion out of chat-completion chunks, or out of one whole chat completion.
//!
//! Decides what counts as text, thinking, calls, usage and end, over all the places where servers put them.

use std::collections::VecDeque;
use std::sync::Arc;

use core_protocol::{Completion, ContentBlock, FinishReason, Message, Role, Usage};
use serde_json::Value;

use super::calls::CallTable;
use crate::function_name::FunctionNames;
use crate::http::HttpEndpoint;
use crate::sse::SseEvent;
use crate::wire::{Assembler, error_in, event_json};
use crate::{LlmError, StreamEvent, classify};

/// Finish reasons by which a server says that it gave up, not the model.
const FAILED: &[&str] = &["error", "abort", "network_error"];

/// Gathers a reply.
pub(super) struct ReplyAssembler {
    http: Arc<HttpEndpoint>,
    names: FunctionNames,
    /// What the ids of calls without one begin with; unique within a history.
    call_prefix: String,
    /// The request ended in a prefix that closed its think block: what follows is text, wherever the
    /// server puts it.
    thinking_is_text: bool,
    text: String,
    thinking: String,
    refused: bool,
    calls: CallTable,
    has_calls: bool,
    finish: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    saw_choice: bool,
    done: bool,
}

impl ReplyAssembler {
    pub(super) fn new(
        http: Arc<HttpEndpoint>,
        names: FunctionNames,
        call_prefix: String,
        thinking_is_text: bool,
    ) -> Self {
        Self {
            http,
            names,
            call_prefix,
            thinking_is_text,
            text: String::new(),
            thinking: String::new(),
            refused: false,
            calls: CallTable::default(),
            has_calls: false,
            finish: None,
            usage: None,
            model: None,
            saw_choice: false,
            done: false,
        }
    }

    fn chunk(&mut self, chunk: &Value, out: &mut VecDeque<StreamEvent>) {
        if self.model.is_none() {
            self.model =
                chunk.get("model").and_then(Value::as_str).filter(|m| !m.is_empty()).map(str::to_owned);
        }
        let choice = chunk.get("choices").and_then(Value::as_array).and_then(|choices| {
            choices.iter().find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
        });
        let places = [
            chunk.get("usage"),
            choice.and_then(|choice| choice.get("usage")),
            chunk.get("x_groq").and_then(|groq| groq.get("usage")),
        ];
        if let Some(usage) = places.into_iter().flatten().find_map(usage) {
            self.usage = Some(usage);
        }
        let Some(choice) = choice else { return };
        self.saw_choice = true;
        let empty = Value::Null;
        let delta = ["delta", "message"]
            .iter()
            .find_map(|name| choice.get(*name).filter(|delta| delta.is_object()))
            .unwrap_or(&empty);
        for field in ["reasoning_content", "reasoning"] {
            if let Some(thinking) = delta.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()) {
                self.think(thinking, out);
                break;
            }
        }
        match delta.get("content") {
            Some(Value::String(text)) => self.say(text, out),
            Some(Value::Array(parts)) => {
                for part in parts {
                    self.part(part, out);
                }
            }
            _ => {}
        }
        if let Some(refusal) = delta.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            self.refused = true;
            self.say(refusal, out);
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.has_calls = true;
            self.calls.take(call);
            out.push_back(StreamEvent::Progress);
        }
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str).filter(|f| !f.is_empty()) {
            self.finish = Some(finish.to_owned());
        }
    }

    /// One element of content that is a list (Mistral's thinking models).
    fn part(&mut self, part: &Value, out: &mut VecDeque<StreamEvent>) {
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            self.say(text, out);
        }
        match part.get("thinking") {
            Some(Value::String(text)) => self.think(text, out),
            Some(Value::Array(inner)) => {
                for text in inner.iter().filter_map(|inner| inner.get("text")?.as_str()) {
                    self.think(text, out);
                }
            }
            _ => {}
        }
    }

    fn say(&mut self, text: &str, out: &mut VecDeque<StreamEvent>) {
        if !text.is_empty() {
            self.text.push_str(text);
            out.push_back(StreamEvent::TextDelta(text.to_owned()));
        }
    }

    fn think(&mut self, text: &str, out: &mut VecDeque<StreamEvent>) {
        if self.thinking_is_text {
            self.say(text, out);
        } else if !text.is_empty() {
            self.thinking.push_str(text);
            out.push_back(StreamEvent::ThinkingDelta(text.to_owned()));
        }
    }
}

impl Assembler for ReplyAssembler {
    fn event(&mut self, event: SseEvent, out: &mut VecDeque<StreamEvent>) -> Result<(), LlmError> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let endpoint = Arc::clone(self.http.endpoint());
        let chunk = event_json(&endpoint, &self.http, &event)?;
        self.chunk(&chunk, out);
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
        self.chunk(body, out);
        self.done = true;
        Ok(())
    }

    fn finish(&mut self) -> Result<Completion, LlmError> {
        let endpoint = Arc::clone(self.http.endpoint());
        if !self.saw_choice {
            return Err(if self.done {
                LlmError::Malformed { endpoint, detail: "there is no choice in it".to_owned() }
            } else {
                LlmError::StreamBroken {
                    endpoint,
                    detail: "it ended before the model said anything".to_owned(),
                }
            });
        }
        let finish = match (self.finish.take(), self.done) {
            (Some(finish), _) => finish,
            (None, true) => String::new(),
            (None, false) => {
                let detail = "it ended without a finish reason".to_owned();
                return Err(LlmError::StreamBroken { endpoint, detail });
            }
        };
        if FAILED.contains(&finish.as_str()) {
            let detail = format!("the server ended the reply with `{finish}`");
            return Err(LlmError::Server { endpoint, status: None, retry_after: None, detail });
        }
        let mut reason = finish_reason(&finish);
        let mut message = Message::new(Role::Assistant, Vec::new());
        if !self.thinking.is_empty() {
            let text = std::mem::take(&mut self.thinking);
            message.content.push(ContentBlock::Thinking { text, signature: None });
        }
        if !self.text.is_empty() {
            message.content.push(ContentBlock::text(std::mem::take(&mut self.text)));
        }
        let whole = reason != FinishReason::Length;
        let calls = std::mem::take(&mut self.calls).into_calls();
        message.tool_calls = calls
            .into_iter()
            .enumerate()
            .map(|(position, call)| call.read(&self.names, format!("{}{position}", self.call_prefix), whole))
            .collect();
        // Servers say `stop` beside calls and `tool_calls` without any: what is there decides.
        if self.refused {
            reason = FinishReason::Refusal;
        } else if reason == FinishReason::Stop && !message.tool_calls.is_empty() {
            reason = FinishReason::ToolCalls;
        } else if reason == FinishReason::ToolCalls && message.tool_calls.is_empty() {
            reason = FinishReason::Stop;
        }
        Ok(Completion { message, finish_reason: reason, usage: self.usage, model: self.model.take() })
    }
}

/// The reason behind a server's word for it.
fn finish_reason(word: &str) -> FinishReason {
    match word.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "end_turn" | "eos_token" | "stop_sequence" => FinishReason::Stop,
        "length" | "max_tokens" | "max_output_tokens" => FinishReason::Length,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "content_filter" | "safety" | "sensitive" => FinishReason::ContentFilter,
        "refusal" => FinishReason::Refusal,
        _ => FinishReason::Other(word.to_owned()),
    }
}

/// The tokens that an object tells of; none where it tells nothing.
fn usage(value: &Value) -> Option<Usage> {
    let number = |path: &str| value.pointer(path).and_then(Value::as_u64);
    let input = number("/prompt_tokens").or_else(|| number("/input_tokens"));
    let output = number("/completion_tokens").or_else(|| number("/output_tokens"));
    if input.is_none() && output.is_none() {
        return None;
    }
    Some(Usage {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        cache_read: number("/prompt_tokens_details/cached_tokens")
            .or_else(|| number("/prompt_cache_hit_tokens"))
            .or_else(|| number("/cached_tokens"))
            .unwrap_or(0),
        cache_write: number("/prompt_tokens_details/cache_write_tokens").unwrap_or(0),
        reasoning: number("/completion_tokens_details/reasoning_tokens")
            .or_else(|| number("/reasoning_tokens"))
            .unwrap_or(0),
    })
}
