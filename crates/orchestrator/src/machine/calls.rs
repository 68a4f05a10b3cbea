//! Runs the calls of a turn: which are run together, what their results mean, and what the model is shown.

use answer_generator::citations;
use core_protocol::event::{EventBody, RollbackReason};
use core_protocol::{ContentBlock, ToolCall, ToolResult};

use super::state::{Executor, Phase, PlannedCall, TurnCalls};
use super::{Machine, results};
use crate::boundaries::{Verdict, duplicate_query, tool_error};
use crate::config::{AnswerFormat, ToolCallsPerTurn};
use crate::findings;
use crate::sub_agents::{self, SubAgentReport};

/// How much of unreadable arguments the model is shown.
const EXCERPT_CHARACTERS: usize = 300;

/// What a call gave.
#[derive(Debug, Clone)]
pub struct ToolReport {
    /// Its result; error texts are results too.
    pub result: ToolResult,
    /// Kind of failure; none for a success.
    pub error_kind: Option<String>,
    /// Whether writing the call again can cure the error.
    pub curable: bool,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// What a sub-agent leaves beside its report.
    pub sub_agent: Option<Box<SubAgentReport>>,
}

impl ToolReport {
    /// A failure that the loop itself tells, in the words for the model.
    #[must_use]
    pub fn failed(kind: &str, curable: bool, text: impl Into<String>) -> Self {
        Self {
            result: ToolResult::error(text),
            error_kind: Some(kind.to_owned()),
            curable,
            ms: 0,
            sub_agent: None,
        }
    }
}

impl PlannedCall {
    /// The report of a call that must not be run because its arguments could not be read; none for others. Native
    /// calls need a result whatever they are, and this one tells the model what to mend.
    #[must_use]
    pub fn refusal(&self) -> Option<ToolReport> {
        let written: String = self.unreadable.as_ref()?.chars().take(EXCERPT_CHARACTERS).collect();
        Some(ToolReport::failed(
            "invalid_arguments",
            true,
            format!(
                "The arguments of this call are not one complete JSON object, so it was not run. They began: {written}"
            ),
        ))
    }
}

impl Machine {
    /// Gives a call its id and its query's identity.
    pub(super) fn plan_call(&mut self, mut call: ToolCall, repairs: Vec<String>) -> PlannedCall {
        call.span = None;
        call.server_span = None;
        let query = duplicate_query::key(
            &call.server,
            &call.tool,
            &call.arguments,
            &self.setup.config.duplicate_keys,
        );
        let model_id = self.unique_id(call.id);
        call.id = self.setup.agent.qualified(&model_id);
        let unreadable = llm_providers::unreadable_arguments(&call).map(str::to_owned);
        let executor = if unreadable.is_some() { Executor::Tools } else { self.executor_of(&call) };
        PlannedCall { model_id, call, query, repairs, executor, unreadable }
    }

    fn executor_of(&self, call: &ToolCall) -> Executor {
        if self.setup.config.findings && call.server == findings::SERVER {
            return Executor::Own;
        }
        if self.setup.sub_agents.contains(&call.server) {
            return match sub_agents::subtask(call) {
                Ok(subtask) => Executor::SubAgent { id: String::new(), subtask },
                Err(_) => Executor::Own,
            };
        }
        let meant_an_agent = call.server.starts_with(sub_agents::NAME_PREFIX);
        let is_offered = || self.offered.iter().any(|tool| tool.server == call.server);
        if meant_an_agent && !is_offered() { Executor::Own } else { Executor::Tools }
    }

    /// Gives the sub-agents of a turn that is going to be run their ids, in call order.
    pub(super) fn name_sub_agents(&mut self) {
        let Phase::RunCalls(turn) = &mut self.state.phase else { return };
        for planned in &mut turn.calls {
            if let Executor::SubAgent { id, .. } = &mut planned.executor {
                let number = self.state.sub_agent_ids.entry(planned.call.server.clone()).or_insert(0);
                *number += 1;
                *id = format!("{}-{number}", planned.call.server);
            }
        }
    }

    /// Runs the next call where that is the loop's own business.
    pub(super) fn run_own_call(&mut self) -> bool {
        let Phase::RunCalls(turn) = &self.state.phase else { return false };
        let next = turn.calls.get(turn.results.len());
        let Some(planned) = next.filter(|planned| planned.executor == Executor::Own).cloned() else {
            return false;
        };
        self.tell_started(std::slice::from_ref(&planned));
        let call = &planned.call;
        let report = if self.setup.config.findings && call.server == findings::SERVER {
            let (report, noted) = findings::run(call, &mut self.state.findings);
            if let Some(findings::Noted { name, replaced }) = noted {
                self.tell(EventBody::Finding { name, call_id: call.id.clone(), replaced });
            }
            report
        } else {
            self.refused(call)
        };
        self.tools_finished(vec![report]);
        true
    }

