//! What is known about providers: one YAML file each, embedded.
//!
//! Decides the files' format and how a model's entry is found. A file is read when its provider is
//! first asked for. What wins over what is decided in [`registry`](crate::Registry).

use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use serde_yaml::Value;

use crate::quirks::Quirks;
use crate::{LlmError, Price};

/// Key of a file that says only in what it differs from another.
const EXTENDS: &str = "extends";

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/data/providers");

/// Which wire format a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// OpenAI's chat completions.
    Openai,
    /// OpenAI's Responses.
    OpenaiResponses,
    /// Anthropic's Messages.
    Anthropic,
}

/// Whether a provider wants a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyNeed {
    /// Nothing works without.
    Required,
    /// The server may or may not.
    #[default]
    Optional,
}

/// One provider's file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderData {
    /// Its name for people.
    pub(crate) title: String,
    pub(crate) engine: Engine,
    /// Address of the API; none: only the user knows it.
    #[serde(default)]
    pub(crate) base_url: Option<String>,
    /// Environment variables that name another address.
    #[serde(default)]
    pub(crate) base_url_variables: Vec<String>,
    #[serde(default)]
    pub(crate) key: KeyNeed,
    /// Environment variables that hold the key.
    #[serde(default)]
    pub(crate) key_variables: Vec<String>,
    /// Environment variables that name the model.
    #[serde(default)]
    pub(crate) model_variables: Vec<String>,
    /// The model where none is named.
    #[serde(default)]
    pub(crate) default_model: Option<String>,
    /// Place in the order in which keys are looked for by `auto`; none: not looked for.
    #[serde(default)]
    pub(crate) detect: Option<u32>,
    /// How the server is found on this machine.
    #[serde(default)]
    pub(crate) local: Option<LocalData>,
    #[serde(default)]
    pub(crate) quirks: Quirks,
    /// Tokens of the window of models without an entry.
    #[serde(default)]
    pub(crate) context_length: Option<u64>,
    /// The first entry that matches a model's name holds.
    #[serde(default)]
    pub(crate) models: Vec<ModelData>,
    /// Where the figures come from.
    #[serde(default)]
    pub(crate) sources: Vec<String>,
}

/// How a server is found on this machine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LocalData {
    /// Its usual port.
    pub(crate) port: u16,
    /// What its model list says in `owned_by`, where that tells it from others on the same port.
    #[serde(default)]
    pub(crate) owned_by: Vec<String>,
    /// Whether it refuses models that it does not list.
    #[serde(default)]
    pub(crate) refuses_other_models: bool,
    /// Path and JSON pointer at which the size of the loaded window is found.
    #[serde(default)]
    pub(crate) context_path: Option<String>,
    #[serde(default)]
    pub(crate) context_pointer: Option<String>,
}

/// What is known about models of one name pattern.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelData {
    /// Pattern of the name in lower case; `*` stands for anything.
    #[serde(rename = "match")]
    pub(crate) pattern: String,
    #[serde(default)]
    pub(crate) context_length: Option<u64>,
    #[serde(default)]
    pub(crate) price: Option<Price>,
    #[serde(default)]
    pub(crate) quirks: Quirks,
}

impl ProviderData {
    /// Reads a file. `origin` names it in errors; `find` gives the text of another provider's file, for
    /// one that says `extends: NAME`: what it does not say itself is taken from there, key by key.
    pub(crate) fn parse<'t>(
        yaml: &str,
        origin: &str,
        find: impl Fn(&str) -> Option<&'t str>,
    ) -> Result<Self, LlmError> {
        let wrong = |problem: &str| LlmError::Configuration {
            message: format!("the provider data in {origin} cannot be read: {problem}"),
            hint: Some("the files of the built-in providers show the format".to_owned()),
        };
        let unreadable = |error: serde_yaml::Error| wrong(&error.to_string());
        if !yaml.lines().any(|line| line.starts_with(EXTENDS)) {
            return serde_yaml::from_str(yaml).map_err(unreadable);
        }
        let mut own: serde_yaml::Mapping = serde_yaml::from_str(yaml).map_err(unreadable)?;
        let base = own.shift_remove(EXTENDS);
        let base = base.as_ref().and_then(Value::as_str).unwrap_or_default();
        let base =
            find(base).ok_or_else(|| wrong(&format!("it extends `{base}`, and there is no such file")))?;
        let mut merged: serde_yaml::Mapping = serde_yaml::from_str(base).map_err(unreadable)?;
        if merged.contains_key(EXTENDS) {
            return Err(wrong("it extends a file that extends another itself"));
        }
        merged.extend(own);
        serde_yaml::from_value(Value::Mapping(merged)).map_err(unreadable)
    }

    /// What is known about a model.
    pub(crate) fn model(&self, name: &str) -> Option<&ModelData> {
        let name = name.to_lowercase();
        let short = name.rsplit('/').next().unwrap_or(&name);
        self.models.iter().find(|model| matches(&model.pattern, &name) || matches(&model.pattern, short))
    }
}

