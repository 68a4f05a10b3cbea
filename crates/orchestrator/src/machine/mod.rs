//! The loop as a machine without I/O: it says what to do next and is told what came back.
//!
//! Decides everything about a run: what is asked, what is run, what is dropped, when it ends. Waiting, clocks and the
//! network are left to the [driver](crate::driver); texts to [`Prompts`](crate::ports::Prompts). Every decision leaves
//! an event.

mod calls;
mod compressing;
mod ending;
mod replies;
mod requests;
mod results;
mod setup;
pub mod state;
mod steps;

use std::sync::Arc;

use answer_generator::HistoryEntry;
use core_protocol::event::{ErrorReport, EventBody, PassSummary, RollbackReason, RunStatus, StopReason};
use core_protocol::{ContentBlock, Message, Role, ToolDefinition, Usage};

use crate::boundaries::context_length::ContextFigures;
use crate::boundaries::{Verdict, rollback_budget, turn_budget};
use crate::config::AnswerFormat;
use crate::findings;
use crate::selection::Selection;
use crate::sub_agents;
use requests::Showing;
use results::ResultStyle;
use state::{PassState, Phase, RunOutcome, RunState, Task};

pub use calls::ToolReport;
pub use replies::{ModelFailure, ModelFailureClass, ModelReply};
pub use setup::{Agent, ModelFacts, Setup};
pub use steps::{CompressionQuestion, ContextCounts, ContextQuestion, ModelCall, StampedEvent, Step};

/// A run that is under way.
pub struct Machine {
    setup: Setup,
    state: RunState,
    events: Vec<StampedEvent>,
    final_prompt: Arc<Message>,
    no_tools: Arc<[ToolDefinition]>,
    /// All tools: those given, those of the loop itself, the sub-agents.
    offered: Arc<[ToolDefinition]>,
    selection: Option<Selection>,
    showing: Option<Showing>,
    /// The servers' tools from the next pass on, where they are others.
    next_tools: Option<Arc<[ToolDefinition]>>,
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
        let question = &state.task.question;
        let final_prompt = match (&setup.agent, setup.config.answer_format) {
            (Agent::Sub(_), _) => setup.prompts.sub_agent_report(question),
            (Agent::Main, AnswerFormat::Report) => setup.prompts.final_report(question),
            (Agent::Main, AnswerFormat::Boxed) => setup.prompts.final_answer(question),
        };
        let (offered, selection) = offered(&setup, question);
        Self {
            final_prompt: Arc::new(Message::user(final_prompt)),
            no_tools: Arc::from([]),
            offered,
            selection,
            showing: None,
            next_tools: None,
            events: Vec::new(),
            setup,
            state,
        }
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

    /// What the servers offer now. The next pass begins with it: within a pass the prompt stays as it is.
    pub fn offer_next(&mut self, tools: &Arc<[ToolDefinition]>) {
        self.next_tools = (*tools != self.setup.tools).then(|| Arc::clone(tools));
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
                    if !self.run_own_call() {
                        self.tell_started(&calls);
                        return Step::CallTools(calls);
                    }
                }
                Phase::CheckContext(results) => {
                    let results = *results;
                    return Step::CountContext(self.context_question(results));
                }
                Phase::Compress(asked) => {
                    let asked = asked.clone();
                    return Step::CallModel(self.ask_for_summary(&asked));
                }
                Phase::CheckCompressed(drafted) => {
                    let compressed = drafted.compressed.clone();
                    return Step::CountCompression(self.compression_question(&compressed));
                }
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
        matches!(
            self.state.phase,
            Phase::AskModel
                | Phase::RunCalls(_)
                | Phase::CheckContext(_)
                | Phase::Compress(_)
                | Phase::CheckCompressed(_)
        )
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
        self.tell(EventBody::ContextChecked {
            estimated: figures.estimate(),
            limit,
            over,
            counts: Some([counts.results, counts.final_prompt, counts.last_exchange]),
        });
        if over {
            self.drop_turn();
            self.stop(StopReason::ContextLimit);
        } else {
            let size = figures.last_prompt + figures.last_completion + figures.last_results;
            self.state.phase = self.compression_due(size).map_or(Phase::AskModel, Phase::Compress);
        }
    }

    fn open_pass(&mut self) {
        self.state.pass_number += 1;
        self.state.pass = PassState::default();
        self.state.phase = Phase::AskModel;
        if let Some(tools) = self.next_tools.take() {
            self.tell(EventBody::ToolsChanged { tools: tools.to_vec() });
            self.setup.tools = tools;
            (self.offered, self.selection) = offered(&self.setup, &self.state.task.question);
            (self.showing, self.state.shown) = (None, None);
        }
        self.tell_system();
        let task = &self.state.task;
        let mut text = match &self.setup.agent {
            Agent::Sub(_) => self.setup.prompts.sub_agent_task(&task.question),
            Agent::Main if self.state.failures.is_empty() => task.question.clone(),
            Agent::Main => self.setup.prompts.next_task(&task.question, &self.state.failures),
        };
        if !self.state.findings.is_empty() {
            text.push_str("\n\n");
            text.push_str(&self.setup.prompts.findings(&self.state.findings));
        }
        text.push_str(&task.attached_text);
        let mut content = vec![ContentBlock::text(text)];
        content.extend(task.attached_media.iter().cloned());
        self.push(Message::new(Role::User, content));
    }

    /// Appends a message to the history and tells it.
    fn push(&mut self, message: Message) -> String {
        let id = self.tell_message(&message);
        self.state.pass.history.push(HistoryEntry::new(id.clone(), Arc::new(message)));
        id
    }

    /// Tells a message that may not become part of the history.
    fn tell_message(&mut self, message: &Message) -> String {
        self.state.messages += 1;
        let id = self.setup.agent.qualified(&format!("m{}", self.state.messages));
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

    /// Drops the last turn: its reply and what followed it. What a summary stands for stays.
    fn drop_turn(&mut self) {
        if self.last_exchange_is_shown()
            && answer_generator::history::drop_last_turn(&mut self.state.pass.history)
        {
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

/// All tools of an agent (those of its servers, those of the loop itself, its sub-agents), and what chooses among them
/// where that was asked for.
fn offered(setup: &Setup, question: &str) -> (Arc<[ToolDefinition]>, Option<Selection>) {
    let mut offered = setup.tools.to_vec();
    if setup.config.findings {
        offered.extend(findings::definitions());
    }
    offered.extend(setup.sub_agents.iter().map(|name| sub_agents::definition(name)));
    let is_own =
        |tool: &ToolDefinition| tool.server == findings::SERVER || setup.sub_agents.contains(&tool.server);
    let selection = Selection::new(&setup.config.tool_selection, &offered, &is_own, question);
    (offered.into(), selection)
}
