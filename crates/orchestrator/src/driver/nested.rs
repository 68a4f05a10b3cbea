//! Runs a sub-agent: the same loop with a machine of its own, inside the call that asked for it.
//!
//! It shares the model, the journal, the log and the limits with the run that it belongs to. Whatever becomes of it is
//! the result of the call, never the end of the run.

use std::pin::Pin;
use std::time::Instant;

use core_protocol::ToolResult;
use core_protocol::event::{ErrorReport, PassSummary, RunStatus, StopReason};
use tokio_util::sync::CancellationToken;

use super::{Driver, millis};
use crate::ledger::Ledger;
use crate::machine::state::{PlannedCall, Task};
use crate::machine::{Agent, Machine, Setup, ToolReport};
use crate::sub_agents::SubAgentReport;

/// A machine whose tool calls are counted for the run however it ends, also where nobody waits for it any more.
struct Counted<'a> {
    machine: Machine,
    ledger: &'a Ledger,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.ledger.add_nested_calls(&self.machine.state().tool_calls);
    }
}

impl Driver<'_> {
    /// Boxed, since a driver inside a driver is a future inside its own kind.
    pub(super) fn run_sub_agent<'s>(
        &'s self,
        planned: &'s PlannedCall,
        id: &'s str,
        subtask: &'s str,
        stop: &'s CancellationToken,
        ledger: &'s Ledger,
    ) -> Pin<Box<dyn Future<Output = ToolReport> + Send + 's>> {
        Box::pin(async move {
            let began = Instant::now();
            let name = planned.call.server.as_str();
            let Some(parts) = self.sub_agents.and_then(|agents| agents.open(name)) else {
                let text = format!("The agent `{name}` is not in use.");
                return ToolReport::failed("unknown_server", false, text);
            };
            let setup = Setup { agent: Agent::Sub(id.to_owned()), ..parts.setup };
            let mut counted = Counted { machine: Machine::new(setup, Task::question(subtask)), ledger };
            let driver = Driver {
                client: self.client,
                tools: parts.tools,
                journal: self.journal,
                sink: self.sink,
                cancel: stop.clone(),
                limits: self.limits.clone(),
                agent: id,
                started: self.started,
                clock: self.clock.clone(),
                sub_agents: None,
            };
            if let Err(error) = driver.drive_to_end(&mut counted.machine, ledger).await {
                counted.machine.fail(ErrorReport {
                    kind: "io".into(),
                    message: format!("the run's log cannot be written: {error}"),
                    hint: None,
                });
            }
            let mut report = report_of(name, &counted.machine);
            report.ms = millis(began.elapsed());
            report
        })
    }
}

/// What a machine that has ended gives back to the agent that called it.
fn report_of(name: &str, machine: &Machine) -> ToolReport {
    let state = machine.state();
    let outcome = state.outcome.as_ref();
    let status = outcome.map_or(RunStatus::Cancelled, |outcome| outcome.status);
    let problem = || {
        let reason = outcome.and_then(|outcome| outcome.error.as_ref()).map(|error| error.message.clone());
        reason.unwrap_or_else(|| "it ended without a report".to_owned())
    };
    let mut report = match (status, outcome.and_then(|outcome| outcome.answer.clone())) {
        (RunStatus::Answered, Some(answer)) => ToolReport {
            result: ToolResult::text(answer),
            error_kind: None,
            curable: false,
            ms: 0,
            sub_agent: None,
        },
        (RunStatus::Cancelled, _) => {
            ToolReport::failed("cancelled", false, format!("The agent `{name}` was stopped."))
        }
        (RunStatus::Answered | RunStatus::NoAnswer | RunStatus::Failed, _) => ToolReport::failed(
            "sub_agent_failed",
            false,
            format!("The agent `{name}` could not carry out the subtask: {}", problem()),
        ),
    };
    let summary = state.passes.last().cloned().unwrap_or(PassSummary {
        stop_reason: StopReason::Cancelled,
        turns: 0,
        call_attempts: 0,
        rollbacks: 0,
    });
    report.sub_agent = Some(Box::new(SubAgentReport {
        summary,
        usage: state.usage,
        tool_calls: state.tool_calls.clone(),
        findings: state.findings.clone(),
        sources: state.sources.iter().cloned().collect(),
    }));
    report
}
