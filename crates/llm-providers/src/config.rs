//! What can be set about the model: the `llm` section of the configuration.
//!
//! Decides names, types and defaults. Where values come from is left to whoever fills it in; what a
//! provider's data file adds is decided in [`registry`](crate::Registry), and what is set here always
//! wins over it.

use std::fmt;
use std::time::Duration;

use core_protocol::DialectName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::address::without_secrets;
use crate::lenient;
use crate::quirks::Quirks;
use crate::{Engine, Price, Secret};

/// Longest span that a setting in seconds can mean: about 31 years.
const LONGEST_SECONDS: f64 = 1e9;

/// The `llm` section. `Debug` shows no secrets.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LlmConfig {
    /// `auto`, `reader`, or the name of a provider data file (`openai`, `anthropic`, `qwen`, `vllm`…).
    pub provider: String,
    /// The wire format; none: the provider's own.
    pub engine: Option<Engine>,
    /// The model, as the provider names it. Empty: the provider's default.
    #[serde(deserialize_with = "lenient::string")]
    pub model_name: String,
    /// Address of the API, such as `http://127.0.0.1:8000/v1`; none: the provider's own.
    pub base_url: Option<String>,
    /// The key; none: from the provider's environment variable.
    pub api_key: Option<Secret>,
    /// Sampling temperature; none: the server's default.
    pub temperature: Option<f64>,
    /// Nucleus sampling; 1 switches it off and is not sent.
    pub top_p: Option<f64>,
    /// Least probability relative to the likeliest token; 0 switches it off and is not sent.
    pub min_p: Option<f64>,
    /// Number of candidates; −1 or 0 switches it off and is not sent.
    pub top_k: Option<i64>,
    /// Penalty on tokens that occurred; 1 switches it off and is not sent.
    pub repetition_penalty: Option<f64>,
    /// Tokens to generate at most in one reply.
    pub max_tokens: u64,
    /// Tokens that prompt and reply may have together; none: from the model's data.
    pub max_context_length: Option<u64>,
    /// Whether tool calls are text in a dialect or the provider's own.
    pub tool_protocol: ToolProtocol,
    /// How calls are spelled in the text protocol.
    pub dialect: DialectName,
    /// Whether the model's text begins inside a think block that its template opened.
    pub starts_in_thinking: bool,
    /// Whether a reply is stopped at the end of its first call in the text protocol, so that a small model does not
    /// go on and invent the call's result. Only of use where one call of a reply is run.
    pub stop_after_call: bool,
    /// Tries, pauses and limits of time.
    pub retries: RetryConfig,
    /// How many requests may be under way at once.
    pub concurrency: ConcurrencyConfig,
    /// Fields put into every request body as they are; they win over everything else.
    pub extra_body: Map<String, Value>,
    /// Prices of the model; none: from the model's data.
    pub price: Option<Price>,
    /// Habits of the server that differ from the provider's data file.
    pub quirks: Quirks,
    /// Accepted for the sake of existing configurations; without effect.
    pub async_client: Option<bool>,
}

impl fmt::Debug for LlmConfig {
    /// As it is serialized, which masks keys, and with the address as it may be shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = Self { base_url: self.base_url.as_deref().map(without_secrets), ..self.clone() };
        let fields = serde_json::to_value(shown).map_err(|_| fmt::Error)?;
        write!(formatter, "LlmConfig {fields}")
    }
}

impl Default for LlmConfig {
    fn default() -> Self {
        Self {
            provider: "auto".to_owned(),
            engine: None,
            model_name: String::new(),
            base_url: None,
            api_key: None,
            temperature: None,
            top_p: None,
            min_p: None,
            top_k: None,
            repetition_penalty: None,
            max_tokens: 4096,
            max_context_length: None,
            tool_protocol: ToolProtocol::Text,
            dialect: DialectName::default(),
            starts_in_thinking: false,
            stop_after_call: false,
            retries: RetryConfig::default(),
            concurrency: ConcurrencyConfig::default(),
            extra_body: Map::new(),
            price: None,
            quirks: Quirks::default(),
            async_client: None,
        }
    }
}

