//! What a machine asks of its driver, step by step, and what it tells of itself.

use std::sync::Arc;
use std::time::Duration;

use core_protocol::event::{EventBody, LlmPurpose};
use core_protocol::{Message, ToolDefinition};

#[cfg(doc)]
use super::Machine;
use super::state::PlannedCall;

/// What is to be done next.
#[derive(Debug, Clone)]
pub enum Step {
    /// Send this to the model, then call [`Machine::model_replied`] or [`Machine::model_failed`].
    CallModel(ModelCall),
    /// Run these calls at once, then call [`Machine::tools_finished`] with their reports in the same order.
    CallTools(Vec<PlannedCall>),
    /// Count these tokens, then call [`Machine::context_counted`].
    CountContext(ContextQuestion),
    /// Count what a summary saves, then call [`Machine::compression_counted`].
    CountCompression(CompressionQuestion),
    /// The run is over: [`Machine::outcome`].
    Finished,
}

/// One request to the model.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// Its id in the run.
    pub call: u64,
    /// What it is for.
    pub purpose: LlmPurpose,
    /// To be waited before it is sent.
    pub pause: Duration,
    /// The system prompt; the same one while the same tools are shown, so that servers can cache it.
    pub system: Arc<str>,
    /// What is sent after the system prompt.
    pub messages: Vec<Arc<Message>>,
    /// Whether the last message is the beginning of the reply.
    pub continue_final_message: bool,
    /// Native tools; empty in text protocols.
    pub tools: Arc<[ToolDefinition]>,
}

/// What is to be counted after a turn.
#[derive(Debug, Clone)]
pub struct ContextQuestion {
    /// The results of the turn.
    pub results: Vec<Arc<Message>>,
    /// The prompt that will ask for the final answer.
    pub final_prompt: Arc<Message>,
    /// What the last request sent and the reply to it, where the server told no usage: all of it is to be
    /// counted, the system prompt with it.
    pub last_exchange: Option<Vec<Arc<Message>>>,
    /// The system prompt.
    pub system: Arc<str>,
}

/// What is to be counted when a summary is there: what the next request would send without it and with it, the
/// system prompt included.
#[derive(Debug, Clone)]
pub struct CompressionQuestion {
    /// The system prompt.
    pub system: Arc<str>,
    /// The messages as they are.
    pub before: Vec<Arc<Message>>,
    /// The messages with the summary.
    pub after: Vec<Arc<Message>>,
}

/// The counts that a [`ContextQuestion`] asks for, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextCounts {
    /// The results.
    pub results: u64,
    /// The final-answer prompt.
    pub final_prompt: u64,
    /// The last exchange with the system prompt; 0 where it was not asked for.
    pub last_exchange: u64,
}

/// An event with its place in the run.
#[derive(Debug, Clone, PartialEq)]
pub struct StampedEvent {
    /// The pass, from 1.
    pub pass: u32,
    /// The turn, from 1; 0 before the first.
    pub turn: u32,
    /// What happened.
    pub body: EventBody,
}
