//! Judging rows that are there already. Decides which of them are judged, how many at a time, and that nothing is lost
//! when a judge fails: a verdict is replaced only by another verdict.

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt as _};

use crate::dataset::Task;
use crate::judge::Judge;
use crate::sample::{Judged, Row, SampleState};

/// What judging again came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scored {
    /// Rows that were judged.
    pub judged: usize,
    /// Rows whose verdict is another one now.
    pub changed: usize,
    /// Rows that are still to be judged.
    pub unjudged: usize,
}

/// Judges those rows again that are unjudged, or all of them. `tasks` has them by their ids; a row whose task is not
/// there stays as it is.
pub async fn judge_again(
    rows: Vec<Row>,
    tasks: &BTreeMap<String, Task>,
    judge: &Judge,
    all: bool,
    max_concurrent: usize,
) -> (Vec<Row>, Scored) {
    let judged: Vec<(Row, bool, bool)> = stream::iter(rows)
        .map(|row| one(row, tasks, judge, all))
        .buffered(max_concurrent.max(1))
        .collect()
        .await;
    let mut scored = Scored::default();
    let rows = judged
        .into_iter()
        .map(|(row, was_judged, changed)| {
            scored.judged += usize::from(was_judged);
            scored.changed += usize::from(changed);
            scored.unjudged += usize::from(row.is_unjudged());
            row
        })
        .collect();
    (rows, scored)
}

/// The row, whether it was judged, and whether its verdict is another one now.
async fn one(mut row: Row, tasks: &BTreeMap<String, Task>, judge: &Judge, all: bool) -> (Row, bool, bool) {
    let task = tasks.get(&row.sample.task_id);
    let wanted = row.is_unjudged() || (all && row.state == SampleState::Answered);
    let Some(task) = task.filter(|_| wanted) else { return (row, false, false) };
    let before = row.correct;
    let judgement = judge.judge(task, row.answer.as_deref()).await;
    // An old verdict is worth more than a judge that failed.
    if matches!(judgement, Judged::Unjudged { .. }) && before.is_some() {
        return (row, false, false);
    }
    let is_verdict = !matches!(judgement, Judged::Unjudged { .. });
    row.judge(judgement);
    let changed = is_verdict && row.correct != before;
    (row, is_verdict, changed)
}
