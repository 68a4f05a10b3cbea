//! Drives a machine with a script and writes down what it decides.
//!
//! Every request is checked on its way: it is in the order that models insist on, and the log names what was sent.

use std::collections::VecDeque;
use std::sync::Arc;

use core_protocol::event::{EventBody, LlmPurpose, RollbackReason};
use core_protocol::{DialectName, Message, ToolDefinition};
use llm_providers::ToolProtocol;
pub(crate) use orchestrator::Step;
use orchestrator::config::AgentRole;
use orchestrator::machine::state::{PlannedCall, RunOutcome, RunState};
use orchestrator::machine::{
    CompressionQuestion, ContextCounts, ContextQuestion, ModelCall, StampedEvent, ToolReport,
};
use orchestrator::{Agent, AgentConfig, Finding, Machine, ModelFacts, Prompts, Setup, Task};

use crate::script::{Reply, describe, obedient_tool, offered_tools};
use crate::shown::{OMITTED, check_order, show};

/// Steps that no scripted run needs; a machine that takes more does not end.
const STEP_LIMIT: usize = 20_000;

/// The texts of a scripted run, short enough to be read in a layout.
pub(crate) struct ShortPrompts;

impl answer_generator::EndingPrompts for ShortPrompts {
    fn final_answer(&self, question: &str) -> String {
        format!("FINAL PROMPT: {question}")
    }
    fn final_report(&self, question: &str) -> String {
        format!("REPORT PROMPT: {question}")
    }
    fn sub_agent_report(&self, subtask: &str) -> String {
        format!("AGENT REPORT PROMPT: {subtask}")
    }
    fn failure_summary(&self) -> String {
        "SUMMARY PROMPT".into()
    }
    fn failure_summary_prefix(&self) -> String {
        "<think>\nLooking back.\n</think>\n\n".into()
    }
    fn next_task(&self, question: &str, failures: &[String]) -> String {
        let mut task = format!("{question} BEFORE:");
        for (index, failure) in failures.iter().enumerate() {
            task.push_str(&format!(" [{}: {failure}]", index + 1));
        }
        task
    }
}

impl Prompts for ShortPrompts {
    fn system(&self, tool_section: &str) -> String {
        format!("SYSTEM\n{tool_section}")
    }
    fn rollback_hint(&self, reason: RollbackReason, _detail: &str) -> String {
        format!("HINT {}", reason.as_str())
    }
    fn sub_agent_task(&self, subtask: &str) -> String {
        format!("SUBTASK: {subtask}")
    }
    fn findings(&self, findings: &[Finding]) -> String {
        let named: Vec<&str> = findings.iter().map(|finding| finding.name.as_str()).collect();
        format!("FACTS: {}", named.join(", "))
    }
    fn compression(&self, words: u64) -> String {
        format!("COMPRESS TO {words}")
    }
    fn compressed(&self, summary: &str) -> String {
        format!("[Summary] {summary}")
    }
    fn compressed_go_on(&self) -> String {
        "GO ON".into()
    }
}

type ToolAnswer = Box<dyn FnMut(&PlannedCall) -> ToolReport>;
type Counter = Box<dyn FnMut(&ContextQuestion) -> ContextCounts>;
type Sizes = Box<dyn FnMut(&CompressionQuestion) -> (u64, u64)>;

/// A run that is to be made.
pub(crate) struct Case {
    pub(crate) config: AgentConfig,
    pub(crate) task: Task,
    pub(crate) protocol: ToolProtocol,
    pub(crate) dialect: DialectName,
    pub(crate) model: ModelFacts,
    pub(crate) starts_in_thinking: bool,
    pub(crate) tools: Vec<ToolDefinition>,
    pub(crate) through_json: bool,
    pub(crate) agent: Agent,
    pub(crate) sub_agents: Vec<String>,
    replies: VecDeque<Reply>,
    tool: Option<ToolAnswer>,
    counter: Option<Counter>,
    sizes: Option<Sizes>,
}

