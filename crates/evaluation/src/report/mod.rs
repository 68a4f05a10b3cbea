//! What a run over a suite came to. Decides which figures there are and over which samples each is taken; how they
//! look is decided by the formats.

mod html;
mod markdown;
mod sections;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::figures::{
    CALIBRATION_BIN, Estimate, PassAtK, SetFigures, SetScore, calibration_error, clustered_mean,
    pass_figures, set_figures, spread_over_runs,
};
use crate::run::Header;
use crate::sample::{Figure, Judged, Row, SampleState};
use crate::verdict::Verdict;

pub use html::to_html;
pub use markdown::to_markdown;
pub use table::{aligned_columns, to_table};

/// Version of the JSON report's shape.
pub const REPORT_SCHEMA: u32 = 1;

/// The figures of one run, as `report --format json` prints them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_SCHEMA`].
    pub schema: u32,
    /// What the run was made of.
    pub header: Header,
    /// Samples by what became of them; `pending` have no row yet.
    pub states: BTreeMap<String, usize>,
    /// Samples that a limit ended, by limit.
    #[serde(default)]
    pub limits: BTreeMap<String, usize>,
    /// Samples that failed, by kind of error.
    #[serde(default)]
    pub errors: BTreeMap<String, usize>,
    /// Answers by what was said of them: `correct`, `incorrect`, `not_attempted`, `unjudged`, `without_truth`.
    #[serde(default)]
    pub verdicts: BTreeMap<String, usize>,
    /// Samples that were selected: tasks times epochs, fewer where tasks ended with their first right epoch.
    pub selected: usize,
    /// Samples without ground truth; in no denominator.
    pub not_scored: usize,
    /// Samples that are to be judged again.
    pub unjudged: usize,
    /// Whether `unjudged` samples were left out of the denominators.
    pub unjudged_left_out: bool,
    /// Whether every selected sample has ended.
    pub complete: bool,
    /// Correct samples by who found them correct: `equal`, `gaia`, `judge`.
    pub correct_by: BTreeMap<String, usize>,
    /// Correct over all scored samples that have ended; none while samples are unjudged, and for runs that stop at a
    /// task's first right epoch.
    pub accuracy: Option<Estimate>,
    /// Accuracy of each epoch that has ended for every task.
    pub by_epoch: Vec<f64>,
    /// Standard deviation of those.
    pub spread_over_epochs: Option<f64>,
    /// Unbiased pass@k and pass^k.
    pub pass: Vec<PassAtK>,
    /// Tasks right in any of at most so many epochs, for runs that stop at a task's first right one.
    pub any_of: Option<AnyOf>,
    /// Accuracy by level, category or type of answer.
    pub groups: Vec<Group>,
    /// Accuracy of samples that needed no further pass, and of those that did.
    pub restarts: Vec<Group>,
    /// What a sample took.
    pub effort: Effort,
    /// Distance between stated confidence and accuracy, where judges extract confidence.
    pub calibration_error: Option<f64>,
    /// Samples that it is taken over.
    #[serde(default)]
    pub calibration_samples: usize,
    /// Figures of answers that are sets.
    pub sets: Option<SetFigures>,
}

/// Tasks right in any of several epochs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AnyOf {
    /// The most epochs that a task had.
    pub k: u32,
    /// Share of tasks, each counted once.
    pub share: Estimate,
}

/// Accuracy of some of the samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What tells the groups apart, such as `level`.
    pub by: String,
    /// This group's value.
    pub value: String,
    /// Correct samples.
    pub correct: usize,
    /// Accuracy with its error.
    pub accuracy: Estimate,
}

