//! The engine for OpenAI's Responses and for servers that speak the same.
//!
//! Decides what such a server can do. Nothing is kept on the server: each request carries the whole history, and
//! thinking goes back in the encrypted form in which it came.

mod items;
mod reply;
mod request;

use serde_json::{Map, Value};

use crate::engine::{EngineSettings, Format, HttpProvider, ReplyContext, RequestShape};
use crate::{Capabilities, ChatRequest, LlmError};

/// How a Responses endpoint is spoken to.
#[derive(Debug)]
pub(crate) struct Responses {
    shape: RequestShape,
}

impl Responses {
    pub(crate) fn provider(settings: &EngineSettings) -> Result<HttpProvider<Self>, LlmError> {
        let quirks = &settings.quirks;
        let capabilities = Capabilities {
            native_tools: quirks.native_tools.unwrap_or(true),
            // The format has no way to say that a message is only a beginning.
            assistant_prefix: false,
            images: quirks.images.unwrap_or(false),
            audio: false,
            video: false,
            thinking: quirks.thinking.or(quirks.encrypted_reasoning).unwrap_or(false),
            context_length: settings.context_length,
        };
        let format = Self { shape: settings.shape() };
        HttpProvider::new(settings, settings.http("/responses"), capabilities, format)
    }
}

impl Format for Responses {
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
