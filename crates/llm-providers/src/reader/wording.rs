//! What the reader writes: notes, answers, reports.
//!
//! Decides the words, and that nothing quoted can be taken for a call, a box or a refusal. Notes are written so
//! that they can be read back from the reader's own replies, which stay in the history when results do not.

use serde_json::Value;

/// A line that the reader leaves for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    /// A sentence that speaks of the question.
    Sentence { title: String, place: String, text: String },
    /// A document that a search found and that is not read yet.
    Unread { title: String, place: String },
    /// A question inside the question and its answer.
    Step { question: String, answer: String },
    /// A question inside the question that found no answer.
    NoStep { question: String },
}

const SENTENCE: &str = "- Noted from ";
const UNREAD: &str = "- Not read yet: ";
const STEP: &str = "- Worked out: ";
const NO_STEP: &str = "- Not found: ";

/// Writes a note as one line.
pub(super) fn note_line(note: &Note) -> String {
    let quote = |text: &str| Value::String(safe(text)).to_string();
    match note {
        Note::Sentence { title, place, text } => {
            format!("{SENTENCE}{} ({}): {}", quote(title), quote(place), quote(text))
        }
        Note::Unread { title, place } => format!("{UNREAD}{} ({})", quote(title), quote(place)),
        Note::Step { question, answer } => {
            format!("{STEP}{} is answered by {}", quote(question), quote(answer))
        }
        Note::NoStep { question } => format!("{NO_STEP}{}", quote(question)),
    }
}

/// The notes of a reply.
pub(super) fn notes(reply: &str) -> Vec<Note> {
    reply.lines().filter_map(read_note).collect()
}

fn read_note(line: &str) -> Option<Note> {
    if let Some(rest) = line.strip_prefix(SENTENCE) {
        let (title, rest) = quoted(rest)?;
        let (place, rest) = quoted(rest.strip_prefix(" (")?)?;
        let (text, _) = quoted(rest.strip_prefix("): ")?)?;
        return Some(Note::Sentence { title, place, text });
    }
    if let Some(rest) = line.strip_prefix(UNREAD) {
        let (title, rest) = quoted(rest)?;
        let (place, _) = quoted(rest.strip_prefix(" (")?)?;
        return Some(Note::Unread { title, place });
    }
    if let Some(rest) = line.strip_prefix(STEP) {
        let (question, rest) = quoted(rest)?;
        let (answer, _) = quoted(rest.strip_prefix(" is answered by ")?)?;
        return Some(Note::Step { question, answer });
    }
    if let Some(rest) = line.strip_prefix(NO_STEP) {
        let (question, _) = quoted(rest)?;
        return Some(Note::NoStep { question });
    }
    read_cite(line)
}

/// A JSON string at the start of the text, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let value = stream.next()?.ok()?;
    let rest = text.get(stream.byte_offset()..)?;
    Some((value, rest))
}

/// Phrases by which a loop recognises a refusal; a quotation must not hold them.
const REFUSALS: &[&str] =
    &["time constraint", "I'm sorry, but I can't", "I’m sorry, but I can’t", "I'm sorry, I cannot solve"];

/// A text from outside, made harmless inside a reply: no tags, no box, no phrase of refusal.
pub(super) fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '\\', '\n', '\r']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let mut chars = from.chars();
        let mark = chars.next().unwrap_or_default();
        rest = chars.as_str();
        match mark {
            '<' if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') => out.push('‹'),
            '\\' if rest.trim_start().starts_with("boxed") => {}
            '\n' | '\r' => out.push(' '),
            other => out.push(other),
        }
    }
    out.push_str(rest);
    for phrase in REFUSALS {
        if out.contains(phrase) {
            out = out.replace(phrase, "[…]");
        }
    }
    out
}

/// What goes into a box: braces are balanced, nothing else changes.
fn boxed(answer: &str) -> String {
    let text: String = safe(answer)
        .chars()
        .map(|c| match c {
            '{' => '(',
            '}' => ')',
            other => other,
        })
        .collect();
    format!("\\boxed{{{}}}", text.trim())
}

