//! Exact match: two answers are the same when nothing but case, white space, ASCII punctuation and an article at the
//! beginning tells them apart. Numbers are compared as numbers.

/// Whether the answer is one of the accepted ones.
pub(crate) fn is_match(answer: &str, accepted: &[&str]) -> bool {
    accepted.iter().any(|truth| match (number(answer), number(truth)) {
        (Some(given), Some(wanted)) => given == wanted,
        _ => plain(answer) == plain(truth),
    })
}

/// The value of a plain decimal number, with thousands separators, a currency or a percent sign around it.
fn number(text: &str) -> Option<f64> {
    let bare: String =
        text.trim().chars().filter(|character| !matches!(character, '$' | '%' | ',')).collect();
    let is_decimal = bare.chars().any(|character| character.is_ascii_digit())
        && bare
            .trim_start_matches('-')
            .chars()
            .all(|character| character.is_ascii_digit() || character == '.');
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
        for (answer, accepted, expected) in [
            ("1477", &["1477"][..], true),
            ("1,424", &["1424"], true),
            ("12.0", &["12"], true),
            ("The Hague", &["hague"], true),
            ("Colin Archer.", &["colin archer"], true),
            ("twenty-one", &["21", "Twenty One"], true),
            ("1.5", &["15"], false),
            ("Archer", &["Colin Archer"], false),
            ("", &["x"], false),
        ] {
            assert_eq!(is_match(answer, accepted), expected, "{answer} {accepted:?}");
        }
    }
}
