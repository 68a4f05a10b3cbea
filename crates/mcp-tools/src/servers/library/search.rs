//! Searching several indexes as if they were one.
//!
//! Decides which documents are shown and in which order. Scores are those of one large index: the
//! statistics of words are summed over all collections before anything is scored. The weights here
//! and in `query` were found with 63 questions by hand and 300 descriptions of articles over the
//! starter library: mean reciprocal rank 0.72 and 0.65 (0.57 and 0.43 with titles at 2.5 and no
//! regard to coverage).

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use tantivy::collector::TopDocs;
use tantivy::query::{Bm25StatisticsProvider, Query};
use tantivy::schema::Field;
use tantivy::{DocAddress, Score, Searcher, Term};

use super::error::LibraryError;
use super::index::{CollectionIndex, guarded};
use super::query::ParsedQuery;
use super::schema::StoredPassage;
use super::snippet::Snippets;

/// Results of one search at most.
pub const MAX_RESULTS: usize = 50;
/// Passages that are looked at for each result, since several may be of one document.
const PASSAGES_PER_RESULT: usize = 6;
/// Passages that are looked at in any case.
const MIN_PASSAGES: usize = 48;
/// What of its score a passage loses that holds nothing of the query's weight; one that holds half
/// of it loses half as much.
const COVERAGE: f32 = 0.7;
/// What the second passage of a document adds to the score of its best.
const SECOND_PASSAGE: f32 = 0.2;
/// What is left of a document's score for each result of its group that is shown before it.
const SPREAD: f32 = 0.9;

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchAnswer {
    /// Best first.
    pub results: Vec<SearchResult>,
    /// What the searcher ought to know beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One document that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchResult {
    /// What `read_document` takes.
    pub id: String,
    /// The document's title.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// The sentences of its best passage that hold the most of the query, plain text of at most
    /// 400 characters.
    pub snippet: String,
    /// BM25 of the best passage, less where it holds a part of the query only, with a little for the
    /// second. Comparable within one search only; the order of the results also spreads them over
    /// the groups.
    pub score: f32,
}

/// A passage that was found.
struct Hit {
    index: usize,
    score: Score,
    passage: StoredPassage,
}

/// A document with its best passage.
struct Candidate {
    hit: Hit,
    score: f32,
    group: String,
}

/// Searches all indexes.
pub(super) fn search(
    indexes: &[CollectionIndex],
    query: &str,
    num: usize,
) -> Result<SearchAnswer, LibraryError> {
    if query.trim().is_empty() {
        return Err(LibraryError::EmptyQuery);
    }
    let parsed = ParsedQuery::new(query);
    let num = num.clamp(1, MAX_RESULTS);
    let mut hits = find(indexes, &parsed, true, num)?;
    let mut note = None;
    if hits.is_empty() && !parsed.phrases.is_empty() {
        hits = find(indexes, &parsed, false, num)?;
        if !hits.is_empty() {
            note = Some(
                "No document holds the quoted words next to each other; these hold them apart.".to_owned(),
            );
        }
    }
    if hits.is_empty() {
        note = Some(nothing_found(indexes, &parsed));
    }
    let mut snippets = Snippets::new(&weighted_terms(indexes, &parsed));
    for hit in &mut hits {
        let held = snippets.coverage(&[&hit.passage.title, &hit.passage.body]);
        hit.score *= 1.0 - COVERAGE * (1.0 - held);
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    let chosen = spread(candidates(indexes, hits), num);
    let results = chosen
        .into_iter()
        .map(|Candidate { hit, score, .. }| SearchResult {
            id: format!("{}/{}", indexes[hit.index].name, hit.passage.id),
            snippet: snippets.of(&hit.passage.body),
            title: hit.passage.title,
            source: hit.passage.source,
            score: (score * 100.0).round() / 100.0,
        })
        .collect();
    Ok(SearchAnswer { results, note })
}

fn nothing_found(indexes: &[CollectionIndex], parsed: &ParsedQuery) -> String {
    if parsed.words.is_empty() {
        return "There is no word in the query that could be searched for.".to_owned();
    }
    let documents: u64 = indexes.iter().map(CollectionIndex::documents).sum();
    format!("None of the {documents} documents holds any of these words. Try other words for the same thing.")
}

/// The best passages of all indexes, best first.
fn find(
    indexes: &[CollectionIndex],
    parsed: &ParsedQuery,
    phrases_required: bool,
    num: usize,
) -> Result<Vec<Hit>, LibraryError> {
    let limit = (num * PASSAGES_PER_RESULT).max(MIN_PASSAGES);
    let statistics = Statistics(indexes.iter().map(|index| &index.searcher).collect());
    let mut found: Vec<(usize, Score, DocAddress)> = Vec::new();
    for (number, index) in indexes.iter().enumerate() {
        let Some(query) = parsed.engine_query(index.fields, phrases_required) else {
            return Ok(Vec::new());
        };
        let best = guarded(&index.name, || best(&index.searcher, &*query, limit, &statistics))?;
        found.extend(best.into_iter().map(|(score, address)| (number, score, address)));
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)).then(a.2.cmp(&b.2)));
    found.truncate(limit);
    let mut hits = Vec::with_capacity(found.len());
    for (number, score, address) in found {
        let index = &indexes[number];
        let passage = guarded(&index.name, || index.fields.stored(&index.searcher, address))?;
        hits.push(Hit { index: number, score, passage });
    }
    Ok(hits)
}

