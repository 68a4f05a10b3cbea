//! What can go wrong with a model, and what that means for the caller.
//!
//! Decides which errors another try may cure ([`LlmError::is_retryable`]), which no try can
//! ([`LlmError::is_permanent`]) and what a person can do ([`LlmError::hint`]). How a server's answer
//! becomes one of these is decided in [`classify`](crate::classify).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::cassette::CassetteError;

/// Whom a request went to, for messages. Holds no secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// The provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// The address without credentials and query; none where there is no server.
    pub url: Option<String>,
    /// Where name, address and key were set.
    pub origins: Origins,
}

/// Where the settings of an endpoint came from, in words: `llm.api_key`, `OPENAI_API_KEY in the environment`.
/// None where it is not known, or where nothing was set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origins {
    /// Of the model's name.
    pub model: Option<String>,
    /// Of the address.
    pub url: Option<String>,
    /// Of the key.
    pub key: Option<String>,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "provider `{}`, model `{}`", self.provider, self.model)?;
        match &self.url {
            Some(url) => write!(formatter, ", {url}"),
            None => Ok(()),
        }
    }
}

/// Which limit of time was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutStage {
    /// Building up the connection.
    Connect,
    /// Waiting for the model's first progress.
    FirstEvent,
    /// Waiting for further progress.
    Idle,
    /// The whole try.
    Try,
    /// All tries together.
    Total,
}

impl TimeoutStage {
    /// The setting that holds the limit.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Connect => "llm.retries.connect_timeout",
            Self::FirstEvent => "llm.retries.first_event_timeout",
            Self::Idle => "llm.retries.idle_timeout",
            Self::Try => "llm.retries.try_timeout",
            Self::Total => "llm.retries.total_timeout",
        }
    }
}

impl fmt::Display for TimeoutStage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "no connection",
            Self::FirstEvent => "nothing came from the model",
            Self::Idle => "the model made no progress",
            Self::Try => "the reply was not complete",
            Self::Total => "no try succeeded",
        })
    }
}

/// Why no connection came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unreachable {
    /// Nothing listens there.
    Refused,
    /// The host name does not resolve.
    UnknownHost,
    /// The certificate or the handshake was no good.
    Tls,
    /// Anything else.
    Other,
}

