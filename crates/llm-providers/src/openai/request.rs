//! The body of a chat-completions request.
//!
//! Decides how messages, tools and parameters are spelled for one server, by its habits.

use core_protocol::native::{NativeShape, OpenAiChat};
use core_protocol::{ContentBlock, MediaSource, Message, Role};
use serde_json::{Map, Value, json};

use super::ChatCompletions;
use super::calls::EXTRA_CONTENT;
use crate::history::{NO_RESULT, Turn, note, pair, text_of};
use crate::native_call::replayed;
use crate::proof::{REASONING_DETAILS, open};
use crate::quirks::{AssistantPrefix, SendReasoning};
use crate::sampling::overlay;
use crate::{ChatRequest, tool_schema};

impl ChatCompletions {
    /// The body.
    pub(super) fn request_body(&self, request: &ChatRequest) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(self.shape.model));
        body.insert("messages".into(), Value::Array(self.messages(request)));
        if !request.tools.is_empty() {
            body.insert("tools".into(), Value::Array(tool_schema::render(&OpenAiChat, &request.tools)));
        }
        let limit = request.max_tokens.unwrap_or(self.shape.max_tokens);
        body.insert(
            self.shape.quirks.max_tokens_field.as_deref().unwrap_or("max_tokens").into(),
            json!(limit),
        );
        let streams = self.shape.quirks.stream.unwrap_or(true);
        body.insert("stream".into(), json!(streams));
        if streams && self.shape.quirks.stream_usage.unwrap_or(true) {
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
        if request.continue_final_message
            && self.shape.quirks.assistant_prefix == Some(AssistantPrefix::ContinueFinalMessage)
        {
            body.insert("continue_final_message".into(), json!(true));
            // Its default is true, and both true are refused.
            body.insert("add_generation_prompt".into(), json!(false));
        }
        if let Some(tags) = self.shape.stop_tags {
            body.insert("stop".into(), json!(tags.sequences()));
        }
        overlay(&mut body, &self.shape.sampling);
        if let Some(fields) = &self.shape.quirks.extra_body {
            overlay(&mut body, fields);
        }
        overlay(&mut body, &self.shape.extra_body);
        if let Some(fields) = self.shape.quirks.with_stop.as_ref().filter(|_| body.contains_key("stop")) {
            for (name, value) in fields {
                body.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        body
    }

    fn messages(&self, request: &ChatRequest) -> Vec<Value> {
        let mut messages = Vec::with_capacity(request.messages.len() + 1);
        if !request.system.is_empty() {
            messages.push(said("system", request.system.to_string()));
        }
        for turn in pair(&request.messages) {
            match turn {
                Turn::Plain(message) => messages.push(self.plain(message)),
                Turn::Stray(message) => messages.push(said("user", text_of(&message.content))),
                Turn::Calls(reply, results) => {
                    messages.push(self.assistant(reply));
                    let mut media = Vec::new();
                    for (call, result) in reply.tool_calls.iter().zip(results) {
                        let content = result.map_or_else(|| NO_RESULT.to_owned(), |r| self.result_text(r));
                        messages.push(OpenAiChat.render_result(&call.id, &content, false));
                        media.extend(result.into_iter().flat_map(|result| self.media(&result.content)));
                    }
                    // Tool messages hold text only; what is to be seen follows in a user message.
                    if !media.is_empty() {
                        messages.push(json!({"role": "user", "content": media}));
                    }
                }
            }
        }
        if request.continue_final_message {
            let field = match self.shape.quirks.assistant_prefix {
                Some(AssistantPrefix::PrefixField) => Some("prefix"),
                Some(AssistantPrefix::PartialField) => Some("partial"),
                _ => None,
            };
            if let (Some(field), Some(Value::Object(last))) = (field, messages.last_mut()) {
                last.insert(field.into(), json!(true));
            }
        }
        messages
    }

    fn plain(&self, message: &Message) -> Value {
        match message.role {
            Role::Assistant => self.assistant(message),
            Role::System => said("system", text_of(&message.content)),
            Role::User | Role::Tool => {
                if self.media(&message.content).is_empty() {
                    return said("user", text_of(&message.content));
                }
                let parts: Vec<Value> =
                    message.content.iter().filter_map(|block| self.user_part(block)).collect();
                json!({"role": "user", "content": parts})
            }
        }
    }

    fn assistant(&self, message: &Message) -> Value {
        let text = message.joined_text();
        let has_calls = !message.tool_calls.is_empty();
        let mut spelled = Map::new();
        spelled.insert("role".into(), json!("assistant"));
        let content = if text.is_empty() && has_calls { Value::Null } else { Value::String(text) };
        spelled.insert("content".into(), content);
        let send = match self.shape.quirks.send_reasoning.unwrap_or_default() {
            SendReasoning::Never => false,
            SendReasoning::WithToolCalls => has_calls,
            SendReasoning::Always => true,
        };
        let details = self.details(message);
        let thinking = message.joined_thinking();
        if !details.is_empty() {
            spelled.insert(REASONING_DETAILS.into(), Value::Array(details));
        } else if send && !thinking.is_empty() {
            let field = self.shape.quirks.reasoning_field.as_deref().unwrap_or("reasoning_content");
            spelled.insert(field.into(), Value::String(thinking));
        }
        if has_calls {
            let calls = message.tool_calls.iter();
            let calls = calls.map(|call| replayed(&OpenAiChat, call, &call.id, &[EXTRA_CONTENT]));
            spelled.insert("tool_calls".into(), calls.collect());
        }
        Value::Object(spelled)
    }

    /// Thinking in the form in which it came, where the server wants it so.
    fn details(&self, message: &Message) -> Vec<Value> {
        if self.shape.quirks.reasoning_details != Some(true) {
            return Vec::new();
        }
        let kept = message.content.iter().filter_map(|block| open(REASONING_DETAILS, block));
        kept.filter_map(|details| match details {
            Value::Array(details) => Some(details),
            _ => None,
        })
        .flatten()
        .collect()
    }

    fn result_text(&self, result: &Message) -> String {
        let mut text = String::new();
        for block in &result.content {
            let line = match (block, self.media_part(block)) {
                (ContentBlock::Text { text }, _) => text.clone(),
                (_, Some(_)) => "[shown in the next message]".to_owned(),
                (other, None) => note(other).unwrap_or_default(),
            };
            if !text.is_empty() && !line.is_empty() {
                text.push('\n');
            }
            text.push_str(&line);
        }
        text
    }

    fn media(&self, blocks: &[ContentBlock]) -> Vec<Value> {
        blocks.iter().filter_map(|block| self.media_part(block)).collect()
    }

    fn user_part(&self, block: &ContentBlock) -> Option<Value> {
        match block {
            ContentBlock::Text { text } => Some(json!({"type": "text", "text": text})),
            other => self
                .media_part(other)
                .or_else(|| note(other).map(|text| json!({"type": "text", "text": text}))),
        }
    }

    /// A picture, a recording or a video, where the server takes it.
    fn media_part(&self, block: &ContentBlock) -> Option<Value> {
        match block {
            ContentBlock::Image { source } if self.shape.quirks.images == Some(true) => {
                Some(json!({"type": "image_url", "image_url": {"url": address(source)}}))
            }
            ContentBlock::Video { source } if self.shape.quirks.video == Some(true) => {
                Some(json!({"type": "video_url", "video_url": {"url": address(source)}}))
            }
            ContentBlock::Audio { source: MediaSource::Base64 { media_type, data } }
                if self.shape.quirks.audio == Some(true) =>
            {
                let format = match media_type.as_str() {
                    "audio/mpeg" | "audio/mp3" => "mp3",
                    other => other.rsplit(['/', '-']).next().unwrap_or(other),
                };
                Some(json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}))
            }
            _ => None,
        }
    }
}

/// The address of media; one that holds them where they are at hand.
fn address(source: &MediaSource) -> String {
    match source {
        MediaSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
        MediaSource::Url { url } => url.clone(),
    }
}

/// A message of text. Built without the macro, which would copy the text once more.
fn said(role: &str, text: String) -> Value {
    Value::Object(Map::from_iter([
        ("role".to_owned(), Value::from(role)),
        ("content".to_owned(), Value::String(text)),
    ]))
}
