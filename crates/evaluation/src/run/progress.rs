//! How far a run has come, for whoever shows it while it goes on: which samples are under way, and what became of the
//! others. Figures of a finished run are the report's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::figures::{Estimate, clustered_mean};
use crate::sample::{Figure, Row, SampleId, SampleState};

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
#[derive(Debug, Clone, Default, PartialEq)]
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

    /// Counts a sample that has ended.
    pub(super) fn ended(&self, row: &Row) {
        self.locked().tally.add(row);
    }

    /// Shows a sample as under way.
    pub(super) fn begun(&self, sample: &SampleId) {
        self.locked().running.insert(sample.clone(), Instant::now());
    }

    /// Shows a sample as under way no more.
    pub(super) fn left(&self, sample: &SampleId) {
        self.locked().running.remove(sample);
    }

    fn locked(&self) -> MutexGuard<'_, Shown> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
