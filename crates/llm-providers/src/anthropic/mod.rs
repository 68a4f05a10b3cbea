//! The engine for Anthropic's Messages.
//!
//! Decides what such a server can do and what its headers are.

mod cache;
mod reply;
mod request;

use serde_json::{Map, Value};

use crate::engine::{EngineSettings, Format, HttpProvider, ReplyContext, RequestShape};
use crate::quirks::{AssistantPrefix, Auth};
use crate::{Capabilities, ChatRequest, LlmError};

/// The version of the API whose events are read here.
const VERSION: &str = "2023-06-01";

/// How a Messages endpoint is spoken to.
#[derive(Debug)]
pub(crate) struct Messages {
    shape: RequestShape,
}

impl Messages {
    pub(crate) fn provider(settings: &EngineSettings) -> Result<HttpProvider<Self>, LlmError> {
        let mut http = settings.http("/v1/messages");
        http.auth = settings.quirks.auth.unwrap_or(Auth::XApiKey);
        if !http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("anthropic-version")) {
            http.headers.push(("anthropic-version".to_owned(), VERSION.into()));
        }
        let format = Self { shape: settings.shape() };
        let quirks = &settings.quirks;
        let prefix = quirks.assistant_prefix.unwrap_or_default();
        let capabilities = Capabilities {
            native_tools: quirks.native_tools.unwrap_or(true),
            // A reply that begins with thinking cannot begin with given words.
            assistant_prefix: prefix != AssistantPrefix::None && !format.thinks(),
            images: quirks.images.unwrap_or(false),
            audio: false,
            video: false,
            thinking: quirks.thinking.unwrap_or(false),
            context_length: settings.context_length,
        };
        HttpProvider::new(settings, http, capabilities, format)
    }
}

impl Format for Messages {
    type Assembler = reply::ReplyAssembler;

    fn body(&self, request: &ChatRequest) -> Map<String, Value> {
        self.request_body(request)
    }

    fn assembler(
        &self,
        _request: &ChatRequest,
        _body: &Map<String, Value>,
        context: ReplyContext,
    ) -> Self::Assembler {
        reply::ReplyAssembler::new(context)
    }
}
