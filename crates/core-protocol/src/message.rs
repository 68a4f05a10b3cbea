//! A message of the conversation and what it is made of.
//!
//! Decides the provider-neutral shape of a history. How a provider spells a message on the wire is
//! left to `llm-providers`; which messages a request shows is left to `orchestrator`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ToolCall;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions that stand before the conversation.
    System,
    /// The person, and in text protocols the results of tools.
    User,
    /// The model.
    Assistant,
    /// One tool result, in native protocols.
    Tool,
}

/// One message of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<ContentBlock>,
    /// Native tool calls of an assistant message. Empty in text protocols, where calls are text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// For [`Role::Tool`]: the call that this message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// For [`Role::Tool`]: the function name that was called, where a provider wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Message {
    /// A message of one text block.
    #[must_use]
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![ContentBlock::text(text)])
    }

    /// A message of the given blocks, without calls.
    #[must_use]
    pub fn new(role: Role, content: Vec<ContentBlock>) -> Self {
        Self { role, content, tool_calls: Vec::new(), tool_call_id: None, name: None }
    }

    /// A user message of one text block.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::text(Role::User, text)
    }

    /// An assistant message of one text block.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::text(Role::Assistant, text)
    }

    /// The text blocks joined by newlines; thinking and media are left out.
    #[must_use]
    pub fn joined_text(&self) -> String {
        joined(&self.content, ContentBlock::as_text)
    }

    /// The thinking blocks joined by newlines.
    #[must_use]
    pub fn joined_thinking(&self) -> String {
        joined(&self.content, |block| match block {
            ContentBlock::Thinking { text, .. } => Some(text),
            _ => None,
        })
    }
}

/// What `pick` takes of the blocks, joined by newlines; nothing empty at the beginning is kept.
pub(crate) fn joined(blocks: &[ContentBlock], pick: impl Fn(&ContentBlock) -> Option<&str>) -> String {
    let mut joined = String::new();
    for text in blocks.iter().filter_map(pick) {
        if !joined.is_empty() {
            joined.push('\n');
        }
        joined.push_str(text);
    }
    joined
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Where its bytes are.
        source: MediaSource,
    },
    /// A recording.
    Audio {
        /// Where its bytes are.
        source: MediaSource,
    },
    /// A film.
    Video {
        /// Where its bytes are.
        source: MediaSource,
    },
    /// A file that the message names without holding it.
    File {
        /// Path or URL.
        uri: String,
        /// Media type, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// What the model thought before it answered, as the provider reported it outside the text.
    ///
    /// `<think>` spans inside a text block stay in that block; the parser finds them there.
    Thinking {
        /// The thinking; may be empty where only a signature was sent.
        text: String,
        /// The provider's proof of origin, to be sent back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Thinking that the provider encrypted, to be sent back unchanged.
    RedactedThinking {
        /// The opaque payload.
        data: String,
    },
}

impl ContentBlock {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

/// Where the bytes of a picture or a recording are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MediaSource {
    /// In the message itself.
    Base64 {
        /// Media type such as `image/png`.
        media_type: String,
        /// Standard base64, padded.
        data: String,
    },
    /// At an address that the provider fetches.
    Url {
        /// The address.
        url: String,
    },
}
