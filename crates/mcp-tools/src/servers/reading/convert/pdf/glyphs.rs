//! Names and numbers of characters in fonts that bring no map of their own.
//!
//! Decides the text of a glyph's name and of a code in the encodings that every reader has to know (PDF 32000-1,
//! annex D), and how wide a character usually is where a font does not say.

/// An encoding that a font may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BaseEncoding {
    Standard,
    WinAnsi,
    MacRoman,
    Symbol,
    Dingbats,
}

/// The upper half of the standard encoding, from 0xA1 on; a blank where there is nothing.
const STANDARD_FROM_A1: &str =
    "¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ –†‡· ¶•‚„”»…‰ ¿ `´ˆ˜¯˘˙¨ ˚¸ ˝˛ˇ—                Æ ª    ŁØŒº     æ   ı  łøœß";
/// Letters of the symbol font, capital and small, from `A` and `a` on.
const SYMBOL_CAPITALS: &str = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ";
const SYMBOL_SMALL: &str = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ";
/// The upper half of the symbol font, from 0xA1 on.
const SYMBOL_FROM_A1: &str = "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑";

impl BaseEncoding {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "WinAnsiEncoding" | "PDFDocEncoding" => Some(Self::WinAnsi),
            "MacRomanEncoding" => Some(Self::MacRoman),
            "StandardEncoding" => Some(Self::Standard),
            _ => None,
        }
    }

    /// The character of a code.
    pub(super) fn text(self, code: u8) -> Option<char> {
        let in_table = |table: &str, first: u8| {
            let at = usize::from(code.checked_sub(first)?);
            table.chars().nth(at).filter(|character| *character != ' ')
        };
        match (self, code) {
            (Self::Dingbats, _) => match code {
                0x20 => Some(' '),
                0x6C | 0x6E | 0x71..=0x75 => Some('•'),
                0x33 | 0x34 => Some('✓'),
                0x35..=0x38 => Some('✗'),
                _ => None,
            },
            (Self::Symbol, b'A'..=b'Z') => in_table(SYMBOL_CAPITALS, b'A'),
            (Self::Symbol, b'a'..=b'z') => in_table(SYMBOL_SMALL, b'a'),
            (Self::Symbol, 0x22) => Some('∀'),
            (Self::Symbol, 0x24) => Some('∃'),
            (Self::Symbol, 0x2D) => Some('−'),
            (Self::Symbol, 0xA1..) => in_table(SYMBOL_FROM_A1, 0xA1),
            (Self::Standard, 0x27) => Some('’'),
            (Self::Standard, 0x60) => Some('‘'),
            (Self::Standard, 0x80..) => in_table(STANDARD_FROM_A1, 0xA1),
            (_, 0x20..=0x7E) => Some(char::from(code)),
            (Self::WinAnsi, 0x7F) => Some('•'),
            (_, ..=0x7F) => None,
            (Self::MacRoman, _) => decoded(encoding_rs::MACINTOSH, code),
            (_, _) => decoded(encoding_rs::WINDOWS_1252, code),
        }
    }
}

fn decoded(encoding: &'static encoding_rs::Encoding, code: u8) -> Option<char> {
    let bytes = [code];
    let (text, _) = encoding.decode_without_bom_handling(&bytes);
    // Codes that stand for nothing were given to the bullet.
    text.chars().next().map(|character| if character.is_control() { '•' } else { character })
}

/// A character of a text outside of pages.
pub(super) fn pdf_doc(byte: u8) -> char {
    const FROM_80: &str = "•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž";
    match byte {
        0x80..=0x9E => FROM_80.chars().nth(usize::from(byte - 0x80)).unwrap_or(' '),
        0xA0 => '€',
        byte => char::from(byte),
    }
}