fn best(
    searcher: &Searcher,
    query: &dyn Query,
    limit: usize,
    statistics: &Statistics<'_>,
) -> tantivy::Result<Vec<(Score, DocAddress)>> {
    let collector = TopDocs::with_limit(limit).order_by_score();
    searcher.search_with_statistics_provider(query, &collector, statistics)
}

/// Documents of the passages, best first.
fn candidates(indexes: &[CollectionIndex], hits: Vec<Hit>) -> Vec<Candidate> {
    let mut places: BTreeMap<(usize, String), (usize, usize)> = BTreeMap::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    for hit in hits {
        let key = (hit.index, hit.passage.id.clone());
        if let Some((place, passages)) = places.get_mut(&key) {
            if *passages == 1 {
                candidates[*place].score += hit.score * SECOND_PASSAGE;
            }
            *passages += 1;
            continue;
        }
        places.insert(key, (candidates.len(), 1));
        let group = match &hit.passage.group {
            Some(group) => format!("{}/{group}", indexes[hit.index].name),
            None => indexes[hit.index].name.clone(),
        };
        candidates.push(Candidate { score: hit.score, hit, group });
    }
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates
}

/// Takes the best again and again, each group counting for less the more of it was taken.
fn spread(mut candidates: Vec<Candidate>, num: usize) -> Vec<Candidate> {
    let mut taken: BTreeMap<String, i32> = BTreeMap::new();
    let mut chosen = Vec::new();
    while chosen.len() < num {
        let value = |candidate: &Candidate| {
            candidate.score * SPREAD.powi(taken.get(&candidate.group).copied().unwrap_or_default())
        };
        let mut best: Option<(usize, f32)> = None;
        for (place, candidate) in candidates.iter().enumerate() {
            let value = value(candidate);
            if best.is_none_or(|(_, most)| value > most) {
                best = Some((place, value));
            }
        }
        let Some((place, _)) = best else { break };
        let candidate = candidates.remove(place);
        *taken.entry(candidate.group.clone()).or_default() += 1;
        chosen.push(candidate);
    }
    chosen
}

/// The query's terms with how rare they are.
fn weighted_terms(indexes: &[CollectionIndex], parsed: &ParsedQuery) -> Vec<(String, f32)> {
    let statistics = Statistics(indexes.iter().map(|index| &index.searcher).collect());
    let total = statistics.total_num_docs().unwrap_or_default() as f32;
    let mut seen = HashSet::new();
    let mut weighted = Vec::new();
    for term in parsed.terms() {
        let frequency = |field: Field| {
            let wanted = Term::from_field_text(field, &term);
            statistics.doc_freq(&wanted).unwrap_or_default()
        };
        let holders = indexes
            .first()
            .map_or(0, |index| frequency(index.fields.body).max(frequency(index.fields.symbols)));
        let weight = (1.0 + total / (holders as f32 + 0.5)).ln();
        if seen.insert(term.clone()) {
            weighted.push((term, weight));
        }
    }
    weighted
}

/// The statistics of words over all indexes, which have the same fields.
struct Statistics<'a>(Vec<&'a Searcher>);

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.0.iter().map(|searcher| searcher.total_num_tokens(field)).sum()
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.0.iter().map(|searcher| searcher.total_num_docs()).sum()
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.0.iter().map(|searcher| searcher.doc_freq(term)).sum()
    }
}
