//! The repairer: reads what was meant to be a JSON object.
//!
//! Decides the structure: brackets, keys, commas, bare words, what surrounds the object. Where a string
//! ends is decided in `strings`. One pass from left to right; every look ahead is bounded, so the time
//! is linear, and brackets are counted, so the recursion is bounded.

use memchr::memmem;
use serde_json::{Map, Number, Value};

use super::MAX_ARGUMENT_DEPTH;

/// Why nothing can be made of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hopeless {
    /// There is no object in it, or more than one.
    NoValue,
    /// Brackets are nested too deep.
    TooDeep,
}

/// Room made for the members of an object before they are counted.
const USUAL_MEMBERS: usize = 4;
/// Farthest that a key is looked for ahead, in bytes.
pub(super) const KEY_REACH: usize = 128;

/// Where a string stands, which decides what may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Key,
    Member,
    Element,
}

pub(super) struct Repairer<'t> {
    pub(super) text: &'t str,
    pub(super) bytes: &'t [u8],
    pub(super) at: usize,
    /// Open brackets, and how many of them are arrays.
    pub(super) depth: usize,
    pub(super) arrays: usize,
    /// Position of the last quote of the text; found once.
    pub(super) last_quote: usize,
}

/// Reads the first object of the text, or the first list where a list comes before any object.
pub(crate) fn repair_value(text: &str) -> Result<Value, Hopeless> {
    if let Some(value) = scalar(text.trim()).or_else(|| escaped_whole(text)) {
        return Ok(value);
    }
    let mut repairer = Repairer::new(text);
    repairer.root()
}

/// An object all of whose quotes are escaped, as if it had been cut out of a JSON string.
fn escaped_whole(text: &str) -> Option<Value> {
    let inside = text.strip_prefix('{')?;
    if !inside.trim_start().starts_with("\\\"") && !inside.starts_with("\\n") {
        return None;
    }
    let unescaped: String = serde_json::from_str(&format!("\"{text}\"")).ok()?;
    serde_json::from_str::<Value>(&unescaped).ok().filter(Value::is_object)
}