/// Means over samples that have ended, and sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Turns a sample; none where a run was taken over whose logs do not say. The mean is over samples whose turns are
    /// known.
    pub turns: Option<f64>,
    /// Tool calls a sample; none as for turns.
    pub tool_calls: Option<f64>,
    /// Dropped replies a sample; none as for turns.
    pub rollbacks: Option<f64>,
    /// Tokens a sample; none as for turns.
    pub tokens: Option<f64>,
    /// Seconds a sample; none as for turns.
    pub wall_seconds: Option<f64>,
    /// Seconds a sample without waiting for limiters; none as for turns.
    pub working_seconds: Option<f64>,
    /// Share of samples with more than one pass.
    pub restart_rate: f64,
    /// Share of samples without an answer, whatever the reason.
    pub no_answer_rate: f64,
    /// Prompt tokens of all samples; none as for turns.
    pub input_tokens: Option<u64>,
    /// Generated tokens of all samples; none as for turns.
    pub output_tokens: Option<u64>,
    /// US dollars of all runs; none where a price is unknown.
    pub cost_usd: Option<f64>,
    /// US dollars of judging; none where a price is unknown.
    pub judge_cost_usd: Option<f64>,
}

impl Report {
    /// The report of a run. `allow_unjudged` leaves samples that nobody has judged out of every denominator; without
    /// it there is no accuracy while there are such samples.
    #[must_use]
    pub fn new(header: Header, rows: &[Row], allow_unjudged: bool) -> Self {
        let mut states: BTreeMap<String, usize> = BTreeMap::new();
        for row in rows {
            *states.entry(row.state.name().to_owned()).or_insert(0) += 1;
        }
        let all = header.task_ids.len() * usize::try_from(header.epochs).unwrap_or(usize::MAX);
        let stops = header.stop_on_pass.is_some();
        let settled = if stops { skipped(&header, rows) } else { 0 };
        let selected = all.saturating_sub(settled);
        let pending = selected.saturating_sub(rows.len());
        if pending > 0 {
            states.insert("pending".to_owned(), pending);
        }
        let unjudged = rows.iter().filter(|row| row.is_unjudged() && row.correct.is_none()).count();
        let scored: Vec<&Row> = rows.iter().filter(|row| row.correct.is_some()).collect();
        let is_final = unjudged == 0 || allow_unjudged;
        let by_task = tasks_of(&scored);
        let shown: &[&Row] = if is_final { &scored } else { &[] };
        let unbiased: &[&Row] = if stops { &[] } else { shown };
        let counts: Vec<(usize, usize)> = tasks_of(unbiased)
            .values()
            .map(|scores| (scores.len(), scores.iter().filter(|score| **score > 0.5).count()))
            .collect();
        let by_epoch = epochs_of(unbiased);
        let confidences = confidences(&header, unbiased);
        Self {
            schema: REPORT_SCHEMA,
            states,
            limits: counted(rows, |row| match &row.state {
                SampleState::Limit { limit } => Some(limit.clone()),
                _ => None,
            }),
            errors: counted(rows, |row| match &row.state {
                SampleState::Error { kind } => Some(kind.clone()),
                _ => None,
            }),
            verdicts: counted(rows, |row| verdict_of(row).map(str::to_owned)),
            selected,
            not_scored: rows.iter().filter(|row| matches!(row.judgement, Judged::NotScored)).count(),
            unjudged,
            unjudged_left_out: allow_unjudged && unjudged > 0,
            complete: pending == 0,
            correct_by: correct_by(rows),
            accuracy: estimate(unbiased),
            spread_over_epochs: spread_over_runs(&by_epoch),
            by_epoch,
            pass: pass_figures(&counts),
            any_of: header.stop_on_pass.filter(|_| is_final).and_then(|k| any_of(k, &by_task)),
            groups: groups(unbiased, |row| row.group.clone()),
            restarts: groups(unbiased, |row| {
                let value = if row.passes > 1 { "with restarts" } else { "without restarts" };
                Some(("context".to_owned(), value.to_owned()))
            }),
            effort: effort(rows),
            calibration_error: calibration_error(&confidences, CALIBRATION_BIN),
            calibration_samples: confidences.len(),
            sets: sets(unbiased),
            header,
        }
    }
}

/// Epochs that are not needed because their task was right in another one.
fn skipped(header: &Header, rows: &[Row]) -> usize {
    let mut tasks: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for row in rows {
        let (ended, is_right) = tasks.entry(&row.sample.task_id).or_default();
        *ended += 1;
        *is_right |= row.correct == Some(true);
    }
    let epochs = usize::try_from(header.epochs).unwrap_or(usize::MAX);
    tasks.values().filter(|(_, is_right)| *is_right).map(|(ended, _)| epochs.saturating_sub(*ended)).sum()
}

