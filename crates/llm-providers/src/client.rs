//! A provider with retries, limits, token counts and prices around it.
//!
//! Decides how one call becomes several tries, when a reply is not good enough, and how many tokens a
//! reply may have. The rules of pausing are in [`retry`](crate::retry), the limits of a try in
//! [`attempt`](crate::attempt).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use core_protocol::{Completion, Message, Usage};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::address::without_secrets;
use crate::attempt::{self, Limits};
use crate::cassette::{CassetteWriter, ModelProfile};
use crate::config::{limit, seconds};
use crate::limiter::{Limiter, Permit, Ticket};
use crate::retry::{RetryState, Verdict};
use crate::shortcoming::{LENGTH, shortcoming, shortcoming_words};
use crate::tokens::{self, TokenCounter};
use crate::{
    Capabilities, ChatRequest, Endpoint, Environment, LlmConfig, LlmError, Provider, Registry, Secret,
};

/// Window of a model about which nothing is known.
const UNKNOWN_CONTEXT: u64 = 65_536;
/// Factor on `max_tokens` after a reply that was cut off.
const GROWTH: f64 = 1.1;
/// Least room that a reply is asked for: below it the history is too long, and the server says so.
const LEAST_ROOM: u64 = 256;
/// Tokens and share of the prompt that are kept free, since the local count is an estimate.
const MARGIN: u64 = 64;
const MARGIN_DIVISOR: u64 = 50;

