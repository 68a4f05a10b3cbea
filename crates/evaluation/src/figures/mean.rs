//! Means of scores with their errors. Epochs of one task are no independent samples: the error is clustered by task.

use serde::{Deserialize, Serialize};

use super::{Z95, count};

/// A mean with its error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean over all samples.
    pub mean: f64,
    /// Its standard error, clustered by task; none with fewer than two tasks.
    pub standard_error: Option<f64>,
    /// The 95 % interval, inside 0 and 1; none with fewer than two tasks.
    pub interval: Option<(f64, f64)>,
    /// How the interval was found.
    pub method: IntervalMethod,
    /// Samples.
    pub samples: usize,
    /// Tasks.
    pub tasks: usize,
}

/// How an interval was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// Mean ± 1.96 standard errors.
    Normal,
    /// Wilson's score interval over the tasks, where every sample has the same score and the error would be 0.
    Wilson,
    /// Fewer than two tasks: none.
    None,
}

/// The mean of scores between 0 and 1, a slice a task.
///
/// With `s` the scores, `m` their mean, `n` samples in `G` clusters `c` (tasks), the error is
/// `sqrt(G / (G − 1) · Σ_c (Σ_{i∈c} (s_i − m))²) / n`: the cluster-robust variance of Liang and Zeger (1986) with the
/// usual factor for few clusters, as in Miller, "Adding Error Bars to Evals" (2024). With one sample a task it is the
/// ordinary standard error. None without samples.
#[must_use]
pub fn clustered_mean<S: AsRef<[f64]>>(tasks: &[S]) -> Option<Estimate> {
    let clusters: Vec<&[f64]> = tasks.iter().map(AsRef::as_ref).filter(|task| !task.is_empty()).collect();
    let samples: usize = clusters.iter().map(|task| task.len()).sum();
    if samples == 0 {
        return None;
    }
    let n = count(samples);
    let mean = clusters.iter().flat_map(|task| task.iter()).sum::<f64>() / n;
    let groups = count(clusters.len());
    let estimate = Estimate {
        mean,
        standard_error: None,
        interval: None,
        method: IntervalMethod::None,
        samples,
        tasks: clusters.len(),
    };
    if clusters.len() < 2 {
        return Some(estimate);
    }
    let squares: f64 =
        clusters.iter().map(|task| task.iter().map(|score| score - mean).sum::<f64>().powi(2)).sum();
    let error = (groups / (groups - 1.0) * squares).sqrt() / n;
    let mut scores = clusters.iter().flat_map(|task| task.iter());
    let first = scores.next().copied();
    let all_the_same = scores.all(|score| Some(*score) == first);
    let (interval, method) = if all_the_same {
        (wilson(mean, groups), IntervalMethod::Wilson)
    } else {
        let reach = Z95 * error;
        (((mean - reach).max(0.0), (mean + reach).min(1.0)), IntervalMethod::Normal)
    };
    Some(Estimate { standard_error: Some(error), interval: Some(interval), method, ..estimate })
}

/// Wilson (1927).
fn wilson(share: f64, n: f64) -> (f64, f64) {
    let square = Z95 * Z95;
    let centre = (share + square / (2.0 * n)) / (1.0 + square / n);
    let reach = Z95 / (1.0 + square / n) * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    ((centre - reach).max(0.0), (centre + reach).min(1.0))
}

/// The sample standard deviation (divisor `n − 1`) of the accuracies of single runs, which papers print; none with
/// fewer than two runs.
#[must_use]
pub fn spread_over_runs(accuracies: &[f64]) -> Option<f64> {
    if accuracies.len() < 2 {
        return None;
    }
    let n = count(accuracies.len());
    let mean = accuracies.iter().sum::<f64>() / n;
    let squares: f64 = accuracies.iter().map(|accuracy| (accuracy - mean).powi(2)).sum();
    Some((squares / (n - 1.0)).sqrt())
}
