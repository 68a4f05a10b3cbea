//! A resolved configuration for people and programs: every value with its origin, no secret.

use serde_json::{Map, Value, json};

use super::layer::Origin;
use super::node::{Plain, Scalar, Step, path_text};
use super::resolve::{Provenance, Resolved};

/// The column that origins begin at, where the value leaves room.
const ORIGIN_COLUMN: usize = 48;

impl Resolved {
    /// The configuration as JSON; secrets are `***`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut value = serde_json::to_value(&self.config).unwrap_or_else(|_| Value::Object(Map::new()));
        self.redactor.value(&mut value);
        value
    }

    /// Where the value of a key came from; for an item of a list, where the list did.
    #[must_use]
    pub fn origin_of(&self, key: &str) -> Origin {
        let mut key = key;
        loop {
            match (self.origins.get(key), key.rfind('[')) {
                (Some(provenance), _) => return provenance.origin.clone(),
                (None, Some(end)) => key = &key[..end],
                (None, None) => return Origin::Default,
            }
        }
    }

    /// `config show` as JSON: the values, the origins of those that are not defaults, what is accepted and unused.
    #[must_use]
    pub fn show_json(&self) -> Value {
        json!({
            "config": self.to_json(),
            "origins": self.origins,
            "files": self.files.iter().map(|file| json!({"path": file.path, "built_in": file.built_in})).collect::<Vec<_>>(),
            "accepted_unused": self.accepted_unused,
            "warnings": self.warnings,
        })
    }

    /// `config show` as YAML: every value, with its origin as a comment.
    #[must_use]
    pub fn show_yaml(&self) -> String {
        let mut out = String::new();
        if let Value::Object(entries) = self.to_json() {
            self.write(&entries, &mut Vec::new(), &mut out);
        }
        out
    }

    fn write(&self, entries: &Map<String, Value>, path: &mut Vec<Step>, out: &mut String) {
        for (key, value) in entries {
            path.push(Step::Key(key.clone()));
            let indent = "  ".repeat(path.len() - 1);
            let start = format!("{indent}{}:", text(key));
            match value {
                Value::Object(entries) if !entries.is_empty() => {
                    out.push_str(&start);
                    out.push('\n');
                    self.write(entries, path, out);
                }
                value => {
                    let line = format!("{start} {}", flow(value));
                    let width = line.chars().count().max(ORIGIN_COLUMN);
                    let origin = self.comment(&path_text(path));
                    out.push_str(&format!("{line:width$}  # {origin}\n"));
                }
            }
            path.pop();
        }
    }

    fn comment(&self, key: &str) -> String {
        let origin = self.origin_of(key).to_string();
        let variables = self.origins.get(key).map_or(&[][..], |Provenance { variables, .. }| variables);
        let comment = match variables {
            [] => origin,
            variables => format!("{origin}, from {}", variables.join(", ")),
        };
        comment.replace(['\n', '\r'], " ")
    }
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(string) => text(string),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", text(key), flow(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// A text as YAML reads it back: bare where it is plain, else in JSON's quotes, which YAML understands.
fn text(string: &str) -> String {
    let is_plain_character = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let scalar = Scalar { text: string.to_owned(), quoted: false, variables: Vec::new() };
    let is_plain = string.starts_with(|c: char| c.is_ascii_alphabetic())
        && string.chars().all(is_plain_character)
        && scalar.plain() == Plain::Text
        && scalar.as_bool().is_none();
    if is_plain { string.to_owned() } else { Value::from(string).to_string() }
}
