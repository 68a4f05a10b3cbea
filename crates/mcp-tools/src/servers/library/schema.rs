//! The fields of the index: one entry of the index is one passage of a document.
//!
//! Decides what is stored and how it is searched. All collections have the same fields, so that one
//! query runs on all of them.

use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value as _,
};
use tantivy::{DocAddress, Searcher, TantivyDocument};

use super::analysis;
use super::collection::Document;
use super::passages::{Passage, passages};

/// Handles of the fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// The entry of the manifest that the passage came from: what is removed as one.
    pub(super) entry: Field,
    /// The document's id in its collection.
    pub(super) id: Field,
    /// The title and the headings that the passage stands under, searched.
    pub(super) title: Field,
    /// The text of the passage, Markdown, searched and stored.
    pub(super) body: Field,
    /// Words with symbols of title and body.
    pub(super) symbols: Field,
    /// Characters of the document before the passage.
    pub(super) start: Field,
    name: Field,
    source: Field,
    license: Field,
    group: Field,
}

/// The schema and its fields.
pub(super) fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let searched = |analyzer: &str, option| {
        TextOptions::default().set_indexing_options(
            TextFieldIndexing::default().set_tokenizer(analyzer).set_index_option(option),
        )
    };
    let prose = searched(analysis::TEXT, IndexRecordOption::WithFreqsAndPositions);
    let fields = Fields {
        entry: builder.add_text_field("entry", STRING),
        id: builder.add_text_field("id", STRING | STORED),
        title: builder.add_text_field("title", prose.clone()),
        body: builder.add_text_field("body", prose | STORED),
        symbols: builder.add_text_field("symbols", searched(analysis::SYMBOLS, IndexRecordOption::WithFreqs)),
        start: builder.add_u64_field("start", FAST),
        name: builder.add_text_field("name", STORED),
        source: builder.add_text_field("source", STORED),
        license: builder.add_text_field("license", STORED),
        group: builder.add_text_field("group", STORED),
    };
    (builder.build(), fields)
}

impl Fields {
    /// The passages of a document as entries of the index.
    pub(super) fn index_entries(self, entry: &str, document: &Document) -> Vec<TantivyDocument> {
        let mut start = 0;
        let mut index_entries = Vec::new();
        for Passage { range, headings } in passages(&document.body) {
            let text = &document.body[range];
            let mut added = TantivyDocument::default();
            added.add_text(self.entry, entry);
            added.add_text(self.id, &document.id);
            added.add_text(self.title, &document.title);
            if !headings.is_empty() {
                added.add_text(self.title, &headings);
            }
            added.add_text(self.body, text);
            added.add_text(self.symbols, &document.title);
            added.add_text(self.symbols, text);
            added.add_u64(self.start, start);
            added.add_text(self.name, &document.title);
            added.add_text(self.source, &document.source);
            for (field, value) in [(self.license, &document.license), (self.group, &document.group)] {
                if let Some(value) = value {
                    added.add_text(field, value);
                }
            }
            start += text.chars().count() as u64;
            index_entries.push(added);
        }
        index_entries
    }

    /// What is stored of one passage.
    pub(super) fn stored(self, searcher: &Searcher, address: DocAddress) -> tantivy::Result<StoredPassage> {
        let found: TantivyDocument = searcher.doc(address)?;
        let text = |field| found.get_first(field).and_then(|value| value.as_str()).map(str::to_owned);
        Ok(StoredPassage {
            id: text(self.id).unwrap_or_default(),
            title: text(self.name).unwrap_or_default(),
            source: text(self.source).unwrap_or_default(),
            license: text(self.license),
            group: text(self.group),
            body: text(self.body).unwrap_or_default(),
        })
    }
}

/// One passage, with what is known of its document.
#[derive(Debug, Clone)]
pub(super) struct StoredPassage {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) source: String,
    pub(super) license: Option<String>,
    pub(super) group: Option<String>,
    pub(super) body: String,
}
