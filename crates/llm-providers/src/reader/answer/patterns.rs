//! Patterns around a candidate: prepositions, `by`, apposition, "X is called Y".
//!
//! Decides what the words beside a candidate say about its part in the sentence.

use super::super::lexicon::Lexicon;
use super::super::question::{Asks, Question, Role, Slot};
use super::super::spans::{Span, SpanKind};
use super::super::text::TokenKind;
use super::context::Context;

pub(super) fn patterns(question: &Question, context: &Context<'_>, span: &Span) -> f32 {
    let mut value = 0.0;
    let before = context.before(span.first, 1);
    let article = matches!(before, "the" | "a" | "an" | "its" | "their" | "his" | "her");
    let led_at = if article { span.first.checked_sub(2) } else { span.first.checked_sub(1) };
    let led = led_at.map_or("", |at| context.word(at));
    if question.preposition.as_deref() == Some(led) {
        // The preposition counts fully where the relation stands right before it: "named after X".
        let close = led_at.is_some_and(|at| {
            context
                .anchors
                .iter()
                .any(|anchor| anchor.role != Role::Entity && anchor.at < at && at - anchor.at <= 4)
        });
        value += if close { 0.4 } else { 0.15 };
    } else if question.preposition.is_some()
        && matches!(question.asks, Asks::Thing | Asks::Name | Asks::Person)
    {
        value -= 0.15;
    }
    let by = agent_marker(context, span);
    if question.slot == Slot::Before && by.is_some() {
        let close = by.is_some_and(|at| {
            context
                .anchors
                .iter()
                .any(|anchor| anchor.role == Role::Relation && anchor.at < at && at - anchor.at <= 5)
        });
        value += if close { 0.35 } else { 0.0 };
    }
    if matches!(span.kind, SpanKind::Year | SpanKind::Date) && matches!(led, "in" | "on" | "since" | "from") {
        value += 0.05;
    }
    value += relation_is_noun(question, context, span);
    if question.slot == Slot::After && object_of(context, span) {
        value += 0.3;
    }
    value
}

/// Whether the span follows a word of the relation at once: "studied law", "married his cousin NAME".
fn object_of(context: &Context<'_>, span: &Span) -> bool {
    for at in (span.first.saturating_sub(4)..span.first).rev() {
        if context.anchors.iter().any(|anchor| anchor.at == at && anchor.role == Role::Relation) {
            return true;
        }
        let token = context.tokens.get(at);
        let passes = token.is_some_and(|token| {
            matches!(token.folded.as_str(), "the" | "a" | "an" | "his" | "her" | "its" | "their")
                || span.kind == SpanKind::Name
                    && token.kind == TokenKind::Word
                    && !token.is_capitalised()
                    && Lexicon::shared().class_of(&token.stem).is_some()
        });
        if !passes {
            return false;
        }
    }
    false
}

/// "now called X", "renamed X", "known as X".
pub(super) fn is_called(context: &Context<'_>, span: &Span) -> bool {
    (1..=3).any(|back| {
        let at = span.first.checked_sub(back);
        at.is_some_and(|at| {
            matches!(context.word(at), "called" | "named" | "renamed" | "nicknamed" | "known" | "dubbed")
                && (at + 1..span.first).all(|place| LINKS.contains(&context.word(place)))
        })
    })
}

/// The `by` that leads the span, over an apposition in small letters: "by his pupil NAME".
pub(super) fn agent_marker(context: &Context<'_>, span: &Span) -> Option<usize> {
    for at in (span.first.saturating_sub(5)..span.first).rev() {
        if context.word(at) == "by" {
            return Some(at);
        }
        let token = context.tokens.get(at)?;
        let demonym = Lexicon::shared().is_demonym(&token.folded);
        if token.kind == TokenKind::Mark && !token.is_mark("-") || token.is_capitalised() && !demonym {
            return None;
        }
    }
    None
}

