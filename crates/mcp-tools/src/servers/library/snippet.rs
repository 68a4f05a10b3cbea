//! The part of a passage that answers a query, as a short plain text.
//!
//! Decides which sentences are shown. What a word weighs is the caller's to say.

use std::collections::HashMap;
use std::ops::Range;

use tantivy::tokenizer::TextAnalyzer;

use super::analysis::{next_word, symbol_analyzer, text_analyzer};
use super::plain::plain_text;

/// Characters of a snippet at most, the marks of omission included.
const LIMIT: usize = 400;
/// Characters that are shown before the first found word of a sentence too long to show whole.
const LEAD: usize = 80;

/// A word of the text that the query asks for.
struct Found {
    offset: usize,
    end: usize,
    term: usize,
}

/// Cuts snippets for one query.
pub(super) struct Snippets {
    /// Term of the index to its number.
    numbers: HashMap<String, usize>,
    weights: Vec<f32>,
    /// ASCII characters that a term begins with. A word and its term begin alike, and most words of a text need not
    /// be looked at closer.
    beginnings: [bool; 128],
    /// The terms of words that were looked at, by the words as they stand.
    known: HashMap<String, Option<usize>>,
    text: TextAnalyzer,
    /// Only where a term has symbols in it.
    symbols: Option<TextAnalyzer>,
}

impl Snippets {
    /// For these terms of the index, each with its weight.
    pub(super) fn new(terms: &[(String, f32)]) -> Self {
        let numbers = terms.iter().enumerate().map(|(number, (term, _))| (term.clone(), number)).collect();
        let weights = terms.iter().map(|(_, weight)| *weight).collect();
        let mut beginnings = [false; 128];
        for first in terms.iter().filter_map(|(term, _)| term.bytes().next()) {
            if let Some(begins) = beginnings.get_mut(usize::from(first)) {
                *begins = true;
            }
        }
        let has_symbols = terms.iter().any(|(term, _)| term.contains(['+', '#', '.']));
        let symbols = has_symbols.then(symbol_analyzer);
        Self { numbers, weights, beginnings, known: HashMap::new(), text: text_analyzer(), symbols }
    }

    /// The sentences of a Markdown text that hold the most of the query, as they follow each other.
    pub(super) fn of(&mut self, markdown: &str) -> String {
        let plain = plain_text(markdown);
        if plain.chars().count() <= LIMIT {
            return one_line(&plain);
        }
        let found = self.found(&plain);
        let sentences = sentences(&plain);
        let mut best: Option<(f32, Range<usize>)> = None;
        for start in starts(&plain, &sentences, &found) {
            let range = window(&plain, &sentences, start);
            let score = self.score(&found, &range);
            // Earlier wins where nothing is gained: the first sentence says what a text is about.
            if best.as_ref().is_none_or(|(most, _)| score > most + 1e-4) {
                best = Some((score, range));
            }
        }
        let range = best.map_or(0..0, |(_, range)| range);
        let mut snippet = String::new();
        if range.start > 0 && !sentences.iter().any(|sentence| sentence.start == range.start) {
            snippet.push('…');
        }
        snippet.push_str(&one_line(&plain[range.clone()]));
        if range.end < plain.len() && !sentences.iter().any(|sentence| sentence.end == range.end) {
            snippet.push('…');
        }
        snippet
    }

    /// How much of the query some texts hold together, by weight: 0 to 1.
    pub(super) fn coverage(&mut self, texts: &[&str]) -> f32 {
        let mut seen = vec![false; self.weights.len()];
        for text in texts {
            for word in self.found(text) {
                seen[word.term] = true;
            }
        }
        let total: f32 = self.weights.iter().sum();
        let held: f32 =
            self.weights.iter().zip(seen).filter(|(_, seen)| *seen).map(|(weight, _)| weight).sum();
        if total > 0.0 { held / total } else { 1.0 }
    }

