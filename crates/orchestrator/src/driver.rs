//! Does what the [machine](crate::machine) says: sends requests, runs tools, counts tokens, keeps the clock, tells
//! every event. Decides nothing about the run but what only a clock can: limits and cancellation.

mod clock;
mod nested;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use core_protocol::event::{ErrorReport, EventBody, RunStatus, RunSummary};
use core_protocol::{Message, Usage};
use futures_util::future::BoxFuture;
use llm_providers::{CallEvent, ChatRequest, LlmError};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::config::RunLimits;
use crate::journal::{Journal, Known, NextTools, Verdict};
use crate::ledger::Ledger;
use crate::limits::{self, LimitHit};
use crate::machine::state::{Executor, PlannedCall};
use crate::machine::{
    CompressionQuestion, ContextCounts, ContextQuestion, Machine, ModelCall, ModelFailure, ModelFailureClass,
    ModelReply, Step, ToolReport,
};
use crate::ports::{EventSink, Model, SinkError, Stamp, Tools};
use crate::run_clock::{RunClock, Waiting};
use crate::spans;
use crate::sub_agents::SubAgents;
use clock::Interruption;

/// Counting more text than this is moved off the async threads (about 2 ms of work).
const BLOCKING_COUNT_BYTES: usize = 32 * 1024;

/// How long tools that were told to stop may take to say so.
const STOP_GRACE: Duration = Duration::from_millis(800);

/// What a run works with.
pub struct Driver<'a> {
    /// The model.
    pub client: &'a dyn Model,
    /// The tools.
    pub tools: &'a dyn Tools,
    /// What earlier parts of the run left behind; [`NoJournal`](crate::journal::NoJournal) where there are none.
    pub journal: &'a dyn Journal,
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
    /// What it waits for; tools that ask a model tell it what they wait for themselves.
    pub clock: RunClock,
    /// What the agents work with that it can hand subtasks to.
    pub sub_agents: Option<&'a dyn SubAgents>,
}

