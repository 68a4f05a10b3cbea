//! The content words of a question, what each does and how much it weighs.
//!
//! Decides which words evidence must cover. The form of the answer was decided before.

use super::super::lexicon::{Dimension, Lexicon, NounClass};
use super::super::text::{Token, TokenKind};
use super::{Asks, DO, Gap, MOST_TERMS, Question, Role, Term, WH};

pub(super) fn collect_terms(words: &[&Token<'_>], gap: &Gap, question: &mut Question) {
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
        || question.asks == Asks::Place
            && matches!(token.folded.as_str(), "lie" | "lies" | "stand" | "stands" | "located" | "situated")
        || matches!(question.asks, Asks::Quantity(_)) && !Lexicon::shared().unit(&token.folded).is_empty()
        || question.asks == Asks::Quantity(Dimension::Mass) && token.stem == "weigh"
        || question.class_kind == Some(NounClass::Nationality) && in_class
}

/// Where no word is a name, the last noun is what the question is about.
pub(super) fn name_the_topic(words: &[&Token<'_>], question: &mut Question) {
    if question.terms.iter().any(|term| term.role == Role::Entity) {
        return;
    }
    let acts = words.iter().any(|token| DO.contains(&token.folded.as_str()));
    let last_word =
        words.iter().rev().find(|token| token.kind == TokenKind::Word).map(|token| token.stem.clone());
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
