//! What the loop needs from outside: a model, tools, texts, and somebody to tell. Decides the shapes only.

use std::sync::Arc;

use answer_generator::EndingPrompts;
use async_trait::async_trait;
use core_protocol::event::{EventBody, RollbackReason};
use core_protocol::{Message, ToolDefinition, Usage};
use llm_providers::{CallEvent, CallOutcome, ChatRequest, LlmClient, LlmError};
use mcp_tools::{ToolManager, ToolOutcome};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::findings::Finding;

/// Sees what happens during a call to the model.
pub type CallObserver<'a> = dyn FnMut(CallEvent<'_>) + Send + 'a;

/// The model of a run.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks the model, with whatever retries there are. Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// What no retry cured.
    async fn complete(
        &self,
        request: &ChatRequest,
        observer: &mut CallObserver<'_>,
    ) -> Result<CallOutcome, LlmError>;

    /// Tokens of a text.
    fn count_tokens(&self, text: &str) -> u64;

    /// Tokens of a message with what a template adds to it.
    fn count_message(&self, message: &Arc<Message>) -> u64;

    /// US dollars, where the model's prices are known.
    fn cost(&self, usage: &Usage) -> Option<f64>;
}

#[async_trait]
impl Model for LlmClient {
    async fn complete(
        &self,
        request: &ChatRequest,
        observer: &mut CallObserver<'_>,
    ) -> Result<CallOutcome, LlmError> {
        Self::complete(self, request, observer).await
    }

    fn count_tokens(&self, text: &str) -> u64 {
        Self::count_tokens(self, text)
    }

    fn count_message(&self, message: &Arc<Message>) -> u64 {
        Self::count_message(self, message)
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        Self::cost(self, usage)
    }
}

/// The tools of an agent.
#[async_trait]
pub trait Tools: Send + Sync {
    /// What is offered, in the order in which it is shown.
    fn definitions(&self) -> Arc<[ToolDefinition]>;

    /// Looks whether servers have other tools by now; called between passes. What [`Tools::definitions`] says
    /// afterwards is offered from the next pass on.
    async fn refresh(&self) {}

    /// Runs one call. Every failure is an outcome; the loop goes on.
    async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> ToolOutcome;

    /// Whether a call to the tool may be made again where nobody knows whether it was carried out: it only reads, or
    /// it does the same thing however often it is called.
    fn is_repeatable(&self, server: &str, tool: &str) -> bool;
}

#[async_trait]
impl Tools for ToolManager {
    fn definitions(&self) -> Arc<[ToolDefinition]> {
        Self::definitions(self)
    }

    async fn refresh(&self) {
        Self::refresh(self).await;
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

    fn is_repeatable(&self, server: &str, tool: &str) -> bool {
        Self::is_repeatable(self, server, tool)
    }
}

/// The texts that an agent is given.
pub trait Prompts: EndingPrompts {
    /// The system prompt around the rendered tool section, which is empty with native calls.
    fn system(&self, tool_section: &str) -> String;
    /// What is said, once, after a rollback, where `rollback_hint` is on.
    fn rollback_hint(&self, reason: RollbackReason, detail: &str) -> String;
    /// The first message of a sub-agent: its subtask, and what is expected of it.
    fn sub_agent_task(&self, subtask: &str) -> String;
    /// The facts that were noted so far, under a heading of their own.
    fn findings(&self, findings: &[Finding]) -> String;
    /// Asks for a summary of the conversation in at most so many words.
    fn compression(&self, words: u64) -> String;
    /// A summary, marked as one.
    fn compressed(&self, summary: &str) -> String;
    /// What the user says after a summary, so that the conversation goes on.
    fn compressed_go_on(&self) -> String;
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