impl Case {
    /// A run with the default settings, twenty turns, and calls in text.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let config = AgentConfig {
            main_agent: AgentRole { max_turns: 20, ..AgentRole::default() },
            ..AgentConfig::default()
        };
        Self {
            config,
            task: Task::question("QUESTION"),
            protocol: ToolProtocol::Text,
            dialect: DialectName::McpXml,
            model: ModelFacts {
                assistant_prefix: true,
                images: true,
                audio: true,
                max_context_length: 100_000,
                max_tokens: 4_096,
            },
            starts_in_thinking: false,
            tools: offered_tools(),
            through_json: false,
            agent: Agent::Main,
            sub_agents: Vec::new(),
            sizes: None,
            replies: replies.into_iter().collect(),
            tool: None,
            counter: None,
        }
    }

    pub(crate) fn config(mut self, set: impl FnOnce(&mut AgentConfig)) -> Self {
        set(&mut self.config);
        self
    }

    pub(crate) fn with(mut self, set: impl FnOnce(&mut Self)) -> Self {
        set(&mut self);
        self
    }

    pub(crate) fn max_turns(self, turns: u32) -> Self {
        self.config(|config| config.main_agent.max_turns = turns)
    }

    pub(crate) fn keep(self, results: i64) -> Self {
        self.config(|config| config.keep_tool_result = results)
    }

    pub(crate) fn compress(self, passes: u32) -> Self {
        self.config(|config| config.context_compress_limit = passes)
    }

    pub(crate) fn native(self) -> Self {
        self.protocol(ToolProtocol::Native)
    }

    pub(crate) fn protocol(mut self, protocol: ToolProtocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Tools other than the obedient ones.
    pub(crate) fn tool(mut self, answer: impl FnMut(&PlannedCall) -> ToolReport + 'static) -> Self {
        self.tool = Some(Box::new(answer));
        self
    }

    /// Token counts other than zero.
    pub(crate) fn count(mut self, counter: impl FnMut(&ContextQuestion) -> ContextCounts + 'static) -> Self {
        self.counter = Some(Box::new(counter));
        self
    }

    /// Token counts of a history without and with a summary, other than their lengths in bytes.
    pub(crate) fn sizes(mut self, sizes: impl FnMut(&CompressionQuestion) -> (u64, u64) + 'static) -> Self {
        self.sizes = Some(Box::new(sizes));
        self
    }

    /// Makes it a sub-agent of that id.
    pub(crate) fn sub_agent(self, id: &str) -> Self {
        self.with(|case| {
            case.agent = Agent::Sub(id.into());
            case.config = case.config.for_sub_agent();
        })
    }

    /// Gives the main agent a sub-agent in the place of the server of that name.
    pub(crate) fn with_agent(self, name: &str) -> Self {
        self.with(|case| {
            case.tools.retain(|tool| tool.server != name);
            case.sub_agents.push(name.into());
        })
    }

    /// Writes the state down and goes on from what was written, before and after every step.
    pub(crate) fn through_json(mut self) -> Self {
        self.through_json = true;
        self
    }

    pub(crate) fn start(self) -> Runner {
        Runner::new(self)
    }

    /// Runs the script; what is left of it when the run ends does not matter.
    pub(crate) fn run_any(self) -> Record {
        let mut runner = self.start();
        runner.finish();
        runner.into_record()
    }

    /// Runs the whole script; every reply of it must be asked for.
    pub(crate) fn run(self) -> Record {
        let mut runner = self.start();
        runner.finish();
        let left = runner.replies.len();
        let record = runner.into_record();
        assert_eq!(left, 0, "replies that were not asked for, after:\n{}", record.trace());
        record
    }
}

/// Runs a script and compares the decisions, line by line.
#[track_caller]
pub(crate) fn check(case: Case, expected: &str) -> Record {
    let record = case.run();
    record.check(expected);
    record
}

