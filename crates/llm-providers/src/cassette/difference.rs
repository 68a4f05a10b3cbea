//! Where two values part, in words that a person can act on. Decides how much of each is shown.

use std::fmt::Write as _;

use serde_json::Value;

/// Characters shown before and after the place where two texts part.
const BEFORE: usize = 40;
const AFTER: usize = 60;

/// The first difference between what was recorded and what is asked: the place, and both sides around it.
pub(super) fn describe(recorded: &Value, asked: &Value) -> String {
    let mut path = String::new();
    match first(recorded, asked, &mut path) {
        Some((recorded, asked)) => {
            let place = if path.is_empty() { String::new() } else { format!(" at {path}") };
            match (recorded, asked) {
                (Some(Value::String(recorded)), Some(Value::String(asked))) => {
                    format!("{place}{}", texts(recorded, asked))
                }
                (recorded, asked) => {
                    format!("{place}:\n  recorded: {}\n  asked:    {}", shown(recorded), shown(asked))
                }
            }
        }
        None => ": nothing that can be told".to_owned(),
    }
}

type Pair<'a> = (Option<&'a Value>, Option<&'a Value>);

/// Goes down to the first leaf that differs. `path` becomes its place.
fn first<'a>(recorded: &'a Value, asked: &'a Value, path: &mut String) -> Option<Pair<'a>> {
    match (recorded, asked) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            for key in keys {
                let length = path.len();
                let dot = if path.is_empty() { "" } else { "." };
                let _ = write!(path, "{dot}{key}");
                if let Some(found) = in_both(one.get(key), other.get(key), path) {
                    return Some(found);
                }
                path.truncate(length);
            }
            None
        }
        (Value::Array(one), Value::Array(other)) => {
            for index in 0..one.len().max(other.len()) {
                let length = path.len();
                let _ = write!(path, "[{index}]");
                if let Some(found) = in_both(one.get(index), other.get(index), path) {
                    return Some(found);
                }
                path.truncate(length);
            }
            None
        }
        (one, other) => (one != other).then_some((Some(one), Some(other))),
    }
}

fn in_both<'a>(one: Option<&'a Value>, other: Option<&'a Value>, path: &mut String) -> Option<Pair<'a>> {
    match (one, other) {
        (Some(one), Some(other)) => first(one, other, path),
        (None, None) => None,
        pair => Some(pair),
    }
}

/// Two texts around the first character in which they differ.
fn texts(recorded: &str, asked: &str) -> String {
    let same: usize = recorded
        .chars()
        .zip(asked.chars())
        .take_while(|(one, other)| one == other)
        .map(|(one, _)| one.len_utf8())
        .sum();
    let before = recorded.get(..same).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!(
        ", line {line}, character {column}:\n  recorded: {}\n  asked:    {}",
        around(recorded, same),
        around(asked, same)
    )
}

/// The text around a byte at a character boundary, on one line.
fn around(text: &str, at: usize) -> String {
    let (before, after) = text.split_at(at);
    let start = before.char_indices().rev().nth(BEFORE - 1).map_or(0, |(index, _)| index);
    let end = after.char_indices().nth(AFTER).map_or(after.len(), |(index, _)| index);
    let (head, tail) = (before.get(start..).unwrap_or_default(), after.get(..end).unwrap_or_default());
    let (more_before, more_after) =
        (if start > 0 { "…" } else { "" }, if end < after.len() { "…" } else { "" });
    let quoted = Value::from(format!("{head}{tail}")).to_string();
    format!("{more_before}{quoted}{more_after}")
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(BEFORE + AFTER) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
