//! What a question asks for: the kind of answer, the words that evidence must cover, where the gap stands.
//!
//! Decides the analysis of one question. Splitting a nested question in two is left to `decompose`; finding the
//! question in a task to `task`.

use super::lexicon::{Dimension, Lexicon, NounClass};
use super::text::{Token, TokenKind, tokens};

/// The kind of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// Somebody.
    Person,
    /// Somewhere.
    Place,
    /// A year, nothing finer.
    Year,
    /// A date as fine as the source has it.
    Date,
    /// A number of things.
    Count,
    /// A number with a unit.
    Quantity(Dimension),
    /// Something with a name of its own.
    Name,
    /// Anything that a noun phrase can say.
    Thing,
    /// What or who something is.
    Definition,
    /// Yes or no.
    YesNo,
    /// A cause.
    Reason,
}

/// What a word does in the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Part of a name, a number, a quotation: what the question is about.
    Entity,
    /// What is asked about it.
    Relation,
    /// The class of the answer.
    Class,
}

/// One content word of the question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    /// As written.
    pub(super) text: String,
    /// The stem by which it is compared.
    pub(super) stem: String,
    /// How much it matters.
    pub(super) weight: f32,
    /// What it does.
    pub(super) role: Role,
}

/// Where the gap stands, seen from the words of the relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// The gap is the subject: before an active verb, or after `by`.
    Before,
    /// The gap follows.
    After,
    /// Not known.
    Either,
}

/// A question, analysed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    /// The sentence that asks.
    pub(super) text: String,
    /// The kind of answer.
    pub(super) asks: Asks,
    /// Stem of the noun that names the answer's class: `river` in "which river".
    pub(super) class: Option<String>,
    /// Its kind, where the word is known.
    pub(super) class_kind: Option<NounClass>,
    /// The unit that the question fixes: `kilometres` in "how many kilometres".
    pub(super) unit: Option<String>,
    /// The content words, in order, at most 60.
    pub(super) terms: Vec<Term>,
    /// Where the gap stands.
    pub(super) slot: Slot,
    /// A preposition that governs the gap: `in which`, `named after`.
    pub(super) preposition: Option<String>,
    /// Whether it asks what something is called.
    pub(super) naming: bool,
}

const WH: &[&str] = &["who", "whom", "whose", "what", "which", "when", "where", "why", "how"];
const BE: &[&str] = &["is", "was", "are", "were", "be", "been"];
const DO: &[&str] = &["did", "does", "do"];
const AUXILIARY: &[&str] =
    &["is", "was", "are", "were", "did", "does", "do", "has", "have", "had", "can", "could", "will", "would", "should"];
const PREPOSITIONS: &[&str] = &[
    "in", "on", "at", "by", "from", "to", "of", "for", "with", "after", "into", "through", "under", "near", "during",
    "against", "between", "over", "across", "as", "about", "than",
];
const ASKING: &[&str] = &["name", "give", "find", "identify", "state", "tell", "list", "determine"];
/// Nouns that stand before `of` without being what is asked.
const EMPTY_HEADS: &[&str] = &["name", "names", "kind", "type", "sort", "form", "title"];

/// At most so many words of a question are looked at; coverage is kept in 64-bit sets.
const MOST_TERMS: usize = 60;

/// Analyses a question.
pub(super) fn analyse(text: &str) -> Question {
    let all = tokens(text);
    let words: Vec<&Token<'_>> = all.iter().collect();
    let mut question = Question {
        text: text.trim().to_owned(),
        asks: Asks::Thing,
        class: None,
        class_kind: None,
        unit: None,
        terms: Vec::new(),
        slot: Slot::Either,
        preposition: None,
        naming: false,
    };
    let gap = classify(&words, &mut question);
    collect_terms(&words, &gap, &mut question);
    name_the_topic(&words, &mut question);
    question
}

/// Token places that the classification has spoken for.
#[derive(Debug, Default)]
struct Gap {
    /// The class noun phrase.
    class: std::ops::Range<usize>,
    /// Whether the class noun is also what relates ("the capital of").
    relational: bool,
    /// Single tokens that only ask: the wh-word, `many`, the adjective's dimension.
    asking: Vec<usize>,
}

