//! The engine for OpenAI's chat completions and for everything that is compatible with them.
//!
//! Decides how a request becomes one HTTP exchange. Habits of the many servers are data
//! ([`Quirks`](crate::Quirks)), not branches on names.

mod calls;
mod reply;
mod request;

use std::sync::Arc;

use async_trait::async_trait;
use core_protocol::Role;
use serde_json::{Map, Value};

use crate::engine::EngineSettings;
use crate::function_name::FunctionNames;
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
            },
            capabilities,
            facts: settings.facts,
        })
    }
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
        let endpoint = Arc::clone(self.http.endpoint());
        if request.continue_final_message && !self.capabilities.assistant_prefix {
            return Err(LlmError::Unsupported { endpoint, feature: "going on with an assistant message" });
        }
        if !request.tools.is_empty() && !self.capabilities.native_tools {
            return Err(LlmError::Unsupported { endpoint, feature: "native tool calling" });
        }
        let body = serde_json::to_vec(&self.shape.body(request)).map_err(|error| {
            LlmError::InvalidRequest { endpoint, status: None, detail: error.to_string() }
        })?;
        let prefix = request
            .messages
            .last()
            .filter(|message| request.continue_final_message && message.role == Role::Assistant);
        let thinking_is_text = prefix.is_some_and(|prefix| prefix.joined_text().contains("</think>"));
        let response = self.http.post(body).await?;
        let assembler = reply::ReplyAssembler::new(
            Arc::clone(&self.http),
            FunctionNames::new(&request.tools),
            format!("call_{}_", request.messages.len()),
            thinking_is_text,
        );
        Ok(wire::read(Arc::clone(&self.http), response, assembler))
    }

    fn describe(&self) -> Map<String, Value> {
        self.facts.clone()
    }
}
