//! Does what the [machine](crate::machine) says: sends requests, runs tools, counts tokens, keeps the clock, tells
//! every event. Decides nothing about the run but what only a clock can: limits and cancellation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use core_protocol::Message;
use core_protocol::event::{ErrorReport, EventBody, RunStatus, RunSummary};
use llm_providers::{CallEvent, CallOutcome, ChatRequest, LlmClient, LlmError};
use tokio_util::sync::CancellationToken;

use crate::config::RunLimits;
use crate::limits::{self, LimitHit, Spent};
use crate::machine::state::PlannedCall;
use crate::machine::{
    ContextCounts, ContextQuestion, Machine, ModelCall, ModelFailure, ModelFailureClass, ModelReply, Step,
    ToolReport,
};
use crate::ports::{EventSink, SinkError, Stamp, Tools};

/// Counting more text than this is moved off the async threads (about 2 ms of work).
const BLOCKING_COUNT_BYTES: usize = 32 * 1024;

/// How long tools that were told to stop may take to say so.
const STOP_GRACE: Duration = Duration::from_millis(800);

/// What a run works with.
pub struct Driver<'a> {
    /// The model.
    pub client: &'a LlmClient,
    /// The tools.
    pub tools: &'a dyn Tools,
    /// Who is told.
    pub sink: &'a dyn EventSink,
    /// Ends the run when cancelled.
    pub cancel: CancellationToken,
    /// Bounds of the whole run.
    pub limits: RunLimits,
    /// The agent's name in events.
    pub agent: &'a str,
    /// When the run began.
    pub started: Instant,
}

/// Time and money of a run so far.
#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    llm: Duration,
    tools: Duration,
    cost: f64,
    /// Whether any reply, and whether every reply, had a price.
    priced: bool,
    unpriced: bool,
}

/// Why waiting ended early.
enum Interruption {
    Cancelled,
    Wall,
}

