//! What a query asks for, and the engine's query for it.
//!
//! Decides which words of a query count and how a passage is scored. There is no query syntax that
//! could fail: quotation marks ask for a phrase, everything else is words.

use tantivy::Term;
use tantivy::query::{BooleanQuery, BoostQuery, DisjunctionMaxQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::tokenizer::TextAnalyzer;

use super::analysis::{is_stop_word, is_unspaced, symbol_analyzer, text_analyzer};
use super::schema::Fields;

/// What a word with symbols weighs as it stands: it is rare, and meant.
const SYMBOL_WEIGHT: f32 = 2.0;

/// Characters of a query that are read.
const QUERY_LIMIT: usize = 4000;
/// Different words that are searched for.
const WORD_LIMIT: usize = 48;

/// What a word weighs in a title, against the text. A title is short, which counts for it already.
const TITLE_WEIGHT: f32 = 1.0;
/// What of the smaller scores of a word counts beside the largest.
const TIE_BREAKER: f32 = 0.3;
/// What two words next to each other weigh, against the same words apart.
const PAIR_WEIGHT: f32 = 0.2;

/// A query, taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ParsedQuery {
    /// What is looked for, in the order of the query, each once.
    pub(super) words: Vec<Word>,
    /// Quoted phrases: all of them must be in a passage.
    pub(super) phrases: Vec<Phrase>,
    /// Terms that follow each other without quotes.
    pairs: Vec<Phrase>,
}

/// Terms with their places.
pub(super) type Phrase = Vec<(usize, String)>;

/// One thing to look for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// A term of prose.
    Text(String),
    /// A term with symbols in it, and the terms of prose that it would be without them.
    Symbols(String, Vec<String>),
    /// Two characters of an unspaced script next to each other.
    Characters(String, String),
}

/// A term of prose, where it stands.
#[derive(Debug, Clone)]
struct Token {
    term: String,
    position: usize,
    start: usize,
    end: usize,
    is_stop: bool,
    is_unspaced: bool,
}

impl ParsedQuery {
    /// Takes a query apart. Nothing to look for is left where there is no word in it.
    pub(super) fn new(query: &str) -> Self {
        let end = query.char_indices().nth(QUERY_LIMIT).map_or(query.len(), |(at, _)| at);
        let query = &query[..end];
        let tokens = tokens(query);
        let symbols = symbol_words(query);
        let mut parsed = Self::default();
        for (start, end) in quoted(query) {
            let inside = tokens.iter().filter(|token| token.start >= start && token.end <= end);
            let phrase: Phrase = inside.map(|token| (token.position, token.term.clone())).collect();
            if !phrase.is_empty() && phrase.len() <= WORD_LIMIT && parsed.phrases.len() < 8 {
                parsed.phrases.push(phrase);
            }
        }
        // Where every word is a stop word, they are what is asked for.
        let all_stop = tokens.iter().all(|token| token.is_stop);
        let mut previous: Option<&Token> = None;
        let mut tokens = tokens.iter().filter(|token| all_stop || !token.is_stop).peekable();
        while let Some(token) = tokens.next() {
            if parsed.words.len() >= WORD_LIMIT {
                break;
            }
            if let Some((start, end, symbol)) =
                symbols.iter().find(|(start, end, _)| (*start..*end).contains(&token.start))
            {
                if *start == token.start || previous.is_none_or(|previous| previous.start < *start) {
                    let mut plain = vec![token.term.clone()];
                    while let Some(next) = tokens.next_if(|next| next.start < *end) {
                        plain.push(next.term.clone());
                    }
                    parsed.add(Word::Symbols(symbol.clone(), plain));
                }
                previous = Some(token);
                continue;
            }
            let follows = previous.is_some_and(|previous| previous.position + 1 == token.position);
            match previous.filter(|_| follows) {
                Some(before) if before.is_unspaced && token.is_unspaced => {
                    parsed.add(Word::Characters(before.term.clone(), token.term.clone()));
                }
                Some(before) if !before.is_unspaced && !token.is_unspaced => {
                    parsed.pairs.push(vec![(0, before.term.clone()), (1, token.term.clone())]);
                }
                _ => {}
            }
            // A character alone is looked for only where it stands alone.
            let joined = token.is_unspaced
                && (follows && previous.is_some_and(|before| before.is_unspaced)
                    || tokens
                        .peek()
                        .is_some_and(|next| next.is_unspaced && next.position == token.position + 1));
            if !joined {
                parsed.add(Word::Text(token.term.clone()));
            }
            previous = Some(token);
        }
        parsed
    }

