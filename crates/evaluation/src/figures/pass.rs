//! Right in any of k, right in all of k: unbiased estimates from n epochs, and their means over tasks.

use serde::{Deserialize, Serialize};

use super::count;
use super::mean::{Estimate, clustered_mean};

/// The chance that at least one of `k` epochs drawn from `n` is right, `c` of them being right:
/// `1 − C(n−c, k) / C(n, k)` (Chen et al. 2021). None where `k` is 0 or more than `n`, or `c` more than `n`.
#[must_use]
pub fn pass_any(n: usize, c: usize, k: usize) -> Option<f64> {
    let wrong = n.checked_sub(c)?;
    share_of_draws(n, wrong, k).map(|none_right| 1.0 - none_right)
}

/// The chance that all of `k` epochs drawn from `n` are right, `c` of them being right: `C(c, k) / C(n, k)`. None as
/// for [`pass_any`].
#[must_use]
pub fn pass_all(n: usize, c: usize, k: usize) -> Option<f64> {
    n.checked_sub(c)?;
    share_of_draws(n, c, k)
}

/// `C(m, k) / C(n, k)` as a product, which neither overflows nor cancels.
fn share_of_draws(n: usize, m: usize, k: usize) -> Option<f64> {
    if k == 0 || k > n {
        return None;
    }
    Some((0..k).map(|drawn| count(m.saturating_sub(drawn)) / count(n - drawn)).product())
}

/// pass@k and pass^k over all tasks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PassAtK {
    /// The number of epochs drawn.
    pub k: usize,
    /// Right in any of them.
    pub any: Estimate,
    /// Right in all of them.
    pub all: Estimate,
}

/// For every `k` up to the fewest epochs that a task has; `tasks` are pairs of epochs and right ones.
#[must_use]
pub fn pass_figures(tasks: &[(usize, usize)]) -> Vec<PassAtK> {
    let most = tasks.iter().map(|(n, _)| *n).min().unwrap_or(0);
    (1..=most)
        .filter_map(|k| {
            let over = |figure: fn(usize, usize, usize) -> Option<f64>| {
                let scores: Option<Vec<[f64; 1]>> =
                    tasks.iter().map(|(n, c)| figure(*n, *c, k).map(|score| [score])).collect();
                clustered_mean(&scores?)
            };
            Some(PassAtK { k, any: over(pass_any)?, all: over(pass_all)? })
        })
        .collect()
}
