//! Documents as sentences: Markdown is made plain and cut, headings are kept as context.
//!
//! Decides where a sentence begins and ends and which headings stand above it. Which sentence matters is left to
//! `evidence`.

use super::lexicon::Lexicon;
use super::text::fold_into;

/// A longer sentence is cut at a blank, so that one line without stops cannot become one huge sentence.
const LONGEST: usize = 1200;

/// Bytes of a heading; what is longer is text.
const LONGEST_HEADING: usize = 120;

/// One sentence of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    /// The text without Markdown.
    pub(super) text: String,
    /// The headings above it, outermost first, joined.
    pub(super) heading: String,
    /// Whether it stands in the same paragraph as the one before it.
    pub(super) follows: bool,
}

/// Cuts a document. Linear.
pub(super) fn sentences(document: &str) -> Vec<Sentence> {
    let mut list = Vec::new();
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut paragraph = String::new();
    let mut heading = String::new();
    let mut in_front_matter = false;
    for (number, raw) in document.lines().enumerate() {
        let line = raw.trim();
        if line == "---" && (number == 0 || in_front_matter) {
            in_front_matter = number == 0;
            continue;
        }
        if line.is_empty() || is_rule(line) {
            flush(&mut paragraph, &heading, &mut list);
            continue;
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        // A heading of a paragraph's length is a document whose lines were joined.
        if (1..=6).contains(&level)
            && line.as_bytes().get(level) == Some(&b' ')
            && line.len() <= LONGEST_HEADING
        {
            flush(&mut paragraph, &heading, &mut list);
            headings.retain(|(above, _)| *above < level);
            headings.push((level, plain(line.get(level..).unwrap_or_default().trim())));
            heading = headings.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" / ");
            continue;
        }
        if let Some(item) = list_item(line) {
            flush(&mut paragraph, &heading, &mut list);
            paragraph.push_str(item);
            continue;
        }
        if line.starts_with('|') || is_field(line) {
            flush(&mut paragraph, &heading, &mut list);
            paragraph.push_str(line.trim_matches('|').trim());
            flush(&mut paragraph, &heading, &mut list);
            continue;
        }
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        paragraph.push_str(line.trim_start_matches(['>', '#']).trim_start());
    }
    flush(&mut paragraph, &heading, &mut list);
    list
}

fn is_rule(line: &str) -> bool {
    line.len() >= 3 && line.bytes().all(|byte| b"-=*_| :".contains(&byte))
}

fn list_item(line: &str) -> Option<&str> {
    if let Some(rest) = ["- ", "* ", "+ ", "• "].iter().find_map(|bullet| line.strip_prefix(bullet)) {
        return Some(rest.trim_start());
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?;
    if (1..=3).contains(&digits) {
        return rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")).map(str::trim_start);
    }
    None
}

/// A short label, a colon and a value: a record's field, not prose.
fn is_field(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(label, _)| {
        label.len() <= 60 && !label.contains(['.', ';', '!', '?']) && label.split_whitespace().count() <= 6
    })
}

fn flush(paragraph: &mut String, heading: &str, list: &mut Vec<Sentence>) {
    if paragraph.is_empty() {
        return;
    }
    let text = plain(paragraph);
    paragraph.clear();
    let mut follows = false;
    for sentence in split(&text) {
        list.push(Sentence { text: sentence.to_owned(), heading: heading.to_owned(), follows });
        follows = true;
    }
}

/// Takes Markdown's emphasis, links and code marks off. Linear: a link whose end is missing stays as it is.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // Once no closer is left, further openers need not look for one.
    let mut no_more_links = false;
    while let Some(at) = rest.find(['*', '`', '[', '<', '_', '\\', '!', '&']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let mut chars = from.chars();
        let mark = chars.next().unwrap_or_default();
        let tail = chars.as_str();
        rest = tail;
        match mark {
            '*' | '`' => {}
            '!' if tail.starts_with('[') => {}
            '_' => {
                let inside = out.chars().next_back().is_some_and(char::is_alphanumeric)
                    && tail.chars().next().is_some_and(char::is_alphanumeric);
                if inside {
                    out.push('_');
                }
            }
            '\\' if tail.starts_with(|c: char| c.is_ascii_punctuation()) => {
                let mut escaped = tail.chars();
                out.extend(escaped.next());
                rest = escaped.as_str();
            }
            '[' if !no_more_links => match link(tail) {
                Link::Found { label, after } => {
                    out.push_str(&label.replace(['*', '`'], ""));
                    rest = after;
                }
                Link::NotHere => out.push('['),
                Link::NoneLeft => {
                    no_more_links = true;
                    out.push('[');
                }
            },
            '<' => match html_tag(tail) {
                Some((breaks, after)) => {
                    if breaks {
                        out.push(' ');
                    }
                    rest = after;
                }
                None => out.push('<'),
            },
            '&' => {
                const ENTITIES: &[(&str, &str)] = &[
                    ("amp;", "&"),
                    ("nbsp;", " "),
                    ("lt;", "<"),
                    ("gt;", ">"),
                    ("quot;", "\""),
                    ("#39;", "'"),
                ];
                match ENTITIES.iter().find(|(name, _)| tail.starts_with(name)) {
                    Some((name, value)) => {
                        out.push_str(value);
                        rest = tail.get(name.len()..).unwrap_or_default();
                    }
                    None => out.push('&'),
                }
            }
            other => out.push(other),
        }
    }
    out.push_str(rest);
    if out.contains("  ") { out.split_whitespace().collect::<Vec<_>>().join(" ") } else { out }
}

