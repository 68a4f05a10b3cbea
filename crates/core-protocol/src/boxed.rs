//! The boxed answer: the content of the last `\boxed{…}` of a text.
//!
//! Decides where the last box begins and ends and which contents are no answer. Whether thinking is
//! looked at is the caller's choice, made by [`boxed_answer_of_reply`] for replies.

use memchr::memmem;
use std::sync::LazyLock;

use crate::ParsedReply;

static COMMAND: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"\\boxed"));

/// Bytes of a box that are looked at one by one.
const SHORT_BOX: usize = 48;

/// Contents of a box that say that there is no answer, exactly as written.
const NON_ANSWERS: &[&str] = &["", "?", "??", "???", "？", "……", "…", "...", "unknown"];

/// Content of the last `\boxed{…}`, trimmed, even where it is a non-answer; none where there is no box.
///
/// Braces nest to any depth, `\{` and `\}` do not count, white space may stand before the brace. Of
/// nested boxes the outer one counts. A last box that is not closed runs to the end of the text.
#[must_use]
pub fn last_boxed(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut from = 0;
    let mut last = None;
    while let Some(found) = COMMAND.find(bytes.get(from..).unwrap_or_default()) {
        let after = from + found + COMMAND.needle().len();
        let Some(open) = opening_brace(text, after) else {
            from = after;
            continue;
        };
        let end = closing_brace(bytes, open + 1).unwrap_or(bytes.len());
        last = Some((open + 1, end));
        from = end;
    }
    last.map(|(start, end)| text.get(start..end).unwrap_or_default().trim_matches(is_space))
}

/// The answer: the last box; none where there is no box, or where the last one holds a non-answer
/// (nothing, `?`, `…`, `unknown`).
#[must_use]
pub fn boxed_answer(text: &str) -> Option<String> {
    last_boxed(text).and_then(answer)
}

/// The answer of a reply: the last box outside thinking; only where no box stands outside, the one in
/// the thinking. Boxes inside calls do not count.
#[must_use]
pub fn boxed_answer_of_reply(source: &str, reply: &ParsedReply) -> Option<String> {
    let outside = reply.text(source);
    match last_boxed(&outside) {
        Some(content) => answer(content),
        None => boxed_answer(&reply.thinking(source)),
    }
}

/// The content, unless it says that there is no answer.
fn answer(content: &str) -> Option<String> {
    (!NON_ANSWERS.contains(&content)).then(|| content.to_owned())
}

/// The position of `{` at or after `at`, white space skipped.
fn opening_brace(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let trimmed = rest.trim_start_matches(is_space);
    trimmed.starts_with('{').then(|| at + rest.len() - trimmed.len())
}

/// White space as Python has it: Unicode's and the four ASCII separators.
fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// The position of the brace that closes what was opened before `from`.
fn closing_brace(bytes: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = from;
    loop {
        // Most boxes are short; a search does not pay for them.
        if at >= from + SHORT_BOX {
            at += memchr::memchr3(b'{', b'}', b'\\', bytes.get(at..)?)?;
        }
        match bytes.get(at)? {
            b'\\' => at += 1,
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}