/// Names of the built-in files, in order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES.files().filter_map(|file| file.path().file_stem()?.to_str())
}

/// A built-in file's text.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FILES
        .files()
        .find(|file| file.path().file_stem().and_then(|stem| stem.to_str()) == Some(name))?
        .contents_utf8()
}

/// Whether a name fits a pattern in which `*` stands for any run of characters. Greedy from the left,
/// which is right where `*` is the only wildcard; no backtracking.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Engine, KeyNeed, ProviderData, matches, names, text};

    #[test]
    fn patterns() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        };
        check("gpt-5*", "gpt-5-mini", true);
        check("gpt-5*", "gpt-5", true);
        check("gpt-5*", "xgpt-5", false);
        check("*mirothinker*", "mirothinker-v1.5-30b", true);
        check("*qwen3*instruct*", "qwen3-30b-a3b-instruct-2507", true);
        check("*qwen3*instruct*", "qwen3-30b-a3b-thinking", false);
        check("o1", "o1", true);
        check("o1", "o1-mini", false);
        check("*", "", true);
        check("a*a", "a", false);
        check("", "", true);
    }

    #[test]
    fn every_built_in_file_is_sound() {
        let mut orders = HashSet::new();
        let mut ports = HashSet::new();
        for name in names() {
            let data = ProviderData::parse(text(name).unwrap(), name, text).unwrap();
            assert!(!data.title.is_empty(), "{name}");
            if let Some(url) = &data.base_url {
                assert!(url.starts_with("http://127.0.0.1") || url.starts_with("https://"), "{name}: {url}");
                assert!(!url.ends_with('/'), "{name}: {url}");
            }
            if data.key == KeyNeed::Required {
                assert!(!data.key_variables.is_empty(), "{name}");
            }
            if let Some(order) = data.detect {
                assert!(orders.insert(order), "{name}: order {order} is taken");
                assert!(!data.key_variables.is_empty() && data.default_model.is_some(), "{name}");
            }
            if let Some(local) = &data.local {
                assert!(ports.insert(local.port), "{name}: port {} is taken", local.port);
                assert_eq!(local.context_path.is_some(), local.context_pointer.is_some(), "{name}");
            }
            for model in &data.models {
                assert_eq!(model.pattern, model.pattern.to_lowercase(), "{name}");
                for price in model.price.iter() {
                    assert!(price.input >= 0.0 && price.output >= price.input, "{name}: {}", model.pattern);
                }
            }
            if data.models.iter().any(|model| model.price.is_some()) {
                assert!(!data.sources.is_empty(), "{name}: prices without a source");
            }
        }
        assert!(names().count() >= 20);
    }

    #[test]
    fn a_wrong_file_is_named() {
        let check = |yaml: &str, word: &str| {
            let message = ProviderData::parse(yaml, "mine.yaml", text).unwrap_err().to_string();
            assert!(message.contains("mine.yaml") && message.contains(word), "{message}");
        };
        check("title: X\nengine: openai\nbase_ulr: y\n", "base_ulr");
        check("title: X\nextends: opnai\n", "`opnai`");
        check("title: X\nextends: openai_responses\n", "extends another");
        check("extends: [openai]\n", "extends ``");
        check("extends: openai\nbase_ulr: y\n", "base_ulr");
    }

    #[test]
    fn what_a_file_does_not_say_is_taken_from_the_one_it_extends() {
        let yaml = "title: Mine\nextends: openai\nengine: openai_responses\ndetect: null\n";
        let data = ProviderData::parse(yaml, "mine.yaml", text).unwrap();
        let base = ProviderData::parse(text("openai").unwrap(), "openai", text).unwrap();
        assert_eq!((data.title.as_str(), data.engine, data.detect), ("Mine", Engine::OpenaiResponses, None));
        assert_eq!((&data.models, &data.key_variables), (&base.models, &base.key_variables));
    }
}
