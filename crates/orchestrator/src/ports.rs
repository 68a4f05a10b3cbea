//! What the loop needs from outside: tools, texts, and somebody to tell. Decides the shapes only.

use std::sync::Arc;

use answer_generator::EndingPrompts;
use async_trait::async_trait;
use core_protocol::ToolDefinition;
use core_protocol::event::{EventBody, RollbackReason};
use mcp_tools::{ToolManager, ToolOutcome};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// The tools of an agent.
#[async_trait]
pub trait Tools: Send + Sync {
    /// What is offered, in the order in which it is shown.
    fn definitions(&self) -> Arc<[ToolDefinition]>;

    /// Runs one call. Every failure is an outcome; the loop goes on.
    async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> ToolOutcome;
}

#[async_trait]
impl Tools for ToolManager {
    fn definitions(&self) -> Arc<[ToolDefinition]> {
        Self::definitions(self)
    }

    async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        Self::call(self, server, tool, arguments, cancel).await
    }
}

/// The texts that an agent is given.
pub trait Prompts: EndingPrompts {
    /// The system prompt around the rendered tool section, which is empty with native calls.
    fn system(&self, tool_section: &str) -> String;
    /// What is said, once, after a rollback, where `rollback_hint` is on.
    fn rollback_hint(&self, reason: RollbackReason, detail: &str) -> String;
}

/// Where in a run an event belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// The pass, from 1; 0 before the first.
    pub pass: u32,
    /// The turn, from 1; 0 before the first.
    pub turn: u32,
    /// `main`, or a sub-agent's id.
    pub agent: &'a str,
}

/// Takes the events of a run, in order. Must be quick: it is called between the steps of the loop.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    ///
    /// # Errors
    ///
    /// Where the event cannot be kept (a full disk); the run ends, because it could not be resumed.
    fn emit(&self, stamp: Stamp<'_>, body: EventBody) -> Result<(), SinkError>;
}

/// An event could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);
