//! What tokens cost.

use core_protocol::Usage;
use serde::{Deserialize, Serialize};

/// Prices in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Prompt tokens that no cache took part in.
    pub input: f64,
    /// Generated tokens, thinking included.
    pub output: f64,
    /// Prompt tokens read from a cache; none: priced as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Prompt tokens written to a cache; none: priced as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// US dollars for the given tokens.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let plain = usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write);
        let millionths = plain as f64 * self.input
            + usage.cache_read as f64 * self.cache_read.unwrap_or(self.input)
            + usage.cache_write as f64 * self.cache_write.unwrap_or(self.input)
            + usage.output as f64 * self.output;
        millionths / 1_000_000.0
    }
}

#[cfg(test)]
mod tests {
    use core_protocol::Usage;

    use super::Price;

    #[test]
    fn counts_every_kind_of_token_once() {
        let price = Price { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75) };
        let usage = Usage {
            input: 1_000_000,
            output: 100_000,
            cache_read: 600_000,
            cache_write: 200_000,
            reasoning: 50_000,
        };
        let expected = 0.2 * 3.0 + 0.6 * 0.3 + 0.2 * 3.75 + 0.1 * 15.0;
        assert!((price.cost(&usage) - expected).abs() < 1e-9);
    }

    #[test]
    fn cache_tokens_without_a_price_cost_as_input() {
        let price = Price { input: 2.0, output: 0.0, ..Price::default() };
        let usage = Usage { input: 500_000, cache_read: 400_000, ..Usage::default() };
        assert!((price.cost(&usage) - 1.0).abs() < 1e-9);
    }
}
