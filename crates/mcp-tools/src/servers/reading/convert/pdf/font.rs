//! Fonts, as far as they tell which text their codes stand for and how wide it is.
//!
//! Decides where the text of a code comes from: the map that the file brings along, else the names of glyphs, else
//! the encoding. What none of them tells is no text.

use std::collections::HashMap;
use std::rc::Rc;

use hayro_syntax::object::{Array, Dict, Name, Object, Stream, String as PdfString};

use super::cmap::CMap;
use super::glyphs::{self, BaseEncoding};

/// Bytes of a font's program that are searched for its encoding.
const PROGRAM_HEAD: usize = 64 << 10;

/// A font.
#[derive(Debug)]
pub(super) struct Font {
    codes: Codes,
    texts: Option<CMap>,
    pub(super) is_bold: bool,
}

#[derive(Debug)]
enum Codes {
    /// One byte each.
    Simple { texts: Box<[Option<String>; 256]>, widths: Box<[f64; 256]> },
    /// Of any length.
    Composite { cut: Cut, widths: HashMap<u32, f64>, default_width: f64 },
}

/// How codes of a composite font are cut out of a string.
#[derive(Debug)]
enum Cut {
    /// Two bytes each, which name glyphs.
    Pairs,
    /// Two bytes each, which are UTF-16.
    Utf16,
    /// Characters of an encoding of East Asia.
    Encoded(&'static encoding_rs::Encoding),
    Map(CMap),
}

/// One character of a string.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shown {
    /// None: what it is cannot be told.
    pub(super) text: Option<String>,
    /// Of a size of 1.
    pub(super) width: f64,
    /// Whether it is the code that word spacing applies to.
    pub(super) is_space: bool,
}

/// The fonts of a file, by the place of their dictionaries in it.
#[derive(Debug, Default)]
pub(super) struct Fonts(HashMap<(u32, i32), Rc<Font>>);

impl Fonts {
    pub(super) fn get(&mut self, dict: &Dict<'_>) -> Rc<Font> {
        let Some(id) = dict.obj_id().map(|id| (id.obj_number, id.gen_number)) else {
            return Rc::new(Font::new(dict));
        };
        Rc::clone(self.0.entry(id).or_insert_with(|| Rc::new(Font::new(dict))))
    }
}

impl Font {
    fn new(dict: &Dict<'_>) -> Self {
        let name = name(dict, "BaseFont").unwrap_or_default();
        let kind = self::name(dict, "Subtype").unwrap_or_default();
        let texts =
            dict.get::<Stream<'_>>("ToUnicode").and_then(|stream| Some(CMap::parse(&stream.decoded().ok()?)));
        let codes = if kind == "Type0" { composite(dict) } else { simple(dict, &name, &kind) };
        let lower = name.to_ascii_lowercase();
        let is_bold = ["bold", "black", "heavy", "semibold", "demi"].iter().any(|word| lower.contains(word))
            || lower.ends_with("-bd")
            || lower.contains("cmbx");
        Self { codes, texts, is_bold }
    }

    /// The characters of a string.
    pub(super) fn show(&self, bytes: &[u8], mut take: impl FnMut(Shown)) {
        match &self.codes {
            Codes::Simple { texts, widths } => {
                for byte in bytes {
                    let at = usize::from(*byte);
                    let mapped = self.texts.as_ref().and_then(|map| map.text(u32::from(*byte)));
                    let text = mapped.filter(|text| is_text(text)).or_else(|| texts[at].clone());
                    take(Shown { text, width: widths[at], is_space: *byte == b' ' });
                }
            }
            Codes::Composite { cut, widths, default_width } => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    let (code, length, own) = cut.next(rest);
                    let glyph = match cut {
                        Cut::Map(map) => map.glyph(code),
                        _ => code,
                    };
                    let mapped = self.texts.as_ref().and_then(|map| map.text(code));
                    let width = widths.get(&glyph).copied().unwrap_or(*default_width);
                    let text = mapped.filter(|text| is_text(text)).or(own);
                    take(Shown { text, width, is_space: length == 1 && code == 32 });
                    rest = &rest[length.min(rest.len())..];
                }
            }
        }
    }
}

/// Whether a mapped text is one, rather than a place holder.
fn is_text(text: &str) -> bool {
    !text.is_empty()
        && !text.chars().all(|character| matches!(character, '\0' | '\u{fffd}') || is_private(character))
}

