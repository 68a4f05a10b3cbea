//! How problems with values are told: the key, its place, what was expected, what was probably meant.

use std::collections::BTreeMap;

use serde_json::Value;

use super::FathomConfig;
use super::error::{ConfigError, ConfigErrorKind};
use super::interpolate::{Trouble, Unresolved};
use super::layer::{Layers, Origin};
use super::nearest::nearest;
use super::node::{Node, Step, path_text};
use super::redact::{Redactor, is_secret_name};
use super::typed::{Problem, ProblemKind};

/// A value that the typed reader could not take.
pub(crate) fn problem(problem: &Problem, layers: &Layers, redactor: &Redactor) -> ConfigError {
    let key = path_text(&problem.path);
    let shown = |found: &str| shown(found, &problem.path, redactor);
    let error = match &problem.kind {
        ProblemKind::UnknownKey { valid } => unknown_key(&problem.path, valid),
        ProblemKind::UnknownWord { found, valid } => {
            let found = if in_secret(&problem.path) {
                "this".to_owned()
            } else {
                format!("`{}`", redactor.text(found))
            };
            let message = format!("{found} is none of the words known here: {}", valid.join(", "));
            suggest(ConfigError::new(ConfigErrorKind::UnknownName, message), nearest_word(&problem.kind))
        }
        ProblemKind::WrongType { expected, found } => {
            let expected = if expected == "a string" { "text" } else { expected };
            let message = format!("expected {expected}, found {}", shown(found));
            let error = ConfigError::new(ConfigErrorKind::WrongType, message);
            match type_hint(expected, found) {
                Some(hint) => error.hinted(hint),
                None => error,
            }
        }
        ProblemKind::MissingKey { key } => {
            ConfigError::new(ConfigErrorKind::MissingValue, format!("the key `{key}` must be given here"))
        }
        ProblemKind::Other { message } => {
            let message = if in_secret(&problem.path) {
                "the value cannot be used".to_owned()
            } else {
                redactor.text(message)
            };
            ConfigError::new(ConfigErrorKind::WrongType, message)
        }
    };
    error.key(key).place(layers.origin(problem.mark).to_string())
}

/// A `${…}` or `???` that has no value.
pub(crate) fn unresolved(
    unresolved: &Unresolved,
    layers: &Layers,
    environment: &BTreeMap<String, String>,
) -> ConfigError {
    let key = path_text(&unresolved.path);
    let error = match &unresolved.problem {
        Trouble::Mandatory => {
            ConfigError::new(ConfigErrorKind::MissingValue, "the value must be given (`???`)")
                .hinted(format!("Give it with --set {key}=VALUE or in a file that lies above."))
        }
        Trouble::NotSet { variable, empty } => {
            let state = if *empty { "set and empty" } else { "not set" };
            let message = format!("the environment variable {variable} is {state}");
            let error = ConfigError::new(ConfigErrorKind::Interpolation, message);
            let near =
                nearest(variable, environment.keys().map(String::as_str)).filter(|near| *near != variable);
            error.hinted(match near {
                Some(near) => format!(
                    "There is {near}. Set {variable}, or write a default: ${{env:{variable},default}}."
                ),
                None => format!(
                    "Set it in the environment or in `.env`, or write a default: ${{env:{variable},default}}."
                ),
            })
        }
        Trouble::Malformed { message } => ConfigError::new(ConfigErrorKind::Interpolation, message.clone())
            .hinted("The forms are ${env:NAME} and ${env:NAME,default}; write \\${ for the two characters."),
    };
    error.key(key).place(layers.origin(unresolved.mark).to_string())
}

/// A value of the right type that makes no sense.
pub(crate) fn out_of_range(
    path: &[Step],
    expected: String,
    tree: &Node,
    layers: &Layers,
    redactor: &Redactor,
) -> ConfigError {
    let found = match tree.find(path) {
        Some(node) if node.text().is_some() => format!(", found {}", shown(&node.describe(), path, redactor)),
        _ => String::new(),
    };
    ConfigError::new(ConfigErrorKind::OutOfRange, format!("expected {expected}{found}"))
        .key(path_text(path))
        .place(place(path, tree, layers).to_string())
}

/// Something that is allowed and probably not meant.
pub(crate) fn warning(path: &[Step], message: &str, tree: &Node, layers: &Layers) -> String {
    format!("`{}` in {}: {message}.", path_text(path), place(path, tree, layers))
}

/// Where a value was written, or the nearest map or list around it.
pub(crate) fn place(path: &[Step], tree: &Node, layers: &Layers) -> Origin {
    let known = (1..=path.len()).rev().find_map(|length| tree.find(&path[..length]));
    known.map_or(Origin::Default, |node| layers.origin(node.mark))
}

fn unknown_key(path: &[Step], valid: &[String]) -> ConfigError {
    let written = match path.last() {
        Some(Step::Key(key)) => key.as_str(),
        _ => "",
    };
    let message = match valid {
        [] => "there is no such key".to_owned(),
        valid => format!("there is no such key; there are {}", valid.join(", ")),
    };
    let error = ConfigError::new(ConfigErrorKind::UnknownKey, message);
    let elsewhere = elsewhere(written);
    let near = nearest(written, valid.iter().map(String::as_str));
    match (elsewhere.as_slice(), near) {
        ([], near) => suggest(error, near),
        (places, None) => error.hinted(format!("Did you mean `{}`?", places.join("` or `"))),
        (places, Some(near)) => {
            error.hinted(format!("Did you mean `{near}`? A key of this name is `{}`.", places.join("` or `")))
        }
    }
}

/// The paths at which there is a key of exactly this name.
fn elsewhere(written: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(defaults) = serde_json::to_value(FathomConfig::default()) {
        search(&defaults, written, &mut Vec::new(), &mut found);
    }
    found.truncate(3);
    found
}

fn search(value: &Value, written: &str, path: &mut Vec<Step>, found: &mut Vec<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        path.push(Step::Key(key.clone()));
        if key == written {
            found.push(path_text(path));
        }
        search(value, written, path, found);
        path.pop();
    }
}

fn nearest_word(kind: &ProblemKind) -> Option<&str> {
    match kind {
        ProblemKind::UnknownWord { found, valid } => nearest(found, valid.iter().map(String::as_str)),
        _ => None,
    }
}

fn suggest(error: ConfigError, near: Option<&str>) -> ConfigError {
    match near {
        Some(near) => error.hinted(format!("Did you mean `{near}`?")),
        None => error,
    }
}

fn type_hint(expected: &str, found: &str) -> Option<&'static str> {
    let scalar = expected.contains("number") || expected.starts_with("true");
    if scalar && found.starts_with("the quoted text") {
        Some("Quotes make text of it: leave them out.")
    } else if found == "nothing" {
        Some("Leave the key out to keep its default.")
    } else {
        None
    }
}

/// What was found, unless that may be a secret.
fn shown(found: &str, path: &[Step], redactor: &Redactor) -> String {
    let is_text = found.contains(['`', '"']);
    if is_text && in_secret(path) {
        "a value that is not shown here".to_owned()
    } else {
        redactor.text(found)
    }
}

fn in_secret(path: &[Step]) -> bool {
    path.iter().any(|step| matches!(step, Step::Key(key) if is_secret_name(key)))
}
