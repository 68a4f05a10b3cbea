//! Bytes to text.
//!
//! Decides the encoding: a byte order mark, what an HTML page says of itself, UTF-8 where it is valid,
//! else a guess from how often bytes occur.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

/// How much of a text is looked at for a guess.
const SAMPLE: usize = 1 << 20;

/// The text and the name of its encoding. What is wrong in it becomes U+FFFD.
pub(super) fn decode(bytes: &[u8], is_html: bool) -> (String, &'static str) {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        let (text, _) = encoding.decode_without_bom_handling(&bytes[mark..]);
        return (text.into_owned(), encoding.name());
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (text.to_owned(), UTF_8.name());
    }
    let declared = if is_html { declared(bytes) } else { None };
    let encoding = declared.unwrap_or_else(|| {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
        detector.feed(&bytes[..bytes.len().min(SAMPLE)], bytes.len() <= SAMPLE);
        detector.guess(None, Utf8Detection::Allow)
    });
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    (text.into_owned(), encoding.name())
}

/// What `<meta charset=…>` or `<meta … content="…; charset=…">` says near the start of a page.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(4096)];
    let start = start.to_ascii_lowercase();
    let at = memchr::memmem::find(&start, b"charset")? + b"charset".len();
    let rest = start[at..].iter().skip_while(|byte| byte.is_ascii_whitespace());
    let mut rest =
        rest.skip_while(|byte| **byte == b'=').skip_while(|byte| matches!(**byte, b' ' | b'"' | b'\''));
    let label: Vec<u8> = rest
        .by_ref()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(**byte, b'-' | b'_' | b':' | b'.'))
        .take(40)
        .copied()
        .collect();
    // A page that is found by its ASCII tags is not in UTF-16, whatever it says.
    Encoding::for_label(&label).map(Encoding::output_encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_of_knowing_is_used() {
        let check = |bytes: &[u8], is_html: bool, text: &str, encoding: &str| {
            assert_eq!(decode(bytes, is_html), (text.to_owned(), encoding));
        };
        check("ünï".as_bytes(), false, "ünï", "UTF-8");
        check(b"\xef\xbb\xbfa", false, "a", "UTF-8");
        check(b"\xff\xfea\0\xfc\0", false, "aü", "UTF-16LE");
        check(b"\xfe\xff\0a", false, "a", "UTF-16BE");
        check(b"", true, "", "UTF-8");
        let page = b"<meta charset=\"windows-1251\">\xcf\xf0\xe8";
        check(page, true, "<meta charset=\"windows-1251\">При", "windows-1251");
        let page = b"<meta content='text/html; charset = iso-8859-2'>\xb1";
        check(page, true, "<meta content='text/html; charset = iso-8859-2'>ą", "ISO-8859-2");
        let page = b"<meta charset=no-such-thing>caf\xe9 cr\xe8me br\xfbl\xe9e";
        check(page, true, "<meta charset=no-such-thing>café crème brûlée", "windows-1252");
        let (cyrillic, _, _) = encoding_rs::WINDOWS_1251.encode("Съешь же ещё этих мягких французских булок");
        check(&cyrillic, false, "Съешь же ещё этих мягких французских булок", "windows-1251");
        let (japanese, _, _) =
            encoding_rs::SHIFT_JIS.encode("これは日本語の文章です。漢字とかなを使います。");
        check(&japanese, false, "これは日本語の文章です。漢字とかなを使います。", "Shift_JIS");
    }
}
