//! The name that was probably meant.

/// The valid name nearest to what was written, where one is near enough to be worth naming.
pub(crate) fn nearest<'a>(written: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = folded(written);
    let mut best: Option<(f64, &str)> = None;
    for name in valid {
        let score = closeness(&written, &folded(name));
        if best.is_none_or(|(known, _)| score > known) {
            best = Some((score, name));
        }
    }
    best.filter(|(score, _)| *score >= ENOUGH).map(|(_, name)| name)
}

/// Below this, a suggestion would be a guess.
const ENOUGH: f64 = 0.6;

/// From 0 to 1: by edits, or, where one name holds the other whole, by how much of it that is.
fn closeness(written: &str, name: &str) -> f64 {
    let edits = strsim::normalized_damerau_levenshtein(written, name);
    let (short, long) = if written.len() < name.len() { (written, name) } else { (name, written) };
    if short.len() >= 3 && long.contains(short) { edits.max(0.62) } else { edits }
}

/// Case and the way of joining words do not count.
fn folded(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn suggestions() {
        let valid = ["max_turns", "tools", "tool_blacklist", "base_url", "keep_tool_result"];
        for (written, expected) in [
            ("max_turn", Some("max_turns")),
            ("maxturns", Some("max_turns")),
            ("Max-Turns", Some("max_turns")),
            ("openai_base_url", Some("base_url")),
            ("keep_tool_results", Some("keep_tool_result")),
            ("blacklist", Some("tool_blacklist")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, valid), expected, "{written}");
        }
    }
}
