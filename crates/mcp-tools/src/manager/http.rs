//! MCP over streamable HTTP.
//!
//! Decides the limits of the connection and the words for what a server's status means. Sessions
//! that a server has forgotten are opened again by `rmcp`, once, and only for requests that the
//! server has refused unseen.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};

use super::failure::StartFailure;
use super::lines::MAX_MESSAGE;

mod refusals;

/// The longest that connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Attempts to resume a broken event stream.
const RESUME_ATTEMPTS: usize = 5;
/// The pause before the first of them; it doubles up to the longest.
const RESUME_PAUSE: Duration = Duration::from_millis(500);
const RESUME_LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Headers that the protocol itself sets.
const RESERVED: &[&str] =
    &["accept", "content-type", "content-length", "host", "mcp-session-id", "last-event-id"];

/// A connection to an endpoint; nothing is sent yet.
///
/// # Errors
/// What in the address or the headers cannot be used.
pub(crate) fn transport(
    url: &str,
    bearer: Option<&str>,
    headers: &BTreeMap<String, String>,
    start_limit: Duration,
) -> Result<StreamableHttpClientTransport<refusals::Client>, StartFailure> {
    let bad = |problem: String| StartFailure::BadSpec(problem);
    check_url(url).map_err(bad)?;
    if let Some(bearer) = bearer {
        HeaderValue::from_str(&format!("Bearer {bearer}"))
            .map_err(|_| bad("the bearer token holds characters that no header may hold".to_owned()))?;
    }
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let (name, value) = header(name, value).map_err(bad)?;
        custom.insert(name, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_sse_event_size(MAX_MESSAGE)
        .reinit_on_expired_session(true);
    let mut resume = ExponentialBackoff::default();
    resume.max_times = Some(RESUME_ATTEMPTS);
    resume.base_duration = RESUME_PAUSE;
    resume.max_delay = Some(RESUME_LONGEST_PAUSE);
    config.retry_config = Arc::new(resume);
    config.auth_header = bearer.map(str::to_owned);
    let client = client(start_limit).map_err(|error| bad(format!("no HTTP client: {}", chain(&error))))?;
    Ok(StreamableHttpClientTransport::with_client(refusals::Client(client), config))
}

/// Whether an address can be one of an endpoint.
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    match reqwest::Url::parse(url) {
        Ok(parsed) if !matches!(parsed.scheme(), "http" | "https") => {
            Err(format!("the address has the scheme `{}`: use http or https", parsed.scheme()))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the address cannot be read: {error}: write it as https://HOST/PATH")),
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
        return Err(format!("the header `{name}` is set by the protocol: remove it"));
    }
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` cannot be the name of a header"))?;
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("the value of the header `{name}` holds characters that no header may hold"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

fn client(start_limit: Duration) -> Result<reqwest::Client, reqwest::Error> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only where another thread was quicker, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    // No limit on a whole request: an answer may come as a stream, and every call has its own limit.
    reqwest::Client::builder()
        .connect_timeout(CONNECT_LIMIT.min(start_limit))
        .redirect(reqwest::redirect::Policy::custom(same_origin))
        .build()
}

/// Follows what keeps method and body, on the same host only: headers may hold tokens.
fn same_origin(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if same && matches!(attempt.status().as_u16(), 307 | 308) && attempt.previous().len() < 5 {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// What an error of the transport means and what to do.
pub(crate) fn problem_words(error: &(dyn Error + 'static)) -> String {
    let mut source = Some(error);
    while let Some(current) = source {
        if let Some(error) = current.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return endpoint_problem(error);
        }
        source = current.source();
    }
    chain(error)
}

fn endpoint_problem(error: &StreamableHttpError<reqwest::Error>) -> String {
    match error {
        StreamableHttpError::AuthRequired(_) => status_words(401),
        StreamableHttpError::InsufficientScope(_) => status_words(403),
        StreamableHttpError::HttpStatus(status) => status_words(status.status),
        StreamableHttpError::UnexpectedServerResponse(text) => {
            let status = text.strip_prefix("HTTP ").and_then(|rest| rest.get(..3)?.parse().ok());
            match status {
                Some(status) => status_words(status),
                None => format!("an answer that is no MCP: {text}"),
            }
        }
        StreamableHttpError::UnexpectedContentType(kind) => {
            let kind = kind.as_deref().unwrap_or("no type");
            format!("the answer has the content type {kind}: is this the address of an MCP endpoint?")
        }
        StreamableHttpError::Client(error) if error.is_connect() && error.is_timeout() => {
            "no connection in time: check the address and the network".to_owned()
        }
        StreamableHttpError::Client(error) if error.is_connect() => {
            format!("no connection: {}: is the server running?", innermost(error))
        }
        StreamableHttpError::Client(error) => match error.status() {
            Some(status) => status_words(status.as_u16()),
            // The error itself repeats the address, which may hold a key.
            None => format!("the connection broke off: {}", innermost(error)),
        },
        other => chain(other),
    }
}

fn status_words(status: u16) -> String {
    let advice = match status {
        401 => "a token is missing or wrong: set the server's `Authorization` header",
        403 => "the token does not permit this",
        404 => "nothing is there: check the path of the address, which often ends in /mcp",
        405 | 406 => "the address is no streamable HTTP endpoint",
        429 => "too many requests: try again later",
        500.. => "the server has a fault of its own: try again later",
        _ => "check the address",
    };
    format!("HTTP status {status}: {advice}")
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(current) = source {
        let text = current.to_string();
        if !words.contains(&text) {
            words.push_str(": ");
            words.push_str(&text);
        }
        source = current.source();
    }
    words
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut current = error;
    while let Some(source) = current.source() {
        current = source;
    }
    current.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_https_client_can_be_built() {
        client(Duration::from_secs(1)).unwrap();
    }

    #[test]
    fn addresses_and_headers_are_checked() {
        for (url, expected) in [
            ("https://host/mcp", None),
            ("http://127.0.0.1:8000/mcp", None),
            ("ftp://host/", Some("scheme `ftp`")),
            ("host/mcp", Some("cannot be read")),
        ] {
            let problem = check_url(url).err();
            match expected {
                None => assert_eq!(problem, None, "{url}"),
                Some(words) => assert!(problem.unwrap().contains(words), "{url}"),
            }
        }
        for (name, value, good) in [
            ("X-Key", "v", true),
            ("Authorization", "Bearer t", true),
            ("Accept", "v", false),
            ("a b", "v", false),
            ("X-Key", "a\nb", false),
        ] {
            assert_eq!(header(name, value).is_ok(), good, "{name}");
        }
    }
}