    /// What is said to a call that goes to no agent there is, or that none can carry out.
    fn refused(&self, call: &ToolCall) -> ToolReport {
        if self.setup.sub_agents.contains(&call.server)
            && let Err(problem) = sub_agents::subtask(call)
        {
            let kind = if call.tool == sub_agents::TOOL { "invalid_arguments" } else { "unknown_tool" };
            return ToolReport::failed(kind, true, problem);
        }
        let mut servers: Vec<&str> = Vec::new();
        for tool in self.offered.iter() {
            if !servers.contains(&tool.server.as_str()) {
                servers.push(&tool.server);
            }
        }
        let text =
            format!("There is no agent or server `{}`. There are: {}.", call.server, servers.join(", "));
        ToolReport::failed("unknown_server", false, text)
    }

    /// The id itself where it is new in the run, else one made from it that is.
    fn unique_id(&mut self, id: String) -> String {
        let known = &mut self.state.call_ids;
        let base = if id.is_empty() { "call".to_owned() } else { id.clone() };
        let mut made = id;
        while made.is_empty() || known.contains_key(&made) {
            let uses = known.entry(base.clone()).or_insert(0);
            *uses += 1;
            made = format!("{base}_{uses}");
        }
        known.insert(made.clone(), 1);
        made
    }

    /// Duplicates are checked for all calls of a reply before any is run, so that no result is lost.
    pub(super) fn check_duplicates(&mut self, turn: &TurnCalls) -> Verdict {
        let repeated = duplicate_query::repeated(
            turn.calls.iter().map(|planned| planned.query.as_deref()),
            &self.state.pass.used_queries,
        );
        let Some(first) = repeated.first().and_then(|index| turn.calls[*index].query.clone()) else {
            return Verdict::Continue;
        };
        if self.can_roll_back() {
            let detail = format!("this query was made before: {first}");
            return Verdict::Rollback(RollbackReason::DuplicateQuery, detail);
        }
        for index in repeated {
            let planned = &turn.calls[index];
            let query = planned.query.clone().unwrap_or_default();
            self.tell(EventBody::DuplicateAllowed { call_id: planned.call.id.clone(), query });
        }
        Verdict::Continue
    }

    pub(super) fn tell_started(&mut self, calls: &[PlannedCall]) {
        for planned in calls {
            self.tell(EventBody::ToolCallStarted {
                call_id: planned.call.id.clone(),
                server: planned.call.server.clone(),
                tool: planned.call.tool.clone(),
                arguments: planned.call.arguments.clone(),
                repairs: planned.repairs.clone(),
            });
            if let Executor::SubAgent { id, .. } = &planned.executor {
                self.tell(EventBody::SubAgentStarted {
                    id: id.clone(),
                    name: planned.call.server.clone(),
                    call_id: planned.call.id.clone(),
                });
            }
        }
    }

    /// The calls that are run next: in parallel mode all up to the next that the loop runs itself, else one.
    pub(super) fn next_calls(&self, turn: &TurnCalls) -> Vec<PlannedCall> {
        let left = &turn.calls[turn.results.len().min(turn.calls.len())..];
        match self.setup.config.tool_calls_per_turn {
            ToolCallsPerTurn::Parallel => {
                left.iter().take_while(|planned| planned.executor != Executor::Own).cloned().collect()
            }
            ToolCallsPerTurn::All | ToolCallsPerTurn::First => left.iter().take(1).cloned().collect(),
        }
    }

