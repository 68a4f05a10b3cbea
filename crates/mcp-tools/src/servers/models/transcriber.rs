//! A service that writes down what is said: OpenAI's `/audio/transcriptions`, which others offer as well.
//!
//! Decides how a recording is sent and what an answer means. The service's address comes from the configuration and is
//! trusted; what it answers is limited all the same.

use std::time::Duration;

use serde::Deserialize;

use super::kinds::Kind;
use crate::egress::{Backoff, Egress, ServiceRequest, is_retryable_status};

/// For all tries: less than a tool's call has.
const LIMIT: Duration = Duration::from_secs(280);
/// Characters of an error that a service tells.
const LONGEST_ERROR: usize = 500;

/// Where recordings are sent.
#[derive(Clone)]
pub struct TranscriberOptions {
    /// The address with its version: `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key, where one is needed.
    pub api_key: Option<String>,
    /// The model: `whisper-1`, `gpt-4o-transcribe`.
    pub model: String,
    /// Before a second try.
    pub pause: Duration,
}

impl TranscriberOptions {
    /// Without a key.
    #[must_use]
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), api_key: None, model: model.into(), pause: Duration::from_secs(1) }
    }
}

/// Shows no key.
impl std::fmt::Debug for TranscriberOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TranscriberOptions")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("api_key", &self.api_key.as_ref().map(|_| "***"))
            .finish_non_exhaustive()
    }
}

/// A service that writes down what is said.
#[derive(Debug, Clone)]
pub struct Transcriber(Result<Service, String>);

#[derive(Debug, Clone)]
struct Service {
    options: TranscriberOptions,
    egress: Egress,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
}

#[derive(Deserialize)]
struct Refusal {
    error: RefusalDetail,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RefusalDetail {
    Text(String),
    Object { message: String },
}

impl Transcriber {
    /// Over that way out.
    #[must_use]
    pub fn new(options: TranscriberOptions, egress: Egress) -> Self {
        Self(Ok(Service { options, egress }))
    }

    /// None: every recording is answered with what is missing.
    #[must_use]
    pub fn unset(problem: String) -> Self {
        Self(Err(problem))
    }

    /// Why nothing can be written down.
    pub(super) fn problem(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    pub(super) async fn transcribe(&self, bytes: &[u8], kind: Kind) -> Result<String, String> {
        self.0.as_ref().map_err(String::clone)?.transcribe(bytes, kind).await
    }
}

impl Service {
    async fn transcribe(&self, bytes: &[u8], kind: Kind) -> Result<String, String> {
        let asked = tokio::time::timeout(LIMIT, self.tries(bytes, kind)).await;
        asked.unwrap_or_else(|_| {
            Err(format!("The recording was not written down within {} s.", LIMIT.as_secs()))
        })
    }

    async fn tries(&self, bytes: &[u8], kind: Kind) -> Result<String, String> {
        let boundary = boundary(bytes);
        let body = self.form(bytes, kind, &boundary);
        let mut headers =
            vec![("content-type".to_owned(), format!("multipart/form-data; boundary={boundary}"))];
        headers.extend(
            self.options.api_key.as_ref().map(|key| ("authorization".to_owned(), format!("Bearer {key}"))),
        );
        let mut backoff = Backoff::new(self.options.pause);
        loop {
            let request = ServiceRequest {
                url: self.url(),
                headers: headers.clone(),
                body: Some(body.clone()),
                time_limit: Some(LIMIT),
            };
            let (problem, may_pass, asked) = match self.egress.ask_service(request).await {
                Ok(answer) if answer.is_success() => return text(&answer.body),
                Ok(answer) => {
                    let problem = format!(
                        "The service for recordings answered with status {}{}",
                        answer.status,
                        told(&answer.body)
                    );
                    (problem, is_retryable_status(answer.status), answer.retry_after)
                }
                Err(error) => {
                    let may_pass = error.is_retryable();
                    (format!("The service for recordings could not be asked: {error}."), may_pass, None)
                }
            };
            match backoff.next(asked).filter(|_| may_pass) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(problem),
            }
        }
    }

    fn url(&self) -> String {
        let base = self.options.base_url.trim().trim_end_matches('/');
        if base.ends_with("/audio/transcriptions") {
            base.to_owned()
        } else {
            format!("{base}/audio/transcriptions")
        }
    }

    fn form(&self, bytes: &[u8], kind: Kind, boundary: &str) -> Vec<u8> {
        let mut body = Vec::with_capacity(bytes.len() + 1024);
        for (name, value) in [("model", self.options.model.as_str()), ("response_format", "json")] {
            let part =
                format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
            body.extend_from_slice(part.as_bytes());
        }
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"recording.{}\"\r\ncontent-type: {}\r\n\r\n",
            kind.ending, kind.mime_type
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        body
    }
}

/// A line that the recording does not hold.
fn boundary(bytes: &[u8]) -> String {
    (0u32..)
        .map(|number| format!("part-of-a-recording-{number}"))
        .find(|candidate| !bytes.windows(candidate.len()).any(|window| window == candidate.as_bytes()))
        .unwrap_or_default()
}

fn text(body: &[u8]) -> Result<String, String> {
    match serde_json::from_slice::<Answer>(body) {
        Ok(answer) => Ok(answer.text),
        // Some services send the text alone.
        Err(_) if !body.starts_with(b"{") => Ok(String::from_utf8_lossy(body).trim().to_owned()),
        Err(error) => {
            Err(format!("The service for recordings answered with something else than a text: {error}."))
        }
    }
}

fn told(body: &[u8]) -> String {
    let told = match serde_json::from_slice::<Refusal>(body) {
        Ok(Refusal { error: RefusalDetail::Text(text) | RefusalDetail::Object { message: text } }) => text,
        Err(_) => String::from_utf8_lossy(body).trim().to_owned(),
    };
    let told: String = told.chars().take(LONGEST_ERROR).collect();
    if told.is_empty() { ".".to_owned() } else { format!(": {told}") }
}