impl Driver<'_> {
    /// Carries a run to its end and gives its figures. The caller has told `run_started` and tells `run_finished`.
    pub async fn drive(&self, machine: &mut Machine) -> RunSummary {
        let mut meter = Meter::default();
        if let Err(error) = self.drive_to_end(machine, &mut meter).await {
            machine.fail(ErrorReport {
                kind: "io".into(),
                message: format!("the run's log cannot be written: {error}"),
                hint: Some("Free some space, or choose another place with --runs-dir.".into()),
            });
            // The log is what failed; the events that remain have nowhere to go.
            machine.take_events();
        }
        self.summary(machine, meter)
    }

    async fn drive_to_end(&self, machine: &mut Machine, meter: &mut Meter) -> Result<(), SinkError> {
        let system: Arc<str> = machine.system_prompt().into();
        let (pass, _) = machine.position();
        self.tell((pass, 0), EventBody::SystemPrompt { text: system.to_string() })?;
        loop {
            if self.cancel.is_cancelled() {
                machine.cancel();
            } else if machine.in_loop()
                && let Some(hit) = limits::reached(&self.limits, self.spent(machine, *meter))
            {
                self.end_by_limit(machine, hit)?;
            }
            let step = machine.next_step();
            self.flush(machine)?;
            match step {
                Step::Finished => return Ok(()),
                Step::CallModel(call) => self.call_model(machine, meter, &system, call).await?,
                Step::CallTools(calls) => self.call_tools(machine, meter, &calls).await,
                Step::CountContext(question) => {
                    let counts = self.count(&system, &question);
                    machine.context_counted(counts);
                }
            }
            self.flush(machine)?;
        }
    }

    async fn call_model(
        &self,
        machine: &mut Machine,
        meter: &mut Meter,
        system: &Arc<str>,
        call: ModelCall,
    ) -> Result<(), SinkError> {
        let began = Instant::now();
        let position = machine.position();
        let id = call.call;
        let request = ChatRequest {
            system: Arc::clone(system),
            messages: call.messages,
            tools: call.tools,
            max_tokens: None,
            continue_final_message: call.continue_final_message,
        };
        let mut told = Ok(());
        let mut observer = |event: CallEvent<'_>| {
            if told.is_ok() {
                told = self.tell(position, event_of(id, &event));
            }
        };
        let talk = async {
            if !call.pause.is_zero() {
                tokio::time::sleep(call.pause).await;
            }
            self.client.complete(&request, &mut observer).await
        };
        let result = self.unless_interrupted(machine.in_loop(), talk).await;
        meter.llm += began.elapsed();
        told?;
        match result {
            Ok(Ok(outcome)) => {
                self.price(meter, &outcome);
                machine.model_replied(ModelReply {
                    call: id,
                    ms: millis(outcome.elapsed),
                    retries: outcome.retries,
                    completion: outcome.completion,
                    discarded: outcome.discarded,
                });
            }
            Ok(Err(error)) => machine.model_failed(failure_of(id, &error)),
            // The head of the loop sees the cancellation or the limit and ends the run or the pass.
            Err(Interruption::Cancelled | Interruption::Wall) => machine.model_cut_off(),
        }
        Ok(())
    }

    async fn call_tools(&self, machine: &mut Machine, meter: &mut Meter, calls: &[PlannedCall]) {
        let began = Instant::now();
        let stop = self.cancel.child_token();
        let all = futures_util::future::join_all(calls.iter().map(|planned| self.call_tool(planned, &stop)));
        tokio::pin!(all);
        let result = match self.unless_interrupted(true, &mut all).await {
            Ok(reports) => Some(reports),
            Err(Interruption::Cancelled | Interruption::Wall) => {
                stop.cancel();
                let _ = tokio::time::timeout(STOP_GRACE, &mut all).await;
                None
            }
        };
        meter.tools += began.elapsed();
        if let Some(reports) = result {
            machine.tools_finished(reports);
        }
    }

    async fn call_tool(&self, planned: &PlannedCall, stop: &CancellationToken) -> ToolReport {
        if let Some(refusal) = planned.refusal() {
            return refusal;
        }
        let began = Instant::now();
        let call = &planned.call;
        let outcome = self.tools.call(&call.server, &call.tool, call.arguments.clone(), stop).await;
        ToolReport {
            error_kind: outcome.failure.map(|failure| failure.kind().to_owned()),
            curable: outcome.failure.is_some_and(mcp_tools::ToolFailure::is_curable),
            result: outcome.result,
            ms: millis(began.elapsed()),
        }
    }

    /// Waits for `work`, at most until somebody cancels or the wall time of the run is used up.
    async fn unless_interrupted<T>(
        &self,
        bounded: bool,
        work: impl Future<Output = T>,
    ) -> Result<T, Interruption> {
        let left = self
            .limits
            .wall
            .filter(|_| bounded)
            .and_then(|wall| Duration::try_from_secs_f64(wall).ok())
            .map(|wall| wall.saturating_sub(self.started.elapsed()));
        let wall = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Interruption::Cancelled),
            result = work => Ok(result),
            () = wall => Err(Interruption::Wall),
        }
    }

    fn count(&self, system: &str, question: &ContextQuestion) -> ContextCounts {
        let count_all = |messages: &[Arc<Message>]| -> u64 {
            messages.iter().map(|message| self.client.count_message(message)).sum()
        };
        let count = || ContextCounts {
            results: count_all(&question.results),
            final_prompt: self.client.count_message(&question.final_prompt),
            last_exchange: question
                .last_exchange
                .as_deref()
                .map_or(0, |messages| count_all(messages) + self.client.count_tokens(system)),
        };
        let bytes: usize = question.results.iter().map(|message| text_bytes(message)).sum();
        let many_threads = tokio::runtime::Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread);
        if bytes > BLOCKING_COUNT_BYTES && many_threads {
            tokio::task::block_in_place(count)
        } else {
            count()
        }
    }

    fn end_by_limit(&self, machine: &mut Machine, hit: LimitHit) -> Result<(), SinkError> {
        let LimitHit { reason, name, spent, max } = hit;
        self.tell(machine.position(), EventBody::LimitReached { limit: name.to_owned(), spent, max })?;
        machine.limit_reached(reason);
        Ok(())
    }

    fn spent(&self, machine: &Machine, meter: Meter) -> Spent {
        let usage = machine.state().usage;
        Spent {
            wall: self.started.elapsed(),
            tokens: usage.input.saturating_add(usage.output),
            cost: (!meter.unpriced).then_some(meter.cost),
        }
    }

    fn price(&self, meter: &mut Meter, outcome: &CallOutcome) {
        match outcome.completion.usage.and_then(|usage| self.client.cost(&usage)) {
            Some(cost) => {
                meter.cost += cost;
                meter.priced = true;
            }
            None => meter.unpriced = true,
        }
    }

    fn flush(&self, machine: &mut Machine) -> Result<(), SinkError> {
        for event in machine.take_events() {
            self.tell((event.pass, event.turn), event.body)?;
        }
        Ok(())
    }

    fn tell(&self, (pass, turn): (u32, u32), body: EventBody) -> Result<(), SinkError> {
        self.sink.emit(Stamp { pass, turn, agent: self.agent }, body)
    }

    fn summary(&self, machine: &Machine, meter: Meter) -> RunSummary {
        let state = machine.state();
        let wall = self.started.elapsed();
        let outcome = state.outcome.as_ref();
        let sum = |of: fn(&core_protocol::event::PassSummary) -> u32| state.passes.iter().map(of).sum();
        RunSummary {
            status: outcome.map_or(RunStatus::Failed, |outcome| outcome.status),
            answer: outcome.and_then(|outcome| outcome.answer.clone()),
            final_text: outcome.and_then(|outcome| outcome.final_text.clone()),
            stop_reason: outcome.and_then(|outcome| outcome.stop_reason),
            capped: outcome
                .and_then(|outcome| outcome.stop_reason)
                .is_some_and(core_protocol::event::StopReason::is_capped),
            turns: sum(|pass| pass.turns),
            call_attempts: sum(|pass| pass.call_attempts),
            passes: state.passes.clone(),
            rollbacks: state.rollbacks.clone(),
            tool_calls: state.tool_calls.clone(),
            sub_agents: 0,
            usage: state.usage,
            cost_usd: (meter.priced && !meter.unpriced).then_some(meter.cost),
            wall_ms: millis(wall),
            llm_ms: millis(meter.llm),
            tool_ms: millis(meter.tools),
            overhead_ms: millis(wall.saturating_sub(meter.llm).saturating_sub(meter.tools)),
            failure_summaries: state.failures.clone(),
            error: outcome.and_then(|outcome| outcome.error.clone()),
        }
    }
}