/// What an answer rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// The sentence.
    pub(super) sentence: String,
    /// Title of the document.
    pub(super) title: String,
    /// Its id or address.
    pub(super) place: String,
}

/// The last reply: quotations with their sources, and the answer in a box.
pub(super) fn answer(sources: &[Source], answer: &str) -> String {
    let mut lines: Vec<String> = sources.iter().map(cite).collect();
    lines.push(boxed(answer));
    lines.join("\n")
}

/// A quotation as [`cite`] writes it.
fn read_cite(line: &str) -> Option<Note> {
    let (text, name) = line.strip_prefix('“')?.rsplit_once("” — ")?;
    let (title, place) = name.strip_suffix(')')?.rsplit_once(" (")?;
    Some(Note::Sentence { title: title.to_owned(), place: place.to_owned(), text: text.to_owned() })
}

fn cite(source: &Source) -> String {
    let name = match (source.title.is_empty(), source.place.is_empty()) {
        (false, false) => format!("{} ({})", safe(&source.title), safe(&source.place)),
        (false, true) => safe(&source.title),
        (true, false) => safe(&source.place),
        (true, true) => "the task's own text".to_owned(),
    };
    format!("“{}” — {name}", safe(&source.sentence))
}

/// The last reply where nothing was found.
pub(super) fn no_answer(read: &[String], nearest: Option<&Source>) -> String {
    let mut text = if read.is_empty() {
        "No source that was read holds an answer to this question: nothing could be read.".to_owned()
    } else {
        let titles: Vec<String> = read.iter().take(8).map(|title| safe(title)).collect();
        format!("No answer to this question was found in the sources that were read: {}.", titles.join("; "))
    };
    if let Some(source) = nearest {
        text.push_str("\nThe nearest sentence does not answer it: ");
        text.push_str(&cite(source));
    }
    text.push('\n');
    text.push_str(&boxed("unknown"));
    text
}

/// The report on a pass that failed.
pub(super) struct Failure<'a> {
    /// Queries that were searched for.
    pub(super) queries: &'a [String],
    /// Titles of what was read.
    pub(super) read: &'a [String],
    /// Whether calls gave errors.
    pub(super) errors: usize,
    /// Facts that may help.
    pub(super) findings: &'a [Source],
    /// The best answer, if it is one.
    pub(super) candidate: Option<&'a str>,
}

/// Writes the report under the three headings that are asked for.
pub(super) fn failure(report: &Failure<'_>) -> String {
    let blocked =
        report.errors > 0 && report.read.is_empty() || report.queries.is_empty() && report.read.is_empty();
    let kind = match (report.candidate, blocked) {
        (Some(_), _) => "format_missed",
        (None, true) => "blocked",
        (None, false) => "incomplete",
    };
    let list = |items: &[String]| {
        items.iter().map(|item| format!("\"{}\"", safe(item))).collect::<Vec<_>>().join(", ")
    };
    let mut happened = String::from("An extractive reader, not a language model, worked on this.");
    if report.queries.is_empty() {
        happened.push_str(" Nothing was searched.");
    } else {
        happened.push_str(&format!(" Searched: {}.", list(report.queries)));
    }
    if report.read.is_empty() {
        happened.push_str(" No document was read.");
    } else {
        happened.push_str(&format!(" Read: {}.", list(report.read)));
    }
    if report.errors > 0 {
        happened.push_str(&format!(" Calls that gave errors: {}.", report.errors));
    }
    if report.candidate.is_none() {
        happened.push_str(" No sentence covered enough of the question to answer it.");
    }
    let mut findings: Vec<String> = report.findings.iter().map(cite).collect();
    if let Some(candidate) = report.candidate {
        findings.push(format!("Candidate: {}", safe(candidate)));
    }
    if findings.is_empty() {
        findings.push("none".to_owned());
    }
    format!("Failure type: {kind}\n\nWhat happened: {happened}\n\nUseful findings: {}", findings.join("\n"))
}