    fn add(&mut self, word: Word) {
        if !self.words.contains(&word) {
            self.words.push(word);
        }
    }

    /// The terms by which a text can be seen to answer, for snippets.
    pub(super) fn terms(&self) -> Vec<String> {
        let mut terms: Vec<String> = Vec::new();
        for word in &self.words {
            match word {
                Word::Text(term) => terms.push(term.clone()),
                Word::Symbols(symbol, plain) => {
                    terms.push(symbol.clone());
                    terms.extend(plain.iter().filter(|term| term.chars().nth(1).is_some()).cloned());
                }
                Word::Characters(first, second) => terms.extend([first.clone(), second.clone()]),
            }
        }
        terms.extend(self.phrases.iter().flatten().map(|(_, term)| term.clone()));
        terms.sort_unstable();
        terms.dedup();
        terms
    }

    /// The engine's query; none where there is nothing to look for. With `phrases_required` a
    /// passage must hold every quoted phrase, without they weigh like pairs of words.
    pub(super) fn engine_query(&self, fields: Fields, phrases_required: bool) -> Option<Box<dyn Query>> {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for word in &self.words {
            clauses.push((Occur::Should, word_query(fields, word)));
        }
        for pair in &self.pairs {
            clauses.push((Occur::Should, boosted(phrase_query(fields.body, pair), PAIR_WEIGHT)));
        }
        let occur = if phrases_required { Occur::Must } else { Occur::Should };
        for phrase in &self.phrases {
            let either = [fields.body, fields.title].map(|field| phrase_query(field, phrase));
            clauses
                .push((occur, Box::new(DisjunctionMaxQuery::with_tie_breaker(either.into(), TIE_BREAKER))));
        }
        (!clauses.is_empty()).then(|| Box::new(BooleanQuery::new(clauses)) as Box<dyn Query>)
    }
}

fn word_query(fields: Fields, word: &Word) -> Box<dyn Query> {
    let prose = |term: &str, weight: f32| {
        [
            boosted(term_query(fields.body, term), weight),
            boosted(term_query(fields.title, term), weight * TITLE_WEIGHT),
        ]
    };
    let mut either: Vec<Box<dyn Query>> = Vec::new();
    match word {
        Word::Text(term) => either.extend(prose(term, 1.0)),
        Word::Symbols(symbol, plain) => {
            either.push(boosted(term_query(fields.symbols, symbol), SYMBOL_WEIGHT));
            // Without its symbols a word of one letter is another word; longer ones nearly the same.
            match plain.as_slice() {
                [letter] if letter.chars().nth(1).is_none() => either.extend(prose(letter, 0.1)),
                [term] => either.extend(prose(term, 0.8)),
                several => {
                    let places: Phrase = several.iter().cloned().enumerate().collect();
                    either.push(boosted(phrase_query(fields.body, &places), 0.5));
                    either.push(boosted(phrase_query(fields.title, &places), 0.5));
                }
            }
        }
        Word::Characters(first, second) => {
            let places = vec![(0, first.clone()), (1, second.clone())];
            either.push(phrase_query(fields.body, &places));
            either.push(boosted(phrase_query(fields.title, &places), TITLE_WEIGHT));
        }
    }
    Box::new(DisjunctionMaxQuery::with_tie_breaker(either, TIE_BREAKER))
}

fn boosted(query: Box<dyn Query>, weight: f32) -> Box<dyn Query> {
    Box::new(BoostQuery::new(query, weight))
}

fn term_query(field: Field, term: &str) -> Box<dyn Query> {
    Box::new(TermQuery::new(Term::from_field_text(field, term), IndexRecordOption::WithFreqs))
}

fn phrase_query(field: Field, phrase: &[(usize, String)]) -> Box<dyn Query> {
    match phrase {
        [(_, only)] => term_query(field, only),
        several => {
            let terms = several.iter().map(|(place, term)| (*place, Term::from_field_text(field, term)));
            Box::new(PhraseQuery::new_with_offset(terms.collect()))
        }
    }
}

