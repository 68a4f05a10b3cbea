//! Everything a run is between two steps. Plain data: it can be written down and gone on with.

use std::collections::BTreeMap;

use answer_generator::{Ending, HistoryEntry};
use core_protocol::event::{
    AnswerSource, ErrorReport, LlmPurpose, PassSummary, RollbackCounts, RunStatus, StopReason,
    ToolCallCounts, UsageTotals,
};
use core_protocol::{ContentBlock, ToolCall, ToolResult, Usage};
use serde::{Deserialize, Serialize};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The question as asked.
    pub question: String,
    /// What the files given with it say, ready to follow the question; empty without files.
    pub attached_text: String,
    /// Pictures and recordings that the model takes.
    pub attached_media: Vec<ContentBlock>,
}

impl Task {
    /// A question without files.
    #[must_use]
    pub fn question(question: impl Into<String>) -> Self {
        Self { question: question.into(), attached_text: String::new(), attached_media: Vec::new() }
    }
}

/// A run, over all its passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// What is asked.
    pub task: Task,
    /// The pass, from 1.
    pub pass_number: u32,
    /// The pass that is under way.
    pub pass: PassState,
    /// What is to be done next.
    pub phase: Phase,
    /// Summaries of the passes that failed.
    pub failures: Vec<String>,
    /// Passes that ended.
    pub passes: Vec<PassSummary>,
    /// Rollbacks over all passes.
    pub rollbacks: RollbackCounts,
    /// Tool calls over all passes.
    pub tool_calls: ToolCallCounts,
    /// Tokens over all passes.
    pub usage: UsageTotals,
    /// Messages so far; the next id.
    pub messages: u64,
    /// Requests so far; the next id.
    pub requests: u64,
    /// Ids of tool calls in use, with how often each was asked for.
    pub call_ids: BTreeMap<String, u32>,
    /// How the run came out, once it has.
    pub outcome: Option<RunOutcome>,
}

/// How a run came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// How it ended.
    pub status: RunStatus,
    /// The short answer.
    pub answer: Option<String>,
    /// Where it was taken from.
    pub source: AnswerSource,
    /// The whole last reply.
    pub final_text: Option<String>,
    /// Why the last pass ended.
    pub stop_reason: Option<StopReason>,
    /// What stopped it, where something did.
    pub error: Option<ErrorReport>,
}

/// One pass: a loop and its end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PassState {
    /// The conversation.
    pub history: Vec<HistoryEntry>,
    /// Turns kept.
    pub turn: u32,
    /// Replies asked for.
    pub call_attempts: u32,
    /// Rollbacks in a row.
    pub consecutive_rollbacks: u32,
    /// Rollbacks of this pass.
    pub rollbacks: u32,
    /// Calls without a usable reply in a row.
    pub llm_failures: u32,
    /// Queries that were made, with how often.
    pub used_queries: BTreeMap<String, u32>,
    /// The last boxed answer noted, and the reply that holds it.
    pub boxed: Option<(String, String)>,
    /// Whether the last reply of the loop held that box.
    pub last_reply_boxed: bool,
    /// What the next request is told, once.
    pub hint: Option<String>,
    /// Tokens of the last reply, where the server told.
    pub last_usage: Option<Usage>,
    /// Why the loop ended, once it has.
    pub stop_reason: Option<StopReason>,
    /// What the history was last prepared for, once the pass is ending.
    pub prepared_for: Option<LlmPurpose>,
    /// The last whole reply without a call, or the final one: id and text.
    pub last_text: Option<(String, String)>,
    /// The last failure of the model, for the run's error report.
    pub last_error: Option<ErrorReport>,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Ask the model for the next turn.
    AskModel,
    /// Run tool calls.
    RunCalls(TurnCalls),
    /// Check the context; the number of messages that the turn's results take.
    CheckContext(usize),
    /// End the pass.
    Ending(Ending),
    /// The run is over.
    Finished,
}

/// The calls of one turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnCalls {
    /// All of them, in order.
    pub calls: Vec<PlannedCall>,
    /// Results so far, in the same order.
    pub results: Vec<ToolResult>,
    /// What is to be said beside the results: blocks that could not be read.
    pub notes: Vec<String>,
}

/// A call that is to be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// The mended call; its id is unique in the run.
    pub call: ToolCall,
    /// The id that the model knows it by, where that differs.
    pub model_id: String,
    /// The identity of its query, where it has one.
    pub query: Option<String>,
    /// What was mended, in words.
    pub repairs: Vec<String>,
    /// The arguments of a native call as they came, where they could not be read: the call is not run.
    pub unreadable: Option<String>,
}

impl RunState {
    /// A run at its beginning; the first pass is opened by the machine.
    #[must_use]
    pub fn new(task: Task) -> Self {
        Self {
            task,
            pass_number: 0,
            pass: PassState::default(),
            phase: Phase::AskModel,
            failures: Vec::new(),
            passes: Vec::new(),
            rollbacks: RollbackCounts::default(),
            tool_calls: ToolCallCounts::default(),
            usage: UsageTotals::default(),
            messages: 0,
            requests: 0,
            call_ids: BTreeMap::new(),
            outcome: None,
        }
    }
}
