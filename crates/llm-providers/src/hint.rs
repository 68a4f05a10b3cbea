//! What a person can do about an error.
//!
//! Decides the words: each names the setting that is to be changed, and where its value came from where
//! that is known. Which parameter a server complains about is told by a table.

use crate::{Endpoint, LlmError, Unreachable};

/// What servers complain about, in lower case, and what cures it. The first that is found holds, so
/// what is more special stands first.
const PARAMETERS: &[(&str, &str)] = &[
    (
        "max_completion_tokens",
        "set llm.quirks.max_tokens_field: max_completion_tokens, or to max_tokens where it is refused",
    ),
    ("max_output_tokens", "change llm.max_tokens"),
    (
        "max_tokens",
        "change llm.max_tokens, or set llm.quirks.max_tokens_field to the name that the server takes",
    ),
    ("stream_options", "set llm.quirks.stream_usage: false"),
    ("continue_final_message", "set llm.quirks.assistant_prefix: none"),
    ("add_generation_prompt", "set llm.quirks.assistant_prefix: none"),
    ("prefill", "set llm.quirks.assistant_prefix: none"),
    ("repetition_penalty", "take out llm.repetition_penalty"),
    ("repeat_penalty", "take out llm.repetition_penalty"),
    ("temperature", "take out llm.temperature"),
    ("top_p", "take out llm.top_p"),
    ("top_k", "take out llm.top_k"),
    ("min_p", "take out llm.min_p"),
    ("encrypted_content", "set llm.quirks.encrypted_reasoning: false"),
    ("encrypted content", "set llm.quirks.encrypted_reasoning: false"),
    ("reasoning_content", "change llm.quirks.send_reasoning (never, with_tool_calls, always)"),
    ("reasoning_details", "set llm.quirks.reasoning_details: false"),
    ("thought_signature", "set llm.tool_protocol: text"),
    ("cache_control", "set llm.quirks.prompt_cache: false"),
    ("stop_sequences", "set llm.stop_after_call: false"),
    ("'stop'", "set llm.stop_after_call: false"),
    ("`stop`", "set llm.stop_after_call: false"),
    ("tool choice", "set llm.tool_protocol: text"),
    ("tool_choice", "set llm.tool_protocol: text"),
    ("does not support tools", "set llm.tool_protocol: text"),
    ("image", "use a model that takes pictures, or set llm.quirks.images: false"),
];

impl LlmError {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Configuration { hint, .. } => hint.clone(),
            Self::UnknownProvider { nearest, .. } => Some(match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => {
                    "`openai_compatible` with llm.base_url reaches any OpenAI-compatible server".to_owned()
                }
            }),
            Self::MissingKey { variables, .. } => Some(match variables.as_slice() {
                [] => "set llm.api_key".to_owned(),
                names => format!("set {} in the environment or in .env, or llm.api_key", names.join(" or ")),
            }),
            Self::Authentication { endpoint, .. } => Some(key_hint(endpoint)),
            Self::QuotaExhausted { endpoint, .. } => {
                Some(format!("add credit to the account at `{}` or use another key", endpoint.provider))
            }
            Self::ModelNotFound { endpoint, .. } => Some(format!(
                "the name is from {}: check llm.model_name; most servers list their models at <base URL>/models",
                from(endpoint.origins.model.as_deref(), "llm.model_name"),
            )),
            Self::NotAnApi { endpoint, .. } => Some(format!(
                "the address is from {}: check llm.base_url; for most servers it ends in /v1",
                from(endpoint.origins.url.as_deref(), "llm.base_url"),
            )),
            Self::InvalidRequest { detail, .. } => Some(parameter_hint(detail)),
            Self::Unsupported { .. } => Some("use another provider or llm.tool_protocol: text".to_owned()),
            Self::ContextExceeded { .. } => {
                Some("a shorter history, a smaller llm.max_tokens or a model with a larger window".to_owned())
            }
            Self::RateLimited { retry_after: Some(wait), .. } => {
                Some(format!("try again in {} s", wait.as_secs_f64().ceil()))
            }
            Self::RateLimited { .. } | Self::Overloaded { .. } => Some("try again later".to_owned()),
            Self::Server { .. } | Self::StreamBroken { .. } | Self::Malformed { .. } => {
                Some("try again later, or look at the server's own log".to_owned())
            }
            Self::Unreachable { endpoint, reason, .. } => Some(format!(
                "{} (the address is from {})",
                match reason {
                    Unreachable::Refused => "start the server, or check host and port in llm.base_url",
                    Unreachable::UnknownHost => "check the host name in llm.base_url and the network",
                    Unreachable::Tls => {
                        "check the address; where no root certificates are installed, install ca-certificates or set SSL_CERT_FILE"
                    }
                    Unreachable::Other => "check llm.base_url, the network and any proxy",
                },
                from(endpoint.origins.url.as_deref(), "llm.base_url"),
            )),
            Self::Timeout { stage, .. } => {
                Some(format!("raise {} where the server needs longer", stage.setting()))
            }
            Self::Cassette(error) => Some(error.hint()),
        }
    }
}