/// What happens during a call, as it happens.
#[derive(Debug)]
pub enum CallEvent<'a> {
    /// A piece of text.
    TextDelta(&'a str),
    /// A piece of thinking.
    ThinkingDelta(&'a str),
    /// A try failed or was not good enough; what streamed so far is void and another try follows.
    Retry {
        /// The try that failed, from 1.
        attempt: u32,
        /// Kind of the failure: that of the error, or `length` or `repetition`.
        kind: &'a str,
        /// What was wrong, without secrets.
        message: &'a str,
        /// The pause before the next try.
        wait: Duration,
    },
    /// The call has to wait: for its turn among others that ask the same server with the same key, or for the end of a
    /// pause that the server asked for or is owed after it refused the request. `Waited` follows, or the call ends.
    Waiting,
    /// Such waiting is over.
    Waited {
        /// How long.
        wait: Duration,
    },
}

/// A call that succeeded.
#[derive(Debug, Clone, PartialEq)]
pub struct CallOutcome {
    /// The reply.
    pub completion: Completion,
    /// Tries that failed or were not good enough.
    pub retries: u32,
    /// Tokens of replies that were not good enough: paid for, and not part of the completion's usage.
    pub discarded: Usage,
    /// From the first try to the end, pauses and waiting included.
    pub elapsed: Duration,
    /// The part of it that was spent waiting for other calls to the same server with the same key, and for the end of
    /// pauses after the server refused a request for its rate or load.
    pub waited: Duration,
}

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

/// A reply that is not good enough, kept in case that nothing better comes.
struct Kept {
    completion: Completion,
    kind: &'static str,
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
        Self(Arc::new(Inner {
            provider,
            config: config.clone(),
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

    /// The configuration, with everything filled in that the provider's data knows.
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
        Box::pin(self.completed(request, observer))
    }

    async fn completed(
        &self,
        request: &ChatRequest,
        observer: &mut (dyn FnMut(CallEvent<'_>) + Send),
    ) -> Result<CallOutcome, LlmError> {
        let inner = &*self.0;
        let started = Instant::now();
        let retries = &inner.config.retries;
        let mut total =
            limit(retries.total_timeout).filter(|_| !inner.in_no_time).map(|limit| (started + limit, limit));
        let ticket = inner.limiter.as_ref().map(Limiter::ticket);
        let mut waited = Duration::ZERO;
        let limits = Limits::new(retries);
        let mut state = RetryState::new(retries, inner.answered.load(Ordering::Relaxed));
        let mut request = request.clone();
        let mut room = self.fit(&mut request).await;
        let mut attempts = 0u32;
        let mut discarded = Usage::default();
        let mut kept: Option<Kept> = None;
        let mut shrunk = false;
        let outcome = |completion, attempts: u32, waited, mut discarded: Usage, instead_of: Option<Kept>| {
            discarded += instead_of.and_then(|kept| kept.completion.usage).unwrap_or_default();
            CallOutcome {
                completion,
                retries: attempts.saturating_sub(1),
                discarded,
                elapsed: started.elapsed(),
                waited,
            }
        };

        loop {
            let turn = self.turn(ticket);
            tokio::pin!(turn);
            let turn = match futures_util::poll!(&mut turn) {
                Poll::Ready(turn) => turn,
                Poll::Pending => {
                    observer(CallEvent::Waiting);
                    turn.await
                }
            };
            let permit = match turn {
                Ok(permit) => permit,
                // A pause that is too long to wait for: the call ends as if it had been told so itself.
                Err(error) => {
                    return kept.map_or(Err(error), |kept| {
                        Ok(outcome(kept.completion, attempts, waited, discarded, None))
                    });
                }
            };
            if let Some(wait) = permit.as_ref().map(Permit::waited).filter(|wait| !wait.is_zero()) {
                waited += wait;
                // Waiting for others is not the server's time.
                total = total.map(|(until, limit)| (until + wait, limit));
                observer(CallEvent::Waited { wait });
            }
            attempts = attempts.saturating_add(1);
            let tried =
                attempt::run(&*inner.provider, &inner.endpoint, &request, &limits, total, observer).await;
            if let Some(recorder) = &inner.recorder {
                recorder.model(&request, &tried).map_err(Box::new)?;
            }
            if let Some(permit) = permit {
                match &tried {
                    Ok(_) => permit.succeeded(),
                    Err(error) => permit.failed(error),
                }
            }
            let error = match tried {
                Ok(completion) => {
                    inner.answered.store(true, Ordering::Relaxed);
                    state.answered();
                    self.learn(&request, &completion).await;
                    let Some(kind) = shortcoming(&completion) else {
                        return Ok(outcome(completion, attempts, waited, discarded, kept));
                    };
                    if !state.unsatisfied() {
                        return Ok(outcome(completion, attempts, waited, discarded, kept));
                    }
                    if kind == LENGTH {
                        if room.is_none() {
                            room = Some(self.exact_room(&request).await);
                        }
                        let asked = request.max_tokens.unwrap_or(inner.config.max_tokens);
                        let grown = ((asked as f64 * GROWTH).ceil() as u64).min(room.unwrap_or(0));
                        if grown <= asked {
                            return Ok(outcome(completion, attempts, waited, discarded, kept));
                        }
                        request.max_tokens = Some(grown);
                    }
                    let message = shortcoming_words(kind, &completion);
                    observer(CallEvent::Retry {
                        attempt: attempts,
                        kind,
                        message: &message,
                        wait: Duration::ZERO,
                    });
                    if let Some(before) = kept.replace(Kept { completion, kind }) {
                        discarded += before.completion.usage.unwrap_or_default();
                    }
                    continue;
                }
                Err(error) => error,
            };
            if error_is_an_answer(&error) {
                inner.answered.store(true, Ordering::Relaxed);
                state.answered();
            }
            if let Some(smaller) =
                smaller_reply(&error, &request, inner.config.max_tokens).filter(|_| !shrunk)
                && state.unsatisfied()
            {
                shrunk = true;
                request.max_tokens = Some(smaller);
                room = Some(smaller);
                let (kind, message) = (error.kind(), error.to_string());
                observer(CallEvent::Retry {
                    attempt: attempts,
                    kind,
                    message: &message,
                    wait: Duration::ZERO,
                });
                continue;
            }
            let (kind, message) = (error.kind(), error.to_string());
            let jitter = fastrand::f64() * 2.0 - 1.0;
            let given_up = match state.failed(error.clone(), jitter) {
                Verdict::Again(wait) if total.is_none_or(|(until, _)| Instant::now() + wait < until) => {
                    tracing::debug!(attempt = attempts, kind, %message, ?wait, "another try follows");
                    observer(CallEvent::Retry { attempt: attempts, kind, message: &message, wait });
                    if !inner.in_no_time {
                        let refused = error.is_refusal_for_load();
                        if refused {
                            observer(CallEvent::Waiting);
                        }
                        tokio::time::sleep(wait).await;
                        if refused {
                            waited += wait;
                            observer(CallEvent::Waited { wait });
                        }
                    }
                    continue;
                }
                Verdict::Again(_) => error,
                Verdict::GiveUp(error) => error,
            };
            return match kept {
                Some(kept) if !given_up.is_permanent() => {
                    tracing::debug!(kind = kept.kind, "nothing better came; the reply is taken as it is");
                    Ok(outcome(kept.completion, attempts, waited, discarded, None))
                }
                _ => Err(given_up),
            };
        }
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

    /// Lowers the reply's limit to the room that the prompt leaves. Gives the room, where it had to be
    /// counted: most requests are so short that no counting can make a difference.
    async fn fit(&self, request: &mut ChatRequest) -> Option<u64> {
        let wanted = request.max_tokens.unwrap_or(self.0.config.max_tokens);
        let window = self.0.max_context_length;
        if tokens::upper_bound(request).saturating_add(wanted).saturating_add(MARGIN) <= window {
            return None;
        }
        let room = self.exact_room(request).await;
        if room < wanted {
            request.max_tokens = Some(room.max(LEAST_ROOM.min(wanted)));
        }
        Some(room)
    }

    /// Tokens that the window has left beside the prompt, on the safe side.
    async fn exact_room(&self, request: &ChatRequest) -> u64 {
        let counter = Arc::clone(&self.0.counter);
        let counted = request.clone();
        let prompt = tokio::task::spawn_blocking(move || counter.request(&counted))
            .await
            .unwrap_or_else(|_| tokens::upper_bound(request) / 4);
        let margin = MARGIN + prompt / MARGIN_DIVISOR;
        self.0.max_context_length.saturating_sub(prompt.saturating_add(margin))
    }

    /// Waits for leave to send a request.
    async fn turn(&self, ticket: Option<Ticket>) -> Result<Option<Permit>, LlmError> {
        let (Some(limiter), Some(ticket)) = (&self.0.limiter, ticket) else { return Ok(None) };
        let longest_pause = seconds(self.0.config.retries.retry_after_max);
        limiter.acquire(ticket, longest_pause).await.map(Some).map_err(|pause| LlmError::RateLimited {
            endpoint: Arc::clone(&self.0.endpoint),
            retry_after: Some(pause),
            detail: "the server asked an earlier request for this pause".to_owned(),
        })
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

/// The limit with which a request fits after all, where the server said how long prompt and window are.
fn smaller_reply(error: &LlmError, request: &ChatRequest, configured: u64) -> Option<u64> {
    let LlmError::ContextExceeded { prompt_tokens: Some(prompt), limit: Some(limit), .. } = error else {
        return None;
    };
    let asked = request.max_tokens.unwrap_or(configured);
    let room = limit.saturating_sub(*prompt).saturating_sub(MARGIN);
    (room >= LEAST_ROOM && room < asked).then_some(room)
}

/// Whether an error shows that a server is there.
fn error_is_an_answer(error: &LlmError) -> bool {
    !matches!(error, LlmError::Unreachable { .. } | LlmError::Timeout { .. })
}