fn event_of(call: u64, event: &CallEvent<'_>) -> EventBody {
    match *event {
        CallEvent::TextDelta(text) => EventBody::TextDelta { text: text.to_owned() },
        CallEvent::ThinkingDelta(text) => EventBody::ThinkingDelta { text: text.to_owned() },
        CallEvent::Retry { attempt, kind, message, wait } => EventBody::LlmRetry {
            call,
            attempt,
            kind: kind.to_owned(),
            message: message.to_owned(),
            wait_ms: millis(wait),
        },
    }
}

fn failure_of(call: u64, error: &LlmError) -> ModelFailure {
    let class = if matches!(error, LlmError::ContextExceeded { .. }) {
        ModelFailureClass::ContextExceeded
    } else if error.is_permanent() || matches!(error, LlmError::RateLimited { .. }) {
        // A server that asks for a longer pause than is waited for is not asked again behind its back.
        ModelFailureClass::Permanent
    } else {
        ModelFailureClass::Transient
    };
    let report =
        ErrorReport { kind: error.kind().to_owned(), message: error.to_string(), hint: error.hint() };
    ModelFailure { call, class, report }
}

fn text_bytes(message: &Message) -> usize {
    message.content.iter().filter_map(core_protocol::ContentBlock::as_text).map(str::len).sum()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
