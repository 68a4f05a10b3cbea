//! What a log holds so that a run can be gone on with: how it was set up, and what a failure meant. Decides shapes and
//! names only.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolDefinition;

/// What a run was set up with beside its configuration. Without secrets: those come from the environment of whoever
/// goes on with the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunSetup {
    /// Today, as the model was told it (`2026-11-21`).
    pub date: String,
    /// Tools offered, by agent: `main`, or the name of a sub-agent.
    pub tools: BTreeMap<String, Vec<ToolDefinition>>,
    /// Digest of the prompt templates and articles in use, by file.
    pub prompts: BTreeMap<String, String>,
    /// Folders that are searched in this run.
    pub docs: Vec<String>,
    /// Tool servers came from this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_config: Option<String>,
    /// The configuration folder that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conf_dir: Option<String>,
    /// `--llm` as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm: Option<String>,
    /// `--agent` as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The folder that relative paths were looked up in.
    pub here: String,
    /// Prices of the model per million tokens, where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Value>,
}

/// What can be done about a failed call to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LlmFailureClass {
    /// Nothing: the key, the model's name, the address or a parameter is wrong.
    Permanent,
    /// The request was longer than the model's window.
    ContextExceeded,
    /// It may go better later.
    #[default]
    Transient,
}
