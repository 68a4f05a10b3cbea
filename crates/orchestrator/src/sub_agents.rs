//! Agents that the main one hands subtasks to: the tool that each appears as, and what it gives back.
//!
//! Decides their shape only: when they are called is the machine's decision, running them the driver's.

use core_protocol::event::{PassSummary, ToolCallCounts, UsageTotals};
use core_protocol::{ToolCall, ToolDefinition};
use serde_json::{Value, json};

use crate::findings::Finding;
use crate::machine::Setup;
use crate::ports::Tools;

/// What the names of sub-agents begin with.
pub const NAME_PREFIX: &str = "agent-";
/// The one tool of a sub-agent.
pub const TOOL: &str = "search_and_browse";
/// Its one argument.
pub const ARGUMENT: &str = "subtask";

/// What a sub-agent works with, beside the model and the log of its run.
pub struct SubAgentParts<'a> {
    /// Its texts, tools and settings. Which run of it this is, is filled in by whoever runs it.
    pub setup: Setup,
    /// Its tools.
    pub tools: &'a dyn Tools,
}

/// Gives sub-agents what they work with.
pub trait SubAgents: Send + Sync {
    /// The parts of the agent of that name; none where there is no such agent.
    fn open(&self, name: &str) -> Option<SubAgentParts<'_>>;
}

/// What a finished sub-agent leaves beside its report.
#[derive(Debug, Clone, PartialEq)]
pub struct SubAgentReport {
    /// Its figures.
    pub summary: PassSummary,
    /// Its tokens.
    pub usage: UsageTotals,
    /// Its tool calls.
    pub tool_calls: ToolCallCounts,
    /// The facts that it noted.
    pub findings: Vec<Finding>,
    /// The sources that it saw.
    pub sources: Vec<String>,
}

/// A sub-agent as the main agent sees it: a server with one tool.
#[must_use]
pub fn definition(name: &str) -> ToolDefinition {
    ToolDefinition {
        server: name.to_owned(),
        name: TOOL.to_owned(),
        description: "Hand a subtask to an agent that searches, reads and checks on its own and reports what it \
                      found, with its sources. It sees nothing of this conversation: put everything that it must \
                      know into the subtask, what is known already, what exactly is wanted, and in which form. Give \
                      it one clear subtask at a time."
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": { ARGUMENT: { "type": "string", "description": "The whole subtask." } },
            "required": [ARGUMENT],
        }),
    }
}

/// The subtask of a call.
///
/// # Errors
///
/// What is wrong with the call, for the model.
pub(crate) fn subtask(call: &ToolCall) -> Result<String, String> {
    if call.tool != TOOL {
        return Err(format!(
            "Unknown tool: {}. The agent `{}` offers the tool {TOOL}.",
            call.tool, call.server
        ));
    }
    match call.arguments.get(ARGUMENT) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        Some(Value::String(_)) | None => {
            Err(format!("`{ARGUMENT}` is missing: say what the agent is to find out."))
        }
        Some(_) => Err(format!("`{ARGUMENT}` must be a text.")),
    }
}
