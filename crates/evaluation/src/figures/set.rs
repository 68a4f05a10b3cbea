//! Answers that are sets: how much of what was expected is there, and what is in excess.

use serde::{Deserialize, Serialize};

use super::count;

/// What a judge found in one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetScore {
    /// Expected parts that are there.
    pub found: usize,
    /// Expected parts.
    pub expected: usize,
    /// Parts that are not expected.
    pub excess: usize,
}

impl SetScore {
    /// Everything expected and nothing else.
    #[must_use]
    pub const fn fully_correct(&self) -> bool {
        self.expected > 0 && self.found == self.expected && self.excess == 0
    }

    /// Nothing of what was expected.
    #[must_use]
    pub const fn fully_incorrect(&self) -> bool {
        self.found == 0
    }

    /// Everything expected and something else too.
    #[must_use]
    pub const fn correct_with_excess(&self) -> bool {
        self.expected > 0 && self.found == self.expected && self.excess > 0
    }

    /// Harmonic mean of precision and recall: `2·found / (expected + found + excess)`.
    #[must_use]
    pub fn f1(&self) -> f64 {
        let all = self.expected + self.found + self.excess;
        if all == 0 { 0.0 } else { 2.0 * count(self.found) / count(all) }
    }
}

/// Shares over all samples; one that has no score (no answer, an error) is fully incorrect with an F1 of 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SetFigures {
    /// Share of samples with everything expected and nothing else.
    pub fully_correct: f64,
    /// Share with nothing of what was expected.
    pub fully_incorrect: f64,
    /// Share with everything expected and something else too.
    pub correct_with_excess: f64,
    /// Mean F1.
    pub f1: f64,
    /// Samples.
    pub samples: usize,
}

/// The figures over all samples; none without samples.
#[must_use]
pub fn set_figures(samples: &[Option<SetScore>]) -> Option<SetFigures> {
    if samples.is_empty() {
        return None;
    }
    let n = count(samples.len());
    let share = |of: fn(&SetScore) -> bool, otherwise: bool| {
        count(samples.iter().filter(|score| score.as_ref().map_or(otherwise, of)).count()) / n
    };
    Some(SetFigures {
        fully_correct: share(SetScore::fully_correct, false),
        fully_incorrect: share(SetScore::fully_incorrect, true),
        correct_with_excess: share(SetScore::correct_with_excess, false),
        f1: samples.iter().flatten().map(SetScore::f1).sum::<f64>() / n,
        samples: samples.len(),
    })
}
