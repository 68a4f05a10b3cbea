//! Picks the short answer out of the best sentences, and says how sure that is.
//!
//! Decides by features of a candidate and its place: its form against what is asked, how near it stands to the
//! words of the relation, on which side, after which preposition. What to do with the answer is left to
//! `strategy`.

mod context;
mod definition;
mod fit;
mod kinds;
mod narrow;
mod patterns;
mod quantity;
mod title;

use std::collections::HashMap;

use self::context::Context;
use super::evidence::{Document, Passage, rank};
use super::lexicon::Lexicon;
use super::question::{Asks, Question};
use super::spans::{SpanKind, spans};
use super::text::TokenKind;

/// An answer with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    /// The short answer.
    pub(super) text: String,
    /// The sentence that holds it.
    pub(super) sentence: String,
    /// Index of its document.
    pub(super) document: usize,
    /// How sure it is, 0 to 1: see [`SURE`] and [`ENOUGH`].
    pub(super) confidence: f32,
    /// What candidates are ordered by.
    pub(super) score: f32,
    /// The sentence's cover of the question.
    pub(super) passage: Passage,
    /// How well the form suits what is asked.
    pub(super) fit: f32,
}

impl Answer {
    /// An answer whose sentence is no longer in view.
    pub(super) fn bare(text: &str) -> Self {
        let passage = Passage {
            document: usize::MAX,
            sentence: 0,
            coverage: 1.0,
            entity: 1.0,
            relation: 1.0,
            title: 0.0,
            score: 0.0,
            topic: 0.0,
            lead: 0.0,
            own: 0.0,
            asked: 0.0,
            names: 0.0,
        };
        Self {
            text: text.to_owned(),
            sentence: String::new(),
            document: usize::MAX,
            confidence: ENOUGH,
            score: 0.0,
            passage,
            fit: 0.5,
        }
    }
}

/// From here on looking further is not worth a call.
pub(super) const SURE: f32 = 0.86;
/// From here on the answer is given; below, none is.
pub(super) const ENOUGH: f32 = 0.62;

/// One candidate before it is compared with the others.
#[derive(Debug, Clone)]
struct Candidate {
    text: String,
    passage: usize,
    score: f32,
    fit: f32,
    relation: f32,
}

/// The answers found, best first, each short answer once.
pub(super) fn answers(question: &Question, documents: &[Document]) -> Vec<Answer> {
    let passages = rank(question, documents);
    let genera = genera(documents);
    let mut candidates = Vec::new();
    for (index, passage) in passages.iter().enumerate() {
        let Some(document) = documents.get(passage.document) else { continue };
        let Some(sentence) = document.sentences.get(passage.sentence) else { continue };
        let context = Context::new(question, document, passage, &sentence.text, &genera);
        collect(question, &context, index, &mut candidates);
    }
    merge(question, &passages, documents, candidates)
}

/// What the documents say that their subjects are, by title.
fn genera(documents: &[Document]) -> HashMap<String, &[String]> {
    let named = |document: &Document| {
        // "Rust (Programming Language)" is called Rust in a text, "The Magic Flute" may lose its article.
        let title = document.title.to_lowercase();
        let bare = title.split(" (").next().unwrap_or_default().trim_start_matches("the ").to_owned();
        [title, bare]
    };
    documents
        .iter()
        .flat_map(|document| named(document).map(|name| (name, document.genus.as_slice())))
        .collect()
}

