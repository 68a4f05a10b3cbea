//! A completion out of Responses events, or out of one whole response.
//!
//! Decides what the events mean and how a response ends: completed, incomplete (which is a reply that
//! was cut off, and no success), failed.

use std::collections::VecDeque;
use std::sync::Arc;

use core_protocol::native::OpenAiResponses;
use core_protocol::{Completion, FinishReason, Message, Role, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::items::{Content, ItemRef, ItemTable, News, word};
use crate::engine::ReplyContext;
use crate::lenient_json::{Number, Text};
use crate::native_call::{CallReader, RawCall};
use crate::sse::SseEvent;
use crate::usage::WireUsage;
use crate::wire::{Assembler, check_error, event_json};
use crate::{LlmError, StreamEvent};

/// What most events of a stream are: a piece of an item.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Piece<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    item_id: Text<'a>,
    output_index: Number,
    #[serde(borrow)]
    delta: Text<'a>,
    error: Option<Value>,
}

/// Gathers a reply.
pub(crate) struct ReplyAssembler {
    context: ReplyContext,
    items: ItemTable,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    model: Option<String>,
    started: bool,
}

impl ReplyAssembler {
    pub(super) fn new(context: ReplyContext) -> Self {
        Self { context, items: ItemTable::default(), finish: None, usage: None, model: None, started: false }
    }

    /// Takes a piece in. Whether it was one.
    fn piece(&mut self, piece: &Piece<'_>, out: &mut VecDeque<StreamEvent>) -> bool {
        let of = ItemRef { id: piece.item_id.or_empty(), index: piece.output_index.0 };
        let delta = piece.delta.or_empty();
        let is_message = |content: &Content| matches!(content, Content::Message { .. });
        let new_message = || Content::Message { text: String::new(), refused: false };
        match piece.kind.or_empty() {
            "response.output_text.delta" => {
                if let Some(Content::Message { text, .. }) = self.items.content(of, is_message, new_message) {
                    text.push_str(delta);
                }
                out.push_back(StreamEvent::TextDelta(delta.to_owned()));
            }
            "response.refusal.delta" => {
                if let Some(Content::Message { text, refused }) =
                    self.items.content(of, is_message, new_message)
                {
                    text.push_str(delta);
                    *refused = true;
                }
                out.push_back(StreamEvent::TextDelta(delta.to_owned()));
            }
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                self.think(of, delta, out);
            }
            "response.function_call_arguments.delta" => {
                let is_call = |content: &Content| matches!(content, Content::Call(_));
                if let Some(Content::Call(call)) =
                    self.items.content(of, is_call, || Content::Call(RawCall::default()))
                {
                    call.arguments.push_str(delta);
                }
                out.push_back(StreamEvent::Progress);
            }
            _ => return false,
        }
        self.started = true;
        true
    }

    fn think(&mut self, of: ItemRef<'_>, delta: &str, out: &mut VecDeque<StreamEvent>) {
        let is_reasoning = |content: &Content| matches!(content, Content::Reasoning { .. });
        let new = || Content::Reasoning { text: String::new(), item: None };
        if let Some(Content::Reasoning { text, .. }) = self.items.content(of, is_reasoning, new) {
            text.push_str(delta);
        }
        out.push_back(StreamEvent::ThinkingDelta(delta.to_owned()));
    }

    /// Any other event.
    fn milestone(
        &mut self,
        kind: &str,
        event: &Value,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), LlmError> {
        let empty = Value::Null;
        let field = |name: &str| event.get(name).unwrap_or(&empty);
        let index = field("output_index").as_u64();
        match kind {
            "response.output_item.added" => {
                self.started = true;
                self.items.begin(index, field("item"));
                out.push_back(StreamEvent::Progress);
            }
            "response.output_item.done" => {
                self.started = true;
                let news = self.items.finish(index, field("item"));
                tell(news, out);
            }
            "response.function_call_arguments.done" => {
                let item = json!({
                    "type": "function_call",
                    "id": field("item_id"),
                    "name": field("name"),
                    "arguments": field("arguments"),
                });
                self.finish_arguments(index, &item);
                out.push_back(StreamEvent::Progress);
            }
            // A further part of a summary is a paragraph of its own.
            "response.reasoning_summary_part.added" if field("summary_index").as_u64() > Some(0) => {
                self.think(ItemRef { id: word(event, "item_id"), index }, "\n\n", out);
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.done"
            | "response.cancelled" => self.end(field("response"), kind, out)?,
            // `response.created` and the like say only that the server is there; later versions may say more.
            _ => {
                if self.model.is_none() {
                    self.model =
                        Some(word(field("response"), "model").to_owned()).filter(|model| !model.is_empty());
                }
            }
        }
        Ok(())
    }

    /// The whole arguments of a call that has begun; its ids are told elsewhere.
    fn finish_arguments(&mut self, index: Option<u64>, item: &Value) {
        let of = ItemRef { id: word(item, "id"), index };
        let is_call = |content: &Content| matches!(content, Content::Call(_));
        let call = self.items.content(of, is_call, || Content::Call(RawCall::default()));
        let Some(Content::Call(call)) = call else { return };
        if call.name.is_empty() {
            word(item, "name").clone_into(&mut call.name);
        }
        let arguments = word(item, "arguments");
        if !arguments.is_empty() {
            arguments.clone_into(&mut call.arguments);
        }
    }

    /// The response, which is over. `kind`: the event that says so.
    fn end(&mut self, response: &Value, kind: &str, out: &mut VecDeque<StreamEvent>) -> Result<(), LlmError> {
        let status = match word(response, "status") {
            "" => kind.rsplit('.').next().unwrap_or_default(),
            status => status,
        };
        if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
            check_error(&self.context.http, &json!({ "error": error }), true)?;
        }
        if let Some(output) = response.get("output").and_then(Value::as_array) {
            self.started |= !output.is_empty();
            for news in self.items.finish_all(output) {
                tell(Some(news), out);
            }
        }
        self.usage =
            response.get("usage").and_then(|usage| WireUsage::deserialize(usage).ok()?.read()).or(self.usage);
        if let Some(model) = response.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()) {
            self.model = Some(model.to_owned());
        }
        let why = word(response.get("incomplete_details").unwrap_or(&Value::Null), "reason");
        self.finish = Some(match (status, why) {
            ("completed" | "done", _) => FinishReason::Stop,
            ("incomplete", "" | "max_output_tokens" | "max_tokens" | "length") => FinishReason::Length,
            ("incomplete", "content_filter") => FinishReason::ContentFilter,
            ("incomplete", other) => FinishReason::Other(other.to_owned()),
            (other, _) => {
                let detail = format!("the server ended the response as `{other}`");
                let endpoint = Arc::clone(self.context.http.endpoint());
                return Err(LlmError::Server { endpoint, status: None, retry_after: None, detail });
            }
        });
        Ok(())
    }
}

