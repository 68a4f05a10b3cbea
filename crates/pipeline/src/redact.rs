//! Takes secrets out of text. Decides what counts as a secret value among environment variables, and replaces
//! every one wherever it stands, also as JSON writes it.

use std::collections::BTreeMap;

/// What stands in place of a secret.
pub const REDACTED: &str = "***";

/// Shorter values are not taken for secrets: replacing them would spoil ordinary text.
const SHORTEST: usize = 8;

/// Parts of variable names that mark a secret.
const MARKS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// Replaces known secrets.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret inside another does not spoil the longer one.
    secrets: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Redactor({} secrets)", self.secrets.len())
    }
}

impl Redactor {
    /// A redactor of the given values.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Vec::new();
        for secret in secrets {
            let secret = secret.trim();
            if secret.len() < SHORTEST {
                continue;
            }
            let as_json = serde_json::Value::from(secret).to_string();
            let inner = as_json.trim_matches('"').to_owned();
            let escaped = as_json.get(1..as_json.len() - 1).map_or(inner, str::to_owned);
            all.push(secret.to_owned());
            if escaped != secret {
                all.push(escaped);
            }
        }
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Self { secrets: all }
    }

    /// A redactor of every variable whose name marks it as a secret, and of further values.
    pub fn of_environment<'a>(
        environment: &'a BTreeMap<String, String>,
        further: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let marked =
            environment.iter().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value.as_str());
        Self::new(marked.chain(further))
    }

    /// The text without secrets.
    #[must_use]
    pub fn redact(&self, mut text: String) -> String {
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        text
    }
}

/// Whether a variable of this name holds a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    MARKS.iter().any(|mark| name.split('_').any(|part| part == *mark || part.strip_suffix('S') == Some(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, expected) in [
            ("OPENAI_API_KEY", true),
            ("E2B_API_KEY", true),
            ("TENCENTCLOUD_SECRET_ID", true),
            ("HF_TOKEN", true),
            ("MAX_TOKENS", true),
            ("KEYBOARD", false),
            ("HOME", false),
            ("OPENAI_BASE_URL", false),
        ] {
            assert_eq!(is_secret_name(name), expected, "{name}");
        }
    }

    #[test]
    fn values() {
        let redactor = Redactor::new(["abcdefgh", "abcdefgh-longer", "short", "line\nbreak-secret"]);
        for (text, expected) in [
            ("x abcdefgh y", "x *** y"),
            ("x abcdefgh-longer y", "x *** y"),
            ("short stays", "short stays"),
            (r#""line\nbreak-secret""#, "\"***\""),
            ("", ""),
        ] {
            assert_eq!(redactor.redact(text.to_owned()), expected);
        }
        assert_eq!(format!("{redactor:?}"), "Redactor(4 secrets)");
    }
}
