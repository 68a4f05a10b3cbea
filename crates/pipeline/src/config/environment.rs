//! Environment variables and `.env` files: what is in force, and what of it is configuration.
//!
//! Decides that the environment wins over `.env`, that `FATHOM_LLM__BASE_URL` is `llm.base_url`, and which other
//! `FATHOM_` names there are. The process's environment itself is read by the caller.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::defaults::Group;
use super::error::{ConfigError, ConfigErrorKind};
use super::layer::{Layers, Origin};
use super::nearest::nearest;
use super::node::{List, Mark, Node, NodeValue};
use super::yaml;

/// What a variable of ours begins with.
pub const PREFIX: &str = "FATHOM_";

/// Variables with our prefix that are no configuration keys, and what they are for.
pub const OTHER_VARIABLES: [(&str, &str); 6] = [
    ("FATHOM_LOG", "which log lines are written (`debug`, `mcp_tools=trace`)"),
    ("FATHOM_LOCAL_SERVERS", "addresses at which model servers on this machine are looked for"),
    ("FATHOM_MCP_TOKEN", "what clients of `mcp serve --http` must send, as `--token`"),
    ("FATHOM_CONF_DIR", "as `--conf-dir`"),
    ("FATHOM_RUNS_DIR", "as `--runs-dir`"),
    ("FATHOM_CACHE_DIR", "where collections and indexes are kept"),
];

/// The variables in force, each with the `.env` line that set it where one did.
#[derive(Default)]
pub(crate) struct Variables {
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) dotenv: BTreeMap<String, String>,
}

impl Variables {
    fn origin(&self, variable: &str) -> Origin {
        Origin::Environment { variable: variable.to_owned(), dotenv: self.dotenv.get(variable).cloned() }
    }
}

/// Puts `.env` files under the environment; of two files, the first one wins. Files that are not there are no error.
pub(crate) fn variables(
    environment: &BTreeMap<String, String>,
    files: &[PathBuf],
    errors: &mut Vec<ConfigError>,
) -> Variables {
    let mut all = Variables { values: environment.clone(), dotenv: BTreeMap::new() };
    for path in files {
        let shown = path.display().to_string();
        match fs::read(path) {
            Ok(bytes) => read_dotenv(&bytes, &shown, &mut all, errors),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = format!("the file cannot be read: {error}");
                errors.push(ConfigError::new(ConfigErrorKind::Unreadable, message).place(shown));
            }
        }
    }
    all
}

/// The message never quotes a line: it may hold a key.
fn read_dotenv(bytes: &[u8], path: &str, all: &mut Variables, errors: &mut Vec<ConfigError>) {
    let text = String::from_utf8_lossy(bytes);
    let mut line_number = 0;
    for item in dotenvy::from_read_iter(text.trim_start_matches('\u{feff}').as_bytes()) {
        match item {
            Ok((name, value)) => {
                line_number = line_of(&text, line_number, |line| assigns(line, &name)).unwrap_or(line_number);
                if !all.values.contains_key(&name) {
                    all.dotenv.insert(name.clone(), format!("{path}:{line_number}"));
                    all.values.insert(name, value);
                }
            }
            Err(error) => {
                let first = match &error {
                    dotenvy::Error::LineParse(line, _) => line.lines().next().unwrap_or_default().to_owned(),
                    _ => String::new(),
                };
                line_number = line_of(&text, line_number, |line| line.trim() == first.trim())
                    .unwrap_or(line_number + 1);
                errors.push(
                    ConfigError::new(ConfigErrorKind::Syntax, "this line is not `NAME=value`")
                        .place(format!("{path}:{line_number}"))
                        .hinted("Quote a value that holds blanks, `#` or quotes: NAME=\"a value\"."),
                );
            }
        }
    }
}

/// The first line after line `after` that fits, counted from 1.
fn line_of(text: &str, after: usize, fits: impl Fn(&str) -> bool) -> Option<usize> {
    text.lines().enumerate().skip(after).find(|(_, line)| fits(line)).map(|(index, _)| index + 1)
}

