//! The engine for Anthropic's Messages.
//!
//! Decides how a request becomes one HTTP exchange with such a server.

mod cache;
mod reply;
mod request;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::engine::{EngineSettings, call_id_prefix, check_abilities, json_bytes};
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
            stop_tags: settings.stop_tags,
        };
        let quirks = &shape.quirks;
        let prefix = quirks.assistant_prefix.unwrap_or_default();
        let capabilities = Capabilities {
            native_tools: quirks.native_tools.unwrap_or(true),
            // A reply that begins with thinking cannot begin with given words.
            assistant_prefix: prefix != AssistantPrefix::None && !shape.thinks(),
            images: quirks.images.unwrap_or(false),
            audio: false,
            video: false,
            thinking: quirks.thinking.unwrap_or(false),
            context_length: settings.context_length,
        };
        Ok(Self { name: settings.provider, http: Arc::new(http), shape, capabilities, facts: settings.facts })
    }
}

impl Messages {
    fn body(&self, request: &ChatRequest) -> Result<Vec<u8>, LlmError> {
        check_abilities(self.capabilities, request, self.http.endpoint())?;
        json_bytes(&self.shape.body(request), self.http.endpoint())
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
        let response = self.http.post(self.body(request)?).await?;
        let assembler = reply::ReplyAssembler::new(reply::ReplyContext {
            http: Arc::clone(&self.http),
            tools: Arc::clone(&request.tools),
            call_prefix: call_id_prefix(request),
            stop_tags: self.shape.stop_tags,
        });
        Ok(wire::read(Arc::clone(&self.http), response, assembler))
    }

    fn request_body(&self, request: &ChatRequest) -> Result<Option<Vec<u8>>, LlmError> {
        self.body(request).map(Some)
    }

    fn describe(&self) -> Map<String, Value> {
        self.facts.clone()
    }
}
