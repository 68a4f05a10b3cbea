//! What a run has spent, all of its agents together: tokens, money, time spent waiting. Counts only; the limits decide
//! elsewhere.
//!
//! Of any moment it is known whether somebody waits for the model, or else for a tool; what is left is the
//! framework's own time. So the three add up to the wall time also where agents work at once.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use core_protocol::Usage;
use core_protocol::event::{ToolCallCounts, UsageTotals};

use crate::machine::state::RunState;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Model,
    Tools,
    /// A limiter, as a part of waiting for the model.
    Limiter,
}

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
    /// Time spent waiting for the model.
    pub(crate) llm: Duration,
    /// Of that, waiting for limiters, as far as nobody had the model or a tool at work meanwhile.
    pub(crate) limiter: Duration,
    /// Time spent waiting for tools and not for the model.
    pub(crate) tools: Duration,
}

pub(crate) struct Ledger(Mutex<Entries>);

struct Entries {
    figures: Figures,
    waiting_for_model: u32,
    waiting_for_tools: u32,
    held_back: u32,
    since: Instant,
}

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
            llm: Duration::ZERO,
            limiter: Duration::ZERO,
            tools: Duration::ZERO,
        };
        Self(Mutex::new(Entries {
            figures,
            waiting_for_model: 0,
            waiting_for_tools: 0,
            held_back: 0,
            since: Instant::now(),
        }))
    }

    /// A reply with its tokens and their price, and the tokens of replies that were thrown away before it.
    pub(crate) fn spend(
        &self,
        usage: Option<Usage>,
        discarded: Usage,
        price: impl Fn(&Usage) -> Option<f64>,
    ) {
        let mut entries = self.entries();
        let figures = &mut entries.figures;
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

    /// Marks that something is waited for until the mark is dropped.
    pub(crate) fn wait(&self, what: Waiting) -> Wait<'_> {
        self.entries().change(what, 1);
        Wait { ledger: self, what }
    }

    /// Waiting that was done in an earlier part of the run.
    pub(crate) fn waited(&self, what: Waiting, time: Duration) {
        let mut entries = self.entries();
        match what {
            Waiting::Model => entries.figures.llm += time,
            Waiting::Tools => entries.figures.tools += time,
            Waiting::Limiter => entries.figures.limiter += time,
        }
    }

    /// The time spent waiting for limiters so far.
    pub(crate) fn held_back(&self) -> Duration {
        let mut entries = self.entries();
        entries.settle();
        entries.figures.limiter
    }

    /// The tool calls of a sub-agent that is over.
    pub(crate) fn add_nested_calls(&self, calls: &ToolCallCounts) {
        let mut entries = self.entries();
        let nested = &mut entries.figures.nested_calls;
        nested.total += calls.total;
        nested.failed += calls.failed;
        for (tool, count) in &calls.by_tool {
            *nested.by_tool.entry(tool.clone()).or_insert(0) += count;
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        let mut entries = self.entries();
        entries.settle();
        entries.figures.clone()
    }

    /// Tokens so far, prompts and replies.
    pub(crate) fn tokens(&self) -> u64 {
        let usage = self.entries().figures.usage;
        usage.input.saturating_add(usage.output)
    }

    /// US dollars so far; none where a reply had no price.
    pub(crate) fn cost(&self) -> Option<f64> {
        let entries = self.entries();
        (!entries.figures.unpriced).then_some(entries.figures.cost)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Books the time since the last change.
    fn settle(&mut self) {
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.since);
        self.since = now;
        if self.waiting_for_model > 0 {
            self.figures.llm += passed;
            if self.held_back >= self.waiting_for_model && self.waiting_for_tools == 0 {
                self.figures.limiter += passed;
            }
        } else if self.waiting_for_tools > 0 {
            self.figures.tools += passed;
        }
    }

    fn change(&mut self, what: Waiting, by: i32) {
        self.settle();
        let count = match what {
            Waiting::Model => &mut self.waiting_for_model,
            Waiting::Tools => &mut self.waiting_for_tools,
            Waiting::Limiter => &mut self.held_back,
        };
        *count = count.saturating_add_signed(by);
    }
}

/// Somebody waits.
pub(crate) struct Wait<'a> {
    ledger: &'a Ledger,
    what: Waiting,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.ledger.entries().change(self.what, -1);
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

    #[test]
    fn waiting_for_limiters_counts_where_nothing_else_is_done() {
        let ledger = Ledger::new(&RunState::new(Task::question("?")));
        let pause = || {
            let until = Instant::now() + Duration::from_millis(3);
            while Instant::now() < until {}
        };
        let (one, other) = (ledger.wait(Waiting::Model), ledger.wait(Waiting::Model));
        let held = ledger.wait(Waiting::Limiter);
        pause();
        assert_eq!(ledger.held_back(), Duration::ZERO, "the other one is answered meanwhile");
        drop(other);
        pause();
        let held_back = ledger.held_back();
        assert!(held_back >= Duration::from_millis(3));
        let tool = ledger.wait(Waiting::Tools);
        let at_most = ledger.held_back();
        pause();
        assert_eq!(ledger.held_back(), at_most, "a tool works meanwhile");
        drop((tool, held, one));
        ledger.waited(Waiting::Limiter, Duration::from_secs(5));
        assert!(ledger.figures().limiter >= held_back + Duration::from_secs(5));
    }

    #[test]
    fn a_moment_is_booked_once() {
        let ledger = Ledger::new(&RunState::new(Task::question("?")));
        let began = Instant::now();
        let pause = || {
            let until = Instant::now() + Duration::from_millis(3);
            while Instant::now() < until {}
        };
        let tool = ledger.wait(Waiting::Tools);
        pause();
        let (one, two) = (ledger.wait(Waiting::Model), ledger.wait(Waiting::Model));
        pause();
        drop(one);
        pause();
        drop(two);
        pause();
        drop(tool);
        let figures = ledger.figures();
        assert!(figures.llm >= Duration::from_millis(6) && figures.tools >= Duration::from_millis(6));
        assert!(figures.llm + figures.tools <= began.elapsed());
        pause();
        assert_eq!(ledger.figures().tools, figures.tools);
        ledger.waited(Waiting::Model, Duration::from_secs(5));
        assert_eq!(ledger.figures().llm, figures.llm + Duration::from_secs(5));
    }
}
