//! One sample of a benchmark: a task in one epoch. Decides its states, and what is kept of it in `results.jsonl`.

use std::path::PathBuf;

use core_protocol::event::{ErrorReport, RunStatus, RunSummary, StopReason, UsageTotals};
use serde::{Deserialize, Serialize};

use crate::exact::ExactTier;
use crate::verdict::{Judgement, Verdict};

/// Which sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SampleId {
    /// The task.
    pub task_id: String,
    /// The epoch, from 1.
    pub epoch: u32,
}

/// How a sample ended. Samples without a row are pending, or running.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SampleState {
    /// There is an answer.
    Answered,
    /// The run ended well and found none.
    NoAnswer,
    /// A limit ended the run before there was an answer.
    Limit {
        /// `max_turns`, `context_limit`, `wall`, `working_time`, `tokens`, `cost`…
        limit: String,
    },
    /// The run failed. Never a wrong answer.
    Error {
        /// A stable word to branch on.
        kind: String,
    },
    /// A canary of the suite stood in a tool's result. Counts as wrong.
    Contaminated {
        /// What was found, and where.
        found: String,
    },
}

impl SampleState {
    /// The name used in reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::NoAnswer => "no_answer",
            Self::Limit { .. } => "limit",
            Self::Error { .. } => "error",
            Self::Contaminated { .. } => "contaminated",
        }
    }

    /// The state of a finished run; none where it was cancelled and can be gone on with.
    #[must_use]
    pub fn of_run(summary: &RunSummary) -> Option<Self> {
        Some(match summary.status {
            RunStatus::Answered => Self::Answered,
            RunStatus::Cancelled => return None,
            RunStatus::Failed => Self::Error {
                kind: summary.error.as_ref().map_or_else(|| "unknown".to_owned(), |error| error.kind.clone()),
            },
            RunStatus::NoAnswer => match summary.stop_reason {
                Some(reason) if reason.is_capped() => {
                    let name = reason.as_str();
                    Self::Limit { limit: name.strip_prefix("limit_").unwrap_or(name).to_owned() }
                }
                _ => Self::NoAnswer,
            },
        })
    }
}

/// Whether an answer is right, and who says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "judged", rename_all = "snake_case")]
pub enum Judged {
    /// An exact tier found it right.
    Exact {
        /// The tier.
        tier: ExactTier,
    },
    /// A judge decided.
    ByJudge {
        /// Its verdict.
        #[serde(flatten)]
        judgement: Judgement,
        /// The judge and what it said.
        transcript: Transcript,
    },
    /// There is a right answer and nobody has said whether this one is; to be judged again.
    Unjudged {
        /// Why.
        reason: String,
        /// What the judge said, where it said something.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transcript: Option<Transcript>,
    },
    /// There is no answer to judge.
    NoAnswer,
    /// The task has no ground truth, or the suite is not judged.
    NotScored,
}

impl Judged {
    /// Whether the sample counts as correct; none where nobody has said.
    #[must_use]
    pub fn is_correct(&self) -> Option<bool> {
        match self {
            Self::Exact { .. } => Some(true),
            Self::ByJudge { judgement, .. } => Some(judgement.verdict == Verdict::Correct),
            Self::NoAnswer => Some(false),
            Self::Unjudged { .. } | Self::NotScored => None,
        }
    }
}

/// Who judged, and what was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// The procedure, as the configuration names it; `mock` for the one that works offline.
    pub judge: String,
    /// The provider.
    pub provider: String,
    /// The model, as the server names it.
    pub model: String,
    /// Hexadecimal SHA-256 of the prompt's template.
    pub prompt_sha256: String,
    /// The replies, word for word, of all votes; those that were no verdict too.
    pub replies: Vec<String>,
    /// What became of each vote, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Ballot>,
    /// Tokens of all votes.
    pub usage: UsageTotals,
    /// US dollars; null where a price is unknown.
    pub cost_usd: Option<f64>,
}

/// What became of one vote of a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ballot {
    /// What it says; none where it failed or could not be read.
    pub verdict: Option<Verdict>,
    /// Why it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How many of the replies belong to it.
    pub replies: usize,
}

/// A figure of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// [`Row::turns`].
    Turns,
    /// [`Row::rollbacks`].
    Rollbacks,
    /// [`Row::tool_calls`].
    ToolCalls,
    /// [`Row::usage`].
    Tokens,
    /// [`Row::wall_ms`].
    WallTime,
    /// [`Row::working_ms`].
    WorkingTime,
}

/// A line of `results.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The sample.
    #[serde(flatten)]
    pub sample: SampleId,
    /// How it ended.
    #[serde(flatten)]
    pub state: SampleState,
    /// Whether it counts as correct; null where nobody has said.
    pub correct: Option<bool>,
    /// The short answer.
    pub answer: Option<String>,
    /// The whole final reply, where the judge is sent it because it may say how sure it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The right answer.
    pub ground_truth: Option<String>,
    /// What figures are broken down by: a name such as `level`, and the task's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<(String, String)>,
    /// Whether the answer is right, and who says so.
    pub judgement: Judged,
    /// Why the last pass ended.
    pub stop_reason: Option<StopReason>,
    /// Whether the last pass was cut short by a bound.
    pub capped: bool,
    /// Passes; more than one is a restart with what was learnt.
    pub passes: u32,
    /// Turns kept, over all passes.
    pub turns: u32,
    /// Replies dropped.
    pub rollbacks: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Tokens.
    pub usage: UsageTotals,
    /// US dollars; null where a price is unknown.
    pub cost_usd: Option<f64>,
    /// From start to end, interruptions aside.
    pub wall_ms: u64,
    /// The same without waiting for limiters.
    pub working_ms: u64,
    /// Figures that nobody knows, which are 0 here: the logs of another program may not say what a sample took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Figure>,
    /// The run, and its folder relative to that of the benchmark.
    pub run_id: Option<String>,
    /// That folder.
    pub run_dir: Option<PathBuf>,
    /// What stopped the run, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
    /// When the sample ended, RFC 3339 in UTC.
    pub ended: String,
}

impl Row {
    /// Sets the judgement, and whether the sample counts as correct: a contaminated one never does, and neither does
    /// one whose run failed, whatever it answered.
    pub fn judge(&mut self, judgement: Judged) {
        self.correct = match (&self.state, &judgement) {
            (_, Judged::NotScored) => None,
            (SampleState::Answered, judged) => judged.is_correct(),
            _ => Some(false),
        };
        self.judgement = judgement;
    }

    /// What the judge said whose verdict this row has; none where an exact tier decided, or nobody.
    #[must_use]
    pub const fn verdict_of(&self) -> Option<&Transcript> {
        match &self.judgement {
            Judged::ByJudge { transcript, .. } => Some(transcript),
            _ => None,
        }
    }

    /// Whether a judge has still to be asked.
    #[must_use]
    pub const fn is_unjudged(&self) -> bool {
        matches!(self.judgement, Judged::Unjudged { .. })
    }

    /// Whether its run failed, so that going on runs it again.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        matches!(self.state, SampleState::Error { .. })
    }
}