fn tokens(query: &str) -> Vec<Token> {
    let shouted = !query.chars().any(char::is_lowercase);
    let mut analyzer = text_analyzer();
    let mut tokens = Vec::new();
    let mut stream = analyzer.token_stream(query);
    while stream.advance() {
        let token = stream.token();
        let original = &query[token.offset_from..token.offset_to];
        let is_acronym = !shouted && original.len() > 1 && original.chars().all(char::is_uppercase);
        tokens.push(Token {
            term: token.text.clone(),
            position: token.position,
            start: token.offset_from,
            end: token.offset_to,
            is_stop: !is_acronym && is_stop_word(&original.to_lowercase()),
            is_unspaced: original.chars().next().is_some_and(is_unspaced),
        });
    }
    tokens
}

/// Words with symbols in them: start, end and term of each.
fn symbol_words(query: &str) -> Vec<(usize, usize, String)> {
    let mut analyzer: TextAnalyzer = symbol_analyzer();
    let mut words = Vec::new();
    let mut stream = analyzer.token_stream(query);
    while stream.advance() {
        let token = stream.token();
        words.push((token.offset_from, token.offset_to, token.text.clone()));
    }
    words
}

/// The byte ranges between pairs of quotation marks.
fn quoted(query: &str) -> Vec<(usize, usize)> {
    const PAIRS: &[(char, &[char])] =
        &[('"', &['"']), ('“', &['”', '“']), ('„', &['“', '”']), ('«', &['»']), ('「', &['」'])];
    let mut ranges = Vec::new();
    let mut open: Option<(usize, &[char])> = None;
    for (at, character) in query.char_indices() {
        match open {
            Some((start, closing)) if closing.contains(&character) => {
                ranges.push((start, at));
                open = None;
            }
            Some(_) => {}
            None => {
                let pair = PAIRS.iter().find(|(opening, _)| *opening == character);
                open = pair.map(|(_, closing)| (at + character.len_utf8(), *closing));
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(term: &str) -> Word {
        Word::Text(term.to_owned())
    }

    fn symbols(symbol: &str, plain: &[&str]) -> Word {
        Word::Symbols(symbol.to_owned(), plain.iter().map(|term| (*term).to_owned()).collect())
    }

    fn characters(first: &str, second: &str) -> Word {
        Word::Characters(first.to_owned(), second.to_owned())
    }

    #[test]
    fn words() {
        for (query, expected) in [
            ("What is the capital of France?", vec![text("capit"), text("franc")]),
            ("the who", vec![text("the"), text("who")]),
            ("Is WHO in Geneva", vec![text("who"), text("geneva")]),
            ("WHO IS THE KING", vec![text("king")]),
            ("C++ templates", vec![symbols("c++", &["c"]), text("templat")]),
            ("what is .NET", vec![symbols(".net", &["net"])]),
            ("Node.js streams", vec![symbols("node.js", &["node", "js"]), text("stream")]),
            ("北京大学", vec![characters("北", "京"), characters("京", "大"), characters("大", "学")]),
            ("水 temperature", vec![text("水"), text("temperatur")]),
            ("Gödel Godel", vec![text("godel")]),
            ("+-!(){}[]^~*?:\\/ && ||", vec![]),
            ("", vec![]),
            ("\u{0}\u{1F600}", vec![]),
        ] {
            assert_eq!(ParsedQuery::new(query).words, expected, "{query}");
        }
    }

    #[test]
    fn phrases() {
        for (query, expected) in [
            ("\"to be or not\"", vec![vec!["to", "be", "or", "not"]]),
            ("\"half open", vec![]),
            ("a \"b c\" d \"e\"", vec![vec!["b", "c"], vec!["e"]]),
            ("“curly quotes” «guillemets»", vec![vec!["cur", "quot"], vec!["guillemet"]]),
            ("\"\" \"!\"", vec![]),
        ] {
            let phrases = ParsedQuery::new(query).phrases;
            let terms: Vec<Vec<&str>> =
                phrases.iter().map(|phrase| phrase.iter().map(|(_, term)| term.as_str()).collect()).collect();
            if query.contains("curly") {
                assert_eq!(terms.len(), 2);
            } else {
                assert_eq!(terms, expected, "{query}");
            }
        }
    }

    #[test]
    fn long_queries_are_bounded() {
        let query: String = (0..50_000).map(|number| format!("word{number} ")).collect();
        let parsed = ParsedQuery::new(&query);
        assert_eq!(parsed.words.len(), WORD_LIMIT);
        let quoted = format!("\"{query}\"");
        assert!(ParsedQuery::new(&quoted).phrases.is_empty());
    }
}
