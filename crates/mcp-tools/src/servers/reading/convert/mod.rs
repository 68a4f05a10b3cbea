//! Documents to Markdown.
//!
//! Decides which reader a document goes to, and that no document, however it was made, takes the program along: a
//! reader works on a thread of its own with a large stack, and what goes wrong in it becomes an error.

mod apart;
mod cfb;
mod docx;
mod encoding;
mod epub;
mod error;
mod format;
mod html;
mod json;
mod layout;
mod members;
mod nesting;
mod odf;
mod office;
mod ooxml;
mod package;
mod pdf;
pub(super) mod percent;
mod pptx;
mod spreadsheet;
mod table;
mod xls;
mod xlsx;
mod xml;

use serde::{Deserialize, Serialize};

pub use apart::{ReaderProcess, read_apart};
use error::Problem;
pub use error::ReadingError;
use format::{Format, Found};

/// Bytes of stack for a reader.
const STACK: usize = 64 << 20;

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

/// A document that is read.
struct Source<'a> {
    bytes: &'a [u8],
    /// The archives around it.
    depth: usize,
}

/// What a reader makes of a document.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Converted {
    markdown: String,
    title: Option<String>,
}

/// The reader of one format.
trait Converter: Sync {
    /// The format with an article, for error texts.
    fn name(&self) -> &'static str;

    /// The text of a document.
    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem>;
}

/// Turns a document into Markdown. The name, of which only the ending counts, says what it is where the
/// bytes do not.
///
/// # Errors
/// [`ReadingError`] where the bytes are no text or in a format that is not read.
pub fn to_markdown(bytes: &[u8], name: &str) -> Result<Document, ReadingError> {
    convert(bytes, name, 0)
}

fn convert(bytes: &[u8], name: &str, depth: usize) -> Result<Document, ReadingError> {
    let named = || name.to_owned();
    let format = match format::of(bytes, name) {
        Found::Readable(format) => format,
        Found::Unsupported(format) => return Err(ReadingError::Unsupported { name: named(), format }),
        Found::Encrypted => return Err(Problem::Encrypted.of(name, "an Office document")),
        Found::Binary => return Err(ReadingError::Binary { name: named() }),
    };
    if let Some((converter, short)) = converter(format) {
        let source = Source { bytes, depth };
        let read = if depth == 0 { on_large_stack(converter, &source) } else { converter.convert(&source) };
        let Converted { markdown, title } = read.map_err(|problem| problem.of(name, converter.name()))?;
        return Ok(Document { markdown, title, format: short, encoding: "binary" });
    }
    let (text, encoding) = encoding::decode(bytes, format == Format::Html);
    let plain = |markdown: String, format| Document { markdown, title: None, format, encoding };
    Ok(match format {
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
            let page = html::markdown(text).map_err(|problem| Problem::Broken(problem).of(name, "HTML"))?;
            Document { title: page.title, ..plain(page.markdown, "HTML") }
        }
        _ => plain(text, "text"),
    })
}

/// Who reads a format that is no text, and its short name.
fn converter(format: Format) -> Option<(&'static dyn Converter, &'static str)> {
    Some(match format {
        Format::Pdf => (&apart::Apart(pdf::Pdf), "PDF"),
        Format::Docx => (&docx::Docx, "DOCX"),
        Format::Pptx => (&pptx::Pptx, "PPTX"),
        Format::Xlsx => (&xlsx::Xlsx, "XLSX"),
        Format::Xls => (&xls::Xls, "XLS"),
        Format::OpenDocument => (&odf::Odf, "OpenDocument"),
        Format::Epub => (&epub::Epub, "EPUB"),
        Format::Zip => (&members::Zip, "ZIP"),
        Format::Old(old) => office::converter(old),
        Format::Text
        | Format::Markdown
        | Format::Code(_)
        | Format::Html
        | Format::Json
        | Format::Table(_) => return None,
    })
}

fn on_large_stack(converter: &dyn Converter, source: &Source<'_>) -> Result<Converted, Problem> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("document-reader".into()).stack_size(STACK);
        let reader = builder
            .spawn_scoped(scope, || converter.convert(source))
            .map_err(|error| Problem::Broken(format!("no thread could be had: {error}")))?;
        reader.join().unwrap_or_else(|_| Err(Problem::Broken("its reader failed".into())))
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
