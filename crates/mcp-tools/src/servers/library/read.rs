//! Reading a whole document, page by page, and what to say where there is no such document.

use strsim::normalized_levenshtein;
use tantivy::collector::DocSetCollector;
use tantivy::query::TermQuery;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, Term};

use super::error::LibraryError;
use super::index::{CollectionIndex, guarded};
use super::passages::break_point;
use super::schema::StoredPassage;
use super::search::search;

/// Characters of a page, about.
pub const PAGE_CHARACTERS: usize = 8000;
/// Ids that are suggested.
const SUGGESTIONS: usize = 5;
/// Those of them that are written nearly the same.
const SPELLED_ALIKE: usize = 3;
/// Ids that are compared with an unknown one.
const COMPARED: usize = 50_000;
/// Characters of an id that are compared.
const COMPARED_CHARACTERS: usize = 60;

/// A page of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The document's id.
    pub id: String,
    /// The document's title.
    pub title: String,
    /// Where the document comes from.
    pub source: String,
    /// The terms under which its text may be used, where they are known.
    pub license: Option<String>,
    /// Markdown.
    pub text: String,
    /// Characters before the page.
    pub offset: u64,
    /// Characters of the whole document.
    pub total: u64,
    /// Where the next page starts; none where this is the last.
    pub next: Option<u64>,
}

impl Page {
    /// The page as Markdown under a heading that says what it is and where it goes on.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let Self { id, title, source, license, text, offset, total, next } = self;
        let end = offset + text.chars().count() as u64;
        let license = license.as_ref().map(|license| format!(" ({license})")).unwrap_or_default();
        let position = match (next, *offset) {
            (None, 0) => format!("{total}, complete"),
            (None, offset) => format!("{offset} to {end} of {total}, the end"),
            (Some(next), offset) => {
                format!("{offset} to {end} of {total}; for the next page read `{id}` with offset {next}")
            }
        };
        format!("# {title}\n\nSource: {source}{license}\nCharacters: {position}\n\n{text}")
    }
}

/// A page of a document, from `offset` characters on.
pub(super) fn read(indexes: &[CollectionIndex], id: &str, offset: u64) -> Result<Page, LibraryError> {
    let id = id.trim().trim_matches(['`', '"', '\'']);
    let place = id.split_once('/').and_then(|(name, document)| {
        indexes.iter().find(|index| index.name == name).map(|index| (index, document))
    });
    let page = match place {
        Some((index, document)) => page(index, document, offset)?,
        None => None,
    };
    match page {
        Some(page) => Ok(page),
        None => Err(LibraryError::UnknownDocument { id: id.to_owned(), nearest: nearest(indexes, id) }),
    }
}

fn page(index: &CollectionIndex, document: &str, offset: u64) -> Result<Option<Page>, LibraryError> {
    let addresses = guarded(&index.name, || addresses(index, document))?;
    let Some((last_start, last)) = addresses.last() else {
        return Ok(None);
    };
    let stored = |address| guarded(&index.name, || index.fields.stored(&index.searcher, address));
    let last: StoredPassage = stored(*last)?;
    let total = last_start + last.body.chars().count() as u64;
    let id = format!("{}/{document}", index.name);
    if offset > 0 && offset >= total {
        return Err(LibraryError::OffsetPastEnd { id, offset, total });
    }
    let first = addresses.partition_point(|(start, _)| *start <= offset).saturating_sub(1);
    let mut text = String::new();
    let mut skip = offset - addresses[first].0;
    let mut room = PAGE_CHARACTERS as u64;
    for (_, address) in &addresses[first..] {
        let body = stored(*address)?.body;
        let piece: String = body.chars().skip(skip as usize).take(room as usize).collect();
        room -= piece.chars().count() as u64;
        skip = 0;
        text.push_str(&piece);
        if room == 0 {
            break;
        }
    }
    let shown = text.chars().count() as u64;
    let mut next = None;
    if offset + shown < total {
        text.truncate(page_end(&text));
        next = Some(offset + text.chars().count() as u64);
    }
    let StoredPassage { title, source, license, .. } = last;
    Ok(Some(Page { id, title, source, license, text, offset, total, next }))
}

