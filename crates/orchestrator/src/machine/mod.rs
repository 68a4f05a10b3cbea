//! The loop as a machine without I/O: it says what to do next and is told what came back.
//!
//! Decides everything about a run: what is asked, what is run, what is dropped, when it ends. Waiting, clocks
//! and the network are left to the [driver](crate::driver); texts to [`Prompts`]. Every decision leaves an event.

mod calls;
mod ending;
mod replies;
mod results;
pub mod state;

use std::sync::Arc;
use std::time::Duration;

use answer_generator::HistoryEntry;
use core_protocol::event::{
    ErrorReport, EventBody, LlmPurpose, PassSummary, RollbackReason, RunStatus, StopReason,
};
use core_protocol::{ContentBlock, Dialect, Message, Role, ToolDefinition, Usage};
use llm_providers::ToolProtocol;
use serde_json::{Map, Value};

use crate::boundaries::context_length::ContextFigures;
use crate::boundaries::{Verdict, rollback_budget, turn_budget};
use crate::config::{AgentConfig, AgentRole};
use crate::ports::Prompts;
use crate::retention;
use results::ResultStyle;
use state::{PassState, Phase, PlannedCall, RunOutcome, RunState, Task};

pub use calls::ToolReport;
pub use replies::{ModelFailure, ModelFailureClass, ModelReply};

/// What does not change during a run.
#[derive(Clone)]
pub struct Setup {
    /// The `agent` section.
    pub config: Arc<AgentConfig>,
    /// The agent that runs.
    pub role: AgentRole,
    /// Its texts.
    pub prompts: Arc<dyn Prompts>,
    /// Its tools.
    pub tools: Arc<[ToolDefinition]>,
    /// How calls are spelled.
    pub protocol: ToolProtocol,
    /// The dialect of calls in text.
    pub dialect: &'static dyn Dialect,
    /// Whether the model's chat template opens the thinking, so that a reply begins inside it.
    pub starts_in_thinking: bool,
    /// What the model takes and how much of it.
    pub model: ModelFacts,
    /// Model and sampling parameters, for the log.
    pub params: Map<String, Value>,
}

/// What the loop must know about the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFacts {
    /// Goes on from a last message of role assistant.
    pub assistant_prefix: bool,
    /// Takes pictures.
    pub images: bool,
    /// Takes recordings.
    pub audio: bool,
    /// Tokens of its window.
    pub max_context_length: u64,
    /// Tokens of its longest reply.
    pub max_tokens: u64,
}

/// What is to be done next.
#[derive(Debug, Clone)]
pub enum Step {
    /// Send this to the model, then call [`Machine::model_replied`] or [`Machine::model_failed`].
    CallModel(ModelCall),
    /// Run these calls at once, then call [`Machine::tools_finished`] with their reports in the same order.
    CallTools(Vec<PlannedCall>),
    /// Count these tokens, then call [`Machine::context_counted`].
    CountContext(ContextQuestion),
    /// The run is over: [`Machine::outcome`].
    Finished,
}

/// One request to the model.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// Its id in the run.
    pub call: u64,
    /// What it is for.
    pub purpose: LlmPurpose,
    /// To be waited before it is sent.
    pub pause: Duration,
    /// What is sent after the system prompt.
    pub messages: Vec<Arc<Message>>,
    /// Whether the last message is the beginning of the reply.
    pub continue_final_message: bool,
    /// Native tools; empty in text protocols.
    pub tools: Arc<[ToolDefinition]>,
}

/// What is to be counted after a turn.
#[derive(Debug, Clone)]
pub struct ContextQuestion {
    /// The results of the turn.
    pub results: Vec<Arc<Message>>,
    /// The prompt that will ask for the final answer.
    pub final_prompt: Arc<Message>,
    /// What the last request sent and the reply to it, where the server told no usage: all of it is to be
    /// counted, the system prompt with it.
    pub last_exchange: Option<Vec<Arc<Message>>>,
}

/// The counts that a [`ContextQuestion`] asks for, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextCounts {
    /// The results.
    pub results: u64,
    /// The final-answer prompt.
    pub final_prompt: u64,
    /// The last exchange with the system prompt; 0 where it was not asked for.
    pub last_exchange: u64,
}