/// Letters with an accent: the accent's name, and letters with what they become, in pairs.
const ACCENTS: &[(&str, &str)] = &[
    ("acute", "AÁCĆEÉIÍLĹNŃOÓRŔSŚUÚYÝZŹaácćeéiílĺnńoórŕsśuúyýzź"),
    ("grave", "AÀEÈIÌNǸOÒUÙaàeèiìnǹoòuù"),
    ("circumflex", "AÂCĈEÊGĜHĤIÎJĴOÔSŜUÛWŴYŶaâcĉeêgĝhĥiîjĵoôsŝuûwŵyŷ"),
    ("dieresis", "AÄEËIÏOÖUÜYŸaäeëiïoöuüyÿ"),
    ("tilde", "AÃIĨNÑOÕUŨaãiĩnñoõuũ"),
    ("ring", "AÅUŮaåuů"),
    ("cedilla", "CÇSŞTŢcçsştţ"),
    ("commaaccent", "GĢKĶLĻNŅRŖSȘTȚkķlļnņrŗsștț"),
    ("caron", "CČDĎEĚGǦLĽNŇRŘSŠTŤZŽcčdďeěgǧlľnňrřsštťzž"),
    ("ogonek", "AĄEĘIĮUŲaąeęiįuų"),
    ("macron", "AĀEĒIĪOŌUŪaāeēiīoōuū"),
    ("breve", "AĂGĞUŬaăgğuŭ"),
    ("dotaccent", "CĊEĖGĠIİZŻcċeėgġzż"),
    ("hungarumlaut", "OŐUŰoőuű"),
];

const GREEK: &str = "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau \
                     Upsilon Phi Chi Psi Omega";