    fn found(&mut self, plain: &str) -> Vec<Found> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some((offset, end)) = next_word(plain, at) {
            at = end;
            if let Some(term) = self.term_of(&plain[offset..end]) {
                found.push(Found { offset, end, term });
            }
        }
        if let Some(symbols) = &mut self.symbols {
            let mut stream = symbols.token_stream(plain);
            while stream.advance() {
                let token = stream.token();
                if let Some(term) = self.numbers.get(&token.text) {
                    found.push(Found { offset: token.offset_from, end: token.offset_to, term: *term });
                }
            }
            found.sort_by_key(|word| word.offset);
        }
        found
    }

    /// The number of a word's term, where it is one of the query's.
    fn term_of(&mut self, word: &str) -> Option<usize> {
        let first = word.bytes().next()?.to_ascii_lowercase();
        if self.beginnings.get(usize::from(first)) == Some(&false) {
            return None;
        }
        if let Some(known) = self.known.get(word) {
            return *known;
        }
        let mut stream = self.text.token_stream(word);
        let term = if stream.advance() { self.numbers.get(&stream.token().text).copied() } else { None };
        drop(stream);
        self.known.insert(word.to_owned(), term);
        term
    }

    /// Every term counts once, and a little more when it comes again.
    fn score(&self, found: &[Found], range: &Range<usize>) -> f32 {
        let mut seen = vec![false; self.weights.len()];
        let mut score = 0.0;
        let first = found.partition_point(|word| word.offset < range.start);
        for word in found[first..].iter().take_while(|word| word.end <= range.end) {
            let weight = self.weights[word.term];
            score += if seen[word.term] { weight * 0.02 } else { weight };
            seen[word.term] = true;
        }
        score
    }
}

/// Where a snippet may start: at a sentence, and in long sentences shortly before a found word.
fn starts(plain: &str, sentences: &[Range<usize>], found: &[Found]) -> Vec<usize> {
    let mut starts = Vec::new();
    for sentence in sentences {
        starts.push(sentence.start);
        if plain[sentence.clone()].chars().count() <= LIMIT {
            continue;
        }
        let first = found.partition_point(|word| word.offset < sentence.start);
        for word in found[first..].iter().take_while(|word| word.offset < sentence.end) {
            let before = &plain[sentence.start..word.offset];
            let lead = before.char_indices().rev().take(LEAD).last().map_or(0, |(at, _)| at);
            let start = match before[lead..].find(char::is_whitespace) {
                Some(space) if lead > 0 => lead + space,
                _ => lead,
            };
            let start = sentence.start + start;
            let start = start + (plain[start..].len() - plain[start..].trim_start().len());
            if starts.last() != Some(&start) {
                starts.push(start);
            }
        }
    }
    starts
}

/// As many whole sentences from `start` as fit, else as many words.
fn window(plain: &str, sentences: &[Range<usize>], start: usize) -> Range<usize> {
    let room = LIMIT - 2;
    let hard_end = plain[start..].char_indices().nth(room).map_or(plain.len(), |(at, _)| start + at);
    let first = sentences.partition_point(|sentence| sentence.end <= start);
    let last = sentences[first..].iter().take_while(|sentence| sentence.end <= hard_end).last();
    // A window that would be half empty shows a part of the next sentence.
    let whole = last.map(|sentence| sentence.end).filter(|end| (end - start) * 2 >= hard_end - start);
    let words = || {
        let space = plain[start..hard_end].rfind(char::is_whitespace).filter(|at| *at > 0);
        space.map_or(hard_end, |at| start + plain[start..start + at].trim_end().len())
    };
    let end = if hard_end == plain.len() { hard_end } else { whole.unwrap_or_else(words) };
    start..end
}

/// The sentences of a text, without the space between them.
pub(super) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    let mut push = |start: usize, end: usize| {
        let piece = &text[start..end];
        let lead = piece.len() - piece.trim_start().len();
        if lead < piece.len() {
            sentences.push(start + lead..start + piece.trim_end().len());
        }
    };
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let ends = match character {
            '\n' | '。' | '！' | '？' => true,
            '.' => next.is_some_and(char::is_whitespace) && !is_abbreviation(&text[start..at]),
            '!' | '?' => next.is_some_and(char::is_whitespace),
            _ => false,
        };
        if ends {
            let end = at + character.len_utf8();
            push(start, end);
            start = end;
        }
    }
    push(start, text.len());
    sentences
}

