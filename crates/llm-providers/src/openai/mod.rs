//! The engine for OpenAI's chat completions and for everything that is compatible with them.
//!
//! Decides what such a server can do, and where its thinking is its answer. Habits of the many servers are data
//! ([`Quirks`](crate::Quirks)), not branches on names.

mod calls;
mod chunk;
mod details;
mod reply;
mod request;

use core_protocol::Role;
use serde_json::{Map, Value};

use crate::engine::{EngineSettings, Format, HttpProvider, ReplyContext, RequestShape};
use crate::quirks::AssistantPrefix;
use crate::{Capabilities, ChatRequest, LlmError};

/// How a chat-completions endpoint is spoken to.
#[derive(Debug)]
pub(crate) struct ChatCompletions {
    shape: RequestShape,
}

impl ChatCompletions {
    pub(crate) fn provider(settings: &EngineSettings) -> Result<HttpProvider<Self>, LlmError> {
        let quirks = &settings.quirks;
        let prefix = quirks.assistant_prefix.unwrap_or_default();
        let capabilities = Capabilities {
            native_tools: quirks.native_tools.unwrap_or(true),
            assistant_prefix: prefix != AssistantPrefix::None,
            images: quirks.images.unwrap_or(false),
            audio: quirks.audio.unwrap_or(false),
            video: quirks.video.unwrap_or(false),
            thinking: quirks.thinking.unwrap_or(false),
            context_length: settings.context_length,
        };
        let format = Self { shape: settings.shape() };
        HttpProvider::new(settings, settings.http("/chat/completions"), capabilities, format)
    }
}

impl Format for ChatCompletions {
    type Assembler = reply::ReplyAssembler;

    fn body(&self, request: &ChatRequest) -> Map<String, Value> {
        self.request_body(request)
    }

    fn assembler(
        &self,
        request: &ChatRequest,
        body: &Map<String, Value>,
        context: ReplyContext,
    ) -> Self::Assembler {
        let thinking = reply::Thinking {
            is_text: thinking_is_off(body) || closes_thinking(request),
            keep_details: self.shape.quirks.reasoning_details == Some(true),
        };
        reply::ReplyAssembler::new(context, thinking)
    }
}

/// Whether a body tells the model not to think, in one of the ways that servers have for it. Some put
/// the whole answer into the field for thinking then.
fn thinking_is_off(body: &Map<String, Value>) -> bool {
    let says = |path: &[&str], word: &Value| {
        let mut fields = path.iter();
        let first = fields.next().and_then(|name| body.get(*name));
        fields.fold(first, |value, name| value?.get(*name)) == Some(word)
    };
    says(&["chat_template_kwargs", "enable_thinking"], &Value::Bool(false))
        || says(&["chat_template_kwargs", "thinking"], &Value::Bool(false))
        || says(&["enable_thinking"], &Value::Bool(false))
        || says(&["thinking", "type"], &Value::from("disabled"))
}

/// Whether a request ends in a beginning that closes the thinking.
fn closes_thinking(request: &ChatRequest) -> bool {
    let last = request.messages.last().filter(|last| last.role == Role::Assistant);
    request.continue_final_message && last.is_some_and(|last| last.joined_text().contains("</think>"))
}
