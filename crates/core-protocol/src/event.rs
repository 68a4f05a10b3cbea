//! The events of a run: what is logged, streamed and read again.
//!
//! Decides their shape. Content has one owner: [`EventBody::Message`] owns what the model is sent or
//! said, [`EventBody::ToolCallFinished`] owns a raw tool result, every other event refers by id.
//! In a stored log, four references stand for what would be long or written twice; a stream has none of them:
//!
//! - `{"$blob": sha256, "bytes": n}` for a string of more than [`BLOB_THRESHOLD`] bytes: its text is the file of that
//!   name in the run's `blobs/`;
//! - `{"$parts": [text | {"$result": seq, "block": i, "bytes": n}, …]}` for a string of a message that holds results of
//!   512 bytes or more: a piece is the first `n` bytes of text block `i` of the result in the `tool_call_finished` of
//!   that number;
//! - `{"$ids": ["m1", "m3..m57/2"]}` for a list of more than 24 ids: `m3..m57/2` is every second from `m3` up to `m57`;
//! - `{"$literal": value}` around an object that has one of these names as a key of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{FinishReason, Message, ToolDefinition, ToolResult, Usage};

mod setup;
mod summary;

pub use setup::{LlmFailureClass, RunSetup};
pub use summary::{
    CitationCounts, ErrorReport, PassSummary, RollbackCounts, RunStatus, RunSummary, StopReason,
    ToolCallCounts, UsageTotals,
};

/// Version of this schema, written into `run_started`. Raised when a reader would have to change.
pub const EVENT_SCHEMA_VERSION: u32 = 1;

/// Strings longer than this many bytes are kept outside the log.
pub const BLOB_THRESHOLD: usize = 64 * 1024;

