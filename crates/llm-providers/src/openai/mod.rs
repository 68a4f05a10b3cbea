//! The engine for OpenAI's chat completions and for everything that is compatible with them.
//!
//! Decides how a request becomes one HTTP exchange. Habits of the many servers are data
//! ([`Quirks`](crate::Quirks)), not branches on names.

mod calls;
mod chunk;
mod details;
mod reply;
mod request;

use std::sync::Arc;

use async_trait::async_trait;
use core_protocol::Role;
use serde_json::{Map, Value};

use crate::engine::{EngineSettings, call_id_prefix, check_abilities, json_bytes};
use crate::http::HttpEndpoint;
use crate::provider::EventStream;
use crate::quirks::AssistantPrefix;
use crate::{Capabilities, ChatRequest, LlmError, Provider, wire};

/// A model behind a chat-completions endpoint.
#[derive(Debug)]
pub(crate) struct ChatCompletions {
    name: String,
    http: Arc<HttpEndpoint>,
    shape: request::RequestShape,
    capabilities: Capabilities,
    facts: Map<String, Value>,
}

impl ChatCompletions {
    pub(crate) fn new(settings: EngineSettings) -> Result<Self, LlmError> {
        let http = HttpEndpoint::new(settings.http("/chat/completions"))?;
        let quirks = settings.quirks;
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
        Ok(Self {
            name: settings.provider,
            http: Arc::new(http),
            shape: request::RequestShape {
                model: settings.model,
                quirks,
                sampling: settings.sampling,
                extra_body: settings.extra_body,
                max_tokens: settings.max_tokens,
                stop_tags: settings.stop_tags,
            },
            capabilities,
            facts: settings.facts,
        })
    }
}

impl ChatCompletions {
    fn body(&self, request: &ChatRequest) -> Result<Map<String, Value>, LlmError> {
        check_abilities(self.capabilities, request, self.http.endpoint())?;
        Ok(self.shape.body(request))
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

#[async_trait]
impl Provider for ChatCompletions {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> &str {
        &self.shape.model
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<EventStream, LlmError> {
        let body = self.body(request)?;
        let thinking_is_text = thinking_is_off(&body) || closes_thinking(request);
        let body = json_bytes(&body, self.http.endpoint())?;
        let response = self.http.post(body).await?;
        let assembler = reply::ReplyAssembler::new(reply::ReplyContext {
            http: Arc::clone(&self.http),
            tools: Arc::clone(&request.tools),
            call_prefix: call_id_prefix(request),
            thinking_is_text,
            keep_details: self.shape.quirks.reasoning_details == Some(true),
            stop_tags: self.shape.stop_tags,
        });
        Ok(wire::read(Arc::clone(&self.http), response, assembler))
    }

    fn request_body(&self, request: &ChatRequest) -> Result<Option<Vec<u8>>, LlmError> {
        json_bytes(&self.body(request)?, self.http.endpoint()).map(Some)
    }

    fn describe(&self) -> Map<String, Value> {
        self.facts.clone()
    }
}