/// Everything that a provider or a client can report.
#[derive(Debug, Clone, PartialEq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlmError {
    /// A setting is missing or wrong; found before anything was sent.
    #[error("{message}")]
    Configuration {
        /// What is wrong, naming the setting.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// No provider of that name.
    #[error("there is no provider `{name}` (llm.provider); known are: {}", known.join(", "))]
    UnknownProvider {
        /// The name asked for.
        name: String,
        /// The known name nearest to it.
        nearest: Option<String>,
        /// All known names.
        known: Vec<String>,
    },
    /// The provider wants a key and none is set.
    #[error("provider `{provider}` needs an API key and none is set")]
    MissingKey {
        /// The provider.
        provider: String,
        /// The environment variables that were looked at.
        variables: Vec<String>,
    },
    /// The key was not accepted, or may not do this.
    #[error("the API key was not accepted{} ({endpoint}): {detail}", status_words(*status))]
    Authentication {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// The server's words.
        detail: String,
    },
    /// The account has no credit left.
    #[error("the account has no quota left ({endpoint}): {detail}")]
    QuotaExhausted {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// The server's words.
        detail: String,
    },
    /// The server does not have the model.
    #[error("the server does not have the model ({endpoint}): {detail}")]
    ModelNotFound {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// The server's words.
        detail: String,
    },
    /// There is no such API at the address.
    #[error("there is no such API at this address{} ({endpoint}): {detail}", status_words(*status))]
    NotAnApi {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// The HTTP status, where it says so.
        status: Option<u16>,
        /// The server's words.
        detail: String,
    },
    /// The server does not accept the request's parameters.
    #[error("the server does not accept the request{} ({endpoint}): {detail}", status_words(*status))]
    InvalidRequest {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// The server's words.
        detail: String,
    },
    /// The provider cannot do what the request asks for.
    #[error("{feature} is not possible here ({endpoint})")]
    Unsupported {
        /// Whom the request would have gone to.
        endpoint: Arc<Endpoint>,
        /// What was asked for.
        #[serde(deserialize_with = "feature")]
        feature: Feature,
    },
    /// Prompt and reply do not fit into the model's window.
    #[error("the request is longer than the model's context ({endpoint}): {detail}")]
    ContextExceeded {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// Tokens of the prompt, where told.
        prompt_tokens: Option<u64>,
        /// Tokens of the window, where told.
        limit: Option<u64>,
        /// The server's words.
        detail: String,
    },
    /// Too many requests.
    #[error("the rate limit was reached{} ({endpoint}): {detail}", retry_words(*retry_after))]
    RateLimited {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        /// The server's words.
        detail: String,
    },
    /// The server has too much to do.
    #[error("the server is overloaded{} ({endpoint}): {detail}", status_words(*status))]
    Overloaded {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        /// The server's words.
        detail: String,
    },
    /// The server failed.
    #[error("the server failed{} ({endpoint}): {detail}", status_words(*status))]
    Server {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        /// The server's words.
        detail: String,
    },
    /// No connection came about.
    #[error("cannot connect ({endpoint}): {detail}")]
    Unreachable {
        /// Whom the request would have gone to.
        endpoint: Arc<Endpoint>,
        /// Why not.
        reason: Unreachable,
        /// Whether the address is on this machine.
        local: bool,
        /// The system's words.
        detail: String,
    },
    /// A limit of time was reached.
    #[error("{stage} within {} s ({endpoint})", limit.as_secs_f64())]
    Timeout {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// Which limit.
        stage: TimeoutStage,
        /// Its length.
        limit: Duration,
    },
    /// The connection broke before the reply was complete.
    #[error("the reply broke off ({endpoint}): {detail}")]
    StreamBroken {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// What was seen.
        detail: String,
    },
    /// The server answered with something that is no reply.
    #[error("the server's answer cannot be read ({endpoint}): {detail}")]
    Malformed {
        /// Whom the request went to.
        endpoint: Arc<Endpoint>,
        /// What is wrong with it.
        detail: String,
    },
    /// A recording cannot be written, or a replay parts from it.
    #[error(transparent)]
    #[serde(skip)]
    Cassette(#[from] Box<CassetteError>),
}

impl LlmError {
    /// A stable word to branch on.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Configuration { .. } => "configuration",
            Self::UnknownProvider { .. } => "unknown_provider",
            Self::MissingKey { .. } => "missing_key",
            Self::Authentication { .. } => "authentication",
            Self::QuotaExhausted { .. } => "quota_exhausted",
            Self::ModelNotFound { .. } => "model_not_found",
            Self::NotAnApi { .. } => "not_an_api",
            Self::InvalidRequest { .. } => "invalid_request",
            Self::Unsupported { .. } => "unsupported",
            Self::ContextExceeded { .. } => "context_exceeded",
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded { .. } => "overloaded",
            Self::Server { .. } => "server_error",
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout { .. } => "timeout",
            Self::StreamBroken { .. } => "stream_broken",
            Self::Malformed { .. } => "malformed_response",
            Self::Cassette(error) => error.kind(),
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Configuration { .. }
            | Self::UnknownProvider { .. }
            | Self::MissingKey { .. }
            | Self::Authentication { .. }
            | Self::QuotaExhausted { .. }
            | Self::ModelNotFound { .. }
            | Self::NotAnApi { .. }
            | Self::InvalidRequest { .. }
            | Self::Unsupported { .. }
            | Self::ContextExceeded { .. } => false,
            Self::Cassette(error) => error.is_retryable(),
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Server { .. }
            | Self::StreamBroken { .. }
            | Self::Malformed { .. } => true,
            Self::Unreachable { reason, .. } => !matches!(reason, Unreachable::Tls),
            Self::Timeout { stage, .. } => !matches!(stage, TimeoutStage::Total),
        }
    }

    /// Whether nothing but a change of settings helps: key, model name, address, parameters.
    ///
    /// [`LlmError::ContextExceeded`] is neither this nor retryable: a shorter request cures it.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::Configuration { .. }
            | Self::UnknownProvider { .. }
            | Self::MissingKey { .. }
            | Self::Authentication { .. }
            | Self::QuotaExhausted { .. }
            | Self::ModelNotFound { .. }
            | Self::NotAnApi { .. }
            | Self::InvalidRequest { .. }
            | Self::Unsupported { .. }
            | Self::Cassette(_) => true,
            Self::ContextExceeded { .. }
            | Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Server { .. }
            | Self::Timeout { .. }
            | Self::StreamBroken { .. }
            | Self::Malformed { .. } => false,
            Self::Unreachable { reason, .. } => matches!(reason, Unreachable::Tls),
        }
    }

    /// Whether the server refused the request because of its rate or load, so that waiting is what it asks for.
    #[must_use]
    pub const fn is_refusal_for_load(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Overloaded { .. })
    }

    /// How long the server asks to wait.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. }
            | Self::Overloaded { retry_after, .. }
            | Self::Server { retry_after, .. } => *retry_after,
            Self::Configuration { .. }
            | Self::UnknownProvider { .. }
            | Self::MissingKey { .. }
            | Self::Authentication { .. }
            | Self::QuotaExhausted { .. }
            | Self::ModelNotFound { .. }
            | Self::NotAnApi { .. }
            | Self::InvalidRequest { .. }
            | Self::Unsupported { .. }
            | Self::ContextExceeded { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::StreamBroken { .. }
            | Self::Malformed { .. }
            | Self::Cassette(_) => None,
        }
    }
}

/// Words of this crate. By this name serde does not take them for something to borrow from its input.
type Feature = &'static str;

/// What a request can ask for that a provider cannot do, as this crate says it.
const FEATURES: &[&str] = &["going on with an assistant message", "native tool calling"];

/// One of [`FEATURES`]; of another one no more is known than that there was one.
fn feature<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Feature, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(FEATURES.iter().find(|known| **known == text).copied().unwrap_or("what the request asks for"))
}

fn status_words(status: Option<u16>) -> String {
    status.map_or_else(String::new, |status| format!(" (HTTP {status})"))
}

fn retry_words(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |wait| format!(", to be tried again in {} s", wait.as_secs_f64()))
}
