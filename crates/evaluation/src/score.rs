//! Judging rows that are there already. Decides which of them are judged, how many at a time, and what a judge that fails
//! leaves behind: its own verdict of before, never that of another judge.

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt as _};

use crate::dataset::Task;
use crate::judge::{Identity, Judge};
use crate::sample::{Judged, Row, SampleState};

/// Which rows are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Those without a verdict, and those whose verdict is another judge's.
    Open,
    /// All that have an answer; where the judge fails, its old verdict stays.
    All,
    /// All that have an answer; where the judge fails, they are unjudged: the old verdicts are another judge's.
    Replacing,
}

/// What judging again came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scored {
    /// Rows that were judged.
    pub judged: usize,
    /// Rows whose verdict is another one now.
    pub changed: usize,
    /// Rows for which the judge failed.
    pub failed: usize,
    /// Why it failed the first time.
    pub reason: Option<String>,
    /// Rows that are still to be judged.
    pub unjudged: usize,
}

/// What became of one row.
enum Outcome {
    /// It was not to be judged.
    Left,
    /// It was judged; whether its verdict is another one now.
    Judged(bool),
    /// The judge failed.
    Failed(String),
}

/// Judges rows again. `tasks` has them by their ids; a row whose task is not there stays as it is.
pub async fn judge_again(
    rows: Vec<Row>,
    tasks: &BTreeMap<String, Task>,
    judge: &Judge,
    again: Again,
    max_concurrent: usize,
) -> (Vec<Row>, Scored) {
    let identity = judge.identity();
    let judged: Vec<(Row, Outcome)> = stream::iter(rows)
        .map(|row| one(row, tasks, (judge, &identity), again))
        .buffered(max_concurrent.max(1))
        .collect()
        .await;
    let mut scored = Scored::default();
    let rows = judged
        .into_iter()
        .map(|(row, outcome)| {
            match outcome {
                Outcome::Left => {}
                Outcome::Judged(changed) => {
                    scored.judged += 1;
                    scored.changed += usize::from(changed);
                }
                Outcome::Failed(reason) => {
                    scored.failed += 1;
                    scored.reason.get_or_insert(reason);
                }
            }
            scored.unjudged += usize::from(row.is_unjudged());
            row
        })
        .collect();
    (rows, scored)
}

async fn one(
    mut row: Row,
    tasks: &BTreeMap<String, Task>,
    (judge, identity): (&Judge, &Identity),
    again: Again,
) -> (Row, Outcome) {
    let others = row.verdict_of().is_some_and(|transcript| !identity.may_have_said(transcript));
    let wanted = row.is_unjudged() || others || (again != Again::Open && row.state == SampleState::Answered);
    let Some(task) = tasks.get(&row.sample.task_id).filter(|_| wanted) else { return (row, Outcome::Left) };
    let before = row.correct;
    let judgement = judge.judge(task, row.answer.as_deref()).await;
    if let Judged::Unjudged { reason, .. } = &judgement {
        let reason = reason.clone();
        // Its own old verdict is worth more than none.
        if row.is_unjudged() || others || again == Again::Replacing {
            row.judge(judgement);
        }
        return (row, Outcome::Failed(reason));
    }
    row.judge(judgement);
    let changed = row.correct != before;
    (row, Outcome::Judged(changed))
}