fn tell(news: Option<News>, out: &mut VecDeque<StreamEvent>) {
    out.push_back(match news {
        Some(News::Text(text)) => StreamEvent::TextDelta(text),
        Some(News::Thinking(text)) => StreamEvent::ThinkingDelta(text),
        None => StreamEvent::Progress,
    });
}

impl Assembler for ReplyAssembler {
    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<StreamEvent>) -> Result<(), LlmError> {
        if let Ok(piece) = serde_json::from_str::<Piece<'_>>(event.data)
            && piece.error.is_none()
            && self.piece(&piece, out)
        {
            return Ok(());
        }
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let value = event_json(&self.context.http, event)?;
        let kind = match word(&value, "type") {
            "" => event.event,
            kind => kind,
        };
        if self.piece(&Piece::deserialize(&value).unwrap_or_default(), out) {
            return Ok(());
        }
        self.milestone(kind, &value, out)
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn whole(&mut self, body: &Value, out: &mut VecDeque<StreamEvent>) -> Result<(), LlmError> {
        check_error(&self.context.http, body, false)?;
        if body.get("output").and_then(Value::as_array).is_none() && body.get("status").is_none() {
            let endpoint = Arc::clone(self.context.http.endpoint());
            return Err(LlmError::Malformed { endpoint, detail: "there is no output in it".to_owned() });
        }
        self.end(body, "response.completed", out)
    }

    fn finish(&mut self, _: &mut VecDeque<StreamEvent>) -> Result<Completion, LlmError> {
        let endpoint = Arc::clone(self.context.http.endpoint());
        let Some(finish) = self.finish.take() else {
            let detail = if self.started {
                "it ended without the end of the response"
            } else {
                "it ended before the model said anything"
            };
            return Err(LlmError::StreamBroken { endpoint, detail: detail.to_owned() });
        };
        if self.items.is_empty() && finish == FinishReason::Stop {
            return Err(LlmError::Malformed { endpoint, detail: "there is no output in it".to_owned() });
        }
        let reader = CallReader {
            shape: &OpenAiResponses,
            tools: &self.context.tools,
            id_prefix: &self.context.call_prefix,
            whole: finish == FinishReason::Stop,
        };
        let items = std::mem::take(&mut self.items);
        let (message, declined) = items.into_message(&reader, Message::new(Role::Assistant, Vec::new()));
        let finish_reason = match finish {
            FinishReason::Stop if declined => FinishReason::Refusal,
            FinishReason::Stop if !message.tool_calls.is_empty() => FinishReason::ToolCalls,
            other => other,
        };
        Ok(Completion { message, finish_reason, usage: self.usage, model: self.model.take() })
    }
}