/// One line of a run's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Position in the run, from 0, without gaps among stored events. An event that is only streamed carries the
    /// number of the stored event that follows it.
    pub seq: u64,
    /// When, RFC 3339 in UTC.
    pub ts: String,
    /// The run.
    pub run_id: String,
    /// The pass, from 1; 0 before the first.
    pub pass: u32,
    /// The turn, from 1; 0 before the first.
    pub turn: u32,
    /// `main`, or a sub-agent's id.
    pub agent: String,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    /// The run begins.
    RunStarted {
        /// The question as asked.
        question: String,
        /// Files given with it.
        files: Vec<String>,
        /// The resolved configuration, without secrets.
        config: Value,
        /// What wrote this log.
        versions: Versions,
        /// Servers that are in use and those that did not start.
        servers: Vec<ServerStatus>,
        /// What the run was set up with beside its configuration; all that resuming it needs.
        #[serde(default)]
        setup: Box<RunSetup>,
    },
    /// An interrupted run is gone on with.
    RunResumed {
        /// Numbers of the events before this one that do not count: what the interruption itself left behind.
        void: Vec<u64>,
        /// What goes on with it.
        versions: Versions,
    },
    /// The servers of an agent offer other tools from this pass on.
    ToolsChanged {
        /// All that are offered now.
        tools: Vec<ToolDefinition>,
    },
    /// The system prompt of an agent.
    SystemPrompt {
        /// The whole text.
        text: String,
    },
    /// A history message, each exactly once.
    Message {
        /// Id within the run.
        id: String,
        /// The message.
        message: Message,
    },
    /// A request goes to the model.
    LlmRequest {
        /// Id of the call within the run.
        call: u64,
        /// What it is for.
        purpose: LlmPurpose,
        /// Ids of the messages in the view, in order.
        view: Vec<String>,
        /// Ids among them whose content was replaced by the omission notice.
        omitted: Vec<String>,
        /// Text that is sent last and not kept: a rollback hint, an assistant prefix.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transient: Option<String>,
        /// Model and sampling parameters.
        params: Map<String, Value>,
        /// Number of tools shown.
        tools: usize,
        /// Tools that exist and are not shown in this request, as `server.tool`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hidden: Vec<String>,
    },
    /// A piece of text as it streams in. Not stored.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// A piece of thinking as it streams in. Not stored.
    ThinkingDelta {
        /// The piece.
        text: String,
    },
    /// The model replied.
    LlmResponse {
        /// The call that it answers.
        call: u64,
        /// The message that holds the reply.
        message_id: String,
        /// Why the model stopped.
        finish_reason: FinishReason,
        /// Tokens, where told.
        usage: Option<Usage>,
        /// The model, as the server names it.
        model: Option<String>,
        /// From request to end, retries and their pauses included.
        ms: u64,
        /// Tries that failed before.
        retries: u32,
        /// Tokens of whole replies that were thrown away and asked for again; none where there were none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        discarded: Option<Usage>,
    },
    /// A try failed and another follows.
    LlmRetry {
        /// The call.
        call: u64,
        /// The try that failed, from 1.
        attempt: u32,
        /// Kind of the error.
        kind: String,
        /// What was wrong, without secrets.
        message: String,
        /// The pause before the next try.
        wait_ms: u64,
    },
    /// A call waited for a limiter: for its turn among all who ask the same server, or for the end of a pause that the
    /// server asked for. Told when the waiting is over.
    LlmWaited {
        /// The call.
        call: u64,
        /// How long.
        ms: u64,
    },
    /// Tools that ask a model waited for a limiter, and nothing else was at work meanwhile. Told when the calls of a turn
    /// have ended.
    ToolsWaited {
        /// How long.
        ms: u64,
    },
    /// A call gave no usable reply, its retries spent.
    LlmFailed {
        /// The call.
        call: u64,
        /// Kind of the error.
        kind: String,
        /// What was wrong, without secrets.
        message: String,
        /// What can be done about it.
        #[serde(default)]
        class: LlmFailureClass,
        /// What a person can do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// A tool call begins.
    ToolCallStarted {
        /// Id within the run.
        call_id: String,
        /// The server, corrected.
        server: String,
        /// The tool, corrected.
        tool: String,
        /// The arguments, repaired.
        arguments: Map<String, Value>,
        /// What was corrected, in words; empty where nothing was.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repairs: Vec<String>,
    },
    /// A tool call ended.
    ToolCallFinished {
        /// The call.
        call_id: String,
        /// Its raw result.
        result: ToolResult,
        /// Kind of failure: `tool_error`, `timeout`, `unknown_server`…; none for a success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<String>,
        /// Whether writing the call again can cure the error.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        curable: bool,
        /// How long it took.
        ms: u64,
    },
    /// The last reply was dropped and the model is asked again.
    Rollback {
        /// Why.
        reason: RollbackReason,
        /// What exactly.
        detail: String,
        /// The reply that was dropped.
        dropped: String,
        /// Rollbacks in a row, this one included.
        consecutive: u32,
    },
    /// A repeated query was run because no rollback was left.
    DuplicateAllowed {
        /// The call.
        call_id: String,
        /// The identifying arguments.
        query: String,
    },
    /// A turn was kept after rollbacks.
    Recovered {
        /// How many there had been in a row.
        after: u32,
    },
    /// The context budget was checked after a turn.
    ContextChecked {
        /// Estimated tokens of the next request with its reserve.
        estimated: u64,
        /// The window.
        limit: u64,
        /// Whether the turn was dropped.
        over: bool,
        /// The local counts that the estimate was made from: the results, the final-answer prompt, and the last
        /// exchange where the server told no usage.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counts: Option<[u64; 3]>,
    },
    /// A call of the main agent goes to a sub-agent, whose own events carry its id.
    SubAgentStarted {
        /// Id of the sub-agent in the run: its name and a number, `agent-browsing-1`.
        id: String,
        /// Its name in the configuration.
        name: String,
        /// The call that it answers.
        call_id: String,
    },
    /// A sub-agent ended; its report is the result of the call.
    SubAgentFinished {
        /// The sub-agent.
        id: String,
        /// Its figures.
        summary: PassSummary,
        /// Its tokens.
        usage: UsageTotals,
    },
    /// A stretch of the history was summed up; requests show the summary in its place from now on.
    Compressed {
        /// The request that the summary answers.
        call: u64,
        /// The message that holds it, as it is shown.
        message_id: String,
        /// Ids of the messages that it stands for, in order; earlier summaries among them.
        replaced: Vec<String>,
        /// Tokens of a request before.
        before: u64,
        /// Tokens of a request with the summary.
        after: u64,
        /// The tokens that a request should stay below.
        limit: u64,
        /// Whether it does.
        under_limit: bool,
        /// Whether the summary is used; one that saves nothing is not.
        adopted: bool,
    },
    /// A fact was noted. The call owns its text.
    Finding {
        /// The name of the fact.
        name: String,
        /// The call that noted it.
        call_id: String,
        /// Whether an earlier fact of that name was replaced.
        replaced: bool,
    },
    /// A reply held a boxed answer.
    IntermediateAnswer {
        /// The content of its last box.
        answer: String,
        /// The reply.
        message_id: String,
    },
    /// A pass ended without an answer and was summed up for the next.
    FailureSummary {
        /// The reply that it was taken from.
        message_id: Option<String>,
        /// The summary.
        text: String,
    },
    /// A pass ended.
    PassFinished {
        /// Its figures.
        summary: PassSummary,
    },
    /// The final answer was settled.
    FinalAnswer {
        /// The reply that holds it, where there is one.
        message_id: Option<String>,
        /// The answer; none where there is none.
        answer: Option<String>,
        /// Where it was taken from.
        source: AnswerSource,
        /// The citations of a report, checked against the sources of the run; none for a short answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        citations: Option<CitationCounts>,
    },
    /// A limit of the whole run was reached.
    LimitReached {
        /// `wall`, `tokens` or `cost`.
        limit: String,
        /// What had been spent, in the limit's unit (seconds, tokens, US dollars).
        spent: f64,
        /// The limit.
        max: f64,
    },
    /// The run is over.
    RunFinished(Box<RunSummary>),
}

