//! How well a candidate suits the question, by its form and by its place.
//!
//! Decides the features and their worth. The figures were set by hand on development questions.

use super::super::lexicon::{Dimension, Lexicon};
use super::super::question::{Asks, Question, Role, Slot};
use super::super::spans::{Span, SpanKind};
use super::context::Context;
use super::kinds::{name, name_phrase, person, person_phrase, place, place_phrase, thing_phrase};
use super::patterns::{agent_marker, is_called, made_by, made_otherwise, means, patterns, relation_is_noun};
use super::quantity::{counts_unit, quantity, states_age};

/// The parts of a candidate's worth.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fit {
    /// The form against the kind of answer; 0.5 is what a good one has.
    pub(super) form: f32,
    /// Nearness to the question's words.
    pub(super) near: f32,
    /// Patterns: prepositions, apposition, side of the verb.
    pub(super) pattern: f32,
    /// How much of the relation the pattern itself accounts for, 0 to 1: "X by NAME" says who made X.
    pub(super) relation: f32,
}

impl Fit {
    /// The sum.
    pub(super) fn total(self) -> f32 {
        self.form + 0.8 * self.near + self.pattern
    }
}

/// Judges a piece of the sentence; none where it cannot be the answer.
pub(super) fn of_span(question: &Question, context: &Context<'_>, span: &Span) -> Option<Fit> {
    let form = form(question, context, span)?;
    let (all_asked, some_asked) = context.overlap(span.first, span.end);
    let measured =
        matches!(span.kind, SpanKind::Number | SpanKind::Quantity(_) | SpanKind::Date | SpanKind::Year);
    if all_asked && !(measured && matches!(span.kind, SpanKind::Quantity(_))) {
        return None;
    }
    let near = nearness(question, context, span);
    let mut pattern = patterns(question, context, span);
    if some_asked && !measured {
        // Relatives and namesakes share a name.
        pattern -= if question.asks == Asks::Person { 0.15 } else { 0.3 };
    }
    let mut relation = 0.0;
    if made_by(question, context, span) {
        pattern += 0.35;
        relation = 0.85;
    } else if made_otherwise(question, context, span) {
        pattern += 0.25;
        relation = 0.6;
    }
    if question.naming && is_called(context, span) {
        pattern += 0.4;
        relation = 0.7;
    }
    if means(question, context, span) {
        pattern += 0.45;
        relation = 0.85;
    }
    Some(Fit { form, near, pattern, relation })
}

fn form(question: &Question, context: &Context<'_>, span: &Span) -> Option<f32> {
    let value = match (question.asks, span.kind) {
        (Asks::Year, SpanKind::Year) => 0.5,
        (Asks::Year, SpanKind::Date) => {
            let has_year =
                context.tokens.get(span.first..span.end)?.iter().any(|token| {
                    token.text.len() >= 3 && token.text.bytes().all(|byte| byte.is_ascii_digit())
                });
            if !has_year {
                return None;
            }
            0.5
        }
        (Asks::Year, SpanKind::Period) => 0.1,
        (Asks::Date, SpanKind::Date) => 0.55,
        (Asks::Date, SpanKind::Year) => 0.5,
        (Asks::Date, SpanKind::Period) => {
            let wants_period = question
                .class
                .as_deref()
                .is_some_and(|class| matches!(class, "centuri" | "decad" | "era" | "period"));
            if wants_period { 0.7 } else { 0.35 }
        }
        (Asks::Count, SpanKind::Number) => 0.3,
        (Asks::Count, SpanKind::Quantity(Dimension::Percent)) => 0.15,
        (Asks::Count, SpanKind::Quantity(_)) => 0.05,
        (Asks::Quantity(Dimension::Length), SpanKind::Quantity(Dimension::Duration))
            if question.class.is_some() =>
        {
            0.35
        }
        (Asks::Quantity(wanted), SpanKind::Quantity(found)) => {
            quantity(question, context, span, wanted, found)?
        }
        (Asks::Quantity(Dimension::Duration), SpanKind::Number) if states_age(context, span) => 0.45,
        (Asks::Quantity(_), SpanKind::Number) if counts_unit(question, context, span) => 0.45,
        (Asks::Person, SpanKind::Name) => person(context, span)?,
        (Asks::Place, SpanKind::Name) => place(question, context, span)?,
        (Asks::Place, SpanKind::Phrase) => place_phrase(question, context, span)?,
        (Asks::Person, SpanKind::Phrase) => person_phrase(context, span)?,
        (Asks::Name, SpanKind::Name) => name(question, context, span)?,
        (Asks::Name, SpanKind::Quoted) => 0.48,
        (Asks::Name, SpanKind::Phrase) => name_phrase(question, context, span),
        (Asks::Thing, SpanKind::Phrase) => thing_phrase(question, context, span)?,
        (Asks::Thing, SpanKind::Name) => {
            // "Which crop" does not want the name of a man or a town, unless what it names is a crop.
            match (question.naming, question.class.is_some()) {
                (true, _) => 0.46,
                (false, true) => 0.24,
                (false, false) => 0.38,
            }
        }
        (Asks::Thing, SpanKind::Quoted) => 0.42,
        (Asks::Thing, SpanKind::Date | SpanKind::Year) => 0.02,
        (Asks::Thing, SpanKind::Number | SpanKind::Quantity(_)) => {
            if question.class.is_some() && relation_is_noun(question, context, span) > 0.3 {
                0.45
            } else {
                0.1
            }
        }
        _ => return None,
    };
    Some(value + class_bonus(question, context, span))
}

