//! What must not be shown.
//!
//! Decides that the values of keys and variables whose names mean a secret are hidden wherever they turn up in
//! something that is printed: in another value, in an error, in an address.

use std::collections::BTreeMap;

pub use mcp_tools::is_secret_name;
use serde_json::Value;

use super::node::{Node, NodeValue};

/// What stands for a secret.
pub(crate) const MASK: &str = "***";
/// Shorter texts are hidden only where a name says that they are secret.
const SHORTEST: usize = 6;

/// The secrets that are known, longest first.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    secrets: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Redactor({} secrets)", self.secrets.len())
    }
}

impl Redactor {
    pub(crate) fn new(environment: &BTreeMap<String, String>) -> Self {
        let mut redactor = Self::default();
        for (name, value) in environment {
            if is_secret_name(name) {
                redactor.add(value);
            }
        }
        redactor
    }

    /// Learns the values of all keys whose names mean a secret, and what addresses hide.
    pub(crate) fn learn(&mut self, node: &Node) {
        match &node.value {
            NodeValue::Scalar(scalar) => {
                for secret in in_address(&scalar.text) {
                    self.add(secret);
                }
            }
            NodeValue::List(list) => list.items.iter().for_each(|item| self.learn(item)),
            NodeValue::Map(entries) => {
                for entry in entries {
                    match &entry.node.value {
                        NodeValue::Scalar(scalar) if is_secret_name(&entry.key) => self.add(&scalar.text),
                        _ => self.learn(&entry.node),
                    }
                }
            }
        }
    }

    fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= SHORTEST && !self.secrets.iter().any(|known| known == secret) {
            let at = self.secrets.partition_point(|known| known.len() > secret.len());
            self.secrets.insert(at, secret.to_owned());
        }
    }

    /// A text with every known secret, and every password in an address, hidden.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        for secret in &self.secrets {
            if shown.contains(secret.as_str()) {
                shown = shown.replace(secret.as_str(), MASK);
            }
        }
        without_query_secrets(&without_password(&shown))
    }

    /// A value with all its texts so treated, and the values of secret names hidden whole.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(entries) => {
                for (name, value) in entries {
                    if is_secret_name(name) && (value.is_string() || value.is_number()) {
                        *value = Value::String(MASK.to_owned());
                    } else {
                        self.value(value);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// The password of an address, and the values of its parameters whose names mean a secret.
fn in_address(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split_once("://").map_or("", |(_, after)| after);
    let (place, query) = after.split_once('?').unwrap_or((after, ""));
    let user = place.split('/').next().and_then(|host| host.rsplit_once('@')).map(|(user, _)| user);
    let password = user.map(|user| user.split_once(':').map_or(user, |(_, password)| password));
    let parameters = query.split(['&', '#']).filter_map(|part| part.split_once('='));
    password
        .into_iter()
        .chain(parameters.filter(|(name, _)| is_secret_parameter(name)).map(|(_, value)| value))
}

fn is_secret_parameter(name: &str) -> bool {
    name == "key" || is_secret_name(name)
}

/// `http://user:password@host` → `http://***@host`.
pub(crate) fn without_password(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(['/', '?', '#', ' ', '"', '\'']).unwrap_or(after.len());
        match after[..end].rfind('@') {
            Some(at) => {
                shown.push_str(MASK);
                rest = &after[at..];
            }
            None => rest = after,
        }
    }
    shown.push_str(rest);
    shown
}

/// `?api_key=…` → `?api_key=***`.
pub(crate) fn without_query_secrets(text: &str) -> String {
    if !text.contains("://") {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for (index, part) in text.split_inclusive(['?', '&']).enumerate() {
        let (body, separator) = match part.strip_suffix(['?', '&']) {
            Some(body) => (body, &part[body.len()..]),
            None => (part, ""),
        };
        match body.split_once('=') {
            Some((name, value)) if index > 0 && is_secret_parameter(name) => {
                let is_end = |c: char| c.is_whitespace() || matches!(c, '#' | '"' | '\'' | ')' | '>' | '`');
                let rest = value.find(is_end).and_then(|end| value.get(end..)).unwrap_or_default();
                shown.push_str(&format!("{name}={MASK}{rest}{separator}"));
            }
            _ => shown.push_str(part),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_secrets() {
        let environment =
            [("A_API_KEY", "sk-one"), ("B_TOKEN", "sk-one-two"), ("C_TOKEN", "12"), ("HOME", "/home/me")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let redactor = Redactor::new(&environment);
        for (text, expected) in [
            ("x sk-one-two y sk-one", "x *** y ***"),
            ("12 in /home/me", "12 in /home/me"),
            ("http://me:pw@host/v1", "http://***@host/v1"),
            ("http://host/v1?a=b&key=abc&api_key=x#f", "http://host/v1?a=b&key=***&api_key=***#f"),
            ("http://host/a@b", "http://host/a@b"),
            ("key=abc", "key=abc"),
            ("://", "://"),
        ] {
            assert_eq!(redactor.text(text), expected, "{text}");
        }
    }
}
