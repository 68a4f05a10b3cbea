//! A provider with retries, limits, token counts and prices around it. Decides what belongs to a client and what is told
//! of it; how a call goes is in [`call`].

mod call;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use core_protocol::{Completion, Message, Usage};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::address::without_secrets;
use crate::cassette::{CassetteWriter, ModelProfile};
use crate::limiter::Limiter;
use crate::tokens::TokenCounter;
use crate::{
    Capabilities, ChatRequest, Endpoint, Environment, LlmConfig, LlmError, Provider, Registry, Secret,
};

use call::Call;
pub use call::{CallEvent, CallOutcome};

/// Window of a model about which nothing is known.
const UNKNOWN_CONTEXT: u64 = 65_536;

/// A provider with retries, limits, token counts and prices around it. Clones share everything.
#[derive(Debug, Clone)]
pub struct LlmClient(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    provider: Arc<dyn Provider>,
    config: LlmConfig,
    endpoint: Arc<Endpoint>,
    max_context_length: u64,
    counter: Arc<TokenCounter>,
    /// Whether the server ever answered.
    answered: Arc<AtomicBool>,
    limiter: Option<Limiter>,
    recorder: Option<Arc<CassetteWriter>>,
    /// Whether pauses are told and not made, and no limit of time holds: a replay.
    in_no_time: bool,
    /// What the log says of it, where that is not the provider's own description.
    facts: Option<Map<String, Value>>,
}

impl LlmClient {
    /// The client that a configuration describes, from the built-in providers. Cheap: nothing is sent, no
    /// certificate is loaded; the tokenizer's tables begin to load on a thread of their own.
    ///
    /// # Errors
    ///
    /// A setting is wrong or missing. `auto` is no provider: see [`detect`](crate::detect).
    pub fn from_config(config: &LlmConfig, environment: &Environment) -> Result<Self, LlmError> {
        Registry::builtin().client(config, environment)
    }

    /// A client around a provider of one's own.
    #[must_use]
    pub fn with_provider(provider: Arc<dyn Provider>, config: &LlmConfig) -> Self {
        let counter = TokenCounter::new(provider.tokenizer());
        let endpoint = Endpoint {
            provider: provider.name().to_owned(),
            model: provider.model().to_owned(),
            url: config.base_url.as_deref().map(without_secrets),
            ..Endpoint::default()
        };
        let max_context_length = config
            .max_context_length
            .or_else(|| provider.capabilities().context_length)
            .unwrap_or(UNKNOWN_CONTEXT);
        let config = LlmConfig { price: config.price.or(provider.price()), ..config.clone() };
        Self(Arc::new(Inner {
            provider,
            config,
            endpoint: Arc::new(endpoint),
            max_context_length,
            counter: Arc::new(counter),
            answered: Arc::default(),
            limiter: None,
            recorder: None,
            in_no_time: false,
            facts: None,
        }))
    }

    /// The same client, waiting for its turn among all that share the limiter.
    #[must_use]
    pub fn limited_by(&self, limiter: Limiter) -> Self {
        Self(Arc::new(Inner { limiter: Some(limiter), ..(*self.0).clone() }))
    }

    /// The same client; every try of its calls is added to a cassette.
    #[must_use]
    pub fn recorded_by(&self, recorder: Arc<CassetteWriter>) -> Self {
        Self(Arc::new(Inner { recorder: Some(recorder), ..(*self.0).clone() }))
    }

    /// The same client as it was when it was recorded, without pauses and limits of time.
    pub(crate) fn as_recorded(&self, max_context_length: u64, facts: Map<String, Value>) -> Self {
        Self(Arc::new(Inner {
            max_context_length,
            facts: Some(facts),
            in_no_time: true,
            ..(*self.0).clone()
        }))
    }

    /// Everything that a run depends on beside the replies, for the header of a cassette.
    #[must_use]
    pub fn profile(&self) -> ModelProfile {
        let inner = &*self.0;
        let mut config = inner.config.clone();
        // Of secrets only that there were some.
        config.api_key = config.api_key.map(|_| Secret::new("***"));
        config.quirks.headers = None;
        ModelProfile {
            provider: inner.provider.name().to_owned(),
            model: inner.provider.model().to_owned(),
            capabilities: inner.provider.capabilities(),
            tokenizer: inner.provider.tokenizer(),
            config,
            max_context_length: inner.max_context_length,
            facts: self.describe(),
        }
    }