enum Link<'a> {
    Found { label: &'a str, after: &'a str },
    NotHere,
    NoneLeft,
}

fn link(tail: &str) -> Link<'_> {
    let Some(close) = tail.find(']') else { return Link::NoneLeft };
    let label = tail.get(..close).unwrap_or_default();
    let after = tail.get(close + 1..).unwrap_or_default();
    // Labels and targets have bounds, so that a flood of openers costs no more than its length.
    if label.len() > 300 || label.contains('[') {
        return Link::NotHere;
    }
    if let Some(target) = after.strip_prefix('(') {
        let window = target.bytes().take(600).position(|byte| byte == b')');
        if let Some(end) = window {
            return Link::Found { label, after: target.get(end + 1..).unwrap_or_default() };
        }
    }
    // Footnote marks such as [12] are dropped.
    if !label.is_empty()
        && label.len() <= 4
        && label.bytes().all(|byte| byte.is_ascii_digit() || byte == b'^')
    {
        return Link::Found { label: "", after };
    }
    Link::NotHere
}

/// A short HTML tag: whether it separates words, and what follows it.
fn html_tag(tail: &str) -> Option<(bool, &str)> {
    let first = tail.as_bytes().first()?;
    if !first.is_ascii_alphabetic() && *first != b'/' {
        return None;
    }
    let end = tail.bytes().take(80).position(|byte| byte == b'>')?;
    let name = tail.get(..end)?.trim_matches('/').split_whitespace().next().unwrap_or_default();
    const KNOWN: &[&str] = &[
        "a", "b", "i", "em", "strong", "br", "p", "sup", "sub", "span", "div", "u", "li", "ul", "ol", "td",
        "tr", "small",
    ];
    let lower = name.to_ascii_lowercase();
    if !KNOWN.contains(&lower.as_str()) {
        return None;
    }
    let breaks = matches!(lower.as_str(), "br" | "p" | "div" | "li" | "td" | "tr");
    tail.get(end + 1..).map(|after| (breaks, after))
}

/// Cuts a paragraph into sentences.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut list = Vec::new();
    let mut start = 0;
    let mut folded = String::new();
    let mut word_start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c.is_whitespace() {
            if at - start > LONGEST {
                push_trimmed(text, start, at, &mut list);
                start = at;
            }
            word_start = at + c.len_utf8();
            continue;
        }
        if !matches!(c, '.' | '!' | '?' | '…' | '。') {
            continue;
        }
        let mut end = at + c.len_utf8();
        while let Some(&(next_at, next)) = chars.peek() {
            if !matches!(next, '"' | '\'' | '”' | '’' | ')' | ']' | '.' | '!' | '?') {
                break;
            }
            end = next_at + next.len_utf8();
            chars.next();
        }
        let tail = text.get(end..).unwrap_or_default();
        let mut after = tail.chars();
        if c != '。' && !after.next().is_none_or(char::is_whitespace) {
            continue;
        }
        let next = tail.trim_start().chars().next();
        if next.is_some_and(char::is_lowercase) {
            continue;
        }
        if c == '.' {
            let word = text.get(word_start..at).unwrap_or_default().trim_start_matches(['(', '"', '“', '\'']);
            let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
            folded.clear();
            if word.len() <= 8 {
                fold_into(word, &mut folded);
            }
            if initial || (!folded.is_empty() && Lexicon::shared().is_abbreviation(&folded)) {
                continue;
            }
        }
        push_trimmed(text, start, end, &mut list);
        start = end;
    }
    push_trimmed(text, start, text.len(), &mut list);
    list
}

fn push_trimmed<'a>(text: &'a str, start: usize, end: usize, list: &mut Vec<&'a str>) {
    let sentence = text.get(start..end).unwrap_or_default().trim();
    if sentence.chars().any(char::is_alphanumeric) {
        list.push(sentence);
    }
}
