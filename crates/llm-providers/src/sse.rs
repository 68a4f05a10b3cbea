//! Server-sent events out of bytes.
//!
//! Decides how tolerant the reading is: lines may end in LF, CRLF or CR, `data:` needs no blank after
//! it, several data lines of one event are joined, comments and keep-alives are skipped, a byte-order
//! mark is dropped, bytes that are no UTF-8 become replacement characters once the whole line is there.
//! What the data means is left to the engines. Each byte is looked at a constant number of times.

use memchr::memchr2;

/// Longest event, in bytes, that is kept; a server that sends more is not a model.
pub(crate) const MAX_EVENT: usize = 32 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The `event:` field; empty where there was none.
    pub(crate) event: String,
    /// The data lines, joined by newlines.
    pub(crate) data: String,
}

/// An event was longer than [`MAX_EVENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventTooLong;

/// Turns any split of the bytes into the same events.
#[derive(Debug, Default)]
pub(crate) struct SseDecoder {
    /// The unfinished line.
    line: Vec<u8>,
    event: String,
    data: String,
    has_data: bool,
    /// The last byte was a CR: an LF right after it belongs to the same line end.
    after_cr: bool,
    started: bool,
}

impl SseDecoder {
    /// Takes bytes in and appends the events that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), EventTooLong> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            if bytes.first() == Some(&b'\n') {
                bytes = bytes.get(1..).unwrap_or_default();
            }
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (head, rest) = bytes.split_at(end);
            if self.line.is_empty() {
                self.take_line(head, events);
            } else {
                self.line.extend_from_slice(head);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, events);
                self.line = line;
                self.line.clear();
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
            if self.data.len() > MAX_EVENT {
                return Err(EventTooLong);
            }
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > MAX_EVENT { Err(EventTooLong) } else { Ok(()) }
    }

    /// The stream has ended: a last event may lack its line ends.
    pub(crate) fn finish(&mut self, events: &mut Vec<SseEvent>) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, events);
        }
        self.take_line(&[], events);
    }

    fn take_line(&mut self, line: &[u8], events: &mut Vec<SseEvent>) {
        let line = if self.started { line } else { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) };
        self.started = true;
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let data = std::mem::take(&mut self.data);
            if std::mem::take(&mut self.has_data) && !is_keep_alive(&data) {
                events.push(SseEvent { event, data });
            }
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                match std::str::from_utf8(value) {
                    Ok(text) => self.data.push_str(text),
                    Err(_) => self.data.push_str(&String::from_utf8_lossy(value)),
                }
            }
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
    }
}

/// Some gateways send `data:` with nothing or with a comment in it to keep the connection open.
fn is_keep_alive(data: &str) -> bool {
    let data = data.trim();
    data.is_empty() || data.starts_with(':')
}

#[cfg(test)]
mod tests {
    use super::{SseDecoder, SseEvent};

    fn decode(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut events).unwrap();
        }
        decoder.finish(&mut events);
        events.into_iter().map(|SseEvent { event, data }| (event, data)).collect()
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(e, d)| ((*e).to_owned(), (*d).to_owned())).collect();
        assert_eq!(decode(&[bytes]), expected);
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(decode(&[head, tail]), expected, "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(&single), expected, "byte by byte");
    }

    #[test]
    fn reads_all_line_ends() {
        check(b"data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check(b"data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]);
        check(b"data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
        check(b"data: a\r\ndata: b\r\n\r\n", &[("", "a\nb")]);
    }

    #[test]
    fn skips_comments_and_keep_alives() {
        check(
            b": OPENROUTER PROCESSING\n\ndata: : keepalive\n\ndata:\n\ndata\n\n:\n\ndata: x\n\n",
            &[("", "x")],
        );
    }

    #[test]
    fn reads_fields() {
        check(
            b"event: ping\nid: 3\nretry: 10\ndata:{\"a\":1}\n\nevent:stop\ndata: y\n\n",
            &[("ping", "{\"a\":1}"), ("stop", "y")],
        );
        check(b"data:  two blanks\n\n", &[("", " two blanks")]);
        check(b"event: lonely\n\ndata: x\n\n", &[("", "x")]);
    }

    #[test]
    fn keeps_split_characters_whole_and_replaces_broken_ones() {
        check("data: 深度研究 🦀\n\n".as_bytes(), &[("", "深度研究 🦀")]);
        check(b"data: a\xFFb\n\n", &[("", "a\u{FFFD}b")]);
        check(b"\xEF\xBB\xBFdata: x\n\n", &[("", "x")]);
    }

    #[test]
    fn gives_the_last_event_without_its_blank_line() {
        check(b"data: x\n\ndata: [DONE]", &[("", "x"), ("", "[DONE]")]);
        check(b"data: [DONE]\n", &[("", "[DONE]")]);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        let piece = vec![b'x'; 1 << 20];
        let mut refused = false;
        for _ in 0..40 {
            refused |= decoder.push(&piece, &mut events).is_err();
        }
        assert!(refused);
    }
}
