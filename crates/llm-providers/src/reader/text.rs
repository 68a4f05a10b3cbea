//! Words: how text is cut into tokens, folded and stemmed.
//!
//! Decides what counts as a word, a number or a mark, and which spellings count as the same word. What a word
//! means (function word, unit, name of a people) is left to `lexicon`, sentences to `sentences`.

use super::lexicon::irregular;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Letters, with inner apostrophes.
    Word,
    /// Digits, with inner commas and points.
    Number,
    /// Digits with a letter ending: `19th`, `1990s`.
    Ordinal,
    /// A single other character.
    Mark,
}

/// One token of a sentence.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    /// As written.
    pub(super) text: &'a str,
    /// Lower case, without accents.
    pub(super) folded: String,
    /// The stem by which words are compared.
    pub(super) stem: String,
    /// First byte in the text.
    pub(super) start: usize,
    /// One past the last byte.
    pub(super) end: usize,
    /// What it is.
    pub(super) kind: TokenKind,
}

impl Token<'_> {
    /// Whether it is a word that starts with an upper-case letter.
    pub(super) fn is_capitalised(&self) -> bool {
        self.kind == TokenKind::Word && self.text.chars().next().is_some_and(char::is_uppercase)
    }

    /// Whether it is this mark.
    pub(super) fn is_mark(&self, mark: &str) -> bool {
        self.kind == TokenKind::Mark && self.text == mark
    }
}

/// Calls `visit` with every token's kind, text and place. Linear, without allocation.
pub(super) fn scan<'a>(text: &'a str, mut visit: impl FnMut(TokenKind, &'a str, usize)) {
    let mut rest = text.char_indices().peekable();
    while let Some((start, first)) = rest.next() {
        if first.is_whitespace() || is_joiner(first) {
            continue;
        }
        let mut end = start + first.len_utf8();
        let mut kind = if first.is_numeric() && first.is_ascii_digit() {
            TokenKind::Number
        } else if first.is_alphanumeric() {
            TokenKind::Word
        } else {
            TokenKind::Mark
        };
        // A mark is one character; an apostrophe before `s` is the possessive.
        if kind == TokenKind::Mark {
            if matches!(first, '\'' | '’') {
                let tail = text.get(end..).unwrap_or_default();
                let mut letters = tail.chars();
                let short = letters.next().is_some_and(|c| matches!(c, 's' | 'S'))
                    && !letters.next().is_some_and(char::is_alphanumeric);
                if short {
                    rest.next();
                    visit(TokenKind::Word, text.get(end..end + 1).unwrap_or_default(), end);
                    continue;
                }
            }
            visit(kind, text.get(start..end).unwrap_or_default(), start);
            continue;
        }
        let mut in_ending = false;
        while let Some(&(at, next)) = rest.peek() {
            let tail = text.get(at + next.len_utf8()..).unwrap_or_default();
            let after = tail.chars().next();
            let goes_on = match kind {
                TokenKind::Number if next.is_ascii_digit() => true,
                TokenKind::Number if matches!(next, ',' | '.') => {
                    let digits = tail.chars().take_while(char::is_ascii_digit).take(4).count();
                    if next == ',' { digits == 3 } else { digits > 0 }
                }
                TokenKind::Number if next.is_alphabetic() && !in_ending => {
                    let ending: String = tail.chars().take_while(|c| c.is_alphabetic()).take(3).collect();
                    let whole = format!("{next}{ending}").to_lowercase();
                    let is_ending = matches!(whole.as_str(), "st" | "nd" | "rd" | "th" | "s");
                    if is_ending {
                        kind = TokenKind::Ordinal;
                        in_ending = true;
                    }
                    is_ending
                }
                TokenKind::Ordinal => next.is_alphabetic(),
                TokenKind::Word if matches!(next, '\'' | '’') => {
                    // O'Brien goes on; the possessive `'s` does not.
                    let possessive = after.is_some_and(|c| matches!(c, 's' | 'S'))
                        && !tail.chars().nth(1).is_some_and(char::is_alphanumeric);
                    after.is_some_and(char::is_alphabetic) && !possessive
                }
                TokenKind::Word => next.is_alphanumeric() || is_joiner(next),
                _ => false,
            };
            if !goes_on {
                break;
            }
            end = at + next.len_utf8();
            rest.next();
        }
        visit(kind, text.get(start..end).unwrap_or_default(), start);
    }
}

