//! Where the keys of a JSON5 text stand.
//!
//! Decides lines only. Whether the text is JSON5 is left to the parser: on anything else this ends
//! up with fewer or odd keys, never with a failure.

/// Nesting that is read; what is deeper could overflow the parser's stack.
pub(super) const MAX_DEPTH: usize = 100;
/// Keys deeper than this are not recorded: `mcpServers`, the name, the key, a name in `env`.
const RECORDED_DEPTH: usize = 4;

/// The keys of a text with their lines.
#[derive(Debug, Default)]
pub(super) struct KeyLines {
    keys: Vec<(Vec<String>, usize)>,
    deepest: usize,
}

impl KeyLines {
    /// Reads a text once.
    pub(super) fn of(text: &str) -> Self {
        let mut reader = Reader { rest: text, line: 1 };
        let mut found = Self::default();
        // One entry for each open bracket: none for an array, else the key that is being read.
        let mut open: Vec<Option<Option<String>>> = Vec::new();
        while let Some((token, line)) = reader.next() {
            match token {
                Token::Open(is_object) => {
                    open.push(is_object.then_some(None));
                    found.deepest = found.deepest.max(open.len());
                    if open.len() > MAX_DEPTH {
                        break;
                    }
                }
                Token::Close => drop(open.pop()),
                Token::Comma => {
                    if let Some(Some(key)) = open.last_mut() {
                        *key = None;
                    }
                }
                Token::Word(word) => {
                    if let Some(Some(key @ None)) = open.last_mut() {
                        *key = Some(word);
                        found.record(&open, line);
                    }
                }
            }
        }
        found
    }

    fn record(&mut self, open: &[Option<Option<String>>], line: usize) {
        if open.len() > RECORDED_DEPTH {
            return;
        }
        let path: Option<Vec<String>> = open.iter().map(|key| key.clone().flatten()).collect();
        if let Some(path) = path {
            self.keys.push((path, line));
        }
    }

    /// Whether the text is nested deeper than a parser can be trusted with.
    pub(super) fn is_too_deep(&self) -> bool {
        self.deepest > MAX_DEPTH
    }

    /// The line of a key, or of the nearest key around it.
    pub(super) fn line(&self, path: &[&str]) -> Option<usize> {
        (1..=path.len()).rev().find_map(|length| self.exact(&path[..length]))
    }

    fn exact(&self, path: &[&str]) -> Option<usize> {
        self.keys.iter().rev().find(|(key, _)| key.iter().eq(path.iter())).map(|(_, line)| *line)
    }

    /// A key directly under `parent` that stands there twice, with both lines.
    pub(super) fn repeated_under(&self, parent: &[&str]) -> Option<(&str, usize, usize)> {
        let mut seen = std::collections::HashMap::new();
        self.keys.iter().find_map(|(key, line)| {
            let (name, above) = key.split_last()?;
            if !above.iter().eq(parent.iter()) {
                return None;
            }
            seen.insert(name, *line).map(|first| (name.as_str(), first, *line))
        })
    }
}

enum Token {
    Open(bool),
    Close,
    Comma,
    Word(String),
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<(Token, usize)> {
        loop {
            let first = self.rest.chars().next()?;
            let line = self.line;
            match first {
                '{' | '[' => {
                    self.skip(1);
                    return Some((Token::Open(first == '{'), line));
                }
                '}' | ']' => {
                    self.skip(1);
                    return Some((Token::Close, line));
                }
                ',' => {
                    self.skip(1);
                    return Some((Token::Comma, line));
                }
                '"' | '\'' => return Some((Token::Word(self.string(first)), line)),
                '/' if self.rest.starts_with("//") => {
                    self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
                }
                '/' if self.rest.starts_with("/*") => {
                    let end = self.rest[2..].find("*/").map_or(self.rest.len(), |end| end + 4);
                    self.skip(end);
                }
                ':' => self.skip(1),
                space if space.is_whitespace() => self.skip(space.len_utf8()),
                _ => {
                    let ends = |c: char| c.is_whitespace() || "{}[],:\"'/".contains(c);
                    let end = self.rest.find(ends).unwrap_or(self.rest.len()).max(first.len_utf8());
                    let word = self.rest[..end].to_owned();
                    self.skip(end);
                    return Some((Token::Word(word), line));
                }
            }
        }
    }

    /// A string, without its quotes; escapes are left as they are, but for escaped quotes.
    fn string(&mut self, quote: char) -> String {
        let mut text = String::new();
        let mut escaped = false;
        let mut end = self.rest.len();
        for (offset, character) in self.rest.char_indices().skip(1) {
            if escaped {
                escaped = false;
                if character != quote {
                    text.push('\\');
                }
                text.push(character);
            } else if character == '\\' {
                escaped = true;
            } else if character == quote {
                end = offset + 1;
                break;
            } else {
                text.push(character);
            }
        }
        self.skip(end);
        text
    }

    fn skip(&mut self, bytes: usize) {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_lines() {
        let text = r#"// head
{
  "mcpServers": { /* two
    lines */
    one: {'command': "x", args: ["{", "a:b", {"k": 1}],
      "env": {"A": "1",
        "B": 2}},
    "t\"wo": {}
  }
}"#;
        let keys = KeyLines::of(text);
        for (path, expected) in [
            (&["mcpServers"][..], Some(3)),
            (&["mcpServers", "one"], Some(5)),
            (&["mcpServers", "one", "args"], Some(5)),
            (&["mcpServers", "one", "env", "B"], Some(7)),
            (&["mcpServers", "t\"wo"], Some(8)),
            (&["mcpServers", "three"], Some(3)),
            (&["servers"], None),
        ] {
            assert_eq!(keys.line(path), expected, "{path:?}");
        }
        assert!(!keys.is_too_deep());
    }

    #[test]
    fn repetitions_are_seen() {
        let keys = KeyLines::of("{a: {x: 1},\nb: {x: 2},\na: {}}");
        assert_eq!(keys.repeated_under(&[]), Some(("a", 1, 3)));
        assert_eq!(keys.repeated_under(&["b"]), None);
    }

    #[test]
    fn anything_is_read() {
        for text in ["", "{", "}}}", "[[", "\"", "'a\\", "{a", "/*", "//", "/", "{\u{2028}ä:,,::}", "\\"] {
            KeyLines::of(text);
        }
        assert!(KeyLines::of(&"[".repeat(100_000)).is_too_deep());
    }
}