/// Names that no rule gives.
#[rustfmt::skip]
const NAMES: &[(&str, &str)] = &[
    ("space", " "), ("nbspace", " "), ("exclam", "!"), ("quotedbl", "\""), ("numbersign", "#"), ("dollar", "$"), ("percent", "%"),
    ("ampersand", "&"), ("quotesingle", "'"), ("parenleft", "("), ("parenright", ")"), ("asterisk", "*"), ("plus", "+"),
    ("comma", ","), ("hyphen", "-"), ("sfthyphen", "-"), ("hyphenminus", "-"), ("period", "."), ("slash", "/"), ("zero", "0"),
    ("one", "1"), ("two", "2"), ("three", "3"), ("four", "4"), ("five", "5"), ("six", "6"), ("seven", "7"), ("eight", "8"),
    ("nine", "9"), ("colon", ":"), ("semicolon", ";"), ("less", "<"), ("equal", "="), ("greater", ">"), ("question", "?"),
    ("at", "@"), ("bracketleft", "["), ("backslash", "\\"), ("bracketright", "]"), ("asciicircum", "^"), ("underscore", "_"),
    ("grave", "`"), ("braceleft", "{"), ("bar", "|"), ("braceright", "}"), ("asciitilde", "~"), ("exclamdown", "¡"),
    ("cent", "¢"), ("sterling", "£"), ("currency", "¤"), ("yen", "¥"), ("brokenbar", "¦"), ("section", "§"), ("dieresis", "¨"),
    ("copyright", "©"), ("ordfeminine", "ª"), ("guillemotleft", "«"), ("guillemotright", "»"), ("logicalnot", "¬"),
    ("registered", "®"), ("macron", "¯"), ("degree", "°"), ("plusminus", "±"), ("twosuperior", "²"), ("threesuperior", "³"),
    ("acute", "´"), ("mu", "µ"), ("paragraph", "¶"), ("periodcentered", "·"), ("middot", "·"), ("cedilla", "¸"), ("onesuperior", "¹"),
    ("ordmasculine", "º"), ("onequarter", "¼"), ("onehalf", "½"), ("threequarters", "¾"), ("questiondown", "¿"), ("AE", "Æ"),
    ("ae", "æ"), ("OE", "Œ"), ("oe", "œ"), ("Oslash", "Ø"), ("oslash", "ø"), ("Lslash", "Ł"), ("lslash", "ł"), ("Eth", "Ð"),
    ("eth", "ð"), ("Thorn", "Þ"), ("thorn", "þ"), ("germandbls", "ß"), ("Dcroat", "Đ"), ("dcroat", "đ"), ("Hbar", "Ħ"),
    ("hbar", "ħ"), ("dotlessi", "ı"), ("dotlessj", "ȷ"), ("multiply", "×"), ("divide", "÷"), ("florin", "ƒ"),
    ("circumflex", "ˆ"), ("caron", "ˇ"), ("breve", "˘"), ("dotaccent", "˙"), ("ring", "˚"), ("ogonek", "˛"), ("tilde", "˜"),
    ("hungarumlaut", "˝"), ("endash", "–"), ("emdash", "—"), ("quoteleft", "‘"), ("quoteright", "’"), ("quotesinglbase", "‚"),
    ("quotedblleft", "“"), ("quotedblright", "”"), ("quotedblbase", "„"), ("dagger", "†"), ("daggerdbl", "‡"), ("bullet", "•"),
    ("ellipsis", "…"), ("perthousand", "‰"), ("guilsinglleft", "‹"), ("guilsinglright", "›"), ("fraction", "⁄"), ("Euro", "€"),
    ("euro", "€"), ("trademark", "™"), ("minus", "−"), ("ff", "ff"), ("fi", "fi"), ("fl", "fl"), ("ffi", "ffi"), ("ffl", "ffl"),
    ("partialdiff", "∂"), ("increment", "∆"), ("product", "∏"), ("summation", "∑"), ("radical", "√"), ("infinity", "∞"),
    ("integral", "∫"), ("approxequal", "≈"), ("notequal", "≠"), ("lessequal", "≤"), ("greaterequal", "≥"), ("lozenge", "◊"),
    ("arrowleft", "←"), ("arrowup", "↑"), ("arrowright", "→"), ("arrowdown", "↓"), ("arrowboth", "↔"), ("arrowdblleft", "⇐"),
    ("arrowdblright", "⇒"), ("arrowdblboth", "⇔"), ("element", "∈"), ("notelement", "∉"), ("universal", "∀"),
    ("existential", "∃"), ("emptyset", "∅"), ("intersection", "∩"), ("union", "∪"), ("propersubset", "⊂"),
    ("reflexsubset", "⊆"), ("propersuperset", "⊃"), ("reflexsuperset", "⊇"), ("logicaland", "∧"), ("logicalor", "∨"),
    ("nabla", "∇"), ("gradient", "∇"), ("proportional", "∝"), ("equivalence", "≡"), ("similar", "∼"), ("congruent", "≅"),
    ("dotmath", "⋅"), ("asteriskmath", "∗"), ("circleplus", "⊕"), ("circlemultiply", "⊗"), ("perpendicular", "⊥"),
    ("angle", "∠"), ("therefore", "∴"), ("aleph", "ℵ"), ("minute", "′"), ("second", "″"), ("prime", "′"), ("ell", "ℓ"),
    ("lscript", "ℓ"), ("angbracketleft", "⟨"), ("angbracketright", "⟩"), ("floorleft", "⌊"), ("floorright", "⌋"),
    ("ceilingleft", "⌈"), ("ceilingright", "⌉"), ("bardbl", "‖"), ("epsilon1", "ϵ"), ("theta1", "ϑ"), ("phi1", "ϕ"),
    ("sigma1", "ς"), ("omega1", "ϖ"), ("rho1", "ϱ"), ("mapsto", "↦"), ("lessmuch", "≪"), ("greatermuch", "≫"),
    ("precedes", "≺"), ("follows", "≻"), ("asymptoticequal", "≃"), ("turnstileleft", "⊢"), ("diamond", "⋄"), ("openbullet", "◦"),
    ("filledbox", "■"), ("H18533", "■"), ("triagrt", "►"), ("checkmark", "✓"), ("club", "♣"), ("heart", "♥"), ("spade", "♠"),
    ("afii61352", "№"), ("numero", "№"), ("estimated", "℮"), ("visiblespace", "␣"), ("nonbreakingspace", " "),
];

/// The text of a glyph by its name.
pub(super) fn text_of_name(name: &str) -> Option<String> {
    // What follows a dot says how it looks.
    let name = match name.split_once('.') {
        Some(("", _)) => return None,
        Some((name, _)) => name,
        None => name,
    };
    if name.contains('_') {
        return name.split('_').map(text_of_name).collect();
    }
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Some(letter.to_string());
    }
    if let Some((_, text)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some((*text).to_owned());
    }
    let letter = accented(name).or_else(|| greek(name)).or_else(|| cyrillic(name)).or_else(|| numbered(name));
    letter.map(String::from)
}

fn accented(name: &str) -> Option<char> {
    let letter = name.chars().next()?;
    let (_, pairs) = ACCENTS.iter().find(|(accent, _)| name.get(letter.len_utf8()..) == Some(*accent))?;
    let mut pairs = pairs.chars();
    while let (Some(base), Some(with)) = (pairs.next(), pairs.next()) {
        if base == letter {
            return Some(with);
        }
    }
    None
}

