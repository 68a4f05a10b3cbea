//! Small grammar without a tagger: where a noun phrase ends, what is a name, what is possessive.
//!
//! Decides by word lists, endings and capitals.

use super::super::lexicon::Lexicon;
use super::super::text::{Token, TokenKind};
use super::{PREPOSITIONS, folded};

/// The end of the noun phrase that starts here: at a function word, a verb, a mark, or the end.
pub(super) fn noun_phrase_end(words: &[&Token<'_>], start: usize) -> usize {
    let lexicon = Lexicon::shared();
    let mut at = start;
    while let Some(token) = words.get(at) {
        let hyphen = token.is_mark("-") && at > start;
        if !hyphen {
            let function = lexicon.is_stopword(&token.folded)
                && !matches!(token.folded.as_str(), "first" | "most" | "own");
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
                    && (next.is_empty()
                        || lexicon.is_stopword(next)
                        || words.get(at + 1).is_some_and(|w| w.is_capitalised()));
                if lexicon.is_verb(word) || word.ends_with("ed") || third_person {
                    break;
                }
            }
        }
        at += 1;
    }
    at
}

pub(super) fn is_possessive(words: &[&Token<'_>], at: usize) -> bool {
    words.get(at).is_some_and(|token| token.folded == "s" && at > 0)
        && words
            .get(at)
            .zip(words.get(at - 1))
            .is_some_and(|(mark, before)| mark.start == before.end + 1 || mark.start == before.end + 3)
}

pub(super) fn has_preposition(words: &[&Token<'_>], start: usize) -> bool {
    (start..words.len()).any(|at| PREPOSITIONS.contains(&folded(words, at)))
}

pub(super) fn rest_is_empty(words: &[&Token<'_>], end: usize) -> bool {
    words.get(end..).is_none_or(|rest| rest.iter().all(|token| token.kind == TokenKind::Mark))
}

/// Whether what follows is nothing but a name.
pub(super) fn is_bare_name(words: &[&Token<'_>], start: usize) -> bool {
    let rest: Vec<_> =
        words.get(start..).unwrap_or_default().iter().filter(|t| t.kind != TokenKind::Mark).collect();
    !rest.is_empty()
        && rest.len() <= 7
        && rest.first().is_some_and(|token| token.is_capitalised() || token.folded == "the")
        && rest.iter().all(|token| {
            token.is_capitalised()
                || token.kind != TokenKind::Word
                || matches!(
                    token.folded.as_str(),
                    "of" | "the" | "de" | "von" | "van" | "la" | "al" | "bin" | "ibn" | "and" | "s"
                )
        })
        && rest.iter().any(|token| token.is_capitalised())
}

/// Whether the words between are a subject without a relation of their own.
pub(super) fn is_bare_subject(words: &[&Token<'_>], start: usize) -> bool {
    let lexicon = Lexicon::shared();
    let head_known = words
        .get(start)
        .is_some_and(|token| !token.is_capitalised() && lexicon.class_of(&token.stem).is_some());
    !head_known || folded(words, start + 1) != "of"
}
