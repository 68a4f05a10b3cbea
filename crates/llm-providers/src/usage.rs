//! Token counts as OpenAI and its followers write them.
//!
//! Decides which fields mean what, over both of OpenAI's formats and the servers that have fields of their own.

use core_protocol::Usage;
use serde::Deserialize;

use crate::lenient_json::{Number, Object};

/// A `usage` object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireUsage {
    prompt_tokens: Number,
    input_tokens: Number,
    completion_tokens: Number,
    output_tokens: Number,
    prompt_tokens_details: Object<PromptDetails>,
    input_tokens_details: Object<PromptDetails>,
    completion_tokens_details: Object<ReplyDetails>,
    output_tokens_details: Object<ReplyDetails>,
    /// DeepSeek's.
    prompt_cache_hit_tokens: Number,
    /// Moonshot's.
    cached_tokens: Number,
    reasoning_tokens: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Number,
    cache_write_tokens: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReplyDetails {
    reasoning_tokens: Number,
}

impl WireUsage {
    /// The tokens; none where the object tells of none.
    pub(crate) fn read(&self) -> Option<Usage> {
        let input = self.prompt_tokens.0.or(self.input_tokens.0);
        let output = self.completion_tokens.0.or(self.output_tokens.0);
        if input.is_none() && output.is_none() {
            return None;
        }
        let prompt = self.prompt_tokens_details.0.as_ref().or(self.input_tokens_details.0.as_ref());
        let reply = self.completion_tokens_details.0.as_ref().or(self.output_tokens_details.0.as_ref());
        Some(Usage {
            input: input.unwrap_or(0),
            output: output.unwrap_or(0),
            cache_read: prompt
                .and_then(|details| details.cached_tokens.0)
                .or(self.prompt_cache_hit_tokens.0)
                .or(self.cached_tokens.0)
                .unwrap_or(0),
            cache_write: prompt.and_then(|details| details.cache_write_tokens.0).unwrap_or(0),
            reasoning: reply
                .and_then(|details| details.reasoning_tokens.0)
                .or(self.reasoning_tokens.0)
                .unwrap_or(0),
        })
    }
}
