//! Takes keys out of words that come from elsewhere.
//!
//! Servers and proxies echo keys in their error messages, whole or masked in the middle; what goes into
//! errors and logs passes through here first.

use crate::Secret;

const MASK: &str = "***";
/// Shortest key that is looked for: shorter ones (`x`, `EMPTY`) are placeholders and occur in any text.
const SHORTEST: usize = 8;
/// Characters at a key's beginning by which a masked echo of it is known.
const BEGINNING: usize = 6;

/// Knows the secrets of one endpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scrubber {
    secrets: Vec<Secret>,
}

impl Scrubber {
    /// Takes out the given secrets; those that are too short to be told from words are let be.
    pub(crate) fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let secrets = secrets.into_iter().filter(|secret| secret.expose().trim().len() >= SHORTEST).collect();
        Self { secrets }
    }

    /// The text without the secrets, and without words that are a secret masked in the middle.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            let secret = secret.expose().trim();
            if text.contains(secret) {
                text = text.replace(secret, MASK);
            }
            if let Some(beginning) = secret.get(..BEGINNING)
                && text.contains(beginning)
            {
                text = mask_words(&text, beginning);
            }
        }
        text
    }
}

/// Replaces every run of key-like characters that starts with the given ones.
fn mask_words(text: &str, beginning: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(beginning) {
        let (head, tail) = rest.split_at(start);
        masked.push_str(head);
        let inside_word = head.chars().next_back().is_some_and(is_key_character);
        let end = tail.find(|c: char| !is_key_character(c)).unwrap_or(tail.len());
        let (word, after) = tail.split_at(end);
        masked.push_str(if inside_word { word } else { MASK });
        rest = after;
    }
    masked.push_str(rest);
    masked
}

fn is_key_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '*' | '.' | '•' | '…')
}

#[cfg(test)]
mod tests {
    use super::Scrubber;
    use crate::Secret;

    #[test]
    fn takes_out_whole_and_masked_keys() {
        let scrubber = Scrubber::new([Secret::new("sk-proj-abcdef123456")]);
        let check = |text: &str, expected: &str| assert_eq!(scrubber.scrub(text), expected);
        check("bad key sk-proj-abcdef123456!", "bad key ***!");
        check("Incorrect API key provided: sk-proj-****3456. See", "Incorrect API key provided: *** See");
        check("\"sk-proj-abc…\" is wrong", "\"***\" is wrong");
        check("nothing here: task-projects", "nothing here: task-projects");
        check("", "");
    }

    #[test]
    fn leaves_words_that_are_too_short_for_a_key() {
        let scrubber = Scrubber::new([Secret::new("EMPTY"), Secret::new("")]);
        assert_eq!(scrubber.scrub("the EMPTY list"), "the EMPTY list");
    }
}
