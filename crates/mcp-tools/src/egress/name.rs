//! What a fetched file is called.
//!
//! Decides between the server's word and the address. The name is that of a file, never a path.

use url::Url;

/// Longest name, in characters.
const LONGEST: usize = 120;

/// The name in `Content-Disposition`, else the last part of the path; empty where there is none.
pub(super) fn of(disposition: Option<&str>, url: &Url) -> String {
    let told = disposition.and_then(|header| {
        let parameter = |name: &str| {
            header.split(';').skip(1).find_map(|part| {
                let (found, value) = part.split_once('=')?;
                found.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"').to_owned())
            })
        };
        let extended =
            parameter("filename*").and_then(|value| Some(unescaped(value.splitn(3, '\'').nth(2)?)));
        extended.or_else(|| parameter("filename")).map(|name| file_name(&name))
    });
    let last = || url.path_segments().and_then(|mut segments| segments.next_back()).map(unescaped);
    told.filter(|name| !name.is_empty()).or_else(|| last().map(|name| file_name(&name))).unwrap_or_default()
}

fn file_name(text: &str) -> String {
    let name = text.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    let clean: String = name.chars().filter(|character| !character.is_control()).take(LONGEST).collect();
    if clean.chars().all(|character| character == '.') { String::new() } else { clean }
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digit = |at: usize| bytes.get(at).and_then(|byte| (*byte as char).to_digit(16));
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let check = |disposition: Option<&str>, url: &str, expected: &str| {
            assert_eq!(of(disposition, &Url::parse(url).unwrap()), expected, "{disposition:?} {url}");
        };
        check(None, "https://h/a/b.pdf?x=1#y", "b.pdf");
        check(None, "https://h/a%20b.pdf", "a b.pdf");
        check(None, "https://h/", "");
        check(None, "https://h/x/..%2f..%2fetc%2fpasswd", "passwd");
        check(Some("attachment; filename=\"t.csv\""), "https://h/x", "t.csv");
        check(Some("attachment; filename=../../x"), "https://h/y", "x");
        check(Some("attachment; filename=a; filename*=UTF-8''%e2%82%ac.csv"), "https://h/x", "€.csv");
        check(Some("attachment; filename=\"..\""), "https://h/y", "y");
        check(Some("inline"), "https://h/y", "y");
    }
}