/// One request as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) pass: u32,
    pub(crate) turn: u32,
    pub(crate) purpose: LlmPurpose,
    pub(crate) pause_ms: u128,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) continue_final_message: bool,
    pub(crate) tools: usize,
    pub(crate) transient: Option<String>,
}

impl Request {
    /// Role and shortened text of each message, calls as one word, omitted results marked.
    pub(crate) fn layout(&self) -> String {
        let mut lines: Vec<String> = self.messages.iter().map(|message| show(message)).collect();
        if self.continue_final_message {
            lines.push("(the reply goes on from here)".into());
        }
        lines.join("\n")
    }

    pub(crate) fn all_text(&self) -> String {
        self.messages.iter().map(|message| message.joined_text()).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn last_text(&self) -> String {
        self.messages.last().map(|message| message.joined_text()).unwrap_or_default()
    }
}

/// What a run came to.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) decisions: Vec<String>,
    pub(crate) requests: Vec<Request>,
    pub(crate) events: Vec<StampedEvent>,
    pub(crate) state: RunState,
}

impl Record {
    pub(crate) fn trace(&self) -> String {
        self.decisions.join("\n")
    }

    #[track_caller]
    pub(crate) fn check(&self, expected: &str) {
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(self.trace(), expected.join("\n"), "\n--- decided:\n{}\n", self.trace());
    }

    pub(crate) fn outcome(&self) -> &RunOutcome {
        self.state.outcome.as_ref().expect("an ended run has an outcome")
    }

    pub(crate) fn requests_for(&self, purpose: LlmPurpose) -> Vec<&Request> {
        self.requests.iter().filter(|request| request.purpose == purpose).collect()
    }

    pub(crate) fn ran(&self) -> Vec<&str> {
        self.decisions.iter().filter_map(|line| line.split_once("run ").map(|(_, calls)| calls)).collect()
    }
}

/// A run under way, one step at a time.
pub(crate) struct Runner {
    pub(crate) machine: Machine,
    setup: Setup,
    through_json: bool,
    replies: VecDeque<Reply>,
    tool: ToolAnswer,
    counter: Counter,
    sizes: Sizes,
    decisions: Vec<String>,
    requests: Vec<Request>,
    events: Vec<StampedEvent>,
    steps: usize,
}

impl Runner {
    fn new(case: Case) -> Self {
        let tools: Arc<[ToolDefinition]> = case.tools.into();
        let setup = Setup {
            role: case.config.main_agent.clone(),
            config: Arc::new(case.config),
            prompts: Arc::new(ShortPrompts),
            agent: case.agent,
            sub_agents: case.sub_agents.into(),
            tools: Arc::clone(&tools),
            protocol: case.protocol,
            dialect: case.dialect.dialect(),
            starts_in_thinking: case.starts_in_thinking,
            model: case.model,
            params: serde_json::Map::new(),
        };
        let machine = Machine::new(setup.clone(), case.task);
        Self {
            machine,
            setup,
            through_json: case.through_json,
            replies: case.replies,
            tool: case.tool.unwrap_or_else(|| Box::new(move |planned| obedient_tool(planned, &tools))),
            counter: case.counter.unwrap_or_else(|| Box::new(|_| ContextCounts::default())),
            sizes: case
                .sizes
                .unwrap_or_else(|| Box::new(|question| (bytes(&question.before), bytes(&question.after)))),
            decisions: Vec::new(),
            requests: Vec::new(),
            events: Vec::new(),
            steps: 0,
        }
    }

    /// Asks for the next step and writes it down, without doing it.
    pub(crate) fn next_step(&mut self) -> Step {
        self.steps += 1;
        assert!(self.steps < STEP_LIMIT, "the run does not end:\n{}", self.decisions.join("\n"));
        self.pass_through_json();
        let step = self.machine.next_step();
        self.take_events();
        match &step {
            Step::CallModel(call) => self.note_request(call),
            Step::CallTools(calls) => self.note_calls(calls),
            Step::CountContext(_) | Step::CountCompression(_) | Step::Finished => {}
        }
        self.pass_through_json();
        step
    }

