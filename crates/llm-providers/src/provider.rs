//! The seam that every model is plugged in at.
//!
//! Decides what a provider is asked and what it gives back: one try, streamed. Retries, limits, token
//! counts and prices are left to [`LlmClient`](crate::LlmClient), which works with any provider.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use core_protocol::{Completion, Message, ToolDefinition};
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{LlmError, Price};

/// One request to a model. Cheap to clone: the content is shared.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The system prompt; empty for none.
    pub system: Arc<str>,
    /// The view of the history, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Tools for the native protocol; empty in text protocols, where the system prompt tells of them.
    pub tools: Arc<[ToolDefinition]>,
    /// Tokens to generate at most; none: what the configuration says. The client lowers it where the
    /// window has less room.
    pub max_tokens: Option<u64>,
    /// Whether the last message, the assistant's, is a beginning that the model must go on with. Only
    /// for providers with [`Capabilities::assistant_prefix`].
    pub continue_final_message: bool,
}

impl ChatRequest {
    /// A request without tools.
    #[must_use]
    pub fn new(system: impl Into<Arc<str>>, messages: Vec<Arc<Message>>) -> Self {
        Self {
            system: system.into(),
            messages,
            tools: Arc::from([]),
            max_tokens: None,
            continue_final_message: false,
        }
    }
}

/// What a provider's stream yields. The last event of a complete stream is [`StreamEvent::Done`].
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// A piece of the reply's text.
    TextDelta(String),
    /// A piece of thinking that the provider reports outside the text.
    ThinkingDelta(String),
    /// The model made progress that has no text: a piece of a native call, a signature. Keep-alives are
    /// not progress and must not be reported.
    Progress,
    /// The whole reply.
    Done(Box<Completion>),
}

/// What a provider and its model can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Takes tool definitions and answers with calls.
    pub native_tools: bool,
    /// Goes on with a last assistant message.
    pub assistant_prefix: bool,
    /// Takes pictures.
    pub images: bool,
    /// Takes recordings.
    pub audio: bool,
    /// Takes videos.
    #[serde(default)]
    pub video: bool,
    /// May report thinking outside the text.
    pub thinking: bool,
    /// Tokens that prompt and reply may have together, where known.
    pub context_length: Option<u64>,
}

/// How tokens are counted before a server has counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// OpenAI's o200k: exact for its models, an estimate for others.
    #[default]
    O200k,
    /// A quarter of the bytes: for what has no tokenizer. Needs no tables.
    QuarterOfBytes,
}

/// A stream of events, ended by [`StreamEvent::Done`] or by an error.
pub type EventStream = BoxStream<'static, Result<StreamEvent, LlmError>>;

/// One model behind one interface. Implement it to plug in a model of your own.
///
/// Dropping the future or the stream cancels the request.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The provider's name, as in the configuration.
    fn name(&self) -> &str;

    /// The model's name.
    fn model(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// How its tokens are counted.
    fn tokenizer(&self) -> Tokenizer {
        Tokenizer::default()
    }

    /// What its tokens cost, where the provider itself knows; `llm.price` takes its place. A price that nobody knows is
    /// none, and not 0.
    fn price(&self) -> Option<Price> {
        None
    }

    /// One try: no retries, no limits of time.
    ///
    /// # Errors
    ///
    /// Whatever went wrong before the first event; later faults come out of the stream.
    async fn stream(&self, request: &ChatRequest) -> Result<EventStream, LlmError>;

    /// The body that [`Provider::stream`] would send for a request; none where nothing is sent. For
    /// those who want to see, measure or compare requests.
    ///
    /// # Errors
    ///
    /// The request asks for what the provider cannot do.
    fn request_body(&self, request: &ChatRequest) -> Result<Option<Vec<u8>>, LlmError> {
        let _ = request;
        Ok(None)
    }

    /// Facts for the log beside name and model: address, parameters. Never secrets.
    fn describe(&self) -> Map<String, Value> {
        Map::new()
    }
}

impl fmt::Debug for dyn Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Provider").field("name", &self.name()).field("model", &self.model()).finish()
    }
}
