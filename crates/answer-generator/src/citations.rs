//! Citations of a report: which sources a run has seen, which ones a report names, and whether those are the same.
//!
//! Decides what counts as a source (addresses in tool results, and what results name as one) and as a citation (a
//! Markdown link, a bare address, `[[name]]`). A citation of something that the run never saw is marked, not removed:
//! the sentence before it stands as it is, and the reader knows.

use std::collections::BTreeSet;
use std::ops::Range;

use core_protocol::event::CitationCounts;
use serde_json::Value;

/// What is written after a citation whose source the run never saw.
pub const UNVERIFIED: &str = " [unverified source]";

/// Keys of JSON results and arguments whose text names a source.
const SOURCE_KEYS: &[&str] =
    &["url", "link", "uri", "href", "source", "path", "file", "document", "doc", "id", "title", "name"];

/// Sources that are kept for one run at most; a run that has seen more cites from those.
pub const MAX_SOURCES: usize = 20_000;
/// Bytes of a source's name at most.
const MAX_SOURCE_BYTES: usize = 2_000;

/// Adds what a tool result or the arguments of a call name as sources.
pub fn collect(text: &str, sources: &mut BTreeSet<String>) {
    for range in addresses(text) {
        add(&text[range], sources);
    }
    if text.trim_start().starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        collect_named(&value, sources);
    }
}

/// Adds what an argument of a successful call names as a source: an address, a path.
pub fn collect_argument(name: &str, value: &Value, sources: &mut BTreeSet<String>) {
    if let Value::String(text) = value
        && SOURCE_KEYS.contains(&name)
    {
        add(text, sources);
    }
}

/// Adds what a JSON value names as sources: the texts under keys such as `url`, `title` and `path`.
pub fn collect_named(value: &Value, sources: &mut BTreeSet<String>) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => {
                for (key, value) in fields {
                    match value {
                        Value::String(text) if SOURCE_KEYS.contains(&key.as_str()) => add(text, sources),
                        other => left.push(other),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Adds a source by its name: an address, a path, a title.
pub fn add(name: &str, sources: &mut BTreeSet<String>) {
    if name.len() <= MAX_SOURCE_BYTES && sources.len() < MAX_SOURCES {
        let key = normal(name);
        // A bare number names nothing.
        if key.contains(|character: char| !character.is_ascii_digit()) {
            sources.insert(key);
        }
    }
}

/// A report with its unknown citations marked, and how many there are.
#[must_use]
pub fn check(report: &str, sources: &BTreeSet<String>) -> (String, CitationCounts) {
    let mut counts = CitationCounts::default();
    let mut checked = String::with_capacity(report.len());
    let mut copied = 0;
    let mut unknown = BTreeSet::new();
    for citation in citations(report) {
        counts.total += 1;
        let target = &report[citation.target];
        if sources.contains(&normal(target)) {
            counts.verified += 1;
            continue;
        }
        if unknown.insert(normal(target)) {
            counts.unknown.push(target.trim().to_owned());
        }
        checked.push_str(&report[copied..citation.end]);
        checked.push_str(UNVERIFIED);
        copied = citation.end;
    }
    checked.push_str(&report[copied..]);
    (checked, counts)
}

/// What is compared: without scheme, `www.`, fragment, closing slash and case differences.
fn normal(name: &str) -> String {
    let name = name.trim();
    let lower = name.to_lowercase();
    let Some(rest) = ["https://", "http://"].iter().find_map(|scheme| lower.strip_prefix(scheme)) else {
        return lower.split_whitespace().collect::<Vec<_>>().join(" ");
    };
    let rest = rest.split('#').next().unwrap_or_default();
    rest.strip_prefix("www.").unwrap_or(rest).trim_end_matches('/').to_owned()
}

struct Citation {
    /// The source that is named.
    target: Range<usize>,
    /// One past the whole citation.
    end: usize,
}

/// The citations of a report, in order and apart from each other.
fn citations(report: &str) -> Vec<Citation> {
    let bytes = report.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(|byte| matches!(byte, b'[' | b']' | b'h' | b'H')) {
        let start = at + next;
        let citation = match bytes[start] {
            b'[' => named(report, start),
            b']' => linked(report, start),
            _ => address_at(report, start).map(|target| Citation { end: target.end, target }),
        };
        match citation {
            Some(citation) => {
                at = citation.end;
                found.push(citation);
            }
            None => at = start + 1,
        }
    }
    found
}

/// Names and the targets of links are at most this long, so that an opening without its closing is soon given up.
const MAX_NAME_BYTES: usize = 300;
const MAX_LINK_BYTES: usize = 1_000;

/// `[[name]]` at `start`.
fn named(report: &str, start: usize) -> Option<Citation> {
    let inner = report.get(start..)?.strip_prefix("[[")?;
    let end = inner.bytes().take(MAX_NAME_BYTES).position(|byte| matches!(byte, b'[' | b']' | b'\n'))?;
    let name = &inner[..end];
    (inner[end..].starts_with("]]") && !name.trim().is_empty())
        .then(|| Citation { target: start + 2..start + 2 + end, end: start + end + 4 })
}

/// `](target)` at `start`: the second half of a Markdown link. A link within the report is no citation.
fn linked(report: &str, start: usize) -> Option<Citation> {
    let inner = report.get(start..)?.strip_prefix("](")?;
    let mut depth = 0;
    let end = inner.bytes().take(MAX_LINK_BYTES).position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return true,
            b')' => depth -= 1,
            _ => {}
        }
        matches!(byte, b'[' | b']' | b'\n')
    })?;
    let target = &inner[..end];
    // A title may follow the address.
    let length = target.find(" \"").unwrap_or(end);
    let bare = target[..length].trim();
    let offset = start + 2 + (target.len() - target.trim_start().len());
    let (from, to) = match bare.strip_prefix('<').and_then(|bare| bare.strip_suffix('>')) {
        Some(inside) => (offset + 1, offset + 1 + inside.len()),
        None => (offset, offset + bare.len()),
    };
    (inner[end..].starts_with(')') && from < to && !bare.starts_with('#'))
        .then(|| Citation { target: from..to, end: start + 2 + end + 1 })
}

