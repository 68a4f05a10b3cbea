//! Finds the id of a JSON-RPC response that is too long to be kept.
//!
//! Decides which call a dropped line belonged to, so that the call ends in an error at once instead
//! of waiting for its limit. Reads the line in pieces and keeps nothing of it but the id.

use std::sync::Arc;

use rmcp::model::RequestId;

/// The longest key or id that is looked at; longer ones are not ours.
const MAX_TOKEN: usize = 128;

/// A scanner that is fed one line in pieces and knows the value of the top-level `id`.
#[derive(Debug, Default)]
pub(crate) struct IdScanner {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// Whether the next string at depth 1 is a key.
    expects_key: bool,
    /// What is collected of the key or the id.
    token: Vec<u8>,
    collecting: Collecting,
    id: Option<Vec<u8>>,
    is_request: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Collecting {
    #[default]
    Nothing,
    Key,
    Id,
}

impl IdScanner {
    /// Reads a further piece of the line.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.in_string_step(byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.expects_key {
                    self.collecting = Collecting::Key;
                    self.token.clear();
                } else if self.collecting == Collecting::Id {
                    self.collect(byte);
                }
            }
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                self.expects_key = self.depth == 1 && byte == b'{';
                if self.collecting == Collecting::Id {
                    self.collecting = Collecting::Nothing;
                }
            }
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if self.depth == 1 => {
                self.end_value();
                self.expects_key = true;
            }
            b':' if self.depth == 1 && self.expects_key => {
                self.expects_key = false;
                match self.token.as_slice() {
                    b"id" => self.collecting = Collecting::Id,
                    b"method" => self.is_request = true,
                    _ => {}
                }
                self.token.clear();
            }
            _ if byte.is_ascii_whitespace() => {}
            _ if self.collecting == Collecting::Id => self.collect(byte),
            _ => {}
        }
    }

    fn in_string_step(&mut self, byte: u8) {
        let ends = byte == b'"' && !self.escaped;
        self.escaped = byte == b'\\' && !self.escaped;
        if ends {
            self.in_string = false;
        }
        match self.collecting {
            Collecting::Key if ends => self.collecting = Collecting::Nothing,
            Collecting::Key | Collecting::Id => self.collect(byte),
            Collecting::Nothing => {}
        }
    }

    fn collect(&mut self, byte: u8) {
        if self.token.len() < MAX_TOKEN {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth == 1 && self.collecting == Collecting::Id {
            self.id = Some(std::mem::take(&mut self.token));
            self.collecting = Collecting::Nothing;
        }
    }

    /// The id of the response, where the line was one.
    pub(crate) fn finish(self) -> Option<RequestId> {
        if self.is_request {
            return None;
        }
        match serde_json::from_slice(&self.id?).ok()? {
            serde_json::Value::Number(number) => Some(RequestId::Number(number.as_i64()?)),
            serde_json::Value::String(text) => Some(RequestId::String(Arc::from(text))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<RequestId>) {
        for size in [1, 3, line.len().max(1)] {
            let mut scanner = IdScanner::default();
            for piece in line.as_bytes().chunks(size) {
                scanner.feed(piece);
            }
            assert_eq!(scanner.finish(), expected, "{line} in pieces of {size}");
        }
    }

    #[test]
    fn finds_the_id_wherever_it_stands() {
        let seven = Some(RequestId::Number(7));
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"id":9}}"#, seven.clone()),
            (r#"{"jsonrpc":"2.0","result":{"id":9,"a":[{"id":3}]},"id":7}"#, seven.clone()),
            (r#"{"result":"\",\"id\":9,{","id" : 7 }"#, seven.clone()),
            (r#"{"id":7,"error":{"code":1,"message":"x"}}"#, seven),
            (r#"{"id":"a\"b","result":{}}"#, Some(RequestId::String(Arc::from("a\"b")))),
            (r#"{"id":7,"method":"ping"}"#, None),
            (r#"{"id":null,"error":{}}"#, None),
            (r#"{"id":{"x":7},"result":{}}"#, None),
            (r#"{"result":{"id":7}}"#, None),
            (r#"[{"id":7}]"#, None),
            ("not json at all \"id\":7", None),
            ("", None),
        ] {
            check(line, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_a_whole_parser(line in r#"\{("(id|result|x)":("[a-z\\"{}]{0,3}"|[0-9]{1,3}|\{"id":[0-9]\}|\[1,2\]),?){0,4}\}"#) {
            let mut scanner = IdScanner::default();
            scanner.feed(line.as_bytes());
            let found = scanner.finish();
            if let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(&line) {
                let expected = match fields.get("id") {
                    Some(serde_json::Value::Number(number)) => number.as_i64().map(RequestId::Number),
                    Some(serde_json::Value::String(text)) => Some(RequestId::String(Arc::from(text.as_str()))),
                    _ => None,
                };
                // Of an id that stands twice, either is as good.
                if line.matches("\"id\":").count() < 2 {
                    proptest::prop_assert_eq!(found, expected, "{}", line);
                }
            }
        }
    }
}
