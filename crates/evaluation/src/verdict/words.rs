//! Verdicts that are words or letters on a line of their own. A line counts when, punctuation and a label in front
//! aside, it is one of the phrases of the form, all of it.

use super::{Judgement, NoVerdict, Verdict};

use Verdict::{Correct, Incorrect, NotAttempted};

/// The words of a form.
pub(super) struct Form {
    /// What a line may be, in lower case, punctuation as blanks.
    phrases: &'static [(&'static str, Verdict)],
    /// Whether only lines with the label of a conclusion count.
    needs_conclusion: bool,
}

/// Phrases that every form in English knows.
macro_rules! with_words {
    ($($more:tt)*) => {
        &[
            ("correct", Correct),
            ("correct yes", Correct),
            ("incorrect", Incorrect),
            ("incorrect yes", Incorrect),
            ("correct no", Incorrect),
            ("not correct", Incorrect),
            $($more)*
        ]
    };
}

pub(super) const WORD: Form = Form { phrases: with_words!(), needs_conclusion: false };

pub(super) const LETTERS_ENGLISH: Form = Form {
    phrases: with_words![
        ("a", Correct),
        ("a correct", Correct),
        ("b", Incorrect),
        ("b incorrect", Incorrect)
    ],
    needs_conclusion: false,
};

pub(super) const THREE_LETTERS: Form = Form {
    phrases: with_words![
        ("a", Correct),
        ("a correct", Correct),
        ("b", Incorrect),
        ("b incorrect", Incorrect),
        ("c", NotAttempted),
        ("c not attempted", NotAttempted),
        ("not attempted", NotAttempted),
    ],
    needs_conclusion: false,
};

pub(super) const LETTERS_CHINESE: Form = Form {
    phrases: with_words![
        ("a", Correct),
        ("a correct", Correct),
        ("a 正确", Correct),
        ("正确", Correct),
        ("b", Incorrect),
        ("b incorrect", Incorrect),
        ("b 错误", Incorrect),
        ("b 不正确", Incorrect),
        ("错误", Incorrect),
        ("不正确", Incorrect),
    ],
    needs_conclusion: false,
};

pub(super) const CONCLUSION: Form = Form {
    phrases: &[("正确", Correct), ("错误", Incorrect), ("不正确", Incorrect)],
    needs_conclusion: true,
};

/// Words that may stand in front of a verdict on its line.
const LABELS: &[&str] = &[
    "final",
    "verdict",
    "judgement",
    "judgment",
    "answer",
    "grade",
    "result",
    "evaluation",
    "conclusion",
    "the",
    "is",
    "my",
    "label",
    "choice",
    "option",
    "答案",
    "判断",
    "结论",
    "最终结论",
    "评判",
    "评判结果",
    "判断结果",
    "结果",
    "判定",
    "最终判断",
    "最终答案",
];

/// Labels that say: this is the conclusion.
const CONCLUSIONS: &[&str] = &["结论", "最终结论"];

/// Boxes that nobody ticked: the line is an option, not a choice.
const EMPTY_BOXES: &[&str] = &["[ ]", "[]", "☐", "□"];

/// Boxes that somebody ticked.
const TICKED_BOXES: &[&str] = &["[x]", "[X]", "☑", "☒", "✅"];

/// Signs that turn what they stand at into its opposite.
const STRUCK: [char; 8] = ['≠', '¬', '✗', '✘', '❌', '✖', '🚫', '×'];

/// What all lines with a verdict agree on. One sentence anywhere that says otherwise makes a good verdict none.
pub(super) fn read(form: Form, said: &str) -> Result<Judgement, NoVerdict> {
    let mut found: Option<Verdict> = None;
    let mut is_doubted = false;
    let mut above = "";
    for line in said.lines() {
        let breaks_off = ends_in_a_no(above);
        if !line.trim().is_empty() {
            above = line;
        }
        let Some(verdict) = verdict_of_line(&form, line) else {
            is_doubted |= !is_unticked(line)
                && sentences(line).any(|sentence| is_bad(&form, sentence) || ends_badly(sentence));
            continue;
        };
        // A line that a negation or half a word runs into is no verdict by itself.
        is_doubted |= breaks_off;
        if found.is_some_and(|before| before != verdict) {
            return Err(NoVerdict::Contradiction);
        }
        found = Some(verdict);
    }
    match found {
        Some(Correct) if is_doubted => Err(NoVerdict::Contradiction),
        found => found.map(Judgement::from).ok_or(NoVerdict::NotInForm),
    }
}

