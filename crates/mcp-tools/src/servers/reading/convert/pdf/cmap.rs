//! Character maps: how codes of a font are cut out of a string, and which text they stand for.
//!
//! Decides what of a map's program is understood: its ranges and characters, in any order; everything else is passed
//! over.

use std::collections::HashMap;

/// Codes of one map. Real ones have up to 65,536.
const MOST_CODES: usize = 200_000;

/// A map of a font.
#[derive(Debug, Default)]
pub(super) struct CMap {
    texts: HashMap<u32, String>,
    /// Ranges of codes of consecutive characters: first, last, first character.
    ranges: Vec<(u32, u32, u32)>,
    /// Ranges of codes by their length in bytes: bytes, first, last.
    spaces: Vec<(usize, u32, u32)>,
    /// Codes to glyph numbers: first, last, first number.
    numbers: Vec<(u32, u32, u32)>,
}

/// What a map's program is made of.
#[derive(Debug, PartialEq)]
enum Token<'a> {
    Hex(Vec<u8>),
    Number(i64),
    Word(&'a [u8]),
    Open,
    Close,
}

impl CMap {
    pub(super) fn parse(program: &[u8]) -> Self {
        let mut map = Self::default();
        // What stands before an operator.
        let mut waiting: Vec<Token<'_>> = Vec::new();
        let mut codes = 0usize;
        for token in (Tokens { bytes: program, at: 0 }) {
            let Token::Word(word) = token else {
                if waiting.len() < MOST_CODES {
                    waiting.push(token);
                }
                continue;
            };
            match word {
                b"endcodespacerange" => {
                    for pair in waiting.chunks_exact(2) {
                        if let [Token::Hex(first), Token::Hex(last)] = pair {
                            map.spaces.push((first.len(), number(first), number(last)));
                        }
                    }
                }
                b"endbfchar" => {
                    for pair in waiting.chunks_exact(2) {
                        if let [Token::Hex(code), Token::Hex(text)] = pair {
                            codes += 1;
                            map.texts.insert(number(code), utf16(text));
                        }
                    }
                }
                b"endbfrange" => map.read_ranges(&waiting, &mut codes),
                b"endcidrange" => {
                    for triple in waiting.chunks_exact(3) {
                        if let [Token::Hex(first), Token::Hex(last), Token::Number(start)] = triple {
                            let start = u32::try_from(*start).unwrap_or(0);
                            map.numbers.push((number(first), number(last), start));
                        }
                    }
                }
                b"endcidchar" => {
                    for pair in waiting.chunks_exact(2) {
                        if let [Token::Hex(code), Token::Number(start)] = pair {
                            let code = number(code);
                            map.numbers.push((code, code, u32::try_from(*start).unwrap_or(0)));
                        }
                    }
                }
                _ => {}
            }
            waiting.clear();
            if codes > MOST_CODES {
                break;
            }
        }
        map.ranges.sort_unstable();
        map.numbers.sort_unstable();
        map
    }

