//! JSON with line breaks.
//!
//! Decides the layout only: numbers and strings stay as they were written, which reading them into
//! values would not grant.

use serde::de::IgnoredAny;

/// Levels beyond which a text is left as it is: each line is indented by its depth, so that what nests without end
/// would grow with its square.
const DEEPEST: usize = 100;

/// The text indented; none where it is not one JSON document, or one of unreasonable depth.
pub(super) fn indented(text: &str) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    let mut depth = 0usize;
    let (mut in_string, mut escaped) = (false, false);
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if in_string {
            out.push(character);
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            '"' => {
                in_string = true;
                out.push('"');
            }
            '{' | '[' => {
                out.push(character);
                while rest.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(close) = rest.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    if depth > DEEPEST {
                        return None;
                    }
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            character if character.is_ascii_whitespace() => {}
            character => out.push(character),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_layout_changes() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(indented(text).as_deref(), expected, "{text}");
        check("{}", Some("{}"));
        check(" [ ] ", Some("[]"));
        check("1.0e400", Some("1.0e400"));
        check("123456789012345678901234567890.10", Some("123456789012345678901234567890.10"));
        check(
            r#"{"b":[1, 2.50,{"a":"x, {\" y\\"}],"a":{}}"#,
            Some(
                "{\n  \"b\": [\n    1,\n    2.50,\n    {\n      \"a\": \"x, {\\\" y\\\\\"\n    }\n  ],\n  \"a\": {}\n}",
            ),
        );
        check("{\"a\": 1}\n{\"a\": 2}", None);
        check(&"[".repeat(100_000), None);
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        check(&nested(DEEPEST + 1), None);
        check(&nested(100_000), None);
        assert!(indented(&nested(DEEPEST)).is_some());
    }
}
