//! What can be known about a model before anything is asked of it.
//!
//! Decides what is worth a look. On the way to a run only a server on this machine is looked at: whether it listens
//! and, where it refuses models that it does not list, whether it lists this one; that takes milliseconds. Somebody
//! who wants to know ([`inspect`]) gets any server asked for its models, with the key. Settings that are wrong by
//! themselves are found when a client is made.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::data::Engine;
use crate::http::{HttpEndpoint, is_loopback};
use crate::quirks::Auth;
use crate::{Environment, LlmConfig, LlmError, Registry, Secret, Unreachable};

/// Longest wait for a server on this machine to take a connection, and for its list of models.
const LOCAL_LIMIT: Duration = Duration::from_millis(500);
/// Names that are told of a server's models.
const TOLD: usize = 8;

/// What a server says about its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The address that was asked, without secrets.
    pub url: String,
    /// The model that is configured.
    pub model: String,
    /// The models that the server lists.
    pub models: Vec<String>,
    /// Whether the configured model is one of them.
    pub has_model: bool,
}

/// Looks at a server on this machine before the first request; of others, and of providers that are code, nothing is
/// asked. What a look does not tell for certain is no error: the request itself will say.
///
/// # Errors
///
/// Nothing listens there; the server does not have the model; it does not take the key. And, as when a client is
/// made, whatever is wrong with the settings.
pub fn preflight<'a>(
    config: &'a LlmConfig,
    environment: &'a Environment,
) -> BoxFuture<'a, Result<(), LlmError>> {
    Box::pin(looked_at(config, environment))
}

async fn looked_at(config: &LlmConfig, environment: &Environment) -> Result<(), LlmError> {
    let Some(target) = Target::new(config, environment)? else { return Ok(()) };
    let Some(address) = target.local_address() else { return Ok(()) };
    let connected = tokio::time::timeout(LOCAL_LIMIT, tokio::net::TcpStream::connect(&address)).await;
    if let Ok(Err(error)) = connected
        && error.kind() == std::io::ErrorKind::ConnectionRefused
    {
        return Err(LlmError::Unreachable {
            endpoint: target.http.endpoint().clone(),
            reason: Unreachable::Refused,
            local: true,
            detail: error.to_string(),
        });
    }
    if !target.refuses_others {
        return Ok(());
    }
    match tokio::time::timeout(LOCAL_LIMIT, target.inspect()).await {
        Ok(Ok(found)) if !found.has_model && !found.models.is_empty() => {
            Err(LlmError::ModelNotFound { endpoint: target.http.endpoint().clone(), detail: words(&found) })
        }
        Ok(Err(error @ LlmError::Authentication { .. })) => Err(error),
        _ => Ok(()),
    }
}

/// Asks a server for its models, with the key. None for providers without a server.
///
/// # Errors
///
/// What keeps the server from answering, and whatever is wrong with the settings.
pub async fn inspect(config: &LlmConfig, environment: &Environment) -> Result<Option<Inspection>, LlmError> {
    match Target::new(config, environment)? {
        Some(target) => target.inspect().await.map(Some),
        None => Ok(None),
    }
}

/// Where a server lists its models.
struct Target {
    http: HttpEndpoint,
    url: reqwest::Url,
    model: String,
    refuses_others: bool,
}

impl Target {
    fn new(config: &LlmConfig, environment: &Environment) -> Result<Option<Self>, LlmError> {
        let Some((data, engine, mut settings)) = Registry::builtin().settings(config, environment)? else {
            return Ok(None);
        };
        let path = match engine {
            Engine::Anthropic => {
                settings.quirks.auth.get_or_insert(Auth::XApiKey);
                let headers = settings.quirks.headers.get_or_insert_default();
                headers.entry("anthropic-version".to_owned()).or_insert_with(|| Secret::new("2023-06-01"));
                "/v1/models"
            }
            _ => "/models",
        };
        let mut http = settings.http(path);
        // An address may be that of the chat API itself.
        for end in ["/chat/completions", "/responses", "/messages"] {
            if let Some(base) = http.base_url.trim().trim_end_matches('/').strip_suffix(end) {
                http.base_url = base.to_owned();
            }
        }
        let http = HttpEndpoint::new(http)?;
        Ok(Some(Self {
            url: http.url().clone(),
            model: settings.model,
            refuses_others: data.local.is_some_and(|local| local.refuses_other_models),
            http,
        }))
    }

    /// Host and port, where they are on this machine.
    fn local_address(&self) -> Option<String> {
        let host = self.url.host_str().filter(|_| is_loopback(&self.url))?;
        Some(format!("{host}:{}", self.url.port_or_known_default()?))
    }

    async fn inspect(&self) -> Result<Inspection, LlmError> {
        let list = self.http.get().await?;
        let entries = list.get("data").and_then(Value::as_array).into_iter().flatten();
        let models: Vec<String> =
            entries.filter_map(|entry| Some(entry.get("id")?.as_str()?.to_owned())).collect();
        // Ollama's `name` stands for `name:latest`, Gemini's list says `models/name`.
        let same = |listed: &String| {
            let listed = listed.strip_prefix("models/").unwrap_or(listed);
            listed == self.model || listed.strip_suffix(":latest") == Some(&self.model)
        };
        Ok(Inspection {
            url: crate::http::safe_url(&self.url),
            model: self.model.clone(),
            has_model: models.iter().any(same),
            models,
        })
    }
}

/// What a server has, and what was probably meant.
fn words(found: &Inspection) -> String {
    let nearest = found
        .models
        .iter()
        .map(|model| (strsim::damerau_levenshtein(&found.model.to_lowercase(), &model.to_lowercase()), model))
        .filter(|(distance, model)| *distance <= model.len() / 3)
        .min();
    let all = found.models.iter().take(TOLD).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match found.models.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match nearest {
        Some((_, model)) => format!("did you mean `{model}`? It has {all}{more}"),
        None => format!("it has {all}{more}"),
    }
}