/// Combining marks and invisible joiners belong to the letter before them.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{ad}' | '\u{feff}')
}

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut list = Vec::new();
    scan(text, |kind, word, start| {
        let mut folded = String::with_capacity(word.len());
        fold_into(word, &mut folded);
        let mut stem = folded.clone();
        if kind == TokenKind::Word {
            stem_in_place(&mut stem);
        } else if kind == TokenKind::Number {
            stem.retain(|c| c != ',');
        }
        list.push(Token { text: word, folded, stem, start, end: start + word.len(), kind });
    });
    list
}

/// The stem of one word, as used for comparing.
pub(super) fn stem_of(word: &str) -> String {
    let mut stem = String::new();
    fold_into(word, &mut stem);
    stem_in_place(&mut stem);
    stem
}

/// Appends the word in lower case without accents.
pub(super) fn fold_into(word: &str, folded: &mut String) {
    if word.is_ascii() {
        folded.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
        return;
    }
    for c in word.chars().flat_map(char::to_lowercase) {
        match unaccented(c) {
            Some(plain) => folded.push_str(plain),
            None if is_joiner(c) => {}
            None => folded.push(c),
        }
    }
}

/// Lower-case Latin letters with accents and what they are compared as.
fn unaccented(c: char) -> Option<&'static str> {
    const TABLE: &[(&str, &str)] = &[
        ("àáâãäåāăąǎ", "a"),
        ("çćĉċč", "c"),
        ("ďđð", "d"),
        ("èéêëēĕėęě", "e"),
        ("ĝğġģ", "g"),
        ("ĥħḥ", "h"),
        ("ìíîïĩīĭįı", "i"),
        ("ĵ", "j"),
        ("ķ", "k"),
        ("ĺļľŀł", "l"),
        ("ñńņňŉ", "n"),
        ("òóôõöøōŏőǫ", "o"),
        ("ŕŗř", "r"),
        ("śŝşšșṣ", "s"),
        ("ţťŧțṭ", "t"),
        ("ùúûüũūŭůűų", "u"),
        ("ŵ", "w"),
        ("ýÿŷ", "y"),
        ("źżžẓ", "z"),
        ("æ", "ae"),
        ("œ", "oe"),
        ("ß", "ss"),
        ("þ", "th"),
        ("’ʻʼ", "'"),
    ];
    if c.is_ascii() {
        return None;
    }
    TABLE.iter().find(|(letters, _)| letters.contains(c)).map(|(_, plain)| *plain)
}

/// Suffixes that are taken off, longest first, with the letters that must remain.
const SUFFIXES: &[(&str, usize)] = &[
    ("isations", 4),
    ("izations", 4),
    ("isation", 4),
    ("ization", 4),
    ("ments", 5),
    ("ment", 5),
    ("ings", 3),
    ("ists", 5),
    ("ness", 4),
    ("ing", 3),
    ("ions", 5),
    ("ors", 5),
    ("ers", 5),
    ("ist", 5),
    ("ship", 5),
    ("est", 4),
    ("ion", 5),
    ("ed", 3),
    ("or", 5),
    ("er", 5),
    ("ly", 4),
];

/// Reduces a folded word to the stem by which it is compared.
///
/// Stronger than a textbook stemmer at agent and action endings, for questions ask for an inventor where the
/// text says that something was invented.
pub(super) fn stem_in_place(word: &mut String) {
    if let Some(base) = irregular(word) {
        word.clear();
        word.push_str(base);
    }
    if word.len() <= 3 || !word.is_ascii() {
        if word.len() > 4 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
        return;
    }
    plural_off(word);
    for (suffix, least) in SUFFIXES {
        let Some(rest) = word.strip_suffix(suffix) else { continue };
        if rest.len() < *least || !rest.bytes().any(|byte| b"aeiouy".contains(&byte)) {
            continue;
        }
        let length = rest.len();
        word.truncate(length);
        undouble(word);
        break;
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
    if word.len() > 5 && word.ends_with('y') {
        word.pop();
    } else if word.ends_with('y') && word.len() > 2 {
        word.pop();
        word.push('i');
    }
}

fn plural_off(word: &mut String) {
    if word.ends_with("ies") && word.len() > 4 {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if ["sses", "ches", "shes", "xes", "zes"].iter().any(|ending| word.ends_with(ending)) {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) {
        word.pop();
    }
}

fn undouble(word: &mut String) {
    let bytes = word.as_bytes();
    if let [.., before, last] = bytes
        && before == last
        && !b"lsz".contains(last)
    {
        word.pop();
    }
}