fn counted(rows: &[Row], name: impl Fn(&Row) -> Option<String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in rows.iter().filter_map(name) {
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

/// What was said of an answer; none where there is no answer to say something of.
fn verdict_of(row: &Row) -> Option<&'static str> {
    if row.state != SampleState::Answered {
        return None;
    }
    Some(match &row.judgement {
        Judged::Exact { .. } => "correct",
        Judged::ByJudge { judgement, .. } => match judgement.verdict {
            Verdict::Correct => "correct",
            Verdict::Incorrect => "incorrect",
            Verdict::NotAttempted => "not_attempted",
        },
        Judged::Unjudged { .. } => "unjudged",
        Judged::NotScored => "without_truth",
        Judged::NoAnswer => return None,
    })
}

fn score(row: &Row) -> f64 {
    f64::from(u8::from(row.correct == Some(true)))
}

fn tasks_of<'a>(rows: &[&'a Row]) -> BTreeMap<&'a str, Vec<f64>> {
    let mut tasks: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for row in rows {
        tasks.entry(&row.sample.task_id).or_default().push(score(row));
    }
    tasks
}

fn estimate(rows: &[&Row]) -> Option<Estimate> {
    clustered_mean(&tasks_of(rows).into_values().collect::<Vec<_>>())
}

/// Accuracy of each epoch that has ended for every scored task.
fn epochs_of(rows: &[&Row]) -> Vec<f64> {
    let tasks = tasks_of(rows).len();
    // Runs that were taken over keep their numbers, which may have gaps.
    let epochs: BTreeSet<u32> = rows.iter().map(|row| row.sample.epoch).collect();
    epochs
        .into_iter()
        .filter_map(|epoch| {
            let scores: Vec<f64> =
                rows.iter().filter(|row| row.sample.epoch == epoch).map(|row| score(row)).collect();
            (tasks > 0 && scores.len() == tasks).then(|| mean(scores.into_iter()))
        })
        .collect()
}

fn correct_by(rows: &[Row]) -> BTreeMap<String, usize> {
    let mut by = BTreeMap::new();
    for row in rows.iter().filter(|row| row.correct == Some(true)) {
        let name = match &row.judgement {
            Judged::Exact { tier } => {
                serde_json::to_value(tier).ok().and_then(|name| Some(name.as_str()?.to_owned()))
            }
            Judged::ByJudge { .. } => Some("judge".to_owned()),
            Judged::Unjudged { .. } | Judged::NoAnswer | Judged::NotScored => None,
        };
        if let Some(name) = name {
            *by.entry(name).or_insert(0) += 1;
        }
    }
    by
}

fn any_of(k: u32, tasks: &BTreeMap<&str, Vec<f64>>) -> Option<AnyOf> {
    let any: Vec<[f64; 1]> =
        tasks.values().map(|scores| [scores.iter().copied().fold(0.0, f64::max)]).collect();
    Some(AnyOf { k, share: clustered_mean(&any)? })
}

