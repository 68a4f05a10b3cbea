//! A model server in simulated time whose allowance changes, and callers who would always use more of it.
//!
//! Decides nothing but what such servers do: take as many requests at once as they have places, or as many a minute
//! as their rate allows, and refuse the others. Run it under a clock that jumps; hours take moments.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::cast_precision_loss)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use core_protocol::{Completion, FinishReason, Message};
use futures_util::{StreamExt as _, stream};
use llm_providers::{
    Capabilities, ChatRequest, ConcurrencyConfig, Endpoint, EventStream, Limiter, LlmClient, LlmConfig,
    LlmError, Provider, StreamEvent, Tokenizer,
};
use tokio::time::Instant;

/// What the server can do at one time.
#[derive(Debug, Clone, Copy)]
pub enum Allowance {
    /// So many requests at once.
    Places(u32),
    /// So many requests a second, with a bucket that holds those of ten seconds.
    Rate(f64),
}

/// One experiment.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: &'static str,
    /// From when on the server allows what; the first begins at 0.
    pub phases: Vec<(Duration, Allowance)>,
    /// When it ends.
    pub length: Duration,
    /// The pause that refusals ask for.
    pub retry_after: Option<Duration>,
    /// Shortest and longest answer.
    pub latency: (f64, f64),
    /// Callers at once.
    pub callers: usize,
    pub config: ConcurrencyConfig,
}

/// What came out, over the whole time and over its steady part: all but the minutes after a change.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// What was used, in place-seconds or requests.
    used: f64,
    allowed: f64,
    pub answered: u64,
    pub refused: u64,
}

impl Figures {
    /// Share of the allowance that was used.
    pub fn used(&self) -> f64 {
        self.used / self.allowed.max(f64::MIN_POSITIVE)
    }

    /// Share of the requests that were refused.
    pub fn refused(&self) -> f64 {
        self.refused as f64 / (self.refused + self.answered).max(1) as f64
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    pub whole: Figures,
    pub steady: Figures,
    pub moves: usize,
}

/// How long after a change of the allowance (and after the start) a time is not steady.
const SETTLING: Duration = Duration::from_secs(120);

struct Server {
    scenario: Scenario,
    began: Instant,
    state: Mutex<ServerState>,
}

struct ServerState {
    in_flight: u32,
    tokens: f64,
    last: Duration,
    random: fastrand::Rng,
    outcome: Outcome,
}

impl Server {
    fn allowance(&self, at: Duration) -> (Duration, Allowance) {
        *self.scenario.phases.iter().rev().find(|(from, _)| *from <= at).unwrap()
    }

    /// Books the time since the last event.
    fn pass_time(&self, state: &mut ServerState) -> (Duration, bool) {
        let now = self.began.elapsed();
        let (from, allowance) = self.allowance(state.last);
        let steady = state.last >= from + SETTLING;
        let span = (now - state.last).as_secs_f64();
        let (used, allowed) = match allowance {
            Allowance::Places(places) => {
                (f64::from(state.in_flight.min(places)) * span, f64::from(places) * span)
            }
            Allowance::Rate(rate) => {
                state.tokens = (state.tokens + rate * span).min(rate * 10.0);
                (0.0, rate * span)
            }
        };
        let Outcome { whole, steady: calm, .. } = &mut state.outcome;
        for figures in std::iter::once(whole).chain(steady.then_some(calm)) {
            figures.used += used;
            figures.allowed += allowed;
        }
        state.last = now;
        (now, steady)
    }

    /// How long the answer takes; none where the request is refused.
    fn arrive(&self) -> Option<Duration> {
        let mut state = self.state.lock().unwrap();
        let (now, steady) = self.pass_time(&mut state);
        let taken = match self.allowance(now).1 {
            Allowance::Places(places) => state.in_flight < places,
            Allowance::Rate(_) => state.tokens >= 1.0,
        };
        let by_rate = matches!(self.allowance(now).1, Allowance::Rate(_));
        let Outcome { whole, steady: calm, .. } = &mut state.outcome;
        for figures in std::iter::once(whole).chain(steady.then_some(calm)) {
            count(figures, taken, by_rate);
        }
        if !taken {
            return None;
        }
        state.in_flight += 1;
        state.tokens -= 1.0;
        let (least, most) = self.scenario.latency;
        Some(Duration::from_secs_f64(least + (most - least) * state.random.f64().powi(2)))
    }

