//! Exchanges on file: what was asked and what came back, to be played again without network.
//!
//! Decides what a cassette is. It is a file of JSON lines that is only ever added to:
//!
//! - the first line is the header: version, program, time, and `facts`, whatever the caller needs to set up the same
//!   run again (today's date, for one: a prompt that is rendered from the recorded date matches next month too);
//! - a `part` is a message, a system prompt or a list of tools, written once however often it is sent;
//! - an `exchange` is a request, in terms of parts, and its response. Model calls are recorded here, a line for
//!   each try; other kinds (tool calls) are the caller's.
//!
//! Secrets are taken out of every line before it is written, each line is handed to the system before the exchange
//! is used, and the disk is asked to keep it. A last line that was torn by a kill is passed over.
//!
//! On replay a request is answered by the first unused exchange with the same content, in whichever order requests
//! come. What counts as content: system prompt, messages, tools and whether the last message is gone on with;
//! `max_tokens` follows from counting and does not. A request without its like ends the call with
//! [`CassetteError::Mismatch`], which says where it differs from the recorded one that is nearest to it.

mod difference;
mod player;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;

use core_protocol::Completion;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{Capabilities, LlmConfig, LlmError, Tokenizer};

pub use player::Player;
pub use writer::CassetteWriter;

/// Version of the format. Raised when a reader would have to change.
pub const CASSETTE_VERSION: u32 = 1;

/// Kind of the exchanges with a model.
const MODEL: &str = "model";

/// Takes secrets out of a line of JSON.
pub type Scrub = Arc<dyn Fn(String) -> String + Send + Sync>;

/// The first line of a cassette.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// What wrote it: name and version.
    pub program: String,
    /// When, RFC 3339.
    pub recorded: String,
    /// The model that was recorded.
    pub model: ModelProfile,
    /// What the caller needs to set up the same run again.
    #[serde(default)]
    pub facts: Map<String, Value>,
}

/// Everything about a model that a run depends on beside its replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelProfile {
    /// The provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// What it can do.
    pub capabilities: Capabilities,
    /// How its tokens are counted.
    pub tokenizer: Tokenizer,
    /// The configuration, without secrets.
    pub config: LlmConfig,
    /// Tokens that prompt and reply may have together.
    pub max_context_length: u64,
    /// What the log says of it.
    pub facts: Map<String, Value>,
}

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Cassette {
        version: u32,
        #[serde(flatten)]
        header: Box<Header>,
    },
    Part {
        id: usize,
        value: Value,
    },
    Exchange {
        of: String,
        /// What it is about, for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        name: String,
        request: Value,
        response: Value,
    },
}

/// A request to a model in terms of parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct ModelRequest {
    system: usize,
    messages: Vec<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    continue_final_message: bool,
}

/// What a try came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ModelResponse {
    Completion(Box<Completion>),
    Error(LlmError),
}

/// What can go wrong with a cassette.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CassetteError {
    /// It cannot be read.
    #[error("the cassette {path} cannot be read: {detail}")]
    Read {
        /// The file.
        path: String,
        /// The system's words.
        detail: String,
    },
    /// It is not a cassette, or one of another version.
    #[error("{path}:{line} is no part of a cassette of version {CASSETTE_VERSION}: {detail}")]
    Format {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        detail: String,
    },
    /// It cannot be written.
    #[error("the cassette {path} cannot be written: {detail}")]
    Write {
        /// The file.
        path: String,
        /// The system's words.
        detail: String,
    },
    /// Something is asked that was not recorded.
    #[error("the replay asks for something that is not in {path}: {detail}")]
    Mismatch {
        /// The file.
        path: String,
        /// What is asked, what was recorded, and where they part.
        detail: String,
    },
}

impl CassetteError {
    /// A stable word to branch on.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Format { .. } | Self::Write { .. } => "cassette",
            Self::Mismatch { .. } => "replay_mismatch",
        }
    }

    /// Whether doing the same again may help. It never does.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Read { .. } | Self::Format { .. } | Self::Write { .. } | Self::Mismatch { .. } => false,
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Read { .. } => "give the file that --record wrote",
            Self::Format { .. } => "give a file that --record of this version wrote, or record it again",
            Self::Write { .. } => "choose another place, or free some space",
            Self::Mismatch { .. } => {
                "ask the same question with the same settings, files and tools as when it was recorded, or record it again"
            }
        }
        .to_owned()
    }
}

/// A value as text that does not depend on the order of its keys.
fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(sorted).collect(),
            Value::Object(entries) => {
                let mut keys: Vec<&String> = entries.keys().collect();
                keys.sort_unstable();
                keys.into_iter().map(|key| (key.clone(), sorted(&entries[key]))).collect()
            }
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}