    /// What its requests wait for, where they do.
    #[must_use]
    pub fn limiter(&self) -> Option<&Limiter> {
        self.0.limiter.as_ref()
    }

    /// What provider and model can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.0.provider.capabilities()
    }

    /// The provider's name.
    #[must_use]
    pub fn provider_name(&self) -> &str {
        self.0.provider.name()
    }

    /// The model's name.
    #[must_use]
    pub fn model(&self) -> &str {
        self.0.provider.model()
    }

    /// Tokens that prompt and reply may have together: from the configuration, else from the model's
    /// data, else from the provider, else 65,536.
    #[must_use]
    pub fn max_context_length(&self) -> u64 {
        self.0.max_context_length
    }

    /// Tokens to generate at most in one reply.
    #[must_use]
    pub fn max_tokens(&self) -> u64 {
        self.0.config.max_tokens
    }

    /// The configuration, with everything filled in that the provider or its data knows.
    #[must_use]
    pub fn config(&self) -> &LlmConfig {
        &self.0.config
    }

    /// Asks the model, with retries. Dropping the future cancels the call.
    ///
    /// Tries again after errors that may pass, after a reply that was cut off (with a tenth more
    /// tokens, as far as the window has room) and after one that ends in a loop. Where no try gives a
    /// better one, such a reply is returned as it is.
    ///
    /// # Errors
    ///
    /// What no retry cured.
    pub fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
        observer: &'a mut (dyn FnMut(CallEvent<'_>) + Send),
    ) -> BoxFuture<'a, Result<CallOutcome, LlmError>> {
        // A box ends here what every crate above would compile once more.
        Box::pin(Call::new(self, request, observer).run())
    }

    /// Tokens of a text, by o200k and corrected by what the server counted so far.
    ///
    /// Blocks for the time of counting (about 20 MB/s), the first time in a process for loading too;
    /// see [`warm_up`](crate::warm_up).
    #[must_use]
    pub fn count_tokens(&self, text: &str) -> u64 {
        self.0.counter.text(text)
    }

    /// Tokens of a message with what a template adds to it; counted once for each message.
    #[must_use]
    pub fn count_message(&self, message: &Arc<Message>) -> u64 {
        self.0.counter.message(message)
    }

    /// Tokens of a whole request: system prompt, messages, native tools.
    #[must_use]
    pub fn count_request(&self, request: &ChatRequest) -> u64 {
        self.0.counter.request(request)
    }

    /// How many tokens the server counts for each that is counted here, learnt from the usage that it reports; none
    /// before it reported any for a prompt of some length. Every count is corrected by it.
    #[must_use]
    pub fn calibration(&self) -> Option<f64> {
        self.0.counter.ratio()
    }

    /// US dollars, where the model's prices are known.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        self.0.config.price.map(|price| price.cost(usage))
    }

    /// The body that would be sent for a request, without sending it; none where the provider sends
    /// nothing. The limit of the reply is that of the request: the room in the window is not looked at.
    ///
    /// # Errors
    ///
    /// The request asks for what the provider cannot do.
    pub fn request_body(&self, request: &ChatRequest) -> Result<Option<Vec<u8>>, LlmError> {
        self.0.provider.request_body(request)
    }

    /// Model and parameters for the log, without secrets.
    #[must_use]
    pub fn describe(&self) -> Map<String, Value> {
        let inner = &*self.0;
        if let Some(facts) = &inner.facts {
            return facts.clone();
        }
        let mut facts = Map::new();
        facts.insert("provider".to_owned(), json!(inner.endpoint.provider));
        facts.insert("model".to_owned(), json!(inner.endpoint.model));
        if let Some(url) = &inner.endpoint.url {
            facts.insert("base_url".to_owned(), json!(url));
        }
        facts.insert("max_tokens".to_owned(), json!(inner.config.max_tokens));
        facts.insert("max_context_length".to_owned(), json!(inner.max_context_length));
        facts.extend(inner.provider.describe());
        facts
    }

    /// Compares the server's count of the prompt with ours.
    async fn learn(&self, request: &ChatRequest, completion: &Completion) {
        let Some(usage) = completion.usage else { return };
        if self.0.counter.put_off(request, usage.input) {
            return;
        }
        let counter = Arc::clone(&self.0.counter);
        let request = request.clone();
        // Counting cannot fail; a runtime that is shutting down may refuse the task.
        let _ = tokio::task::spawn_blocking(move || counter.learn(&request, usage.input)).await;
    }
}
