//! Strings of the repairer: where one ends although its quotes are not escaped, and what it says.
//!
//! A quote ends a string if what follows can follow a string at that place, and does so believably: a
//! comma with a key behind it, a bracket that closes something. All other quotes are part of the text.

use super::repair::{KEY_REACH, Place, Repairer, unclosed_key};

/// Brackets in the text of a string are weighed once it holds a bare quote: code in it is likely.
#[derive(Default)]
struct Weight {
    upto: usize,
    balance: i64,
    bare_quotes: usize,
}

/// A pair of quotes: what opens and what closes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quote {
    open: &'static str,
    close: &'static str,
}

const DOUBLE: Quote = Quote { open: "\"", close: "\"" };
const SINGLE: Quote = Quote { open: "'", close: "'" };
const QUOTES: &[Quote] = &[
    Quote { open: "\"\"\"", close: "\"\"\"" },
    Quote { open: "'''", close: "'''" },
    DOUBLE,
    SINGLE,
    Quote { open: "`", close: "`" },
    Quote { open: "“", close: "”" },
    Quote { open: "‘", close: "’" },
    Quote { open: "\\\"", close: "\\\"" },
];

impl Repairer<'_> {
    /// The quotes that open at `at`.
    #[inline]
    pub(super) fn quote_at(&self, at: usize) -> Option<Quote> {
        let rest = self.bytes.get(at..)?;
        let second = rest.get(1);
        match rest.first()? {
            b'"' if second != Some(&b'"') => return Some(DOUBLE),
            b'\'' if second != Some(&b'\'') => return Some(SINGLE),
            b'"' | b'\'' | b'`' | b'\\' | 0xE2 => {}
            _ => return None,
        }
        QUOTES.iter().copied().find(|quote| rest.starts_with(quote.open.as_bytes()))
    }

    /// Reads the string that this quote opens here, to behind its closing quote.
    pub(super) fn string(&mut self, quote: Quote, place: Place) -> String {
        self.at += quote.open.len();
        let start = self.at;
        let literal = self.is_windows_path(start);
        let closer = quote.close.as_bytes();
        let first = closer.first().copied().unwrap_or(b'"');
        let mut content = String::new();
        let mut weight = Weight { upto: start, ..Weight::default() };
        let mut copied = start;
        let mut at = start;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let Some(found) = memchr::memchr2(first, b'\\', rest) else {
                content.push_str(self.text.get(copied..).unwrap_or_default());
                self.at = self.bytes.len();
                return self.strip_closers(content);
            };
            at += found;
            if self.starts_with(at, closer) {
                if place == Place::Key
                    && let Some(end) = self.lost_key_quote(start, at)
                {
                    self.at = end;
                    return self.text.get(start..end).unwrap_or_default().to_owned();
                }
                if self.ends_string(at, quote, place, &mut weight) {
                    let last = self.text.get(copied..at).unwrap_or_default();
                    self.at = at + closer.len();
                    if content.is_empty() {
                        return last.to_owned();
                    }
                    content.push_str(last);
                    return content;
                }
                if let Some(end) = self.lost_quote(start, at, place, &weight) {
                    content.push_str(self.text.get(copied..end).unwrap_or_default());
                    self.at = end;
                    return content;
                }
                weight.bare_quotes += 1;
                at += closer.len();
            } else if self.byte(at) == Some(b'\\') {
                content.push_str(self.text.get(copied..at).unwrap_or_default());
                if self.byte(at + 1) == Some(first) && self.only_closers_after(at + 2) && first < 0x80 {
                    // A path that ends in a backslash, and the end of everything.
                    content.push('\\');
                    self.at = at + 2;
                    return content;
                }
                at = self.escape(at, literal, &mut content);
                copied = at;
            } else {
                // A byte of another character that begins like the closing quote.
                at += 1;
            }
        }
    }

    fn starts_with(&self, at: usize, literal: &[u8]) -> bool {
        self.bytes.get(at..).unwrap_or_default().starts_with(literal)
    }

    /// `C:\` and then no second backslash: every backslash of such a string is meant as one.
    fn is_windows_path(&self, at: usize) -> bool {
        self.byte(at).is_some_and(|byte| byte.is_ascii_alphabetic())
            && self.byte(at + 1) == Some(b':')
            && self.byte(at + 2) == Some(b'\\')
            && !matches!(self.byte(at + 3), Some(b'\\' | b'/' | b'"'))
    }

    /// Writes what the escape at `at` means, and gives the position behind it. An escape that JSON does
    /// not know keeps its backslash.
    fn escape(&self, at: usize, literal: bool, content: &mut String) -> usize {
        let next = self.byte(at + 1);
        let plain = match next {
            Some(b'"') => Some('"'),
            Some(b'\\') => Some('\\'),
            _ if literal => None,
            Some(b'\'') => Some('\''),
            Some(b'`') => Some('`'),
            Some(b'/') => Some('/'),
            Some(b'b') => Some('\u{8}'),
            Some(b'f') => Some('\u{c}'),
            Some(b'n') => Some('\n'),
            Some(b'r') => Some('\r'),
            Some(b't') => Some('\t'),
            _ => None,
        };
        if let Some(plain) = plain {
            content.push(plain);
            return at + 2;
        }
        let width = match next {
            Some(b'u') if !literal => 4,
            Some(b'x') if !literal => 2,
            _ => 0,
        };
        if width > 0
            && let Some(unit) = self.hexadecimal(at + 2, width)
        {
            let after = at + 2 + width;
            if (0xD800..0xDC00).contains(&unit)
                && self.starts_with(after, b"\\u")
                && let Some(low @ 0xDC00..0xE000) = self.hexadecimal(after + 2, 4)
            {
                let joined = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                content.push(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
                return after + 6;
            }
            content.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
            return after;
        }
        content.push('\\');
        at + 1
    }

    fn hexadecimal(&self, at: usize, width: usize) -> Option<u32> {
        let digits = self.text.get(at..at + width)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u32::from_str_radix(digits, 16).ok()
    }

    /// Whether the closing quote at `at` ends the string.
    fn ends_string(&self, at: usize, quote: Quote, place: Place, weight: &mut Weight) -> bool {
        if quote.open.len() == 3 && quote.open.is_ascii() {
            return true;
        }
        let after = self.skip_blank(at + quote.close.len());
        let Some(next) = self.byte(after) else { return true };
        let follows = match place {
            Place::Key => {
                return matches!(next, b':' | b',' | b'}' | b'{' | b'[' | b'=' | b'"' | b'\'' | b'0'..=b'9');
            }
            Place::Member => match next {
                b'}' => self.closing_is_believable(after),
                b']' => self.arrays > 0 && self.closing_is_believable(after),
                b',' | b';' => self.member_follows(self.skip_separators(after)),
                b'/' => matches!(self.byte(after + 1), Some(b'/' | b'*')),
                _ => {
                    let newline = self.bytes.get(at..after).unwrap_or_default().contains(&b'\n');
                    match next {
                        b'"' | b'\'' => self.key_ahead(after),
                        b'`' => self.starts_with(after, b"```"),
                        _ => newline && self.word_key_ahead(after),
                    }
                }
            },
            Place::Element => match next {
                b']' => self.closing_is_believable(after),
                b')' => self.closing_is_believable(after),
                b'}' => self.depth > self.arrays && self.closing_is_believable(after),
                b',' => self.element_follows(self.skip_blank(after + 1)),
                b'/' => matches!(self.byte(after + 1), Some(b'/' | b'*')),
                b'"' | b'\'' => after > at + quote.close.len(),
                b'`' => self.starts_with(after, b"```"),
                _ => false,
            },
        };
        follows && (weight.bare_quotes == 0 || at >= self.last_quote || self.weigh(weight, at) <= 0)
    }

    /// More opening than closing brackets in the string so far: a quote there is inside of code.
    fn weigh(&self, weight: &mut Weight, at: usize) -> i64 {
        for byte in self.bytes.get(weight.upto..at).unwrap_or_default() {
            match byte {
                b'(' | b'[' | b'{' => weight.balance += 1,
                b')' | b']' | b'}' => weight.balance -= 1,
                _ => {}
            }
        }
        weight.upto = at;
        weight.balance
    }

    /// Whether what follows a closing bracket can follow one.
    fn closing_is_believable(&self, bracket: usize) -> bool {
        let after = self.skip_blank(bracket + 1);
        match self.byte(after) {
            None | Some(b'}' | b']') => true,
            Some(b',') => {
                let next = self.skip_blank(after + 1);
                self.member_follows(next) || self.element_follows(next)
            }
            Some(b'`') => self.starts_with(after, b"```"),
            Some(b'/') => matches!(self.byte(after + 1), Some(b'/' | b'*')),
            // Text behind the whole object, and no quote in it.
            Some(_) => bracket >= self.last_quote,
        }
    }

    /// The next byte that is neither white space nor a comma or semicolon, of which there may be too many.
    fn skip_separators(&self, at: usize) -> usize {
        let mut at = at;
        while self.byte(at).is_some_and(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b';')) {
            at += 1;
        }
        at
    }

    fn member_follows(&self, at: usize) -> bool {
        match self.byte(at) {
            None | Some(b'}' | b'/' | b'#') => true,
            Some(0xE2) => self.starts_with(at, "“".as_bytes()),
            _ => self.key_ahead(at),
        }
    }

    fn element_follows(&self, at: usize) -> bool {
        matches!(
            self.byte(at),
            None | Some(b'"' | b'\'' | b'[' | b'{' | b'(' | b']' | b')' | b'-' | b'/' | b'#' | b'0'..=b'9')
        ) || ["true", "false", "null", "True", "False", "None"]
            .iter()
            .any(|word| self.starts_with(at, word.as_bytes()))
    }

    /// Where a key should have ended, if the quote at `at` opens its value: before the colon.
    fn lost_key_quote(&self, start: usize, at: usize) -> Option<usize> {
        if at > start + KEY_REACH || self.byte(self.skip_blank(at + 1)) == Some(b':') {
            return None;
        }
        self.bytes.get(start..at).and_then(unclosed_key).map(|length| start + length)
    }

    /// Where the string should have ended, if the quote at `at` opens the next key: before the comma.
    fn lost_quote(&self, start: usize, at: usize, place: Place, weight: &Weight) -> Option<usize> {
        if place != Place::Member || weight.bare_quotes > 0 || !self.key_ahead(at) {
            return None;
        }
        let before = self.text.get(start..at)?.trim_end();
        before.ends_with(',').then(|| start + before.len() - 1)
    }

    /// Whether nothing but closing brackets is left.
    fn only_closers_after(&self, at: usize) -> bool {
        let rest = self.bytes.get(at..).unwrap_or_default();
        rest.len() <= 64
            && rest.contains(&b'}')
            && rest.iter().all(|byte| byte.is_ascii_whitespace() || matches!(byte, b'}' | b']'))
    }

    /// A string that ran to the end of the text took the closing brackets with it.
    fn strip_closers(&self, content: String) -> String {
        let mut kept = content.trim_end();
        kept = kept.strip_suffix("```").unwrap_or(kept).trim_end();
        for _ in 0..self.depth {
            match kept.strip_suffix(['}', ']']) {
                Some(shorter) => kept = shorter.trim_end(),
                None => break,
            }
        }
        if kept.len() == content.trim_end().len() { content } else { kept.to_owned() }
    }
}
