//! Runs the samples of a suite, so many at a time, judges each as it ends and keeps its row. Decides nothing about a
//! run or a verdict; a sample counts as done when its row is on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::queue::WorkQueue;
use super::runner::{SampleRun, SampleRunner};
use super::store::{Store, StoreError};
use crate::dataset::Task;
use crate::figures::{Estimate, clustered_mean};
use crate::judge::Judge;
use crate::sample::{Figure, Judged, Row, SampleId, SampleState};

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

/// How far a run has come. Shared with whoever shows it.
#[derive(Debug, Default)]
pub struct Progress {
    state: Mutex<Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    tally: Tally,
    running: BTreeMap<SampleId, Instant>,
}

/// Samples by what became of them, and what they took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Samples that have ended, by state.
    pub states: BTreeMap<String, usize>,
    /// Samples that are correct.
    pub correct: usize,
    /// Samples that were answered and are not correct.
    pub answered_wrong: usize,
    /// Samples that somebody or something has judged.
    pub judged: usize,
    /// Samples that are to be judged again.
    pub unjudged: usize,
    /// Tokens of all samples.
    pub tokens: u64,
    /// Turns of all samples.
    pub turns: u64,
    /// US dollars of the samples whose price is known.
    pub cost_usd: f64,
    /// Samples that used tokens and whose price is not known.
    pub unpriced: usize,
    /// Figures that are not known of every sample, of runs that were taken over.
    #[serde(default)]
    pub unknown: BTreeSet<Figure>,
    /// Scores of every task's epochs, for the accuracy so far.
    pub scores: BTreeMap<String, Vec<f64>>,
    /// The samples that took longest, with their milliseconds, the longest first.
    pub longest: Vec<(u64, SampleId)>,
}

/// How many of the slowest samples are remembered.
const SLOWEST: usize = 5;

impl Tally {
    /// Counts a row.
    pub fn add(&mut self, row: &Row) {
        *self.states.entry(row.state.name().to_owned()).or_insert(0) += 1;
        self.correct += usize::from(row.correct == Some(true));
        self.answered_wrong += usize::from(row.state == SampleState::Answered && row.correct == Some(false));
        self.judged += usize::from(row.correct.is_some());
        self.unjudged += usize::from(row.is_unjudged());
        self.tokens += row.usage.input + row.usage.output;
        self.turns += u64::from(row.turns);
        self.cost_usd += row.cost_usd.unwrap_or_default();
        let used_tokens = row.usage.input + row.usage.output > 0 || row.unknown.contains(&Figure::Tokens);
        self.unpriced += usize::from(row.cost_usd.is_none() && used_tokens);
        self.unknown.extend(&row.unknown);
        if let Some(correct) = row.correct {
            let scores = self.scores.entry(row.sample.task_id.clone()).or_default();
            scores.push(f64::from(u8::from(correct)));
        }
        self.longest.push((row.wall_ms, row.sample.clone()));
        self.longest.sort_by(|a, b| b.cmp(a));
        self.longest.truncate(SLOWEST);
    }

    /// Accuracy over the samples that have been scored so far.
    #[must_use]
    pub fn accuracy(&self) -> Option<Estimate> {
        clustered_mean(&self.scores.values().collect::<Vec<_>>())
    }

    /// US dollars; none where the price of a sample is unknown.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        (self.unpriced == 0).then_some(self.cost_usd)
    }

    /// Samples that have ended.
    #[must_use]
    pub fn done(&self) -> usize {
        self.states.values().sum()
    }
}

impl Progress {
    /// Progress of a run that has some rows already.
    #[must_use]
    pub fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let progress = Self::default();
        rows.for_each(|row| progress.locked().tally.add(row));
        progress
    }

    /// The counts so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.locked().tally.clone()
    }

    /// Samples under way and when each began, the oldest first.
    #[must_use]
    pub fn running(&self) -> Vec<(SampleId, Instant)> {
        let mut running: Vec<(SampleId, Instant)> =
            self.locked().running.iter().map(|(sample, began)| (sample.clone(), *began)).collect();
        running.sort_by_key(|(_, began)| *began);
        running
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
                schedule.progress.locked().tally.add(&row);
                kept = store.add(*row);
                if kept.is_err() {
                    schedule.cancel.cancel();
                }
            }
            schedule.progress.locked().running.remove(&sample);
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
            self.progress.locked().running.insert(sample.clone(), Instant::now());
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
