//! What to search for and which of the results to open.
//!
//! Decides the formulations of a query and the order of documents. When to stop is left to `strategy`.

use super::evidence::{Document, Lookup, rank_all, title_share};
use super::lexicon::Lexicon;
use super::question::{Question, Role};

/// Formulations of a query, best first, none twice.
pub(super) fn queries(question: &Question) -> Vec<String> {
    let lexicon = Lexicon::shared();
    let named = question
        .terms
        .iter()
        .any(|term| term.role == Role::Entity && !term.text.starts_with(char::is_lowercase));
    let mut list = vec![question.keywords()];
    if named {
        list.push(question.entity_words());
    }
    // With words that may stand for the relation.
    let mut widened = if named { question.entity_words() } else { question.keywords() };
    for term in question.terms.iter().filter(|term| term.role != Role::Entity) {
        for other in lexicon.synonyms(&term.stem).iter().take(2) {
            widened.push(' ');
            widened.push_str(other);
        }
    }
    list.push(widened);
    // The heaviest words only, for questions that name nothing.
    let heavy: Vec<&str> = question
        .terms
        .iter()
        .filter(|term| term.role == Role::Relation && term.weight >= 1.0)
        .map(|term| term.text.as_str())
        .collect();
    list.push(heavy.join(" "));
    list.push(question.text.clone());
    let mut seen = Vec::new();
    for query in list {
        let query = query.trim().to_owned();
        if !query.is_empty() && !seen.iter().any(|other: &String| same_query(other, &query)) {
            seen.push(query);
        }
    }
    seen
}

/// Whether two queries would be taken for the same.
pub(super) fn same_query(a: &str, b: &str) -> bool {
    let words = |text: &str| text.to_lowercase().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    words(a) == words(b)
}

/// The project's own manual stands beside the articles: it answers questions about the program, not others that
/// share a word with it.
fn is_manual(id: &str) -> bool {
    id.rsplit('/').next().is_some_and(|name| name.starts_with("docs-"))
}

/// How promising each document is, judged by its title and by what is known of it so far.
pub(super) fn promise(question: &Question, documents: &[Document]) -> Vec<f32> {
    let lookup = Lookup::new(question);
    let mut shown = vec![0.0_f32; documents.len()];
    for passage in rank_all(question, documents) {
        if let Some(best) = shown.get_mut(passage.document) {
            *best = best.max(0.45 * passage.coverage + 0.4 * passage.entity);
        }
    }
    documents
        .iter()
        .zip(shown)
        .map(|(document, shown)| {
            0.6 * title_share(&document.title, &lookup) + shown + 0.5 / (1.0 + document.rank as f32)
                - if is_manual(&document.id) { 0.4 } else { 0.0 }
        })
        .collect()
}
