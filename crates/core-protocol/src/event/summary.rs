//! How a run ended: the reasons, the figures, the JSON object of `fathom ask`. Decides their shape and
//! names only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model made no further call.
    Completed,
    /// The turns are used up.
    MaxTurns,
    /// The call attempts are used up.
    MaxCallAttempts,
    /// Broken calls, and no rollback left.
    FormatError,
    /// Refusals, and no rollback left.
    Refusal,
    /// The context is full.
    ContextLimit,
    /// The run's wall time is used up.
    LimitWall,
    /// The run's time is used up, waiting for limiters left out.
    LimitWorkingTime,
    /// The run's tokens are used up.
    LimitTokens,
    /// The run's money is used up.
    LimitCost,
    /// Somebody stopped it.
    Cancelled,
    /// The model could not be reached or used.
    Error,
}

impl StopReason {
    /// Whether the pass was cut short by a bound rather than by its own end.
    #[must_use]
    pub const fn is_capped(self) -> bool {
        matches!(
            self,
            Self::MaxTurns
                | Self::MaxCallAttempts
                | Self::ContextLimit
                | Self::LimitWall
                | Self::LimitWorkingTime
                | Self::LimitTokens
                | Self::LimitCost
        )
    }

    /// Whether a limit of the whole run was reached, so that no further pass is possible.
    #[must_use]
    pub const fn is_run_limit(self) -> bool {
        matches!(self, Self::LimitWall | Self::LimitWorkingTime | Self::LimitTokens | Self::LimitCost)
    }

    /// The name used in logs and output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::MaxTurns => "max_turns",
            Self::MaxCallAttempts => "max_call_attempts",
            Self::FormatError => "format_error",
            Self::Refusal => "refusal",
            Self::ContextLimit => "context_limit",
            Self::LimitWall => "limit_wall",
            Self::LimitWorkingTime => "limit_working_time",
            Self::LimitTokens => "limit_tokens",
            Self::LimitCost => "limit_cost",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// There is an answer.
    Answered,
    /// It ended well and found none.
    NoAnswer,
    /// It could not go on.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

/// Figures of one pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassSummary {
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Turns kept.
    pub turns: u32,
    /// Replies asked for, kept or not.
    pub call_attempts: u32,
    /// Replies dropped.
    pub rollbacks: u32,
}

/// Rollbacks of a run by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RollbackCounts {
    /// All of them.
    pub total: u32,
    /// Tags without a readable call.
    pub format_error: u32,
    /// Refusal phrases.
    pub refusal: u32,
    /// Repeated queries.
    pub duplicate_query: u32,
    /// Tool errors that rewriting can cure.
    pub tool_error: u32,
}

/// Tool calls of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallCounts {
    /// All that were run.
    pub total: u32,
    /// Those that failed.
    pub failed: u32,
    /// All that were run, by tool name.
    pub by_tool: BTreeMap<String, u32>,
}

/// Tokens of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageTotals {
    /// All prompt tokens, cached ones included.
    pub input: u64,
    /// Generated tokens.
    pub output: u64,
    /// Prompt tokens that came from a cache.
    pub cache_read: u64,
    /// Prompt tokens that were written to a cache.
    pub cache_write: u64,
}

/// Citations of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CitationCounts {
    /// All of them.
    pub total: u32,
    /// Those whose source appeared in a tool result of the run or among its files.
    pub verified: u32,
    /// Sources that are cited and appeared nowhere, each once; they are marked in the report.
    pub unknown: Vec<String>,
}

/// An error as users and programs meet it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReport {
    /// A stable word to branch on.
    pub kind: String,
    /// What happened and where.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// The figures and the answer of a run: the JSON object of `fathom ask`, less run id and directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// How it ended.
    pub status: RunStatus,
    /// The short answer, or the report with its citations checked; null where there is none, and in the log where it
    /// is a report, which `final_answer` owns.
    pub answer: Option<String>,
    /// The whole last reply; null in the log, where the message owns it.
    pub final_text: Option<String>,
    /// Why the last pass ended; null where none began.
    pub stop_reason: Option<StopReason>,
    /// Whether the last pass was cut short by a bound.
    pub capped: bool,
    /// All passes in order.
    pub passes: Vec<PassSummary>,
    /// Turns kept, over all passes.
    pub turns: u32,
    /// Replies asked for, over all passes.
    pub call_attempts: u32,
    /// Replies dropped, over all passes.
    pub rollbacks: RollbackCounts,
    /// Tool calls, over all passes.
    pub tool_calls: ToolCallCounts,
    /// Sub-agents that were run.
    pub sub_agents: u32,
    /// Tokens, over all passes.
    pub usage: UsageTotals,
    /// US dollars; null where a price is unknown.
    pub cost_usd: Option<f64>,
    /// From start to end.
    pub wall_ms: u64,
    /// Waiting for the model.
    pub llm_ms: u64,
    /// Waiting for tools.
    pub tool_ms: u64,
    /// The rest: what the framework itself took.
    pub overhead_ms: u64,
    /// Of `llm_ms` and `tool_ms`, waiting for limiters while nothing else was done: for a place among all who ask the
    /// same server, or for the end of a pause that it asked for.
    #[serde(default)]
    pub limiter_ms: u64,
    /// Summaries of the passes that failed.
    pub failure_summaries: Vec<String>,
    /// The citations of a report; left out with a short answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub citations: Option<CitationCounts>,
    /// What stopped it, where something did; null otherwise.
    pub error: Option<ErrorReport>,
    /// The run's directory, in the log; programs that made the run know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_dir: Option<String>,
}

impl RunSummary {
    /// The summary of a run that could not begin.
    #[must_use]
    pub fn never_begun(error: Option<ErrorReport>) -> Self {
        Self {
            status: RunStatus::Failed,
            answer: None,
            final_text: None,
            stop_reason: None,
            capped: false,
            passes: Vec::new(),
            turns: 0,
            call_attempts: 0,
            rollbacks: RollbackCounts::default(),
            tool_calls: ToolCallCounts::default(),
            sub_agents: 0,
            usage: UsageTotals::default(),
            cost_usd: None,
            wall_ms: 0,
            llm_ms: 0,
            tool_ms: 0,
            overhead_ms: 0,
            limiter_ms: 0,
            failure_summaries: Vec::new(),
            citations: None,
            error,
            run_dir: None,
        }
    }
}
