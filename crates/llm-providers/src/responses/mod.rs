//! The engine for OpenAI's Responses and for servers that speak the same.
//!
//! Decides how a request becomes one HTTP exchange. Nothing is kept on the server: each request carries
//! the whole history, and thinking goes back in the encrypted form in which it came.

mod items;
mod reply;
mod request;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::engine::{EngineSettings, call_id_prefix, check_abilities, json_bytes};
use crate::http::HttpEndpoint;
use crate::provider::EventStream;
use crate::{Capabilities, ChatRequest, LlmError, Provider, wire};

/// A model behind a Responses endpoint.
#[derive(Debug)]
pub(crate) struct Responses {
    name: String,
    http: Arc<HttpEndpoint>,
    shape: request::RequestShape,
    capabilities: Capabilities,
    facts: Map<String, Value>,
}

impl Responses {
    pub(crate) fn new(settings: EngineSettings) -> Result<Self, LlmError> {
        let http = HttpEndpoint::new(settings.http("/responses"))?;
        let quirks = settings.quirks;
        let capabilities = Capabilities {
            native_tools: quirks.native_tools.unwrap_or(true),
            // The format has no way to say that a message is only a beginning.
            assistant_prefix: false,
            images: quirks.images.unwrap_or(false),
            audio: false,
            video: false,
            thinking: quirks.thinking.or(quirks.encrypted_reasoning).unwrap_or(false),
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

    fn body(&self, request: &ChatRequest) -> Result<Vec<u8>, LlmError> {
        check_abilities(self.capabilities, request, self.http.endpoint())?;
        json_bytes(&self.shape.body(request), self.http.endpoint())
    }
}

#[async_trait]
impl Provider for Responses {
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
        let assembler = reply::ReplyAssembler::new(
            Arc::clone(&self.http),
            Arc::clone(&request.tools),
            call_id_prefix(request),
        );
        Ok(wire::read(Arc::clone(&self.http), response, assembler))
    }

    fn request_body(&self, request: &ChatRequest) -> Result<Option<Vec<u8>>, LlmError> {
        self.body(request).map(Some)
    }

    fn describe(&self) -> Map<String, Value> {
        self.facts.clone()
    }
}
