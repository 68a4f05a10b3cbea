//! Whether the next request, with the final answer's in reserve, still fits the model's window.

use serde::{Deserialize, Serialize};

/// Tokens that are left unused for what no count sees.
pub const SAFETY_TOKENS: u64 = 1000;

/// What is known after a turn, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextFigures {
    /// The last request, cached tokens included; counted locally where the server told nothing.
    pub last_prompt: u64,
    /// The last reply.
    pub last_completion: u64,
    /// The results of the turn.
    pub last_results: u64,
    /// The prompt that will ask for the final answer.
    pub final_prompt: u64,
    /// The longest reply that may be asked for.
    pub max_tokens: u64,
}

impl ContextFigures {
    /// `last prompt + last completion + 1.5 × results + 1.5 × final prompt + max_tokens + 1000`. The factor
    /// makes up for counting with a tokenizer that is not the model's.
    #[must_use]
    pub const fn estimate(&self) -> u64 {
        let counted = self.last_results.saturating_add(self.final_prompt);
        self.last_prompt
            .saturating_add(self.last_completion)
            .saturating_add(counted)
            .saturating_add(counted / 2)
            .saturating_add(self.max_tokens)
            .saturating_add(SAFETY_TOKENS)
    }

    /// Whether the window is too small.
    #[must_use]
    pub const fn exceeds(&self, max_context_length: u64) -> bool {
        self.estimate() >= max_context_length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formula() {
        let figures = ContextFigures {
            last_prompt: 100,
            last_completion: 20,
            last_results: 10,
            final_prompt: 30,
            max_tokens: 500,
        };
        assert_eq!(figures.estimate(), 100 + 20 + 15 + 45 + 500 + 1000);
        assert!(figures.exceeds(1680));
        assert!(!figures.exceeds(1681));
        assert!(ContextFigures { last_prompt: u64::MAX, ..figures }.exceeds(u64::MAX));
    }
}
