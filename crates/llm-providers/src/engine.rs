//! What an engine is built from: a provider's data and the user's configuration, already merged.
//! And what all engines do alike before they send.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::config::limit;
use crate::http::HttpSettings;
use crate::quirks::{Auth, Quirks};
use crate::stop_tags::StopTags;
use crate::{Capabilities, ChatRequest, Endpoint, Environment, LlmError, Origins, Secret};

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
}

/// Refuses what provider and model cannot do, before anything is sent.
pub(crate) fn check_abilities(
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
pub(crate) fn json_bytes(body: &Map<String, Value>, endpoint: &Arc<Endpoint>) -> Result<Vec<u8>, LlmError> {
    serde_json::to_vec(body).map_err(|error| LlmError::InvalidRequest {
        endpoint: Arc::clone(endpoint),
        status: None,
        detail: error.to_string(),
    })
}

/// What the ids of calls that come without one begin with: no other reply to this history has it.
pub(crate) fn call_id_prefix(request: &ChatRequest) -> String {
    format!("call_{}_", request.messages.len())
}
