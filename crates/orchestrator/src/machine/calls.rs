//! Runs the calls of a turn: which are run together, what their results mean, and what the model is shown.

use core_protocol::event::{EventBody, RollbackReason};
use core_protocol::{ToolCall, ToolResult};

use super::state::{Phase, PlannedCall, TurnCalls};
use super::{Machine, results};
use crate::boundaries::{Verdict, duplicate_query, tool_error};
use crate::config::ToolCallsPerTurn;

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
}

impl PlannedCall {
    /// The report of a call that must not be run because its arguments could not be read; none for others. Native
    /// calls need a result whatever they are, and this one tells the model what to mend.
    #[must_use]
    pub fn refusal(&self) -> Option<ToolReport> {
        let written: String = self.unreadable.as_ref()?.chars().take(EXCERPT_CHARACTERS).collect();
        Some(ToolReport {
            result: ToolResult::error(format!(
                "The arguments of this call are not one complete JSON object, so it was not run. They began: {written}"
            )),
            error_kind: Some("invalid_arguments".to_owned()),
            curable: true,
            ms: 0,
        })
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
        call.id = self.unique_id(call.id);
        let unreadable = llm_providers::unreadable_arguments(&call).map(str::to_owned);
        PlannedCall { model_id: call.id.clone(), call, query, repairs, unreadable }
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
        }
    }

    /// The calls that are run next: all that are left in parallel mode, else one.
    pub(super) fn next_calls(&self, turn: &TurnCalls) -> Vec<PlannedCall> {
        let left = &turn.calls[turn.results.len().min(turn.calls.len())..];
        match self.setup.config.tool_calls_per_turn {
            ToolCallsPerTurn::Parallel => left.to_vec(),
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
            self.tell(EventBody::ToolCallFinished {
                call_id: planned.call.id.clone(),
                result: report.result.clone(),
                error_kind: report.error_kind,
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
        let counts = &mut self.state.tool_calls;
        counts.total += 1;
        counts.failed += u32::from(failed);
        *counts.by_tool.entry(planned.call.tool.clone()).or_insert(0) += 1;
        if let Some(query) = &planned.query
            && !failed
        {
            *self.state.pass.used_queries.entry(query.clone()).or_insert(0) += 1;
        }
    }

    /// Ends a turn some of whose calls were not run: those that were keep their results.
    pub(super) fn break_off(&mut self, mut turn: TurnCalls) {
        while turn.results.len() < turn.calls.len() {
            turn.results.push(ToolResult::error("This call was not run: a limit of the run was reached."));
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
