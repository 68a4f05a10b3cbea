//! How much of one text is in another: words in fours, headings, rows of tables.
//!
//! Decides what counts as the same: numbers by value, `25%` as `0.25`, dates without a time of midnight; fillers that
//! stand for empty cells, comments and labels of a book's data are no text.

use std::collections::BTreeMap;

/// Words that stand for nothing in a cell.
const FILLERS: [&str; 2] = ["nan", "nat"];
/// What lines with the data of a book begin with.
const LABELS: [&str; 6] =
    ["**Title:**", "**Authors:**", "**Language:**", "**Publisher:**", "**Date:**", "**Identifier:**"];

/// A word as it is compared; none where it is no text.
fn word(raw: &str) -> Option<String> {
    let word =
        raw.trim_matches(|character: char| !character.is_alphanumeric() && character != '%').to_lowercase();
    let number = match word.strip_suffix('%') {
        Some(number) => number.parse::<f64>().ok().map(|number| number / 100.0),
        None => word.parse::<f64>().ok(),
    };
    let word = match (word.as_str(), number) {
        ("true", _) => "1".to_owned(),
        ("false", _) => "0".to_owned(),
        (filler, _) if FILLERS.contains(&filler) => return None,
        (_, Some(number)) => ((number * 1e9).round() / 1e9).to_string(),
        (_, None) => word.trim_end_matches('%').to_owned(),
    };
    (!word.is_empty()).then_some(word)
}

/// The words of a text.
pub fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = text;
    let mut visible = String::new();
    while let Some(at) = rest.find("<!--") {
        visible.push_str(&rest[..at]);
        rest = rest[at..].find("-->").map_or("", |end| &rest[at + end + 3..]);
    }
    visible.push_str(rest);
    for line in visible.replace("<br>", " ").replace("00:00:00", "").lines() {
        if LABELS.iter().any(|label| line.starts_with(label)) || line.starts_with("| ---") {
            continue;
        }
        let mut raw = line.split([' ', '\t', '|', '\u{a0}']).peekable();
        while let Some(piece) = raw.next() {
            // The name of a column that has none.
            if piece == "Unnamed:" {
                raw.next();
                continue;
            }
            out.extend(word(piece));
        }
    }
    out
}

fn fours(words: &[String]) -> BTreeMap<&[String], usize> {
    let mut counts = BTreeMap::new();
    for four in words.windows(4) {
        *counts.entry(four).or_insert(0) += 1;
    }
    counts
}

/// How many of the fours of `expected` are in `found`, and the other way round, from 0 to 1.
#[allow(clippy::cast_precision_loss, reason = "a few thousand words")]
pub fn similarity(expected: &str, found: &str) -> (f64, f64) {
    let (expected, found) = (words(expected), words(found));
    let (theirs, ours) = (fours(&expected), fours(&found));
    let both: usize =
        theirs.iter().map(|(four, count)| (*count).min(ours.get(four).copied().unwrap_or(0))).sum();
    let share = |all: &BTreeMap<&[String], usize>| {
        let all: usize = all.values().sum();
        if all == 0 { 1.0 } else { both as f64 / all as f64 }
    };
    (share(&theirs), share(&ours))
}

/// The headings of a text, as words.
pub fn headings(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| words(line).join(" ")).filter(|heading| !heading.is_empty()).collect()
}

/// The rows of the tables of a text, cells as words, without empty cells at the end.
pub fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let line = line.trim().replace("\\|", "/");
        let Some(inner) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else { continue };
        let mut cells: Vec<String> = inner.split('|').map(|cell| words(cell).join(" ")).collect();
        while cells.last().is_some_and(String::is_empty) {
            cells.pop();
        }
        if !cells.is_empty() {
            rows.push(cells);
        }
    }
    rows
}
