//! From characters to lines in reading order.
//!
//! Decides where words end, what stands on one line, and in which order lines are read where a page has columns.

use std::collections::HashSet;

use super::content::Glyph;

/// Of a character's size: a gap that is a blank between words.
const WORD_GAP: f64 = 0.16;
/// Of a character's size: a gap after which something else begins.
const SEGMENT_GAP: f64 = 1.0;
/// The same before a character that was put in its place.
const PLACED_GAP: f64 = 0.5;
/// Levels of columns in columns.
const DEEPEST: usize = 4;

/// Text without a large gap.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Segment {
    pub(super) x: f64,
    pub(super) end: f64,
    pub(super) y: f64,
    pub(super) size: f64,
    pub(super) text: String,
    pub(super) is_bold: bool,
    pub(super) turn: u8,
}

/// Segments on one line, from left to right.
pub(super) type Line = Vec<Segment>;

/// The lines of a page in reading order.
pub(super) fn of_page(glyphs: Vec<Glyph>) -> Vec<Line> {
    let mut segments = segments(glyphs);
    let mut lines = Vec::new();
    for turn in 0..4 {
        let (these, others): (Vec<_>, Vec<_>) =
            segments.into_iter().partition(|segment| segment.turn == turn);
        segments = others;
        order(these, 0, &mut lines);
    }
    lines
}

fn segments(glyphs: Vec<Glyph>) -> Vec<Segment> {
    let mut found: Vec<Segment> = Vec::new();
    let mut seen = HashSet::new();
    let mut bold = 0usize;
    let mut count = 0usize;
    let mut finish = |segment: Option<Segment>, found: &mut Vec<Segment>, bold: usize, count: usize| {
        let Some(mut segment) = segment else { return };
        segment.text = segment.text.trim().to_owned();
        segment.is_bold = bold * 2 > count;
        // What is shown twice at one place, to look bold, is one.
        #[expect(clippy::cast_possible_truncation, reason = "places on a page, in points")]
        let place =
            ((segment.x / 2.0).round() as i64, (segment.y / 2.0).round() as i64, segment.text.clone());
        if !segment.text.is_empty() && seen.insert(place) {
            found.push(segment);
        }
    };
    let mut current: Option<Segment> = None;
    for glyph in glyphs {
        let is_blank = glyph.text.chars().all(char::is_whitespace);
        let joins = current.as_ref().is_some_and(|segment| {
            let size = segment.size.max(glyph.size).max(1.0);
            let gap = glyph.x - segment.end;
            segment.turn == glyph.turn
                && (glyph.y - segment.y).abs() < 0.45 * size
                && gap < if glyph.is_placed { PLACED_GAP } else { SEGMENT_GAP } * size
                && gap > -0.6 * size
        });
        if !joins {
            finish(current.take(), &mut found, bold, count);
            if is_blank {
                continue;
            }
            (bold, count) = (0, 0);
        }
        let text = expanded(&glyph.text);
        bold += usize::from(glyph.is_bold);
        count += 1;
        match &mut current {
            Some(segment) => {
                let gap = glyph.x - segment.end;
                let ends_blank = segment.text.ends_with(char::is_whitespace);
                if is_blank {
                    if !ends_blank {
                        segment.text.push(' ');
                    }
                } else {
                    if gap > WORD_GAP * segment.size.min(glyph.size) && !ends_blank {
                        segment.text.push(' ');
                    }
                    segment.text.push_str(&text);
                    // A raised or lowered character keeps the line where it was.
                    if glyph.size > segment.size * 1.1 {
                        (segment.size, segment.y) = (glyph.size, glyph.y);
                    }
                }
                segment.end = segment.end.max(glyph.end);
            }
            None => {
                let Glyph { x, end, y, size, is_bold, turn, .. } = glyph;
                current = Some(Segment { x, end, y, size, text, is_bold, turn });
            }
        }
    }
    finish(current, &mut found, bold, count);
    found
}

