//! Answers that are more than a name or a number: what something is, and why something is so.
//!
//! Decides where such an answer begins and ends in its sentence.

use super::super::question::Question;
use super::super::text::TokenKind;
use super::context::Context;

/// Longest definition in tokens.
const LONGEST: usize = 16;

/// "X is a C that …": what stands between the verb and the end of the first clause.
pub(super) fn definition(question: &Question, context: &Context<'_>) -> Option<(String, f32)> {
    let be = (0..context.tokens.len().min(40)).find(|at| {
        matches!(context.word(*at), "is" | "was" | "are" | "were" | "means" | "denotes")
            && (0..*at).any(|before| context.asked.contains(&context.stem(before)))
    })?;
    let met = (0..be).filter(|at| context.asked.contains(&context.stem(*at))).count();
    let mut first = be + 1;
    while matches!(context.word(first), "a" | "an" | "the" | "any" | "one") && first < be + 3 {
        first += 1;
    }
    let mut end = first;
    while let Some(token) = context.tokens.get(end) {
        let word = token.folded.as_str();
        let stop = token.kind == TokenKind::Mark && !matches!(token.text, "-" | "'" | "’" | "/")
            || end > first + 1
                && matches!(word, "that" | "which" | "who" | "whose" | "where" | "when" | "and" | "used");
        if stop && end > first {
            // "an English mathematician, physicist and …" goes on only where the clause is still short.
            let goes_on = token.is_mark(",") && end < first + 2;
            if !goes_on {
                break;
            }
        }
        if end - first >= LONGEST {
            break;
        }
        end += 1;
    }
    while end > first + 1 && super::super::lexicon::Lexicon::shared().is_stopword(context.word(end - 1)) {
        end -= 1;
    }
    let start = context.tokens.get(first)?.start;
    let stop = context.tokens.get(end.checked_sub(1)?)?.end;
    let text = context.text.get(start..stop)?.trim().to_owned();
    let share = met as f32 / question.terms.len().max(1) as f32;
    let mut fit = 0.3 + 0.2 * share.min(1.0);
    if context.is_first {
        fit += 0.15;
    }
    if be > 12 {
        fit -= 0.15;
    }
    Some((text, fit))
}

/// Words that lead a cause.
const CAUSES: &[&[&str]] = &[
    &["because", "of"],
    &["because"],
    &["due", "to"],
    &["owing", "to"],
    &["in", "order", "to"],
    &["so", "that"],
    &["as", "a", "result", "of"],
    &["since"],
    &["to"],
    &["for"],
];

/// The clause after a word that leads a cause.
pub(super) fn reason(context: &Context<'_>) -> Option<(String, f32)> {
    for (rank, lead) in CAUSES.iter().enumerate() {
        let found = (0..context.tokens.len())
            .find(|at| lead.iter().enumerate().all(|(offset, word)| context.word(at + offset) == *word));
        let Some(at) = found else { continue };
        let first = at + lead.len();
        let end = (first..context.tokens.len())
            .find(|place| matches!(context.word(*place), ";" | "." | ":") || place - first > 24)
            .unwrap_or(context.tokens.len());
        let (start, stop) = (context.tokens.get(first)?.start, context.tokens.get(end.checked_sub(1)?)?.end);
        let text = context.text.get(start..stop)?.trim().trim_end_matches(',').to_owned();
        let fit = if rank < 7 { 0.5 } else { 0.5 - 0.08 * (rank - 6) as f32 };
        return Some((text, fit));
    }
    None
}
