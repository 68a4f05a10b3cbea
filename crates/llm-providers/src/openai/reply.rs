//! A completion out of chat-completion chunks, or out of one whole chat completion.
//!
//! Decides what counts as text, thinking, calls, usage and end, over all the places where servers put them.

use std::collections::VecDeque;
use std::sync::Arc;

use core_protocol::native::OpenAiChat;
use core_protocol::{Completion, ContentBlock, FinishReason, Message, Role, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::CallTable;
use super::chunk::{Chunk, Delta};
use super::details::DetailList;
use crate::engine::ReplyContext;
use crate::lenient_json::TextOr;
use crate::native_call::CallReader;
use crate::proof::{REASONING_DETAILS, seal};
use crate::sse::SseEvent;
use crate::wire::{Assembler, check_error, event_json};
use crate::{LlmError, StreamEvent};

/// Finish reasons by which a server says that it gave up, not the model.
const FAILED: &[&str] = &["error", "abort", "network_error"];

/// What the request says of thinking.
pub(super) struct Thinking {
    /// It is closed or switched off: what follows is text, wherever the server puts it.
    pub(super) is_text: bool,
    /// It is wanted back in the form in which it came.
    pub(super) keep_details: bool,
}

/// Gathers a reply.
pub(crate) struct ReplyAssembler {
    context: ReplyContext,
    thinking_asked: Thinking,
    text: String,
    thinking: String,
    details: DetailList,
    refused: bool,
    calls: CallTable,
    finish: Option<String>,
    stopped_at: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    saw_choice: bool,
    done: bool,
}

impl ReplyAssembler {
    pub(super) fn new(context: ReplyContext, thinking_asked: Thinking) -> Self {
        Self {
            context,
            thinking_asked,
            text: String::new(),
            thinking: String::new(),
            details: DetailList::default(),
            refused: false,
            calls: CallTable::default(),
            finish: None,
            stopped_at: None,
            usage: None,
            model: None,
            saw_choice: false,
            done: false,
        }
    }

    fn chunk(&mut self, mut chunk: Chunk<'_>, out: &mut VecDeque<StreamEvent>) {
        if self.model.is_none() {
            self.model = chunk.model.get().map(str::to_owned);
        }
        if let Some(usage) = chunk.usage() {
            self.usage = Some(usage);
        }
        let Some(choice) = chunk.take_choice() else { return };
        self.saw_choice = true;
        if let Some(finish) = choice.finish_reason.get() {
            self.finish = Some(finish.to_owned());
        }
        if let Some(sequence) = choice.stop_reason.get() {
            self.stopped_at = Some(sequence.to_owned());
        }
        let whole = choice.delta.0.is_none();
        if let Some(delta) = choice.delta.0.or(choice.message.0.map(|message| *message)) {
            self.delta(delta, whole, out);
        }
    }

    fn delta(&mut self, delta: Delta<'_>, whole: bool, out: &mut VecDeque<StreamEvent>) {
        match delta.thinking() {
            Some(thinking) => self.think(thinking, out),
            None => {
                for thinking in delta.reasoning_details.0.iter().filter_map(DetailList::text_of) {
                    self.think(thinking, out);
                }
            }
        }
        match &delta.content {
            TextOr::Text(text) => self.say(text, out),
            TextOr::Other(Value::Array(parts)) => {
                for part in parts {
                    self.part(part, out);
                }
            }
            TextOr::Absent | TextOr::Other(_) => {}
        }
        if let Some(refusal) = delta.refusal.get() {
            self.refused = true;
            self.say(refusal, out);
        }
        for call in delta.tool_calls.0 {
            self.calls.take(call);
            out.push_back(StreamEvent::Progress);
        }
        if self.thinking_asked.keep_details && !delta.reasoning_details.0.is_empty() {
            self.details.take(delta.reasoning_details.0, whole);
            out.push_back(StreamEvent::Progress);
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
        if self.thinking_asked.is_text {
            self.say(text, out);
        } else if !text.is_empty() {
            self.thinking.push_str(text);
            out.push_back(StreamEvent::ThinkingDelta(text.to_owned()));
        }
    }

    fn broken(&self, detail: &str) -> LlmError {
        LlmError::StreamBroken {
            endpoint: Arc::clone(self.context.http.endpoint()),
            detail: detail.to_owned(),
        }
    }
}

impl Assembler for ReplyAssembler {
    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<StreamEvent>) -> Result<(), LlmError> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        match serde_json::from_str::<Chunk<'_>>(event.data) {
            Ok(chunk) if chunk.is_plain() && event.event != "error" => self.chunk(chunk, out),
            _ => {
                let value = event_json(&self.context.http, event)?;
                // Only a list of another type fails here, and there is no reply in that.
                self.chunk(Chunk::deserialize(&value).unwrap_or_default(), out);
            }
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    fn whole(&mut self, body: &Value, out: &mut VecDeque<StreamEvent>) -> Result<(), LlmError> {
        check_error(&self.context.http, body, false)?;
        self.chunk(Chunk::deserialize(body).unwrap_or_default(), out);
        self.done = true;
        Ok(())
    }

    fn finish(&mut self, out: &mut VecDeque<StreamEvent>) -> Result<Completion, LlmError> {
        let endpoint = Arc::clone(self.context.http.endpoint());
        if !self.saw_choice {
            return Err(if self.done {
                LlmError::Malformed { endpoint, detail: "there is no choice in it".to_owned() }
            } else {
                self.broken("it ended before the model said anything")
            });
        }
        let finish = match (self.finish.take(), self.done) {
            (Some(finish), _) => finish,
            (None, true) => String::new(),
            (None, false) => return Err(self.broken("it ended without a finish reason")),
        };
        if FAILED.contains(&finish.as_str()) {
            let detail = format!("the server ended the reply with `{finish}`");
            return Err(LlmError::Server { endpoint, status: None, retry_after: None, detail });
        }
        let mut reason = finish_reason(&finish);
        if reason == FinishReason::Stop
            && let Some(tags) = self.context.stop_tags
            && let Some(tag) = tags.missing(&self.text, self.stopped_at.as_deref())
        {
            self.say(tag, out);
        }
        let mut message = Message::new(Role::Assistant, Vec::new());
        let details = std::mem::take(&mut self.details).into_values();
        if !self.thinking.is_empty() || !details.is_empty() {
            let text = std::mem::take(&mut self.thinking);
            let signature = (!details.is_empty()).then(|| seal(REASONING_DETAILS, Value::Array(details)));
            message.content.push(ContentBlock::Thinking { text, signature });
        }
        if !self.text.is_empty() {
            message.content.push(ContentBlock::text(std::mem::take(&mut self.text)));
        }
        let reader = CallReader {
            shape: &OpenAiChat,
            tools: &self.context.tools,
            id_prefix: &self.context.call_prefix,
            whole: reason != FinishReason::Length,
        };
        let calls = std::mem::take(&mut self.calls).into_calls();
        message.tool_calls = calls
            .into_iter()
            .enumerate()
            .map(|(position, call)| {
                reader.read(position, call, |call| {
                    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
                })
            })
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
