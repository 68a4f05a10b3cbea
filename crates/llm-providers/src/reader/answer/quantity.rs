//! How well a number with a unit suits "how long", "how old" and the like.
//!
//! Decides whether the dimension is the one that is asked for.

use super::super::lexicon::{Dimension, Lexicon, NounClass};
use super::super::question::Question;
use super::super::spans::Span;
use super::context::Context;

pub(super) fn quantity(
    question: &Question,
    context: &Context<'_>,
    span: &Span,
    wanted: Dimension,
    found: Dimension,
) -> Option<f32> {
    let matches = wanted == found
        || Lexicon::shared().unit(context.stem(span.end.checked_sub(1)?)).contains(&wanted)
        || Lexicon::shared().unit(context.word(span.end.checked_sub(1)?)).contains(&wanted);
    if !matches {
        return None;
    }
    let other = other_dimension(question, context, span);
    let unit_met = question.unit.as_deref().is_none_or(|unit| {
        let last = context.word(span.end - 1);
        last == unit || last.trim_end_matches('s') == unit.trim_end_matches('s')
    });
    Some(if unit_met { 0.5 } else { 0.2 } - if other { 0.3 } else { 0.0 })
}

/// "12 lunar months" for "how many months": the unit that is asked for follows within a few words.
pub(super) fn counts_unit(question: &Question, context: &Context<'_>, span: &Span) -> bool {
    let singular = |word: &str| word.trim_end_matches('s').to_owned();
    question.unit.as_deref().is_some_and(|unit| {
        (span.end..span.end + 3)
            .any(|at| !context.word(at).is_empty() && singular(context.word(at)) == singular(unit))
    })
}

/// "aged 36", "at the age of seventeen".
pub(super) fn states_age(context: &Context<'_>, span: &Span) -> bool {
    let before = context.before(span.first, 1);
    matches!(before, "aged" | "age")
        || matches!(before, "of" | "only") && (2..=4).any(|back| context.before(span.first, back) == "age")
}

/// "80 km wide" where the question asks how long.
fn other_dimension(question: &Question, context: &Context<'_>, span: &Span) -> bool {
    let lexicon = Lexicon::shared();
    let asked = |stem: &str| {
        question
            .terms
            .iter()
            .any(|term| term.stem == stem || lexicon.synonyms(&term.stem).iter().any(|other| other == stem))
    };
    let measure = |at: usize| lexicon.adjective(context.word(at)).is_some() && !asked(context.stem(at));
    let noun = |at: usize| {
        matches!(lexicon.class_of(context.stem(at)), Some(NounClass::Quantity(_))) && !asked(context.stem(at))
    };
    let follows = measure(span.end) || context.word(span.end) == "in" && noun(span.end + 1);
    let leads = (1..=3).any(|back| {
        span.first.checked_sub(back).is_some_and(|at| {
            noun(at) || back <= 2 && context.word(at).ends_with("er") && is_comparative(context, at, &asked)
        })
    });
    follows || leads
}

/// "nowhere wider than 80 km".
fn is_comparative(context: &Context<'_>, at: usize, asked: &dyn Fn(&str) -> bool) -> bool {
    let lexicon = Lexicon::shared();
    let word = context.word(at);
    let base = word.strip_suffix("er").unwrap_or(word);
    let known = lexicon.adjective(base).is_some()
        || lexicon.adjective(word.strip_suffix('r').unwrap_or(word)).is_some();
    known && !asked(context.stem(at))
}
