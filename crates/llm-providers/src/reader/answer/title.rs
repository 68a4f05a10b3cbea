//! The title of the document as the answer: a sentence may speak of it by a pronoun only.
//!
//! Decides whether the subject of the article can be what is asked for.

use super::super::lexicon::{Lexicon, NounClass};
use super::super::question::{Asks, Question, Slot};
use super::super::text::{TokenKind, tokens};
use super::context::Context;
use super::fit::Fit;

/// Judges the document's title as the answer: the sentence may speak of it by a pronoun only.
pub(super) fn of_title(question: &Question, context: &Context<'_>) -> Option<Fit> {
    if context.title.is_empty() || context.title.len() > 100 {
        return None;
    }
    if !matches!(question.asks, Asks::Person | Asks::Place | Asks::Name | Asks::Thing) {
        return None;
    }
    let words = tokens(context.title);
    let mut all = true;
    let mut some = false;
    for token in &words {
        if token.kind == TokenKind::Mark || Lexicon::shared().is_stopword(&token.folded) {
            continue;
        }
        if context.asked.contains(&token.stem.as_str()) {
            some = true;
        } else {
            all = false;
        }
    }
    if all || some && question.asks == Asks::Person {
        return None;
    }
    let lexicon = Lexicon::shared();
    let classes: Vec<NounClass> = context.genus.iter().filter_map(|noun| lexicon.class_of(noun)).collect();
    let wanted = match question.asks {
        Asks::Person => Some(NounClass::Person),
        Asks::Place => Some(NounClass::Place),
        _ => question.class_kind,
    };
    let mut form: f32 = 0.3;
    match wanted {
        Some(wanted) if classes.first() == Some(&wanted) || classes.contains(&wanted) => form += 0.15,
        Some(_) if !classes.is_empty() || question.asks == Asks::Person && !context.genus.is_empty() => {
            form -= 0.3
        }
        _ => {}
    }
    if question.class.as_ref().is_some_and(|class| context.genus.contains(class)) {
        form += 0.3;
    }
    let subject = context.starts_with_subject();
    let mut pattern = match (question.slot, subject) {
        (Slot::Before, true) => 0.25,
        (Slot::Before, false) => 0.0,
        (Slot::After, true) => -0.15,
        (_, true) => 0.1,
        (_, false) => -0.1,
    };
    if some {
        pattern -= 0.25;
    }
    let near = if subject { 0.55 } else { 0.3 };
    // "It is the capital of …" says what the title is.
    if subject && question.class.is_some() {
        let be = (0..context.tokens.len().min(12))
            .find(|at| matches!(context.word(*at), "is" | "was" | "are" | "were"));
        if be.is_some_and(|be| (be + 1..be + 5).any(|at| question.class.as_deref() == Some(context.stem(at))))
        {
            pattern += 0.35;
        }
    }
    let confirmed = question.class.as_ref().is_some_and(|class| context.genus.contains(class));
    Some(Fit { form, near, pattern, relation: if confirmed { 0.4 } else { 0.0 } })
}
