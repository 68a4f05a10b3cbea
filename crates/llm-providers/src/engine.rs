//! What an engine is built from: a provider's data and the user's configuration, already merged.

use serde_json::{Map, Value};

use crate::config::limit;
use crate::http::HttpSettings;
use crate::quirks::{Auth, Quirks};
use crate::{Environment, Secret};

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
            environment: self.environment.clone(),
        }
    }
}
