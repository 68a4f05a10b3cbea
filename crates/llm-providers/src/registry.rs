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
#[cfg(feature = "http")]
use crate::quirks::Quirks;
use crate::sampling::{Sampling, sampling};
#[cfg(feature = "http")]
use crate::stop_tags::StopTags;
use crate::{Environment, Limiters, LlmClient, LlmConfig, LlmError, Origins, Provider, Secret, ToolProtocol};

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
        ProviderData::parse(yaml, origin, |name| self.data.get(name).map(AsRef::as_ref))?;
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

    /// The client that a configuration describes, with a limiter of its own.
    ///
    /// # Errors
    ///
    /// A setting is wrong or missing; nothing is sent.
    pub fn client(&self, config: &LlmConfig, environment: &Environment) -> Result<LlmClient, LlmError> {
        self.client_sharing(config, environment, &Limiters::new())
    }

    /// The client that a configuration describes. Its requests wait for their turn among those of all clients that
    /// ask the same server with the same key and were given the same limiters.
    ///
    /// # Errors
    ///
    /// As [`Registry::client`].
    pub fn client_sharing(
        &self,
        config: &LlmConfig,
        environment: &Environment,
        limiters: &Limiters,
    ) -> Result<LlmClient, LlmError> {
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
        from_data(&data, config, environment, limiters)
    }

    /// What an engine would be built from; none for providers that are code.
    #[cfg(feature = "http")]
    pub(crate) fn settings(
        &self,
        config: &LlmConfig,
        environment: &Environment,
    ) -> Result<Option<(ProviderData, Engine, EngineSettings)>, LlmError> {
        if self.factories.contains_key(&config.provider) {
            return Ok(None);
        }
        let data = self.provider_data(&config.provider)?;
        let (settings, config) = resolve(&data, config, environment)?;
        let engine = config.engine.unwrap_or(data.engine);
        Ok(Some((data, engine, settings)))
    }

    /// The data of a provider that has a file.
    pub(crate) fn provider_data(&self, name: &str) -> Result<ProviderData, LlmError> {
        match self.data.get(name) {
            Some(yaml) => {
                let find = |name: &str| self.data.get(name).map(AsRef::as_ref);
                ProviderData::parse(yaml, &format!("the data file of `{name}`"), find)
            }
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
    limiters: &Limiters,
) -> Result<LlmClient, LlmError> {
    let (settings, config) = resolve(data, config, environment)?;
    let limiter = config.concurrency.enabled.then(|| {
        limiters.of(&settings.provider, &settings.base_url, settings.key.as_ref(), &config.concurrency)
    });
    let client = LlmClient::with_provider(build(config.engine.unwrap_or(data.engine), settings)?, &config);
    Ok(match limiter {
        Some(limiter) => client.limited_by(limiter),
        None => client,
    })
}

#[cfg(not(feature = "http"))]
fn from_data(
    data: &ProviderData,
    config: &LlmConfig,
    _: &Environment,
    _: &Limiters,
) -> Result<LlmClient, LlmError> {
    Err(not_built_in(config.engine.unwrap_or(data.engine), &config.provider))
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

    let from_environment = |variables: &[String]| {
        let (name, value) = environment.first(variables)?;
        Some((value.to_owned(), format!("{name} in the environment")))
    };
    let from_file =
        |value: &Option<String>| Some((value.clone()?, format!("the data of provider `{provider}`")));

    let (model, model_origin) = set(&config.model_name)
        .map(|model| (model, "llm.model_name".to_owned()))
        .or_else(|| from_environment(&data.model_variables))
        .or_else(|| from_file(&data.default_model))
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
        .map(|url| (url, "llm.base_url".to_owned()))
        .or_else(|| from_environment(&data.base_url_variables));
    let (base_url, url_origin) =
        chosen_url.clone().or_else(|| from_file(&data.base_url)).ok_or_else(|| {
            configuration(
                &format!("llm.base_url is not set, and provider `{provider}` has no address of its own"),
                "set it to the server's address, such as http://127.0.0.1:8000/v1",
            )
        })?;
    let key = config
        .api_key
        .clone()
        .filter(|key| !key.is_empty())
        .map(|key| (key, "llm.api_key".to_owned()))
        .or_else(|| from_environment(&data.key_variables).map(|(key, origin)| (Secret::from(key), origin)));
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
    let stop_tags = stop_tags(&config, config.engine.unwrap_or(data.engine), &quirks)?;
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
    let (key, key_origin) = key.unzip();
    let origins = Origins { model: Some(model_origin), url: Some(url_origin), key: key_origin };
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
        stop_tags,
        origins,
        connect_timeout: config.retries.connect_timeout,
        facts,
        environment: environment.clone(),
    };
    Ok((settings, config))
}

/// The stop sequences of a configuration that wants them, where that can be.
#[cfg(feature = "http")]
fn stop_tags(config: &LlmConfig, engine: Engine, quirks: &Quirks) -> Result<Option<StopTags>, LlmError> {
    if !config.stop_after_call {
        return Ok(None);
    }
    let wrong =
        |why: &str| Err(configuration(&format!("llm.stop_after_call is set, and {why}"), "set it to false"));
    if config.tool_protocol == ToolProtocol::Native {
        return wrong("native calls (llm.tool_protocol) have no closing tags to stop at");
    }
    let refused = quirks.refused_parameters.iter().flatten().any(|refused| refused == "stop");
    if refused || engine == Engine::OpenaiResponses {
        return wrong(&format!(
            "model `{}` of provider `{}` takes no stop sequences",
            config.model_name, config.provider
        ));
    }
    Ok(Some(StopTags(config.dialect)))
}

#[cfg(feature = "http")]
fn build(engine: Engine, settings: EngineSettings) -> Result<Arc<dyn Provider>, LlmError> {
    match engine {
        #[cfg(feature = "openai")]
        Engine::Openai => Ok(Arc::new(crate::openai::ChatCompletions::provider(&settings)?)),
        #[cfg(feature = "openai-responses")]
        Engine::OpenaiResponses => Ok(Arc::new(crate::responses::Responses::provider(&settings)?)),
        #[cfg(feature = "anthropic")]
        Engine::Anthropic => Ok(Arc::new(crate::anthropic::Messages::provider(&settings)?)),
        #[cfg(not(all(feature = "openai", feature = "openai-responses", feature = "anthropic")))]
        engine => Err(not_built_in(engine, &settings.provider)),
    }
}

#[cfg(not(all(feature = "openai", feature = "openai-responses", feature = "anthropic")))]
fn not_built_in(engine: Engine, provider: &str) -> LlmError {
    configuration(
        &format!("the engine of provider `{provider}` ({engine:?}) is not built in"),
        "build with the feature of that name",
    )
}

fn configuration(message: &str, hint: &str) -> LlmError {
    LlmError::Configuration { message: message.to_owned(), hint: Some(hint.to_owned()) }
}
