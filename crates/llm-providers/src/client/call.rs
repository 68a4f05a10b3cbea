//! One call to a model: how it becomes several tries, when a reply is not good enough, and how many tokens a reply may
//! have. The rules of pausing are in [`retry`](crate::retry), the limits of a try in [`attempt`](crate::attempt).

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use core_protocol::{Completion, Usage};
use tokio::time::Instant;

use super::LlmClient;
use crate::attempt::{self, Limits};
use crate::config::{limit, seconds};
use crate::limiter::{Limiter, Permit, Ticket};
use crate::retry::{RetryState, Verdict};
use crate::shortcoming::{LENGTH, shortcoming, shortcoming_words};
use crate::tokens;
use crate::{ChatRequest, LlmError};

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

/// Who is told what happens.
pub(super) type Observer<'a> = &'a mut (dyn FnMut(CallEvent<'_>) + Send);

/// What a try leads to: another one, or the end of the call.
type Next = ControlFlow<Result<CallOutcome, LlmError>>;

/// A reply that is not good enough, kept in case that nothing better comes.
struct Kept {
    completion: Completion,
    kind: &'static str,
}

/// A call that is under way.
pub(super) struct Call<'a> {
    client: &'a LlmClient,
    observer: Observer<'a>,
    /// What is sent; the limit of the reply changes from try to try.
    request: ChatRequest,
    started: Instant,
    /// When all tries have to have ended, and after how long that is.
    total: Option<(Instant, Duration)>,
    state: RetryState,
    /// Tokens that the window leaves for a reply, where they had to be counted.
    room: Option<u64>,
    /// Whether the reply's limit was lowered to what the server said it has room for.
    shrunk: bool,
    attempts: u32,
    waited: Duration,
    discarded: Usage,
    kept: Option<Kept>,
}

impl<'a> Call<'a> {
    pub(super) fn new(client: &'a LlmClient, request: &ChatRequest, observer: Observer<'a>) -> Self {
        let started = Instant::now();
        let inner = &*client.0;
        let retries = &inner.config.retries;
        let total = limit(retries.total_timeout).filter(|_| !inner.in_no_time);
        Self {
            client,
            observer,
            request: request.clone(),
            started,
            total: total.map(|limit| (started + limit, limit)),
            state: RetryState::new(retries, inner.answered.load(Ordering::Relaxed)),
            room: None,
            shrunk: false,
            attempts: 0,
            waited: Duration::ZERO,
            discarded: Usage::default(),
            kept: None,
        }
    }

    /// Tries until a reply is good enough or nothing more is to be hoped for.
    pub(super) async fn run(mut self) -> Result<CallOutcome, LlmError> {
        let inner = &*self.client.0;
        let ticket = inner.limiter.as_ref().map(Limiter::ticket);
        let limits = Limits::new(&inner.config.retries);
        self.fit().await;
        loop {
            let permit = match self.its_turn(ticket).await {
                Ok(permit) => permit,
                // A pause that is too long to wait for: the call ends as if it had been told so itself.
                Err(error) => return self.kept_or(error),
            };
            self.attempts = self.attempts.saturating_add(1);
            let (provider, endpoint) = (&*inner.provider, &inner.endpoint);
            let tried =
                attempt::run(provider, endpoint, &self.request, &limits, self.total, self.observer).await;
            if let Some(recorder) = &inner.recorder {
                recorder.model(&self.request, &tried).map_err(Box::new)?;
            }
            if let Some(permit) = permit {
                match &tried {
                    Ok(_) => permit.succeeded(),
                    Err(error) => permit.failed(error),
                }
            }
            let next = match tried {
                Ok(completion) => self.replied(completion).await,
                Err(error) => self.failed(error).await,
            };
            if let Break(end) = next {
                return end;
            }
        }
    }

    /// Waits for leave to send a request.
    async fn its_turn(&mut self, ticket: Option<Ticket>) -> Result<Option<Permit>, LlmError> {
        let inner = &*self.client.0;
        let (Some(limiter), Some(ticket)) = (&inner.limiter, ticket) else { return Ok(None) };
        let turn = limiter.acquire(ticket, seconds(inner.config.retries.retry_after_max));
        tokio::pin!(turn);
        let turn = match futures_util::poll!(&mut turn) {
            Poll::Ready(turn) => turn,
            Poll::Pending => {
                (self.observer)(CallEvent::Waiting);
                turn.await
            }
        };
        let permit = turn.map_err(|pause| LlmError::RateLimited {
            endpoint: Arc::clone(&inner.endpoint),
            retry_after: Some(pause),
            detail: "the server asked an earlier request for this pause".to_owned(),
        })?;
        let wait = permit.waited();
        if !wait.is_zero() {
            // Waiting for others is not the server's time.
            self.total = self.total.map(|(until, limit)| (until + wait, limit));
            self.tell_waited(wait);
        }
        Ok(Some(permit))
    }

    /// Looks at a reply: the call ends with it, or it is kept and another try follows.
    async fn replied(&mut self, completion: Completion) -> Next {
        self.server_is_there();
        self.client.learn(&self.request, &completion).await;
        let Some(kind) = shortcoming(&completion) else { return self.ended_with(completion) };
        if !self.state.unsatisfied() || (kind == LENGTH && !self.grow().await) {
            return self.ended_with(completion);
        }
        self.tell_retry(kind, &shortcoming_words(kind, &completion), Duration::ZERO);
        if let Some(before) = self.kept.replace(Kept { completion, kind }) {
            self.discarded += before.completion.usage.unwrap_or_default();
        }
        Continue(())
    }

    /// Looks at a failure: another try follows, after a pause or with a shorter reply, or the call ends.
    async fn failed(&mut self, error: LlmError) -> Next {
        if is_an_answer(&error) {
            self.server_is_there();
        }
        if self.shrink(&error) {
            self.tell_retry(error.kind(), &error.to_string(), Duration::ZERO);
            return Continue(());
        }
        let jitter = fastrand::f64() * 2.0 - 1.0;
        let given_up = match self.state.failed(error.clone(), jitter) {
            Verdict::Again(wait) if self.total.is_none_or(|(until, _)| Instant::now() + wait < until) => {
                self.pause(&error, wait).await;
                return Continue(());
            }
            Verdict::Again(_) => error,
            Verdict::GiveUp(error) => error,
        };
        Break(self.kept_or(given_up))
    }

    async fn pause(&mut self, error: &LlmError, wait: Duration) {
        let (kind, message) = (error.kind(), error.to_string());
        tracing::debug!(attempt = self.attempts, kind, %message, ?wait, "another try follows");
        self.tell_retry(kind, &message, wait);
        if self.client.0.in_no_time {
            return;
        }
        let refused = error.is_refusal_for_load();
        if refused {
            (self.observer)(CallEvent::Waiting);
        }
        tokio::time::sleep(wait).await;
        if refused {
            self.tell_waited(wait);
        }
    }

    fn server_is_there(&mut self) {
        self.client.0.answered.store(true, Ordering::Relaxed);
        self.state.answered();
    }

    fn tell_retry(&mut self, kind: &str, message: &str, wait: Duration) {
        (self.observer)(CallEvent::Retry { attempt: self.attempts, kind, message, wait });
    }

    fn tell_waited(&mut self, wait: Duration) {
        self.waited += wait;
        (self.observer)(CallEvent::Waited { wait });
    }

    fn ended_with(&mut self, completion: Completion) -> Next {
        if let Some(instead_of) = self.kept.take() {
            self.discarded += instead_of.completion.usage.unwrap_or_default();
        }
        Break(Ok(self.outcome(completion)))
    }

    /// The best reply that there was, or the error; one that no try can cure says more than such a reply.
    fn kept_or(&mut self, error: LlmError) -> Result<CallOutcome, LlmError> {
        match self.kept.take() {
            Some(kept) if !error.is_permanent() => {
                tracing::debug!(kind = kept.kind, "nothing better came; the reply is taken as it is");
                Ok(self.outcome(kept.completion))
            }
            _ => Err(error),
        }
    }

    fn outcome(&self, completion: Completion) -> CallOutcome {
        CallOutcome {
            completion,
            retries: self.attempts.saturating_sub(1),
            discarded: self.discarded,
            elapsed: self.started.elapsed(),
            waited: self.waited,
        }
    }

    /// The reply's limit in tokens.
    fn asked(&self) -> u64 {
        self.request.max_tokens.unwrap_or(self.client.0.config.max_tokens)
    }

    /// Lowers the reply's limit to the room that the prompt leaves. The room is counted only where it can make a
    /// difference: most requests are too short for that.
    async fn fit(&mut self) {
        let (wanted, window) = (self.asked(), self.client.0.max_context_length);
        if tokens::upper_bound(&self.request).saturating_add(wanted).saturating_add(MARGIN) <= window {
            return;
        }
        let room = self.counted_room().await;
        if room < wanted {
            self.request.max_tokens = Some(room.max(LEAST_ROOM.min(wanted)));
        }
    }

    /// Raises the reply's limit after a reply that was cut off, as far as the window has room.
    async fn grow(&mut self) -> bool {
        let asked = self.asked();
        let grown = ((asked as f64 * GROWTH).ceil() as u64).min(self.counted_room().await);
        if grown > asked {
            self.request.max_tokens = Some(grown);
        }
        grown > asked
    }

    /// Lowers the reply's limit, once, where the server says how long prompt and window are and it fits then.
    fn shrink(&mut self, error: &LlmError) -> bool {
        let Some(smaller) = smaller_reply(error, self.asked()).filter(|_| !self.shrunk) else { return false };
        if !self.state.unsatisfied() {
            return false;
        }
        self.shrunk = true;
        self.request.max_tokens = Some(smaller);
        self.room = Some(smaller);
        true
    }

    /// Tokens that the window has left beside the prompt, on the safe side; counted once a call.
    async fn counted_room(&mut self) -> u64 {
        if let Some(room) = self.room {
            return room;
        }
        let counter = Arc::clone(&self.client.0.counter);
        let counted = self.request.clone();
        let prompt = tokio::task::spawn_blocking(move || counter.request(&counted))
            .await
            .unwrap_or_else(|_| tokens::upper_bound(&self.request) / 4);
        let margin = MARGIN + prompt / MARGIN_DIVISOR;
        let room = self.client.0.max_context_length.saturating_sub(prompt.saturating_add(margin));
        self.room = Some(room);
        room
    }
}

/// The limit with which a request fits after all.
fn smaller_reply(error: &LlmError, asked: u64) -> Option<u64> {
    let LlmError::ContextExceeded { prompt_tokens: Some(prompt), limit: Some(limit), .. } = error else {
        return None;
    };
    let room = limit.saturating_sub(*prompt).saturating_sub(MARGIN);
    (room >= LEAST_ROOM && room < asked).then_some(room)
}

/// Whether an error shows that a server is there.
fn is_an_answer(error: &LlmError) -> bool {
    !matches!(error, LlmError::Unreachable { .. } | LlmError::Timeout { .. })
}