/// The addresses of a text.
fn addresses(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find("http") {
        let start = at + next;
        match address_at(text, start) {
            Some(range) => {
                at = range.end;
                found.push(range);
            }
            None => at = start + 4,
        }
    }
    found
}

/// The address that begins at `start`, without the punctuation of the sentence around it.
fn address_at(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = text.get(start..)?;
    let scheme = ["https://", "http://"]
        .into_iter()
        .find(|scheme| rest.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme)))?;
    let mut depth = 0i32;
    let mut end = 0;
    for (index, character) in rest.char_indices().take(MAX_SOURCE_BYTES) {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        let ends = character.is_whitespace()
            || character.is_control()
            || matches!(character, '"' | '<' | '>' | '`' | '\\' | '{' | '}' | '|' | '^' | '[' | ']')
            || matches!(character, '，' | '。' | '；' | '、' | '）' | '》' | '」')
            || depth < 0;
        if ends {
            break;
        }
        end = index + character.len_utf8();
    }
    let address = rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_']);
    (address.len() > scheme.len()).then(|| start..start + address.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(texts: &[&str]) -> BTreeSet<String> {
        let mut sources = BTreeSet::new();
        texts.iter().for_each(|text| collect(text, &mut sources));
        sources
    }

    #[test]
    fn what_counts_as_a_source() {
        for (text, expected) in [
            ("See https://a.org/x, and http://b.org.", "a.org/x b.org"),
            ("(https://en.wikipedia.org/wiki/Mars_(planet))", "en.wikipedia.org/wiki/mars_(planet)"),
            (r#"{"organic": [{"title": "T", "link": "https://www.a.org/"}]}"#, "a.org t"),
            (r#"{"results": [{"id": "fathom/kepler.md", "snippet": "path"}]}"#, "fathom/kepler.md"),
            ("https:// http httpx://a", ""),
            ("见https://a.org/路径。后面", "a.org/路径"),
            ("plain text", ""),
        ] {
            let found: Vec<String> = sources(&[text]).into_iter().collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }

    fn check_report(report: &str, expected: &str, total: u32, unknown: &[&str]) {
        let seen = sources(&["https://a.org/x", r#"{"title": "Johannes Kepler", "id": "lib/kepler.md"}"#]);
        let (checked, counts) = check(report, &seen);
        assert_eq!(checked, expected);
        assert_eq!(counts.unknown, unknown, "{report}");
        assert_eq!((counts.total, counts.verified), (total, total - unknown_uses(expected)), "{report}");
    }

    fn unknown_uses(checked: &str) -> u32 {
        u32::try_from(checked.matches(UNVERIFIED).count()).unwrap()
    }

    #[test]
    fn citations_are_checked() {
        check_report("Born 1571 [1](https://a.org/x).", "Born 1571 [1](https://a.org/x).", 1, &[]);
        check_report("Born [1](http://www.A.org/x/#top).", "Born [1](http://www.A.org/x/#top).", 1, &[]);
        check_report(
            "Born [1](https://b.org/y).",
            "Born [1](https://b.org/y) [unverified source].",
            1,
            &["https://b.org/y"],
        );
        check_report("As [[Johannes  kepler]] says.", "As [[Johannes  kepler]] says.", 1, &[]);
        check_report("As [[lib/kepler.md]] says.", "As [[lib/kepler.md]] says.", 1, &[]);
        check_report("As [[Tycho]] says.", "As [[Tycho]] [unverified source] says.", 1, &["Tycho"]);
        check_report(
            "See https://b.org, https://b.org and <https://a.org/x>.",
            "See https://b.org [unverified source], https://b.org [unverified source] and <https://a.org/x>.",
            3,
            &["https://b.org"],
        );
        check_report(
            "A [link](#there) and [text] and a](b.",
            "A [link](#there) and [text] and a](b.",
            0,
            &[],
        );
        check_report(
            "[t](<https://a.org/x> \"Title\") [u](https://c.org/a_(b))",
            "[t](<https://a.org/x> \"Title\") [u](https://c.org/a_(b)) [unverified source]",
            2,
            &["https://c.org/a_(b)"],
        );
        check_report(
            "[https://a.org/x](https://b.org)",
            "[https://a.org/x](https://b.org) [unverified source]",
            2,
            &["https://b.org"],
        );
        check_report("", "", 0, &[]);
    }

    #[test]
    fn hostile_texts_take_linear_time() {
        for text in ["[[", "](", "http://", "[[[", "https://(", "{\"url\":[", "é](", "[[é"] {
            let long = text.repeat(50_000);
            let (checked, _) = check(&long, &BTreeSet::new());
            assert!(checked.len() >= long.len());
            collect(&long, &mut BTreeSet::new());
        }
    }
}