fn is_private(character: char) -> bool {
    matches!(character, '\u{e000}'..='\u{f8ff}')
}

impl Cut {
    /// The next code, its length, and its text where the encoding tells.
    fn next(&self, bytes: &[u8]) -> (u32, usize, Option<String>) {
        let pair = || match bytes {
            [high, low, ..] => (u32::from(*high) << 8 | u32::from(*low), 2),
            [byte] => (u32::from(*byte), 1),
            [] => (0, 1),
        };
        match self {
            Self::Pairs => {
                let (code, length) = pair();
                (code, length, None)
            }
            Self::Utf16 => {
                let (code, length) = pair();
                let low = match bytes {
                    [_, _, high, low, ..] if (0xD800..0xDC00).contains(&code) => {
                        u32::from(*high) << 8 | u32::from(*low)
                    }
                    _ => return (code, length, char::from_u32(code).map(String::from)),
                };
                let character = char::from_u32(0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF));
                (code, 4, character.map(String::from))
            }
            Self::Encoded(encoding) => {
                for length in 1..=2.min(bytes.len()) {
                    let (text, failed) = encoding.decode_without_bom_handling(&bytes[..length]);
                    if !failed {
                        let code = bytes[..length].iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
                        return (code, length, Some(text.into_owned()));
                    }
                }
                (u32::from(bytes[0]), 1, None)
            }
            Self::Map(map) => {
                let (code, length) = map.next_code(bytes);
                (code, length, None)
            }
        }
    }
}

fn name(dict: &Dict<'_>, key: &str) -> Option<String> {
    Some(dict.get::<Name<'_>>(key)?.as_str().to_owned())
}

fn simple(dict: &Dict<'_>, name: &str, kind: &str) -> Codes {
    let descriptor = dict.get::<Dict<'_>>("FontDescriptor");
    // Letters before the name mark a font of which only a part is in the file.
    let plain_name = name.split_once('+').map_or(name, |(_, rest)| rest);
    let encoding = dict.get::<Object<'_>>("Encoding");
    let mut base = match plain_name {
        "Symbol" => BaseEncoding::Symbol,
        "ZapfDingbats" => BaseEncoding::Dingbats,
        _ if kind == "TrueType" => BaseEncoding::WinAnsi,
        _ => BaseEncoding::Standard,
    };
    let mut differences = Vec::new();
    match &encoding {
        Some(Object::Name(name)) => base = BaseEncoding::named(name.as_str()).unwrap_or(base),
        Some(Object::Dict(encoding)) => {
            let named = self::name(encoding, "BaseEncoding").and_then(|name| BaseEncoding::named(&name));
            base = named.unwrap_or(base);
            if let Some(array) = encoding.get::<Array<'_>>("Differences") {
                let mut code = 0usize;
                for object in array.iter::<Object<'_>>() {
                    match object {
                        Object::Number(number) => code = usize::try_from(number.as_i64()).unwrap_or(0),
                        Object::Name(name) => {
                            differences.push((code, name.as_str().to_owned()));
                            code += 1;
                        }
                        _ => {}
                    }
                }
            }
        }
        _ => {}
    }
    if encoding.is_none()
        && let Some(program) = descriptor.as_ref().and_then(|found| found.get::<Stream<'_>>("FontFile"))
        && let Ok(program) = program.decoded()
    {
        differences = encoding_of_program(&program[..program.len().min(PROGRAM_HEAD)]);
    }
    let mut texts: Box<[Option<String>; 256]> = Box::new(std::array::from_fn(|code| {
        u8::try_from(code).ok().and_then(|code| base.text(code)).map(String::from)
    }));
    for (code, glyph) in differences {
        if let Some(text) = texts.get_mut(code) {
            *text = glyphs::text_of_name(&glyph);
        }
    }
    // Type 3 fonts measure in a space of their own.
    let scale = match dict.get::<Array<'_>>("FontMatrix") {
        Some(matrix) if kind == "Type3" => {
            matrix.iter::<f32>().next().map_or(0.001, |scale| f64::from(scale).abs())
        }
        _ => 0.001,
    };
    let missing = descriptor.as_ref().and_then(|found| found.get::<f32>("MissingWidth"));
    let default = |code: usize| match missing {
        Some(width) if width > 0.0 => f64::from(width) * scale,
        _ => glyphs::usual_width(plain_name, texts[code].as_deref()),
    };
    let mut widths: Box<[f64; 256]> = Box::new(std::array::from_fn(default));
    if let (Some(first), Some(array)) = (dict.get::<i32>("FirstChar"), dict.get::<Array<'_>>("Widths")) {
        for (at, width) in array.iter::<f32>().enumerate().take(256) {
            let code = usize::try_from(first).unwrap_or(0).saturating_add(at);
            if let Some(known) = widths.get_mut(code) {
                *known = f64::from(width) * scale;
            }
        }
    }
    Codes::Simple { texts, widths }
}