fn collect(question: &Question, context: &Context<'_>, index: usize, candidates: &mut Vec<Candidate>) {
    match question.asks {
        Asks::Definition => {
            if let Some((text, fit)) = definition::definition(question, context) {
                candidates.push(Candidate {
                    text,
                    passage: index,
                    score: context.base() + fit,
                    fit,
                    relation: 0.0,
                });
            }
            return;
        }
        Asks::YesNo => {
            candidates.push(Candidate {
                text: "yes".to_owned(),
                passage: index,
                score: context.base(),
                fit: 0.5,
                relation: 0.0,
            });
            return;
        }
        Asks::Reason => {
            if let Some((text, fit)) = definition::reason(context) {
                candidates.push(Candidate {
                    text,
                    passage: index,
                    score: context.base() + fit,
                    fit,
                    relation: 0.0,
                });
            }
            return;
        }
        _ => {}
    }
    let mut pieces = spans(&context.tokens);
    narrow::narrowed(question, context, &mut pieces);
    for span in pieces {
        let Some(fit) = fit::of_span(question, context, &span) else { continue };
        let text = polish(question, context, &span, span.text(context.text, &context.tokens));
        if text.is_empty() || text.len() > 160 {
            continue;
        }
        candidates.push(Candidate {
            text,
            passage: index,
            score: context.base() + fit.total(),
            fit: fit.form,
            relation: fit.relation,
        });
    }
    if let Some(fit) = title::of_title(question, context) {
        let text = context.title.to_owned();
        candidates.push(Candidate {
            text,
            passage: index,
            score: context.base() + fit.total(),
            fit: fit.form,
            relation: 0.0,
        });
    }
}

/// The form in which the answer is given.
fn polish(question: &Question, context: &Context<'_>, span: &super::spans::Span, text: &str) -> String {
    let text = text.trim().trim_end_matches([',', ';', ':']);
    let mut text = text.strip_prefix("of ").unwrap_or(text).to_owned();
    match (question.asks, span.kind) {
        (Asks::Year, SpanKind::Date) => {
            // Of "1 July 1867" a question for the year wants 1867.
            let year =
                context.tokens.get(span.first..span.end).unwrap_or_default().iter().rev().find(|token| {
                    token.text.len() >= 3 && token.text.bytes().all(|byte| byte.is_ascii_digit())
                });
            year.map(|token| token.text.to_owned()).unwrap_or_default()
        }
        (Asks::Count | Asks::Quantity(_), SpanKind::Number | SpanKind::Quantity(_)) => {
            if question.unit.is_some() || asks_in_unit(question) {
                // The question names the unit, so the number is enough.
                let end =
                    context.tokens.get(span.first..span.end).unwrap_or_default().iter().take_while(|token| {
                        token.kind == TokenKind::Number
                            || Lexicon::shared().is_number(&token.folded)
                            || token.is_mark("-")
                            || token.is_mark("–")
                            || matches!(token.folded.as_str(), "to" | "or" | "and")
                    });
                if let Some(last) =
                    end.last().and_then(|token| token.end.checked_sub(context.tokens.get(span.first)?.start))
                {
                    text.truncate(last);
                }
            }
            if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') {
                text.retain(|c| c != ',');
            }
            text
        }
        _ => text,
    }
}

/// "How high is X in metres?"
fn asks_in_unit(question: &Question) -> bool {
    let lower = question.text.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).peekable();
    while let Some(word) = words.next() {
        if word == "in" && words.peek().is_some_and(|next| !Lexicon::shared().unit(next).is_empty()) {
            return matches!(question.asks, Asks::Quantity(_));
        }
    }
    false
}

