//! Providers by name.
//!
//! Decides how a name in the configuration becomes a client, and what wins over what: the user's
//! configuration, then the environment, then the model's entry in the data file, then the provider's.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::data::{self, Engine, KeyNeed, ProviderData};
#[cfg(feature = "http")]
use crate::engine::EngineSettings;
use crate::sampling::{Sampling, sampling};
use crate::{Environment, LlmClient, LlmConfig, LlmError, Provider, Secret, ToolProtocol};

/// Makes a provider from a configuration and the environment.
type Factory = Arc<dyn Fn(&LlmConfig, &Environment) -> Result<Arc<dyn Provider>, LlmError> + Send + Sync>;

/// Edit distance up to which a name counts as a misspelling.
const MISSPELT: usize = 3;

/// The providers that a program knows.
#[derive(Clone)]
pub struct Registry {
    factories: BTreeMap<String, Factory>,
    data: BTreeMap<String, Cow<'static, str>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Registry").field("names", &self.names()).finish()
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Registry {
    /// The providers that are built in.
    #[must_use]
    pub fn builtin() -> Self {
        let data = data::names()
            .filter_map(|name| Some((name.to_owned(), Cow::Borrowed(data::text(name)?))))
            .collect();
        #[cfg_attr(not(feature = "reader"), expect(unused_mut, reason = "nothing else is registered"))]
        let mut registry = Self { factories: BTreeMap::new(), data };
        #[cfg(feature = "reader")]
        registry.register("reader", |_, _| Ok(Arc::new(crate::reader::ReaderProvider::new())));
        registry
    }

    /// Adds a provider of one's own, or takes the place of one.
    pub fn register<F>(&mut self, name: impl Into<String>, factory: F)
    where
        F: Fn(&LlmConfig, &Environment) -> Result<Arc<dyn Provider>, LlmError> + Send + Sync + 'static,
    {
        self.factories.insert(name.into(), Arc::new(factory));
    }

    /// Adds a provider that a data file describes, or takes the place of one. `origin` names the file
    /// in errors.
    ///
    /// # Errors
    ///
    /// The file is not of the format that the built-in ones have.
    pub fn add_data(&mut self, name: impl Into<String>, yaml: &str, origin: &str) -> Result<(), LlmError> {
        ProviderData::parse(yaml, origin)?;
        let name = name.into();
        self.factories.remove(&name);
        self.data.insert(name, Cow::Owned(yaml.to_owned()));
        Ok(())
    }

    /// All names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.factories.keys().chain(self.data.keys()).cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The client that a configuration describes.
    ///
    /// # Errors
    ///
    /// A setting is wrong or missing; nothing is sent.
    pub fn client(&self, config: &LlmConfig, environment: &Environment) -> Result<LlmClient, LlmError> {
        if config.max_tokens == 0 {
            return Err(configuration(
                "llm.max_tokens is 0: no reply fits into that",
                "set it to 4096 or so",
            ));
        }
        if let Some(factory) = self.factories.get(&config.provider) {
            return Ok(LlmClient::with_provider(factory(config, environment)?, config));
        }
        let data = self.provider_data(&config.provider)?;
        from_data(&data, config, environment)
    }

    /// The data of a provider that has a file.
    pub(crate) fn provider_data(&self, name: &str) -> Result<ProviderData, LlmError> {
        match self.data.get(name) {
            Some(yaml) => ProviderData::parse(yaml, &format!("the data file of `{name}`")),
            None if name == "auto" => Err(configuration(
                "llm.provider is `auto`, which stands for whatever is found at the start",
                "name a provider, or find one first",
            )),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> LlmError {
        let mut known = self.names();
        let wanted = name.to_lowercase();
        let nearest = known
            .iter()
            .map(|known| (strsim::damerau_levenshtein(&wanted, known), known))
            .filter(|(distance, known)| *distance <= MISSPELT && *distance < known.len().div_ceil(2).max(2))
            .min()
            .map(|(_, known)| known.clone());
        known.insert(0, "auto".to_owned());
        LlmError::UnknownProvider { name: name.to_owned(), nearest, known }
    }
}

#[cfg(feature = "http")]
fn from_data(
    data: &ProviderData,
    config: &LlmConfig,
    environment: &Environment,
) -> Result<LlmClient, LlmError> {
    let (settings, config) = resolve(data, config, environment)?;
    Ok(LlmClient::with_provider(build(data.engine, settings)?, &config))
}

#[cfg(not(feature = "http"))]
fn from_data(data: &ProviderData, config: &LlmConfig, _: &Environment) -> Result<LlmClient, LlmError> {
    Err(not_built_in(data.engine, &config.provider))
}

/// Merges what the file says into what the user says. The second value is the configuration with
/// everything filled in.
#[cfg(feature = "http")]
fn resolve(
    data: &ProviderData,
    config: &LlmConfig,
    environment: &Environment,
) -> Result<(EngineSettings, LlmConfig), LlmError> {
    let mut config = config.clone();
    let provider = config.provider.clone();
    let set = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);

    let model = set(&config.model_name)
        .or_else(|| environment.first(&data.model_variables).map(|(_, value)| value.to_owned()))
        .or_else(|| data.default_model.clone())
        .ok_or_else(|| {
            configuration(
                &format!("llm.model_name is not set, and provider `{provider}` has no default"),
                "set it to a model that the server has",
            )
        })?;
    let chosen_url = config
        .base_url
        .as_deref()
        .and_then(set)
        .or_else(|| environment.first(&data.base_url_variables).map(|(_, value)| value.to_owned()));
    let base_url = chosen_url.clone().or_else(|| data.base_url.clone()).ok_or_else(|| {
        configuration(
            &format!("llm.base_url is not set, and provider `{provider}` has no address of its own"),
            "set it to the server's address, such as http://127.0.0.1:8000/v1",
        )
    })?;
    let key = config
        .api_key
        .clone()
        .filter(|key| !key.is_empty())
        .or_else(|| environment.first(&data.key_variables).map(|(_, value)| Secret::from(value)));
    if key.is_none() && data.key == KeyNeed::Required && chosen_url.is_none() {
        return Err(LlmError::MissingKey { provider, variables: data.key_variables.clone() });
    }

    let known = data.model(&model);
    let quirks = config
        .quirks
        .clone()
        .over(known.map(|known| known.quirks.clone()).unwrap_or_default().over(data.quirks.clone()));
    if config.tool_protocol == ToolProtocol::Native && quirks.native_tools == Some(false) {
        return Err(configuration(
            &format!("llm.tool_protocol is native, and provider `{provider}` has no native tool calls"),
            "set llm.tool_protocol to text, or llm.quirks.native_tools to true where this server has them",
        ));
    }
    let context = config
        .max_context_length
        .or_else(|| known.and_then(|known| known.context_length))
        .or(data.context_length);
    config.max_context_length = context;
    config.price = config.price.or_else(|| known.and_then(|known| known.price));
    config.model_name.clone_from(&model);
    config.base_url = Some(base_url.clone());

    let Sampling { fields, left_out } = sampling(&config, &quirks);
    let mut facts = Map::new();
    facts.insert("tool_protocol".to_owned(), json!(config.tool_protocol));
    facts.extend(fields.clone());
    if !left_out.is_empty() {
        tracing::warn!(provider, model, parameters = ?left_out, "parameters that the model does not take are left out");
        facts.insert("left_out".to_owned(), json!(left_out));
    }
    if !config.extra_body.is_empty() {
        facts.insert("extra_body".to_owned(), Value::Object(config.extra_body.clone()));
    }
    let settings = EngineSettings {
        provider,
        model,
        base_url,
        key,
        quirks,
        sampling: fields,
        extra_body: config.extra_body.clone(),
        max_tokens: config.max_tokens,
        context_length: context,
        connect_timeout: config.retries.connect_timeout,
        facts,
        environment: environment.clone(),
    };
    Ok((settings, config))
}

#[cfg(feature = "http")]
fn build(engine: Engine, settings: EngineSettings) -> Result<Arc<dyn Provider>, LlmError> {
    match engine {
        #[cfg(feature = "openai")]
        Engine::Openai => Ok(Arc::new(crate::openai::ChatCompletions::new(settings)?)),
        #[cfg(feature = "anthropic")]
        Engine::Anthropic => Ok(Arc::new(crate::anthropic::Messages::new(settings)?)),
        #[cfg(not(all(feature = "openai", feature = "anthropic")))]
        engine => Err(not_built_in(engine, &settings.provider)),
    }
}

#[cfg(not(all(feature = "openai", feature = "anthropic")))]
fn not_built_in(engine: Engine, provider: &str) -> LlmError {
    configuration(
        &format!("the engine of provider `{provider}` ({engine:?}) is not built in"),
        "build with the feature of that name",
    )
}

fn configuration(message: &str, hint: &str) -> LlmError {
    LlmError::Configuration { message: message.to_owned(), hint: Some(hint.to_owned()) }
}