fn folded<'a>(words: &'a [&Token<'_>], at: usize) -> &'a str {
    words.get(at).map_or("", |token| token.folded.as_str())
}

fn classify(words: &[&Token<'_>], question: &mut Question) -> Gap {
    let mut gap = Gap::default();
    let Some(at) = wh_position(words) else {
        without_wh(words, question, &mut gap);
        return gap;
    };
    gap.asking.push(at);
    let before = at.checked_sub(1).map_or("", |place| folded(words, place));
    if PREPOSITIONS.contains(&before) {
        question.preposition = Some(before.to_owned());
        question.slot = Slot::After;
    }
    match folded(words, at) {
        "who" | "whom" | "whose" => {
            question.asks = Asks::Person;
            if BE.contains(&folded(words, at + 1)) {
                let start = if folded(words, at + 2) == "the" { at + 3 } else { at + 2 };
                if is_bare_name(words, at + 2) {
                    question.asks = Asks::Definition;
                } else if start == at + 3 {
                    noun_class(words, start, true, question, &mut gap);
                    question.asks = Asks::Person;
                }
            }
        }
        "when" => question.asks = Asks::Date,
        "where" => question.asks = Asks::Place,
        "why" => question.asks = Asks::Reason,
        "how" => how(words, at, question, &mut gap),
        _ => which(words, at, question, &mut gap),
    }
    if question.slot == Slot::Either {
        question.slot = slot_after(words, gap.class.end.max(at + 1));
    }
    stranded_preposition(words, at, question);
    gap
}

/// The asking word: one at the start is preferred to one in a clause further on.
fn wh_position(words: &[&Token<'_>]) -> Option<usize> {
    let is_wh = |at: &usize| WH.contains(&folded(words, *at));
    let early = (0..words.len().min(4)).find(is_wh);
    let first = folded(words, 0);
    if early.is_none() && (AUXILIARY.contains(&first) || ASKING.contains(&first)) {
        // "Was X the man who …?" asks yes or no; "Name the man who …" asks for the man.
        let told = ASKING.contains(&first) && matches!(folded(words, 1), "me" | "us" | "out");
        return if told { (0..words.len()).find(is_wh) } else { None };
    }
    early.or_else(|| {
        // The last one, for "The Rhine rises in which country?" and for a question after a comma.
        (0..words.len()).rev().find(is_wh)
    })
}

fn without_wh(words: &[&Token<'_>], question: &mut Question, gap: &mut Gap) {
    let first = folded(words, 0);
    if ASKING.contains(&first) {
        gap.asking.push(0);
        let start = (1..words.len()).find(|at| !matches!(folded(words, *at), "me" | "us" | "the" | "out" | "a" | "an"));
        noun_class(words, start.unwrap_or(1), true, question, gap);
        return;
    }
    if AUXILIARY.contains(&first) {
        question.asks = Asks::YesNo;
        return;
    }
    question.asks = Asks::Thing;
}

fn how(words: &[&Token<'_>], at: usize, question: &mut Question, gap: &mut Gap) {
    let next = folded(words, at + 1);
    let lexicon = Lexicon::shared();
    let mentions = |list: &[&str]| words.iter().any(|token| list.contains(&token.folded.as_str()));
    gap.asking.push(at + 1);
    match next {
        "many" => {
            let unit = folded(words, at + 2);
            question.asks = Asks::Count;
            if let Some(dimension) = lexicon.unit(unit).first() {
                question.asks = Asks::Quantity(*dimension);
                question.unit = Some(unit.to_owned());
                gap.asking.push(at + 2);
            } else {
                let end = noun_phrase_end(words, at + 2);
                question.class = end.checked_sub(1).and_then(|last| words.get(last)).map(|token| token.stem.clone());
                // What is counted must stand in the evidence: it is part of the relation.
                gap.class = at + 2..end;
                gap.relational = true;
            }
        }
        "much" => {
            question.asks = if mentions(&["weigh", "weighs", "weight", "weighed"]) {
                Asks::Quantity(Dimension::Mass)
            } else if mentions(&["percent", "percentage", "share", "proportion"]) {
                Asks::Quantity(Dimension::Percent)
            } else if mentions(&["cost", "paid", "worth", "pay", "earn", "sold", "spent", "price", "bought", "sell"]) {
                Asks::Quantity(Dimension::Money)
            } else {
                Asks::Count
            };
        }
        "long" if mentions(&[
            "last", "lasted", "take", "took", "live", "lived", "reign", "rule", "spend", "stay", "serve", "work", "ago",
            "after", "before", "did", "imprisoned", "need", "takes", "remain", "for",
        ]) =>
        {
            question.asks = Asks::Quantity(Dimension::Duration);
        }
        _ => match lexicon.adjective(next) {
            Some(dimension) => {
                question.asks = Asks::Quantity(dimension);
                // The adjective is also a relation: "how tall" is met by "height" or by the unit.
            }
            None => {
                question.asks = Asks::Thing;
                question.slot = Slot::After;
            }
        },
    }
}

fn which(words: &[&Token<'_>], at: usize, question: &mut Question, gap: &mut Gap) {
    let next = folded(words, at + 1);
    if BE.contains(&next) {
        let mut start = at + 2;
        let definite = folded(words, start) == "the";
        if definite {
            start += 1;
        }
        // "the name of the river" asks for the river.
        if EMPTY_HEADS.contains(&folded(words, start)) && folded(words, start + 1) == "of" {
            gap.asking.push(start);
            start += 2;
            if matches!(folded(words, start), "the" | "a" | "an") {
                start += 1;
            }
        } else if EMPTY_HEADS.contains(&folded(words, start)) && folded(words, start + 1) == "given" {
            question.asks = Asks::Thing;
            return;
        }
        let end = noun_phrase_end(words, start);
        let is_last = rest_is_empty(words, end);
        let possessive = (start..words.len()).any(|place| is_possessive(words, place))
            && !(start..words.len()).take_while(|place| !is_possessive(words, *place)).any(|place| folded(words, place) == "of");
        let naming = (start + 1..words.len()).any(|place| matches!(folded(words, place), "called" | "named" | "known" | "nicknamed"));
        if naming && folded(words, words.len() - 1) != "after" {
            name_asked(words, start, question, gap);
            return;
        }
        let last_word = (start..words.len()).rev().find(|place| words.get(*place).is_some_and(|w| w.kind != TokenKind::Mark));
        let participle = last_word.is_some_and(|last| {
            last + 1 > end && {
                let word = folded(words, last);
                word.ends_with("ed") || PREPOSITIONS.contains(&word) || Lexicon::shared().is_verb(word)
            }
        });
        if possessive {
            // "What is X's capital?": the noun after the mark is what is asked.
            let mark = (start..words.len()).rev().find(|place| is_possessive(words, *place)).unwrap_or(start);
            noun_class(words, mark + 1, true, question, gap);
        } else if !definite && (is_last || !participle) && !has_preposition(words, start) {
            question.asks = Asks::Definition;
        } else if is_last && is_bare_name(words, start) {
            question.asks = Asks::Definition;
        } else if participle && is_bare_subject(words, start, last_word.unwrap_or(end)) {
            // "What is X made of?", "What was X called?"
            question.asks = Asks::Thing;
            question.slot = Slot::After;
        } else {
            noun_class(words, start, true, question, gap);
        }
        return;
    }
    if DO.contains(&next) {
        question.asks = Asks::Thing;
        question.slot = Slot::After;
        return;
    }
    if AUXILIARY.contains(&next) || Lexicon::shared().is_verb(next) || next.ends_with("ed") {
        question.asks = Asks::Thing;
        question.slot = Slot::Before;
        return;
    }
    let mut start = at + 1;
    if next == "of" && folded(words, start + 1) == "the" {
        // "which of the two": the noun stands after.
        start += 2;
    }
    if EMPTY_HEADS.contains(&folded(words, start)) && folded(words, start + 1) == "of" {
        gap.asking.push(start);
        start += 2;
    }
    noun_class(words, start, false, question, gap);
}

/// "What is the gorge called?", "What was X known as?"
fn name_asked(words: &[&Token<'_>], start: usize, question: &mut Question, gap: &mut Gap) {
    if words.get(start).is_some_and(|token| !token.is_capitalised()) {
        noun_class(words, start, true, question, gap);
    }
    question.asks = Asks::Thing;
    question.slot = Slot::After;
    question.naming = true;
}

/// Reads the class noun phrase from `start` on and sets the kind of answer by its head.
fn noun_class(words: &[&Token<'_>], start: usize, relational: bool, question: &mut Question, gap: &mut Gap) {
    let lexicon = Lexicon::shared();
    let end = noun_phrase_end(words, start);
    let phrase = start..end;
    let head = phrase
        .clone()
        .rev()
        .find(|at| words.get(*at).is_some_and(|w| lexicon.class_of(&w.stem).is_some() && !w.is_capitalised()))
        .or_else(|| end.checked_sub(1).filter(|last| *last >= start));
    let Some(head) = head.and_then(|at| words.get(at)) else { return };
    question.class = Some(head.stem.clone());
    question.class_kind = lexicon.class_of(&head.stem);
    question.asks = match question.class_kind {
        Some(NounClass::Person) => Asks::Person,
        Some(NounClass::Place) => Asks::Place,
        Some(NounClass::Year) => Asks::Year,
        Some(NounClass::Date) => Asks::Date,
        Some(NounClass::Number) => Asks::Count,
        Some(
            NounClass::Language | NounClass::Group | NounClass::Work | NounClass::Name | NounClass::Nationality,
        ) => Asks::Name,
        Some(NounClass::Quantity(dimension)) => Asks::Quantity(dimension),
        None => Asks::Thing,
    };
    // "Who was the discoverer of X?" asks for who discovered: the gap is the subject.
    if relational && question.asks == Asks::Person && Lexicon::shared().is_creating(&head.stem) {
        question.slot = Slot::Before;
    }
    gap.class = phrase;
    gap.relational = relational;
}

/// The end of the noun phrase that starts here: at a function word, a verb, a mark, or the end.
fn noun_phrase_end(words: &[&Token<'_>], start: usize) -> usize {
    let lexicon = Lexicon::shared();
    let mut at = start;
    while let Some(token) = words.get(at) {
        let hyphen = token.is_mark("-") && at > start;
        if !hyphen {
            let function = lexicon.is_stopword(&token.folded) && !matches!(token.folded.as_str(), "first" | "most" | "own");
            if token.kind == TokenKind::Mark || function {
                break;
            }
            if at > start && !token.is_capitalised() {
                let word = token.folded.as_str();
                let before = folded(words, at - 1);
                let next = folded(words, at + 1);
                let third_person = word.ends_with('s')
                    && !word.ends_with("ss")
                    && !before.ends_with('s')
                    && lexicon.class_of(&token.stem).is_none()
                    && (next.is_empty() || lexicon.is_stopword(next) || words.get(at + 1).is_some_and(|w| w.is_capitalised()));
                if lexicon.is_verb(word) || word.ends_with("ed") || third_person {
                    break;
                }
            }
        }
        at += 1;
    }
    at
}

fn is_possessive(words: &[&Token<'_>], at: usize) -> bool {
    words.get(at).is_some_and(|token| token.folded == "s" && at > 0)
        && words.get(at).zip(words.get(at - 1)).is_some_and(|(mark, before)| mark.start == before.end + 1 || mark.start == before.end + 3)
}

fn has_preposition(words: &[&Token<'_>], start: usize) -> bool {
    (start..words.len()).any(|at| PREPOSITIONS.contains(&folded(words, at)))
}

fn rest_is_empty(words: &[&Token<'_>], end: usize) -> bool {
    words.get(end..).is_none_or(|rest| rest.iter().all(|token| token.kind == TokenKind::Mark))
}

/// Whether what follows is nothing but a name.
fn is_bare_name(words: &[&Token<'_>], start: usize) -> bool {
    let rest: Vec<_> = words.get(start..).unwrap_or_default().iter().filter(|t| t.kind != TokenKind::Mark).collect();
    !rest.is_empty()
        && rest.len() <= 7
        && rest.first().is_some_and(|token| token.is_capitalised() || token.folded == "the")
        && rest.iter().all(|token| {
            token.is_capitalised()
                || token.kind != TokenKind::Word
                || matches!(token.folded.as_str(), "of" | "the" | "de" | "von" | "van" | "la" | "al" | "bin" | "ibn" | "and" | "s")
        })
        && rest.iter().any(|token| token.is_capitalised())
}

/// Whether the words between are a subject without a relation of their own.
fn is_bare_subject(words: &[&Token<'_>], start: usize, last: usize) -> bool {
    let lexicon = Lexicon::shared();
    let _ = last;
    let head_known = words
        .get(start)
        .is_some_and(|token| !token.is_capitalised() && lexicon.class_of(&token.stem).is_some());
    !head_known || folded(words, start + 1) != "of"
}

fn slot_after(words: &[&Token<'_>], at: usize) -> Slot {
    let next = folded(words, at);
    if DO.contains(&next) || BE.contains(&next) {
        return Slot::After;
    }
    if matches!(next, "has" | "have" | "had") || words.get(at).is_some_and(|t| t.kind == TokenKind::Word) {
        return Slot::Before;
    }
    Slot::Either
}

fn stranded_preposition(words: &[&Token<'_>], wh: usize, question: &mut Question) {
    if question.preposition.is_some() {
        return;
    }
    let last = words.iter().rev().find(|token| token.kind != TokenKind::Mark);
    if let Some(last) = last
        && words.len() > wh + 2
        && PREPOSITIONS.contains(&last.folded.as_str())
    {
        question.preposition = Some(last.folded.clone());
        question.slot = Slot::After;
    }
}

fn collect_terms(words: &[&Token<'_>], gap: &Gap, question: &mut Question) {
    let lexicon = Lexicon::shared();
    let mut quoted = false;
    for (at, token) in words.iter().enumerate() {
        if matches!(token.text, "\"" | "“" | "”" | "«" | "»") {
            quoted = !quoted;
        }
        if token.kind == TokenKind::Mark || gap.asking.contains(&at) && !is_dimension_word(token, question) {
            continue;
        }
        let starts = at == 0 && words.len() > 1;
        let name = token.is_capitalised() && !starts && !WH.contains(&token.folded.as_str());
        // `us` is a pronoun, `US` is not.
        let shouted = token.text.len() >= 2 && token.text.chars().all(char::is_uppercase) && at > 0;
        if lexicon.is_stopword(&token.folded) && !shouted && !(quoted && token.folded.len() > 3) {
            continue;
        }
        if token.folded.len() < 2 && token.kind == TokenKind::Word && !name {
            continue;
        }
        let in_class = gap.class.contains(&at);
        let (mut weight, role) = if name || quoted || token.kind != TokenKind::Word {
            (1.3, Role::Entity)
        } else if in_class && !gap.relational {
            (0.45, Role::Class)
        } else {
            (1.0, Role::Relation)
        };
        let mut role = role;
        if role == Role::Relation && is_met_otherwise(token, in_class, question) {
            // Nothing but the form of the answer need meet such a word.
            (weight, role) = (if is_dimension_word(token, question) { 0.6 } else { 0.3 }, Role::Class);
        }
        if matches!(token.folded.as_str(), "first" | "last" | "only") {
            weight = 0.7;
        }
        if question.terms.len() < MOST_TERMS && !question.terms.iter().any(|term| term.stem == token.stem) {
            question.terms.push(Term { text: token.text.to_owned(), stem: token.stem.clone(), weight, role });
        }
    }
}

/// Words that say little, and words that the form of the answer itself meets: `height` is met by a number of
/// metres, `lie` by any place.
fn is_met_otherwise(token: &Token<'_>, in_class: bool, question: &Question) -> bool {
    let measured = matches!(question.asks, Asks::Quantity(_) | Asks::Year | Asks::Date);
    Lexicon::shared().is_generic(&token.stem)
        || measured && (in_class || is_dimension_word(token, question))
        || question.asks == Asks::Count && matches!(token.stem.as_str(), "people" | "person" | "inhabitant")
        || question.asks == Asks::Place && matches!(token.folded.as_str(), "lie" | "lies" | "stand" | "stands" | "located" | "situated")
        || question.asks == Asks::Quantity(Dimension::Mass) && token.stem == "weigh"
        || question.class_kind == Some(NounClass::Nationality) && in_class
}

/// Where no word is a name, the last noun is what the question is about.
fn name_the_topic(words: &[&Token<'_>], question: &mut Question) {
    if question.terms.iter().any(|term| term.role == Role::Entity) {
        return;
    }
    let acts = words.iter().any(|token| DO.contains(&token.folded.as_str()));
    let last_word = words.iter().rev().find(|token| token.kind == TokenKind::Word).map(|token| token.stem.clone());
    let lexicon = Lexicon::shared();
    let topic = question.terms.iter_mut().rev().find(|term| {
        let folded = term.text.to_lowercase();
        let verb = lexicon.is_verb(&folded)
            || folded.ends_with("ed") && folded.len() > 4
            || acts && last_word.as_deref() == Some(&term.stem);
        term.role == Role::Relation && !verb
    });
    if let Some(term) = topic {
        term.role = Role::Entity;
    }
}

fn is_dimension_word(token: &Token<'_>, question: &Question) -> bool {
    let lexicon = Lexicon::shared();
    matches!(question.asks, Asks::Quantity(_))
        && (lexicon.adjective(&token.folded).is_some()
            || matches!(lexicon.class_of(&token.stem), Some(NounClass::Quantity(_))))
}

impl Question {
    /// The content words as a query, in the question's order.
    pub(super) fn keywords(&self) -> String {
        join(self.terms.iter().filter(|term| !Lexicon::shared().is_generic(&term.stem)))
    }

    /// Only what the question is about.
    pub(super) fn entity_words(&self) -> String {
        join(self.terms.iter().filter(|term| term.role == Role::Entity))
    }
}

fn join<'a>(terms: impl Iterator<Item = &'a Term>) -> String {
    terms.map(|term| term.text.as_str()).collect::<Vec<_>>().join(" ")
}