/// An event with its place in the run.
#[derive(Debug, Clone, PartialEq)]
pub struct StampedEvent {
    /// The pass, from 1.
    pub pass: u32,
    /// The turn, from 1; 0 before the first.
    pub turn: u32,
    /// What happened.
    pub body: EventBody,
}

/// A run that is under way.
pub struct Machine {
    setup: Setup,
    state: RunState,
    events: Vec<StampedEvent>,
    final_prompt: Arc<Message>,
    no_tools: Arc<[ToolDefinition]>,
}

impl Machine {
    /// A new run.
    #[must_use]
    pub fn new(setup: Setup, task: Task) -> Self {
        let mut machine = Self::resume(setup, RunState::new(task));
        machine.open_pass();
        machine
    }

    /// A run that goes on from where its state was written down.
    #[must_use]
    pub fn resume(setup: Setup, state: RunState) -> Self {
        let final_prompt = Arc::new(Message::user(setup.prompts.final_answer(&state.task.question)));
        Self { setup, state, events: Vec::new(), final_prompt, no_tools: Arc::from([]) }
    }

    /// All that the run is.
    #[must_use]
    pub const fn state(&self) -> &RunState {
        &self.state
    }

    /// How the run came out; none before it has.
    #[must_use]
    pub const fn outcome(&self) -> Option<&RunOutcome> {
        self.state.outcome.as_ref()
    }

    /// The events since the last call, in order.
    pub fn take_events(&mut self) -> Vec<StampedEvent> {
        std::mem::take(&mut self.events)
    }

    /// Where in the run the next request belongs: pass and turn.
    #[must_use]
    pub const fn position(&self) -> (u32, u32) {
        let asked = if matches!(self.state.phase, Phase::AskModel) { 1 } else { 0 };
        (self.state.pass_number, self.state.pass.turn + asked)
    }

    /// The system prompt, the same for the whole run so that servers can cache it.
    #[must_use]
    pub fn system_prompt(&self) -> String {
        let section = match self.setup.protocol {
            ToolProtocol::Text => core_protocol::render_tool_section(
                self.setup.dialect,
                &self.setup.tools,
                self.setup.config.schema_style.into(),
            ),
            ToolProtocol::Native => String::new(),
        };
        self.setup.prompts.system(&section)
    }

    /// What is to be done now. Asking twice without an answer in between gives a new request id, nothing else.
    pub fn next_step(&mut self) -> Step {
        loop {
            match &self.state.phase {
                Phase::AskModel => {
                    let pass = &self.state.pass;
                    match turn_budget::exhausted(
                        pass.turn,
                        pass.call_attempts,
                        self.setup.role.max_turns,
                        self.setup.config.extra_call_attempts,
                    ) {
                        Some(reason) => self.stop(reason),
                        None => return Step::CallModel(self.ask_for_turn()),
                    }
                }
                Phase::RunCalls(turn) => {
                    let calls = self.next_calls(turn);
                    self.tell_started(&calls);
                    return Step::CallTools(calls);
                }
                Phase::CheckContext(results) => return Step::CountContext(self.context_question(*results)),
                Phase::Ending(ending) => {
                    let step = ending.step();
                    if let Some(call) = self.end_pass(&step) {
                        return Step::CallModel(call);
                    }
                }
                Phase::Finished => return Step::Finished,
            }
        }
    }

    /// Whether the loop of a pass is under way, so that a limit or a cancellation can still end it.
    #[must_use]
    pub const fn in_loop(&self) -> bool {
        matches!(self.state.phase, Phase::AskModel | Phase::RunCalls(_) | Phase::CheckContext(_))
    }

    /// Ends the loop because a limit of the whole run was reached; the final answer is still asked for.
    pub fn limit_reached(&mut self, reason: StopReason) {
        if !self.in_loop() {
            return;
        }
        if let Phase::RunCalls(turn) = &mut self.state.phase {
            let turn = std::mem::take(turn);
            if turn.results.is_empty() {
                self.drop_turn();
            } else {
                self.break_off(turn);
            }
        }
        self.stop(reason);
    }

    /// Ends the run at once because somebody asked for it.
    pub fn cancel(&mut self) {
        self.abort(StopReason::Cancelled, RunStatus::Cancelled, None);
    }

