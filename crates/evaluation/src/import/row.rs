//! A row of ours from the logs of an attempt. Decides how the attempt ended, which answers are none, and which verdicts
//! of the reference are verdicts.

use core_protocol::event::{ErrorReport, UsageTotals};
use serde_json::Value;

use super::effort::Effort;
use super::log::TaskLog;
use crate::exact::ExactTier;
use crate::figures::SetScore;
use crate::sample::{Judged, Row, SampleId, SampleState, Transcript};
use crate::verdict::{Judgement, Verdict};

/// An attempt at a task.
pub(super) struct Attempt {
    pub(super) sample: SampleId,
    /// The logs of its tries, the last of which counts.
    pub(super) tries: Vec<TaskLog>,
    /// Tries that should be there and cannot be read.
    pub(super) missing: usize,
}

/// What the logs of an attempt do not say themselves.
#[derive(Debug, Clone, Default)]
pub(super) struct Around {
    /// Whether anything was judged in the run.
    pub(super) is_judged: bool,
    /// The right answer, where the dataset says it.
    pub(super) truth: Option<String>,
    /// What figures are broken down by.
    pub(super) group: Option<(String, String)>,
}

/// What the reference writes in the place of an answer that it did not find; how often it tried may stand behind it.
const NO_ANSWER: &str = "No \\boxed{} content found";

/// The row of an attempt; none where it had not ended.
pub(super) fn row(attempt: &Attempt, around: Around) -> Option<Row> {
    let last = attempt.tries.last()?;
    let answer =
        last.text(&["final_boxed_answer"]).filter(|answer| !answer.trim_start().starts_with(NO_ANSWER));
    let mut effort = attempt.tries.iter().map(Effort::of).reduce(Effort::and).unwrap_or_default();
    if attempt.missing > 0 {
        effort = Effort { limit: effort.limit, ..Effort::default() };
    }
    let status = last.status();
    let state = match (&answer, status.as_str()) {
        (Some(_), _) => SampleState::Answered,
        (None, "running" | "pending" | "interrupted") => return None,
        (None, "success" | "completed") => match effort.limit {
            Some(limit) => SampleState::Limit { limit: limit.to_owned() },
            None => SampleState::NoAnswer,
        },
        (None, "") => SampleState::Error { kind: "unknown".to_owned() },
        (None, _) => SampleState::Error { kind: status },
    };
    let judgement = judgement(last, &around, answer.is_some());
    let mut row = Row {
        sample: attempt.sample.clone(),
        state,
        correct: None,
        answer,
        reply: None,
        ground_truth: last.truth().or(around.truth),
        group: around.group,
        judgement: Judged::NotScored,
        stop_reason: None,
        capped: effort.limit.is_some(),
        passes: u32::try_from(attempt.tries.len() + attempt.missing).unwrap_or(u32::MAX),
        turns: effort.turns.unwrap_or(0),
        rollbacks: effort.rollbacks.unwrap_or(0),
        tool_calls: effort.tool_calls.unwrap_or(0),
        usage: effort.tokens.unwrap_or_default(),
        cost_usd: effort.cost_usd,
        wall_ms: effort.wall_ms.unwrap_or(0),
        working_ms: 0,
        unknown: effort.unknown(),
        run_id: None,
        run_dir: None,
        error: last.text(&["error"]).map(|message| ErrorReport {
            kind: "imported".to_owned(),
            message,
            hint: None,
        }),
        ended: last.ended(),
    };
    row.judge(judgement);
    Some(row)
}

/// What the log says of the answer; none where it says nothing that is a verdict.
pub(super) fn verdict(log: &TaskLog) -> Option<Verdict> {
    match log.said().trim().to_uppercase().as_str() {
        "CORRECT" | "PASS_AT_K_SUCCESS" => Some(Verdict::Correct),
        "INCORRECT" => Some(Verdict::Incorrect),
        "NOT_ATTEMPTED" if may_leave_open(&log.judge()) => Some(Verdict::NotAttempted),
        _ => None,
    }
}

/// The reference says `NOT_ATTEMPTED` of every answer for which the judge failed; only the procedures of these can
/// mean it.
fn may_leave_open(judge: &str) -> bool {
    let judge = judge.to_lowercase();
    judge.contains("simpleqa") || judge.contains("gaiacommon")
}

/// The exact tier that a verdict of the reference comes from, by the name that it, or an export of ours, gives it.
fn tier(judge: &str) -> Option<ExactTier> {
    match judge {
        "exact_match" | "equal" => Some(ExactTier::Equal),
        "gaia_scorer" | "gaia" => Some(ExactTier::Gaia),
        _ => None,
    }
}

fn judgement(log: &TaskLog, around: &Around, is_answered: bool) -> Judged {
    let verdict = verdict(log);
    let truth_is_elsewhere = around.truth.is_some() || (around.is_judged && !log.names_truth());
    let is_scored = log.truth().is_some() || truth_is_elsewhere || verdict.is_some();
    let judge = log.judge();
    match (verdict, tier(&judge)) {
        _ if !is_scored => Judged::NotScored,
        _ if !is_answered => Judged::NoAnswer,
        (Some(Verdict::Correct), Some(tier)) => Judged::Exact { tier },
        (Some(verdict), _) => Judged::ByJudge {
            judgement: with_details(verdict, log.get("eval_details")),
            transcript: Transcript {
                judge,
                provider: String::new(),
                model: String::new(),
                prompt_sha256: String::new(),
                replies: vec![log.said()],
                votes: Vec::new(),
                usage: UsageTotals::default(),
                cost_usd: None,
            },
        },
        (None, _) => Judged::Unjudged { reason: unjudged_because(&log.said()), transcript: None },
    }
}

fn unjudged_because(said: &str) -> String {
    if said.is_empty() {
        "the log has no verdict".to_owned()
    } else {
        format!("the log says {said}, which is no verdict of its judge")
    }
}

/// Parts found and expected, as the reference's judge of DeepSearchQA counts them, or a judge of ours.
fn with_details(verdict: Verdict, details: &Value) -> Judgement {
    let count = |name: &str| details[name].as_u64().and_then(|count| usize::try_from(count).ok());
    let counted = || {
        Some(SetScore {
            found: count("num_correct")?,
            expected: count("num_expected")?,
            excess: count("num_excessive")?,
        })
    };
    Judgement {
        parts: serde_json::from_value(details["parts"].clone()).ok().or_else(counted),
        confidence: details["confidence"].as_f64(),
        ..Judgement::from(verdict)
    }
}