/// Words between a noun and what it is said to be.
const LINKS: &[&str] = &[
    ",",
    "the",
    "a",
    ":",
    "(",
    "\"",
    "“",
    "is",
    "was",
    "are",
    "were",
    "of",
    "name",
    "called",
    "named",
    "known",
    "as",
    "which",
    "about",
    "some",
    "approximately",
    "roughly",
    "around",
    "over",
    "nearly",
    "almost",
    "under",
];

/// "R is C", "R of E was C", "C is the R", "C, the R of E", "R: C" for a question after the R of E.
pub(super) fn relation_is_noun(question: &Question, context: &Context<'_>, span: &Span) -> f32 {
    let nouns: Vec<usize> = context
        .anchors
        .iter()
        .filter(|anchor| anchor.role != Role::Entity)
        .filter(|anchor| {
            question.terms.get(anchor.term).is_some_and(|term| question.class.as_deref() == Some(&term.stem))
        })
        .map(|anchor| anchor.at)
        .collect();
    let mut best: f32 = 0.0;
    for at in nouns {
        if at < span.first {
            let between = at + 1..span.first;
            let distance = between.len();
            let be = between.clone().any(|place| {
                matches!(
                    context.word(place),
                    "is" | "was" | "are" | "were" | ":" | "be" | "being" | "called" | "named"
                )
            });
            let only_marks = between.clone().all(|place| LINKS.contains(&context.word(place)));
            let calls =
                between.clone().any(|place| matches!(context.word(place), "called" | "named" | "known"));
            if only_marks && distance <= 6 {
                best = best.max(if calls { 0.5 } else { 0.35 });
            } else if be && distance <= 7 && context.boundaries_between(at, span.first) == 0 {
                best = best.max(0.22);
            }
        } else if at >= span.end {
            let between = span.end..at;
            let distance = between.len();
            let opens = context.word(span.end);
            let linked = matches!(opens, "," | "is" | "was" | "are" | "were" | "became" | "as" | "(");
            if linked && distance <= 7 && context.boundaries_between(span.end, at) == 0 {
                best = best.max(0.25);
            }
        }
    }
    best
}

/// "The Goldfinch by NAME" for a question after the maker.
pub(super) fn made_by(question: &Question, context: &Context<'_>, span: &Span) -> bool {
    let lexicon = Lexicon::shared();
    if question.asks != Asks::Person || !question.terms.iter().any(|term| lexicon.is_creating(&term.stem)) {
        return false;
    }
    let Some(by) = agent_marker(context, span) else { return false };
    let made = |anchor: &super::context::Anchor| {
        let defined = (anchor.at..by).any(|at| matches!(context.word(at), "is" | "was"));
        anchor.role == Role::Entity
            && anchor.at < by
            && (by - anchor.at <= 3 || defined && by - anchor.at <= 14)
    };
    context.boundaries_between(by, span.first) == 0 && context.anchors.iter().any(made)
}

/// "It was published by NAME" for a question after the creator: another verb of making.
pub(super) fn made_otherwise(question: &Question, context: &Context<'_>, span: &Span) -> bool {
    let lexicon = Lexicon::shared();
    if question.asks != Asks::Person || !question.terms.iter().any(|term| lexicon.is_creating(&term.stem)) {
        return false;
    }
    let Some(by) = agent_marker(context, span) else { return false };
    context.starts_with_subject()
        && (by.saturating_sub(12)..by).any(|at| lexicon.is_creating(context.stem(at)))
}

/// `X, "Y"`, `X means Y` for a question after the meaning of X.
pub(super) fn means(question: &Question, context: &Context<'_>, span: &Span) -> bool {
    if span.kind != SpanKind::Quoted || !question.terms.iter().any(|term| term.stem == "mean") {
        return false;
    }
    context.anchors.iter().any(|anchor| anchor.at < span.first && span.first - anchor.at <= 4)
}
