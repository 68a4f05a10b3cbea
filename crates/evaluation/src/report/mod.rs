//! What a run over a suite came to. Decides which figures there are and over which samples each is taken; how they
//! look is decided by the formats.

mod html;
mod markdown;
mod sections;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figures::{
    CALIBRATION_BIN, Estimate, PassAtK, SetFigures, SetScore, calibration_error, clustered_mean,
    pass_figures, set_figures, spread_over_runs,
};
use crate::run::Header;
use crate::sample::{Judged, Row, SampleState};

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
    /// Turns a sample.
    pub turns: f64,
    /// Tool calls a sample.
    pub tool_calls: f64,
    /// Dropped replies a sample.
    pub rollbacks: f64,
    /// Tokens a sample.
    pub tokens: f64,
    /// Seconds a sample.
    pub wall_seconds: f64,
    /// Seconds a sample without waiting for limiters.
    pub working_seconds: f64,
    /// Share of samples with more than one pass.
    pub restart_rate: f64,
    /// Share of samples that ended well without an answer.
    pub no_answer_rate: f64,
    /// Prompt tokens of all samples.
    pub input_tokens: u64,
    /// Generated tokens of all samples.
    pub output_tokens: u64,
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
        let by_epoch = epochs_of(&header, unbiased);
        Self {
            schema: REPORT_SCHEMA,
            states,
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
            calibration_error: calibration(unbiased),
            sets: sets(unbiased),
            header,
        }
    }
}

/// Epochs that were not needed because their task had been right before.
fn skipped(header: &Header, rows: &[Row]) -> usize {
    let last: BTreeMap<&str, u32> = rows
        .iter()
        .filter(|row| row.correct == Some(true))
        .map(|row| (row.sample.task_id.as_str(), row.sample.epoch))
        .collect();
    last.values().map(|epoch| usize::try_from(header.epochs.saturating_sub(*epoch)).unwrap_or(0)).sum()
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
fn epochs_of(header: &Header, rows: &[&Row]) -> Vec<f64> {
    let tasks = tasks_of(rows).len();
    (1..=header.epochs)
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
    let over = |of: &dyn Fn(&Row) -> f64| mean(rows.iter().map(of));
    let share = |of: &dyn Fn(&Row) -> bool| mean(rows.iter().map(|row| f64::from(u8::from(of(row)))));
    Effort {
        turns: over(&|row| f64::from(row.turns)),
        tool_calls: over(&|row| f64::from(row.tool_calls)),
        rollbacks: over(&|row| f64::from(row.rollbacks)),
        tokens: over(&|row| (row.usage.input + row.usage.output) as f64),
        wall_seconds: over(&|row| row.wall_ms as f64 / 1000.0),
        working_seconds: over(&|row| row.working_ms as f64 / 1000.0),
        restart_rate: share(&|row| row.passes > 1),
        no_answer_rate: share(&|row| row.state == SampleState::NoAnswer),
        input_tokens: rows.iter().map(|row| row.usage.input).sum(),
        output_tokens: rows.iter().map(|row| row.usage.output).sum(),
        cost_usd: rows.iter().map(|row| row.cost_usd).sum(),
        judge_cost_usd: rows.iter().map(judge_cost).sum(),
    }
}

fn judge_cost(row: &Row) -> Option<f64> {
    match &row.judgement {
        Judged::ByJudge { transcript, .. } | Judged::Unjudged { transcript: Some(transcript), .. } => {
            transcript.cost_usd
        }
        _ => Some(0.0),
    }
}

fn calibration(rows: &[&Row]) -> Option<f64> {
    let samples: Vec<(f64, bool)> = rows
        .iter()
        .filter_map(|row| match &row.judgement {
            Judged::ByJudge { judgement, .. } => Some((judgement.confidence?, row.correct == Some(true))),
            _ => None,
        })
        .collect();
    calibration_error(&samples, CALIBRATION_BIN)
}

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