/// The class noun beside the candidate, or in what a document of that name says of itself.
fn class_bonus(question: &Question, context: &Context<'_>, span: &Span) -> f32 {
    let Some(class) = question.class.as_deref() else { return 0.0 };
    if matches!(question.asks, Asks::Year | Asks::Date | Asks::Quantity(_)) {
        return 0.0;
    }
    let others = Lexicon::shared().synonyms(class);
    let is_class = |at: Option<usize>| {
        at.is_some_and(|at| context.stem(at) == class || others.iter().any(|other| other == context.stem(at)))
    };
    if question.asks == Asks::Count {
        // "73 extant species": the counted noun follows within a few words.
        let close = (span.end..span.end + 4).position(|at| is_class(Some(at)));
        let asked = (span.end..span.end + 2).any(|at| context.asked.contains(&context.stem(at)));
        let counted = close.map_or(if asked { 0.25 } else { 0.0 }, |distance| 0.45 - 0.05 * distance as f32);
        // "the number of deaths was 36,417", "the number 1729"
        let stated = relation_is_noun(question, context, span) > 0.2
            || (1..=8).any(|back| context.before(span.first, back) == "number")
                && context.boundaries_between(span.first.saturating_sub(8), span.first) == 0;
        return counted.max(if stated { 0.3 } else { 0.0 });
    }
    let inside = (span.first..span.end).any(|at| is_class(Some(at)));
    let beside = is_class(span.first.checked_sub(1))
        || matches!(context.before(span.first, 1), "of" | "the" | ",") && is_class(span.first.checked_sub(2))
        || is_class(Some(span.end));
    let name = span.text(context.text, &context.tokens);
    let genus = context.genus_of(name);
    let known = genus.is_some_and(|genus| genus.iter().any(|noun| noun == class));
    let mut bonus: f32 = 0.0;
    if inside || beside {
        bonus += 0.2;
    }
    if known {
        bonus += 0.25;
    }
    bonus
}

/// Nearness to the question's words, 0 to 1: words of the relation pull more than names.
fn nearness(question: &Question, context: &Context<'_>, span: &Span) -> f32 {
    let agent = agent_marker(context, span);
    let mut best: Vec<f32> = vec![0.0; question.terms.len()];
    for anchor in &context.anchors {
        if (span.first..span.end).contains(&anchor.at) {
            continue;
        }
        let (distance, after) = if anchor.at < span.first {
            (span.first - anchor.at, true)
        } else {
            (anchor.at + 1 - span.end, false)
        };
        let crossing = f32::from(context.boundaries_between(anchor.at, span.first));
        let reach = (distance as f32 - 1.0).max(0.0) + 5.0 * crossing;
        let agent = after && agent.is_some();
        let side = match question.slot {
            Slot::After if !after => 0.75,
            Slot::Before if after && !agent && anchor.role == Role::Relation => 0.75,
            _ => 1.0,
        };
        let pull = anchor.weight * side / (1.0 + reach / 3.0);
        if let Some(value) = best.get_mut(anchor.term) {
            *value = value.max(pull);
        }
    }
    let reachable: f32 = question
        .terms
        .iter()
        .map(|term| match term.role {
            Role::Relation => term.weight,
            Role::Entity => 0.6 * term.weight,
            Role::Class => term.weight,
        })
        .sum();
    if reachable > 0.0 { best.iter().sum::<f32>() / reachable } else { 0.0 }
}
