//! Cutting a document into the passages that are searched.
//!
//! Passages follow each other without gap or overlap, so that their bodies joined are the document
//! and nothing is stored twice. Cuts are made before headings and paragraphs where they can be.
//! Linear in the length of the text, whatever it holds.

use std::ops::Range;

/// Bytes from which a passage ends at the next paragraph.
const TARGET: usize = 1200;
/// Bytes that no passage exceeds.
const LIMIT: usize = 2400;
/// Bytes from which a passage ends at the next heading.
const MINIMUM: usize = 400;

/// One passage of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passage {
    /// Its bytes in the document.
    pub(super) range: Range<usize>,
    /// The headings that it stands under, outermost first, joined by spaces. Headings inside the
    /// passage are not among them.
    pub(super) headings: String,
}

/// Cuts a Markdown text; at least one passage, even of an empty text.
pub(super) fn passages(text: &str) -> Vec<Passage> {
    let mut cutter = Cutter { passages: Vec::new(), start: 0, at_start: Vec::new(), headings: Vec::new() };
    let mut in_fence = false;
    let mut after_blank = false;
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        let heading = if in_fence || fence { None } else { heading(trimmed) };
        let length = position - cutter.start;
        let too_long = length + line.len() > LIMIT && length > 0;
        let at_heading = heading.is_some() && length >= MINIMUM;
        let at_paragraph = after_blank && !in_fence && length >= TARGET;
        if let Some((level, _)) = heading {
            cutter.headings.retain(|(above, _)| *above < level);
        }
        if too_long || at_heading || at_paragraph {
            cutter.cut(position);
        }
        if let Some((level, title)) = heading {
            cutter.headings.push((level, title.to_owned()));
        }
        in_fence ^= fence;
        after_blank = trimmed.is_empty();
        let end = position + line.len();
        while end - cutter.start > LIMIT {
            let cut = cutter.start + break_point(&text[cutter.start..end], LIMIT);
            cutter.cut(cut);
        }
        position = end;
    }
    if position > cutter.start || cutter.passages.is_empty() {
        cutter.cut(position);
    }
    cutter.passages
}

struct Cutter {
    passages: Vec<Passage>,
    start: usize,
    /// The headings in force where the passage started.
    at_start: Vec<(usize, String)>,
    /// The headings in force now, with their levels.
    headings: Vec<(usize, String)>,
}

impl Cutter {
    fn cut(&mut self, end: usize) {
        let titles: Vec<&str> = self.at_start.iter().map(|(_, title)| title.as_str()).collect();
        self.passages.push(Passage { range: self.start..end, headings: titles.join(" ") });
        self.start = end;
        self.at_start.clone_from(&self.headings);
    }
}

/// Level and title of an ATX heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line[level..].strip_prefix([' ', '\t'])?;
    let title = title.trim().trim_end_matches('#').trim_end();
    // A title of a page's length is no title.
    ((1..=6).contains(&level) && !title.is_empty() && title.len() <= 300).then_some((level, title))
}

/// Where to break a text that is longer than `limit` bytes: after the last sentence, else after the
/// last space, else at the last character that fits. More than nothing and at most `limit`.
pub(super) fn break_point(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    let end = text.floor_char_boundary(limit);
    let earliest = text.floor_char_boundary(limit / 2);
    let window = &text[earliest..end];
    let sentence = window
        .rmatch_indices(['.', '!', '?', '。', '！', '？', '\n'])
        .map(|(at, found)| earliest + at + found.len())
        .find(|at| is_sentence_end(text, *at));
    let space = || window.rfind(char::is_whitespace).map(|at| text.ceil_char_boundary(earliest + at + 1));
    match sentence.or_else(space) {
        Some(at) => at,
        None if end > 0 => end,
        // A limit that is less than the first character.
        None => text.chars().next().map_or(0, char::len_utf8),
    }
}

/// Whether a sentence may end just before `at`: a space follows, or the stop needs none.
fn is_sentence_end(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    matches!(before, Some('。' | '！' | '？' | '\n')) || text[at..].starts_with(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) -> Vec<Passage> {
        let found = passages(text);
        assert!(!found.is_empty());
        let mut position = 0;
        for passage in &found {
            assert_eq!(passage.range.start, position);
            position = passage.range.end;
            assert!(passage.range.len() <= LIMIT);
            assert!(text.is_char_boundary(position));
        }
        assert_eq!(position, text.len());
        found
    }

    #[test]
    fn short_texts_are_one_passage() {
        for text in ["", "x", "# Title\n\nA few words.\n"] {
            assert_eq!(check(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn headings_are_carried_along() {
        let paragraph = "Words of a paragraph that says little. ".repeat(16);
        let text = format!(
            "# Book\n\n{paragraph}\n\n## One\n\n{paragraph}\n\n{paragraph}\n\n{paragraph}\n\n# Other\n\n{paragraph}\n"
        );
        let found = check(&text);
        let starts: Vec<(&str, &str)> = found
            .iter()
            .map(|passage| {
                (text[passage.range.clone()].lines().next().unwrap_or(""), passage.headings.as_str())
            })
            .map(|(line, headings)| (&line[..line.len().min(7)], headings))
            .collect();
        assert_eq!(starts, [("# Book", ""), ("## One", "Book"), ("Words o", "Book One"), ("# Other", "")]);
    }

    #[test]
    fn fences_hide_headings() {
        let code = format!("```\n{}# no heading\n{}```\n", "code\n".repeat(150), "code\n".repeat(50));
        let found = check(&code);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn long_lines_break_at_sentences() {
        let line = "This is a sentence of middling length. ".repeat(200);
        for passage in check(&line) {
            assert!(line[passage.range].trim_end().ends_with('.'));
        }
        check(&"x".repeat(20_000));
        check(&"漢".repeat(9_000));
    }

    #[test]
    fn breaking_makes_progress() {
        for (text, limit, expected) in [
            ("abc", 10, 3),
            ("漢字", 1, 3),
            ("one two three", 9, 8),
            ("One two. Three four", 12, 8),
            ("abcdef", 3, 3),
        ] {
            assert_eq!(break_point(text, limit), expected, "{text} {limit}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_partitioned(text in "([a-z#`\n .。漢\u{0}]{0,40}\n?){0,120}") {
            check(&text);
        }
    }
}