/// How tool calls travel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolProtocol {
    /// Tools are described in the system prompt, calls are text in a dialect.
    #[default]
    Text,
    /// The provider's own tool calls.
    Native,
}

/// Tries, pauses and limits of time. All times are in seconds; a limit of 0 is no limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// Tries of one call.
    pub max_tries: u32,
    /// Pause after the first failed try; it doubles with each further one, ±20 %.
    pub base_wait: f64,
    /// Longest pause.
    pub max_wait: f64,
    /// Longest `Retry-After` that is waited for; a longer one is an error at once.
    pub retry_after_max: f64,
    /// Limit for building up a connection.
    pub connect_timeout: f64,
    /// Limit from the start of a try to the model's first progress.
    pub first_event_timeout: f64,
    /// Limit between two signs of progress. Keep-alives are none.
    pub idle_timeout: f64,
    /// Limit of one try.
    pub try_timeout: f64,
    /// Limit of all tries of one call, their pauses included.
    pub total_timeout: f64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_tries: 10,
            base_wait: 2.0,
            max_wait: 60.0,
            retry_after_max: 120.0,
            connect_timeout: 15.0,
            first_event_timeout: 300.0,
            idle_timeout: 180.0,
            try_timeout: 600.0,
            total_timeout: 1800.0,
        }
    }
}

/// How many requests to one server with one key may be under way at once. The allowance finds itself: it grows while
/// all of it is used and nothing is refused, and is cut when the server refuses (429, 529, overloaded).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConcurrencyConfig {
    /// Whether requests wait for each other at all. The embedded reader never does.
    pub enabled: bool,
    /// Allowance at the beginning.
    pub start: u32,
    /// The allowance is never cut below this.
    pub floor: u32,
    /// The allowance never grows beyond this; with `start` and `floor` of the same value it is fixed.
    pub ceiling: u32,
    /// What a round of requests without refusal adds.
    pub step: f64,
    /// What a refusal multiplies the allowance by.
    pub factor: f64,
}

impl Default for ConcurrencyConfig {
    fn default() -> Self {
        Self { enabled: true, start: 8, floor: 1, ceiling: 256, step: 1.0, factor: 0.9 }
    }
}

/// A number of seconds as a duration; what is no number or negative is none at all.
#[must_use]
pub(crate) fn seconds(value: f64) -> Duration {
    if value.is_finite() && value > 0.0 {
        Duration::from_secs_f64(value.min(LONGEST_SECONDS))
    } else if value == f64::INFINITY {
        Duration::from_secs_f64(LONGEST_SECONDS)
    } else {
        Duration::ZERO
    }
}

/// A limit in seconds as a duration; none where it is switched off.
#[must_use]
pub(crate) fn limit(value: f64) -> Option<Duration> {
    Some(seconds(value)).filter(|limit| !limit.is_zero())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LlmConfig, limit, seconds};

    #[test]
    fn seconds_are_total() {
        let check = |value: f64, expected: Duration| assert_eq!(seconds(value), expected, "{value}");
        check(1.5, Duration::from_millis(1500));
        check(0.0, Duration::ZERO);
        check(-3.0, Duration::ZERO);
        check(f64::NAN, Duration::ZERO);
        check(1e300, Duration::from_secs(1_000_000_000));
        check(f64::INFINITY, Duration::from_secs(1_000_000_000));
        assert_eq!(limit(0.0), None);
        assert_eq!(limit(2.0), Some(Duration::from_secs(2)));
    }

    #[test]
    fn the_section_survives_a_round_trip_and_rejects_unknown_keys() {
        let config: LlmConfig = serde_yaml::from_str(
            "provider: qwen\nmodel_name: 7\nbase_url: http://127.0.0.1:1/v1\ntop_k: -1\nasync_client: true\n",
        )
        .unwrap();
        assert_eq!(config.model_name, "7");
        assert_eq!(config.max_tokens, 4096);
        let again: LlmConfig = serde_json::from_value(serde_json::to_value(&config).unwrap()).unwrap();
        assert_eq!(again, config);
        let error = serde_yaml::from_str::<LlmConfig>("modle_name: x").unwrap_err().to_string();
        assert!(error.contains("modle_name") && error.contains("model_name"), "{error}");
    }
}