fn greek(name: &str) -> Option<char> {
    let first = name.chars().next()?;
    let capital = first.to_ascii_uppercase();
    let at = GREEK
        .split_ascii_whitespace()
        .position(|known| known.starts_with(capital) && known[1..] == name[first.len_utf8()..])?;
    let start = if first.is_ascii_uppercase() { 0x391 } else { 0x3B1 };
    char::from_u32(start + u32::try_from(at).ok()?)
}

fn cyrillic(name: &str) -> Option<char> {
    let number: u32 = name.strip_prefix("afii")?.parse().ok()?;
    let code = match number {
        10017..=10022 => 0x410 + number - 10017,
        10023 => 0x401,
        10024..=10049 => 0x416 + number - 10024,
        10065..=10070 => 0x430 + number - 10065,
        10071 => 0x451,
        10072..=10097 => 0x436 + number - 10072,
        _ => return None,
    };
    char::from_u32(code)
}

/// `uni20AC`, `u1F600`.
fn numbered(name: &str) -> Option<char> {
    let digits =
        name.strip_prefix("uni").and_then(|rest| rest.get(..4)).or_else(|| name.strip_prefix('u'))?;
    let is_number = (4..=6).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| u32::from_str_radix(digits, 16).ok()).flatten().and_then(char::from_u32)
}

/// Of a size of 1, where a font does not say: near enough to find blanks between words.
pub(super) fn usual_width(font: &str, text: Option<&str>) -> f64 {
    let Some(character) = text.and_then(|text| text.chars().next()) else { return 0.5 };
    if font.contains("Courier") || font.contains("Mono") {
        return 0.6;
    }
    let width = match character {
        'i' | 'j' | 'l' | '\'' | '|' => 0.24,
        ' ' | '.' | ',' | ';' | ':' | '!' | '/' | 'I' | 'f' | 't' | '[' | ']' => 0.278,
        '(' | ')' | '-' | 'r' | '`' | '"' => 0.333,
        'm' | 'M' | '%' => 0.84,
        'w' | 'O' | 'Q' | 'G' => 0.75,
        'W' | '@' | '—' => 0.97,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' | 'J' => 0.5,
        'A'..='Z' => 0.68,
        '+' | '<' | '=' | '>' | '~' => 0.584,
        _ => 0.556,
    };
    if font.contains("Times") && character != ' ' { width * 0.88 } else { width }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text() {
        for (name, text) in [
            ("A", Some("A")),
            ("Aacute", Some("Á")),
            ("zcaron", Some("ž")),
            ("Omega", Some("Ω")),
            ("alpha", Some("α")),
            ("sigma", Some("σ")),
            ("afii10017", Some("А")),
            ("afii10097", Some("я")),
            ("uni20AC", Some("€")),
            ("u1F600", Some("😀")),
            ("f_i", Some("fi")),
            ("a.sc", Some("a")),
            (".notdef", None),
            ("g123", None),
            ("union", Some("∪")),
        ] {
            assert_eq!(text_of_name(name).as_deref(), text, "{name}");
        }
    }

    #[test]
    fn codes_are_text() {
        for (encoding, code, text) in [
            (BaseEncoding::Standard, 0xAE, Some('ﬁ')),
            (BaseEncoding::Standard, 0xFB, Some('ß')),
            (BaseEncoding::Standard, 0xD0, Some('—')),
            (BaseEncoding::Standard, 0xE1, Some('Æ')),
            (BaseEncoding::Standard, 0xE8, Some('Ł')),
            (BaseEncoding::Standard, 0x27, Some('’')),
            (BaseEncoding::WinAnsi, 0x80, Some('€')),
            (BaseEncoding::WinAnsi, 0x95, Some('•')),
            (BaseEncoding::MacRoman, 0x8A, Some('ä')),
            (BaseEncoding::Symbol, b'p', Some('π')),
            (BaseEncoding::Symbol, 0xA3, Some('≤')),
            (BaseEncoding::Symbol, 0xB7, Some('•')),
            (BaseEncoding::Symbol, 0xE5, Some('∑')),
            (BaseEncoding::Standard, 0x05, None),
        ] {
            assert_eq!(encoding.text(code), text, "{encoding:?} {code:x}");
        }
    }
}
