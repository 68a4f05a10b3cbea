//! The servers `tool-reading` and `tool-reader`: documents to Markdown.
//!
//! Decides which formats are read and how each is turned into text; [`to_markdown`] does that for
//! anyone. Where a document comes from is left to `tool`.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{InProcessServer, in_process};

mod encoding;
mod format;
mod html;
mod json;
mod nesting;
mod table;
mod tool;

use format::Format;

/// What a reading server may open.
#[derive(Debug, Clone)]
pub struct ReadingOptions {
    /// Directories and files that may be read, such as those given with the task. Empty: the working
    /// directory.
    pub allowed_roots: Vec<PathBuf>,
    /// Largest document, bytes. Default 64 MiB.
    pub file_limit: u64,
    /// Characters of a document that one call shows. Default 80,000: less than what results of tools
    /// are cut to.
    pub page: usize,
}

impl Default for ReadingOptions {
    fn default() -> Self {
        Self { allowed_roots: Vec::new(), file_limit: 64 << 20, page: 80_000 }
    }
}

/// The server `tool-reading`.
#[must_use]
pub fn server(options: ReadingOptions) -> Arc<dyn InProcessServer> {
    named_server("tool-reading", options)
}

/// The same server under another name: `tool-reader`.
#[must_use]
pub fn named_server(name: &str, options: ReadingOptions) -> Arc<dyn InProcessServer> {
    let options = Arc::new(options);
    in_process(name, move || tool::ReadingTools::new(Arc::clone(&options)))
}

/// A document as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its text, Markdown where it has structure.
    pub markdown: String,
    /// Its title, where the format has one.
    pub title: Option<String>,
    /// What it was: `HTML`, `CSV`, `text`…
    pub format: &'static str,
    /// The character encoding it was in.
    pub encoding: &'static str,
}

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadingError {
    /// Its format is known and not read.
    #[error("`{name}` is {format}, which cannot be read yet. Read are: {}", READ)]
    Unsupported {
        /// The document's name.
        name: String,
        /// What it is, with an article.
        format: &'static str,
    },
    /// It is no text, and nothing else that is known.
    #[error("`{name}` is not text, and not a format that is known. Read are: {}", READ)]
    Binary {
        /// The document's name.
        name: String,
    },
    /// It broke what reads its format.
    #[error("`{name}` could not be read as {format}: {problem}")]
    Broken {
        /// The document's name.
        name: String,
        /// What it was read as.
        format: &'static str,
        /// What went wrong.
        problem: String,
    },
}

impl ReadingError {
    /// A short name for logs: `unsupported`, `binary`, `broken`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "unsupported",
            Self::Binary { .. } => "binary",
            Self::Broken { .. } => "broken",
        }
    }

    /// Never: the same bytes come out the same.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unsupported { .. } | Self::Binary { .. } | Self::Broken { .. } => false,
        }
    }
}

/// For error texts.
const READ: &str = "plain text, source code, Markdown, HTML, CSV and TSV, JSON, XML";

/// Turns a document into Markdown. The name, of which only the ending counts, says what it is where the
/// bytes do not.
///
/// # Errors
/// [`ReadingError`] where the bytes are no text or in a format that is not read.
pub fn to_markdown(bytes: &[u8], name: &str) -> Result<Document, ReadingError> {
    let named = |name: &str| name.to_owned();
    let format = match format::of(bytes, name) {
        format::Found::Readable(format) => format,
        format::Found::Unsupported(format) => {
            return Err(ReadingError::Unsupported { name: named(name), format });
        }
        format::Found::Binary => return Err(ReadingError::Binary { name: named(name) }),
    };
    let (text, encoding) = encoding::decode(bytes, format == Format::Html);
    let plain = |markdown: String, format| Document { markdown, title: None, format, encoding };
    Ok(match format {
        Format::Text => plain(text, "text"),
        Format::Markdown => Document { title: first_heading(&text), ..plain(text, "Markdown") },
        Format::Code(language) => plain(fenced(&text, language), "source code"),
        Format::Json => match json::indented(&text) {
            Some(indented) => plain(fenced(&indented, "json"), "JSON"),
            // Not JSON after all, or several documents: shown as it is.
            None => plain(fenced(&text, "json"), "JSON"),
        },
        Format::Table(delimiter) => match table::markdown(&text, delimiter) {
            Some(table) => plain(table, "CSV"),
            None => plain(text, "text"),
        },
        Format::Html => {
            let page = html::markdown(text).map_err(|problem| ReadingError::Broken {
                name: named(name),
                format: "HTML",
                problem,
            })?;
            Document { title: page.title, ..plain(page.markdown, "HTML") }
        }
    })
}

fn first_heading(text: &str) -> Option<String> {
    let heading = text.lines().take(50).find_map(|line| line.strip_prefix("# "))?;
    Some(heading.trim().to_owned()).filter(|heading| !heading.is_empty())
}

/// In a fence that is longer than any inside.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.saturating_add(1).max(3));
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches(['\n', '\r']))
}

#[cfg(test)]
mod tests;