    /// Ends the run at once because it cannot be kept or carried on.
    pub fn fail(&mut self, error: ErrorReport) {
        self.abort(StopReason::Error, RunStatus::Failed, Some(error));
    }

    /// Takes the counts of [`Step::CountContext`].
    pub fn context_counted(&mut self, counts: ContextCounts) {
        if !matches!(self.state.phase, Phase::CheckContext(_)) {
            return;
        }
        let usage = self.state.pass.last_usage;
        let figures = ContextFigures {
            last_prompt: usage.map_or(counts.last_exchange, |usage| usage.input),
            last_completion: usage.map_or(0, |usage| usage.output),
            last_results: counts.results,
            final_prompt: counts.final_prompt,
            max_tokens: self.setup.model.max_tokens,
        };
        let limit = self.setup.model.max_context_length;
        let over = figures.exceeds(limit);
        self.tell(EventBody::ContextChecked { estimated: figures.estimate(), limit, over });
        if over {
            self.drop_turn();
            self.stop(StopReason::ContextLimit);
        } else {
            self.state.phase = Phase::AskModel;
        }
    }

    fn ask_for_turn(&mut self) -> ModelCall {
        let failures = self.state.pass.llm_failures;
        let pause = if failures > 0 { pause_of(self.setup.config.llm_retry_pause) } else { Duration::ZERO };
        let hint = self.state.pass.hint.clone();
        self.request(LlmPurpose::Turn, hint, None, pause)
    }

    /// Makes a request from the retained view of the history. `hint` is said in the last message, `prefix` is the
    /// beginning of the reply; neither is kept.
    fn request(
        &mut self,
        purpose: LlmPurpose,
        hint: Option<String>,
        prefix: Option<String>,
        pause: Duration,
    ) -> ModelCall {
        let tools = match self.setup.protocol {
            ToolProtocol::Text => Arc::clone(&self.no_tools),
            ToolProtocol::Native => Arc::clone(&self.setup.tools),
        };
        let call = self.state.requests;
        self.state.requests += 1;
        let prompt_last = purpose != LlmPurpose::Turn;
        let mut view =
            retention::view(&self.state.pass.history, self.setup.config.keep_tool_result, prompt_last);
        if let Some(hint) = &hint {
            append_hint(&mut view.messages, hint);
        }
        let continue_final_message = prefix.is_some();
        if let Some(prefix) = &prefix {
            view.messages.push(Arc::new(Message::assistant(prefix.clone())));
        }
        let body = EventBody::LlmRequest {
            call,
            purpose,
            view: view.ids,
            omitted: view.omitted,
            transient: hint.or(prefix),
            params: self.setup.params.clone(),
            tools: self.setup.tools.len(),
        };
        let (pass, turn) = self.position();
        self.events.push(StampedEvent { pass, turn, body });
        ModelCall { call, purpose, pause, messages: view.messages, continue_final_message, tools }
    }

    fn context_question(&self, results: usize) -> ContextQuestion {
        let history = &self.state.pass.history;
        let first = history.len().saturating_sub(results);
        let last_exchange =
            self.state.pass.last_usage.is_none().then(|| {
                retention::view(&history[..first], self.setup.config.keep_tool_result, false).messages
            });
        ContextQuestion {
            results: history[first..].iter().map(|entry| Arc::clone(&entry.message)).collect(),
            final_prompt: Arc::clone(&self.final_prompt),
            last_exchange,
        }
    }

    fn open_pass(&mut self) {
        self.state.pass_number += 1;
        self.state.pass = PassState::default();
        self.state.phase = Phase::AskModel;
        let task = &self.state.task;
        let mut text = if self.state.failures.is_empty() {
            task.question.clone()
        } else {
            self.setup.prompts.next_task(&task.question, &self.state.failures)
        };
        text.push_str(&task.attached_text);
        let mut content = vec![ContentBlock::text(text)];
        content.extend(task.attached_media.iter().cloned());
        self.push(Message::new(Role::User, content));
    }

    /// Appends a message to the history and tells it.
    fn push(&mut self, message: Message) -> String {
        let id = self.tell_message(&message);
        self.state.pass.history.push(HistoryEntry { id: id.clone(), message: Arc::new(message) });
        id
    }

