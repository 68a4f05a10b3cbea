//! Pieces of a sentence that could be an answer: dates, numbers, quantities, names, noun phrases.
//!
//! Decides only by form. Which piece answers the question is left to `answer`.

use super::lexicon::{Dimension, Lexicon};
use super::text::{Token, TokenKind};

/// The form of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    /// A date with a day or a month.
    Date,
    /// A year alone.
    Year,
    /// A century, a decade.
    Period,
    /// A number without a unit.
    Number,
    /// A number with a unit.
    Quantity(Dimension),
    /// Capitalised words.
    Name,
    /// What stands in quotation marks.
    Quoted,
    /// A noun phrase.
    Phrase,
}

/// Tokens `first..end` of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// The form.
    pub(super) kind: SpanKind,
    /// First token.
    pub(super) first: usize,
    /// One past the last token.
    pub(super) end: usize,
}

impl Span {
    /// The text of the span.
    pub(super) fn text<'a>(&self, sentence: &'a str, tokens: &[Token<'_>]) -> &'a str {
        let start = tokens.get(self.first).map_or(0, |token| token.start);
        let end = self.end.checked_sub(1).and_then(|last| tokens.get(last)).map_or(start, |token| token.end);
        sentence.get(start..end).unwrap_or_default()
    }
}

/// All pieces of a sentence.
pub(super) fn spans(tokens: &[Token<'_>]) -> Vec<Span> {
    let mut list = Vec::new();
    dates(tokens, &mut list);
    let dated = list.len();
    numbers(tokens, dated, &mut list);
    names(tokens, &mut list);
    quoted(tokens, &mut list);
    phrases(tokens, &mut list);
    list
}

fn word<'a>(tokens: &'a [Token<'_>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.folded.as_str())
}

/// Value of a plain whole number.
fn whole(token: Option<&Token<'_>>) -> Option<u32> {
    let token = token.filter(|token| token.kind == TokenKind::Number)?;
    token.text.parse().ok()
}

fn is_era(folded: &str) -> bool {
    matches!(folded, "bc" | "ad" | "bce" | "ce")
}

fn is_month(tokens: &[Token<'_>], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.is_capitalised() && Lexicon::shared().is_month(&token.folded))
}

/// The end of a year that starts here, its era included.
fn year_end(tokens: &[Token<'_>], at: usize, beside_month: bool) -> Option<usize> {
    let number = whole(tokens.get(at))?;
    let text = tokens.get(at)?.text;
    if is_era(word(tokens, at + 1))
        && tokens.get(at + 1).is_some_and(|t| t.text.chars().all(char::is_uppercase))
    {
        return Some(at + 2);
    }
    if word(tokens, at + 1) == "b" && word(tokens, at + 3) == "c" {
        return Some(at + 4);
    }
    let fits = text.len() == 4 && (1000..=2100).contains(&number);
    let before = at.checked_sub(1).map_or("", |place| word(tokens, place));
    if beside_month {
        return (fits || text.len() == 3).then_some(at + 1);
    }
    if before == "ad" && text.len() <= 4 {
        return Some(at + 1);
    }
    if !fits {
        // Years of three digits are known by what stands before.
        return (text.len() == 3 && before == "in" && !is_counted(tokens, at)).then_some(at + 1);
    }
    let next = word(tokens, at + 1);
    if !Lexicon::shared().unit(next).is_empty() || tokens.get(at + 1).is_some_and(|token| token.is_mark("%"))
    {
        return None;
    }
    let introduced = matches!(
        before,
        "in" | "since"
            | "from"
            | "until"
            | "till"
            | "by"
            | "to"
            | "between"
            | "and"
            | "circa"
            | "c"
            | "around"
            | "about"
            | "late"
            | "early"
            | "mid"
            | "after"
            | "before"
            | "of"
            | "during"
            | "the"
    );
    (introduced || !is_counted(tokens, at)).then_some(at + 1)
}

/// Whether a plural noun follows at once, as after a count.
fn is_counted(tokens: &[Token<'_>], at: usize) -> bool {
    tokens.get(at + 1).is_some_and(|next| {
        next.kind == TokenKind::Word
            && !Lexicon::shared().is_stopword(&next.folded)
            && next.folded.ends_with('s')
    })
}

fn dates(tokens: &[Token<'_>], list: &mut Vec<Span>) {
    let mut at = 0;
    while at < tokens.len() {
        let found = date_at(tokens, at);
        if let Some(span) = found {
            list.push(span);
            at = span.end;
        } else {
            at += 1;
        }
    }
}

fn date_at(tokens: &[Token<'_>], at: usize) -> Option<Span> {
    let token = tokens.get(at)?;
    let day = |place: usize| {
        let number = tokens.get(place);
        whole(number).is_some_and(|n| (1..=31).contains(&n))
            || number.is_some_and(|t| {
                t.kind == TokenKind::Ordinal && t.folded.len() <= 4 && !t.folded.ends_with("0s")
            })
    };
    // "26 and 27 August": both days belong to the date.
    let second = match tokens.get(at + 1) {
        Some(next)
            if next.is_mark("-")
                || next.is_mark("–")
                || matches!(next.folded.as_str(), "and" | "to" | "or") =>
        {
            at + 2
        }
        _ => at,
    };
    if second > at && day(at) && day(second) && is_month(tokens, second + 1) {
        return date_at(tokens, second).map(|span| Span { first: at, ..span });
    }
    if day(at) {
        let month = if word(tokens, at + 1) == "of" { at + 2 } else { at + 1 };
        if is_month(tokens, month) {
            let mut end = month + 1;
            let year = if tokens.get(end).is_some_and(|t| t.is_mark(",")) { end + 1 } else { end };
            if let Some(year_end) = year_end(tokens, year, true) {
                end = year_end;
            }
            return Some(Span { kind: SpanKind::Date, first: at, end });
        }
    }
    if is_month(tokens, at) {
        let mut end = at + 1;
        let mut dated = false;
        if day(end) && year_end(tokens, end, true).is_none() {
            end += 1;
            dated = true;
        }
        let year = if tokens.get(end).is_some_and(|t| t.is_mark(",")) { end + 1 } else { end };
        if let Some(year_end) = year_end(tokens, year, true) {
            return Some(Span { kind: SpanKind::Date, first: at, end: year_end });
        }
        // "May" alone may be a verb; "in May" is a month.
        let led = at
            .checked_sub(1)
            .is_some_and(|place| matches!(word(tokens, place), "in" | "since" | "until" | "early" | "late"));
        return (dated || led).then_some(Span { kind: SpanKind::Date, first: at, end });
    }
    if token.kind == TokenKind::Ordinal && token.folded.ends_with('s') && token.folded.len() >= 3 {
        return Some(Span { kind: SpanKind::Period, first: at, end: at + 1 });
    }
    if (token.kind == TokenKind::Ordinal || token.folded.ends_with("th") || token.folded.ends_with("first"))
        && matches!(word(tokens, at + 1), "century" | "centuries" | "millennium")
    {
        let end = if is_era(word(tokens, at + 2)) { at + 3 } else { at + 2 };
        return Some(Span { kind: SpanKind::Period, first: at, end });
    }
    let end = year_end(tokens, at, false)?;
    Some(Span { kind: SpanKind::Year, first: at, end })
}

fn is_number(tokens: &[Token<'_>], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| {
        token.kind == TokenKind::Number
            || token.kind == TokenKind::Word
                && !matches!(token.folded.as_str(), "half" | "twice" | "once" | "thrice" | "one")
                && Lexicon::shared().is_number(&token.folded)
    })
}

fn numbers(tokens: &[Token<'_>], dated: usize, list: &mut Vec<Span>) {
    let mut at = 0;
    let mut next_date = 0;
    while at < tokens.len() {
        // Both lists run in order, so one look ahead is enough.
        while next_date < dated && list.get(next_date).is_some_and(|span| span.end <= at) {
            next_date += 1;
        }
        if let Some(date) = list.get(next_date).filter(|span| next_date < dated && span.first == at) {
            at = date.end;
            continue;
        }
        let lone_one = word(tokens, at) == "one"
            && tokens.get(at + 1).is_some_and(|t| {
                Lexicon::shared().is_number(&t.folded)
                    || matches!(t.folded.as_str(), "to" | "or") && is_number(tokens, at + 2)
                    || !Lexicon::shared().unit(&t.folded).is_empty()
            });
        if !is_number(tokens, at) && !lone_one {
            at += 1;
            continue;
        }
        let first =
            if at > 0 && matches!(word(tokens, at - 1), "$" | "€" | "£" | "¥") { at - 1 } else { at };
        let mut end = at + 1;
        loop {
            let more = number_goes_on(tokens, end);
            if more == 0 {
                break;
            }
            end += more;
        }
        let money = first < at;
        let mut unit_at = end;
        if tokens.get(unit_at).is_some_and(|t| t.is_mark("-")) {
            unit_at += 1;
        }
        let (dimension, unit_end) = unit(tokens, unit_at);
        let unit_end = unit_end.min(tokens.len());
        let span = if money {
            Span { kind: SpanKind::Quantity(Dimension::Money), first, end }
        } else if let Some(dimension) = dimension {
            Span { kind: SpanKind::Quantity(dimension), first, end: unit_end }
        } else {
            Span { kind: SpanKind::Number, first, end }
        };
        if dimension.is_some() && !money {
            // The bare number counts as well: "three hours" answers "how many hours".
            list.push(Span { kind: SpanKind::Number, first, end });
        }
        list.push(span);
        at = span.end.max(end);
    }
}

/// How many tokens from `end` on still belong to the number that stands before.
fn number_goes_on(tokens: &[Token<'_>], end: usize) -> usize {
    if is_number(tokens, end) {
        return 1;
    }
    let Some(token) = tokens.get(end) else { return 0 };
    let range = token.is_mark("-") || token.is_mark("–");
    let after_range = range && (is_number(tokens, end + 1) || word(tokens, end + 1) == "one");
    let before = end.checked_sub(1).map_or("", |at| word(tokens, at));
    let joined = match token.folded.as_str() {
        "and" => matches!(before, "hundred" | "thousand"),
        "or" | "to" => true,
        _ => false,
    };
    if after_range || joined && is_number(tokens, end + 1) { 2 } else { 0 }
}

/// The unit that starts here and where it ends.
fn unit(tokens: &[Token<'_>], at: usize) -> (Option<Dimension>, usize) {
    let lexicon = Lexicon::shared();
    let Some(token) = tokens.get(at) else { return (None, at) };
    if token.is_mark("%") {
        return (Some(Dimension::Percent), at + 1);
    }
    if token.is_mark("°") {
        let scale = matches!(word(tokens, at + 1), "c" | "f" | "k");
        return (Some(Dimension::Temperature), if scale { at + 2 } else { at + 1 });
    }
    let next = word(tokens, at + 1);
    match token.folded.as_str() {
        "square" | "sq" => {
            let more = !lexicon.unit(next).is_empty();
            return (Some(Dimension::Area), if more { at + 2 } else { at + 1 });
        }
        "cubic" => return (Some(Dimension::Volume), at + 2),
        "per" if next == "cent" => return (Some(Dimension::Percent), at + 2),
        "degrees" if matches!(next, "celsius" | "fahrenheit") => {
            return (Some(Dimension::Temperature), at + 2);
        }
        "light" if tokens.get(at + 1).is_some_and(|t| t.is_mark("-")) => {
            return (Some(Dimension::Length), at + 3);
        }
        _ => {}
    }
    // Single letters are units only right after a number, and `a`, `in` are words.
    let Some(dimension) = lexicon.unit(&token.folded).first().copied() else { return (None, at) };
    if matches!(token.folded.as_str(), "second" | "mark" | "stone" | "per") {
        return (None, at);
    }
    if tokens.get(at + 1).is_some_and(|t| t.is_mark("/"))
        || next == "per"
        || (next == "an" && word(tokens, at + 2) == "hour")
    {
        return (Some(Dimension::Speed), (at + 3).min(tokens.len()));
    }
    (Some(dimension), at + 1)
}

/// Words that join the parts of a name.
const CONNECTORS: &[&str] = &[
    "of", "the", "de", "van", "von", "der", "den", "la", "le", "du", "di", "da", "del", "della", "dos",
    "bin", "ibn", "al", "el", "for", "zu", "y", "e", "ben",
];

fn starts_name(tokens: &[Token<'_>], at: usize) -> bool {
    let lexicon = Lexicon::shared();
    tokens.get(at).is_some_and(|token| {
        token.is_capitalised()
            && !is_month(tokens, at)
            && (!lexicon.is_stopword(&token.folded)
                || (token.text.len() >= 2 && token.text.chars().all(char::is_uppercase)))
    })
}

fn names(tokens: &[Token<'_>], list: &mut Vec<Span>) {
    let mut at = 0;
    while at < tokens.len() {
        if !starts_name(tokens, at) {
            at += 1;
            continue;
        }
        let first = at;
        let mut end = at + 1;
        loop {
            let more = name_goes_on(tokens, end);
            end += more;
            // A number ends a name: "Apollo 11".
            if more == 0 || end.checked_sub(1).is_some_and(|last| whole(tokens.get(last)).is_some()) {
                break;
            }
        }
        list.push(Span { kind: SpanKind::Name, first, end });
        at = end;
    }
}

/// How many tokens from `end` on still belong to the name that stands before.
fn name_goes_on(tokens: &[Token<'_>], end: usize) -> usize {
    let Some(token) = tokens.get(end) else { return 0 };
    if starts_name(tokens, end) {
        return 1;
    }
    let before = end.checked_sub(1).and_then(|at| tokens.get(at));
    let glued = before.is_some_and(|before| before.end == token.start);
    let hyphen = token.is_mark("-")
        && glued
        && tokens.get(end + 1).is_some_and(|next| next.start == token.end && next.kind == TokenKind::Word);
    let initial =
        token.is_mark(".") && glued && before.is_some_and(|before| before.text.chars().count() <= 2);
    let connector = CONNECTORS.contains(&token.folded.as_str());
    let possessive = token.folded == "s" && glued_possessive(tokens, end);
    if hyphen || (initial || connector || possessive) && starts_name(tokens, end + 1) {
        return 2;
    }
    if connector && CONNECTORS.contains(&word(tokens, end + 1)) && starts_name(tokens, end + 2) {
        return 3;
    }
    let counts = tokens.get(end + 1).is_some_and(|next| {
        next.is_mark("%") || is_month(tokens, end + 1) || !Lexicon::shared().unit(&next.folded).is_empty()
    });
    usize::from(whole(Some(token)).is_some_and(|number| number < 1000) && !counts)
}

pub(super) fn glued_possessive(tokens: &[Token<'_>], at: usize) -> bool {
    at > 0 && tokens.get(at).zip(tokens.get(at - 1)).is_some_and(|(mark, before)| mark.start > before.end)
}

fn quoted(tokens: &[Token<'_>], list: &mut Vec<Span>) {
    let mut open: Option<usize> = None;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "“" | "«" => open = Some(at),
            "\"" | "”" | "»" => match open.take() {
                Some(first) if at > first + 1 && at - first <= 16 => {
                    list.push(Span { kind: SpanKind::Quoted, first: first + 1, end: at });
                }
                Some(_) => {}
                None if token.text == "\"" => open = Some(at),
                None => {}
            },
            _ => {}
        }
    }
}

/// Whether a noun phrase cannot go on over this token.
pub(super) fn ends_phrase(tokens: &[Token<'_>], at: usize, first: usize) -> bool {
    let Some(token) = tokens.get(at) else { return true };
    let lexicon = Lexicon::shared();
    if token.kind == TokenKind::Mark {
        return !(token.is_mark("-")
            && at > first
            && tokens.get(at - 1).is_some_and(|before| before.end == token.start));
    }
    if token.folded == "s" && at > first {
        return !glued_possessive(tokens, at);
    }
    if lexicon.is_stopword(&token.folded) && !token.text.chars().all(char::is_uppercase) {
        return true;
    }
    if token.is_capitalised() {
        return false;
    }
    if lexicon.is_verb(&token.folded) {
        return true;
    }
    // Past forms close a phrase that has begun: "the engine powered by …".
    at > first && token.folded.ends_with("ed") && token.folded.len() > 4
}

fn phrases(tokens: &[Token<'_>], list: &mut Vec<Span>) {
    let mut at = 0;
    while at < tokens.len() {
        if ends_phrase(tokens, at, at) {
            at += 1;
            continue;
        }
        let first = at;
        while at < tokens.len() && !ends_phrase(tokens, at, first) {
            at += 1;
        }
        list.push(Span { kind: SpanKind::Phrase, first, end: at });
        // One "of" may join two phrases: "part of the mantle".
        if word(tokens, at) == "of" {
            let mut next = at + 1;
            while matches!(word(tokens, next), "the" | "a" | "an" | "its" | "their" | "his" | "her") {
                next += 1;
            }
            let mut end = next;
            while end < tokens.len() && !ends_phrase(tokens, end, next) {
                end += 1;
            }
            if end > next {
                list.push(Span { kind: SpanKind::Phrase, first, end });
            }
        }
    }
}
