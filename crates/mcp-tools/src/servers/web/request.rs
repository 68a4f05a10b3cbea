//! Requests that are made again where that may help.
//!
//! Decides when a request is over and in which words a service's refusal is told.

use std::future::Future;
use std::time::Duration;

use crate::egress::{Backoff, EgressError, Fetched, is_retryable_status};

/// Characters of a service's answer that are shown.
const SHOWN: usize = 300;

/// Makes a request until there is an answer that another try would not change.
pub(super) async fn with_retries<F, R>(pause: Duration, request: F) -> Result<Fetched, EgressError>
where
    F: Fn() -> R,
    R: Future<Output = Result<Fetched, EgressError>>,
{
    let mut backoff = Backoff::new(pause);
    loop {
        let answer = request().await;
        let asked = match &answer {
            Ok(fetched) if is_retryable_status(fetched.status) => fetched.retry_after,
            Err(error) if error.is_retryable() => None,
            _ => return answer,
        };
        let Some(wait) = backoff.next(asked) else { return answer };
        tracing::debug!(?wait, "a request is made again");
        tokio::time::sleep(wait).await;
    }
}

/// What a bad status means, with the start of the answer; keys in it are hidden.
pub(super) fn status_words(fetched: &Fetched, secrets: &[&str]) -> String {
    let meaning = match fetched.status {
        400 | 422 => "the request was not understood",
        401 => "the key is missing or wrong",
        402 => "the account has no credit left",
        403 => "access is denied",
        404 | 410 => "there is no such page",
        408 => "it took too long",
        429 => "there were too many requests",
        451 => "it may not be shown here",
        300..=399 => "it redirects elsewhere",
        500.. => "the server has a fault of its own",
        _ => "it was refused",
    };
    let body = String::from_utf8_lossy(&fetched.body);
    let is_text = fetched.content_type.as_deref().is_none_or(|kind| !kind.contains("html"));
    let words = hidden(body.trim(), secrets);
    let excerpt: String = words.chars().take(SHOWN).collect();
    let excerpt = if is_text && !excerpt.is_empty() { format!(": {excerpt}") } else { String::new() };
    format!("HTTP status {}, {meaning}{excerpt}", fetched.status)
}

/// A text without keys.
pub(super) fn hidden(text: &str, secrets: &[&str]) -> String {
    let mut shown = text.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= 4) {
        shown = shown.replace(secret, "***");
    }
    shown
}
