//! What a run has spent, all of its agents together: tokens and money. Counts only; the limits decide elsewhere, and
//! time is the clock's.

use std::sync::{Mutex, MutexGuard, PoisonError};

use core_protocol::Usage;
use core_protocol::event::{ToolCallCounts, UsageTotals};

use crate::machine::state::RunState;

/// The figures so far.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    /// Tokens of all agents.
    pub(crate) usage: UsageTotals,
    /// US dollars of the replies whose price is known.
    pub(crate) cost: f64,
    /// Whether any reply had a price.
    pub(crate) priced: bool,
    /// Whether any reply had none.
    pub(crate) unpriced: bool,
    /// Tool calls of sub-agents.
    pub(crate) nested_calls: ToolCallCounts,
}

pub(crate) struct Ledger(Mutex<Figures>);

impl Ledger {
    /// The ledger of a run that has come as far as its state says.
    pub(crate) fn new(state: &RunState) -> Self {
        let mut usage = state.usage;
        let nested = &state.nested.usage;
        usage.input = usage.input.saturating_add(nested.input);
        usage.output = usage.output.saturating_add(nested.output);
        usage.cache_read = usage.cache_read.saturating_add(nested.cache_read);
        usage.cache_write = usage.cache_write.saturating_add(nested.cache_write);
        let figures = Figures {
            usage,
            cost: 0.0,
            priced: false,
            unpriced: false,
            nested_calls: state.nested.tool_calls.clone(),
        };
        Self(Mutex::new(figures))
    }

    /// A reply with its tokens and their price, and the tokens of replies that were thrown away before it.
    pub(crate) fn spend(
        &self,
        usage: Option<Usage>,
        discarded: Usage,
        price: impl Fn(&Usage) -> Option<f64>,
    ) {
        let mut figures = self.figures_mut();
        for usage in usage.iter().chain(std::iter::once(&discarded)) {
            let totals = &mut figures.usage;
            totals.input = totals.input.saturating_add(usage.input);
            totals.output = totals.output.saturating_add(usage.output);
            totals.cache_read = totals.cache_read.saturating_add(usage.cache_read);
            totals.cache_write = totals.cache_write.saturating_add(usage.cache_write);
        }
        match usage.and_then(|usage| price(&usage)) {
            Some(cost) => {
                figures.cost += cost + price(&discarded).unwrap_or_default();
                figures.priced = true;
            }
            None => figures.unpriced = true,
        }
    }

    /// The tool calls of a sub-agent that is over.
    pub(crate) fn add_nested_calls(&self, calls: &ToolCallCounts) {
        let nested = &mut self.figures_mut().nested_calls;
        nested.total += calls.total;
        nested.failed += calls.failed;
        for (tool, count) in &calls.by_tool {
            *nested.by_tool.entry(tool.clone()).or_insert(0) += count;
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        self.figures_mut().clone()
    }

    /// Tokens so far, prompts and replies.
    pub(crate) fn tokens(&self) -> u64 {
        let usage = self.figures_mut().usage;
        usage.input.saturating_add(usage.output)
    }

    /// US dollars so far; none where a reply had no price.
    pub(crate) fn cost(&self) -> Option<f64> {
        let figures = self.figures_mut();
        (!figures.unpriced).then_some(figures.cost)
    }

    fn figures_mut(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;

    #[test]
    fn tokens_and_money_add_up() {
        let ledger = Ledger::new(&RunState::new(Task::question("?")));
        let usage = Usage { input: 100, output: 10, ..Usage::default() };
        ledger.spend(Some(usage), Usage { input: 5, ..Usage::default() }, |usage| Some(usage.input as f64));
        assert_eq!((ledger.tokens(), ledger.cost()), (115, Some(105.0)));
        ledger.spend(None, Usage::default(), |_| Some(1.0));
        assert_eq!((ledger.tokens(), ledger.cost()), (115, None));
        let figures = ledger.figures();
        assert!(figures.priced && figures.unpriced);
    }
}
