//! The body of a Responses request.
//!
//! Decides how a history becomes input items: results stand right behind the calls of their turn and are
//! paired with them by call id, an item's own id is never sent back, thinking goes back where it is
//! encrypted, in the place in which it stood.

use core_protocol::native::{NativeShape, OpenAiResponses};
use core_protocol::{ContentBlock, MediaSource, Message, Role};
use serde_json::{Map, Value, json};

use super::Responses;
use super::items::REASONING_BEFORE;
use crate::history::{NO_RESULT, Turn, note, pair, text_of};
use crate::native_call::replayed;
use crate::proof::{REASONING_ITEM, open};
use crate::quirks::SendReasoning;
use crate::sampling::overlay;
use crate::{ChatRequest, tool_schema};

impl Responses {
    /// The body.
    pub(super) fn request_body(&self, request: &ChatRequest) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(self.shape.model));
        if !request.system.is_empty() {
            body.insert("instructions".into(), json!(&*request.system));
        }
        body.insert("input".into(), Value::Array(self.input(request)));
        if !request.tools.is_empty() {
            body.insert("tools".into(), Value::Array(tool_schema::render(&OpenAiResponses, &request.tools)));
        }
        body.insert("max_output_tokens".into(), json!(request.max_tokens.unwrap_or(self.shape.max_tokens)));
        body.insert("stream".into(), json!(self.shape.quirks.stream.unwrap_or(true)));
        body.insert("store".into(), json!(false));
        if self.shape.quirks.encrypted_reasoning == Some(true) {
            body.insert("include".into(), json!(["reasoning.encrypted_content"]));
        }
        overlay(&mut body, &self.shape.sampling);
        if let Some(fields) = &self.shape.quirks.extra_body {
            overlay(&mut body, fields);
        }
        overlay(&mut body, &self.shape.extra_body);
        body
    }

    fn input(&self, request: &ChatRequest) -> Vec<Value> {
        let mut input = Vec::with_capacity(request.messages.len());
        for turn in pair(&request.messages) {
            match turn {
                Turn::Plain(message) if message.role == Role::Assistant => {
                    self.assistant(message, &mut input)
                }
                Turn::Plain(message) | Turn::Stray(message) => {
                    let role = if message.role == Role::System { "system" } else { "user" };
                    input.push(said(role, self.content(&message.content)));
                }
                Turn::Calls(reply, results) => {
                    self.assistant(reply, &mut input);
                    for (call, result) in reply.tool_calls.iter().zip(results) {
                        input.push(self.result(&call.id, result));
                    }
                }
            }
        }
        input
    }

    fn assistant(&self, message: &Message, input: &mut Vec<Value>) {
        let send = match self.shape.quirks.send_reasoning.unwrap_or_default() {
            SendReasoning::Never => false,
            SendReasoning::WithToolCalls => !message.tool_calls.is_empty(),
            SendReasoning::Always => true,
        };
        for block in &message.content {
            match block {
                ContentBlock::Text { text } if !text.is_empty() => {
                    input.push(said("assistant", Value::String(text.clone())));
                }
                ContentBlock::Thinking { text, .. } => match open(REASONING_ITEM, block) {
                    Some(item) => input.push(item),
                    None if send && !text.is_empty() => input.push(json!({
                        "type": "reasoning",
                        "summary": [],
                        "content": [{"type": "reasoning_text", "text": text}],
                    })),
                    None => {}
                },
                other => {
                    input.extend(note(other).map(|note| said("assistant", Value::String(note))));
                }
            }
        }
        for call in &message.tool_calls {
            let before = call.provider_data.as_ref().and_then(|data| data.get(REASONING_BEFORE)?.as_array());
            input.extend(before.into_iter().flatten().cloned());
            input.push(replayed(&OpenAiResponses, call, &call.id, &[]));
        }
    }

    fn result(&self, call_id: &str, result: Option<&Message>) -> Value {
        let Some(result) = result else { return OpenAiResponses.render_result(call_id, NO_RESULT, false) };
        match self.content(&result.content) {
            Value::String(text) => OpenAiResponses.render_result(call_id, &text, false),
            parts => json!({"type": "function_call_output", "call_id": call_id, "output": parts}),
        }
    }

    /// Text as it is; a list of parts where there are pictures to be seen.
    fn content(&self, blocks: &[ContentBlock]) -> Value {
        if !blocks.iter().any(|block| self.picture(block).is_some()) {
            return Value::String(text_of(blocks));
        }
        blocks
            .iter()
            .filter_map(|block| {
                let text = |text: &str| json!({"type": "input_text", "text": text});
                match block {
                    ContentBlock::Text { text: said } => Some(text(said)),
                    other => self.picture(other).or_else(|| note(other).map(|note| text(&note))),
                }
            })
            .collect()
    }

    fn picture(&self, block: &ContentBlock) -> Option<Value> {
        match block {
            ContentBlock::Image { source } if self.shape.quirks.images == Some(true) => {
                let url = match source {
                    MediaSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
                    MediaSource::Url { url } => url.clone(),
                };
                Some(json!({"type": "input_image", "image_url": url, "detail": "auto"}))
            }
            _ => None,
        }
    }
}

fn said(role: &str, content: Value) -> Value {
    Value::Object(Map::from_iter([("role".to_owned(), Value::from(role)), ("content".to_owned(), content)]))
}
