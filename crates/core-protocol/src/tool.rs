//! Tools as a model sees them: definitions, calls and results.
//!
//! Decides their provider-neutral shape; how they are written into text is left to the dialects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ContentBlock;
use crate::message::joined;

/// What a model is told about one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDefinition {
    /// The server that offers it.
    pub server: String,
    /// Its name on that server.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments, an object.
    pub input_schema: Value,
}

/// A byte range of the text that something was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to, not including, `end`.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The part of `text` that it covers; empty where it does not fit the text.
    #[must_use]
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// Number of bytes.
    #[must_use]
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether it covers nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// How far arguments had to be mended before they could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentRepair {
    /// Read as JSON5 (comments, single quotes, trailing commas, bare keys).
    Json5,
    /// Read after the repairer had mended them.
    Repaired,
}

/// One call that a model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The model's own id, or `call_0`, `call_1`… in the order of the text.
    pub id: String,
    /// The server; empty where the dialect does not name one and the known tools did not tell.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments, an object.
    pub arguments: Map<String, Value>,
    /// The bytes of the whole call in the text; none for native calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// The bytes of the server name's value in the text, where the dialect has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_span: Option<Span>,
    /// How the arguments were mended; none where they were strict JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repaired: Option<ArgumentRepair>,
    /// Fields that a provider wants back unchanged with this call (Gemini's thought signatures).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<Value>,
}

impl ToolCall {
    /// A call without an id, as renderers and tests need it.
    #[must_use]
    pub fn new(server: impl Into<String>, tool: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self {
            id: String::new(),
            server: server.into(),
            tool: tool.into(),
            arguments,
            span: None,
            server_span: None,
            repaired: None,
            provider_data: None,
        }
    }
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// What the model is shown.
    pub content: Vec<ContentBlock>,
    /// Whether the tool says that it failed.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolResult {
    /// A success of one text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], is_error: false }
    }

    /// A failure of one text block.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], is_error: true }
    }

    /// The text blocks joined by newlines.
    #[must_use]
    pub fn joined_text(&self) -> String {
        joined(&self.content, ContentBlock::as_text)
    }
}
