//! Runs the samples of a suite, so many at a time, judges each as it ends and keeps its row. Decides nothing about a
//! run or a verdict; a sample counts as done when its row is on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::queue::WorkQueue;
use super::runner::{SampleRun, SampleRunner};
use super::store::{Store, StoreError};
use crate::dataset::Task;
use crate::judge::Judge;
use crate::sample::{Judged, Row, SampleId, SampleState};

/// What is run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The tasks by their ids.
    pub tasks: BTreeMap<String, Task>,
    /// Samples at a time.
    pub max_concurrent: usize,
    /// Whether a task ends with its first right epoch.
    pub stop_on_pass: bool,
}

/// Everything that samples are run with.
pub struct Schedule {
    /// What is run.
    pub plan: Plan,
    /// Who says whether an answer is right.
    pub judge: Arc<Judge>,
    /// What runs a sample.
    pub runner: Arc<dyn SampleRunner>,
    /// Where samples wait.
    pub queue: Arc<dyn WorkQueue>,
    /// Told of everything that begins and ends.
    pub progress: Arc<Progress>,
    /// Ends the run when cancelled; samples under way are gone on with next time.
    pub cancel: CancellationToken,
}

/// A row, or nothing where the sample was interrupted.
type Ended = (SampleId, Option<Box<Row>>);

impl Schedule {
    /// Runs until the queue is empty or the run is cancelled. The store has the rows of all samples that ended.
    ///
    /// # Errors
    ///
    /// A row that cannot be kept. Samples under way are stopped and can be gone on with.
    pub async fn run(self, store: &mut Store) -> Result<(), StoreError> {
        let schedule = Arc::new(self);
        let (sender, mut ended) = mpsc::channel::<Ended>(1);
        let mut workers = JoinSet::new();
        for _ in 0..schedule.plan.max_concurrent.max(1) {
            workers.spawn(Arc::clone(&schedule).work(sender.clone()));
        }
        drop(sender);
        let mut kept = Ok(());
        while let Some((sample, row)) = ended.recv().await {
            let mut settles = false;
            if let Some(row) = row
                && kept.is_ok()
            {
                settles = schedule.plan.stop_on_pass && row.correct == Some(true);
                schedule.progress.ended(&row);
                kept = store.add(*row);
                if kept.is_err() {
                    schedule.cancel.cancel();
                }
            }
            schedule.progress.left(&sample);
            schedule.queue.done(&sample, settles).await;
        }
        while workers.join_next().await.is_some() {}
        kept
    }

    async fn work(self: Arc<Self>, ended: mpsc::Sender<Ended>) {
        loop {
            let sample = tokio::select! {
                sample = self.queue.take() => sample,
                () = self.cancel.cancelled() => None,
            };
            let Some(sample) = sample.filter(|_| !self.cancel.is_cancelled()) else { return };
            self.progress.begun(&sample);
            let row = match self.plan.tasks.get(&sample.task_id) {
                Some(task) => self.sample(&sample, task).await.map(Box::new),
                None => None,
            };
            if ended.send((sample, row)).await.is_err() {
                return;
            }
        }
    }

    async fn sample(&self, sample: &SampleId, task: &Task) -> Option<Row> {
        let run = self.runner.run(sample, task, &self.cancel).await?;
        let reply = run.summary.final_text.clone().filter(|_| self.judge.reads_reply());
        let mut row = Row { reply, ..row_of(sample, task, run) };
        let judgement = match row.state {
            SampleState::Answered => self.judged(task, &row).await,
            _ if task.ground_truth.is_none() => Judged::NotScored,
            _ => self.judge.judge(task, None).await,
        };
        row.judge(judgement);
        row.ended = crate::now();
        Some(row)
    }

    /// Who ends the run does not wait for a slow judge.
    async fn judged(&self, task: &Task, row: &Row) -> Judged {
        tokio::select! {
            judged = self.judge.judge_row(task, row) => judged,
            () = self.cancel.cancelled() => {
                Judged::Unjudged { reason: "the run was interrupted".to_owned(), transcript: None }
            }
        }
    }
}

/// The row of a finished run, not judged yet.
fn row_of(sample: &SampleId, task: &Task, run: SampleRun) -> Row {
    let SampleRun { state, summary, run_id, run_dir } = run;
    Row {
        sample: sample.clone(),
        state,
        correct: None,
        answer: summary.answer,
        reply: None,
        ground_truth: task.ground_truth.clone(),
        group: task.group(),
        judgement: Judged::NotScored,
        stop_reason: summary.stop_reason,
        capped: summary.capped,
        passes: u32::try_from(summary.passes.len()).unwrap_or(u32::MAX),
        turns: summary.turns,
        rollbacks: summary.rollbacks.total,
        tool_calls: summary.tool_calls.total,
        usage: summary.usage,
        cost_usd: summary.cost_usd,
        wall_ms: summary.wall_ms,
        working_ms: summary.wall_ms.saturating_sub(summary.limiter_ms),
        unknown: Vec::new(),
        run_id,
        run_dir,
        error: summary.error,
        ended: String::new(),
    }
}
