//! Habits in which servers of one wire format differ.
//!
//! Decides which differences there are and what holds where nothing is said. Which provider has which
//! is data: `data/providers/*.yaml`, overlaid by the model's entry there and by `llm.quirks`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Secret;

/// Habits of a server. What is none is taken from the layer below.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// Whether replies are streamed; true where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Whether the server takes `stream_options: {include_usage: true}`; true where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_usage: Option<bool>,
    /// The field that bounds the reply: `max_tokens` or `max_completion_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_field: Option<String>,
    /// Sampling parameters that the server takes: our name → its name. Others are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<BTreeMap<String, String>>,
    /// Sampling parameters that this model refuses although the server takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_parameters: Option<Vec<String>>,
    /// Whether `temperature` and `top_p` together are refused; `temperature` is sent then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_excludes_top_p: Option<bool>,
    /// How a last assistant message is gone on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assistant_prefix: Option<AssistantPrefix>,
    /// Which thinking is sent back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_reasoning: Option<SendReasoning>,
    /// The field in which thinking is sent back: `reasoning_content` or `reasoning`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_field: Option<String>,
    /// Whether thinking is read and sent back as `reasoning_details`, exactly as it came (OpenRouter);
    /// false where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_details: Option<bool>,
    /// Whether thinking is asked for in encrypted form, so that it can be sent back although the server
    /// keeps nothing (OpenAI's Responses); false where nothing is said, as models without thinking refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted_reasoning: Option<bool>,
    /// Whether native tool calls work; true where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_tools: Option<bool>,
    /// Whether pictures are taken; false where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether recordings are taken; false where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
    /// Whether videos are taken, as parts `video_url` of a message (vLLM, SGLang); false where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<bool>,
    /// Whether thinking may be reported outside the text; false where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// Whether cache breakpoints are set (Anthropic); true where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<bool>,
    /// Life of the cache, `5m` or `1h` (Anthropic); the server's default where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_ttl: Option<String>,
    /// How the key is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Further headers of every request; their values are not shown, since some are keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, Secret>>,
    /// Fields put into every request body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_body: Option<Map<String, Value>>,
    /// Fields put into bodies with a `stop` field, so that the server leaves the stop sequence in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_stop: Option<Map<String, Value>>,
}

/// How a last assistant message is gone on with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssistantPrefix {
    /// Not at all.
    #[default]
    None,
    /// `continue_final_message: true` and `add_generation_prompt: false` in the body (vLLM, SGLang).
    ContinueFinalMessage,
    /// It just stands last (Anthropic's older models, llama.cpp).
    Plain,
    /// `prefix: true` in the message (DeepSeek, Mistral).
    PrefixField,
    /// `partial: true` in the message (Moonshot, DashScope).
    PartialField,
}

/// Which thinking is sent back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendReasoning {
    /// None of it.
    #[default]
    Never,
    /// That of messages with native tool calls.
    WithToolCalls,
    /// All of it.
    Always,
}

/// How the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`.
    XApiKey,
    /// `api-key: KEY`.
    ApiKey,
}

impl Quirks {
    /// These habits, and where they say nothing, those of the layer below. Headers, body fields are
    /// merged by name; other lists and tables are replaced as a whole.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        let headers = merge(self.headers, below.headers, |mut below, above| {
            below.extend(above);
            below
        });
        let extra_body = merge(self.extra_body, below.extra_body, |mut below, above| {
            below.extend(above);
            below
        });
        Self {
            stream: self.stream.or(below.stream),
            stream_usage: self.stream_usage.or(below.stream_usage),
            max_tokens_field: self.max_tokens_field.or(below.max_tokens_field),
            parameters: self.parameters.or(below.parameters),
            refused_parameters: self.refused_parameters.or(below.refused_parameters),
            temperature_excludes_top_p: self.temperature_excludes_top_p.or(below.temperature_excludes_top_p),
            assistant_prefix: self.assistant_prefix.or(below.assistant_prefix),
            send_reasoning: self.send_reasoning.or(below.send_reasoning),
            reasoning_field: self.reasoning_field.or(below.reasoning_field),
            reasoning_details: self.reasoning_details.or(below.reasoning_details),
            encrypted_reasoning: self.encrypted_reasoning.or(below.encrypted_reasoning),
            native_tools: self.native_tools.or(below.native_tools),
            images: self.images.or(below.images),
            audio: self.audio.or(below.audio),
            video: self.video.or(below.video),
            thinking: self.thinking.or(below.thinking),
            prompt_cache: self.prompt_cache.or(below.prompt_cache),
            cache_ttl: self.cache_ttl.or(below.cache_ttl),
            auth: self.auth.or(below.auth),
            headers,
            extra_body,
            with_stop: self.with_stop.or(below.with_stop),
        }
    }
}

fn merge<T>(above: Option<T>, below: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (above, below) {
        (Some(above), Some(below)) => Some(join(below, above)),
        (above, below) => above.or(below),
    }
}

#[cfg(test)]
mod tests {
    use super::{AssistantPrefix, Quirks};

    fn quirks(yaml: &str) -> Quirks {
        serde_yaml::from_str(yaml).unwrap()
    }

    #[test]
    fn what_is_said_above_wins() {
        let below = quirks("stream: false\nimages: true\nheaders: {a: '1', b: '2'}");
        let above = quirks("stream: true\nassistant_prefix: plain\nheaders: {b: '3'}");
        let both = above.over(below);
        assert_eq!(both.stream, Some(true));
        assert_eq!(both.images, Some(true));
        assert_eq!(both.assistant_prefix, Some(AssistantPrefix::Plain));
        assert_eq!(both.headers, quirks("headers: {a: '1', b: '3'}").headers);
    }

    #[test]
    fn unknown_habits_are_refused() {
        assert!(serde_yaml::from_str::<Quirks>("streem: true").is_err());
    }
}
