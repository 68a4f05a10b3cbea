//! Two runs over the same tasks, compared task by task: most of the spread between tasks cancels.

use serde::{Deserialize, Serialize};

use super::{Z95, count};

/// How the first differs from the second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Tasks that both have.
    pub tasks: usize,
    /// Mean of the first over these tasks, each task counted once.
    pub first: f64,
    /// Mean of the second.
    pub second: f64,
    /// First less second.
    pub difference: f64,
    /// Standard error of the difference; none with fewer than two tasks.
    pub standard_error: Option<f64>,
    /// Its 95 % interval; none with fewer than two tasks.
    pub interval: Option<(f64, f64)>,
    /// Tasks where the first is better.
    pub wins: usize,
    /// Tasks where it is worse.
    pub losses: usize,
    /// Tasks where both are the same.
    pub ties: usize,
}

/// Compares the mean scores of tasks, pairs of first and second. None without pairs.
#[must_use]
pub fn compare_paired(pairs: &[(f64, f64)]) -> Option<Paired> {
    if pairs.is_empty() {
        return None;
    }
    let n = count(pairs.len());
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let difference = mean(|(first, second)| first - second);
    let standard_error = (pairs.len() > 1).then(|| {
        let squares: f64 = pairs.iter().map(|(first, second)| (first - second - difference).powi(2)).sum();
        (squares / (n - 1.0) / n).sqrt()
    });
    let how_many = |of: fn(f64) -> bool| pairs.iter().filter(|(first, second)| of(first - second)).count();
    Some(Paired {
        tasks: pairs.len(),
        first: mean(|(first, _)| *first),
        second: mean(|(_, second)| *second),
        difference,
        standard_error,
        interval: standard_error.map(|error| (difference - Z95 * error, difference + Z95 * error)),
        wins: how_many(|difference| difference > 0.0),
        losses: how_many(|difference| difference < 0.0),
        ties: how_many(|difference| difference == 0.0),
    })
}