    /// Tells a message that may not become part of the history.
    fn tell_message(&mut self, message: &Message) -> String {
        self.state.messages += 1;
        let id = format!("m{}", self.state.messages);
        self.tell(EventBody::Message { id: id.clone(), message: message.clone() });
        id
    }

    fn tell(&mut self, body: EventBody) {
        let (pass, turn) = (self.state.pass_number, self.state.pass.turn);
        self.events.push(StampedEvent { pass, turn, body });
    }

    fn pop_last(&mut self) -> String {
        self.state.pass.history.pop().map(|entry| entry.id).unwrap_or_default()
    }

    /// Drops the last turn: its reply and what followed it.
    fn drop_turn(&mut self) {
        if answer_generator::history::drop_last_turn(&mut self.state.pass.history) {
            self.state.pass.turn = self.state.pass.turn.saturating_sub(1);
        }
    }

    fn can_roll_back(&self) -> bool {
        rollback_budget::is_left(
            self.state.pass.consecutive_rollbacks,
            self.setup.config.max_consecutive_rollbacks,
        )
    }

    fn carry_out(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Continue => {}
            Verdict::Rollback(reason, detail) => self.roll_back(reason, detail),
            Verdict::Stop(reason) => self.stop(reason),
        }
    }

    /// Drops the last reply and asks again.
    fn roll_back(&mut self, reason: RollbackReason, detail: String) {
        let dropped = self.pop_last();
        let consecutive = self.state.pass.consecutive_rollbacks + 1;
        self.tell(EventBody::Rollback { reason, detail: detail.clone(), dropped, consecutive });
        let pass = &mut self.state.pass;
        pass.turn = pass.turn.saturating_sub(1);
        pass.consecutive_rollbacks = consecutive;
        pass.rollbacks += 1;
        pass.last_reply_boxed = false;
        let counts = &mut self.state.rollbacks;
        counts.total += 1;
        match reason {
            RollbackReason::FormatError => counts.format_error += 1,
            RollbackReason::Refusal => counts.refusal += 1,
            RollbackReason::DuplicateQuery => counts.duplicate_query += 1,
            RollbackReason::ToolError => counts.tool_error += 1,
        }
        if self.setup.config.rollback_hint {
            pass.hint = Some(self.setup.prompts.rollback_hint(reason, &detail));
        }
        self.state.phase = Phase::AskModel;
    }

    fn add_usage(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            let totals = &mut self.state.usage;
            totals.input = totals.input.saturating_add(usage.input);
            totals.output = totals.output.saturating_add(usage.output);
            totals.cache_read = totals.cache_read.saturating_add(usage.cache_read);
            totals.cache_write = totals.cache_write.saturating_add(usage.cache_write);
        }
    }

    fn result_style(&self) -> ResultStyle<'_> {
        ResultStyle {
            protocol: self.setup.protocol,
            dialect: self.setup.dialect,
            images: self.setup.model.images,
            audio: self.setup.model.audio,
            scrape_limit: self.setup.config.scrape_result_limit,
        }
    }

    /// The figures of the pass that is under way.
    fn pass_summary(&self, stop_reason: StopReason) -> PassSummary {
        let pass = &self.state.pass;
        PassSummary {
            stop_reason,
            turns: pass.turn,
            call_attempts: pass.call_attempts,
            rollbacks: pass.rollbacks,
        }
    }
}

/// Adds a hint to the last message where that is the user's, so that roles still alternate.
fn append_hint(messages: &mut Vec<Arc<Message>>, hint: &str) {
    match messages.last_mut() {
        Some(last) if last.role == Role::User => {
            let mut message = (**last).clone();
            message.content.push(ContentBlock::text(hint));
            *last = Arc::new(message);
        }
        _ => messages.push(Arc::new(Message::user(hint))),
    }
}

/// Seconds from the configuration as a duration; nonsense counts as none.
fn pause_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

impl From<crate::config::SchemaStyle> for core_protocol::SchemaStyle {
    fn from(style: crate::config::SchemaStyle) -> Self {
        match style {
            crate::config::SchemaStyle::Json => Self::Json,
            crate::config::SchemaStyle::Python => Self::Python,
        }
    }
}
