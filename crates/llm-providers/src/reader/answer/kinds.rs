//! How well names and phrases suit a kind of answer: persons, places, names, things.
//!
//! Decides by the words of the candidate, the words before it, and what documents of that name say.

use super::super::lexicon::{Lexicon, NounClass};
use super::super::question::Question;
use super::super::spans::Span;
use super::super::text::{Token, TokenKind, stem_of};
use super::context::Context;

/// Nouns that tell a body or a building from a person.
pub(super) fn holds_class(context: &Context<'_>, span: &Span, wanted: &[NounClass]) -> bool {
    let lexicon = Lexicon::shared();
    context
        .tokens
        .get(span.first..span.end)
        .unwrap_or_default()
        .iter()
        .any(|token| lexicon.class_of(&token.stem).is_some_and(|class| wanted.contains(&class)))
}

/// Whether the name is nothing but the name of a people or a language.
fn is_demonym(context: &Context<'_>, span: &Span) -> bool {
    let lexicon = Lexicon::shared();
    context
        .tokens
        .get(span.first..span.end)
        .unwrap_or_default()
        .iter()
        .all(|token| token.kind == TokenKind::Mark || lexicon.is_demonym(&token.folded))
}

/// The class of what a document of this name is about.
fn known_class(context: &Context<'_>, span: &Span) -> Option<NounClass> {
    let name = span.text(context.text, &context.tokens);
    let lexicon = Lexicon::shared();
    let genus = context.genus_of(name)?;
    genus.iter().find_map(|noun| lexicon.class_of(noun))
}

/// A capitalised word that only starts the sentence is most often no name.
fn starts_sentence(span: &Span) -> f32 {
    if span.first == 0 && span.end == 1 { 0.15 } else { 0.0 }
}

pub(super) fn person(context: &Context<'_>, span: &Span) -> Option<f32> {
    if is_demonym(context, span) {
        return None;
    }
    let lexicon = Lexicon::shared();
    let mut value: f32 = 0.42 - starts_sentence(span);
    let before = context.before(span.first, 1);
    let words = span.end - span.first;
    match known_class(context, span) {
        Some(NounClass::Person) => value += 0.15,
        Some(_) => value -= 0.35,
        None => {}
    }
    if span.first > 0 && lexicon.class_of(context.stem(span.first - 1)) == Some(NounClass::Person) {
        value += 0.15;
    }
    if holds_class(context, span, &[NounClass::Person]) {
        value += 0.1;
    }
    if holds_class(context, span, &[NounClass::Place, NounClass::Group]) {
        // "Alonzo Church" is a man, "the Trinity Church" is none.
        value -= if words == 2 && before != "the" { 0.1 } else { 0.4 };
    }
    if lexicon.is_country(span.text(context.text, &context.tokens)) {
        value -= 0.4;
    }
    if holds_class(context, span, &[NounClass::Language, NounClass::Work]) {
        value -= 0.4;
    }
    match words {
        2..=4 => value += 0.08,
        1 => value -= 0.06,
        _ => {}
    }
    if matches!(before, "in" | "at" | "near" | "from" | "to" | "into" | "on" | "through") {
        value -= 0.3;
    }
    if matches!(before, "a" | "an") && !holds_class(context, span, &[NounClass::Person]) {
        value -= 0.3;
    }
    if before == "the" && !holds_class(context, span, &[NounClass::Person]) {
        value -= 0.2;
    }
    let first = context.tokens.get(span.first)?;
    if first.text.len() > 1 && words == 1 && first.text.chars().all(char::is_uppercase) {
        value -= 0.2;
    }
    Some(value)
}

pub(super) fn person_phrase(context: &Context<'_>, span: &Span) -> Option<f32> {
    // "by a Scottish engineer": only where no name stands in the phrase.
    let named = context
        .tokens
        .get(span.first..span.end)?
        .iter()
        .any(|token| token.is_capitalised() && !Lexicon::shared().is_demonym(&token.folded));
    let last = span.end.checked_sub(1)?;
    let is_person = Lexicon::shared().class_of(context.stem(last)) == Some(NounClass::Person);
    (!named && is_person).then_some(0.15)
}