fn groups(rows: &[&Row], of: impl Fn(&Row) -> Option<(String, String)>) -> Vec<Group> {
    let mut members: BTreeMap<(String, String), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        if let Some(group) = of(row) {
            members.entry(group).or_default().push(row);
        }
    }
    let mut members: Vec<_> = members.into_iter().collect();
    // Numbers stand in their order, before words.
    members.sort_by_key(|((by, value), _)| (by.clone(), value.parse::<u64>().unwrap_or(u64::MAX)));
    members
        .into_iter()
        .filter_map(|((by, value), rows)| {
            Some(Group {
                by,
                value,
                correct: rows.iter().filter(|row| row.correct == Some(true)).count(),
                accuracy: estimate(&rows)?,
            })
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts and milliseconds")]
fn effort(rows: &[Row]) -> Effort {
    let share = |of: &dyn Fn(&Row) -> bool| mean(rows.iter().map(|row| f64::from(u8::from(of(row)))));
    let known = |figure: Figure, of: &dyn Fn(&Row) -> f64| {
        let told: Vec<f64> = rows.iter().filter(|row| !row.unknown.contains(&figure)).map(of).collect();
        (rows.is_empty() || !told.is_empty()).then(|| mean(told.into_iter()))
    };
    let all_tokens = |of: &dyn Fn(&Row) -> u64| {
        let is_known = rows.iter().all(|row| !row.unknown.contains(&Figure::Tokens));
        is_known.then(|| rows.iter().map(of).sum())
    };
    Effort {
        turns: known(Figure::Turns, &|row| f64::from(row.turns)),
        tool_calls: known(Figure::ToolCalls, &|row| f64::from(row.tool_calls)),
        rollbacks: known(Figure::Rollbacks, &|row| f64::from(row.rollbacks)),
        tokens: known(Figure::Tokens, &|row| (row.usage.input + row.usage.output) as f64),
        wall_seconds: known(Figure::WallTime, &|row| row.wall_ms as f64 / 1000.0),
        working_seconds: known(Figure::WorkingTime, &|row| row.working_ms as f64 / 1000.0),
        restart_rate: share(&|row| row.passes > 1),
        no_answer_rate: share(&|row| row.answer.is_none()),
        input_tokens: all_tokens(&|row| row.usage.input),
        output_tokens: all_tokens(&|row| row.usage.output),
        cost_usd: cost_of(rows),
        judge_cost_usd: rows.iter().map(judge_cost).sum(),
    }
}

/// US dollars of all runs; none where a price is unknown. A run that failed before the model said anything cost
/// nothing, where the prices are known.
fn cost_of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<f64> {
    let (mut sum, mut priced, mut unpriced, mut any) = (0.0, false, false, false);
    for row in rows {
        any = true;
        match row.cost_usd {
            Some(cost) => {
                sum += cost;
                priced = true;
            }
            None => {
                unpriced |= row.unknown.contains(&Figure::Tokens) || row.usage.input + row.usage.output > 0
            }
        }
    }
    (!any || (priced && !unpriced)).then_some(sum)
}

fn judge_cost(row: &Row) -> Option<f64> {
    match &row.judgement {
        Judged::ByJudge { transcript, .. } | Judged::Unjudged { transcript: Some(transcript), .. } => {
            transcript.cost_usd
        }
        _ => Some(0.0),
    }
}

/// Stated confidence and whether it was right, where the judge extracts confidence. Of answers that equal the right one,
/// which no judge sees, the reply is read; one that states none counts as the judge counts it: as certain.
fn confidences(header: &Header, rows: &[&Row]) -> Vec<(f64, bool)> {
    let of_judge = |row: &&Row| match &row.judgement {
        Judged::ByJudge { judgement, .. } => Some((judgement.confidence?, row.correct == Some(true))),
        Judged::Exact { .. } if header.judge.judge == CONFIDENT_JUDGE => {
            let stated = row.reply.as_deref().and_then(crate::verdict::stated_confidence);
            Some((stated.unwrap_or(1.0), row.correct == Some(true)))
        }
        _ => None,
    };
    let all: Vec<(f64, bool)> = rows.iter().filter_map(of_judge).collect();
    let states_any = |row: &&Row| matches!(&row.judgement, Judged::ByJudge { judgement, .. } if judgement.confidence.is_some());
    // Where no judge was asked nothing is known of confidence.
    if rows.iter().any(states_any) { all } else { Vec::new() }
}

/// The procedure whose judge extracts confidence.
const CONFIDENT_JUDGE: &str = "hle";

/// Where any sample was judged part by part, all are counted; those without parts have nothing right.
fn sets(rows: &[&Row]) -> Option<SetFigures> {
    let scores: Vec<Option<SetScore>> = rows
        .iter()
        .map(|row| match &row.judgement {
            Judged::ByJudge { judgement, .. } => judgement.parts,
            _ => None,
        })
        .collect();
    scores.iter().any(Option::is_some).then(|| set_figures(&scores)).flatten()
}

#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len();
    if n == 0 { 0.0 } else { values.sum::<f64>() / n as f64 }
}
