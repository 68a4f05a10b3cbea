//! The statistics of a benchmark: means with clustered errors, unbiased pass@k, paired comparison, calibration.
//! Pure functions over scores; which samples count and what is printed is decided elsewhere.

mod calibration;
mod mean;
mod paired;
mod pass;
mod set;

pub use calibration::{CALIBRATION_BIN, calibration_error};
pub use mean::{Estimate, IntervalMethod, clustered_mean, spread_over_runs};
pub use paired::{Paired, compare_paired};
pub use pass::{PassAtK, pass_all, pass_any, pass_figures};
pub use set::{SetFigures, SetScore, set_figures};

/// The 97.5 % quantile of the normal distribution.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
pub(crate) const fn count(number: usize) -> f64 {
    number as f64
}
