//! From lines to Markdown.
//!
//! Decides what is a heading (larger than most of the text, or bold and apart), a table (lines whose parts stand under
//! one another), an item of a list, and which lines are one paragraph.

use std::collections::BTreeMap;

use super::super::layout::{Blocks, table};
use super::lines::{Line, Segment};

/// Of the size of most of the text: larger is a heading.
const HEADING: f64 = 1.15;
/// Characters of a heading.
const LONGEST_HEADING: usize = 200;
/// Sizes that headings are told apart by.
const HEADING_SIZES: usize = 4;
/// Marks that items of lists begin with.
const BULLETS: &[char] = &['•', '▪', '◦', '●', '■', '‣', '○', '►', '➢', '✓'];
/// Marks that text may begin a line with as well.
const DASHES: &[char] = &['–', '−', '·', '-', '*'];

pub(super) fn markdown(pages: &[Vec<Line>]) -> String {
    let sizes = Sizes::of(pages);
    let mut out = Blocks::default();
    for page in pages {
        let mut lines = page.as_slice();
        let mut paragraph = Paragraph::default();
        while let Some((line, rest)) = lines.split_first() {
            let rows = table_length(lines);
            if rows > 0 {
                paragraph.end(&mut out);
                out.push(&table_of(&lines[..rows]));
                lines = &lines[rows..];
                continue;
            }
            paragraph.take(line, &sizes, &mut out);
            lines = rest;
        }
        paragraph.end(&mut out);
    }
    out.finish()
}

/// How large text is.
struct Sizes {
    body: f64,
    /// Of headings, in tenths of a point, largest first.
    headings: Vec<i64>,
}

#[expect(clippy::cast_possible_truncation, reason = "sizes of characters, in points")]
fn tenths(size: f64) -> i64 {
    (size * 10.0).round() as i64
}

#[expect(clippy::cast_precision_loss, reason = "sizes of characters, in points")]
fn points(tenths: i64) -> f64 {
    tenths as f64 / 10.0
}

impl Sizes {
    fn of(pages: &[Vec<Line>]) -> Self {
        let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
        for segment in pages.iter().flatten().flatten() {
            *counts.entry(tenths(segment.size)).or_default() += segment.text.len();
        }
        let body = counts.iter().max_by_key(|(_, count)| **count).map_or(10.0, |(size, _)| points(*size));
        let mut headings: Vec<i64> =
            counts.keys().rev().copied().filter(|size| points(*size) >= body * HEADING).collect();
        // Nearly the same size is the same.
        headings.dedup_by(|smaller, larger| (*larger - *smaller) * 20 < *larger);
        headings.truncate(HEADING_SIZES);
        Self { body, headings }
    }

    /// The level of text of a size; none for that of most of the text.
    fn level(&self, size: f64) -> Option<usize> {
        if size < self.body * HEADING {
            return None;
        }
        let size = tenths(size);
        let at = self.headings.iter().position(|heading| size * 20 > heading * 19);
        Some(at.unwrap_or(self.headings.len().saturating_sub(1)) + 1)
    }
}

/// Lines that are one block, so far.
#[derive(Default)]
struct Paragraph {
    text: String,
    level: Option<usize>,
    is_item: bool,
    lines: usize,
    last: Option<Segment>,
    /// Between its lines.
    leading: f64,
}

impl Paragraph {
    fn take(&mut self, line: &Line, sizes: &Sizes, out: &mut Blocks) {
        let Some(first) = line.first() else { return };
        let text = line.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ");
        let whole = Segment {
            end: line.last().map_or(first.end, |last| last.end),
            // A number or a mark before the text may be larger.
            size: line
                .iter()
                .max_by_key(|segment| segment.text.len())
                .map_or(first.size, |longest| longest.size),
            is_bold: line.iter().all(|segment| segment.is_bold),
            ..first.clone()
        };
        let by_size = sizes.level(whole.size).filter(|_| text.chars().any(char::is_alphabetic));
        let bold_level = sizes.headings.len() + 1;
        let by_weight = (whole.is_bold && is_headline(&text)).then_some(bold_level);
        let level = by_size.or(by_weight).filter(|_| text.len() <= LONGEST_HEADING);
        let goes_on = self.lines > 0 && self.goes_on(&whole, level);
        let item = if level.is_some() { None } else { item_text(line, &text, goes_on) };
        if !goes_on || item.is_some() {
            self.end(out);
            self.level = level;
            self.is_item = item.is_some();
        }
        match (&item, self.lines) {
            (Some(item), 0) if self.is_item => self.text.push_str(item),
            _ => append(&mut self.text, &text),
        }
        if let Some(last) = &self.last {
            self.leading = whole.y - last.y;
        }
        self.lines += 1;
        self.last = Some(whole);
    }

    /// Whether a line belongs to it.
    fn goes_on(&self, line: &Segment, level: Option<usize>) -> bool {
        let Some(last) = &self.last else { return true };
        let distance = line.y - last.y;
        let size = last.size.max(line.size);
        let near = distance > 0.0
            && distance < 1.75 * size
            && (self.leading <= 0.0 || distance < 1.25 * self.leading || distance < 1.2 * size);
        let same_size = (last.size - line.size).abs() < 0.08 * size;
        // A first line is moved in where paragraphs have no space between them.
        let moved_in =
            self.lines > 0 && !self.is_item && line.x > last.x + 0.8 * size && line.x < last.x + 6.0 * size;
        // The line before ended early, and this one starts at the edge again.
        near && same_size && level == self.level && !moved_in
    }

