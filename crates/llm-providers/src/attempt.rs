//! One try, with its limits of time.
//!
//! Decides when a try has taken too long: until the model's first sign of progress, between two signs,
//! as a whole. What keeps only the connection open is no sign. A long healthy stream is never cut by
//! anything but the limit of the try.

use std::sync::Arc;
use std::time::Duration;

use core_protocol::Completion;
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, timeout_at};

use crate::config::limit;
use crate::{CallEvent, ChatRequest, Endpoint, LlmError, Provider, RetryConfig, StreamEvent, TimeoutStage};

/// The limits of a try.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    first_event: Option<Duration>,
    idle: Option<Duration>,
    whole: Option<Duration>,
}

impl Limits {
    pub(crate) fn new(config: &RetryConfig) -> Self {
        Self {
            first_event: limit(config.first_event_timeout),
            idle: limit(config.idle_timeout),
            whole: limit(config.try_timeout),
        }
    }
}

/// When a wait ends, and what it means that it did.
struct Deadline {
    at: Instant,
    stage: TimeoutStage,
    limit: Duration,
}

/// Runs one try. `total`: when all tries together must be over, and how long that was.
pub(crate) async fn run(
    provider: &dyn Provider,
    endpoint: &Arc<Endpoint>,
    request: &ChatRequest,
    limits: &Limits,
    total: Option<(Instant, Duration)>,
    observer: &mut (dyn FnMut(CallEvent<'_>) + Send),
) -> Result<Completion, LlmError> {
    let started = Instant::now();
    let deadline = |progress: Option<Instant>| {
        let wait = match progress {
            Some(at) => {
                limits.idle.map(|limit| Deadline { at: at + limit, stage: TimeoutStage::Idle, limit })
            }
            None => limits.first_event.map(|limit| Deadline {
                at: started + limit,
                stage: TimeoutStage::FirstEvent,
                limit,
            }),
        };
        let whole =
            limits.whole.map(|limit| Deadline { at: started + limit, stage: TimeoutStage::Try, limit });
        let total = total.map(|(at, limit)| Deadline { at, stage: TimeoutStage::Total, limit });
        [wait, whole, total].into_iter().flatten().min_by_key(|deadline| deadline.at)
    };
    let late = |deadline: &Deadline| LlmError::Timeout {
        endpoint: Arc::clone(endpoint),
        stage: deadline.stage,
        limit: deadline.limit,
    };

    let mut stream = match deadline(None) {
        Some(until) => timeout_at(until.at, provider.stream(request)).await.map_err(|_| late(&until))??,
        None => provider.stream(request).await?,
    };
    let mut progress = None;
    let mut made_progress = false;
    loop {
        // What is there already needs no clock: a stream brings its events many at a time. Where it never
        // ends to do so, the runtime makes it pause now and then, and the limits are looked at.
        let event = match stream.next().now_or_never() {
            Some(event) => event,
            None => {
                if made_progress {
                    progress = Some(Instant::now());
                }
                match deadline(progress) {
                    Some(until) => timeout_at(until.at, stream.next()).await.map_err(|_| late(&until))?,
                    None => stream.next().await,
                }
            }
        };
        match event {
            Some(Ok(StreamEvent::TextDelta(text))) => observer(CallEvent::TextDelta(&text)),
            Some(Ok(StreamEvent::ThinkingDelta(text))) => observer(CallEvent::ThinkingDelta(&text)),
            Some(Ok(StreamEvent::Progress)) => {}
            Some(Ok(StreamEvent::Done(completion))) => return Ok(*completion),
            Some(Err(error)) => return Err(error),
            None => {
                return Err(LlmError::StreamBroken {
                    endpoint: Arc::clone(endpoint),
                    detail: "it ended without a whole reply".to_owned(),
                });
            }
        }
        made_progress = true;
    }
}