impl<'t> Repairer<'t> {
    fn new(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let last_quote = memchr::memrchr2(b'"', b'\'', bytes).unwrap_or(0);
        Self { text, bytes, at: 0, depth: 0, arrays: 0, last_quote }
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn root(&mut self) -> Result<Value, Hopeless> {
        self.at = self.skip_blank(0);
        if self.rest().starts_with("```") {
            self.at += 3;
            while self.byte(self.at).is_some_and(|byte| byte.is_ascii_alphanumeric()) {
                self.at += 1;
            }
            self.at = self.skip_blank(self.at);
        }
        let value = match self.byte(self.at) {
            Some(b'"' | b'\'') if self.key_ahead(self.at) => self.object_body()?,
            Some(b'[') => self.value(Place::Element)?,
            _ => {
                self.at = self.first_object().ok_or(Hopeless::NoValue)?;
                self.value(Place::Element)?
            }
        };
        self.after_root(value)
    }

    /// The first `{` that looks like the beginning of an object.
    fn first_object(&self) -> Option<usize> {
        memchr::memchr_iter(b'{', self.bytes.get(self.at..)?).map(|found| self.at + found).find(|open| {
            let inside = self.skip_blank(open + 1);
            match self.byte(inside) {
                None | Some(b'"' | b'\'' | b'}' | b'{' | b',' | b'/' | b'#') => true,
                Some(0xE2) => true,
                _ => self.loose_key_ahead(inside) || self.word_key_ahead(inside),
            }
        })
    }

    /// What follows the object: members after a brace too many, a second object, or just text.
    fn after_root(&mut self, value: Value) -> Result<Value, Hopeless> {
        let Value::Object(mut members) = value else { return Ok(value) };
        loop {
            let mut next = self.skip_blank(self.at);
            while matches!(self.byte(next), Some(b'}' | b']')) {
                next = self.skip_blank(next + 1);
            }
            match self.byte(next) {
                Some(b',') if self.key_ahead(self.skip_blank(next + 1)) => {
                    self.at = next + 1;
                    if let Value::Object(more) = self.object_body()? {
                        members.extend(more);
                    }
                }
                Some(b'{') => return Err(Hopeless::NoValue),
                Some(b',') if self.byte(self.skip_blank(next + 1)) == Some(b'{') => {
                    return Err(Hopeless::NoValue);
                }
                _ => return Ok(Value::Object(members)),
            }
        }
    }

    fn value(&mut self, place: Place) -> Result<Value, Hopeless> {
        self.at = self.skip_to_token(self.at);
        match self.byte(self.at) {
            None => Ok(Value::Null),
            Some(b'{') => {
                self.at += 1;
                self.object()
            }
            Some(b'[') => {
                self.at += 1;
                self.array(b']')
            }
            Some(b'(') => {
                self.at += 1;
                self.array(b')')
            }
            Some(b',' | b'}' | b']') => Ok(Value::Null),
            Some(_) => Ok(match self.quote_at(self.at) {
                Some(quote) => Value::String(self.string(quote, place)),
                None => self.bare(place),
            }),
        }
    }

    fn enter(&mut self) -> Result<(), Hopeless> {
        if self.depth == MAX_ARGUMENT_DEPTH {
            return Err(Hopeless::TooDeep);
        }
        self.depth += 1;
        Ok(())
    }

    fn object(&mut self) -> Result<Value, Hopeless> {
        self.enter()?;
        let value = self.object_body();
        self.depth -= 1;
        value
    }

    /// Members up to the closing brace, the end, or a bracket that belongs to somebody else.
    fn object_body(&mut self) -> Result<Value, Hopeless> {
        let mut members = Map::with_capacity(USUAL_MEMBERS);
        let mut doubled = 0usize;
        loop {
            self.at = self.skip_to_token(self.at);
            match self.byte(self.at) {
                None => break,
                Some(b'}') => {
                    self.at += 1;
                    while doubled > 0 {
                        let next = self.skip_blank(self.at);
                        if self.byte(next) != Some(b'}') {
                            break;
                        }
                        self.at = next + 1;
                        doubled -= 1;
                    }
                    break;
                }
                Some(b']') if self.arrays > 0 => break,
                Some(b'{') => {
                    doubled += 1;
                    self.at += 1;
                }
                Some(b',' | b']' | b':' | b';' | b')') => self.at += 1,
                Some(_) => self.member(&mut members)?,
            }
        }
        Ok(Value::Object(members))
    }

    fn member(&mut self, members: &mut Map<String, Value>) -> Result<(), Hopeless> {
        let quote = self.quote_at(self.at);
        let key = match quote {
            Some(quote) => self.string(quote, Place::Key),
            None => self.bare_key(),
        };
        self.at = self.skip_to_token(self.at);
        match self.byte(self.at) {
            Some(b':') => self.at += 1,
            Some(b'=') => self.at += if self.byte(self.at + 1) == Some(b'>') { 2 } else { 1 },
            // A word without a value is a remnant, not a member.
            _ if quote.is_none() => return Ok(()),
            _ => {}
        }
        let value = self.value(Place::Member)?;
        members.insert(key, value);
        Ok(())
    }

    /// A key without quotes: up to the colon, or to where no key goes on.
    fn bare_key(&mut self) -> String {
        let start = self.at;
        while let Some(byte) = self.byte(self.at) {
            if matches!(byte, b':' | b',' | b'}' | b'{' | b']' | b'=' | b'\n') {
                break;
            }
            self.at += 1;
        }
        let key = self.text.get(start..self.at).unwrap_or_default().trim();
        key.trim_matches(['"', '\'']).to_owned()
    }

    fn array(&mut self, closer: u8) -> Result<Value, Hopeless> {
        self.enter()?;
        self.arrays += 1;
        let value = self.array_body(closer);
        self.arrays -= 1;
        self.depth -= 1;
        value
    }

    fn array_body(&mut self, closer: u8) -> Result<Value, Hopeless> {
        let mut items = Vec::new();
        loop {
            self.at = self.skip_to_token(self.at);
            match self.byte(self.at) {
                None => break,
                Some(byte) if byte == closer => {
                    self.at += 1;
                    break;
                }
                // A brace closes an object around, if there is one.
                Some(b'}') if self.depth > self.arrays => break,
                Some(b']') if closer == b')' => break,
                Some(b',' | b'}' | b']' | b')' | b':' | b';') => self.at += 1,
                Some(_) => items.push(self.value(Place::Element)?),
            }
        }
        Ok(Value::Array(items))
    }

    /// A value without quotes: a literal, a number, or text up to the end of the member.
    fn bare(&mut self, place: Place) -> Value {
        let start = self.at;
        if matches!(self.byte(start), Some(b'r' | b'R' | b'f' | b'F' | b'b' | b'B' | b'u' | b'U'))
            && matches!(self.byte(start + 1), Some(b'"' | b'\''))
            && let Some(quote) = self.quote_at(start + 1)
        {
            self.at += 1;
            return Value::String(self.string(quote, place));
        }
        while let Some(byte) = self.byte(self.at) {
            if matches!(byte, b',' | b'}' | b']' | b'\n') || (byte == b')' && self.arrays > 0) {
                break;
            }
            // The comma before the next key is missing.
            if byte == b'"'
                && place == Place::Member
                && self.at > start
                && self.byte(self.at - 1).is_some_and(|byte| byte.is_ascii_whitespace())
                && self.key_ahead(self.at)
            {
                break;
            }
            self.at += 1;
        }
        let token = self.text.get(start..self.at).unwrap_or_default();
        if let Some(value) = scalar(token.trim()) {
            return value;
        }
        let comment = [" //", " #", "/*"]
            .iter()
            .filter_map(|mark| memmem::find(token.as_bytes(), mark.as_bytes()))
            .min();
        if let Some(comment) = comment
            && let Some(value) = scalar(token.get(..comment).unwrap_or_default().trim())
        {
            self.at = start + comment;
            return value;
        }
        // A quote that was opened nowhere.
        let word = token.trim();
        let word = word.strip_suffix('"').filter(|word| !word.contains('"')).unwrap_or(word);
        Value::String(word.to_owned())
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is not ASCII white space.
    #[inline]
    pub(super) fn skip_blank(&self, at: usize) -> usize {
        let mut at = at;
        while self.byte(at).is_some_and(|byte| byte.is_ascii_whitespace()) {
            at += 1;
        }
        at
    }

    /// The next byte that is neither white space nor in a comment.
    #[inline]
    fn skip_to_token(&self, at: usize) -> usize {
        let at = self.skip_blank(at);
        if matches!(self.byte(at), Some(b'/' | b'#')) { self.skip_comments(at) } else { at }
    }

    /// The next byte behind the comment at `at` and what comments and white space follow it.
    fn skip_comments(&self, at: usize) -> usize {
        let mut at = at;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            if rest.starts_with(b"//") || rest.starts_with(b"#") {
                at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            } else if rest.starts_with(b"/*") {
                at += memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2);
            } else {
                return at;
            }
            at = self.skip_blank(at);
        }
    }

