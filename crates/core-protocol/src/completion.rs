//! What a model's reply comes to: the message, why it ended, what it cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Message;

/// One whole reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Completion {
    /// The assistant message.
    pub message: Message,
    /// Why the model stopped. Never decide by this alone whether there are calls: servers err.
    pub finish_reason: FinishReason,
    /// Tokens, where the server told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that answered, as the server names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Tokens of one reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// All prompt tokens, those read from or written to a cache included.
    pub input: u64,
    /// Generated tokens, thinking included.
    pub output: u64,
    /// Prompt tokens that came from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Prompt tokens that were written to a cache.
    #[serde(default)]
    pub cache_write: u64,
    /// Generated tokens that were thinking, where told; part of `output`.
    #[serde(default)]
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// Why a model stopped. Open-ended on the wire, so unknown reasons are kept as they came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// A filter withheld the text.
    ContentFilter,
    /// The model declined.
    Refusal,
    /// Anything else, verbatim; empty where the server gave none.
    #[serde(untagged)]
    Other(String),
}
