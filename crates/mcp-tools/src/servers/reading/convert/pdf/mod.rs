//! PDF.
//!
//! Decides how much of a file is read, and tells apart a file without text from one that cannot be read. Finding
//! objects and unpacking streams is left to `hayro_syntax`, the text of a page to `content` and `font`, and its order
//! and structure to `lines` and `blocks`.

mod blocks;
mod cmap;
mod content;
mod font;
mod glyphs;
mod lines;

use std::time::{Duration, Instant};

use hayro_syntax::{DecryptionError, LoadPdfError, Pdf as File};

use super::layout::one_line;
use super::{Converted, Converter, Problem, Source};
use content::Budget;

pub(super) struct Pdf;

/// Pages that are read.
const MOST_PAGES: usize = 5_000;
/// For all pages; checked between operators.
const LIMIT: Duration = Duration::from_secs(45);
/// Characters of a whole file.
const MOST_GLYPHS: usize = 20_000_000;

impl Converter for Pdf {
    fn name(&self) -> &'static str {
        "a PDF"
    }

    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem> {
        let start = memchr::memmem::find(source.bytes, b"%PDF-").unwrap_or(0);
        let file = File::new(source.bytes[start..].to_vec()).map_err(|error| match error {
            LoadPdfError::Decryption(DecryptionError::PasswordProtected) => Problem::Encrypted,
            LoadPdfError::Decryption(problem) => {
                Problem::Broken(format!("it is encrypted in a way that is not known: {problem:?}"))
            }
            LoadPdfError::Invalid => Problem::Broken("its table of objects cannot be read".into()),
        })?;
        let mut budget = Budget { until: Instant::now() + LIMIT, glyphs: MOST_GLYPHS };
        let mut fonts = font::Fonts::default();
        let mut pages = Vec::new();
        for page in file.pages().iter().take(MOST_PAGES) {
            let glyphs = content::glyphs(page, &mut fonts, &mut budget).map_err(Problem::TooLarge)?;
            pages.push(lines::of_page(glyphs));
        }
        if pages.is_empty() {
            return Err(Problem::Broken("it has no pages".into()));
        }
        if pages.iter().all(Vec::is_empty) {
            if !has_end(source.bytes) {
                return Err(Problem::Broken(
                    "its end is missing, and no text is found in what is there: it was probably not transferred whole"
                        .into(),
                ));
            }
            return Err(Problem::NoText(pages.len()));
        }
        let mut markdown = blocks::markdown(&pages);
        let left_out = file.pages().len().saturating_sub(MOST_PAGES);
        if left_out > 0 {
            markdown.push_str(&format!("\n\n[{left_out} more pages were not read.]"));
        }
        let title = file.metadata().title.as_deref().map(text_string).map(|title| one_line(&title));
        Ok(Converted { markdown, title: title.filter(|title| !title.is_empty()) })
    }
}

/// Whether a file goes on to where its table of objects is told.
fn has_end(bytes: &[u8]) -> bool {
    const TAIL: usize = 2048;
    memchr::memmem::find(&bytes[bytes.len().saturating_sub(TAIL)..], b"startxref").is_some()
}

/// A text outside of pages: UTF-16 or UTF-8 with a mark, else nearly Latin-1.
fn text_string(bytes: &[u8]) -> String {
    match bytes {
        [0xFE, 0xFF, rest @ ..] => {
            let units: Vec<u16> =
                rest.as_chunks::<2>().0.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
            String::from_utf16_lossy(&units)
        }
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        bytes => bytes.iter().map(|byte| glyphs::pdf_doc(*byte)).collect(),
    }
}