    /// Takes the reports of the last [`super::Step::CallTools`], in its order.
    pub fn tools_finished(&mut self, reports: Vec<ToolReport>) {
        let Phase::RunCalls(turn) = &mut self.state.phase else { return };
        let mut turn = std::mem::take(turn);
        let first = turn.results.len();
        let mut rewrite = None;
        for (planned, report) in turn.calls[first..].iter().zip(reports) {
            self.count(planned, &report);
            if let (Executor::SubAgent { id, .. }, Some(nested)) = (&planned.executor, report.sub_agent) {
                self.take_over(id, *nested);
            }
            self.collect_sources(planned, &report.result);
            self.tell(EventBody::ToolCallFinished {
                call_id: planned.call.id.clone(),
                result: report.result.clone(),
                error_kind: report.error_kind,
                curable: report.curable,
                ms: report.ms,
            });
            if let Some(problem) = tool_error::detect(&planned.call.tool, &report.result, report.curable) {
                rewrite = Some(format!("{}.{}: {problem}", planned.call.server, planned.call.tool));
            }
            turn.results.push(report.result);
        }
        let nothing_else_was_run = turn.results.len() == 1;
        if let Some(detail) = rewrite
            && nothing_else_was_run
            && self.can_roll_back()
        {
            self.carry_out(Verdict::Rollback(RollbackReason::ToolError, detail));
        } else if turn.results.len() < turn.calls.len() {
            self.state.phase = Phase::RunCalls(turn);
        } else {
            self.finish_turn(&turn);
        }
    }

    fn count(&mut self, planned: &PlannedCall, report: &ToolReport) {
        let failed = report.error_kind.is_some() || report.result.is_error;
        self.count_run(planned, failed);
        if let Some(query) = &planned.query
            && !failed
        {
            *self.state.pass.used_queries.entry(query.clone()).or_insert(0) += 1;
        }
    }

    fn count_run(&mut self, planned: &PlannedCall, failed: bool) {
        let counts = &mut self.state.tool_calls;
        counts.total += 1;
        counts.failed += u32::from(failed);
        *counts.by_tool.entry(planned.call.tool.clone()).or_insert(0) += 1;
        if matches!(planned.executor, Executor::SubAgent { .. }) {
            self.state.nested.agents += 1;
        }
    }

    /// Takes note that the calls of the last [`super::Step::CallTools`] were begun and given up. They count as run
    /// and failed; whether they are begun again is decided by whoever goes on with the run.
    pub fn tools_cut_off(&mut self, calls: &[PlannedCall]) {
        if matches!(self.state.phase, Phase::RunCalls(_)) {
            calls.iter().for_each(|planned| self.count_run(planned, true));
        }
    }

    /// What a sub-agent found and spent becomes the run's.
    fn take_over(&mut self, id: &str, nested: SubAgentReport) {
        let SubAgentReport { summary, usage, tool_calls, findings, sources } = nested;
        self.tell(EventBody::SubAgentFinished { id: id.to_owned(), summary, usage });
        let totals = &mut self.state.nested;
        totals.usage.input = totals.usage.input.saturating_add(usage.input);
        totals.usage.output = totals.usage.output.saturating_add(usage.output);
        totals.usage.cache_read = totals.usage.cache_read.saturating_add(usage.cache_read);
        totals.usage.cache_write = totals.usage.cache_write.saturating_add(usage.cache_write);
        totals.tool_calls.total += tool_calls.total;
        totals.tool_calls.failed += tool_calls.failed;
        for (tool, count) in tool_calls.by_tool {
            *totals.tool_calls.by_tool.entry(tool).or_insert(0) += count;
        }
        for finding in findings {
            findings::note(&mut self.state.findings, finding);
        }
        for source in sources {
            citations::add(&source, &mut self.state.sources);
        }
    }

    /// Keeps what a success names as sources, where a report will cite them. What a sub-agent writes is not such a
    /// source, what it saw is.
    fn collect_sources(&mut self, planned: &PlannedCall, result: &ToolResult) {
        if self.setup.config.answer_format != AnswerFormat::Report
            || result.is_error
            || planned.executor != Executor::Tools
        {
            return;
        }
        let sources = &mut self.state.sources;
        for text in result.content.iter().filter_map(ContentBlock::as_text) {
            citations::collect(text, sources);
        }
        for (name, value) in &planned.call.arguments {
            citations::collect_argument(name, value, sources);
        }
    }

    /// Ends a turn some of whose calls were not run: those that were keep their results.
    pub(super) fn break_off(&mut self, mut turn: TurnCalls) {
        while turn.results.len() < turn.calls.len() {
            turn.results
                .push(ToolResult::error("This call was not run to its end: a limit of the run was reached."));
        }
        self.finish_turn(&turn);
    }

    fn finish_turn(&mut self, turn: &TurnCalls) {
        let after = std::mem::take(&mut self.state.pass.consecutive_rollbacks);
        if after > 0 {
            self.tell(EventBody::Recovered { after });
        }
        let messages = results::messages(turn, self.result_style());
        let count = messages.len();
        for message in messages {
            self.push(message);
        }
        self.state.phase = Phase::CheckContext(count);
    }
}
