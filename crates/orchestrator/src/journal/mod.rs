//! What earlier parts of a run left behind, so that a run that was interrupted goes on where it was.
//!
//! Decides what the driver asks of it. A machine is deterministic: given the same replies, results, counts and
//! verdicts it tells the same events. So a run is gone on with by a new machine and the same driver, whose questions
//! are answered from the log as far as that reaches: nothing that ended is done again. Answers are found by agent
//! and by the id of the call, since what agents and parallel calls did is interleaved in the log. An agent's id and
//! its calls' ids must therefore be the same each time the run is driven.

mod past;
mod sink;

use std::sync::Arc;
use std::time::Duration;

use core_protocol::ToolDefinition;

use crate::limits::LimitHit;
use crate::machine::{ContextCounts, ModelFailure, ModelReply, ToolReport};

pub use past::{Departure, Past};
pub use sink::JournalSink;

/// What the earlier parts of a run knew. A new run has [`NoJournal`].
pub trait Journal: Send + Sync {
    /// How long the earlier parts took.
    fn elapsed(&self) -> Duration;

    /// How long of that calls to the model waited for limiters.
    fn held_back(&self) -> Duration;

    /// How the agent goes on from the head of its loop.
    fn verdict(&self, agent: &str) -> Verdict;

    /// What became of a call to the model.
    fn model_call(&self, agent: &str, call: u64) -> Known<Result<ModelReply, ModelFailure>>;

    /// What became of a tool call.
    fn tool_call(&self, agent: &str, call_id: &str) -> Known<ToolReport>;

    /// What was offered from the agent's next pass on.
    fn tools(&self, agent: &str) -> NextTools;

    /// The counts that the agent's next check of its context was made with.
    fn context(&self, agent: &str) -> Option<ContextCounts>;

    /// The counts that the agent's next summary of its history was judged by: tokens without it and with it.
    fn compression(&self, agent: &str) -> Option<[u64; 2]>;
}

/// How an agent goes on, where only a clock or a person could tell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The log of the agent is used up: the clock, the limits and the cancellation decide.
    Open,
    /// It went on.
    WentOn,
    /// A limit of the run was reached here.
    Limit(LimitHit),
    /// It was stopped here.
    Cancelled,
}

/// What a log knows of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Known<T> {
    /// Nothing: it had not begun.
    Nothing,
    /// It had begun, and the log ends before it did.
    Begun,
    /// It was given up for a limit or a cancellation.
    GivenUp,
    /// It ended; how, and the milliseconds that it took.
    Ended(T, u64),
}

/// The tools of an agent's next pass.
#[derive(Debug, Clone, PartialEq)]
pub enum NextTools {
    /// The log of the agent is used up: the servers are asked.
    Open,
    /// They stayed the same.
    Same,
    /// They changed to these.
    Changed(Arc<[ToolDefinition]>),
}

/// The journal of a run that has no past.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn held_back(&self) -> Duration {
        Duration::ZERO
    }

    fn verdict(&self, _agent: &str) -> Verdict {
        Verdict::Open
    }

    fn model_call(&self, _agent: &str, _call: u64) -> Known<Result<ModelReply, ModelFailure>> {
        Known::Nothing
    }

    fn tool_call(&self, _agent: &str, _call_id: &str) -> Known<ToolReport> {
        Known::Nothing
    }

    fn tools(&self, _agent: &str) -> NextTools {
        NextTools::Open
    }

    fn context(&self, _agent: &str) -> Option<ContextCounts> {
        None
    }

    fn compression(&self, _agent: &str) -> Option<[u64; 2]> {
        None
    }
}
