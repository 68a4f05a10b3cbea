//! The models that tools ask: what a page says about a question, what is in a picture or a recording, a hard
//! question. Decides the port; which model answers, and over which wire, is left to whoever builds the servers.

use async_trait::async_trait;

/// A model that a tool asks.
#[async_trait]
pub trait ToolModel: Send + Sync {
    /// Asks once; retries of the wire are the implementation's.
    ///
    /// # Errors
    ///
    /// Where no answer can be had; its text goes to the model that called the tool.
    async fn ask(&self, question: ModelQuestion) -> Result<ModelAnswer, ModelError>;

    /// Whether there is a model at all; else what to set, in words.
    ///
    /// # Errors
    ///
    /// [`ModelError::NotSetUp`].
    fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// The model's name, for messages and results.
    fn name(&self) -> &str;
}

/// What a tool asks.
#[derive(Debug, Clone, Default)]
pub struct ModelQuestion {
    /// The system prompt, where there is one.
    pub system: Option<String>,
    /// The question.
    pub text: String,
    /// What it is about, sent before the text.
    pub media: Vec<Media>,
    /// Most tokens of the answer; the model's own setting where absent.
    pub max_tokens: Option<u32>,
}

/// A picture, a recording or a film.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// Its MIME type, such as `image/png`, `audio/mpeg`, `video/mp4`.
    pub mime_type: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// What the model said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The reply without thinking.
    pub text: String,
    /// Whether the reply was cut at its token limit.
    pub cut: bool,
    /// The model, as the server names it.
    pub model: String,
    /// Tokens in and out together, where told.
    pub tokens_used: Option<u64>,
}

/// No answer could be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The question does not fit into the model's context: a shorter one may.
    #[error("the question is longer than the model's context: {0}")]
    TooLong(String),
    /// The model takes no such media.
    #[error("the model takes no {0}")]
    Unsupported(String),
    /// There is no model: what to set, in words.
    #[error("{0}")]
    NotSetUp(String),
    /// Anything else, in words without secrets.
    #[error("{0}")]
    Failed(String),
}
