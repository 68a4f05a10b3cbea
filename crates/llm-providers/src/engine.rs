//! What all engines have in common: what they are built from (a provider's data and the user's configuration, already
//! merged) and how a request becomes one HTTP exchange. What differs between them is a [`Format`].

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use core_protocol::ToolDefinition;
use serde_json::{Map, Value};

use crate::config::limit;
use crate::http::{HttpEndpoint, HttpSettings};
use crate::provider::EventStream;
use crate::quirks::{Auth, Quirks};
use crate::stop_tags::StopTags;
use crate::wire::{self, Assembler};
use crate::{Capabilities, ChatRequest, Endpoint, Environment, LlmError, Origins, Provider, Secret};

/// Everything that an engine needs to know.
#[derive(Debug, Clone)]
pub(crate) struct EngineSettings {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) base_url: String,
    pub(crate) key: Option<Secret>,
    pub(crate) quirks: Quirks,
    /// Sampling parameters under the server's names.
    pub(crate) sampling: Map<String, Value>,
    /// The user's own body fields.
    pub(crate) extra_body: Map<String, Value>,
    pub(crate) max_tokens: u64,
    pub(crate) context_length: Option<u64>,
    /// Seconds.
    pub(crate) connect_timeout: f64,
    /// The stop sequences that end a reply at its first call; none: it is not ended there.
    pub(crate) stop_tags: Option<StopTags>,
    /// Where name, address and key were set.
    pub(crate) origins: Origins,
    /// What the log is told.
    pub(crate) facts: Map<String, Value>,
    pub(crate) environment: Environment,
}

impl EngineSettings {
    /// The HTTP side, for an API under `path`; keys are sent as a bearer token where nothing is said.
    pub(crate) fn http(&self, path: &str) -> HttpSettings {
        HttpSettings {
            provider: self.provider.clone(),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            path: path.to_owned(),
            key: self.key.clone(),
            auth: self.quirks.auth.unwrap_or(Auth::Bearer),
            headers: self.quirks.headers.clone().unwrap_or_default().into_iter().collect(),
            connect_timeout: limit(self.connect_timeout),
            origins: self.origins.clone(),
            environment: self.environment.clone(),
        }
    }

    /// What request bodies are made of.
    pub(crate) fn shape(&self) -> RequestShape {
        RequestShape {
            model: self.model.clone(),
            quirks: self.quirks.clone(),
            sampling: self.sampling.clone(),
            extra_body: self.extra_body.clone(),
            max_tokens: self.max_tokens,
            stop_tags: self.stop_tags,
        }
    }
}

/// What stays the same over all request bodies of a provider.
#[derive(Debug)]
pub(crate) struct RequestShape {
    pub(crate) model: String,
    pub(crate) quirks: Quirks,
    /// Sampling parameters under the server's names.
    pub(crate) sampling: Map<String, Value>,
    /// The user's own fields; they win over everything.
    pub(crate) extra_body: Map<String, Value>,
    pub(crate) max_tokens: u64,
    pub(crate) stop_tags: Option<StopTags>,
}

/// How servers of one kind are spoken to.
pub(crate) trait Format: Debug + Send + Sync + 'static {
    /// What reads their replies.
    type Assembler: Assembler;

    /// The body of a request.
    fn body(&self, request: &ChatRequest) -> Map<String, Value>;

    /// What reads the reply to a request with this body.
    fn assembler(
        &self,
        request: &ChatRequest,
        body: &Map<String, Value>,
        context: ReplyContext,
    ) -> Self::Assembler;
}

/// What every reply is read with.
pub(crate) struct ReplyContext {
    pub(crate) http: Arc<HttpEndpoint>,
    pub(crate) tools: Arc<[ToolDefinition]>,
    /// What the ids of calls without one begin with.
    pub(crate) call_prefix: String,
    pub(crate) stop_tags: Option<StopTags>,
}

/// A model behind an HTTP endpoint.
#[derive(Debug)]
pub(crate) struct HttpProvider<F> {
    name: String,
    model: String,
    http: Arc<HttpEndpoint>,
    format: F,
    capabilities: Capabilities,
    stop_tags: Option<StopTags>,
    facts: Map<String, Value>,
}

impl<F: Format> HttpProvider<F> {
    pub(crate) fn new(
        settings: &EngineSettings,
        http: HttpSettings,
        capabilities: Capabilities,
        format: F,
    ) -> Result<Self, LlmError> {
        Ok(Self {
            name: settings.provider.clone(),
            model: settings.model.clone(),
            http: Arc::new(HttpEndpoint::new(http)?),
            format,
            capabilities,
            stop_tags: settings.stop_tags,
            facts: settings.facts.clone(),
        })
    }

    fn body(&self, request: &ChatRequest) -> Result<Map<String, Value>, LlmError> {
        check_abilities(self.capabilities, request, self.http.endpoint())?;
        Ok(self.format.body(request))
    }
}

#[async_trait]
impl<F: Format> Provider for HttpProvider<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<EventStream, LlmError> {
        let body = self.body(request)?;
        let context = ReplyContext {
            http: Arc::clone(&self.http),
            tools: Arc::clone(&request.tools),
            call_prefix: call_id_prefix(request),
            stop_tags: self.stop_tags,
        };
        let assembler = self.format.assembler(request, &body, context);
        let response = self.http.post(json_bytes(&body, self.http.endpoint())?).await?;
        Ok(wire::read(Arc::clone(&self.http), response, assembler))
    }

    fn request_body(&self, request: &ChatRequest) -> Result<Option<Vec<u8>>, LlmError> {
        json_bytes(&self.body(request)?, self.http.endpoint()).map(Some)
    }

    fn describe(&self) -> Map<String, Value> {
        self.facts.clone()
    }
}

/// Refuses what provider and model cannot do, before anything is sent.
fn check_abilities(
    capabilities: Capabilities,
    request: &ChatRequest,
    endpoint: &Arc<Endpoint>,
) -> Result<(), LlmError> {
    let unsupported = |feature| Err(LlmError::Unsupported { endpoint: Arc::clone(endpoint), feature });
    if request.continue_final_message && !capabilities.assistant_prefix {
        return unsupported("going on with an assistant message");
    }
    if !request.tools.is_empty() && !capabilities.native_tools {
        return unsupported("native tool calling");
    }
    Ok(())
}

/// A body as it is sent.
fn json_bytes(body: &Map<String, Value>, endpoint: &Arc<Endpoint>) -> Result<Vec<u8>, LlmError> {
    serde_json::to_vec(body).map_err(|error| LlmError::InvalidRequest {
        endpoint: Arc::clone(endpoint),
        status: None,
        detail: error.to_string(),
    })
}

/// What the ids of calls that come without one begin with: no other reply to this history has it.
fn call_id_prefix(request: &ChatRequest) -> String {
    format!("call_{}_", request.messages.len())
}
