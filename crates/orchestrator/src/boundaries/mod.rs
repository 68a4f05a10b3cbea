//! The bounds of the loop, one file each. Every one is a pure function from what is known to a [`Verdict`];
//! the machine carries the verdict out.

pub mod context_length;
pub mod duplicate_query;
pub mod format_error;
pub mod refusal;
pub mod rollback_budget;
pub mod tool_error;
pub mod turn_budget;

use core_protocol::event::{RollbackReason, StopReason};

/// What follows from a reply or a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Continue,
    /// Drop the last reply and ask again.
    Rollback(RollbackReason, String),
    /// End the loop.
    Stop(StopReason),
}