    /// Whether a key and its colon stand at `at`, in quotes or as a word.
    pub(super) fn key_ahead(&self, at: usize) -> bool {
        let Some(quote @ (b'"' | b'\'')) = self.byte(at) else { return self.word_key_ahead(at) };
        let window = self.bytes.get(at + 1..(at + 1 + KEY_REACH).min(self.bytes.len())).unwrap_or_default();
        let Some(end) = memchr::memchr3(quote, b'\n', b'{', window) else { return false };
        window.get(end) == Some(&quote)
            && end > 0
            && (self.byte(self.skip_blank(at + end + 2)) == Some(b':')
                || window.get(..end).and_then(unclosed_key).is_some())
    }

    /// Whether a colon follows on the same line before anything that cannot be in a bare key.
    fn loose_key_ahead(&self, at: usize) -> bool {
        let window = self.bytes.get(at..(at + KEY_REACH).min(self.bytes.len())).unwrap_or_default();
        let is_end = |byte: &u8| matches!(byte, b':' | b'{' | b'}' | b'"' | b'\'' | b',' | b'\n');
        window.iter().position(is_end).is_some_and(|end| end > 0 && window.get(end) == Some(&b':'))
    }

    /// Whether a word and a colon stand at `at`, perhaps with a quote between that was opened nowhere.
    pub(super) fn word_key_ahead(&self, at: usize) -> bool {
        if self.byte(at).is_none_or(|byte| !is_word(byte) || byte.is_ascii_digit()) {
            return false;
        }
        let mut end = at;
        while end < at + KEY_REACH && self.byte(end).is_some_and(is_word) {
            end += 1;
        }
        if self.byte(end) == Some(b'"') {
            end += 1;
        }
        self.byte(self.skip_blank(end)) == Some(b':')
    }
}

/// Bytes of keys that are plain words.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-') || byte >= 0x80
}

/// Length of the key where the text between two quotes is a key without its closing quote and what
/// comes before the value's opening one: `key: ` or `key: [`.
pub(super) fn unclosed_key(between: &[u8]) -> Option<usize> {
    let length = between.iter().take_while(|byte| is_word(**byte)).count();
    let (key, rest) = between.split_at_checked(length)?;
    let rest = rest.trim_ascii_start().strip_prefix(b":")?;
    let opens_value = rest.iter().all(|byte| byte.is_ascii_whitespace() || matches!(byte, b'[' | b'{'));
    (!key.is_empty() && opens_value).then_some(length)
}

/// A literal of JSON, JavaScript or Python, or a number.
pub(super) fn scalar(token: &str) -> Option<Value> {
    if token.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        return number(token);
    }
    Some(match token {
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        "null" | "None" | "NULL" | "undefined" | "NaN" | "Infinity" | "-Infinity" => Value::Null,
        _ => return number(token),
    })
}

fn number(token: &str) -> Option<Value> {
    let token = token.strip_prefix('+').unwrap_or(token);
    let digits = token.strip_prefix('-').unwrap_or(token);
    let first = *digits.as_bytes().first()?;
    if !first.is_ascii_digit() && first != b'.' {
        return None;
    }
    if let Some(hexadecimal) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let value = i64::from_str_radix(hexadecimal, 16).ok()?;
        return Some(Value::from(if digits.len() < token.len() { -value } else { value }));
    }
    if digits.len() > 1 && first == b'0' && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // Leading zeros make an identifier, not a number.
        return None;
    }
    if let Ok(value) = token.parse::<i64>() {
        return Some(Value::from(value));
    }
    if let Ok(value) = token.parse::<u64>() {
        return Some(Value::from(value));
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    token.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number)
}