/// Whether the full stop after this text is an initial's or an abbreviation's.
fn is_abbreviation(before: &str) -> bool {
    let word_start = before
        .rfind(|c: char| !c.is_alphanumeric())
        .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
    let word = &before[word_start..];
    let mut characters = word.chars();
    match (characters.next(), characters.next()) {
        (Some(only), None) => only.is_uppercase(),
        _ => matches!(
            word,
            "Dr" | "Mr"
                | "Mrs"
                | "Ms"
                | "St"
                | "Prof"
                | "Jr"
                | "Sr"
                | "vs"
                | "etc"
                | "ca"
                | "approx"
                | "est"
                | "No"
                | "pp"
        ),
    }
}

/// Runs of white space as one space.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn snippet(text: &str, terms: &[&str]) -> String {
        let terms: Vec<_> = terms.iter().map(|term| ((*term).to_owned(), 1.0)).collect();
        let snippet = Snippets::new(&terms).of(text);
        assert!(snippet.chars().count() <= LIMIT, "{snippet}");
        snippet
    }

    #[test]
    fn short_texts_are_shown_whole() {
        assert_eq!(snippet("# A\n\nShort *text*.", &["x"]), "A. Short text.");
        assert_eq!(snippet("", &["x"]), "");
    }

    #[test]
    fn the_sentences_with_the_words_are_shown() {
        let filler = "Nothing of interest stands in this sentence. ".repeat(20);
        let text = format!("{filler}Marie Curie won the prize in 1903. {filler}");
        let shown = snippet(&text, &["mari", "curi", "1903"]);
        assert!(shown.contains("Marie Curie won the prize in 1903."), "{shown}");
        assert!(!shown.contains('…'), "whole sentences need no marks: {shown}");
    }

    #[test]
    fn without_a_found_word_the_beginning_is_shown() {
        let text = format!("First things first. {}", "More words follow here. ".repeat(40));
        assert!(snippet(&text, &["absent"]).starts_with("First things first."));
    }

    #[test]
    fn long_sentences_are_cut_around_the_word() {
        let words = "word ".repeat(300);
        let text = format!("{words}needle {words}");
        let shown = snippet(&text, &["needl"]);
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.contains("needle"), "{shown}");
        assert!(snippet(&"x".repeat(5000), &["y"]).len() > 100);
    }

    #[test]
    fn words_are_found_by_their_terms() {
        for (text, terms, expected) in [
            ("Mills, MILL and milling; a meal", &["mill"][..], &["Mills", "MILL", "milling"][..]),
            ("Dying dyes die", &["die"], &["Dying", "die"]),
            ("Ærø and aero", &["aero"], &["Ærø", "aero"]),
            ("Go\u{308}del, Gödel, godel", &["godel"], &["Go\u{308}del", "Gödel", "godel"]),
            ("北京 and Beijing", &["京", "beij"], &["京", "Beijing"]),
            ("C++ or C", &["c++"], &["C++"]),
            ("C++ or C", &["c++", "c"], &["C++", "C", "C"]),
            ("none of them", &["absent"], &[]),
        ] {
            let terms: Vec<_> = terms.iter().map(|term| ((*term).to_owned(), 1.0)).collect();
            let mut found: Vec<&str> =
                Snippets::new(&terms).found(text).iter().map(|word| &text[word.offset..word.end]).collect();
            let mut expected = expected.to_vec();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn sentences_end_where_they_end() {
        for (text, expected) in [
            ("One. Two! Three? Four", &["One.", "Two!", "Three?", "Four"][..]),
            ("T. E. Lawrence met Dr. No. Then left.", &["T. E. Lawrence met Dr. No.", "Then left."]),
            ("3.14 is pi. v1.2 too.", &["3.14 is pi.", "v1.2 too."]),
            ("一。二！三", &["一。", "二！", "三"]),
            ("line\nline\n\n", &["line", "line"]),
            ("", &[]),
        ] {
            let found: Vec<&str> = sentences(text).into_iter().map(|range| &text[range]).collect();
            if text.contains("No.") {
                // "No." is an abbreviation too: both readings are fine, the words are all there.
                assert_eq!(found.join(" "), text);
            } else {
                assert_eq!(found, expected, "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_short_snippet(text in "\\PC{0,900}", term in "[a-z]{1,3}") {
            snippet(&text, &[&term]);
        }

        #[test]
        fn words_and_breaks(text in "([a-c]{1,4}[ .\n漢|#*_<>`-]{1,3}){0,200}") {
            snippet(&text, &["a", "bc", "漢"]);
        }
    }
}
