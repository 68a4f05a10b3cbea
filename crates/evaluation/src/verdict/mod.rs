//! What a judge's reply says. Decides by whole lines and whole values only: a reply that merely contains a word like
//! "correct" says nothing, and a reply in another form than the one asked for is no verdict rather than a wrong one.

mod fields;
mod words;

use serde::{Deserialize, Serialize};

use crate::figures::SetScore;

/// What a judge found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The answer is right.
    Correct,
    /// It is wrong.
    Incorrect,
    /// It leaves the question open; counts as not correct.
    NotAttempted,
}

/// The form in which a judge replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyForm {
    /// One word: Correct or Incorrect.
    Word,
    /// A (correct) or B (incorrect), in English.
    LettersEnglish,
    /// A (正确) or B (错误), in Chinese.
    LettersChinese,
    /// A (correct), B (incorrect) or C (not attempted).
    ThreeLetters,
    /// `extracted_final_answer`, `reasoning`, `correct: yes|no`, `confidence`, as an object or as lines.
    Fields,
    /// An explanation, then `结论: 正确` or `结论: 错误`.
    Conclusion,
    /// An object with every expected part true or false, and a list of parts in excess.
    Parts,
}

/// A verdict with what else the reply says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The answer as the judge extracted it ([`ReplyForm::Fields`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extracted: Option<String>,
    /// How sure the answer was, from 0 to 1 ([`ReplyForm::Fields`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Parts found, expected and in excess ([`ReplyForm::Parts`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<SetScore>,
}

impl From<Verdict> for Judgement {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, extracted: None, confidence: None, parts: None }
    }
}

/// Why a reply is no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoVerdict {
    /// There is nothing but thinking or white space.
    Empty,
    /// No line or value has the form that was asked for.
    NotInForm,
    /// It says two different things.
    Contradiction,
}

impl std::fmt::Display for NoVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Empty => "the judge's reply is empty",
            Self::NotInForm => "the judge's reply is not in the form that was asked for",
            Self::Contradiction => "the judge's reply says two different things",
        })
    }
}

/// Reads a judge's reply.
///
/// # Errors
///
/// A reply that is no verdict; the sample stays unjudged and is judged again later.
pub fn read_verdict(form: ReplyForm, reply: &str) -> Result<Judgement, NoVerdict> {
    let said = after_thinking(reply).trim();
    if said.is_empty() {
        return Err(NoVerdict::Empty);
    }
    match form {
        ReplyForm::Word => words::read(words::WORD, said),
        ReplyForm::LettersEnglish => words::read(words::LETTERS_ENGLISH, said),
        ReplyForm::LettersChinese => words::read(words::LETTERS_CHINESE, said),
        ReplyForm::ThreeLetters => words::read(words::THREE_LETTERS, said),
        ReplyForm::Conclusion => words::read(words::CONCLUSION, said),
        ReplyForm::Fields => fields::read_fields(said),
        ReplyForm::Parts => fields::read_parts(said),
    }
}

/// The confidence that a reply states in its last `confidence: 70%`, between 0 and 1.
#[must_use]
pub fn stated_confidence(reply: &str) -> Option<f64> {
    // Case is folded in ASCII only, so that places in both texts are the same.
    let lower = reply.to_ascii_lowercase();
    let at = lower.rfind("confidence")? + "confidence".len();
    let is_sign = |c: char| !c.is_alphanumeric() && c != '\n';
    let mut rest = lower.get(at..)?.trim_start_matches(is_sign);
    for word in ["level", "score"] {
        rest = rest.strip_prefix(word).unwrap_or(rest).trim_start_matches(is_sign);
    }
    // A share of one would read as a percentage of nearly nothing.
    let number = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    if number.starts_with("0.") || number.is_empty() { None } else { fields::percent(number) }
}

/// What models think between.
const THINKING: [&str; 4] = ["think", "thinking", "thought", "reasoning"];

/// What follows thinking; nothing of thinking that does not end.
fn after_thinking(reply: &str) -> &str {
    // Case is folded in ASCII only, so that places in both texts are the same.
    let lower = reply.to_ascii_lowercase();
    let ends = THINKING.iter().filter_map(|name| {
        let tag = format!("</{name}>");
        lower.rfind(&tag).map(|at| at + tag.len())
    });
    if let Some(end) = ends.max() {
        return reply.get(end..).unwrap_or_default();
    }
    let begins = THINKING.iter().filter_map(|name| lower.find(&format!("<{name}>")));
    begins.min().map_or(reply, |begin| reply.get(..begin).unwrap_or_default())
}
