//! How text becomes terms, for the index and for queries alike.
//!
//! Two analysers. `text`: lower case, diacritics folded, English stems; scripts that are written
//! without spaces give one term a character, so that any piece of a sentence can be found as a
//! phrase. `symbols`: only words that hold one of `+ # .` (`C++`, `C#`, `.NET`, `3.14`), whole.
//! Stop words stay in the index, so that they can be searched for in phrases and where a query has
//! nothing else; leaving them out is left to the query.

use std::collections::HashSet;
use std::sync::LazyLock;

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, Stemmer, TextAnalyzer, Token, TokenStream,
    Tokenizer, TokenizerManager,
};

/// Name of the analyser of prose.
pub(super) const TEXT: &str = "text";
/// Name of the analyser of words with symbols in them.
pub(super) const SYMBOLS: &str = "symbols";

/// Bytes from which a word is taken for noise (base64, rows of dashes) and not indexed.
const WORD_LIMIT: usize = 80;

/// Both analysers under their names.
pub(super) fn tokenizers() -> TokenizerManager {
    // The engine's own are needed too: `raw` for ids, and `default`, which it asks for even where a
    // field has no text.
    let manager = TokenizerManager::default();
    manager.register(TEXT, text_analyzer());
    manager.register(SYMBOLS, symbol_analyzer());
    manager
}

/// Lower case, folded, stemmed.
pub(super) fn text_analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(Words { next_token: next_word, token: Token::default() })
        .filter(RemoveLongFilter::limit(WORD_LIMIT))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .filter(Stemmer::new(Language::English))
        .build()
}

/// Lower case, folded.
pub(super) fn symbol_analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(Words { next_token: next_symbol_word, token: Token::default() })
        .filter(RemoveLongFilter::limit(WORD_LIMIT))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .build()
}

/// Whether a character stands for itself: scripts that are written without spaces, and Hangul,
/// whose particles are written together with their word.
pub(super) const fn is_unspaced(character: char) -> bool {
    matches!(character as u32,
        0x0E00..=0x0EFF       // Thai, Lao
        | 0x1000..=0x109F     // Myanmar
        | 0x1100..=0x11FF     // Hangul Jamo
        | 0x1780..=0x17FF     // Khmer
        | 0x3005..=0x3007     // iteration mark, closing mark, zero
        | 0x3040..=0x30FF     // Hiragana, Katakana
        | 0x3400..=0x4DBF     // Han, extension A
        | 0x4E00..=0x9FFF     // Han
        | 0xAC00..=0xD7AF     // Hangul syllables
        | 0xF900..=0xFAFF     // Han, compatibility
        | 0x20000..=0x3FFFF   // Han, further extensions
    )
}

/// Whether a character is an accent of its own that belongs to the letter before it.
const fn is_combining(character: char) -> bool {
    matches!(character as u32, 0x0300..=0x036F)
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() && !is_unspaced(character)
}

/// The byte range of the first word at or after `from`.
pub(super) fn next_word(text: &str, from: usize) -> Option<(usize, usize)> {
    let start = position(text, from, char::is_alphanumeric)?;
    let first = text[start..].chars().next()?;
    if is_unspaced(first) {
        return Some((start, start + first.len_utf8()));
    }
    let end = position(text, start, |c| !is_word_character(c) && !is_combining(c));
    Some((start, end.unwrap_or(text.len())))
}

/// The byte range of the first word with a symbol in it at or after `from`.
fn next_symbol_word(text: &str, from: usize) -> Option<(usize, usize)> {
    let is_symbol = |byte: &u8| matches!(byte, b'+' | b'#' | b'.');
    let is_part = |c: char| is_word_character(c) || is_combining(c) || matches!(c, '+' | '#' | '.');
    let mut searched = from;
    loop {
        let symbol = searched + text.as_bytes()[searched..].iter().position(is_symbol)?;
        let start = searched + text[searched..symbol].trim_end_matches(is_part).len();
        let end = position(text, symbol, |c| !is_part(c)).unwrap_or(text.len());
        let run = &text[start..end];
        // A full stop at the end is the sentence's; plus signs and rows of stops before are bullets.
        let trimmed = run.trim_end_matches('.').trim_start_matches('+');
        let trimmed = match trimmed.strip_prefix('.') {
            Some(rest) if rest.starts_with('.') => rest.trim_start_matches('.'),
            _ => trimmed,
        };
        if trimmed.contains(['+', '#', '.']) && trimmed.contains(is_word_character) {
            let offset = trimmed.as_ptr() as usize - text.as_ptr() as usize;
            return Some((offset, offset + trimmed.len()));
        }
        searched = end;
    }
}

