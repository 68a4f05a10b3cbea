//! What a question asks for: the kind of answer, the words that evidence must cover, where the gap stands.
//!
//! Decides the analysis of one question. Splitting a nested question in two is left to `decompose`; finding the
//! question in a task to `task`.

mod grammar;
mod terms;

use self::grammar::{
    has_preposition, is_bare_name, is_bare_subject, is_possessive, noun_phrase_end, rest_is_empty,
};
use self::terms::{collect_terms, name_the_topic};
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
const AUXILIARY: &[&str] = &[
    "is", "was", "are", "were", "did", "does", "do", "has", "have", "had", "can", "could", "will", "would",
    "should",
];
const PREPOSITIONS: &[&str] = &[
    "in", "on", "at", "by", "from", "to", "of", "for", "with", "after", "into", "through", "under", "near",
    "during", "against", "between", "over", "across", "as", "about", "than",
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
        let start = (1..words.len())
            .find(|at| !matches!(folded(words, *at), "me" | "us" | "the" | "out" | "a" | "an"));
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
                question.class =
                    end.checked_sub(1).and_then(|last| words.get(last)).map(|token| token.stem.clone());
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
            } else if mentions(&[
                "cost", "paid", "worth", "pay", "earn", "sold", "spent", "price", "bought", "sell",
            ]) {
                Asks::Quantity(Dimension::Money)
            } else {
                Asks::Count
            };
        }
        "long"
            if mentions(&[
                "last",
                "lasted",
                "take",
                "took",
                "live",
                "lived",
                "reign",
                "rule",
                "spend",
                "stay",
                "serve",
                "work",
                "ago",
                "after",
                "before",
                "did",
                "imprisoned",
                "held",
                "captive",
                "captivity",
                "kept",
                "spent",
                "need",
                "takes",
                "remain",
                "for",
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
            && !(start..words.len())
                .take_while(|place| !is_possessive(words, *place))
                .any(|place| folded(words, place) == "of");
        let naming = (start + 1..words.len())
            .any(|place| matches!(folded(words, place), "called" | "named" | "known" | "nicknamed"));
        if naming && folded(words, words.len() - 1) != "after" {
            name_asked(words, start, question, gap);
            return;
        }
        let last_word = (start..words.len())
            .rev()
            .find(|place| words.get(*place).is_some_and(|w| w.kind != TokenKind::Mark));
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
        } else if !definite && (is_last || !participle) && !has_preposition(words, start)
            || is_last && is_bare_name(words, start)
        {
            question.asks = Asks::Definition;
        } else if participle && is_bare_subject(words, start) {
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
    // "What name did X carry?", "What pen name did X put on it?"
    if let Some(name) = (at + 1..at + 4).find(|place| matches!(folded(words, *place), "name" | "nickname"))
        && AUXILIARY.contains(&folded(words, name + 1))
    {
        question.asks = Asks::Name;
        question.class_kind = Some(NounClass::Name);
        question.slot = Slot::After;
        question.naming = true;
        gap.asking.extend(at + 1..=name);
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
    let end = noun_phrase_end(words, start);
    if end.checked_sub(1).and_then(|last| words.get(last)).is_some_and(|token| !token.is_capitalised()) {
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
            NounClass::Language
            | NounClass::Group
            | NounClass::Work
            | NounClass::Name
            | NounClass::Nationality,
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
