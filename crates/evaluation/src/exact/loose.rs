//! When two short answers say the same without anybody judging: case, white space, punctuation and an article at the
//! beginning aside, numbers as numbers. Used by the judge that works offline.

/// Whether the answer and the truth are the same in this sense.
#[must_use]
pub fn loose_match(answer: &str, truth: &str) -> bool {
    match (number(answer), number(truth)) {
        #[expect(clippy::float_cmp, reason = "both are written decimals")]
        (Some(given), Some(wanted)) => given == wanted,
        _ => !plain(answer).is_empty() && plain(answer) == plain(truth),
    }
}

/// The value of a plain decimal number, with thousands separators, a currency or a percent sign around it.
fn number(text: &str) -> Option<f64> {
    let bare: String =
        text.trim().chars().filter(|character| !matches!(character, '$' | '%' | ',')).collect();
    let digits = bare.trim_start_matches('-');
    let is_decimal = digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_decimal.then(|| bare.parse().ok()).flatten()
}

fn plain(text: &str) -> String {
    let lower = text.trim().to_lowercase();
    let bare = ["the ", "a ", "an "].iter().find_map(|article| lower.strip_prefix(article)).unwrap_or(&lower);
    bare.chars().filter(|character| !character.is_whitespace() && !character.is_ascii_punctuation()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        for (answer, truth, expected) in [
            ("1,424", "1424", true),
            ("12.0", "12", true),
            ("The Hague", "hague", true),
            ("Colin Archer.", "colin archer", true),
            ("1.5", "15", false),
            ("-3", "3", false),
            ("Archer", "Colin Archer", false),
            ("", "x", false),
            ("?", "!", false),
        ] {
            assert_eq!(loose_match(answer, truth), expected, "{answer} {truth}");
        }
    }
}
