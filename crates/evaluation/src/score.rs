//! Judging rows that are there already. Decides which of them are judged, how many at a time, and what happens when a
//! judge fails: its own verdict of before stays, that of another judge never does.

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::dataset::Task;
use crate::judge::{Identity, Judge};
use crate::run::{Invocation, Store, StoreError};
use crate::sample::{Judged, Row, SampleState};

/// Which rows are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Those without a verdict, and those whose verdict is another judge's.
    Open,
    /// All that have an answer.
    All,
}

/// What judging again came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scored {
    /// Rows that were to be judged.
    pub wanted: usize,
    /// Rows that were judged.
    pub judged: usize,
    /// Rows for which the judge failed.
    pub failed: usize,
    /// Why it failed the first time.
    pub reason: Option<String>,
    /// Rows that are still to be judged.
    pub unjudged: usize,
}

/// Judges rows of a run again, each kept as soon as it is judged, until all are or `cancel` says so. `tasks` has them by
/// their ids; a row whose task is not there stays as it is. `show` is told how far it has come, once at the beginning.
///
/// # Errors
///
/// A row that cannot be kept.
pub async fn judge_again(
    store: &mut Store,
    tasks: &BTreeMap<String, Task>,
    judge: &Judge,
    (again, max_concurrent): (Again, usize),
    cancel: &CancellationToken,
    show: &(dyn Fn(&Scored) + Sync),
) -> Result<Scored, StoreError> {
    let identity = judge.identity();
    let wanted: Vec<(Row, &Task)> = store
        .rows()
        .filter(|row| is_wanted(row, &identity, again))
        .filter_map(|row| Some((row.clone(), tasks.get(&row.sample.task_id)?)))
        .collect();
    let mut scored = Scored { wanted: wanted.len(), ..Scored::default() };
    show(&scored);
    let mut judged = stream::iter(wanted)
        .map(|(row, task)| async move {
            let judgement = judge.judge_row(task, &row).await;
            (row, judgement)
        })
        .buffer_unordered(max_concurrent.max(1));
    loop {
        let next = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            next = judged.next() => next,
        };
        let Some((mut row, judgement)) = next else { break };
        match &judgement {
            Judged::Unjudged { reason, .. } => {
                scored.failed += 1;
                scored.reason.get_or_insert_with(|| reason.clone());
                // Its own old verdict is worth more than none.
                let keeps = !row.is_unjudged() && !is_of_another(&row, &identity);
                if !keeps {
                    row.judge(judgement);
                    store.put(row)?;
                }
            }
            _ => {
                row.judge(judgement);
                scored.judged += 1;
                store.put(row)?;
            }
        }
        show(&scored);
    }
    store.settle()?;
    scored.unjudged = store.rows().filter(|row| row.is_unjudged()).count();
    Ok(scored)
}

/// Takes the verdicts of another judge off the rows, after they were kept in a file of their own: `judge`, asked for as
/// in `invocation`, is the judge of this run from now on. Before that it has to judge one of the answers; where it
/// cannot, nothing is changed and the reason comes back.
///
/// # Errors
///
/// Rows or a header that cannot be kept.
pub async fn hand_over(
    store: &mut Store,
    tasks: &BTreeMap<String, Task>,
    judge: &Judge,
    invocation: Invocation,
) -> Result<Result<std::path::PathBuf, String>, StoreError> {
    let first = store
        .rows()
        .filter(|row| row.verdict_of().is_some())
        .find_map(|row| Some((row.clone(), tasks.get(&row.sample.task_id)?)));
    if let Some((row, task)) = first
        && let Judged::Unjudged { reason, .. } = judge.judge_row(task, &row).await
    {
        return Ok(Err(reason));
    }
    let kept = store.keep_rows()?;
    let mut rows: Vec<Row> = store.rows().cloned().collect();
    for row in rows.iter_mut().filter(|row| row.verdict_of().is_some()) {
        let reason = "another judge is to judge it".to_owned();
        row.judge(Judged::Unjudged { reason, transcript: None });
    }
    store.rewrite(rows)?;
    store.set_judge(judge.identity(), invocation)?;
    Ok(Ok(kept))
}

fn is_wanted(row: &Row, identity: &Identity, again: Again) -> bool {
    row.is_unjudged()
        || is_of_another(row, identity)
        || (again == Again::All && row.state == SampleState::Answered)
}

fn is_of_another(row: &Row, identity: &Identity) -> bool {
    row.verdict_of().is_some_and(|transcript| !identity.may_have_said(transcript))
}