/// Where to end a page that is not the last: at a paragraph or a sentence of its last tenth, where
/// there is one.
fn page_end(text: &str) -> usize {
    let tail = text.char_indices().rev().nth(PAGE_CHARACTERS / 10).map_or(0, |(at, _)| at);
    if let Some(at) = text[tail..].rfind("\n\n") {
        return tail + at + 2;
    }
    if let Some(at) = text[tail..].rfind('\n') {
        return tail + at + 1;
    }
    if text.ends_with(char::is_whitespace) {
        return text.len();
    }
    // The limit is one byte short of all, so that a break is looked for.
    let end = break_point(text, text.len().saturating_sub(1));
    if end > tail { end } else { text.len() }
}

/// The passages of a document with where they start, in order.
fn addresses(index: &CollectionIndex, document: &str) -> tantivy::Result<Vec<(u64, DocAddress)>> {
    let term = Term::from_field_text(index.fields.id, document);
    let query = TermQuery::new(term, IndexRecordOption::Basic);
    let mut found = Vec::new();
    for address in index.searcher.search(&query, &DocSetCollector)? {
        let segment = index.searcher.segment_reader(address.segment_ord);
        let starts = segment.fast_fields().u64("start")?;
        found.push((starts.first(address.doc_id).unwrap_or_default(), address));
    }
    found.sort_unstable();
    Ok(found)
}

/// Ids like one that does not exist: those whose last part is written nearly the same, then those
/// that a search for its words finds.
fn nearest(indexes: &[CollectionIndex], id: &str) -> Vec<String> {
    let wanted = last_part(id);
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut alike: Vec<(f64, String)> = Vec::new();
    for (index, known) in ids(indexes).into_iter().take(COMPARED) {
        let score = normalized_levenshtein(&last_part(&known), &wanted);
        if score > 0.6 {
            alike.push((score, format!("{}/{known}", indexes[index].name)));
        }
    }
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut nearest: Vec<String> = alike.into_iter().take(SPELLED_ALIKE).map(|(_, id)| id).collect();
    for result in search(indexes, &wanted, SUGGESTIONS).map(|answer| answer.results).unwrap_or_default() {
        if nearest.len() < SUGGESTIONS && !nearest.contains(&result.id) {
            nearest.push(result.id);
        }
    }
    nearest
}

/// What tells an id from its neighbours: the words after the last slash, in lower case, without a
/// file's ending.
fn last_part(id: &str) -> String {
    let id = id.trim_end_matches('/');
    let part = id.rsplit('/').next().unwrap_or_default();
    let part = part
        .rsplit_once('.')
        .filter(|(stem, ending)| !stem.is_empty() && ending.len() <= 4)
        .map_or(part, |(stem, _)| stem);
    let words = part.chars().take(COMPARED_CHARACTERS);
    words
        .flat_map(|c| if c.is_alphanumeric() { c } else { ' ' }.to_lowercase())
        .collect::<String>()
        .trim()
        .to_owned()
}

/// All ids, with the numbers of their indexes.
fn ids(indexes: &[CollectionIndex]) -> Vec<(usize, String)> {
    let mut ids = Vec::new();
    for (number, index) in indexes.iter().enumerate() {
        let listed = guarded(&index.name, || {
            let mut listed = Vec::new();
            for segment in index.searcher.segment_readers() {
                let terms = segment.inverted_index(index.fields.id)?;
                let mut stream = terms.terms().stream()?;
                while stream.advance() && listed.len() < COMPARED {
                    if let Ok(id) = std::str::from_utf8(stream.key()) {
                        listed.push((number, id.to_owned()));
                    }
                }
            }
            Ok(listed)
        });
        // Suggestions are a courtesy: an index that fails here fails where it matters too.
        ids.extend(listed.unwrap_or_default());
    }
    ids
}