impl EventBody {
    /// Whether the event is written to the log; deltas are only streamed.
    #[must_use]
    pub const fn is_stored(&self) -> bool {
        !matches!(self, Self::TextDelta { .. } | Self::ThinkingDelta { .. })
    }
}

/// What wrote a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Versions {
    /// The program's version.
    pub fathom: String,
    /// [`EVENT_SCHEMA_VERSION`].
    pub schema: u32,
}

/// A tool server at the start of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// The tools it offers.
    pub tools: Vec<String>,
    /// Why it is not in use, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What confines it, where it runs foreign code: `landlock`, `seccomp`, `rlimits`…
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox: Vec<String>,
}

/// What a request to the model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LlmPurpose {
    /// A turn of the loop.
    Turn,
    /// The final answer.
    FinalAnswer,
    /// The failure summary of a pass.
    FailureSummary,
    /// The summary of a stretch of the history.
    Compression,
}

/// Why a reply was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RollbackReason {
    /// Tags of the dialect without a readable call.
    FormatError,
    /// A refusal phrase.
    Refusal,
    /// A query that was already made.
    DuplicateQuery,
    /// A tool error that rewriting the call can cure.
    ToolError,
}

impl RollbackReason {
    /// The name used in logs and configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FormatError => "format_error",
            Self::Refusal => "refusal",
            Self::DuplicateQuery => "duplicate_query",
            Self::ToolError => "tool_error",
        }
    }
}

/// Where the final answer was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerSource {
    /// The box of the final reply.
    FinalReply,
    /// The last box noted during the loop.
    Intermediate,
    /// There is no answer.
    None,
}
