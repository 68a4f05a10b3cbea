//! Questions inside questions: "the author of X" in "Where was the author of X born?".
//!
//! Decides whether a question holds another one, and how the two are put. Answering is left to `answer`.

use super::lexicon::{Lexicon, NounClass};
use super::text::{Token, TokenKind, tokens};

/// A question that waits for the answer to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nested {
    /// The question to answer first.
    pub(super) inner: String,
    /// The outer question before the gap.
    pub(super) before: String,
    /// The outer question after the gap.
    pub(super) after: String,
}

impl Nested {
    /// The outer question with the gap filled.
    pub(super) fn outer(&self, answer: &str) -> String {
        let mut text = self.before.clone();
        for part in [answer, self.after.as_str()] {
            if !text.is_empty() && !text.ends_with(' ') && !part.starts_with(['?', '\'', '’', ',']) {
                text.push(' ');
            }
            text.push_str(part.trim_start());
        }
        text
    }
}

const RELATIVE: &[&str] = &["who", "which", "that", "where", "whose", "whom"];
const ASKING: &[&str] = &["who", "what", "which", "when", "where", "why", "how", "whose", "whom"];
const AUXILIARY: &[&str] = &["is", "was", "are", "were", "did", "does", "do", "has", "had", "have"];
const PREPOSITIONS: &[&str] =
    &["in", "at", "on", "from", "to", "by", "of", "for", "with", "through", "near", "under", "after"];
/// Verbs that end an outer question in their base form.
const CLOSING_VERBS: &[&str] = &[
    "die",
    "live",
    "work",
    "study",
    "begin",
    "end",
    "start",
    "open",
    "close",
    "win",
    "marry",
    "flow",
    "rise",
    "grow",
    "born",
    "built",
    "founded",
    "written",
    "found",
    "made",
    "located",
    "buried",
    "discovered",
    "invented",
    "published",
    "named",
    "completed",
    "opened",
    "established",
    "created",
    "composed",
    "painted",
    "launched",
    "situated",
    "educated",
    "retire",
    "stand",
    "lie",
    "weigh",
    "cost",
    "measure",
    "become",
    "move",
    "arrive",
    "belong",
    "come",
    "sink",
    "spend",
    "receive",
    "teach",
    "speak",
    "have",
    "use",
    "destroyed",
    "designed",
    "sold",
    "spoken",
    "held",
    "died",
    "killed",
    "crowned",
    "elected",
    "married",
    "baptised",
    "raised",
    "educated",
    "first",
    "constructed",
    "signed",
    "performed",
];

/// Takes a nested question apart; none where there is nothing inside.
pub(super) fn nested(question: &str) -> Option<Nested> {
    let all = tokens(question);
    let end = all.iter().rposition(|token| token.kind != TokenKind::Mark).map_or(0, |at| at + 1);
    let words = all.get(..end)?;
    relative_clause(question, words)
        .or_else(|| participle(question, words))
        .or_else(|| of_phrase(question, words))
        .or_else(|| possessive(question, words))
}