/// The key by which two spellings are the same answer.
fn key(text: &str) -> String {
    let lower = text.to_lowercase();
    lower.trim_start_matches("the ").chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Joins equal answers: each further sentence adds a little.
fn merge(
    question: &Question,
    passages: &[Passage],
    documents: &[Document],
    mut candidates: Vec<Candidate>,
) -> Vec<Answer> {
    for candidate in &mut candidates {
        if let Some(passage) = passages.get(candidate.passage) {
            let sure = confidence(question, passage, candidate).max(relative(question, passage, candidate));
            candidate.score += 0.8 * sure;
        }
    }
    candidates.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then(a.passage.cmp(&b.passage)).then(a.text.cmp(&b.text))
    });
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut list: Vec<(Candidate, u32)> = Vec::new();
    for candidate in candidates {
        let key = key(&candidate.text);
        if key.is_empty() {
            continue;
        }
        match places.get(&key).and_then(|at| list.get_mut(*at)) {
            Some((first, times)) => {
                if first.passage != candidate.passage && *times < 3 && candidate.score > first.score - 0.7 {
                    first.score += 0.08;
                    *times += 1;
                }
            }
            None => {
                places.insert(key, list.len());
                list.push((candidate, 0));
            }
        }
    }
    list.sort_by(|a, b| b.0.score.total_cmp(&a.0.score));
    let answers = list.into_iter().take(12).filter_map(|(candidate, _)| {
        let passage = *passages.get(candidate.passage)?;
        let sentence = documents.get(passage.document)?.sentences.get(passage.sentence)?;
        let confidence =
            confidence(question, &passage, &candidate).max(relative(question, &passage, &candidate));
        Some(Answer {
            text: candidate.text,
            sentence: sentence.text.clone(),
            document: passage.document,
            confidence,
            score: candidate.score,
            passage,
            fit: candidate.fit,
        })
    });
    answers.collect()
}

/// How sure an answer is: what it is about must be covered, what is asked about it too, and the form must suit.
fn confidence(question: &Question, passage: &Passage, candidate: &Candidate) -> f32 {
    let has_entity = question.terms.iter().any(|term| term.role == super::question::Role::Entity);
    let entity = if has_entity { passage.entity } else { passage.coverage };
    let relation = passage.relation.max(candidate.relation);
    let coverage =
        passage.coverage.max(0.5 * (entity + relation) * f32::from(u8::from(candidate.relation > 0.0)));
    let form = (candidate.fit / 0.5).clamp(0.0, 1.0);
    let lacking = (0.75 - entity).max(0.0) * 0.9 + (0.5 - relation).max(0.0) * 0.6;
    (0.45 * coverage + 0.3 * entity.min(relation) + 0.25 * form - lacking).clamp(0.0, 1.0)
}

/// How sure an answer in other words is: the document is the right one by its words as a whole, the sentence holds
/// some of what is asked in its own words, and the form is the one that is asked for. Never enough to stop looking.
fn relative(question: &Question, passage: &Passage, candidate: &Candidate) -> f32 {
    let measured = matches!(question.asks, Asks::Year | Asks::Date | Asks::Quantity(_));
    let (form, own) = match question.asks {
        Asks::Definition | Asks::YesNo | Asks::Reason => return 0.0,
        Asks::Count => (0.4, 0.3),
        Asks::Thing => (0.35, 0.32),
        // "Which king" wants a king: more than the form of a name.
        Asks::Person | Asks::Name if question.class.is_some() => (0.56, 0.26),
        _ if measured => (0.4, 0.22),
        _ => (0.36, 0.26),
    };
    let behind = if measured { -0.1 } else { -0.04 };
    let right_document = passage.topic >= 0.4 && passage.lead >= behind && passage.names >= 0.7;
    // A number never says which thing.
    let first = candidate.text.split(' ').next().unwrap_or_default().to_lowercase();
    if question.asks == Asks::Thing
        && (first.starts_with(|c: char| c.is_ascii_digit()) || Lexicon::shared().is_number(&first))
    {
        return 0.0;
    }
    // The one quantity of its kind needs no other word where the document meets nearly all of the question.
    let alone = matches!(question.asks, Asks::Quantity(_)) && passage.topic >= 0.7 && passage.lead >= 0.1;
    // The further the document is ahead of the others, the less a single sentence has to show.
    let ease = if passage.topic >= 0.45 { (0.5 * passage.lead).clamp(0.0, 0.1) } else { 0.0 };
    let own = own - ease;
    let says = alone || passage.own >= own && passage.asked >= LEAST_ASKED;
    if !right_document || candidate.fit < form || !says {
        return 0.0;
    }
    (ENOUGH + 0.2 * (passage.own - own).max(0.0) + 0.2 * (passage.topic - 0.4)).min(SURE - 0.02)
}

/// So much of the common words of a question a sentence must hold that answers it in other words.
const LEAST_ASKED: f32 = 0.14;
