//! Python's `float()` of a text, because the official scorer of GAIA is defined by it: white space around, digits of
//! any script, underscores between digits, `nan`, `inf` and `infinity` in any case.
//!
//! Source: the language reference of `float` and CPython 3.11's behaviour, which `tests/it/cases/gaia.jsonl` records.

use std::borrow::Cow;

/// The zeros of all decimal digits (general category `Nd`) of Unicode 14.0, as Python's `unicodedata` has them; the
/// nine others of each script follow its zero.
const ZEROS: [u32; 66] = [
    0x0030, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66,
    0x0DE6, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50,
    0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30,
    0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0,
    0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC,
    0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0,
];

/// What `float(text)` is; none where it would raise `ValueError`.
pub(super) fn python_float(text: &str) -> Option<f64> {
    let ascii = to_ascii(text)?;
    let trimmed = ascii.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r'));
    let bare = without_underscores(trimmed)?;
    // Rust reads the same grammar: sign, digits with a point, exponent, and the three words in any case.
    bare.parse().ok()
}

/// The text with digits of other scripts as ASCII ones and other white space as blanks.
fn to_ascii(text: &str) -> Option<Cow<'_, str>> {
    if text.is_ascii() {
        return Some(Cow::Borrowed(text));
    }
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        ascii.push(if character.is_ascii() {
            character
        } else if character.is_whitespace() {
            ' '
        } else {
            digit(character)?
        });
    }
    Some(Cow::Owned(ascii))
}

fn digit(character: char) -> Option<char> {
    let code = u32::from(character);
    let script = ZEROS.partition_point(|zero| *zero <= code).checked_sub(1)?;
    char::from_digit(code - ZEROS.get(script)?, 10)
}

/// An underscore must stand between two digits.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let bytes = text.as_bytes();
    let digit_at = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    for (index, _) in text.match_indices('_') {
        if !(index > 0 && digit_at(index - 1) && digit_at(index + 1)) {
            return None;
        }
    }
    Some(Cow::Owned(text.replace('_', "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_reads() {
        for (text, expected) in [
            ("1_000", Some(1000.0)),
            ("1e1_0", Some(1e10)),
            ("1_0.0_1", Some(10.01)),
            ("\u{661}_\u{660}", Some(10.0)),
            ("\u{ff11}\u{ff12}", Some(12.0)),
            ("\u{1d7d8}\u{1d7d9}", Some(1.0)),
            ("\u{2003}1\u{85}", Some(1.0)),
            (" 12\n", Some(12.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("infinity", Some(f64::INFINITY)),
            ("-Inf", Some(f64::NEG_INFINITY)),
            ("1e999", Some(f64::INFINITY)),
            ("_1", None),
            ("1__0", None),
            ("1_", None),
            ("1_e1", None),
            ("+-1", None),
            ("- 1", None),
            ("0x10", None),
            ("1e", None),
            (".", None),
            ("", None),
            ("\u{1c}1", None),
            ("\u{bd}", None),
            ("\u{feff}1", None),
            ("nan(1)", None),
        ] {
            assert_eq!(python_float(text), expected, "{text:?}");
        }
        assert!(python_float("+NaN").is_some_and(f64::is_nan));
    }
}
