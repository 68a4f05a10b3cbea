//! A reply without calls in which the model declines the task.

/// The first configured phrase that stands in the text. The text is what is outside thinking.
#[must_use]
pub fn detect<'a>(text: &str, phrases: &'a [String]) -> Option<&'a str> {
    phrases.iter().map(String::as_str).find(|phrase| !phrase.is_empty() && text.contains(phrase))
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
            ("I'm sorry, I cannot solve this.", true),
            ("I'm sorry to say that he died in 1832.", false),
            ("", false),
        ] {
            assert_eq!(detect(text, &phrases).is_some(), expected, "{text}");
        }
        assert_eq!(detect("anything", &[String::new()]), None);
    }
}
