//! The official scorer of GAIA, quirks included: numbers as numbers, lists element by element, texts without white
//! space, case and ASCII punctuation. Decides what that scorer decides, not what would be wise.

use super::float::python_float;

/// Whether the official scorer takes the answer for right.
///
/// What the truth is decides how they are compared: a number as numbers (an answer that is none counts as infinity),
/// a text with `,` or `;` as lists of the same length, anything else as texts.
#[must_use]
pub fn gaia_match(answer: &str, truth: &str) -> bool {
    if let Some(wanted) = python_float(truth) {
        return is_number(answer, wanted);
    }
    if !truth.contains([',', ';']) {
        return plain(answer, true) == plain(truth, true);
    }
    let (given, wanted): (Vec<&str>, Vec<&str>) =
        (answer.split([',', ';']).collect(), truth.split([',', ';']).collect());
    given.len() == wanted.len()
        && given.iter().zip(wanted).all(|(given, wanted)| match python_float(wanted) {
            Some(number) => is_number(given, number),
            None => plain(given, false) == plain(wanted, false),
        })
}

/// The answer as a number, without currency, percent signs and thousands separators.
#[expect(clippy::float_cmp, reason = "the official scorer compares exactly")]
fn is_number(answer: &str, wanted: f64) -> bool {
    let bare: String = answer.chars().filter(|character| !matches!(character, '$' | '%' | ',')).collect();
    python_float(&bare).unwrap_or(f64::INFINITY) == wanted
}

fn plain(text: &str, without_punctuation: bool) -> String {
    let bare: String = text.chars().filter(|character| !is_python_space(*character)).collect();
    let mut lower = bare.to_lowercase();
    if without_punctuation {
        lower.retain(|character| !character.is_ascii_punctuation());
    }
    lower
}

/// `\s` of Python's regular expressions: Unicode's white space and the four separators of ASCII.
fn is_python_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}
