//! The engine for Anthropic's Messages.
//!
//! Decides how a request becomes one HTTP exchange with such a server.

mod cache;
mod reply;
mod request;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::engine::EngineSettings;
use crate::function_name::FunctionNames;
use crate::http::HttpEndpoint;
use crate::provider::EventStream;
use crate::quirks::{AssistantPrefix, Auth};
use crate::{Capabilities, ChatRequest, LlmError, Provider, wire};

/// The version of the API whose events are read here.
const VERSION: &str = "2023-06-01";

/// A model behind a Messages endpoint.
#[derive(Debug)]
pub(crate) struct Messages {
    name: String,
    http: Arc<HttpEndpoint>,
    shape: request::RequestShape,
    capabilities: Capabilities,
    facts: Map<String, Value>,
}

impl Messages {
    pub(crate) fn new(settings: EngineSettings) -> Result<Self, LlmError> {
        let mut http = settings.http("/v1/messages");
        http.auth = settings.quirks.auth.unwrap_or(Auth::XApiKey);
        if !http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("anthropic-version")) {
            http.headers.push(("anthropic-version".to_owned(), VERSION.into()));
        }
        let http = HttpEndpoint::new(http)?;
        let shape = request::RequestShape {
            model: settings.model,
            quirks: settings.quirks,
            sampling: settings.sampling,
            extra_body: settings.extra_body,
            max_tokens: settings.max_tokens,
        };
        let quirks = &shape.quirks;
        let prefix = quirks.assistant_prefix.unwrap_or_default();
        let capabilities = Capabilities {
            native_tools: quirks.native_tools.unwrap_or(true),
            // A reply that begins with thinking cannot begin with given words.
            assistant_prefix: prefix != AssistantPrefix::None && !shape.thinks(),
            images: quirks.images.unwrap_or(false),
            audio: false,
            thinking: quirks.thinking.unwrap_or(false),
            context_length: settings.context_length,
        };
        Ok(Self { name: settings.provider, http: Arc::new(http), shape, capabilities, facts: settings.facts })
    }
}

#[async_trait]
impl Provider for Messages {
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
        let response = self.http.post(body).await?;
        let assembler = reply::ReplyAssembler::new(
            Arc::clone(&self.http),
            FunctionNames::new(&request.tools),
            format!("call_{}_", request.messages.len()),
        );
        Ok(wire::read(Arc::clone(&self.http), response, assembler))
    }

    fn describe(&self) -> Map<String, Value> {
        self.facts.clone()
    }
}