    fn end(&mut self, out: &mut Blocks) {
        let Self { text, level, is_item, .. } = std::mem::take(self);
        match level {
            Some(level) if text.len() <= LONGEST_HEADING => out.heading(level, &text),
            _ if is_item => {
                let ordered = text.split_once(' ').filter(|(number, _)| is_number(number));
                match ordered {
                    Some((number, rest)) => out.item(0, number, rest),
                    None => out.item(0, "-", &text),
                }
            }
            _ => out.push(&text),
        }
    }
}

/// Adds a line: a word that was cut at its end is whole again.
fn append(text: &mut String, line: &str) {
    if text.is_empty() {
        text.push_str(line);
        return;
    }
    let cut = text.strip_suffix('-').is_some_and(|rest| rest.ends_with(char::is_alphabetic));
    if cut && line.starts_with(char::is_lowercase) {
        text.pop();
    } else {
        text.push(' ');
    }
    text.push_str(line);
}

/// Whether a bold line reads like a heading rather than like a sentence.
fn is_headline(text: &str) -> bool {
    let length = text.chars().count();
    (2..=90).contains(&length)
        && !text.ends_with(['.', ',', ';', ':', '!', '?'])
        && text.chars().any(char::is_alphabetic)
}

/// The text of an item: without its mark, with its number.
fn item_text(line: &[Segment], text: &str, goes_on: bool) -> Option<String> {
    let dash = if goes_on { None } else { text.strip_prefix(DASHES).filter(|rest| rest.starts_with(' ')) };
    if let Some(rest) = text.strip_prefix(BULLETS).or(dash) {
        let rest = rest.trim_start();
        return (!rest.is_empty()).then(|| rest.to_owned());
    }
    let (number, rest) = text.split_once(' ')?;
    if rest.trim().is_empty() {
        return None;
    }
    if is_number(number) {
        return Some(text.to_owned());
    }
    // A number apart from the text needs no dot.
    let apart = line.len() == 2 && line.first().is_some_and(|first| first.text == number);
    let is_bare = number.len() <= 2 && number.bytes().all(|byte| byte.is_ascii_digit());
    (apart && is_bare).then(|| format!("{number}. {rest}"))
}

/// `1.`, `12)`.
fn is_number(word: &str) -> bool {
    word.strip_suffix(['.', ')']).is_some_and(|digits| {
        !digits.is_empty() && digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// How many lines from the first are a table; 0: none.
fn table_length(lines: &[Line]) -> usize {
    let many = lines.iter().take_while(|line| line.len() > 1 && !is_marked(line)).count();
    if many < 2 {
        return 0;
    }
    // As many lines as have their parts under one another.
    for length in (2..=many).rev() {
        let columns = columns(&lines[..length]);
        let fits = |line: &Line| {
            let mut places: Vec<usize> =
                line.iter().filter_map(|segment| column_of(&columns, segment)).collect();
            let count = places.len();
            places.dedup();
            places.len() == count && count == line.len()
        };
        let filled: usize = lines[..length].iter().map(Vec::len).sum();
        let is_dense = filled * 2 >= columns.len() * length;
        // Two lines with two parts may be anything that stands side by side.
        let is_large = length > 2 || columns.len() > 2;
        if columns.len() > 1 && is_dense && is_large && lines[..length].iter().all(fits) {
            // Lines of a table with one part, between others, are left to the text.
            return length;
        }
    }
    0
}

/// Whether a line is an item of a list: a mark or a number, and text.
fn is_marked(line: &[Segment]) -> bool {
    line.len() == 2
        && line.first().is_some_and(|first| {
            let digits = first.text.trim_end_matches(['.', ')']);
            first.text.strip_prefix(BULLETS).or(first.text.strip_prefix(DASHES)) == Some("")
                || (digits.len() <= 2
                    && !digits.is_empty()
                    && digits.bytes().all(|byte| byte.is_ascii_digit()))
        })
}

/// Columns: stretches that parts of lines cover.
fn columns(lines: &[Line]) -> Vec<(f64, f64)> {
    let mut covered: Vec<(f64, f64)> =
        lines.iter().flatten().map(|segment| (segment.x, segment.end)).collect();
    covered.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut columns: Vec<(f64, f64)> = Vec::new();
    for (x, end) in covered {
        match columns.last_mut() {
            Some(last) if x <= last.1 => last.1 = last.1.max(end),
            _ => columns.push((x, end)),
        }
    }
    columns
}

fn column_of(columns: &[(f64, f64)], segment: &Segment) -> Option<usize> {
    columns.iter().position(|(x, end)| segment.x >= *x - 0.01 && segment.end <= *end + 0.01)
}

fn table_of(lines: &[Line]) -> String {
    let columns = columns(lines);
    let mut rows = Vec::new();
    for line in lines {
        let mut row = vec![String::new(); columns.len()];
        for segment in line {
            if let Some(cell) = column_of(&columns, segment).and_then(|at| row.get_mut(at)) {
                if !cell.is_empty() {
                    cell.push(' ');
                }
                cell.push_str(&segment.text);
            }
        }
        rows.push(row);
    }
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_words_are_whole_again() {
        let mut text = String::new();
        for line in ["An exam-", "ple of a well-", "Known", "thing"] {
            append(&mut text, line);
        }
        assert_eq!(text, "An example of a well- Known thing");
    }

    #[test]
    fn items_begin_with_marks_or_numbers() {
        for (text, expected) in [
            ("• one", Some("one")),
            ("2) two", Some("2) two")),
            ("– three", Some("three")),
            ("1984 was", None),
            ("•", None),
            ("3.", None),
            ("word", None),
        ] {
            assert_eq!(item_text(&[], text, false).as_deref(), expected, "{text}");
        }
        assert_eq!(item_text(&[], "– no item but a dash", true), None);
    }
}