impl Driver<'_> {
    /// Carries a run to its end and gives its figures. The caller has told `run_started` and tells `run_finished`.
    pub fn drive<'a>(&'a self, machine: &'a mut Machine) -> BoxFuture<'a, RunSummary> {
        // A box ends here what every crate above would compile once more.
        Box::pin(self.driven(machine))
    }

    async fn driven(&self, machine: &mut Machine) -> RunSummary {
        let ledger = Ledger::new(machine.state());
        self.clock.waited(Waiting::Limiter, self.journal.held_back());
        if let Err(error) = self.drive_to_end(machine, &ledger).await {
            machine.fail(ErrorReport {
                kind: "io".into(),
                message: format!("the run's log cannot be written: {error}"),
                hint: Some("Free some space, or choose another place with --runs-dir.".into()),
            });
            // The log is what failed; the events that remain have nowhere to go.
            machine.take_events();
        }
        self.summary(machine, &ledger)
    }

    pub(crate) async fn drive_to_end(&self, machine: &mut Machine, ledger: &Ledger) -> Result<(), SinkError> {
        self.steps(machine, ledger).instrument(spans::agent(self.agent)).await
    }

    async fn steps(&self, machine: &mut Machine, ledger: &Ledger) -> Result<(), SinkError> {
        loop {
            match self.journal.verdict(self.agent) {
                Verdict::WentOn => {}
                Verdict::Cancelled => machine.cancel(),
                Verdict::Limit(hit) => self.end_by_limit(machine, hit)?,
                Verdict::Open if self.cancel.is_cancelled() => machine.cancel(),
                Verdict::Open => {
                    if machine.in_loop()
                        && let Some(hit) = limits::reached(&self.limits, self.spent(ledger))
                    {
                        self.end_by_limit(machine, hit)?;
                    }
                }
            }
            if !machine.in_loop() {
                match self.journal.tools(self.agent) {
                    NextTools::Open => {
                        self.tools.refresh().await;
                        machine.offer_next(&self.tools.definitions());
                    }
                    NextTools::Changed(tools) => machine.offer_next(&tools),
                    NextTools::Same => {}
                }
            }
            let step = machine.next_step();
            self.flush(machine)?;
            match step {
                Step::Finished => return Ok(()),
                Step::CallModel(call) => self.call_model(machine, ledger, call).await?,
                Step::CallTools(calls) => self.call_tools(machine, ledger, &calls).await?,
                Step::CountContext(question) => {
                    let counts = match self.journal.context(self.agent) {
                        Some(counts) => counts,
                        None => self.count(&question),
                    };
                    machine.context_counted(counts);
                }
                Step::CountCompression(question) => {
                    let [before, after] = match self.journal.compression(self.agent) {
                        Some(counts) => counts,
                        None => self.count_compression(&question),
                    };
                    machine.compression_counted(before, after);
                }
            }
            self.flush(machine)?;
        }
    }

    async fn call_model(
        &self,
        machine: &mut Machine,
        ledger: &Ledger,
        call: ModelCall,
    ) -> Result<(), SinkError> {
        let id = call.call;
        match self.journal.model_call(self.agent, id) {
            Known::Ended(answer, ms) => {
                self.clock.waited(Waiting::Model, Duration::from_millis(ms));
                match answer {
                    Ok(reply) => {
                        self.spend(ledger, reply.completion.usage, reply.discarded);
                        machine.model_replied(reply);
                    }
                    Err(failure) => machine.model_failed(failure),
                }
                return Ok(());
            }
            Known::GivenUp => {
                machine.model_cut_off();
                return Ok(());
            }
            Known::Nothing | Known::Begun => {}
        }
        let position = machine.position();
        let request = ChatRequest {
            system: call.system,
            messages: call.messages,
            tools: call.tools,
            max_tokens: None,
            continue_final_message: call.continue_final_message,
        };
        let (mut told, mut held_back) = (Ok(()), None);
        let mut observer = |event: CallEvent<'_>| {
            held_back = match event {
                CallEvent::Waiting => Some(self.clock.wait(Waiting::Limiter)),
                CallEvent::Waited { .. } => None,
                _ => held_back.take(),
            };
            if let (true, Some(body)) = (told.is_ok(), event_of(id, &event)) {
                told = self.tell(position, body);
            }
        };
        let talk = async {
            if !call.pause.is_zero() {
                tokio::time::sleep(call.pause).await;
            }
            self.client.complete(&request, &mut observer).await
        };
        let waiting = self.clock.wait(Waiting::Model);
        let span = spans::chat(id);
        let result = self.unless_interrupted(machine.in_loop(), ledger, talk.instrument(span.clone())).await;
        drop((held_back, waiting));
        told?;
        match result {
            Ok(Ok(outcome)) => {
                spans::answered(&span, &outcome.completion);
                self.spend(ledger, outcome.completion.usage, outcome.discarded);
                machine.model_replied(ModelReply {
                    call: id,
                    ms: millis(outcome.elapsed),
                    retries: outcome.retries,
                    completion: outcome.completion,
                    discarded: outcome.discarded,
                });
            }
            Ok(Err(error)) => {
                spans::failed(&span, error.kind());
                machine.model_failed(failure_of(id, &error));
            }
            // The head of the loop sees the cancellation or the limit and ends the run or the pass.
            Err(Interruption::Cancelled | Interruption::Time) => machine.model_cut_off(),
        }
        Ok(())
    }

    async fn call_tools(
        &self,
        machine: &mut Machine,
        ledger: &Ledger,
        calls: &[PlannedCall],
    ) -> Result<(), SinkError> {
        if calls
            .iter()
            .any(|planned| matches!(self.journal.tool_call(self.agent, &planned.call.id), Known::GivenUp))
        {
            // The head of the loop meets the verdict that they were given up for. Sub-agents tell what they told then.
            let stop = CancellationToken::new();
            stop.cancel();
            for planned in calls {
                if let Executor::SubAgent { id, subtask } = &planned.executor {
                    self.run_sub_agent(planned, id, subtask, &stop, ledger).await;
                }
            }
            machine.tools_cut_off(calls);
            return Ok(());
        }
        let stop = self.cancel.child_token();
        let replayed = AtomicU64::new(0);
        let position = machine.position();
        let several = calls.len() > 1;
        let told = std::sync::Mutex::new((Vec::new(), Ok(())));
        let all = futures_util::future::join_all(calls.iter().map(|planned| {
            let (told, stop, replayed) = (&told, &stop, &replayed);
            async move {
                let report = self.call_tool(planned, stop, ledger, replayed).await;
                // Of calls that run at once each is told when it ends, so that an interruption loses none.
                if several && !stop.is_cancelled() {
                    let result = self.tell(position, finished(planned, &report));
                    let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    told.0.push(planned.call.id.clone());
                    told.1 = std::mem::replace(&mut told.1, Ok(())).and(result);
                }
                report
            }
        }));
        tokio::pin!(all);
        let result = match self.unless_interrupted(true, ledger, &mut all).await {
            Ok(reports) => Some(reports),
            Err(Interruption::Cancelled | Interruption::Time) => {
                stop.cancel();
                let _ = tokio::time::timeout(STOP_GRACE, &mut all).await;
                None
            }
        };
        self.clock.waited(Waiting::Tools, Duration::from_millis(replayed.load(Ordering::Relaxed)));
        let waited = self.clock.take_untold();
        if waited >= Duration::from_millis(1) {
            self.tell(position, EventBody::ToolsWaited { ms: millis(waited) })?;
        }
        let (told, kept) = std::mem::replace(
            &mut *told.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
            (Vec::new(), Ok(())),
        );
        kept?;
        match result {
            Some(reports) => machine.tools_finished(reports),
            None => machine.tools_cut_off(calls),
        }
        for event in machine.take_events() {
            let is_told =
                matches!(&event.body, EventBody::ToolCallFinished { call_id, .. } if told.contains(call_id));
            if !is_told {
                self.tell((event.pass, event.turn), event.body)?;
            }
        }
        Ok(())
    }

    /// `replayed` learns the time of the longest call that an earlier part of the run made.
    async fn call_tool(
        &self,
        planned: &PlannedCall,
        stop: &CancellationToken,
        ledger: &Ledger,
        replayed: &AtomicU64,
    ) -> ToolReport {
        if let Some(refusal) = planned.refusal() {
            return refusal;
        }
        if let Executor::SubAgent { id, subtask } = &planned.executor {
            // What it did before is in the journal under its own id.
            return self.run_sub_agent(planned, id, subtask, stop, ledger).await;
        }
        let call = &planned.call;
        match self.journal.tool_call(self.agent, &call.id) {
            Known::Ended(report, _) => {
                replayed.fetch_max(report.ms, Ordering::Relaxed);
                return report;
            }
            Known::Begun if !self.tools.is_repeatable(&call.server, &call.tool) => return unknown_outcome(),
            Known::Begun | Known::Nothing | Known::GivenUp => {}
        }
        let began = Instant::now();
        let _waiting = self.clock.wait(Waiting::Tools);
        let span = spans::tool(&call.id, &call.server, &call.tool);
        let work = self.tools.call(&call.server, &call.tool, call.arguments.clone(), stop);
        let outcome = work.instrument(span.clone()).await;
        if let Some(failure) = outcome.failure {
            spans::failed(&span, failure.kind());
        }
        ToolReport {
            error_kind: outcome.failure.map(|failure| failure.kind().to_owned()),
            curable: outcome.failure.is_some_and(mcp_tools::ToolFailure::is_curable),
            result: outcome.result,
            ms: millis(began.elapsed()),
            sub_agent: None,
        }
    }

    fn count_all(&self, messages: &[Arc<Message>]) -> u64 {
        messages.iter().map(|message| self.client.count_message(message)).sum()
    }

    fn count_compression(&self, question: &CompressionQuestion) -> [u64; 2] {
        let system = self.client.count_tokens(&question.system);
        [&question.before, &question.after].map(|messages| system + self.count_all(messages))
    }

    fn count(&self, question: &ContextQuestion) -> ContextCounts {
        let count = || ContextCounts {
            results: self.count_all(&question.results),
            final_prompt: self.client.count_message(&question.final_prompt),
            last_exchange: question
                .last_exchange
                .as_deref()
                .map_or(0, |messages| self.count_all(messages) + self.client.count_tokens(&question.system)),
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

    fn spend(&self, ledger: &Ledger, usage: Option<Usage>, discarded: Usage) {
        ledger.spend(usage, discarded, |usage| self.client.cost(usage));
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

    fn summary(&self, machine: &Machine, ledger: &Ledger) -> RunSummary {
        let (figures, times) = (ledger.figures(), self.clock.times());
        let state = machine.state();
        let mut tool_calls = state.tool_calls.clone();
        tool_calls.total += figures.nested_calls.total;
        tool_calls.failed += figures.nested_calls.failed;
        for (tool, count) in &figures.nested_calls.by_tool {
            *tool_calls.by_tool.entry(tool.clone()).or_insert(0) += count;
        }
        let wall = self.elapsed();
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
            tool_calls,
            sub_agents: state.nested.agents,
            usage: figures.usage,
            cost_usd: (figures.priced && !figures.unpriced).then_some(figures.cost),
            wall_ms: millis(wall),
            llm_ms: millis(times.llm),
            tool_ms: millis(times.tools),
            overhead_ms: millis(wall.saturating_sub(times.llm).saturating_sub(times.tools)),
            limiter_ms: millis(times.limiter),
            failure_summaries: state.failures.clone(),
            citations: outcome.and_then(|outcome| outcome.citations.clone()),
            error: outcome.and_then(|outcome| outcome.error.clone()),
            run_dir: None,
        }
    }
}

fn event_of(call: u64, event: &CallEvent<'_>) -> Option<EventBody> {
    Some(match *event {
        CallEvent::TextDelta(text) => EventBody::TextDelta { text: text.to_owned() },
        CallEvent::ThinkingDelta(text) => EventBody::ThinkingDelta { text: text.to_owned() },
        CallEvent::Retry { attempt, kind, message, wait } => EventBody::LlmRetry {
            call,
            attempt,
            kind: kind.to_owned(),
            message: message.to_owned(),
            wait_ms: millis(wait),
        },
        CallEvent::Waited { wait } if wait >= Duration::from_millis(1) => {
            EventBody::LlmWaited { call, ms: millis(wait) }
        }
        CallEvent::Waiting | CallEvent::Waited { .. } => return None,
    })
}

fn finished(planned: &PlannedCall, report: &ToolReport) -> EventBody {
    EventBody::ToolCallFinished {
        call_id: planned.call.id.clone(),
        result: report.result.clone(),
        error_kind: report.error_kind.clone(),
        curable: report.curable,
        ms: report.ms,
    }
}

/// What the model is told of a call that was under way when the run was interrupted and must not be made twice.
fn unknown_outcome() -> ToolReport {
    ToolReport {
        result: core_protocol::ToolResult::error(
            "The run was interrupted while this call was under way, so its outcome is unknown: it may have taken \
             effect or not. It was not made again. Find out what happened before you repeat it.",
        ),
        error_kind: Some("outcome_unknown".to_owned()),
        curable: false,
        ms: 0,
        sub_agent: None,
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
