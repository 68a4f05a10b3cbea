//! A completion out of Messages events, or out of one whole message.
//!
//! Decides how content blocks are put together: fragments of a call's input are joined and read once
//! at the block's end, thinking keeps its signature, thinking without one is dropped from what is sent
//! back later (it stays in the log). The stream ends at `message_stop`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use core_protocol::native::AnthropicBlocks;
use core_protocol::{Completion, ContentBlock, FinishReason, Message, Role, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::ReplyContext;
use crate::lenient_json::{Number, Object, Text};
use crate::native_call::{CallReader, RawCall};
use crate::sse::SseEvent;
use crate::wire::{Assembler, check_error, event_json};
use crate::{LlmError, StreamEvent};

/// What most events of a stream are: a piece of a content block.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BlockDelta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    index: Number,
    #[serde(borrow)]
    delta: Object<Delta<'a>>,
    error: Option<Value>,
}

/// The piece itself; the field that holds it depends on its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    #[serde(borrow)]
    signature: Text<'a>,
    #[serde(borrow)]
    partial_json: Text<'a>,
}

/// A content block while it grows.
enum Block {
    Text(String),
    Thinking { text: String, signature: String },
    Redacted(String),
    Call(RawCall),
    Other,
}

/// Gathers a reply.
pub(crate) struct ReplyAssembler {
    context: ReplyContext,
    blocks: BTreeMap<u64, Block>,
    stop: Option<String>,
    /// The stop sequence at which the reply ended.
    stopped_at: Option<String>,
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
    pub(super) fn new(context: ReplyContext) -> Self {
        Self {
            context,
            blocks: BTreeMap::new(),
            stop: None,
            stopped_at: None,
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
                    ..RawCall::default()
                })
            }
            _ => Block::Other,
        };
        self.blocks.insert(index, grown);
        out.push_back(StreamEvent::Progress);
    }

    fn block_delta(&mut self, index: u64, delta: &Delta<'_>, out: &mut VecDeque<StreamEvent>) {
        match (delta.kind.or_empty(), self.blocks.get_mut(&index)) {
            ("text_delta", Some(Block::Text(grown))) => {
                grown.push_str(delta.text.or_empty());
                out.push_back(StreamEvent::TextDelta(delta.text.or_empty().to_owned()));
            }
            ("thinking_delta", Some(Block::Thinking { text: grown, .. })) => {
                grown.push_str(delta.thinking.or_empty());
                out.push_back(StreamEvent::ThinkingDelta(delta.thinking.or_empty().to_owned()));
            }
            ("signature_delta", Some(Block::Thinking { signature, .. })) => {
                signature.push_str(delta.signature.or_empty());
                out.push_back(StreamEvent::Progress);
            }
            ("input_json_delta", Some(Block::Call(call))) => {
                call.arguments.push_str(delta.partial_json.or_empty());
                out.push_back(StreamEvent::Progress);
            }
            _ => {}
        }
    }

    fn take_stop(&mut self, message: &Value) {
        let word = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
        self.stop = word("stop_reason").or(self.stop.take());
        self.stopped_at = word("stop_sequence").or(self.stopped_at.take());
    }

    /// Puts a closing tag back that the server took out of the end of the text.
    fn mend_end(&mut self, out: &mut VecDeque<StreamEvent>) {
        let Some(tags) = self.context.stop_tags else { return };
        let texts = self.blocks.values_mut().filter_map(|block| match block {
            Block::Text(text) => Some(text),
            _ => None,
        });
        if let Some(text) = texts.last()
            && let Some(tag) = tags.missing(text, self.stopped_at.as_deref())
        {
            text.push_str(tag);
            out.push_back(StreamEvent::TextDelta(tag.to_owned()));
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
        if let Ok(BlockDelta { kind, index, delta: Object(Some(delta)), error: None }) =
            serde_json::from_str(event.data)
            && kind.get() == Some("content_block_delta")
        {
            self.block_delta(index.0.unwrap_or(0), &delta, out);
            return Ok(());
        }
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let value = event_json(&self.context.http, event)?;
        let index = value.get("index").and_then(Value::as_u64).unwrap_or(0);
        let empty = Value::Null;
        let field = |name: &str| value.get(name).unwrap_or(&empty);
        match value.get("type").and_then(Value::as_str).unwrap_or(event.event) {
            "message_start" => self.message_start(field("message")),
            "content_block_start" => self.block_start(index, field("content_block"), out),
            "content_block_delta" => {
                self.block_delta(index, &Delta::deserialize(field("delta")).unwrap_or_default(), out);
            }
            "message_delta" => {
                self.usage.take(value.get("usage"));
                self.take_stop(field("delta"));
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
        check_error(&self.context.http, body, false)?;
        let Some(content) = body.get("content").and_then(Value::as_array) else {
            let endpoint = Arc::clone(self.context.http.endpoint());
            return Err(LlmError::Malformed { endpoint, detail: "there is no content in it".to_owned() });
        };
        self.message_start(body);
        for (index, block) in (0..).zip(content) {
            self.block_start(index, block, out);
        }
        self.take_stop(body);
        self.done = true;
        Ok(())
    }

    fn finish(&mut self, out: &mut VecDeque<StreamEvent>) -> Result<Completion, LlmError> {
        let endpoint = Arc::clone(self.context.http.endpoint());
        if !self.started {
            return Err(self.broken("it ended before the model said anything"));
        }
        if !self.done && self.stop.is_none() {
            return Err(self.broken("it ended without a stop reason"));
        }
        let stop = self.stop.take().unwrap_or_default();
        if finish_reason(&stop) == FinishReason::Stop {
            self.mend_end(out);
        }
        let blocks = std::mem::take(&mut self.blocks);
        if stop == "model_context_window_exceeded" && blocks.is_empty() {
            let detail = "the window was full before the first token".to_owned();
            return Err(LlmError::ContextExceeded { endpoint, prompt_tokens: None, limit: None, detail });
        }
        let mut reason = finish_reason(&stop);
        let reader = CallReader {
            shape: &AnthropicBlocks,
            tools: &self.context.tools,
            id_prefix: &self.context.call_prefix,
            whole: reason != FinishReason::Length,
        };
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
                    let call = reader.read(message.tool_calls.len(), call, |call| {
                        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
                    });
                    message.tool_calls.push(call);
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
