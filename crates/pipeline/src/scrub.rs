//! Takes secrets out of lines that are about to be written or passed on.
//!
//! Decides which values are secrets: those of variables whose names say so, and the key in use. What is shown of a
//! configuration is decided in `config`.

use llm_providers::Environment;

use crate::config::is_secret_name;

/// What stands in place of a secret.
pub const SCRUBBED: &str = "***";

/// Shorter values are not taken for secrets: replacing them would spoil ordinary text.
const SHORTEST: usize = 8;

/// Replaces known secrets in lines of JSON.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Scrubber {
    /// As JSON writes them, longest first, so that a secret inside another does not spoil the longer one.
    secrets: Vec<String>,
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Scrubber({} secrets)", self.secrets.len())
    }
}

impl Scrubber {
    /// A scrubber of the given values.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all: Vec<String> = secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.len() >= SHORTEST)
            .map(inside_json)
            .collect();
        all.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
        Self { secrets: all }
    }

    /// A scrubber of every variable whose name marks it as a secret, and of further values.
    pub fn of_environment<'a>(
        environment: &'a Environment,
        further: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let marked = environment.variables().iter().filter(|(name, _)| is_secret_name(name));
        Self::new(marked.map(|(_, value)| value.as_str()).chain(further))
    }

    /// Whether a secret stands in the line of JSON.
    #[must_use]
    pub fn finds_secret(&self, line: &str) -> bool {
        self.secrets.iter().any(|secret| line.contains(secret.as_str()))
    }

    /// The line of JSON without secrets.
    #[must_use]
    pub fn scrub(&self, mut line: String) -> String {
        for secret in &self.secrets {
            if line.contains(secret.as_str()) {
                line = line.replace(secret.as_str(), SCRUBBED);
            }
        }
        line
    }
}

/// A text as it stands between the quotes of a JSON string.
fn inside_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let scrubber =
            Scrubber::new(["abcdefgh", "abcdefgh-longer", "short", "line\nbreak-secret", "abcdefgh"]);
        for (text, expected) in [
            ("x abcdefgh y", "x *** y"),
            ("x abcdefgh-longer y", "x *** y"),
            ("short stays", "short stays"),
            (r#""line\nbreak-secret""#, "\"***\""),
            ("", ""),
        ] {
            assert_eq!(scrubber.scrub(text.to_owned()), expected);
        }
        assert_eq!(format!("{scrubber:?}"), "Scrubber(3 secrets)");
    }

    #[test]
    fn variables() {
        let environment =
            Environment::from([("OPENAI_API_KEY", "sk-0123456789"), ("OPENAI_BASE_URL", "http://host")]);
        let scrubber = Scrubber::of_environment(&environment, ["further-secret"]);
        assert_eq!(scrubber.scrub("sk-0123456789 http://host further-secret".into()), "*** http://host ***");
    }
}
