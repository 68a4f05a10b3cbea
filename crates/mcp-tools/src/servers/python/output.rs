//! What a cell printed, cut to what a model can use.
//!
//! Decides which part is kept: the head and the tail, however much there was, in bounded memory.

use std::collections::VecDeque;

/// Takes bytes in and keeps the first and the last of them.
#[derive(Debug)]
pub(super) struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes that each of both may hold.
    half: usize,
    /// All bytes so far.
    total: u64,
    /// Characters that the text may have.
    limit: usize,
}

impl Output {
    pub(super) fn new(limit: usize) -> Self {
        // A character has up to four bytes.
        Self { head: Vec::new(), tail: VecDeque::new(), half: limit.saturating_mul(4), total: 0, limit }
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// The text. Where it is too long, a note comes first and says what was left out.
    pub(super) fn into_text(self) -> String {
        let Self { mut head, mut tail, half, total, limit } = self;
        let gap = total > (head.len() + tail.len()) as u64;
        if !gap {
            head.extend(tail.iter());
            tail.clear();
        }
        let start = String::from_utf8_lossy(&head);
        let end = String::from_utf8_lossy(tail.make_contiguous());
        let characters = start.chars().count();
        if !gap && characters <= limit {
            return start.into_owned();
        }
        let kept_head = nth_from_start(&start, limit / 2);
        let rest = if gap { &*end } else { &start[kept_head..] };
        let kept_tail = &rest[nth_from_end(rest, limit - limit / 2)..];
        let size = if gap { format!("{total} bytes") } else { format!("{characters} characters") };
        debug_assert!(half >= limit);
        format!(
            "[The output was {size} long; the first {} and the last {} characters are shown.]\n{}\n[…]\n{}",
            start[..kept_head].chars().count(),
            kept_tail.chars().count(),
            &start[..kept_head],
            kept_tail
        )
    }
}

/// Where the character after the first `count` begins.
fn nth_from_start(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

/// Where the last `count` characters begin.
fn nth_from_end(text: &str, count: usize) -> usize {
    match count {
        0 => text.len(),
        _ => text.char_indices().rev().nth(count - 1).map_or(0, |(at, _)| at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(limit: usize, pieces: &[&str]) -> String {
        let mut output = Output::new(limit);
        pieces.iter().for_each(|piece| output.push(piece.as_bytes()));
        output.into_text()
    }

    #[test]
    fn what_fits_is_shown_whole() {
        assert_eq!(shown(10, &["héllo", "", " wör"]), "héllo wör");
        assert_eq!(shown(3, &["äöü"]), "äöü");
        assert_eq!(shown(0, &[""]), "");
    }

    #[test]
    fn head_and_tail_are_kept_after_a_note() {
        for pieces in [vec!["abcdefghij"; 1], vec!["ab", "cdefg", "hij"]] {
            let text = shown(4, &pieces);
            assert_eq!(
                text,
                "[The output was 10 characters long; the first 2 and the last 2 characters are shown.]\nab\n[…]\nij"
            );
        }
    }

    #[test]
    fn memory_is_bounded_whatever_comes() {
        let mut output = Output::new(100);
        let block = vec![b'x'; 70_000];
        for _ in 0..100 {
            output.push(&block);
        }
        output.push("the ünd".as_bytes());
        assert!(output.head.len() + output.tail.len() <= 800);
        let text = output.into_text();
        assert!(
            text.starts_with("[The output was 7000008 bytes long; the first 50 and the last 50 characters"),
            "{text}"
        );
        assert!(text.ends_with("xthe ünd"), "{text}");
    }

    #[test]
    fn bytes_that_are_no_text_do_not_matter() {
        for split in 0..12 {
            let bytes = [0xff, b'a', 0xe2, 0x82, 0xac, 0, 0xf0, 0x9f, 0x98, 0x80, 0xc3, b'z'];
            let mut output = Output::new(2);
            output.push(&bytes[..split]);
            output.push(&bytes[split..]);
            assert!(output.into_text().ends_with('z'));
        }
    }
}