    fn leave(&self) {
        let mut state = self.state.lock().unwrap();
        self.pass_time(&mut state);
        state.in_flight -= 1;
    }
}

fn count(figures: &mut Figures, taken: bool, by_rate: bool) {
    if taken {
        figures.answered += 1;
        figures.used += if by_rate { 1.0 } else { 0.0 };
    } else {
        figures.refused += 1;
    }
}

#[async_trait]
impl Provider for Server {
    fn name(&self) -> &str {
        "simulated"
    }

    fn model(&self) -> &str {
        "simulated"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn tokenizer(&self) -> Tokenizer {
        Tokenizer::QuarterOfBytes
    }

    async fn stream(&self, _: &ChatRequest) -> Result<EventStream, LlmError> {
        let Some(latency) = self.arrive() else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let endpoint =
                Endpoint { provider: "simulated".into(), model: "simulated".into(), ..Endpoint::default() };
            return Err(LlmError::RateLimited {
                endpoint: Arc::new(endpoint),
                retry_after: self.scenario.retry_after,
                detail: "too many requests".into(),
            });
        };
        tokio::time::sleep(latency).await;
        self.leave();
        let completion = Completion {
            message: Message::assistant("done"),
            finish_reason: FinishReason::Stop,
            usage: None,
            model: None,
        };
        Ok(stream::iter([Ok(StreamEvent::Done(Box::new(completion)))]).boxed())
    }
}

/// Plays a scenario in simulated time.
pub fn play(scenario: &Scenario, seed: u64) -> Outcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    // The client's own chance (the jitter of its pauses) follows the seed too.
    fastrand::seed(seed);
    runtime.block_on(async {
        let server = Arc::new(Server {
            scenario: scenario.clone(),
            began: Instant::now(),
            state: Mutex::new(ServerState {
                in_flight: 0,
                tokens: 0.0,
                last: Duration::ZERO,
                random: fastrand::Rng::with_seed(seed),
                outcome: Outcome::default(),
            }),
        });
        let limiter = Limiter::new("simulated", &scenario.config);
        let client =
            LlmClient::with_provider(Arc::clone(&server) as Arc<dyn Provider>, &LlmConfig::default())
                .limited_by(limiter.clone());
        let callers = (0..scenario.callers).map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let request = ChatRequest::new("", vec![Arc::new(Message::user("again"))]);
                loop {
                    let _ = client.complete(&request, &mut |_| {}).await;
                }
            })
        });
        let callers: Vec<_> = callers.collect();
        tokio::time::sleep(scenario.length).await;
        callers.iter().for_each(tokio::task::JoinHandle::abort);
        let mut outcome = server.state.lock().unwrap().outcome;
        outcome.moves = limiter.status().history.len();
        outcome
    })
}

/// The experiments that figures are given for.
pub fn scenarios() -> Vec<Scenario> {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let changing =
        [(0, 10), (20, 40), (40, 15), (60, 80), (80, 5)].map(|(at, n)| (minutes(at), Allowance::Places(n)));
    let places = |name, phases: &[(Duration, Allowance)], retry_after: Option<f64>| Scenario {
        name,
        phases: phases.to_vec(),
        length: minutes(100),
        retry_after: retry_after.map(Duration::from_secs_f64),
        latency: (2.0, 20.0),
        callers: 200,
        config: ConcurrencyConfig::default(),
    };
    vec![
        places("10, 40, 15, 80, 5 places", &changing, None),
        places("the same, Retry-After 2 s", &changing, Some(2.0)),
        places("the same, Retry-After 10 s", &changing, Some(10.0)),
        places("3 places", &[(minutes(0), Allowance::Places(3))], None),
        places("64 places", &[(minutes(0), Allowance::Places(64))], None),
        places("3 a second", &[(minutes(0), Allowance::Rate(3.0))], Some(1.0)),
        places(
            "1, 4, 2 a second",
            &[
                (minutes(0), Allowance::Rate(1.0)),
                (minutes(30), Allowance::Rate(4.0)),
                (minutes(60), Allowance::Rate(2.0)),
            ],
            None,
        ),
    ]
}
