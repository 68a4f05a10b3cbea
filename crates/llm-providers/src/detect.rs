//! Finds a model by itself: a key in the environment, else a model server on this machine.
//!
//! Decides the order in which things are looked at, and says what was found where. What is set already
//! (model, address, key) is kept.

use std::time::Duration;

use serde_json::Value;

use crate::data::{LocalData, ProviderData};
use crate::{Environment, LlmConfig, Registry};

/// Time for all local servers together. A busy server takes a while to say what it has.
const PROBE_LIMIT: Duration = Duration::from_millis(250);

/// Variable that switches probing off (`off`) or says where to look (`ollama=11434,vllm=8001`).
const LOCAL_SERVERS: &str = "FATHOM_LOCAL_SERVERS";

/// Parts of names of models that do not talk.
const SILENT_MODELS: &[&str] = &["embed", "rerank", "bge-"];

/// What `auto` came to.
#[derive(Debug, Clone)]
pub struct Detected {
    /// The configuration with provider, model and address filled in.
    pub config: LlmConfig,
    /// Why this one, for people.
    pub reason: String,
    /// Everything that was looked at, in order.
    pub looked_at: Vec<Probe>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What: an environment variable, an address.
    pub what: String,
    /// What was found there.
    pub outcome: String,
    /// Whether a model can be used through it.
    pub usable: bool,
}

/// A model server on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// The provider whose data file fits it.
    pub provider: String,
    /// Its address, ready for `llm.base_url`.
    pub base_url: String,
    /// The models that it lists.
    pub models: Vec<String>,
    /// Tokens of the first model's window, where the server tells.
    pub context_length: Option<u64>,
}

/// Finds a model: what the configuration names already, a key in the environment, a server on this
/// machine, else the embedded reader. Takes at most 250 ms.
pub async fn detect(environment: &Environment, base: &LlmConfig) -> Detected {
    let registry = Registry::builtin();
    let mut looked_at = Vec::new();
    if let Some(url) = base.base_url.as_deref().filter(|url| !url.trim().is_empty()) {
        let provider = if url.contains("anthropic") { "anthropic" } else { "openai_compatible" };
        looked_at.push(Probe { what: "llm.base_url".to_owned(), outcome: "set".to_owned(), usable: true });
        let mut config = LlmConfig { provider: provider.to_owned(), ..base.clone() };
        if config.model_name.trim().is_empty()
            && let Some(list) = ask(url, None).await
        {
            adopt(&mut config, list.models.first(), list.context_length);
        }
        return Detected { config, reason: "llm.base_url is set".to_owned(), looked_at };
    }
    if let Some(found) = from_environment(&registry, environment, base, &mut looked_at) {
        return found;
    }
    if environment.get(LOCAL_SERVERS) == Some("off") {
        looked_at.push(Probe {
            what: "model servers on this machine".to_owned(),
            outcome: format!("not looked for ({LOCAL_SERVERS}=off)"),
            usable: false,
        });
    } else {
        let servers = probe_local_servers(environment).await;
        for candidate in candidates(&registry, environment) {
            let found = servers.iter().find(|server| server.base_url == candidate.base_url);
            looked_at.push(Probe {
                what: candidate.base_url,
                outcome: match found {
                    Some(server) => format!("{} with {}", server.provider, words(&server.models)),
                    None => format!("no {} there", candidate.title),
                },
                usable: found.is_some_and(|server| !server.models.is_empty()),
            });
        }
        if let Some(server) = servers.into_iter().find(|server| !server.models.is_empty()) {
            let mut config = LlmConfig { provider: server.provider.clone(), ..base.clone() };
            config.base_url = Some(server.base_url.clone());
            adopt(&mut config, server.models.first(), server.context_length);
            let reason = format!("{} answers at {}", server.provider, server.base_url);
            return Detected { config, reason, looked_at };
        }
    }
    let config = LlmConfig { provider: "reader".to_owned(), model_name: "reader".to_owned(), ..base.clone() };
    let reason = "no key in the environment and no model server on this machine".to_owned();
    Detected { config, reason, looked_at }
}

/// Looks for model servers on this machine, all at once and for at most 250 ms.
///
/// `FATHOM_LOCAL_SERVERS` in the environment says where instead of the usual ports
/// (`ollama=11434,vllm=8001`), or nowhere (`off`).
pub async fn probe_local_servers(environment: &Environment) -> Vec<LocalServer> {
    let registry = Registry::builtin();
    let probes = candidates(&registry, environment).into_iter().map(|candidate| {
        let owners = &registry;
        async move {
            let list = ask(&candidate.base_url, candidate.local.as_ref()).await?;
            let provider = owner(owners, list.owned_by.as_deref()).unwrap_or(candidate.provider);
            Some(LocalServer {
                provider,
                base_url: candidate.base_url,
                models: list.models,
                context_length: list.context_length,
            })
        }
    });
    futures_util::future::join_all(probes).await.into_iter().flatten().collect()
}

