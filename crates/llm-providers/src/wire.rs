//! From a response's bytes to events, whatever the wire format.
//!
//! Decides how a body is read: as server-sent events, or as one JSON object where the server does not
//! stream, told apart by what arrives rather than by what the headers claim. What the data means is
//! left to an engine's [`Assembler`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use core_protocol::Completion;
use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use crate::classify::{WireError, from_stream, looks_like_html, one_line};
use crate::http::HttpEndpoint;
use crate::provider::EventStream;
use crate::sse::{EventTooLong, SseDecoder, SseEvent};
use crate::{LlmError, StreamEvent};

/// Longest body, in bytes, that is read; no model says more.
const MAX_BODY: usize = 256 * 1024 * 1024;
/// How long the end of a body is waited for once the reply is whole.
const AFTER_END: Duration = Duration::from_millis(50);
/// Characters of a body that an error shows.
const SHOWN: usize = 200;

/// Makes a completion out of an engine's events.
pub(crate) trait Assembler: Send + 'static {
    /// Takes one event in. Appends what it brings. An error ends the stream.
    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<StreamEvent>) -> Result<(), LlmError>;

    /// Whether the reply's end was seen, so that nothing more is waited for.
    fn is_complete(&self) -> bool;

    /// Takes a whole reply in, as it comes without streaming.
    fn whole(&mut self, body: &Value, out: &mut VecDeque<StreamEvent>) -> Result<(), LlmError>;

    /// The reply, once no more bytes come; an error where it is not complete. Appends what is found out
    /// only then.
    fn finish(&mut self, out: &mut VecDeque<StreamEvent>) -> Result<Completion, LlmError>;
}

/// How the body is read; not known before its first byte that is no blank.
enum Mode {
    Unknown,
    Events(SseDecoder),
    Json,
    Page,
}

struct Reader<A> {
    http: Arc<HttpEndpoint>,
    body: BoxStream<'static, reqwest::Result<Bytes>>,
    content_type: String,
    mode: Mode,
    /// The bytes so far where they must be read as a whole; else their beginning, for messages.
    kept: Vec<u8>,
    read: usize,
    seen_event: bool,
    assembler: A,
    queue: VecDeque<StreamEvent>,
    /// What went wrong behind the events in the queue.
    fault: Option<LlmError>,
    ended: bool,
}

/// Reads a response as events.
pub(crate) fn read<A: Assembler>(http: Arc<HttpEndpoint>, response: Response, assembler: A) -> EventStream {
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase();
    // Boxed, as it is moved with every event.
    let reader = Box::new(Reader {
        http,
        body: response.bytes_stream().boxed(),
        content_type,
        mode: Mode::Unknown,
        kept: Vec::new(),
        read: 0,
        seen_event: false,
        assembler,
        queue: VecDeque::new(),
        fault: None,
        ended: false,
    });
    stream::try_unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Ok(event.map(|event| (event, reader)))
    })
    .boxed()
}

