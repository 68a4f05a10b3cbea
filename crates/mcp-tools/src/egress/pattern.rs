//! Which pages are blocked, however their addresses are spelled.
//!
//! Decides how an address is brought to one spelling and what a pattern matches. A blocked page is also found where
//! its address stands inside another one: archives, translators and readers take addresses that way.

use url::Url;

/// A page, a site or a word that is not fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// As it was written, for messages.
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Anywhere in the address.
    Word(String),
    /// A host with its subdomains, and the segments that its path begins with.
    Page(String, Vec<String>),
    /// The whole address, `*` for anything.
    Glob(String),
}

impl Pattern {
    /// Reads `host.example`, `host.example/path`, `word`, or a pattern with `*`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let body = trimmed.split_once("://").map_or(trimmed, |(_, body)| body);
        let normal = unescaped(body);
        let kind = if normal.contains('*') {
            Kind::Glob(normal)
        } else {
            let mut segments = segments(&normal);
            match segments.first() {
                None => {
                    return Err(format!(
                        "`{text}` blocks nothing; write a host, a host with a path, or a word"
                    ));
                }
                Some(host) if host.contains('.') => {
                    let host = segments.remove(0);
                    Kind::Page(host.strip_prefix("www.").unwrap_or(&host).to_owned(), segments)
                }
                Some(_) => Kind::Word(normal.trim_matches('/').to_owned()),
            }
        };
        Ok(Self { text: trimmed.to_owned(), kind })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn matches(&self, address: &Normal) -> bool {
        match &self.kind {
            Kind::Word(word) => address.whole.contains(word.as_str()),
            Kind::Page(host, path) => address.pieces.iter().any(|piece| stands_in(piece, host, path)),
            Kind::Glob(glob) => glob_matches(glob, &address.whole),
        }
    }

    /// Whether any page of a host may fit.
    pub(super) fn is_about(&self, host: &str) -> bool {
        match &self.kind {
            // A word may stand in the path, which nobody sees; in the name it is found by `matches`.
            Kind::Word(word) => host.contains(word.as_str()),
            Kind::Page(blocked, _) => is_host(host, blocked),
            Kind::Glob(glob) => {
                let of_host = glob.split('/').next().unwrap_or_default();
                glob_matches(of_host, host)
            }
        }
    }
}

fn stands_in(piece: &[String], host: &str, path: &[String]) -> bool {
    piece.iter().enumerate().any(|(at, segment)| is_host(segment, host) && piece[at + 1..].starts_with(path))
}