/// `dup 65 /A put` in the readable part of a font's program.
fn encoding_of_program(program: &[u8]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for at in memchr::memmem::find_iter(program, b"dup ") {
        let rest = &program[at + 4..program.len().min(at + 80)];
        let Ok(text) = std::str::from_utf8(
            rest.split(|byte| *byte == b'\n' || *byte == b'\r').next().unwrap_or_default(),
        ) else {
            continue;
        };
        let mut words = text.split_ascii_whitespace();
        if let (Some(code), Some(glyph)) = (words.next().and_then(|code| code.parse().ok()), words.next())
            && let Some(glyph) = glyph.strip_prefix('/')
        {
            found.push((code, glyph.trim_end_matches("put").to_owned()));
        }
    }
    found
}

fn composite(dict: &Dict<'_>) -> Codes {
    let descendant =
        dict.get::<Array<'_>>("DescendantFonts").and_then(|fonts| fonts.iter::<Dict<'_>>().next());
    let cut = match dict.get::<Object<'_>>("Encoding") {
        Some(Object::Stream(stream)) => {
            let map = stream.decoded().map(|program| CMap::parse(&program)).unwrap_or_default();
            if map.has_spaces() { Cut::Map(map) } else { Cut::Pairs }
        }
        Some(Object::Name(name)) => cut_of_name(name.as_str()),
        _ => Cut::Pairs,
    };
    let mut widths = HashMap::new();
    let default_width = descendant
        .as_ref()
        .and_then(|font| font.get::<f32>("DW"))
        .map_or(1.0, |width| f64::from(width) / 1000.0);
    if let Some(array) = descendant.as_ref().and_then(|font| font.get::<Array<'_>>("W")) {
        let mut waiting: Vec<i64> = Vec::new();
        for object in array.iter::<Object<'_>>() {
            match object {
                Object::Number(number) if waiting.len() == 2 => {
                    let width = number.as_f64() / 1000.0;
                    for glyph in waiting[0]..=waiting[1].min(waiting[0].saturating_add(65_535)) {
                        widths.insert(u32::try_from(glyph).unwrap_or(u32::MAX), width);
                    }
                    waiting.clear();
                }
                Object::Number(number) => waiting.push(number.as_i64()),
                Object::Array(list) => {
                    let first = waiting.first().copied().unwrap_or(0);
                    for (at, width) in list.iter::<f32>().enumerate().take(65_536) {
                        let glyph = first.saturating_add(i64::try_from(at).unwrap_or(0));
                        widths.insert(u32::try_from(glyph).unwrap_or(u32::MAX), f64::from(width) / 1000.0);
                    }
                    waiting.clear();
                }
                _ => {}
            }
        }
    }
    Codes::Composite { cut, widths, default_width }
}

/// Maps that every reader has to know, as far as their codes are characters themselves.
fn cut_of_name(name: &str) -> Cut {
    let encodings: [(&str, &'static encoding_rs::Encoding); 5] = [
        ("RKSJ", encoding_rs::SHIFT_JIS),
        ("GBK", encoding_rs::GBK),
        ("GB-EUC", encoding_rs::GBK),
        ("B5", encoding_rs::BIG5),
        ("UHC", encoding_rs::EUC_KR),
    ];
    if name.contains("UCS2") || name.contains("UTF16") {
        return Cut::Utf16;
    }
    match encodings.iter().find(|(part, _)| name.contains(part)) {
        Some((_, encoding)) => Cut::Encoded(encoding),
        None => Cut::Pairs,
    }
}

/// Bytes of a string object.
pub(super) fn bytes<'b>(string: &'b PdfString<'_>) -> &'b [u8] {
    string.as_bytes()
}
