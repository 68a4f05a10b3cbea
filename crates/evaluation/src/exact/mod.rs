//! Tiers that need no judge. Decides when two answers are the same beyond doubt; a miss says nothing, it goes on to
//! the judge.

mod float;
mod gaia;
mod loose;

pub use gaia::gaia_match;
pub use loose::loose_match;

use serde::{Deserialize, Serialize};

/// A tier that decides by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExactTier {
    /// The answer is the truth, letter by letter, white space around it aside.
    Equal,
    /// The official scorer of GAIA finds them the same.
    Gaia,
}

/// The first of the tiers that finds the answer right; none where all of them miss.
#[must_use]
pub fn exact_hit(tiers: &[ExactTier], answer: &str, truth: &str) -> Option<ExactTier> {
    tiers.iter().copied().find(|tier| match tier {
        ExactTier::Equal => !answer.trim().is_empty() && answer.trim() == truth.trim(),
        ExactTier::Gaia => gaia_match(answer, truth),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tier_that_hits_is_named() {
        let both = [ExactTier::Equal, ExactTier::Gaia];
        for (answer, truth, expected) in [
            ("Paris", " Paris ", Some(ExactTier::Equal)),
            ("paris!", "Paris", Some(ExactTier::Gaia)),
            ("$1,000", "1000", Some(ExactTier::Gaia)),
            ("Rome", "Paris", None),
            ("", "", Some(ExactTier::Gaia)),
        ] {
            assert_eq!(exact_hit(&both, answer, truth), expected, "{answer} {truth}");
        }
        assert_eq!(exact_hit(&[ExactTier::Equal], "paris", "Paris"), None);
        assert_eq!(exact_hit(&[], "Paris", "Paris"), None);
    }
}