pub(super) fn place(question: &Question, context: &Context<'_>, span: &Span) -> Option<f32> {
    if is_demonym(context, span) {
        return None;
    }
    let lexicon = Lexicon::shared();
    let mut value: f32 = 0.4 - starts_sentence(span);
    let before = context.before(span.first, 1);
    let led = if matches!(before, "the") { context.before(span.first, 2) } else { before };
    if matches!(led, "in" | "at" | "near" | "to" | "from" | "into" | "on" | "of" | "through") {
        value += if led == "of" || led == "from" || led == "to" { 0.06 } else { 0.14 };
    }
    match known_class(context, span) {
        Some(NounClass::Place) => value += 0.15,
        Some(_) => value -= 0.3,
        None => {}
    }
    if holds_class(context, span, &[NounClass::Place]) {
        value += 0.08;
    }
    if span.first > 0 && lexicon.class_of(context.stem(span.first - 1)) == Some(NounClass::Person)
        || before == "by"
    {
        value -= 0.35;
    }
    if question.class.is_none() && holds_class(context, span, &[NounClass::Person, NounClass::Group]) {
        value -= 0.2;
    }
    if let Some(class) = question.class.as_deref() {
        let tokens = context.tokens.get(span.first..span.end)?;
        let has = |wanted: bool| {
            tokens.iter().any(|token| {
                lexicon.class_of(&token.stem) == Some(NounClass::Place) && (token.stem == class) == wanted
            })
        };
        // "Black Forest" is no sea.
        if has(false) && !has(true) {
            return None;
        }
        // Of "the Panthéon in Paris" the building is the first.
        let city = ["city", "town", "place"].iter().any(|noun| stem_of(noun) == class);
        if !city && !is_country_noun(class) && led == "in" && span.first >= 2 {
            let at = if before == "the" { span.first.checked_sub(3) } else { span.first.checked_sub(2) };
            if at.and_then(|at| context.tokens.get(at)).is_some_and(Token::is_capitalised) {
                value -= 0.2;
            }
        }
        let country = lexicon.is_country(span.text(context.text, &context.tokens));
        match (is_country_noun(class), country) {
            (true, true) => value += 0.25,
            (false, true) => value -= 0.25,
            (true, false) => value -= 0.05,
            (false, false) => {}
        }
    }
    Some(value)
}

/// Whether the stem is that of a word for countries.
pub(super) fn is_country_noun(stem: &str) -> bool {
    ["country", "nation", "state"].iter().any(|noun| stem_of(noun) == stem)
}

pub(super) fn place_phrase(question: &Question, context: &Context<'_>, span: &Span) -> Option<f32> {
    let last = span.end.checked_sub(1)?;
    let holds_name = context.tokens.get(span.first..span.end)?.iter().any(Token::is_capitalised);
    let before = context.before(span.first, 1);
    let led = if matches!(before, "the" | "a" | "an" | "his" | "her" | "its") {
        context.before(span.first, 2)
    } else {
        before
    };
    if !matches!(led, "in" | "at" | "near" | "on" | "under" | "beside" | "between" | "from") {
        return None;
    }
    let is_place = Lexicon::shared().class_of(context.stem(last)) == Some(NounClass::Place);
    if question.class.is_some() && !is_place {
        return None;
    }
    Some(match (is_place, holds_name) {
        (true, true) => 0.42,
        (true, false) => 0.34,
        (false, true) => 0.3,
        (false, false) => 0.25,
    })
}

pub(super) fn name(question: &Question, context: &Context<'_>, span: &Span) -> Option<f32> {
    let demonym = is_demonym(context, span);
    match question.class_kind {
        Some(NounClass::Nationality) => return demonym.then_some(0.55),
        Some(NounClass::Language) if demonym => return Some(0.48),
        _ => {}
    }
    if demonym {
        return Some(0.2);
    }
    Some(0.42 - starts_sentence(span))
}

/// Names whose later words are small: "Sterna paradisaea", "the Copley medal".
pub(super) fn name_phrase(question: &Question, context: &Context<'_>, span: &Span) -> f32 {
    let named = question.class_kind == Some(NounClass::Name);
    let capital = context.tokens.get(span.first).is_some_and(Token::is_capitalised);
    match (named, capital && span.end - span.first >= 2) {
        (true, true) => 0.46,
        (true, false) => 0.05,
        (false, true) => 0.15,
        (false, false) => 0.1,
    }
}

pub(super) fn thing_phrase(question: &Question, context: &Context<'_>, span: &Span) -> Option<f32> {
    let words = span.end - span.first;
    if words > 9 {
        return None;
    }
    let lexicon = Lexicon::shared();
    let only = context.tokens.get(span.first)?;
    if words == 1
        && (only.kind != TokenKind::Word || lexicon.is_generic(&only.stem) || only.folded.ends_with("ly"))
    {
        return None;
    }
    let mut value = 0.36;
    if let Some(class) = &question.class
        && context.stem(span.end - 1) == class
    {
        // "the Copley Medal" for "which medal".
        value += 0.2;
    }
    if words == 1 && (only.folded.ends_with("ed") || only.folded.ends_with("ing")) {
        value -= 0.15;
    }
    Some(value)
}
