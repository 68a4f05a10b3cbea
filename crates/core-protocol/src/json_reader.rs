//! Where a JSON value ends, found by reading it.
//!
//! Decides extents only: brackets, strings, comments, and the order in which they may come. It takes
//! what JSON5 and Python literals allow, and bare newlines in strings, so that a tag inside a string is
//! never taken for the end. What the value says is left to the argument reader.
//!
//! It stops at the first thing that cannot be, and names the last string before it: when a quote is
//! missing or superfluous, that string is the one that is not what it seems.

/// Deepest nesting of brackets that is read.
pub const MAX_DEPTH: u32 = 128;
/// Bytes of a piece that are looked at one by one.
const SHORT_PIECE: usize = 16;

/// What the reader found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonRead {
    /// The value goes on where the text ends.
    More,
    /// The value ends before this byte.
    End(usize),
    /// Not a value.
    Broken {
        /// The byte that cannot be.
        at: usize,
        /// Where the string begins that may have been misread; `at` where none was just read.
        suspect: usize,
        /// What was expected.
        problem: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value, or where `close` is set the end of the array.
    Value,
    /// A key or the end of the object.
    Key,
    Colon,
    /// A comma or a closing bracket.
    Next,
    Text(u8),
    Word,
    LineComment,
    BlockComment,
}

/// Reads one value; keeps its place while the text grows.
#[derive(Debug, Clone)]
pub struct JsonReader {
    at: usize,
    state: State,
    /// The state that a string, word or comment goes back to.
    after: State,
    depth: u32,
    /// One bit for each open bracket, the innermost lowest: set for an object.
    objects: u128,
    /// Start of the last string, if it was the last token.
    text_start: Option<usize>,
}

impl JsonReader {
    /// A reader for the value that begins at byte `at`, white space before it allowed.
    #[must_use]
    pub const fn new(at: usize) -> Self {
        Self { at, state: State::Value, after: State::Value, depth: 0, objects: 0, text_start: None }
    }

