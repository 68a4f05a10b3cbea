//! The bounds of the whole run: wall time, tokens, money. Pure: what was spent goes in, the first bound that was
//! reached comes out.

use std::time::Duration;

use core_protocol::event::StopReason;

use crate::config::RunLimits;

/// What a run has spent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Since the run began.
    pub wall: Duration,
    /// Prompt and generated tokens.
    pub tokens: u64,
    /// US dollars; none where a price is unknown, and then no bound on money can hold.
    pub cost: Option<f64>,
}

/// A bound that was reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitHit {
    /// The stop reason that follows.
    pub reason: StopReason,
    /// Its name in the configuration.
    pub name: &'static str,
    /// What was spent, in the limit's unit: seconds, tokens, US dollars.
    pub spent: f64,
    /// The limit.
    pub max: f64,
}

/// The first bound that was reached, if any.
#[must_use]
pub fn reached(limits: &RunLimits, spent: Spent) -> Option<LimitHit> {
    #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
    let as_float = |tokens: u64| tokens as f64;
    let checks = [
        (StopReason::LimitWall, "wall", Some(spent.wall.as_secs_f64()), limits.wall),
        (StopReason::LimitTokens, "tokens", Some(as_float(spent.tokens)), limits.tokens.map(as_float)),
        (StopReason::LimitCost, "cost", spent.cost, limits.cost),
    ];
    checks.into_iter().find_map(|(reason, name, spent, max)| {
        let (spent, max) = (spent?, max?);
        (spent >= max).then_some(LimitHit { reason, name, spent, max })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let limits = RunLimits { wall: Some(10.0), tokens: Some(1000), cost: Some(0.5) };
        for (wall, tokens, cost, expected) in [
            (9, 999, Some(0.49), None),
            (10, 0, None, Some("wall")),
            (0, 1000, None, Some("tokens")),
            (0, 0, Some(0.5), Some("cost")),
            (0, 0, None, None),
            (11, 1001, Some(1.0), Some("wall")),
        ] {
            let spent = Spent { wall: Duration::from_secs(wall), tokens, cost };
            assert_eq!(reached(&limits, spent).map(|hit| hit.name), expected);
            assert_eq!(reached(&RunLimits::default(), spent), None);
        }
    }
}
