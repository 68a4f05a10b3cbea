//! Sends spans to a collector: OTLP over HTTP, as JSON. Decides the address and the limits; the spans are
//! [`trace::otlp`](crate::trace::otlp)'s.

use std::time::Duration;

/// Where collectors take traces.
const PATH: &str = "v1/traces";
/// How long a collector may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How much of a refusal is shown.
const ANSWER_CHARACTERS: usize = 300;

/// Sends one export request. An address without a path gets `/v1/traces`.
///
/// # Errors
///
/// What went wrong, in words: an address that is none, a collector that is not there or refuses.
pub async fn send(endpoint: &str, spans: &serde_json::Value) -> Result<(), String> {
    let (status, answer) = llm_providers::post_json(&address(endpoint), spans, LIMIT).await?;
    if (200..300).contains(&status) {
        return Ok(());
    }
    let answer: String = answer.chars().take(ANSWER_CHARACTERS).collect();
    Err(format!("the collector answered with status {status}: {answer}"))
}

fn address(endpoint: &str) -> String {
    let base = endpoint.trim_end_matches('/');
    let after_host = base.split_once("://").map_or("", |(_, rest)| rest).split_once('/');
    if after_host.is_some() { base.to_owned() } else { format!("{base}/{PATH}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://host/v1/traces", "https://host/v1/traces"),
            ("https://host/otlp/v1/traces/", "https://host/otlp/v1/traces"),
        ] {
            assert_eq!(address(endpoint), expected);
        }
    }
}