fn folded<'a>(words: &'a [Token<'_>], at: usize) -> &'a str {
    words.get(at).map_or("", |token| token.folded.as_str())
}

fn slice<'a>(question: &'a str, words: &[Token<'_>], first: usize, end: usize) -> &'a str {
    let start = words.get(first).map_or(question.len(), |token| token.start);
    let stop = end.checked_sub(1).and_then(|last| words.get(last)).map_or(start, |token| token.end);
    question.get(start..stop.max(start)).unwrap_or_default()
}

/// Where the noun phrase that ends before `end` begins: at its article.
fn phrase_start(words: &[Token<'_>], end: usize) -> Option<usize> {
    let mut at = end;
    let mut steps = 0;
    while at > 0 && steps < 8 {
        at -= 1;
        steps += 1;
        let word = folded(words, at);
        if matches!(word, "the" | "a" | "an" | "this") {
            return Some(at);
        }
        if AUXILIARY.contains(&word)
            || ASKING.contains(&word)
            || PREPOSITIONS.contains(&word) && steps > 1 && word != "of"
        {
            return None;
        }
    }
    None
}

fn is_verb_like(words: &[Token<'_>], at: usize) -> bool {
    words.get(at).is_some_and(|token| {
        !token.is_capitalised()
            && (token.folded.ends_with("ed") && token.folded.len() > 4
                || Lexicon::shared().is_verb(&token.folded))
    })
}

/// Whether the question before the phrase holds something that is asked: more than "when did" or "who was".
fn has_relation(words: &[Token<'_>], end: usize) -> bool {
    let lexicon = Lexicon::shared();
    // "How long was …" asks by its adjective.
    if folded(words, 0) == "how"
        && !matches!(folded(words, 1), "many" | "much" | "did" | "does" | "was" | "is")
    {
        return true;
    }
    let mut after_class = false;
    for (at, token) in words.get(..end).unwrap_or_default().iter().enumerate() {
        let word = token.folded.as_str();
        if AUXILIARY.contains(&word) {
            after_class = true;
            continue;
        }
        if token.kind == TokenKind::Mark || lexicon.is_stopword(word) || ASKING.contains(&word) {
            continue;
        }
        // In "in what year did" the noun only names the class; in "what is the capital of" it relates.
        let named_class = !after_class && at <= 4;
        if !named_class || is_verb_like(words, at) {
            return true;
        }
        if words
            .get(at + 1..end)
            .unwrap_or_default()
            .iter()
            .all(|next| !AUXILIARY.contains(&next.folded.as_str()))
            && at > 1
        {
            return true;
        }
    }
    false
}

/// Where the outer question goes on after an inner one that began at `from`: at a closing verb.
fn outer_tail(words: &[Token<'_>], from: usize) -> usize {
    let last = words.len();
    for back in 1..=5 {
        let Some(at) = last.checked_sub(back) else { break };
        if at <= from + 1 {
            break;
        }
        let word = folded(words, at);
        let naming = matches!(word, "called" | "named" | "known");
        let closes = back == 1
            || PREPOSITIONS.contains(&folded(words, at + 1))
            || matches!(folded(words, at + 1), "the" | "as");
        if closes
            && !naming
            && (CLOSING_VERBS.contains(&word) || word.ends_with("ed") && word.len() > 4)
            && !words.get(at).is_some_and(Token::is_capitalised)
        {
            // "was later founded": adverbs before the verb go with it.
            let adverb = at.checked_sub(1).filter(|before| {
                *before > from && matches!(folded(words, *before), "first" | "originally" | "later")
            });
            return adverb.unwrap_or(at);
        }
    }
    last
}

/// "What nationality was …": the class noun is all that is asked.
fn classed(words: &[Token<'_>], end: usize) -> bool {
    matches!(folded(words, 0), "what" | "which")
        && end >= 3
        && !AUXILIARY.contains(&folded(words, 1))
        && AUXILIARY.contains(&folded(words, end - 1))
}

fn asking_for(noun: &Token<'_>) -> &'static str {
    match Lexicon::shared().class_of(&noun.stem) {
        Some(NounClass::Person) => "who",
        _ => "which",
    }
}

/// "the N [preposition] who/which/that/where …".
fn relative_clause(question: &str, words: &[Token<'_>]) -> Option<Nested> {
    let at = (2..words.len()).find(|at| {
        RELATIVE.contains(&folded(words, *at)) && {
            let before = folded(words, at - 1);
            let noun = if PREPOSITIONS.contains(&before) || before == "," {
                at.checked_sub(2)
            } else {
                Some(at - 1)
            };
            noun.is_some_and(|noun| {
                words.get(noun).is_some_and(|token| token.kind == TokenKind::Word)
                    && phrase_start(words, noun + 1).is_some()
                    && !AUXILIARY.contains(&folded(words, noun))
            })
        }
    })?;
    let preposition = PREPOSITIONS.contains(&folded(words, at - 1));
    let noun = if preposition || folded(words, at - 1) == "," { at - 2 } else { at - 1 };
    let start = phrase_start(words, noun + 1)?;
    let asked_before = has_relation(words, start);
    let end = if asked_before { words.len() } else { outer_tail(words, at) };
    if !asked_before && end == words.len() {
        return None;
    }
    let noun_text = slice(question, words, start + 1, noun + 1);
    let clause = slice(question, words, at + 1, end);
    if clause.is_empty() || end <= at + 1 {
        return None;
    }
    let noun_token = words.get(noun)?;
    let inner = match folded(words, at) {
        "who" | "that" if asking_for(noun_token) == "who" => format!("Which {noun_text} {clause}?"),
        "where" => format!("In which {noun_text} {clause}?"),
        "whose" => format!("Which {noun_text} has {clause}?"),
        _ if preposition => {
            let word = slice(question, words, at - 1, at);
            format!("{} which {noun_text} {clause}?", capitalised(word))
        }
        _ => format!("Which {noun_text} {clause}?"),
    };
    Some(frame(question, words, inner, start, end))
}

/// "the ship launched at X", "the element discovered by Y": a relative clause without its pronoun.
fn participle(question: &str, words: &[Token<'_>]) -> Option<Nested> {
    let at = (2..words.len().saturating_sub(1)).find(|at| {
        is_verb_like(words, *at)
            && phrase_start(words, *at).is_some_and(|start| start + 1 < *at)
            && PREPOSITIONS.contains(&folded(words, at + 1))
    })?;
    let start = phrase_start(words, at)?;
    if folded(words, at - 1) == "of" {
        return None;
    }
    let asked_before = has_relation(words, start);
    let end = if asked_before { words.len() } else { outer_tail(words, at + 1) };
    if !asked_before && end == words.len() {
        return None;
    }
    let noun_text = slice(question, words, start + 1, at);
    let clause = slice(question, words, at, end);
    // A name is no class: "the Eiffel Tower built in" asks nothing inside.
    if words.get(at - 1).is_some_and(Token::is_capitalised) {
        return None;
    }
    let inner = format!("Which {noun_text} was {clause}?");
    Some(frame(question, words, inner, start, end))
}

/// "the R of X" where something else is asked about R.
fn of_phrase(question: &str, words: &[Token<'_>]) -> Option<Nested> {
    let lexicon = Lexicon::shared();
    // The innermost phrase is the last one.
    for of in (2..words.len().saturating_sub(1)).rev() {
        if folded(words, of) != "of" {
            continue;
        }
        let noun = of - 1;
        let class = words
            .get(noun)
            .filter(|token| !token.is_capitalised())
            .and_then(|token| lexicon.class_of(&token.stem));
        let Some(class) = class else { continue };
        let plural = folded(words, noun).ends_with('s');
        if plural
            || !matches!(class, NounClass::Person | NounClass::Place | NounClass::Group | NounClass::Work)
        {
            continue;
        }
        let Some(start) = phrase_start(words, of) else { continue };
        let asked_before = has_relation(words, start);
        let end = if asked_before { words.len() } else { outer_tail(words, of) };
        if !asked_before && end == words.len() && !classed(words, start) || end <= of + 1 {
            continue;
        }
        let phrase = slice(question, words, start, end);
        let inner = if class == NounClass::Person {
            format!("Who was {phrase}?")
        } else {
            format!("What is {phrase}?")
        };
        return Some(frame(question, words, inner, start, end));
    }
    None
}

/// "X's R" where something else is asked about R.
fn possessive(question: &str, words: &[Token<'_>]) -> Option<Nested> {
    let lexicon = Lexicon::shared();
    let mark = (2..words.len()).find(|at| {
        folded(words, *at) == "s"
            && words.get(*at).zip(words.get(at - 1)).is_some_and(|(s, before)| s.start > before.end)
    })?;
    let noun = (mark + 1..words.len().min(mark + 4)).find(|at| {
        words.get(*at).is_some_and(|token| {
            !token.is_capitalised()
                && matches!(lexicon.class_of(&token.stem), Some(NounClass::Person | NounClass::Place))
        })
    })?;
    let mut start = mark;
    while start > 0
        && words.get(start - 1).is_some_and(|token| {
            token.is_capitalised() || matches!(token.folded.as_str(), "of" | "the" | "de" | "von" | "van")
        })
    {
        start -= 1;
    }
    if start == mark || AUXILIARY.contains(&folded(words, start)) {
        return None;
    }
    // The wh-word itself is capitalised.
    while start < mark
        && (ASKING.contains(&folded(words, start)) || AUXILIARY.contains(&folded(words, start)))
    {
        start += 1;
    }
    let asked_before = has_relation(words, start);
    let rest = words.len() > noun + 1 && outer_tail(words, noun) < words.len();
    if !asked_before && !rest {
        return None;
    }
    let owner = slice(question, words, start, mark);
    let role = slice(question, words, mark + 1, noun + 1);
    let who = if lexicon.class_of(&words.get(noun)?.stem) == Some(NounClass::Person) {
        "Who was"
    } else {
        "What is"
    };
    Some(frame(question, words, format!("{who} the {role} of {owner}?"), start, noun + 1))
}

fn frame(question: &str, words: &[Token<'_>], inner: String, start: usize, end: usize) -> Nested {
    let from = words.get(start).map_or(0, |token| token.start);
    let to = end.checked_sub(1).and_then(|last| words.get(last)).map_or(question.len(), |token| token.end);
    let after = question.get(to..).unwrap_or_default().trim();
    Nested {
        inner,
        before: question.get(..from).unwrap_or_default().trim_end().to_owned(),
        after: if after.is_empty() { "?".to_owned() } else { after.to_owned() },
    }
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