fn from_environment(
    registry: &Registry,
    environment: &Environment,
    base: &LlmConfig,
    looked_at: &mut Vec<Probe>,
) -> Option<Detected> {
    let mut providers: Vec<(u32, String, ProviderData)> = registry
        .names()
        .into_iter()
        .filter_map(|name| {
            let data = registry.provider_data(&name).ok()?;
            Some((data.detect?, name, data))
        })
        .collect();
    // A model that is named already says which of several keys is meant.
    let model = base.model_name.trim();
    providers.sort_by_key(|(order, _, data)| (model.is_empty() || data.model(model).is_none(), *order));
    let mut found = None;
    for (_, name, data) in providers {
        let variables: Vec<String> =
            data.key_variables.iter().chain(&data.base_url_variables).cloned().collect();
        let set = environment.first(&variables).map(|(variable, _)| variable.to_owned());
        looked_at.push(Probe {
            what: data.key_variables.join(", "),
            outcome: set
                .as_ref()
                .map_or_else(|| "not set".to_owned(), |variable| format!("{variable} is set")),
            usable: set.is_some(),
        });
        if let (Some(variable), None) = (set, &found) {
            let mut config = LlmConfig { provider: name, ..base.clone() };
            if model.is_empty() {
                config.model_name = environment
                    .first(&data.model_variables)
                    .map(|(_, value)| value.to_owned())
                    .or(data.default_model)
                    .unwrap_or_default();
            }
            if let Some((_, url)) = environment.first(&data.base_url_variables) {
                config.base_url = Some(url.to_owned());
            }
            found = Some((config, format!("{variable} is set")));
        }
    }
    let (config, reason) = found?;
    Some(Detected { config, reason, looked_at: std::mem::take(looked_at) })
}

/// An address at which a server may be.
struct Candidate {
    provider: String,
    title: String,
    base_url: String,
    local: Option<LocalData>,
}

fn candidates(registry: &Registry, environment: &Environment) -> Vec<Candidate> {
    let local = |name: &str, port: Option<u16>| {
        let data = registry.provider_data(name).ok()?;
        let port = port.or_else(|| data.local.as_ref().map(|local| local.port))?;
        Some(Candidate {
            provider: name.to_owned(),
            title: data.title,
            base_url: format!("http://127.0.0.1:{port}/v1"),
            local: data.local,
        })
    };
    match environment.get(LOCAL_SERVERS) {
        Some("off") => Vec::new(),
        Some(places) => places
            .split(',')
            .filter_map(|place| {
                let (name, port) = place.split_once('=')?;
                local(name.trim(), Some(port.trim().parse().ok()?))
            })
            .collect(),
        None => registry.names().iter().filter_map(|name| local(name, None)).collect(),
    }
}

/// What a server says about its models.
struct ModelList {
    models: Vec<String>,
    owned_by: Option<String>,
    context_length: Option<u64>,
}

/// Asks a server for its models, and beside that for its window where that stands elsewhere.
async fn ask(base_url: &str, local: Option<&LocalData>) -> Option<ModelList> {
    let base_url = base_url.trim().trim_end_matches('/');
    let models_url = format!("{base_url}/models");
    let models = async { get_json(&models_url).await };
    let window = async {
        let (path, pointer) = (local?.context_path.as_ref()?, local?.context_pointer.as_ref()?);
        let root = base_url.strip_suffix("/v1").unwrap_or(base_url);
        get_json(&format!("{root}{path}")).await?.pointer(pointer)?.as_u64()
    };
    let limited_window = async { tokio::time::timeout(PROBE_LIMIT, window).await.ok().flatten() };
    let limited_models = async { tokio::time::timeout(PROBE_LIMIT, models).await.ok().flatten() };
    let (list, window) = tokio::join!(limited_models, limited_window);
    let list = list?;
    let entries: Vec<&Value> = list
        .get("data")?
        .as_array()?
        .iter()
        .filter(|entry| entry.get("id").and_then(Value::as_str).is_some_and(talks))
        .collect();
    let first = entries.first();
    let field = |name: &str| first.and_then(|entry| entry.get(name));
    Some(ModelList {
        models: entries.iter().filter_map(|entry| Some(entry.get("id")?.as_str()?.to_owned())).collect(),
        owned_by: field("owned_by").and_then(Value::as_str).map(str::to_owned),
        context_length: window.or_else(|| field("max_model_len").and_then(Value::as_u64)),
    })
}

fn talks(model: &str) -> bool {
    let model = model.to_lowercase();
    !SILENT_MODELS.iter().any(|part| model.contains(part))
}

/// The provider whose servers call themselves so.
fn owner(registry: &Registry, owned_by: Option<&str>) -> Option<String> {
    let owned_by = owned_by?;
    registry.names().into_iter().find(|name| {
        let local = registry.provider_data(name).ok().and_then(|data| data.local);
        local.is_some_and(|local| local.owned_by.iter().any(|known| known == owned_by))
    })
}

fn adopt(config: &mut LlmConfig, model: Option<&String>, context_length: Option<u64>) {
    if let (true, Some(model)) = (config.model_name.trim().is_empty(), model) {
        config.model_name.clone_from(model);
    }
    config.max_context_length = config.max_context_length.or(context_length);
}

fn words(models: &[String]) -> String {
    match models {
        [] => "no model".to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

#[cfg(feature = "http")]
async fn get_json(url: &str) -> Option<Value> {
    crate::http::get_json(url).await
}

/// Without HTTP there is nothing to ask.
#[cfg(not(feature = "http"))]
async fn get_json(_url: &str) -> Option<Value> {
    None
}