/// The host itself or one below it; a name before `@` is no part of it.
fn is_host(segment: &str, host: &str) -> bool {
    let segment = segment.rsplit('@').next().unwrap_or(segment);
    segment.strip_suffix(host).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// An address in the one spelling that patterns are compared with.
#[derive(Debug)]
pub(super) struct Normal {
    /// Host, path, query and fragment.
    whole: String,
    /// Segments of host and path, and of every part of path, query and fragment that may be an address itself.
    pieces: Vec<Vec<String>>,
}

impl Normal {
    pub(super) fn of(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        let path = unescaped(url.path());
        let rest: Vec<String> = [url.query(), url.fragment()].into_iter().flatten().map(unescaped).collect();
        let mut page = vec![host.to_lowercase()];
        page.extend(segments(&path));
        let barriers = ['?', '#', '&', '=', '|', ',', '"', '\'', ' ', '<', '>', '(', ')'];
        let inner = std::iter::once(&path).chain(&rest).flat_map(|part| part.split(barriers)).map(segments);
        let whole = page.join("/")
            + &[url.query().map(|_| "?"), url.fragment().map(|_| "#")]
                .into_iter()
                .flatten()
                .zip(&rest)
                .map(|(mark, part)| format!("{mark}{part}"))
                .collect::<String>();
        let pieces = std::iter::once(page.clone()).chain(inner.filter(|piece| !piece.is_empty())).collect();
        Self { whole, pieces }
    }
}

/// Without escapes, however often they were applied, in lower case, with plain forms of wide letters, dots and
/// slashes, and without what is not seen.
fn unescaped(text: &str) -> String {
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    for &byte in text.as_bytes() {
        bytes.push(byte);
        // A byte that comes out of an escape may complete the next one: `%2566` is `%66` is `f`. Each step
        // shortens what is there, so all of them together take linear time.
        while let [.., b'%', high, low] = bytes.as_slice() {
            let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { break };
            bytes.truncate(bytes.len() - 3);
            bytes.push(high * 16 + low);
        }
    }
    String::from_utf8_lossy(&bytes).chars().flat_map(plain).collect()
}

fn digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn plain(character: char) -> impl Iterator<Item = char> {
    let character = match character {
        '\\' | '\u{2044}' | '\u{2215}' => '/',
        '\u{3002}' | '\u{ff61}' | '\u{2024}' => '.',
        // Full-width forms follow ASCII.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(character) - 0xff01 + 0x21).unwrap_or(character),
        other => other,
    };
    let unseen = character.is_control()
        || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    (!unseen).then_some(character).into_iter().flat_map(char::to_lowercase)
}

/// The segments of a path: no empty ones, no `.`, `..` applied; parameters (`;x`), ports and dots at the end cut off.
fn segments(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for segment in text.split('/') {
        let segment = segment.split(';').next().unwrap_or_default().trim();
        match segment {
            "" | "." => {}
            ".." => drop(found.pop()),
            _ => {
                let without_port = match segment.rsplit_once(':') {
                    Some((host, port))
                        if port.bytes().all(|byte| byte.is_ascii_digit()) && host.contains('.') =>
                    {
                        host
                    }
                    _ => segment,
                };
                let bare = without_port.trim_end_matches('.');
                if !bare.is_empty() {
                    found.push(bare.to_owned());
                }
            }
        }
    }
    found
}

/// Whether a text fits a pattern in which `*` stands for anything.
fn glob_matches(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, url: &str, expected: bool) {
        let pattern = Pattern::parse(pattern).unwrap();
        let normal = Normal::of(&Url::parse(url).unwrap());
        assert_eq!(pattern.matches(&normal), expected, "{pattern:?} {normal:?}");
    }

    #[test]
    fn pages_in_every_spelling() {
        for url in [
            "https://huggingface.co/datasets",
            "https://huggingface.co/datasets/gaia-benchmark/GAIA",
            "http://HuggingFace.CO/DataSets/x",
            "https://www.huggingface.co/datasets/x",
            "https://cdn.huggingface.co/datasets/x",
            "https://huggingface.co./datasets/x",
            "https://huggingface.co:443/datasets/x",
            "https://huggingface.co:8443/datasets/x",
            "https://huggingface.co//datasets//x",
            "https://huggingface.co/./datasets/x",
            "https://huggingface.co/models/../datasets/x",
            "https://huggingface.co/models/%2e%2e/datasets/x",
            "https://huggingface.co/models/..%2fdatasets/x",
            "https://huggingface.co/%64atasets/x",
            "https://huggingface.co/%2564atasets/x",
            "https://huggingface.co/%252564atasets/x",
            "https://huggingface.co/datasets;v=1/x",
            "https://huggingface.co/datasets%20/x",
            "https://huggingface.co/datasets%00/x",
            "https://huggingface.co\\datasets\\x",
            "https://huggingface.co/%5cdatasets",
            "https://user:pw@huggingface.co/datasets/x",
            "https://huggingface.co/datasets?x=1#y",
            "https://\u{ff48}uggingface\u{3002}co/datasets/x",
            "https://huggingface.co/\u{ff44}atasets/x",
            "https://huggingface.co/data\u{ad}sets/x",
            "https://huggingface.co/%3F/..%2Fdatasets/x",
            "https://web.archive.org/web/2024/https://huggingface.co/datasets/x",
            "https://r.jina.ai/https://huggingface.co/datasets/x",
            "https://r.jina.ai/huggingface.co/datasets/x",
            "https://translate.example/?u=https%3A%2F%2Fhuggingface.co%2Fdatasets%2Fx",
            "https://translate.example/#https://huggingface.co/datasets/x",
            "https://cache.example/search?q=cache:x,https://huggingface.co:443/datasets/x",
        ] {
            check("huggingface.co/datasets", url, true);
        }
        for url in [
            "https://huggingface.co/",
            "https://huggingface.co/docs/datasets/index",
            "https://huggingface.co/datasets-server",
            "https://nothuggingface.co/datasets/x",
            "https://huggingface.co.example/datasets/x",
            "https://huggingface.com/datasets/x",
            "https://example.org/?q=huggingface.co&page=datasets",
            "https://example.org/datasets/huggingface.co",
        ] {
            check("huggingface.co/datasets", url, false);
        }
    }

    #[test]
    fn words_sites_and_globs() {
        check("unifuncs", "https://api.unifuncs.com/x", true);
        check("unifuncs", "https://example.org/UniFuncs", true);
        check("unifuncs", "https://example.org/?a=u%6eifuncs", true);
        check("unifuncs", "https://example.org/uni-funcs", false);
        check("example.org", "https://a.b.example.org/x", true);
        check("https://www.example.org/", "https://example.org/x", true);
        check("example.org", "https://example.org.evil.test/", false);
        check("*.example.org/private/*", "https://a.example.org/private/x", true);
        check("*.example.org/private/*", "https://a.example.org/public/x", false);
        check("example.org/*.zip", "https://example.org/a/b.zip", true);
        check("example.org/*.zip", "https://example.org/a/b.zip2", false);
        check("a*a", "https://a/", false);
        for nothing in ["", "  ", "/", "https://", "..."] {
            assert!(Pattern::parse(nothing).is_err(), "{nothing}");
        }
    }

    /// Quadratic time would keep this from ending.
    #[test]
    fn hostile_addresses_are_compared_in_the_end() {
        for part in ["%25", "../", "a;", "https://huggingface.co/", "?&="] {
            let url = Url::parse(&format!("https://h.test/{}", part.repeat(20_000))).unwrap();
            let normal = Normal::of(&url);
            assert!(!Pattern::parse("huggingface.co/datasets").unwrap().matches(&normal), "{part}");
        }
    }
}
