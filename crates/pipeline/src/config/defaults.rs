//! `defaults:` lists: what a configuration file is based on.
//!
//! Decides how an entry reads (Hydra's way of writing them). Loading what they name is left to the composer.

use super::error::{ConfigError, ConfigErrorKind};
use super::nearest::nearest;
use super::node::{Mark, Node, NodeValue};

/// The sections that a file can be chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// `conf/llm/NAME.yaml`.
    Llm,
    /// `conf/agent/NAME.yaml`.
    Agent,
    /// `conf/benchmark/NAME.yaml`.
    Benchmark,
}

impl Group {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Llm, Self::Agent, Self::Benchmark];

    /// The name of the section, the folder and the option.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Agent => "agent",
            Self::Benchmark => "benchmark",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.as_str() == name)
    }
}

/// One entry of a `defaults:` list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DefaultsEntry {
    /// `_self_`: here come the file's own values.
    Itself,
    /// `- name`: a file of the same folder.
    Sibling { name: String, mark: Mark },
    /// `- group: name`, `- override /group: name`, `- optional group: name`.
    Choice { group: Group, names: Vec<String>, replaces: bool, optional: bool, mark: Mark },
    /// An entry for Hydra itself.
    Foreign { what: String, mark: Mark },
}

/// Reads the list of a file in `folder` (none: the top). A file without `_self_` in its list stands over what it
/// is based on, as in Hydra since 1.1.
pub(crate) fn read_defaults(
    list: &Node,
    folder: Option<Group>,
    errors: &mut Vec<(Mark, ConfigError)>,
) -> Vec<DefaultsEntry> {
    let NodeValue::List(items) = &list.value else {
        if !list.is_null() {
            errors.push((list.mark, wrong("`defaults` is a list", list)));
        }
        return vec![DefaultsEntry::Itself];
    };
    let mut entries = Vec::new();
    for item in &items.items {
        match read_entry(item, folder) {
            Ok(Some(entry)) => entries.push(entry),
            Ok(None) => {}
            Err(error) => errors.push((item.mark, error)),
        }
    }
    match entries.iter().filter(|entry| **entry == DefaultsEntry::Itself).count() {
        0 => entries.push(DefaultsEntry::Itself),
        1 => {}
        _ => errors.push((list.mark, defaults_error("`_self_` stands in the list more than once"))),
    }
    entries
}

fn read_entry(item: &Node, folder: Option<Group>) -> Result<Option<DefaultsEntry>, ConfigError> {
    let mark = item.mark;
    match &item.value {
        NodeValue::Scalar(_) => {
            let name = item.text().ok_or_else(|| wrong("an entry is a name or `group: name`", item))?;
            named(name, folder, mark).map(Some)
        }
        NodeValue::Map(entries) => match entries.as_slice() {
            [entry] => choice(&entry.key, &entry.node, folder, mark),
            _ => Err(wrong("an entry has one key (`- group: name`)", item)),
        },
        NodeValue::List(_) => Err(wrong("an entry is a name or `group: name`", item)),
    }
}

/// `- name`, `- group/name`, `- /group/name`.
fn named(written: &str, folder: Option<Group>, mark: Mark) -> Result<DefaultsEntry, ConfigError> {
    if written == "_self_" {
        return Ok(DefaultsEntry::Itself);
    }
    no_package(written)?;
    let absolute = written.strip_prefix('/');
    match absolute.unwrap_or(written).split_once('/') {
        Some((group, name)) if absolute.is_some() || folder.is_none() => {
            let group = known_group(group)?;
            let names = vec![file_name(name)];
            Ok(DefaultsEntry::Choice { group, names, replaces: false, optional: false, mark })
        }
        _ => Ok(DefaultsEntry::Sibling { name: file_name(absolute.unwrap_or(written)), mark }),
    }
}

fn choice(
    key: &str,
    value: &Node,
    folder: Option<Group>,
    mark: Mark,
) -> Result<Option<DefaultsEntry>, ConfigError> {
    let mut words: Vec<&str> = key.split_whitespace().collect();
    let written = words.pop().unwrap_or_default();
    let (mut replaces, mut optional) = (false, false);
    for word in words {
        match word {
            "override" => replaces = true,
            "optional" => optional = true,
            other => {
                return Err(defaults_error(format!(
                    "`{other}` before a group is neither `override` nor `optional`"
                )));
            }
        }
    }
    no_package(written)?;
    let absolute = written.strip_prefix('/');
    let group = absolute.unwrap_or(written);
    if group == "hydra" || group.starts_with("hydra/") {
        return Ok(Some(DefaultsEntry::Foreign { what: written.to_owned(), mark }));
    }
    let group = known_group(group)?;
    if folder.is_some() && absolute.is_none() {
        return Err(defaults_error(format!("`{written}` would be a folder in this file's own folder"))
            .hinted(format!("Write `/{written}` for the group at the top.")));
    }
    let names = match &value.value {
        NodeValue::List(list) => list.items.iter().map(name_of).collect::<Result<Vec<_>, _>>()?,
        _ if value.is_null() => return Ok(None),
        _ => vec![name_of(value)?],
    };
    Ok(Some(DefaultsEntry::Choice { group, names, replaces, optional, mark }))
}

fn name_of(node: &Node) -> Result<String, ConfigError> {
    node.text().map(file_name).ok_or_else(|| wrong("a group takes the name of a file", node))
}

/// A name may be given with its extension.
pub(crate) fn file_name(written: &str) -> String {
    written.strip_suffix(".yaml").unwrap_or(written).to_owned()
}

fn known_group(name: &str) -> Result<Group, ConfigError> {
    Group::from_name(name).ok_or_else(|| {
        let valid = Group::ALL.map(Group::as_str);
        let error =
            defaults_error(format!("there is no group `{name}`; the groups are {}", valid.join(", ")));
        match nearest(name, valid) {
            Some(near) => error.hinted(format!("Did you mean `{near}`?")),
            None => error,
        }
    })
}

fn no_package(written: &str) -> Result<(), ConfigError> {
    match written.split_once('@') {
        Some((before, _)) => Err(defaults_error(format!("`{written}` puts a file into another section"))
            .hinted(format!("A file always fills the section of its folder: write `{before}`."))),
        None => Ok(()),
    }
}

fn wrong(expected: &str, found: &Node) -> ConfigError {
    ConfigError::new(ConfigErrorKind::WrongType, format!("{expected}; found {}", found.describe()))
}

fn defaults_error(message: impl Into<String>) -> ConfigError {
    ConfigError::new(ConfigErrorKind::Defaults, message)
}