    fn read_ranges(&mut self, tokens: &[Token<'_>], codes: &mut usize) {
        let mut tokens = tokens.iter();
        while let (Some(Token::Hex(first)), Some(Token::Hex(last))) = (tokens.next(), tokens.next()) {
            let (first, last) = (number(first), number(last));
            match tokens.next() {
                Some(Token::Hex(text)) if text.len() <= 2 => {
                    self.ranges.push((first, last.max(first), number(text)));
                }
                Some(Token::Hex(text)) => {
                    // The last unit counts up.
                    for code in first..=last.max(first).min(first.saturating_add(255)) {
                        let mut text = text.clone();
                        if let Some(end) = text.last_mut() {
                            *end = end.wrapping_add(u8::try_from(code - first).unwrap_or(0));
                        }
                        self.texts.insert(code, utf16(&text));
                        *codes += 1;
                    }
                }
                Some(Token::Open) => {
                    let mut code = first;
                    for token in tokens.by_ref() {
                        match token {
                            Token::Hex(text) => {
                                self.texts.insert(code, utf16(text));
                                code = code.saturating_add(1);
                                *codes += 1;
                            }
                            _ => break,
                        }
                    }
                }
                _ => return,
            }
        }
    }

    /// The text of a code.
    pub(super) fn text(&self, code: u32) -> Option<String> {
        if let Some(text) = self.texts.get(&code) {
            return Some(text.clone());
        }
        let at = self.ranges.partition_point(|(first, _, _)| *first <= code).checked_sub(1)?;
        let (first, last, start) = *self.ranges.get(at)?;
        let character = start.checked_add(code - first).filter(|_| code <= last)?;
        char::from_u32(character).filter(|character| *character != '\0').map(String::from)
    }

    /// The number of the glyph of a code; the code itself where the map does not tell.
    pub(super) fn glyph(&self, code: u32) -> u32 {
        let at = self.numbers.partition_point(|(first, _, _)| *first <= code);
        match at.checked_sub(1).and_then(|at| self.numbers.get(at)) {
            Some((first, last, start)) if code <= *last => start.saturating_add(code - first),
            _ => code,
        }
    }

    /// Whether it says how codes are cut out.
    pub(super) fn has_spaces(&self) -> bool {
        !self.spaces.is_empty()
    }

    /// The next code of a string and its length.
    pub(super) fn next_code(&self, bytes: &[u8]) -> (u32, usize) {
        for length in 1..=4.min(bytes.len()) {
            let code = number(&bytes[..length]);
            if self
                .spaces
                .iter()
                .any(|(bytes, first, last)| *bytes == length && (*first..=*last).contains(&code))
            {
                return (code, length);
            }
        }
        let shortest = self.spaces.iter().map(|(bytes, _, _)| *bytes).min().unwrap_or(1);
        let length = shortest.clamp(1, bytes.len().max(1));
        (number(&bytes[..length.min(bytes.len())]), length)
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn utf16(bytes: &[u8]) -> String {
    if let [byte] = bytes {
        return char::from(*byte).to_string();
    }
    let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
    String::from_utf16_lossy(&units).replace('\0', "")
}

struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            match byte {
                b'%' => {
                    while self.bytes.get(self.at).is_some_and(|byte| !matches!(byte, b'\n' | b'\r')) {
                        self.at += 1;
                    }
                }
                b'[' => return Some(Token::Open),
                b']' => return Some(Token::Close),
                b'<' if self.bytes.get(self.at) == Some(&b'<') => self.at += 1,
                b'<' => {
                    let mut digits: Vec<u8> = Vec::new();
                    while let Some(byte) = self.bytes.get(self.at) {
                        self.at += 1;
                        if *byte == b'>' {
                            break;
                        }
                        digits.extend(
                            char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()),
                        );
                    }
                    let bytes = digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0));
                    return Some(Token::Hex(bytes.collect()));
                }
                byte if is_regular(byte) => {
                    let start = self.at - 1;
                    while self.bytes.get(self.at).is_some_and(|byte| is_regular(*byte)) {
                        self.at += 1;
                    }
                    let word = &self.bytes[start..self.at];
                    let number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
                    return Some(number.map_or(Token::Word(word), Token::Number));
                }
                _ => {}
            }
        }
    }
}

fn is_regular(byte: u8) -> bool {
    !byte.is_ascii_whitespace()
        && !matches!(byte, b'\0' | b'<' | b'>' | b'[' | b']' | b'(' | b')' | b'{' | b'}' | b'%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read() {
        let map = CMap::parse(
            b"1 begincodespacerange <00> <7F> <8000> <FFFF> endcodespacerange 2 beginbfchar <01> <0041> <8001> <00660069> endbfchar \
              3 beginbfrange <10> <12> <0061> <20> <21> [<0078> <00790079>] <8100> <8101> <D835DC00> endbfrange",
        );
        for (code, text) in
            [(1, "A"), (0x8001, "fi"), (0x11, "b"), (0x20, "x"), (0x21, "yy"), (0x8101, "\u{1d401}")]
        {
            assert_eq!(map.text(code).as_deref(), Some(text), "{code:x}");
        }
        assert_eq!(map.text(0x13), None);
        assert_eq!(map.next_code(&[0x01, 0x80]), (1, 1));
        assert_eq!(map.next_code(&[0x80, 0x01, 2]), (0x8001, 2));
    }

    #[test]
    fn any_bytes_are_a_map() {
        for program in [
            &b"<"[..],
            b"endbfrange",
            b"<0> <1 beginbfrange <00> <FFFFFFFF> <00> endbfrange",
            b"[[<",
            b"%",
            b"<00> <FFFFFFFF> <000000> endbfrange",
        ] {
            let _ = CMap::parse(program).text(5);
        }
    }
}
