//! A reply without calls in which the model declines the task.

use std::borrow::Cow;

/// The first configured phrase that stands in the text, whichever kind of apostrophe either of them has. The text is
/// what is outside thinking.
#[must_use]
pub fn detect<'a>(text: &str, phrases: &'a [String]) -> Option<&'a str> {
    let text = straight(text);
    phrases.iter().map(String::as_str).find(|phrase| !phrase.is_empty() && text.contains(&*straight(phrase)))
}

/// The text with straight apostrophes.
fn straight(text: &str) -> Cow<'_, str> {
    if text.contains('’') { Cow::Owned(text.replace('’', "'")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::detect;
    use crate::AgentConfig;

    #[test]
    fn default_phrases() {
        let phrases = AgentConfig::default().refusal_phrases;
        for (text, expected) in [
            ("Due to time constraints I stop.", true),
            ("I'm sorry, but I can't help.", true),
            ("I’m sorry, but I can’t help.", true),
            ("I’m sorry, but I can't help.", true),
            ("I’m sorry, I cannot solve this.", true),
            ("I'm sorry, I cannot solve this.", true),
            ("I'm sorry to say that he died in 1832.", false),
            ("", false),
        ] {
            assert_eq!(detect(text, &phrases).is_some(), expected, "{text}");
        }
        assert_eq!(detect("anything", &[String::new()]), None);
    }
}