    /// Does a step with what the script holds. False: the run is over.
    pub(crate) fn perform(&mut self, step: Step) -> bool {
        match step {
            Step::CallModel(call) => {
                let Some(reply) = self.replies.pop_front() else {
                    panic!("the script is used up, after:\n{}", self.decisions.join("\n"))
                };
                match reply.answer(call.call, self.setup.protocol) {
                    Ok(reply) => self.machine.model_replied(reply),
                    Err(failure) => self.machine.model_failed(failure),
                }
            }
            Step::CallTools(calls) => {
                let reports = calls.iter().map(|planned| (self.tool)(planned)).collect();
                self.machine.tools_finished(reports);
            }
            Step::CountContext(question) => {
                let counts = (self.counter)(&question);
                self.machine.context_counted(counts);
            }
            Step::CountCompression(question) => {
                let (before, after) = (self.sizes)(&question);
                self.machine.compression_counted(before, after);
            }
            Step::Finished => return false,
        }
        self.take_events();
        true
    }

    /// One step of the run. False: it is over.
    pub(crate) fn step(&mut self) -> bool {
        let step = self.next_step();
        self.perform(step)
    }

    /// Adds a reply to the end of the script.
    pub(crate) fn feed(&mut self, reply: Reply) {
        self.replies.push_back(reply);
    }

    /// Replaces what is left of the script.
    pub(crate) fn replace_script(&mut self, replies: impl IntoIterator<Item = Reply>) {
        self.replies = replies.into_iter().collect();
    }

    /// Throws the machine away and makes it anew from its written state.
    pub(crate) fn resume(&mut self) {
        let through_json = std::mem::replace(&mut self.through_json, true);
        self.pass_through_json();
        self.through_json = through_json;
    }

    pub(crate) fn forget_decisions_from(&mut self, lines: usize) {
        self.decisions.truncate(lines);
    }

    pub(crate) fn script_is_used_up(&self) -> bool {
        self.replies.is_empty()
    }

    pub(crate) fn decisions(&self) -> &[String] {
        &self.decisions
    }

    pub(crate) fn finish(&mut self) {
        while self.step() {}
    }

    pub(crate) fn into_record(mut self) -> Record {
        self.take_events();
        let state = self.machine.state().clone();
        for (index, pass) in state.passes.iter().enumerate() {
            self.decisions.push(format!(
                "pass {}: {}, turns {}, attempts {}, rollbacks {}",
                index + 1,
                pass.stop_reason.as_str(),
                pass.turns,
                pass.call_attempts,
                pass.rollbacks
            ));
        }
        if let Some(outcome) = &state.outcome {
            let status = word(&outcome.status);
            self.decisions.push(match &outcome.answer {
                Some(answer) => format!("{status}: {answer} ({})", word(&outcome.source)),
                None => status,
            });
        }
        Record { decisions: self.decisions, requests: self.requests, events: self.events, state }
    }

    fn pass_through_json(&mut self) {
        if !self.through_json {
            return;
        }
        self.take_events();
        let written = serde_json::to_string(self.machine.state()).expect("a state can be written");
        let read: RunState = serde_json::from_str(&written).expect("a written state can be read");
        assert_eq!(&read, self.machine.state(), "a state is read as it was written");
        self.machine = Machine::resume(self.setup.clone(), read);
    }