fn from<'a>(origin: Option<&'a str>, setting: &'a str) -> &'a str {
    origin.unwrap_or(setting)
}

fn key_hint(endpoint: &Endpoint) -> String {
    let Endpoint { provider, model, origins, .. } = endpoint;
    match &origins.key {
        Some(origin) => format!(
            "the key is from {origin}: check that it is one of provider `{provider}` and may use `{model}`, or set llm.api_key"
        ),
        None => format!(
            "set llm.api_key or the environment variable of provider `{provider}` to a key that may use `{model}`"
        ),
    }
}

fn parameter_hint(detail: &str) -> String {
    let words = detail.to_lowercase();
    let cure = PARAMETERS.iter().find(|(name, _)| words.contains(name)).map(|(_, cure)| *cure);
    cure.unwrap_or(
        "take out the parameter that the server names (llm, llm.extra_body), or set llm.provider or llm.quirks to what the server is",
    )
    .to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{Endpoint, LlmError, Origins};

    #[test]
    fn a_wrong_setting_is_named_with_its_origin() {
        let origins = Origins {
            model: Some("OPENAI_MODEL in the environment".into()),
            url: Some("llm.base_url".into()),
            key: Some("OPENAI_API_KEY in the environment".into()),
        };
        let endpoint =
            Arc::new(Endpoint { provider: "openai".into(), model: "m".into(), url: None, origins });
        let detail = || String::new();
        let check = |error: LlmError, words: &[&str]| {
            let hint = error.hint().unwrap();
            assert!(words.iter().all(|word| hint.contains(word)), "{hint}");
        };
        check(
            LlmError::Authentication { endpoint: Arc::clone(&endpoint), status: Some(401), detail: detail() },
            &["OPENAI_API_KEY in the environment", "llm.api_key", "`openai`"],
        );
        check(
            LlmError::ModelNotFound { endpoint: Arc::clone(&endpoint), detail: detail() },
            &["OPENAI_MODEL in the environment", "llm.model_name"],
        );
        check(
            LlmError::NotAnApi { endpoint: Arc::clone(&endpoint), status: Some(404), detail: detail() },
            &["is from llm.base_url", "/v1"],
        );
        let nothing_set =
            LlmError::Authentication { endpoint: Arc::default(), status: None, detail: detail() };
        check(nothing_set, &["set llm.api_key"]);
    }

    #[test]
    fn a_refused_parameter_is_named_with_its_setting() {
        let check = |detail: &str, expected: &str| {
            let error = LlmError::InvalidRequest {
                endpoint: Arc::default(),
                status: Some(400),
                detail: detail.into(),
            };
            let hint = error.hint().unwrap();
            assert!(hint.contains(expected), "{detail}: {hint}");
        };
        check(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "llm.quirks.max_tokens_field: max_completion_tokens",
        );
        check("Unsupported value: 'temperature' does not support 0.3 with this model.", "llm.temperature");
        check("Unsupported parameter: 'stop' is not supported with this model.", "llm.stop_after_call");
        check("Unknown field: stream_options", "llm.quirks.stream_usage");
        check(
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            "llm.quirks.send_reasoning",
        );
        check("\"auto\" tool choice requires --enable-auto-tool-choice", "llm.tool_protocol: text");
        check("something else is wrong", "llm.quirks");
    }
}
