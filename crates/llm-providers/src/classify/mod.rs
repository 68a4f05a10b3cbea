//! What a server's refusal means.
//!
//! Decides, from HTTP status and body (or from an error inside a stream that began with 200), which
//! [`LlmError`] it is. The words that servers use for one and the same thing are tables here, so that
//! a new wording is a new line. Open to providers outside this crate.

mod body;
mod context;
mod delay;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use body::{WireError, looks_like_html, one_line};

use crate::{Endpoint, LlmError};

/// Words in type or code that mean an empty account.
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "billing_error",
    "insufficient_balance",
    "insufficient balance",
    "exceeded_current_quota_error",
    "billing_hard_limit_reached",
    "insufficient credits",
    "credit balance is too low",
];

/// Words that mean a bad key.
const AUTHENTICATION: &[&str] = &[
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "api key not valid",
    "api_key_invalid",
    "incorrect api key",
    "invalid api key",
    "invalid x-api-key",
];

/// Words that mean an unknown model.
const MODEL: &[&str] = &[
    "model_not_found",
    "model not exist",
    "model does not exist",
    "not a valid model",
    "model not found",
    "invalid model",
    "unknown model",
    "no such model",
    "not_found_error",
];

/// Words in type or code that mean too much load.
const OVERLOADED: &[&str] = &["overloaded_error", "engine_overloaded", "overloaded", "at capacity"];

/// Words in type or code that mean a rate limit.
const RATE: &[&str] = &["rate_limit", "too_many_requests", "resource_exhausted", "ratelimit"];

/// Words in the type of an error without status that mean that the request itself is wrong.
const INVALID: &[&str] =
    &["invalid_request", "badrequest", "bad_request", "unprocessable", "invalid_argument", "validation"];

/// The error that a response with a bad status is.
///
/// `retry_after` is what the headers ask for; where they are silent, the body is looked at too.
#[must_use]
pub fn from_response(
    endpoint: &Arc<Endpoint>,
    status: u16,
    retry_after: Option<Duration>,
    body: &str,
) -> LlmError {
    classify(endpoint, Some(status), retry_after, WireError::from_text(body))
}

/// The error that an error object inside a stream is.
pub(crate) fn from_stream(endpoint: &Arc<Endpoint>, error: WireError) -> LlmError {
    classify(endpoint, error.status, None, error)
}

fn classify(
    endpoint: &Arc<Endpoint>,
    status: Option<u16>,
    retry_after: Option<Duration>,
    error: WireError,
) -> LlmError {
    let endpoint = Arc::clone(endpoint);
    let words = error.words();
    let tag = error.tag();
    let has = |table: &[&str]| table.iter().any(|phrase| words.contains(phrase));
    let tagged = |table: &[&str]| table.iter().any(|phrase| tag.contains(phrase));
    let retry_after = retry_after.or_else(|| error.retry_after.or_else(|| delay::in_text(&words)));
    let detail = error.detail();

    let may_be_context = !matches!(status, Some(401..=404 | 429));
    if let Some((prompt_tokens, limit)) = context::exceeded(&error, &words).filter(|_| may_be_context) {
        return LlmError::ContextExceeded { endpoint, prompt_tokens, limit, detail };
    }
    if status == Some(402) || has(QUOTA) {
        return LlmError::QuotaExhausted { endpoint, detail };
    }
    match status {
        Some(401 | 403) => LlmError::Authentication { endpoint, status, detail },
        Some(404) if has(MODEL) || names_model(&words, &endpoint.model) => {
            LlmError::ModelNotFound { endpoint, detail }
        }
        Some(300..=399 | 404 | 405 | 410) => LlmError::NotAnApi { endpoint, status, detail },
        Some(413) => LlmError::ContextExceeded { endpoint, prompt_tokens: None, limit: None, detail },
        Some(429) if tagged(OVERLOADED) => LlmError::Overloaded { endpoint, status, retry_after, detail },
        Some(429) => LlmError::RateLimited { endpoint, retry_after, detail },
        Some(529 | 503) => LlmError::Overloaded { endpoint, status, retry_after, detail },
        Some(408 | 409 | 425 | 500..) => LlmError::Server { endpoint, status, retry_after, detail },
        Some(400..=499) if has(AUTHENTICATION) => LlmError::Authentication { endpoint, status, detail },
        Some(400..=499) if has(MODEL) => LlmError::ModelNotFound { endpoint, detail },
        Some(400..=499) => LlmError::InvalidRequest { endpoint, status, detail },
        Some(_) | None => {
            if tagged(OVERLOADED) {
                LlmError::Overloaded { endpoint, status, retry_after, detail }
            } else if tagged(RATE) {
                LlmError::RateLimited { endpoint, retry_after, detail }
            } else if has(AUTHENTICATION) {
                LlmError::Authentication { endpoint, status, detail }
            } else if tagged(MODEL) {
                LlmError::ModelNotFound { endpoint, detail }
            } else if tagged(INVALID) {
                LlmError::InvalidRequest { endpoint, status, detail }
            } else {
                LlmError::Server { endpoint, status, retry_after, detail }
            }
        }
    }
}

/// A 404 whose words speak of the model rather than of the path.
fn names_model(words: &str, model: &str) -> bool {
    words.contains("model") || (!model.is_empty() && words.contains(&model.to_lowercase()))
}
