//! The body of a Messages request.
//!
//! Decides how a history becomes alternating turns: all results of a turn stand in one user message,
//! before any text; thinking goes back only with its signature, unchanged; empty texts are left out.

use core_protocol::native::AnthropicBlocks;
use core_protocol::{ContentBlock, MediaSource, Message, Role};
use serde_json::{Map, Value, json};

use super::{Messages, cache};
use crate::history::{NO_RESULT, Turn, note, pair};
use crate::native_call::replayed;
use crate::proof::is_sealed;
use crate::sampling::overlay;
use crate::{ChatRequest, tool_schema};

/// Parameters that are refused while the model thinks.
const REFUSED_WITH_THINKING: &[&str] = &["temperature", "top_p", "top_k"];

/// Content of one side until the other side speaks.
struct Side {
    role: &'static str,
    content: Vec<Value>,
}

impl Messages {
    /// Whether the configuration switches thinking on.
    pub(super) fn thinks(&self) -> bool {
        let fields = [Some(&self.shape.extra_body), self.shape.quirks.extra_body.as_ref()];
        let thinking = fields.into_iter().flatten().find_map(|fields| fields.get("thinking"));
        let kind = thinking.and_then(|thinking| thinking.get("type")).and_then(Value::as_str);
        matches!(kind, Some("enabled" | "adaptive"))
    }

    /// The body.
    pub(super) fn request_body(&self, request: &ChatRequest) -> Map<String, Value> {
        let mut tools = tool_schema::render(&AnthropicBlocks, &request.tools);
        let mut system = Vec::new();
        if !request.system.trim().is_empty() {
            system.push(json!({"type": "text", "text": &*request.system}));
        }
        let mut sides = self.sides(request);
        if request.continue_final_message {
            trim_prefix(&mut sides);
        }
        let mut messages: Vec<Value> =
            sides.into_iter().map(|side| json!({"role": side.role, "content": side.content})).collect();
        if self.shape.quirks.prompt_cache.unwrap_or(true) {
            cache::mark(&mut tools, &mut system, &mut messages, self.shape.quirks.cache_ttl.as_deref());
        }

        let mut body = Map::new();
        body.insert("model".into(), json!(self.shape.model));
        body.insert("max_tokens".into(), json!(request.max_tokens.unwrap_or(self.shape.max_tokens)));
        if !tools.is_empty() {
            body.insert("tools".into(), Value::Array(tools));
        }
        if !system.is_empty() {
            body.insert("system".into(), Value::Array(system));
        }
        body.insert("messages".into(), Value::Array(messages));
        body.insert("stream".into(), json!(self.shape.quirks.stream.unwrap_or(true)));
        if let Some(tags) = self.shape.stop_tags {
            body.insert("stop_sequences".into(), json!(tags.sequences()));
        }
        overlay(&mut body, &self.shape.sampling);
        if self.thinks() {
            for refused in REFUSED_WITH_THINKING {
                body.shift_remove(*refused);
            }
        }
        if let Some(fields) = &self.shape.quirks.extra_body {
            overlay(&mut body, fields);
        }
        overlay(&mut body, &self.shape.extra_body);
        body
    }

    fn sides(&self, request: &ChatRequest) -> Vec<Side> {
        let mut sides: Vec<Side> = Vec::new();
        let mut add = |role: &'static str, content: Vec<Value>| {
            if content.is_empty() {
                return;
            }
            match sides.last_mut() {
                Some(side) if side.role == role => side.content.extend(content),
                _ => sides.push(Side { role, content }),
            }
        };
        for turn in pair(&request.messages) {
            match turn {
                Turn::Plain(message) if message.role == Role::Assistant => {
                    add("assistant", assistant_content(message));
                }
                Turn::Plain(message) | Turn::Stray(message) => add("user", self.blocks(&message.content)),
                Turn::Calls(reply, results) => {
                    add("assistant", assistant_content(reply));
                    let results = reply.tool_calls.iter().zip(results).map(|(call, result)| {
                        let content = match result {
                            Some(result) => self.blocks(&result.content),
                            None => vec![json!({"type": "text", "text": NO_RESULT})],
                        };
                        json!({"type": "tool_result", "tool_use_id": wire_id(&call.id), "content": content})
                    });
                    add("user", results.collect());
                }
            }
        }
        sides
    }

    fn blocks(&self, blocks: &[ContentBlock]) -> Vec<Value> {
        blocks.iter().filter_map(|block| self.block(block)).collect()
    }

    /// A block of a user message or of a result.
    fn block(&self, block: &ContentBlock) -> Option<Value> {
        match block {
            ContentBlock::Text { text } => text_block(text),
            ContentBlock::Image { source } if self.shape.quirks.images == Some(true) => {
                let source = match source {
                    MediaSource::Base64 { media_type, data } => {
                        json!({"type": "base64", "media_type": media_type, "data": data})
                    }
                    MediaSource::Url { url } => json!({"type": "url", "url": url}),
                };
                Some(json!({"type": "image", "source": source}))
            }
            other => note(other).map(|text| json!({"type": "text", "text": text})),
        }
    }
}

fn assistant_content(message: &Message) -> Vec<Value> {
    let mut content: Vec<Value> = message
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text { text } => text_block(text),
            // Without its signature the server cannot tell whose it is, and refuses it; so it does another
            // provider's.
            ContentBlock::Thinking { text, signature } => signature
                .as_ref()
                .filter(|signature| !is_sealed(signature))
                .map(|signature| json!({"type": "thinking", "thinking": text, "signature": signature})),
            ContentBlock::RedactedThinking { data } => {
                Some(json!({"type": "redacted_thinking", "data": data}))
            }
            ContentBlock::Image { .. }
            | ContentBlock::Audio { .. }
            | ContentBlock::Video { .. }
            | ContentBlock::File { .. } => note(block).map(|text| json!({"type": "text", "text": text})),
        })
        .collect();
    let calls = message.tool_calls.iter();
    content.extend(calls.map(|call| replayed(&AnthropicBlocks, call, &wire_id(&call.id), &[])));
    content
}

/// A text; one of blanks only is refused and left out.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// A prefix must not end in blanks.
fn trim_prefix(sides: &mut [Side]) {
    let last =
        sides.last_mut().filter(|side| side.role == "assistant").and_then(|side| side.content.last_mut());
    if let Some(Value::String(text)) = last.and_then(|block| block.get_mut("text")) {
        text.truncate(text.trim_end().len());
    }
}

/// An id as the server takes it: other providers' ids may hold other characters.
fn wire_id(id: &str) -> String {
    let safe: String = id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .collect();
    if safe.is_empty() { "call".to_owned() } else { safe }
}
