//! How far stated confidence and accuracy lie apart.

use super::count;

/// Samples in a bin, as the authors of Humanity's Last Exam have it.
pub const CALIBRATION_BIN: usize = 100;

/// Root mean square of the distance between confidence and accuracy, over bins of `bin` samples in the order of their
/// confidence, weighted by size; the last bin takes the rest (Hendrycks et al. 2019). All bins count. `samples` are
/// pairs of confidence between 0 and 1 and correctness. None without samples or with `bin` 0.
#[must_use]
pub fn calibration_error(samples: &[(f64, bool)], bin: usize) -> Option<f64> {
    if samples.is_empty() || bin == 0 {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(|first, second| first.0.total_cmp(&second.0));
    let bins = (sorted.len() / bin).max(1);
    let mut sum = 0.0;
    for index in 0..bins {
        let end = if index + 1 == bins { sorted.len() } else { (index + 1) * bin };
        let members = sorted.get(index * bin..end).unwrap_or_default();
        let n = count(members.len());
        let confidence = members.iter().map(|(confidence, _)| confidence).sum::<f64>() / n;
        let accuracy = count(members.iter().filter(|(_, right)| *right).count()) / n;
        sum += n / count(sorted.len()) * (confidence - accuracy).powi(2);
    }
    Some(sum.sqrt())
}