    fn take_events(&mut self) {
        for event in self.machine.take_events() {
            match &event.body {
                EventBody::Rollback { reason, consecutive, .. } => {
                    self.decisions.push(format!("rollback {} ({consecutive})", reason.as_str()));
                }
                EventBody::DuplicateAllowed { .. } => self.decisions.push("duplicate allowed".into()),
                EventBody::Recovered { after } => self.decisions.push(format!("recovered after {after}")),
                EventBody::IntermediateAnswer { answer, .. } => self.decisions.push(format!("box {answer}")),
                EventBody::ContextChecked { over: true, .. } => self.decisions.push("context over".into()),
                EventBody::Finding { name, replaced, .. } => {
                    self.decisions.push(format!("fact {name}{}", if *replaced { " again" } else { "" }));
                }
                EventBody::SubAgentStarted { id, .. } => self.decisions.push(format!("begin {id}")),
                EventBody::SubAgentFinished { id, summary, .. } => {
                    self.decisions.push(format!("end {id} {}", summary.stop_reason.as_str()));
                }
                EventBody::Compressed { replaced, under_limit, adopted, .. } => {
                    let kept = if *adopted { "used" } else { "not used" };
                    let over = if *under_limit { "" } else { ", over the limit" };
                    self.decisions.push(format!("summary of {}: {kept}{over}", replaced.len()));
                }
                EventBody::FailureSummary { text, .. } => self.decisions.push(format!("failure: {text}")),
                _ => {}
            }
            self.events.push(event);
        }
    }

    fn note_request(&mut self, call: &ModelCall) {
        let request_event = self.events.iter().rev().find_map(|event| match &event.body {
            EventBody::LlmRequest { call: id, purpose, view, omitted, transient, .. } if *id == call.call => {
                Some((event.pass, event.turn, *purpose, view.clone(), omitted.clone(), transient.clone()))
            }
            _ => None,
        });
        let (pass, turn, purpose, view, omitted, transient) =
            request_event.expect("every request has an event");
        assert_eq!(purpose, call.purpose);
        let unlogged = call.messages.len().saturating_sub(view.len());
        let may_be_unlogged = usize::from(transient.is_some());
        assert!(unlogged <= may_be_unlogged, "the log names every message that is sent");
        let shown_omitted =
            call.messages.iter().filter(|message| message.joined_text().starts_with(OMITTED)).count();
        assert_eq!(omitted.len(), shown_omitted, "the log names every result that is omitted");
        assert!(omitted.iter().all(|id| view.contains(id)));
        check_order(&call.messages, call.continue_final_message, self.setup.protocol);
        let prefix = if pass > 1 { format!("p{pass} ") } else { String::new() };
        self.decisions.push(match purpose {
            LlmPurpose::Turn => format!("{prefix}{turn} ask"),
            LlmPurpose::FinalAnswer => format!("{prefix}ask for the answer"),
            LlmPurpose::FailureSummary => format!("{prefix}ask what failed"),
            LlmPurpose::Compression => format!("{prefix}ask for a summary"),
        });
        self.requests.push(Request {
            pass,
            turn,
            purpose,
            pause_ms: call.pause.as_millis(),
            messages: call.messages.clone(),
            continue_final_message: call.continue_final_message,
            tools: call.tools.len(),
            transient,
        });
    }

    fn note_calls(&mut self, calls: &[PlannedCall]) {
        assert!(!calls.is_empty(), "a step without anything to do");
        let started: Vec<&StampedEvent> = self
            .events
            .iter()
            .filter(|event| {
                matches!(&event.body, EventBody::ToolCallStarted { call_id, .. }
                if calls.iter().any(|planned| planned.call.id == *call_id))
            })
            .collect();
        assert!(started.len() >= calls.len(), "every call has an event");
        let (pass, turn) = started.last().map(|event| (event.pass, event.turn)).unwrap_or_default();
        let prefix = if pass > 1 { format!("p{pass} ") } else { String::new() };
        let named: Vec<String> = calls
            .iter()
            .map(|planned| describe(&planned.call.server, &planned.call.tool, &planned.call.arguments))
            .collect();
        self.decisions.push(format!("{prefix}{turn} run {}", named.join(" | ")));
    }
}

fn bytes(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| message.joined_text().len() as u64).sum()
}

fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