/// Letters that are set as one are several.
fn expanded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{fb00}' => out.push_str("ff"),
            '\u{fb01}' => out.push_str("fi"),
            '\u{fb02}' => out.push_str("fl"),
            '\u{fb03}' => out.push_str("ffi"),
            '\u{fb04}' => out.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => out.push_str("st"),
            '\u{ad}' => out.push('-'),
            character if character.is_control() => {}
            character => out.push(character),
        }
    }
    out
}

/// Columns from left to right between what goes across them, each from top to bottom.
fn order(mut segments: Vec<Segment>, depth: usize, out: &mut Vec<Line>) {
    segments.sort_by(|a, b| a.y.total_cmp(&b.y));
    let Some(gutter) = (depth < DEEPEST).then(|| gutter(&segments)).flatten() else {
        rows(segments, out);
        return;
    };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for segment in segments {
        if segment.end <= gutter {
            left.push(segment);
        } else if segment.x >= gutter {
            right.push(segment);
        } else {
            order(std::mem::take(&mut left), depth + 1, out);
            order(std::mem::take(&mut right), depth + 1, out);
            out.push(vec![segment]);
        }
    }
    order(left, depth + 1, out);
    order(right, depth + 1, out);
}

/// Where a gap goes down between two columns of text; none where there is one column, or a table.
fn gutter(segments: &[Segment]) -> Option<f64> {
    if segments.len() < 8 {
        return None;
    }
    let start = segments.iter().map(|segment| segment.x).fold(f64::INFINITY, f64::min);
    let end = segments.iter().map(|segment| segment.end).fold(f64::NEG_INFINITY, f64::max);
    let width = end - start;
    let mut best: Option<(usize, f64)> = None;
    for step in 10..=40 {
        let at = start + width * f64::from(step) / 50.0;
        let crossing = segments.iter().filter(|segment| segment.x < at && segment.end > at).count();
        let sides = [
            segments.iter().filter(|segment| segment.end <= at).collect::<Vec<_>>(),
            segments.iter().filter(|segment| segment.x >= at).collect::<Vec<_>>(),
        ];
        let fits =
            crossing * 4 <= sides[0].len() + sides[1].len() && sides.iter().all(|side| is_column(side));
        if fits && best.is_none_or(|(least, _)| crossing < least) {
            best = Some((crossing, at));
        }
    }
    best.map(|(_, at)| at)
}

/// Whether these are the lines of a column: most go from one edge nearly to the other.
fn is_column(segments: &[&Segment]) -> bool {
    if segments.len() < 4 {
        return false;
    }
    let start = segments.iter().map(|segment| segment.x).fold(f64::INFINITY, f64::min);
    let end = segments.iter().map(|segment| segment.end).fold(f64::NEG_INFINITY, f64::max);
    let size = segments.iter().map(|segment| segment.size).sum::<f64>() / count(segments.len());
    let full = segments.iter().filter(|segment| segment.end - segment.x > (end - start) * 0.6).count();
    full * 2 >= segments.len() && end - start > 10.0 * size
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
fn count(number: usize) -> f64 {
    number as f64
}

/// Segments at one height are a line.
fn rows(segments: Vec<Segment>, out: &mut Vec<Line>) {
    let mut row: Line = Vec::new();
    for segment in segments {
        let fits =
            row.last().is_some_and(|last| (segment.y - last.y).abs() < 0.45 * segment.size.max(last.size));
        if !fits && !row.is_empty() {
            push_row(std::mem::take(&mut row), out);
        }
        row.push(segment);
    }
    if !row.is_empty() {
        push_row(row, out);
    }
}

fn push_row(mut row: Line, out: &mut Vec<Line>) {
    row.sort_by(|a, b| a.x.total_cmp(&b.x));
    // What was shown in pieces and stands together is one.
    let mut joined: Line = Vec::new();
    for segment in row {
        match joined.last_mut() {
            Some(last) if segment.x - last.end < PLACED_GAP * last.size.min(segment.size) => {
                if segment.x - last.end > WORD_GAP * last.size.min(segment.size) {
                    last.text.push(' ');
                }
                last.text.push_str(&segment.text);
                last.end = last.end.max(segment.end);
                last.is_bold &= segment.is_bold;
                last.size = last.size.max(segment.size);
            }
            _ => joined.push(segment),
        }
    }
    out.push(joined);
}