    /// Reads on; `complete` says that nothing follows. Gives [`JsonRead::More`] only where the text
    /// ends inside the value; with `complete` set too, for the caller to judge.
    pub fn read(&mut self, text: &str, complete: bool) -> JsonRead {
        let bytes = text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match self.state {
                State::Text(quote) => {
                    let rest = bytes.get(self.at..).unwrap_or_default();
                    match memchr::memchr2(quote, b'\\', rest) {
                        None => self.at = bytes.len(),
                        Some(found) if rest.get(found) == Some(&b'\\') => {
                            if self.at + found + 1 >= bytes.len() {
                                self.at += found;
                                return JsonRead::More;
                            }
                            self.at += found + 2;
                        }
                        Some(found) => {
                            self.at += found + 1;
                            self.state = self.after;
                        }
                    }
                }
                State::Word => {
                    if is_word(byte) {
                        self.at += 1;
                    } else {
                        self.state = self.after;
                    }
                }
                State::LineComment => {
                    let rest = bytes.get(self.at..).unwrap_or_default();
                    match memchr::memchr2(b'\n', b'<', rest) {
                        None => self.at = bytes.len(),
                        Some(found) => {
                            self.at += found;
                            match self.leave_comment(bytes, b'\n') {
                                Some(read) => return read,
                                None => continue,
                            }
                        }
                    }
                }
                State::BlockComment => {
                    let rest = bytes.get(self.at..).unwrap_or_default();
                    match memchr::memchr2(b'*', b'<', rest) {
                        None => self.at = bytes.len(),
                        Some(found) => {
                            self.at += found;
                            match self.leave_comment(bytes, b'*') {
                                Some(read) => return read,
                                None => continue,
                            }
                        }
                    }
                }
                _ if self.depth == 0 && self.state == State::Next => return JsonRead::End(self.at),
                _ if byte.is_ascii_whitespace() => self.at += 1,
                _ if byte == b'/' => match bytes.get(self.at + 1) {
                    Some(b'/') => self.begin(2, State::LineComment, self.state),
                    Some(b'*') => self.begin(2, State::BlockComment, self.state),
                    None => return JsonRead::More,
                    Some(_) => return self.broken("a single `/` stands outside of a string"),
                },
                State::Value => match byte {
                    b'{' | b'[' => {
                        if let Some(read) = self.open(byte == b'{') {
                            return read;
                        }
                    }
                    b']' if self.in_array() => self.close(),
                    b'}' if self.in_object() => self.close(),
                    _ => {
                        if let Some(read) = self.scalar(byte, State::Next, "a value") {
                            return read;
                        }
                    }
                },
                State::Key => match byte {
                    b'}' => self.close(),
                    b',' => self.at += 1,
                    // Doubled braces, as templates write them.
                    b'{' => {
                        if let Some(read) = self.open(true) {
                            return read;
                        }
                    }
                    _ => {
                        if let Some(read) = self.scalar(byte, State::Colon, "a key in quotes") {
                            return read;
                        }
                    }
                },
                State::Colon => match byte {
                    b':' => self.step(State::Value),
                    _ => return self.broken("after a key, `:` is expected"),
                },
                State::Next => match byte {
                    b',' => self.step(if self.in_object() { State::Key } else { State::Value }),
                    b'}' if self.in_object() => self.close(),
                    b']' if self.in_array() => self.close(),
                    _ => return self.broken("after a value, `,` or a closing bracket is expected"),
                },
            }
        }
        if self.depth == 0 {
            if self.state == State::Next {
                return JsonRead::End(self.at);
            }
            if complete && self.state == State::Word && self.after == State::Next {
                return JsonRead::End(self.at);
            }
        }
        JsonRead::More
    }

    /// Reads on only while the text ends inside a string; says whether it did, and nothing else is known.
    pub(crate) fn read_on(&mut self, text: &str) -> bool {
        let State::Text(quote) = self.state else { return false };
        let rest = text.as_bytes().get(self.at..).unwrap_or_default();
        let is_over = |byte: &u8| *byte == quote || *byte == b'\\';
        let is_over = match rest.len() {
            // A search does not pay for a few bytes.
            ..=SHORT_PIECE => rest.iter().any(is_over),
            _ => memchr::memchr2(quote, b'\\', rest).is_some(),
        };
        if is_over {
            return false;
        }
        self.at = text.len();
        true
    }

    /// Where the string begins that was being read when the text ended; else the end of what was read.
    #[must_use]
    pub fn suspect(&self) -> usize {
        self.text_start.unwrap_or(self.at)
    }

    fn step(&mut self, state: State) {
        self.at += 1;
        self.state = state;
        self.text_start = None;
    }

    fn begin(&mut self, width: usize, state: State, after: State) {
        self.text_start = Some(self.at);
        self.at += width;
        self.state = state;
        self.after = after;
    }

    fn scalar(&mut self, byte: u8, after: State, expected: &'static str) -> Option<JsonRead> {
        match byte {
            b'"' | b'\'' => self.begin(1, State::Text(byte), after),
            _ if is_word(byte) => self.begin(1, State::Word, after),
            _ if expected == "a value" => return Some(self.broken("a value is expected")),
            _ => return Some(self.broken("a key in quotes is expected")),
        }
        None
    }

    fn open(&mut self, object: bool) -> Option<JsonRead> {
        if self.depth == MAX_DEPTH {
            return Some(self.broken("brackets are nested deeper than 128 levels"));
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(object);
        self.step(if object { State::Key } else { State::Value });
        None
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.objects >>= 1;
        self.step(State::Next);
    }

    fn in_object(&self) -> bool {
        self.depth > 0 && self.objects & 1 == 1
    }

    fn in_array(&self) -> bool {
        self.depth > 0 && self.objects & 1 == 0
    }

    /// At the byte that may end a comment, or at a `<`. A comment does not reach over a tag.
    fn leave_comment(&mut self, bytes: &[u8], last: u8) -> Option<JsonRead> {
        let (byte, next) = (bytes.get(self.at).copied(), bytes.get(self.at + 1).copied());
        if byte == Some(b'\n') {
            self.at += 1;
            self.state = self.after;
            return None;
        }
        match (byte, next) {
            (_, None) => return Some(JsonRead::More),
            (Some(b'*'), Some(b'/')) if last == b'*' => {
                self.at += 2;
                self.state = self.after;
            }
            (Some(b'<'), Some(b'/' | b'a'..=b'z' | b'A'..=b'Z')) => {
                return Some(self.broken("a comment is not closed before the next tag"));
            }
            _ => self.at += 1,
        }
        None
    }

    fn broken(&self, problem: &'static str) -> JsonRead {
        JsonRead::Broken { at: self.at, suspect: self.suspect(), problem }
    }
}

/// Bytes of numbers, literals and bare keys.
const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'+' | b'-' | b'.') || byte >= 0x80
}
