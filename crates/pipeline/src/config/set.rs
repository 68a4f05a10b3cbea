//! `--set key.path=value`.
//!
//! Decides how the option reads: the value is YAML, and `llm=NAME` chooses a file as `--llm NAME` does.

use super::defaults::{Group, file_name};
use super::error::{ConfigError, ConfigErrorKind};
use super::layer::{Layers, Origin};
use super::node::{Node, NodeValue};
use super::yaml;

/// One `--set` that could be read.
pub(crate) enum Setting {
    /// A value for a key.
    Value { key: String, path: Vec<String>, node: Node },
    /// A file for a group.
    Choice { group: Group, name: String },
}

/// Reads all of them; the errors name those that cannot be read.
pub(crate) fn read(sets: &[String], errors: &mut Vec<ConfigError>) -> Vec<Setting> {
    let mut settings = Vec::new();
    for set in sets {
        match read_one(set) {
            Ok(setting) => settings.push(setting),
            Err(error) => errors.push(error),
        }
    }
    settings
}

/// A layer for each value, in the order given.
pub(crate) fn add_layers(settings: Vec<Setting>, layers: &mut Layers) {
    for setting in settings {
        if let Setting::Value { key, path, node } = setting {
            layers.push(Origin::Set { key }, node.nested(&path));
        }
    }
}

fn read_one(set: &str) -> Result<Setting, ConfigError> {
    let Some((key, value)) = set.split_once('=') else {
        let message = "there is no `=` in it";
        return Err(error(message, set).hinted(
            "The form is key.path=value, such as agent.main_agent.max_turns=4 or llm.model_name=gpt-5.",
        ));
    };
    let key = key.trim();
    let path = path_of(key)?;
    let node = yaml::parse(value).map_err(|problem| {
        ConfigError::new(ConfigErrorKind::Set, format!("the value is not YAML: {}", problem.message))
            .key(key)
            .place(place(key))
            .hinted(format!("Quote it to take it as text: '{key}=\"…\"'."))
    })?;
    if let ([section], Some(name)) = (path.as_slice(), node.text())
        && let (Some(group), NodeValue::Scalar(_)) = (Group::from_name(section), &node.value)
    {
        return Ok(Setting::Choice { group, name: file_name(name) });
    }
    Ok(Setting::Value { key: key.to_owned(), path, node })
}

/// The steps of `a.b."c.d"`.
fn path_of(key: &str) -> Result<Vec<String>, ConfigError> {
    let mut path = Vec::new();
    let mut rest = key;
    loop {
        let (step, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let Some((step, after)) = quoted.split_once('"') else {
                    return Err(error("a quote in the key is not closed", key));
                };
                (step, after)
            }
            None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
        };
        if step.trim().is_empty() {
            return Err(error("a name in the key is empty", key)
                .hinted("The form is key.path=value, such as agent.main_agent.max_turns=4."));
        }
        if step.contains(['[', ']']) {
            return Err(
                error("the key picks an item of a list", key).hinted("Give the whole list: key=[a, b].")
            );
        }
        path.push(step.to_owned());
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(path),
            None => return Err(error("something stands after the closing quote", key)),
        }
    }
}

/// The key of a setting `key.path=value`: what stands before the first `=`.
#[must_use]
pub fn key_of_set(set: &str) -> &str {
    set.split('=').next().unwrap_or_default().trim()
}

fn error(message: &str, set: &str) -> ConfigError {
    // A value is never shown.
    ConfigError::new(ConfigErrorKind::Set, message).place(place(key_of_set(set)))
}

fn place(key: &str) -> String {
    let shown: String = key.chars().take(80).collect();
    format!("--set {shown}")
}
