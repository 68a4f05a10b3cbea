//! What can go wrong with a model, and what that means for the caller.
//!
//! Decides which errors another try may cure ([`LlmError::is_retryable`]), which no try can
//! ([`LlmError::is_permanent`]) and what a person can do ([`LlmError::hint`]). How a server's answer
//! becomes one of these is decided in [`classify`](crate::classify).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

/// Whom a request went to, for messages. Holds no secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// The address without credentials and query; none where there is no server.
    pub url: Option<String>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, PartialEq, Error)]
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
        feature: &'static str,
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
            | Self::Unsupported { .. } => true,
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
            | Self::Malformed { .. } => None,
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Configuration { hint, .. } => hint.clone(),
            Self::UnknownProvider { nearest, .. } => Some(match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "`openai_compatible` with llm.base_url reaches any OpenAI-compatible server".to_owned(),
            }),
            Self::MissingKey { variables, .. } => Some(match variables.as_slice() {
                [] => "set llm.api_key".to_owned(),
                names => format!("set {} in the environment or in .env, or llm.api_key", names.join(" or ")),
            }),
            Self::Authentication { endpoint, .. } => Some(format!(
                "check the key of provider `{}` (llm.api_key or its environment variable) and that it may use `{}`",
                endpoint.provider, endpoint.model
            )),
            Self::QuotaExhausted { endpoint, .. } => {
                Some(format!("add credit to the account at `{}` or use another key", endpoint.provider))
            }
            Self::ModelNotFound { .. } => {
                Some("check llm.model_name; most servers list their models at <base URL>/models".to_owned())
            }
            Self::NotAnApi { .. } => {
                Some("check llm.base_url; for most servers it ends in /v1".to_owned())
            }
            Self::InvalidRequest { .. } => Some(
                "take out the parameter that the server names, or set llm.provider or llm.quirks to what the server is"
                    .to_owned(),
            ),
            Self::Unsupported { .. } => Some("use another provider or llm.tool_protocol: text".to_owned()),
            Self::ContextExceeded { .. } => Some(
                "a shorter history, a smaller llm.max_tokens or a model with a larger window".to_owned(),
            ),
            Self::RateLimited { retry_after: Some(wait), .. } => {
                Some(format!("try again in {} s", wait.as_secs_f64().ceil()))
            }
            Self::RateLimited { .. } | Self::Overloaded { .. } => Some("try again later".to_owned()),
            Self::Server { .. } | Self::StreamBroken { .. } | Self::Malformed { .. } => {
                Some("try again later, or look at the server's own log".to_owned())
            }
            Self::Unreachable { reason, .. } => Some(
                match reason {
                    Unreachable::Refused => "start the server, or check host and port in llm.base_url",
                    Unreachable::UnknownHost => "check the host name in llm.base_url and the network",
                    Unreachable::Tls => {
                        "check the address; where no root certificates are installed, install ca-certificates or set SSL_CERT_FILE"
                    }
                    Unreachable::Other => "check llm.base_url, the network and any proxy",
                }
                .to_owned(),
            ),
            Self::Timeout { stage, .. } => {
                Some(format!("raise {} where the server needs longer", stage.setting()))
            }
        }
    }
}

fn status_words(status: Option<u16>) -> String {
    status.map_or_else(String::new, |status| format!(" (HTTP {status})"))
}

fn retry_words(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |wait| format!(", to be tried again in {} s", wait.as_secs_f64()))
}
