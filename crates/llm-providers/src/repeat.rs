//! Whether a reply has run into a loop.

use memchr::memmem;

/// Characters at the end of a reply that are looked for in the rest.
const TAIL: usize = 50;
/// Occurrences, the end itself included, beyond which the reply counts as a loop.
const MOST: usize = 5;

/// Whether the last 50 characters occur more than 5 times, counted without overlap. Shorter replies
/// cannot. Linear in the text.
pub(crate) fn has_repeated_tail(text: &str) -> bool {
    let Some((start, _)) = text.char_indices().rev().nth(TAIL - 1) else { return false };
    let Some(tail) = text.get(start..) else { return false };
    memmem::find_iter(text.as_bytes(), tail.as_bytes()).take(MOST + 1).count() > MOST
}

#[cfg(test)]
mod tests {
    use super::has_repeated_tail;

    #[test]
    fn finds_loops_only() {
        let check = |text: &str, expected: bool| assert_eq!(has_repeated_tail(text), expected, "{text:.60}");
        let sentence = "I should check this claim in one more source now. ";
        assert_eq!(sentence.chars().count(), 50);
        check(&sentence.repeat(6), true);
        check(&sentence.repeat(5), false);
        check(&format!("A beginning. {}", sentence.repeat(9)), true);
        check("", false);
        check("short", false);
        check(&"a".repeat(300), true);
        check(&"a".repeat(299), false);
        check(&"深".repeat(300), true);
        check(&format!("{}The end.", sentence.repeat(40)), false);
    }
}
