//! What a run waits for, moment by moment: for the model, else for a tool, and whether that is nothing but waiting for
//! limiters. Counts only; what the times mean is decided by the limits.
//!
//! What is left of the wall time is the framework's own, so that the parts add up to it also where agents work at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Model,
    Tools,
    /// A limiter, as a part of waiting for the model.
    Limiter,
    /// A limiter, as a part of waiting for a tool that asks a model.
    LimiterInTool,
}

/// The times of a run so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Time spent waiting for the model.
    pub(crate) llm: Duration,
    /// Time spent waiting for tools and not for the model.
    pub(crate) tools: Duration,
    /// Of both, waiting for limiters, as far as nobody had the model or a tool at work meanwhile.
    pub(crate) limiter: Duration,
}

/// The clock of a run, shared by everybody who works for it. Clones are the same clock.
#[derive(Debug, Clone, Default)]
pub struct RunClock(Arc<Mutex<Entries>>);

#[derive(Debug)]
struct Entries {
    times: Times,
    /// The part of `times.limiter` that only tools waited, since it was last asked for.
    untold: Duration,
    waiting_for_model: u32,
    waiting_for_tools: u32,
    held_back: u32,
    held_back_in_tools: u32,
    since: Instant,
}

impl RunClock {
    /// Marks that a tool's question to a model waits for a limiter, until the mark is dropped. A call of a tool asks one
    /// question at a time and does nothing else meanwhile; while this is so of all calls, the working time of the run
    /// stands still.
    pub fn tool_held_back(&self) -> Wait {
        self.wait(Waiting::LimiterInTool)
    }

    /// Marks that something is waited for until the mark is dropped.
    pub(crate) fn wait(&self, what: Waiting) -> Wait {
        self.entries().change(what, 1);
        Wait { clock: self.clone(), what }
    }

    /// Waiting that was done in an earlier part of the run.
    pub(crate) fn waited(&self, what: Waiting, time: Duration) {
        let times = &mut self.entries().times;
        match what {
            Waiting::Model => times.llm += time,
            Waiting::Tools => times.tools += time,
            Waiting::Limiter | Waiting::LimiterInTool => times.limiter += time,
        }
    }

    /// The times so far.
    pub(crate) fn times(&self) -> Times {
        let mut entries = self.entries();
        entries.settle();
        entries.times
    }

    /// How long tools waited for limiters with nothing else at work, since this was last asked.
    pub(crate) fn take_untold(&self) -> Duration {
        let mut entries = self.entries();
        entries.settle();
        std::mem::take(&mut entries.untold)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            times: Times::default(),
            untold: Duration::ZERO,
            waiting_for_model: 0,
            waiting_for_tools: 0,
            held_back: 0,
            held_back_in_tools: 0,
            since: Instant::now(),
        }
    }
}

impl Entries {
    /// Books the time since the last change.
    fn settle(&mut self) {
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.since);
        self.since = now;
        let nobody_works =
            self.held_back >= self.waiting_for_model && self.held_back_in_tools >= self.waiting_for_tools;
        if self.waiting_for_model > 0 {
            self.times.llm += passed;
        } else if self.waiting_for_tools > 0 {
            self.times.tools += passed;
            if nobody_works {
                self.untold += passed;
            }
        }
        if nobody_works && self.waiting_for_model + self.waiting_for_tools > 0 {
            self.times.limiter += passed;
        }
    }

    fn change(&mut self, what: Waiting, by: i32) {
        self.settle();
        let count = match what {
            Waiting::Model => &mut self.waiting_for_model,
            Waiting::Tools => &mut self.waiting_for_tools,
            Waiting::Limiter => &mut self.held_back,
            Waiting::LimiterInTool => &mut self.held_back_in_tools,
        };
        *count = count.saturating_add_signed(by);
    }
}

/// Somebody waits.
#[derive(Debug)]
#[must_use = "waiting ends when the mark is dropped"]
pub struct Wait {
    clock: RunClock,
    what: Waiting,
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.clock.entries().change(self.what, -1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A_WHILE: Duration = Duration::from_millis(3);

    fn pause() {
        let until = Instant::now() + A_WHILE;
        while Instant::now() < until {}
    }

    #[test]
    fn waiting_for_limiters_counts_where_nothing_else_is_done() {
        let clock = RunClock::default();
        let held_back = || clock.times().limiter;
        let (one, other) = (clock.wait(Waiting::Model), clock.wait(Waiting::Model));
        let held = clock.wait(Waiting::Limiter);
        pause();
        assert_eq!(held_back(), Duration::ZERO, "the other one is answered meanwhile");
        drop(other);
        pause();
        let before = held_back();
        assert!(before >= A_WHILE);
        let tool = clock.wait(Waiting::Tools);
        let at_most = held_back();
        pause();
        assert_eq!(held_back(), at_most, "a tool works meanwhile");
        let in_tool = clock.tool_held_back();
        pause();
        assert!(held_back() >= at_most + A_WHILE, "the tool waits too");
        assert_eq!(clock.take_untold(), Duration::ZERO, "the call to the model tells of it");
        drop((in_tool, tool, held, one));
        let before = held_back();
        pause();
        assert_eq!(held_back(), before, "nobody waits");
        clock.waited(Waiting::Limiter, Duration::from_secs(5));
        assert_eq!(held_back(), before + Duration::from_secs(5));
    }

    #[test]
    fn tools_that_wait_for_limiters_do_not_work() {
        let clock = RunClock::default();
        let (one, other) = (clock.wait(Waiting::Tools), clock.wait(Waiting::Tools));
        let held = clock.tool_held_back();
        pause();
        assert_eq!(clock.times().limiter, Duration::ZERO, "the other one works meanwhile");
        let held_too = clock.tool_held_back();
        pause();
        drop(held);
        let Times { limiter, tools, llm } = clock.times();
        assert!(limiter >= A_WHILE && tools >= limiter + A_WHILE && llm.is_zero());
        assert_eq!((clock.take_untold(), clock.take_untold()), (limiter, Duration::ZERO));
        drop(one);
        pause();
        assert!(clock.times().limiter >= limiter + A_WHILE, "the one that is left waits");
        drop((held_too, other));
    }

    #[test]
    fn a_moment_is_booked_once() {
        let clock = RunClock::default();
        let began = Instant::now();
        let tool = clock.wait(Waiting::Tools);
        pause();
        let (one, two) = (clock.wait(Waiting::Model), clock.wait(Waiting::Model));
        pause();
        drop(one);
        pause();
        drop(two);
        pause();
        drop(tool);
        let times = clock.times();
        assert!(times.llm >= 2 * A_WHILE && times.tools >= 2 * A_WHILE);
        assert!(times.llm + times.tools <= began.elapsed());
        pause();
        assert_eq!(clock.times().tools, times.tools);
        clock.waited(Waiting::Model, Duration::from_secs(5));
        assert_eq!(clock.times().llm, times.llm + Duration::from_secs(5));
    }
}
