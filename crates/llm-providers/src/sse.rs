//! Server-sent events out of bytes.
//!
//! Decides how tolerant the reading is: lines may end in LF, CRLF or CR, `data:` needs no blank after
//! it, several data lines of one event are joined, comments and keep-alives are skipped, a byte-order
//! mark is dropped, bytes that are no UTF-8 become replacement characters once the whole line is there.
//! What the data means is left to the engines. Each byte is looked at a constant number of times, and an
//! event costs no allocation: it is lent from buffers that the next one uses again.

use memchr::memchr2;

/// Longest event, in bytes, that is kept; a server that sends more is not a model.
pub(crate) const MAX_EVENT: usize = 32 * 1024 * 1024;

/// One event, valid until the next is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SseEvent<'a> {
    /// The `event:` field; empty where there was none.
    pub(crate) event: &'a str,
    /// The data lines, joined by newlines.
    pub(crate) data: &'a str,
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
    /// The event in the buffers was given away: they are emptied before the next.
    given: bool,
    /// The last byte was a CR: an LF right after it belongs to the same line end.
    after_cr: bool,
    started: bool,
}

impl SseDecoder {
    /// The next event that the bytes complete; what it did not need stays in `bytes`. None: all bytes
    /// are taken in, and more are needed.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<SseEvent<'_>>, EventTooLong> {
        self.clear_given();
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (head, rest) = bytes.split_at(end);
            let complete = if self.line.is_empty() {
                self.take_line(head)
            } else {
                self.line.extend_from_slice(head);
                let mut line = std::mem::take(&mut self.line);
                let complete = self.take_line(&line);
                line.clear();
                self.line = line;
                complete
            };
            *bytes = match rest {
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
            if complete {
                self.given = true;
                return Ok(Some(SseEvent { event: &self.event, data: &self.data }));
            }
        }
        self.line.extend_from_slice(bytes);
        *bytes = &[];
        if self.line.len() > MAX_EVENT { Err(EventTooLong) } else { Ok(None) }
    }

    /// The stream has ended: the last event, which may lack its line ends.
    pub(crate) fn finish(&mut self) -> Option<SseEvent<'_>> {
        self.clear_given();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line);
        }
        let complete = self.take_line(&[]);
        self.given = true;
        complete.then_some(SseEvent { event: &self.event, data: &self.data })
    }

    fn clear_given(&mut self) {
        if std::mem::take(&mut self.given) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.event.clear();
        self.data.clear();
        self.has_data = false;
    }

    /// Whether the line completes an event.
    fn take_line(&mut self, line: &[u8]) -> bool {
        let line = if self.started { line } else { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) };
        self.started = true;
        if line.is_empty() {
            if self.has_data && !is_keep_alive(&self.data) {
                return true;
            }
            self.clear();
            return false;
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
                push_text(&mut self.data, value);
            }
            b"event" => {
                self.event.clear();
                push_text(&mut self.event, value);
            }
            _ => {}
        }
        false
    }
}

fn push_text(text: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(valid) => text.push_str(valid),
        Err(_) => text.push_str(&String::from_utf8_lossy(bytes)),
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
        let owned = |event: SseEvent<'_>| (event.event.to_owned(), event.data.to_owned());
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for mut piece in pieces.iter().copied() {
            while let Some(event) = decoder.next(&mut piece).unwrap() {
                events.push(owned(event));
            }
            assert!(piece.is_empty());
        }
        events.extend(decoder.finish().map(owned));
        assert!(decoder.finish().is_none());
        events
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
        let piece = vec![b'x'; 1 << 20];
        let taken = (0..40).take_while(|_| decoder.next(&mut piece.as_slice()).is_ok()).count();
        assert_eq!(taken, 32);
    }

    #[test]
    fn an_endless_event_of_many_lines_is_refused() {
        let mut decoder = SseDecoder::default();
        let mut piece = b"data: ".to_vec();
        piece.resize(1 << 20, b'x');
        piece.push(b'\n');
        let taken = (0..40).take_while(|_| decoder.next(&mut piece.as_slice()).is_ok()).count();
        assert!((31..=33).contains(&taken), "{taken}");
    }
}