/// The byte offset of the first such character at or after `from`. Most characters are ASCII and are
/// not decoded.
fn position(text: &str, from: usize, is_wanted: impl Fn(char) -> bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        let character =
            if byte.is_ascii() { char::from(*byte) } else { text[at..].chars().next().unwrap_or_default() };
        if is_wanted(character) {
            return Some(at);
        }
        at += character.len_utf8();
    }
    None
}

/// The first token at or after a byte offset, as a byte range.
type NextToken = fn(&str, usize) -> Option<(usize, usize)>;

#[derive(Clone)]
struct Words {
    next_token: NextToken,
    token: Token,
}

struct WordStream<'a> {
    text: &'a str,
    position: usize,
    next_token: NextToken,
    token: &'a mut Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.token.reset();
        WordStream { text, position: 0, next_token: self.next_token, token: &mut self.token }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        self.token.text.clear();
        self.token.position = self.token.position.wrapping_add(1);
        let Some((start, end)) = (self.next_token)(self.text, self.position) else {
            return false;
        };
        self.position = end;
        self.token.offset_from = start;
        self.token.offset_to = end;
        let word = &self.text[start..end];
        if word.is_ascii() {
            self.token.text.push_str(word);
        } else {
            self.token.text.extend(word.chars().filter(|c| !is_combining(*c)));
        }
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// Whether a lower-case word carries no content: English function and question words, and what an
/// apostrophe leaves behind.
pub(super) fn is_stop_word(word: &str) -> bool {
    static WORDS: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| STOP_WORDS.split_ascii_whitespace().collect());
    WORDS.contains(word)
}

const STOP_WORDS: &str = "
    a an the this that these those
    i me my we us our you your he him his she her hers it its they them their
    am is are was were be been being do does did doing done have has had having
    can could will would shall should may might must
    and or nor but if then than so as while because
    of at by for with about against between into through during before after to from in on onto
    out off over under up down
    here there when where why how what which who whom whose
    all any both each few more most other some such no not only own same too very just also
    again further once ever
    s t d ll re ve m don doesn didn isn aren wasn weren
    tell please give know find";

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(mut analyzer: TextAnalyzer, text: &str) -> Vec<String> {
        let mut stream = analyzer.token_stream(text);
        let mut terms = Vec::new();
        while stream.advance() {
            let token = stream.token();
            assert!(text.is_char_boundary(token.offset_from) && text.is_char_boundary(token.offset_to));
            terms.push(token.text.clone());
        }
        terms
    }

    #[test]
    fn prose() {
        for (text, expected) in [
            ("Gödel's theorems", &["godel", "s", "theorem"][..]),
            ("Go\u{308}del", &["godel"]),
            ("Straße ÆON", &["strass", "aeon"]),
            ("running runs", &["run", "run"]),
            ("1,234.5 km²", &["1", "234", "5", "km2"]),
            ("北京大学 2024", &["北", "京", "大", "学", "2024"]),
            ("東京タワーへ行く", &["東", "京", "タ", "ワ", "ー", "へ", "行", "く"]),
            ("abc漢def", &["abc", "漢", "def"]),
            ("한국어", &["한", "국", "어"]),
            ("Достоевский", &["достоевскии"]),
            ("", &[]),
            (" \u{0}\u{1F600}+-!", &[]),
        ] {
            let found = terms(text_analyzer(), text);
            if text == "Достоевский" {
                assert_eq!(found.len(), 1, "one word, whatever its folding");
            } else {
                assert_eq!(found, expected, "{text}");
            }
        }
    }

    #[test]
    fn words_with_symbols() {
        for (text, expected) in [
            ("C++ and C#, or .NET.", &["c++", "c#", ".net"][..]),
            ("Node.js v1.2.3; 192.168.0.1", &["node.js", "v1.2.3", "192.168.0.1"]),
            ("The end. And... so on", &[]),
            ("+1 to ...this", &[]),
            ("plain words", &[]),
            ("+ # . ++ ##", &[]),
            ("(C++)", &["c++"]),
            ("in the U.S. today", &["u.s"]),
        ] {
            assert_eq!(terms(symbol_analyzer(), text), expected, "{text}");
        }
    }

    #[test]
    fn noise_gives_no_terms() {
        let noise = "x".repeat(100_000);
        assert!(terms(text_analyzer(), &noise).is_empty());
        let stops = ".".repeat(100_000);
        assert!(terms(symbol_analyzer(), &stops).is_empty());
    }
}
