//! One sentence prepared for the extraction: tokens, and where the question's words stand in it.
//!
//! Decides distances and neighbours. What they are worth is left to `fit`.

use std::collections::HashMap;

use super::super::evidence::{Document, Lookup, Passage};
use super::super::question::{Question, Role};
use super::super::text::{Token, TokenKind, stem_of, tokens};

/// A word of the question in the sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    /// Token place.
    pub(super) at: usize,
    /// Index of the term.
    pub(super) term: usize,
    /// What it does in the question.
    pub(super) role: Role,
    /// How much it pulls.
    pub(super) weight: f32,
}

/// A sentence under one question.
pub(super) struct Context<'a> {
    /// The sentence.
    pub(super) text: &'a str,
    /// Its tokens.
    pub(super) tokens: Vec<Token<'a>>,
    /// The question's words in it.
    pub(super) anchors: Vec<Anchor>,
    /// Title of the document.
    pub(super) title: &'a str,
    /// What the document says that its subject is.
    pub(super) genus: &'a [String],
    /// Whether this is the document's first sentence.
    pub(super) is_first: bool,
    /// The same of all documents, by title in lower case.
    pub(super) genera: &'a HashMap<String, &'a [String]>,
    /// Stems of the question's terms.
    pub(super) asked: Vec<&'a str>,
    passage: &'a Passage,
    class: Option<&'a str>,
    /// Prefix counts of clause boundaries, by token place.
    boundaries: Vec<u16>,
}

impl<'a> Context<'a> {
    /// Prepares a sentence.
    pub(super) fn new(
        question: &'a Question,
        document: &'a Document,
        passage: &'a Passage,
        text: &'a str,
        genera: &'a HashMap<String, &'a [String]>,
    ) -> Self {
        let tokens = tokens(text);
        let lookup = Lookup::new(question);
        let mut anchors = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            if token.kind == TokenKind::Mark {
                continue;
            }
            let (exact, soft) = lookup.of(&token.stem);
            let mut left = exact | soft;
            while left != 0 {
                let index = left.trailing_zeros() as usize;
                left &= left - 1;
                let Some(term) = question.terms.get(index) else { continue };
                let pull = match term.role {
                    Role::Relation => 1.0,
                    Role::Entity => 0.6,
                    Role::Class => 1.0,
                };
                let kind = if exact & (1 << index) != 0 { 1.0 } else { 0.6 };
                anchors.push(Anchor { at, term: index, role: term.role, weight: pull * kind * term.weight });
            }
        }
        let mut count = 0_u16;
        let mut boundaries = Vec::with_capacity(tokens.len() + 1);
        for (at, token) in tokens.iter().enumerate() {
            boundaries.push(count);
            let hard = matches!(token.text, ";" | ":" | "—");
            let after_comma = at > 0
                && tokens.get(at - 1).is_some_and(|before| before.is_mark(","))
                && matches!(
                    token.folded.as_str(),
                    "and"
                        | "but"
                        | "while"
                        | "who"
                        | "which"
                        | "where"
                        | "although"
                        | "though"
                        | "whereas"
                        | "so"
                        | "yet"
                );
            let inner = matches!(token.folded.as_str(), "but" | "while" | "whereas" | "although" | "because");
            if hard || after_comma || inner {
                count = count.saturating_add(1);
            }
        }
        boundaries.push(count);
        Self {
            text,
            tokens,
            anchors,
            title: &document.title,
            genus: &document.genus,
            is_first: passage.sentence == 0,
            genera,
            asked: question.terms.iter().map(|term| term.stem.as_str()).collect(),
            passage,
            boundaries,
            class: question.class.as_deref(),
        }
    }

    /// What every candidate of the sentence starts from.
    pub(super) fn base(&self) -> f32 {
        1.2 * self.passage.score + 0.3 * self.pairs()
    }

    /// Share of the question's neighbouring words that are neighbours here as well, 0 to 1.
    fn pairs(&self) -> f32 {
        let pairs = self.asked.len().saturating_sub(1);
        if pairs == 0 {
            return 0.0;
        }
        let mut met = 0;
        for term in 0..pairs {
            let places = |wanted: usize| {
                self.anchors.iter().filter(move |anchor| anchor.term == wanted).map(|anchor| anchor.at)
            };
            if places(term).any(|at| places(term + 1).any(|other| at.abs_diff(other) <= 4)) {
                met += 1;
            }
        }
        let share = met as f32 / pairs as f32;
        // Where the title names the subject, a pronoun stands for it and cannot be a neighbour.
        if self.passage.title >= 0.75 { share.max(0.7) } else { share }
    }

    /// Word at a place, folded.
    pub(super) fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.folded.as_str())
    }

    /// Stem at a place.
    pub(super) fn stem(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.stem.as_str())
    }

    /// Word `back` places before `at`, folded; empty at the beginning.
    pub(super) fn before(&self, at: usize, back: usize) -> &str {
        at.checked_sub(back).map_or("", |place| self.word(place))
    }

    /// Clause boundaries between two places.
    pub(super) fn boundaries_between(&self, a: usize, b: usize) -> u16 {
        let count = |at: usize| self.boundaries.get(at.min(self.tokens.len())).copied().unwrap_or_default();
        count(a.max(b)).saturating_sub(count(a.min(b)))
    }

    /// Whether all words of the tokens stand in the question, and whether some do.
    pub(super) fn overlap(&self, first: usize, end: usize) -> (bool, bool) {
        let (mut all, mut some, mut seen) = (true, false, false);
        for token in self.tokens.get(first..end).unwrap_or_default() {
            if token.kind == TokenKind::Mark
                || super::super::lexicon::Lexicon::shared().is_stopword(&token.folded)
            {
                continue;
            }
            // The class noun may be part of the answer: "Black Sea" for "which sea".
            if self.class == Some(token.stem.as_str()) {
                continue;
            }
            seen = true;
            if self.asked.contains(&token.stem.as_str()) {
                some = true;
            } else {
                all = false;
            }
        }
        // A bare class noun answers nothing.
        (all || !seen, some)
    }

    /// What the documents say that something of this name is.
    pub(super) fn genus_of(&self, name: &str) -> Option<&[String]> {
        self.genera.get(&name.to_lowercase()).copied().filter(|genus| !genus.is_empty())
    }

    /// Whether the sentence speaks of the title's subject: by a pronoun, or by a word of the title.
    pub(super) fn starts_with_subject(&self) -> bool {
        let first = self.word(0);
        if matches!(first, "he" | "she" | "it" | "they") {
            return true;
        }
        // "Her father …" speaks of somebody else.
        if matches!(first, "his" | "her" | "its" | "their") {
            return false;
        }
        let stems: Vec<String> = self.title.split_whitespace().map(stem_of).collect();
        self.tokens.iter().take(4).any(|token| stems.contains(&token.stem))
            || (first == "the" && self.genus.iter().any(|noun| noun == self.stem(1)))
    }
}
