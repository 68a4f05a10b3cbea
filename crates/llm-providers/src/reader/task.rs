//! The first message: the question, what was attached to it, what earlier attempts reported.
//!
//! Decides where the question ends. What it asks for is left to `question`.

use super::sentences::split;

/// A task, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Task {
    /// The sentence or sentences that ask.
    pub(super) question: String,
    /// Text that came with it: evidence like any document.
    pub(super) attached: String,
    /// What failed attempts reported; empty in the first pass.
    pub(super) failures: String,
}

/// Words of a heading over the reports of earlier attempts.
const FAILURE_WORDS: &[&str] =
    &["earlier attempt", "previous attempt", "failure experience", "failed attempt"];

/// Sentences that only say how to answer.
const FORM_WORDS: &[&str] = &[
    "\\boxed",
    "format instruction",
    "final answer",
    "supporting detail",
    "your answer",
    "answer in",
    "answer with",
    "please provide",
    "answer should",
    "do not include",
    "give only",
    "answer only",
    "be concise",
];

/// Takes the first message apart.
pub(super) fn task(message: &str) -> Task {
    let mut head = String::new();
    let mut attached = String::new();
    let mut failures = String::new();
    let mut part = 0;
    let mut blank_before = false;
    for line in message.lines() {
        let lower = line.to_lowercase();
        let heading =
            line.starts_with('#') || line.trim_start_matches(['=', '-', '*', ' ']).len() + 3 <= line.len();
        if heading && FAILURE_WORDS.iter().any(|words| lower.contains(words)) {
            part = 2;
        } else if part == 0
            && !head.is_empty()
            && (line.starts_with('#') || blank_before && is_attachment(&lower))
        {
            part = 1;
        }
        let target = match part {
            0 => &mut head,
            1 => &mut attached,
            _ => &mut failures,
        };
        target.push_str(line);
        target.push('\n');
        blank_before = line.trim().is_empty();
    }
    Task { question: question_of(head.trim()), attached, failures }
}

/// A line that introduces a file.
fn is_attachment(lower: &str) -> bool {
    ["file:", "attached", "attachment", "content of", "contents of", "```", "<file", "<document"]
        .iter()
        .any(|start| lower.starts_with(start))
}

/// What asks, without the sentences that only say how to answer.
fn question_of(head: &str) -> String {
    let mut sentences: Vec<&str> = Vec::new();
    for paragraph in head.split('\n').map(str::trim).filter(|line| !line.is_empty()) {
        sentences.extend(split(paragraph));
    }
    let wanted: Vec<&str> = sentences
        .iter()
        .copied()
        .filter(|sentence| {
            let lower = sentence.to_lowercase();
            sentence.ends_with('?') || !FORM_WORDS.iter().any(|words| lower.contains(words))
        })
        .collect();
    // Long tasks: what asks is the last sentence with a question mark, with the one before it for context.
    let asking = wanted.iter().rposition(|sentence| sentence.contains('?'));
    let chosen: Vec<&str> = match asking {
        Some(at) => wanted.get(at..=at).unwrap_or_default().to_vec(),
        None => wanted.iter().copied().take(3).collect(),
    };
    if chosen.is_empty() {
        head.chars().take(2000).collect()
    } else {
        chosen.join(" ").chars().take(2000).collect()
    }
}
