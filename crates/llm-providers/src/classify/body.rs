//! Reads error bodies in all the shapes that servers give them.

use std::time::Duration;

use serde_json::Value;

use super::delay;
use crate::scrub::Scrubber;

/// Characters of a server's words that an error carries.
const DETAIL: usize = 600;
/// Bytes of a body that are looked at for known words.
const LOOKED_AT: usize = 16 * 1024;

/// An error object, whatever its shape was.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WireError {
    /// What the server says.
    pub(crate) message: String,
    /// Its `type` or `status`.
    pub(crate) kind: String,
    /// Its `code`, where that is a word.
    pub(crate) code: String,
    /// Its `code`, where that is an HTTP status.
    pub(crate) status: Option<u16>,
    /// Tokens of the prompt and of the window, where they are fields of their own (llama.cpp).
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) context: Option<u64>,
    /// A pause that the body asks for (Gemini's `retryDelay`).
    pub(crate) retry_after: Option<Duration>,
}

impl WireError {
    /// Reads a response body, JSON or not.
    pub(crate) fn from_text(body: &str) -> Self {
        let parsed = serde_json::from_str::<Value>(body).ok();
        parsed.as_ref().and_then(Self::from_json).unwrap_or_else(|| Self {
            message: if looks_like_html(body) { html_words(body) } else { body.trim().to_owned() },
            ..Self::default()
        })
    }

    /// Reads an object that is or holds an error; none where it is something else.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Array(items) => items.first().and_then(Self::from_json),
            Value::Object(fields) => {
                if let Some(error) = fields.get("error").filter(|error| !error.is_null()) {
                    return Some(Self::from_error_field(error));
                }
                let is_error = fields.get("object").and_then(Value::as_str) == Some("error")
                    || fields.contains_key("detail")
                    || fields.contains_key("message");
                is_error.then(|| Self::from_error_field(value))
            }
            _ => None,
        }
    }

    fn from_error_field(error: &Value) -> Self {
        let Value::Object(fields) = error else {
            return Self { message: plain(error), ..Self::default() };
        };
        let text = |name: &str| fields.get(name).filter(|value| !value.is_null()).map(plain);
        let number = |name: &str| fields.get(name).and_then(Value::as_u64);
        let mut message =
            text("message").or_else(|| text("detail")).or_else(|| text("error")).unwrap_or_default();
        if let Some(raw) = fields.get("metadata").and_then(|metadata| metadata.get("raw")) {
            message = format!("{message}: {}", plain(raw));
        }
        if message.is_empty() {
            message = error.to_string();
        }
        let code = fields.get("code");
        let status = code
            .and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()))
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (300..=599).contains(code));
        let retry_after = fields
            .get("details")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .find_map(|detail| delay::span(detail.get("retryDelay")?.as_str()?));
        Self {
            message,
            kind: text("type").or_else(|| text("status")).unwrap_or_default(),
            code: code.and_then(Value::as_str).unwrap_or_default().to_owned(),
            status,
            prompt_tokens: number("n_prompt_tokens"),
            context: number("n_ctx"),
            retry_after,
        }
    }

    /// Takes secrets out of everything that is shown.
    pub(crate) fn scrub(&mut self, scrubber: &Scrubber) {
        for words in [&mut self.message, &mut self.kind, &mut self.code] {
            *words = scrubber.scrub(words);
        }
    }

    /// Everything that was said, in lower case, for looking up known words.
    pub(crate) fn words(&self) -> String {
        let message: String = self.message.chars().take(LOOKED_AT).collect();
        format!("{} {} {message}", self.kind, self.code).to_lowercase()
    }

    /// Type and code only, in lower case.
    pub(crate) fn tag(&self) -> String {
        format!("{} {}", self.kind, self.code).to_lowercase()
    }

    /// What is shown to people: one line, not too long.
    pub(crate) fn detail(&self) -> String {
        let mut detail = String::new();
        for tag in [&self.kind, &self.code] {
            if !tag.is_empty() && !detail.contains(tag.as_str()) {
                detail.push_str(tag);
                detail.push_str(": ");
            }
        }
        let line = one_line(&self.message, DETAIL);
        if line.is_empty() && detail.is_empty() {
            return "no explanation given".to_owned();
        }
        detail.push_str(&line);
        detail
    }
}

/// The text on one line, cut to so many characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        for character in word.chars() {
            if length >= most {
                line.push('…');
                return line;
            }
            line.push(character);
            length += 1;
        }
    }
    line
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether a body is a web page rather than an API's answer.
pub(crate) fn looks_like_html(body: &str) -> bool {
    let start: String = body.trim_start().chars().take(15).collect::<String>().to_lowercase();
    start.starts_with("<!doctype") || start.starts_with("<html") || start.starts_with("<head")
}

/// The title of a web page, or that it is one.
fn html_words(body: &str) -> String {
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|open| {
        let start = open + lower.get(open..)?.find('>')? + 1;
        let end = start + lower.get(start..)?.find("</title")?;
        body.get(start..end)
    });
    match title.map(str::trim).filter(|title| !title.is_empty()) {
        Some(title) => format!("a web page: {title}"),
        None => "a web page".to_owned(),
    }
}
