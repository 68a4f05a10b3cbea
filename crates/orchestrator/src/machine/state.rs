//! Everything a run is between two steps. Plain data: it can be written down and gone on with.

use std::collections::{BTreeMap, BTreeSet};

use answer_generator::{Ending, HistoryEntry};
use core_protocol::event::{
    AnswerSource, CitationCounts, ErrorReport, LlmPurpose, PassSummary, RollbackCounts, RunStatus,
    StopReason, ToolCallCounts, UsageTotals,
};
use core_protocol::{ContentBlock, ToolCall, ToolResult, Usage};
use serde::{Deserialize, Serialize};

use crate::findings::Finding;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The question as asked.
    pub question: String,
    /// What the files given with it say, ready to follow the question; empty without files.
    pub attached_text: String,
    /// Pictures and recordings that the model takes.
    pub attached_media: Vec<ContentBlock>,
    /// Names of the files given with it, which a report may cite.
    #[serde(default)]
    pub files: Vec<String>,
}

impl Task {
    /// A question without files.
    #[must_use]
    pub fn question(question: impl Into<String>) -> Self {
        Self {
            question: question.into(),
            attached_text: String::new(),
            attached_media: Vec::new(),
            files: Vec::new(),
        }
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
    /// Tool calls over all passes, without those of sub-agents.
    pub tool_calls: ToolCallCounts,
    /// Tokens over all passes, without sub-agents.
    pub usage: UsageTotals,
    /// What finished sub-agents spent.
    #[serde(default)]
    pub nested: NestedTotals,
    /// Sub-agents by name: how many were given an id.
    #[serde(default)]
    pub sub_agent_ids: BTreeMap<String, u32>,
    /// Facts that were noted, over all passes.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Sources that tool results named, where the answer is to be a report.
    #[serde(default)]
    pub sources: BTreeSet<String>,
    /// The tools, by position, that the system prompt told last; none before the first request.
    #[serde(default)]
    pub shown: Option<Vec<u32>>,
    /// Messages so far; the next id.
    pub messages: u64,
    /// Requests so far; the next id.
    pub requests: u64,
    /// Ids of tool calls in use, with how often each was asked for.
    pub call_ids: BTreeMap<String, u32>,
    /// How the run came out, once it has.
    pub outcome: Option<RunOutcome>,
}

/// What sub-agents spent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedTotals {
    /// Sub-agents that were run.
    pub agents: u32,
    /// Their tokens.
    pub usage: UsageTotals,
    /// Their tool calls.
    pub tool_calls: ToolCallCounts,
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
    /// The citations of a report.
    pub citations: Option<CitationCounts>,
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
    /// The summary that requests show in place of the older history.
    #[serde(default)]
    pub compressed: Option<Compressed>,
    /// The turn after which the history was last summed up, or was to be.
    #[serde(default)]
    pub compressed_at: u32,
    /// Whether that brought too little, so that the next summary waits for its turn.
    #[serde(default)]
    pub compression_failed: bool,
}

/// A stretch of the history that is shown as a summary. The history itself stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compressed {
    /// The stretch goes from the second message to the one before this position.
    pub through: usize,
    /// What stands for it.
    pub entries: Vec<HistoryEntry>,
}

/// A summary that is being made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compressing {
    /// The end of the stretch, as in [`Compressed`].
    pub through: usize,
    /// Whether results are shown that other requests omit: not after such a request was too long.
    pub in_full: bool,
    /// How often it has been asked for.
    pub round: u32,
}

/// A summary that is there and must be counted before it is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drafted {
    /// How it was asked for.
    pub asked: Compressing,
    /// The request that it answers.
    pub call: u64,
    /// The summary in its place.
    pub compressed: Compressed,
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
    /// Sum up the older history.
    Compress(Compressing),
    /// Count what a summary saves.
    CheckCompressed(Box<Drafted>),
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
    /// Who carries it out.
    #[serde(default)]
    pub executor: Executor,
    /// The arguments of a native call as they came, where they could not be read: the call is not run.
    pub unreadable: Option<String>,
}

/// Who carries out a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    /// A tool server.
    #[default]
    Tools,
    /// The loop itself, without any I/O.
    Own,
    /// A sub-agent.
    SubAgent {
        /// Its id in the run, once the call is to be run.
        id: String,
        /// What it is to do.
        subtask: String,
    },
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
            nested: NestedTotals::default(),
            sub_agent_ids: BTreeMap::new(),
            findings: Vec::new(),
            sources: BTreeSet::new(),
            shown: None,
            messages: 0,
            requests: 0,
            call_ids: BTreeMap::new(),
            outcome: None,
        }
    }
}
