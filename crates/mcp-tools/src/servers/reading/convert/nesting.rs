//! How deep the elements of a page are nested.
//!
//! Decides an upper bound in one pass, so that a page that was made to exhaust the stack of recursive
//! code is found before it is parsed.

use std::collections::HashMap;

/// Closed by their neighbours or never open: they nest through others only, and those are counted.
#[rustfmt::skip]
const NOT_COUNTED: &[&str] = &[
    "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup", "option", "optgroup", "rt", "rp",
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
];

/// The deepest that elements are nested, counted too high rather than too low. End tags count against
/// start tags of their own name only, because a page's parser passes over those that fit nothing.
pub(super) fn depth(html: &str) -> usize {
    let mut open: HashMap<&[u8], usize> = HashMap::new();
    let mut lower = [0u8; 32];
    let (mut depth, mut deepest) = (0usize, 0usize);
    let bytes = html.as_bytes();
    for at in memchr::memchr_iter(b'<', bytes) {
        let mut name = &bytes[at + 1..];
        let closes = name.first() == Some(&b'/');
        if closes {
            name = &name[1..];
        }
        let length = name
            .iter()
            .take(lower.len())
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-')
            .count();
        if length == 0 || !name[0].is_ascii_alphabetic() {
            continue;
        }
        let name = &name[..length];
        lower[..length].copy_from_slice(name);
        lower[..length].make_ascii_lowercase();
        if NOT_COUNTED.iter().any(|known| known.as_bytes() == &lower[..length]) {
            continue;
        }
        // The same element in other letters is another key: counted too high.
        let count = open.entry(name).or_default();
        if !closes {
            *count += 1;
            depth += 1;
            deepest = deepest.max(depth);
        } else if *count > 0 {
            *count -= 1;
            depth -= 1;
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_never_counted_too_low() {
        let check = |html: &str, expected: usize| {
            assert_eq!(depth(html), expected, "{}", &html[..html.len().min(60)])
        };
        check("", 0);
        check("<div><span></span></div><div></div>", 2);
        check("<p>a<p>b<ul><li>c<li>d</ul>", 1);
        check("a < b <3 </ <", 0);
        check(&"<div>".repeat(500), 500);
        check(&"<div></x>".repeat(500), 500);
        check(&"<div><b></b></div>".repeat(500), 2);
        check(&"<Div></div>".repeat(50), 50);
    }
}
