//! Narrower pieces of what `spans` found, cut by what the question asks.
//!
//! Decides where an answer begins and ends inside a longer name or phrase.

use super::super::lexicon::{Lexicon, NounClass};
use super::super::question::{Asks, Question, Role};
use super::super::spans::glued_possessive;
use super::super::spans::{Span, SpanKind};
use super::super::text::{Token, TokenKind};
use super::context::Context;

/// Adds the narrower pieces that an answer should be: "Junko Tabei" of "Junko Tabei of Japan", what stands after
/// the class noun in "the pigment ultramarine".
pub(super) fn narrowed(question: &Question, context: &Context<'_>, pieces: &mut Vec<Span>) {
    let lexicon = Lexicon::shared();
    let mut added = Vec::new();
    for span in pieces.iter_mut() {
        // The verb is no part of its object: "law" of "studied law".
        if span.kind == SpanKind::Phrase
            && span.end > span.first + 1
            && context.anchors.iter().any(|anchor| anchor.at == span.first && anchor.role == Role::Relation)
            && context.tokens.get(span.first).is_some_and(|token| !token.is_capitalised())
        {
            span.first += 1;
        }
        if question.asks == Asks::Person && span.kind == SpanKind::Name {
            let of = (span.first + 2..span.end).find(|at| matches!(context.word(*at), "of" | "from"));
            let ranked = context
                .tokens
                .get(span.first..of.unwrap_or(span.end))
                .unwrap_or_default()
                .iter()
                .any(|token| lexicon.class_of(&token.stem) == Some(NounClass::Person));
            if let Some(of) = of.filter(|_| !ranked) {
                span.end = of;
            }
        }
        if question.asks == Asks::Place && span.kind == SpanKind::Name {
            // "Andes of Ecuador": each part is a place.
            if let Some(of) =
                (span.first + 1..span.end.saturating_sub(1)).find(|at| context.word(*at) == "of")
            {
                let rest = if context.word(of + 1) == "the" { of + 2 } else { of + 1 };
                added.push(Span { kind: SpanKind::Name, first: span.first, end: of });
                added.push(Span { kind: SpanKind::Name, first: rest, end: span.end });
            }
        }
        if let (Some(class), SpanKind::Phrase) = (question.class.as_deref(), span.kind) {
            let noun = (span.first..span.end.saturating_sub(1)).find(|at| {
                context.stem(*at) == class && !context.tokens.get(*at).is_some_and(Token::is_capitalised)
            });
            if let Some(noun) =
                noun.filter(|noun| context.tokens.get(noun + 1).is_some_and(|t| t.kind == TokenKind::Word))
            {
                added.push(Span { kind: SpanKind::Phrase, first: noun + 1, end: span.end });
            }
        }
    }
    if let (Asks::Name, Some(class)) = (question.asks, question.class.as_deref()) {
        added.extend(named_clause(context, class));
    }
    for span in pieces.iter().filter(|span| span.kind == SpanKind::Name) {
        // "Newton's Principia" where the question names Newton.
        let mark = (span.first + 1..span.end.saturating_sub(1)).find(|at| context.word(*at) == "s");
        if let Some(mark) = mark
            && glued_possessive(&context.tokens, mark)
            && context.overlap(span.first, mark).0
        {
            added.push(Span { kind: SpanKind::Name, first: mark + 1, end: span.end });
        }
    }
    pieces.extend(added);
}

/// "its Latin motto, Nullius in verba, …": what stands between the noun and the next mark.
fn named_clause(context: &Context<'_>, class: &str) -> Option<Span> {
    let noun = (0..context.tokens.len()).find(|at| context.stem(*at) == class)?;
    let mut first = noun + 1;
    if !matches!(context.word(first), "," | "is" | "was" | ":" | "being" | "(") {
        return None;
    }
    first += 1;
    while matches!(context.word(first), "the" | "\"" | "“" | "called") {
        first += 1;
    }
    let capital = context.tokens.get(first).is_some_and(Token::is_capitalised);
    let end = (first..context.tokens.len().min(first + 9)).find(|at| {
        context.tokens.get(*at).is_some_and(|token| token.kind == TokenKind::Mark && !token.is_mark("-"))
    })?;
    (capital && end > first).then_some(Span { kind: SpanKind::Quoted, first, end })
}