fn assigns(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// `FATHOM_LLM=openai`: a file chosen as with `--llm openai`.
pub(crate) fn choice(variables: &Variables, group: Group) -> Option<(String, String)> {
    let variable = format!("{PREFIX}{}", group.as_str().to_uppercase());
    let value =
        variables.values.get(&variable).map(|value| value.trim()).filter(|value| !value.is_empty())?;
    Some((value.to_owned(), variables.origin(&variable).to_string()))
}

/// A layer for each variable that names a key; an error for each with our prefix that nobody reads.
pub(crate) fn add_layers(variables: &Variables, layers: &mut Layers, errors: &mut Vec<ConfigError>) {
    for (variable, value) in &variables.values {
        let Some(name) = variable.strip_prefix(PREFIX) else { continue };
        let origin = variables.origin(variable);
        if !name.contains("__") {
            if !is_other(variable) {
                errors.push(unknown(variable, layers).place(origin.to_string()));
            }
            continue;
        }
        let parts: Vec<&str> = name.split("__").collect();
        if parts.iter().any(|part| part.is_empty()) {
            let message = "between two `__` there is no name";
            let error = ConfigError::new(ConfigErrorKind::Environment, message).place(origin.to_string());
            errors.push(error.hinted("The form is FATHOM_SECTION__KEY, such as FATHOM_LLM__BASE_URL."));
            continue;
        }
        let path = spelled(&parts, layers);
        layers.push(origin, node(value).nested(&path));
    }
}

/// The keys as they are written elsewhere (`agent-browsing`); in lower case where nobody has written them.
fn spelled(parts: &[&str], layers: &Layers) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    for part in parts {
        let lower = part.to_lowercase();
        let known = layers.keys_at(&path).find(|key| key.to_lowercase().replace('-', "_") == lower);
        let key = known.map_or(lower, str::to_owned);
        path.push(key);
    }
    path
}

/// The text as it is; what begins like a list or a map and reads as one is one, unless text is wanted there.
fn node(value: &str) -> Node {
    let text = Node::scalar(value, false, Mark::default());
    if !value.trim_start().starts_with(['[', '{']) {
        return text;
    }
    match yaml::parse(value) {
        Ok(Node { value: NodeValue::List(list), mark }) => {
            Node { mark, value: NodeValue::List(List { text: Some(value.to_owned()), ..list }) }
        }
        Ok(node @ Node { value: NodeValue::Map(_), .. }) => node,
        _ => text,
    }
}

fn is_other(variable: &str) -> bool {
    OTHER_VARIABLES.iter().any(|(name, _)| *name == variable)
        || Group::ALL
            .iter()
            .any(|group| variable.strip_prefix(PREFIX) == Some(&group.as_str().to_uppercase()))
}

fn unknown(variable: &str, layers: &Layers) -> ConfigError {
    let sections = layers.keys_at(&[]).map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    let mut names: Vec<String> = OTHER_VARIABLES.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.extend(Group::ALL.iter().map(|group| format!("{PREFIX}{}", group.as_str().to_uppercase())));
    for section in &sections {
        names.extend(layers.keys_at(std::slice::from_ref(section)).map(|key| {
            format!("{PREFIX}{}__{}", section.to_uppercase(), key.to_uppercase().replace('-', "_"))
        }));
    }
    let message = format!("`{variable}` is no variable that is read here");
    let error = ConfigError::new(ConfigErrorKind::Environment, message);
    error.hinted(match nearest(variable, names.iter().map(String::as_str)) {
        Some(near) => {
            format!("Did you mean `{near}`? Keys are written FATHOM_SECTION__KEY, with two underscores.")
        }
        None => "Keys are written FATHOM_SECTION__KEY, such as FATHOM_LLM__BASE_URL.".to_owned(),
    })
}