/// Whether a line ends in the middle of a word, or with one that turns the next into its opposite.
fn ends_in_a_no(line: &str) -> bool {
    let line = line.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '"' | '…'));
    if line.strip_suffix(HYPHENS).is_some_and(|before| before.ends_with(char::is_alphanumeric)) {
        return true;
    }
    // Behind a full stop or the like something new begins.
    if !line.ends_with(char::is_alphanumeric) {
        return false;
    }
    let words = words_of(line);
    let is_negated = match words.as_slice() {
        [.., verb, t] if t == "t" => NEGATIONS.contains(&verb.as_str()),
        [.., last] => TURNS_THE_NEXT.contains(&last.as_str()),
        [] => false,
    };
    is_negated || line.ends_with(HAN_PREFIXES)
}

const HYPHENS: [char; 5] = ['-', '\u{ad}', '\u{2010}', '\u{2011}', '－'];
const TURNS_THE_NEXT: [&str; 5] = ["not", "never", "in", "un", "non"];
const HAN_PREFIXES: [char; 4] = ['不', '非', '未', '没'];

fn is_unticked(line: &str) -> bool {
    EMPTY_BOXES.iter().any(|empty| line.contains(empty))
}

/// The parts of a line that could say something by themselves.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    line.split(['.', '!', ';', ':', '。', '！', '；', '：', '—'])
}

/// Whether a sentence says at its end, and without a no, that something is wrong: the answer, most likely.
fn ends_badly(sentence: &str) -> bool {
    // Most sentences have no such word at all.
    let lower = sentence.to_ascii_lowercase();
    if !BAD_ENDS.iter().chain(&HAN_BAD_ENDS).any(|end| lower.contains(end)) {
        return false;
    }
    sentence.split([',', '，', '、']).any(|clause| {
        let words = words_of(clause);
        let is_negated = words.iter().any(|word| {
            NEGATIONS.contains(&word.as_str()) || HAN_NEGATIONS.iter().any(|no| word.contains(no))
        });
        // A verdict by itself is read elsewhere.
        let Some(last) = words.last().filter(|_| !is_negated) else { return false };
        let in_han = |end: &str| last.ends_with(end) && last != end;
        (words.len() > 1 && BAD_ENDS.contains(&last.as_str())) || HAN_BAD_ENDS.iter().any(|end| in_han(end))
    })
}

const BAD_ENDS: [&str; 2] = ["incorrect", "wrong"];
const HAN_BAD_ENDS: [&str; 2] = ["不正确", "错误"];
const NEGATIONS: [&str; 12] =
    ["not", "nothing", "no", "none", "never", "neither", "nor", "isn", "wasn", "aren", "without", "cannot"];
const HAN_NEGATIONS: [&str; 4] = ["没有", "并非", "不是", "无"];

/// Whether a sentence, with or without the label of a conclusion, is a verdict other than correct.
fn is_bad(form: &Form, sentence: &str) -> bool {
    let form = Form { phrases: form.phrases, needs_conclusion: false };
    verdict_of_line(&form, sentence).is_some_and(|verdict| verdict != Correct)
}

fn verdict_of_line(form: &Form, line: &str) -> Option<Verdict> {
    // A verdict is short, and a question is none.
    if line.len() > 200 || line.contains(['?', '？']) || EMPTY_BOXES.iter().any(|empty| line.contains(empty))
    {
        return None;
    }
    let words =
        words_of(&TICKED_BOXES.iter().fold(line.to_owned(), |line, ticked| line.replace(ticked, " ")));
    let is_struck = line.contains(STRUCK) || line.trim_start().starts_with('!') || line.contains("~~");
    let mut rest: &[String] = &words;
    let mut concluded = false;
    loop {
        if concluded || !form.needs_conclusion {
            let phrase = rest.join(" ");
            if let Some((_, verdict)) = form.phrases.iter().find(|(known, _)| *known == phrase) {
                return Some(*verdict).filter(|verdict| *verdict != Correct || !is_struck);
            }
        }
        let (label, after) = rest.split_first()?;
        if !LABELS.contains(&label.as_str()) {
            return None;
        }
        concluded |= CONCLUSIONS.contains(&label.as_str());
        rest = after;
    }
}

/// The words of a line in lower case; everything that is neither letter nor digit parts them.
fn words_of(line: &str) -> Vec<String> {
    let plain: String = line
        .chars()
        .map(half_width)
        .map(|character| if character.is_alphanumeric() { character } else { ' ' })
        .collect();
    plain.split_whitespace().map(str::to_lowercase).collect()
}

/// Full-width Latin letters are Latin letters.
fn half_width(character: char) -> char {
    match character {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character),
        other => other,
    }
}