impl<A: Assembler> Reader<A> {
    /// The next event. What came before a fault is given before the fault.
    async fn next(&mut self) -> Result<Option<StreamEvent>, LlmError> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(Some(event));
            }
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            if self.ended {
                return Ok(None);
            }
            self.fault = self.read_on().await.err();
        }
    }

    async fn read_on(&mut self) -> Result<(), LlmError> {
        match self.body.next().await {
            Some(Ok(bytes)) => {
                self.take(&bytes)?;
                if self.ended {
                    self.read_to_end().await;
                }
            }
            // The reply may be whole although the connection was not closed as it should be.
            Some(Err(error)) => match self.assembler.finish(&mut self.queue) {
                Ok(completion) if self.seen_event => self.end(completion),
                _ => return Err(broken(self.http.transport_error(error))),
            },
            None => self.finish()?,
        }
        Ok(())
    }

    /// Reads what follows the reply's end, so that the connection can serve the next request. A server
    /// that does not close the body is not waited for.
    async fn read_to_end(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.body.next().await {} };
        let _ = tokio::time::timeout(AFTER_END, rest).await;
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), LlmError> {
        self.read = self.read.saturating_add(bytes.len());
        if self.read > MAX_BODY {
            return Err(self.malformed(format!("it is longer than {MAX_BODY} bytes")));
        }
        if matches!(self.mode, Mode::Unknown) {
            self.kept.extend_from_slice(bytes);
            let Some(mode) = mode_of(&self.kept, &self.content_type) else { return Ok(()) };
            self.mode = mode;
            if matches!(self.mode, Mode::Events(_)) {
                let start = std::mem::take(&mut self.kept);
                let decoded = self.decode(&start);
                self.kept = start;
                self.kept.truncate(SHOWN * 4);
                return decoded;
            }
            return Ok(());
        }
        match self.mode {
            Mode::Events(_) => self.decode(bytes),
            Mode::Unknown | Mode::Json => {
                self.kept.extend_from_slice(bytes);
                Ok(())
            }
            Mode::Page => {
                if self.kept.len() < 16 * 1024 {
                    self.kept.extend_from_slice(bytes);
                }
                Ok(())
            }
        }
    }

    /// Gives the events in the bytes to the assembler.
    fn decode(&mut self, mut bytes: &[u8]) -> Result<(), LlmError> {
        let Mode::Events(decoder) = &mut self.mode else { return Ok(()) };
        loop {
            let event = match decoder.next(&mut bytes) {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(()),
                Err(EventTooLong) => return Err(self.malformed("one event is too long".to_owned())),
            };
            self.seen_event = true;
            self.assembler.event(event, &mut self.queue)?;
            if self.assembler.is_complete() {
                let completion = self.assembler.finish(&mut self.queue)?;
                self.end(completion);
                return Ok(());
            }
        }
    }

    fn finish(&mut self) -> Result<(), LlmError> {
        if let Mode::Events(decoder) = &mut self.mode {
            if let Some(event) = decoder.finish() {
                self.seen_event = true;
                self.assembler.event(event, &mut self.queue)?;
            }
            if !self.seen_event {
                return Err(self.malformed(format!("no events in it: {}", self.start())));
            }
            let completion = self.assembler.finish(&mut self.queue)?;
            self.end(completion);
            return Ok(());
        }
        let endpoint = Arc::clone(self.http.endpoint());
        match &self.mode {
            Mode::Page => {
                let page = WireError::from_text(&String::from_utf8_lossy(&self.kept));
                Err(LlmError::NotAnApi { endpoint, status: None, detail: page.detail() })
            }
            Mode::Json => {
                let Ok(value) = serde_json::from_slice::<Value>(&self.kept) else {
                    return Err(self.malformed(format!("no valid JSON: {}", self.start())));
                };
                self.kept.clear();
                self.assembler.whole(&value, &mut self.queue)?;
                let completion = self.assembler.finish(&mut self.queue)?;
                self.end(completion);
                Ok(())
            }
            Mode::Unknown | Mode::Events(_) => {
                Err(LlmError::StreamBroken { endpoint, detail: "the answer is empty".to_owned() })
            }
        }
    }

    fn end(&mut self, completion: Completion) {
        self.queue.push_back(StreamEvent::Done(Box::new(completion)));
        self.ended = true;
    }

    fn start(&self) -> String {
        let text = String::from_utf8_lossy(&self.kept);
        self.http.scrubber().scrub(&one_line(&text, SHOWN))
    }

    fn malformed(&self, detail: String) -> LlmError {
        LlmError::Malformed { endpoint: Arc::clone(self.http.endpoint()), detail }
    }
}

/// A fault in the middle of a body is a broken stream, whatever the client library calls it.
fn broken(error: LlmError) -> LlmError {
    match error {
        LlmError::Timeout { endpoint, .. } => {
            LlmError::StreamBroken { endpoint, detail: "the connection timed out".to_owned() }
        }
        other => other,
    }
}

/// What the first bytes are; none while they are only blanks.
fn mode_of(start: &[u8], content_type: &str) -> Option<Mode> {
    let bytes = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start);
    let first = bytes.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let rest = bytes.get(first..).unwrap_or_default();
    Some(match rest.first() {
        Some(b'{' | b'[') => Mode::Json,
        Some(b'<') if content_type.contains("html") || looks_like_html(&String::from_utf8_lossy(rest)) => {
            Mode::Page
        }
        _ => Mode::Events(SseDecoder::default()),
    })
}

/// The JSON of an event's data. An error object in it is an error.
pub(crate) fn event_json(http: &HttpEndpoint, event: SseEvent<'_>) -> Result<Value, LlmError> {
    let Ok(value) = serde_json::from_str::<Value>(event.data) else {
        let shown = http.scrubber().scrub(&one_line(event.data, SHOWN));
        if event.event == "error" {
            let error = WireError { message: shown, ..WireError::default() };
            return Err(from_stream(http.endpoint(), error));
        }
        return Err(LlmError::Malformed {
            endpoint: Arc::clone(http.endpoint()),
            detail: format!("an event holds no valid JSON: {shown}"),
        });
    };
    let announced = event.event == "error" || value.get("type").and_then(Value::as_str) == Some("error");
    check_error(http, &value, announced)?;
    Ok(value)
}

/// An error where an object is one. `announced`: something else says that it is.
pub(crate) fn check_error(http: &HttpEndpoint, value: &Value, announced: bool) -> Result<(), LlmError> {
    let Some(mut error) = error_in(value, announced) else { return Ok(()) };
    error.scrub(http.scrubber());
    Err(from_stream(http.endpoint(), error))
}

/// The error that an object is, if it is one.
fn error_in(value: &Value, announced: bool) -> Option<WireError> {
    let is_error_object = value.get("object").and_then(Value::as_str) == Some("error");
    let has_error = value.get("error").is_some_and(|error| !error.is_null());
    // Replies and events of either format have one of these; a bare `detail` or `message` is an error.
    let is_reply = ["choices", "content", "type"].iter().any(|field| value.get(*field).is_some());
    if !announced && !has_error && !is_error_object && is_reply {
        return None;
    }
    WireError::from_json(value)
        .or_else(|| announced.then(|| WireError { message: value.to_string(), ..WireError::default() }))
}
