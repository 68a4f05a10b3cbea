//! From `config.yaml` and the chosen names to layers: which files are read, and in which order.
//!
//! Decides the order of files and what `defaults:` lists do. What the layers above the files are is left to the
//! resolver.

use std::collections::BTreeMap;

use super::defaults::{DefaultsEntry, Group, file_name, read_defaults};
use super::embedded::{ConfFile, ConfTree};
use super::error::{ConfigError, ConfigErrorKind};
use super::layer::{Layers, Origin};
use super::nearest::nearest;
use super::node::{Entry, Mark, Node, NodeValue};
use super::yaml;

/// Files that may be based on each other in a row.
const MAX_CHAIN: usize = 32;
/// Files that one configuration may be made of.
const MAX_FILES: usize = 200;

/// A file that took part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFile {
    /// Its path; of a file inside the binary `conf/…`.
    pub path: String,
    /// Whether it is the copy inside the binary.
    pub built_in: bool,
}

/// A name that was chosen for a group, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) name: String,
    pub(crate) by: String,
}

/// What composing gives.
#[derive(Default)]
pub(crate) struct Composed {
    pub(crate) layers: Layers,
    pub(crate) files: Vec<LoadedFile>,
    pub(crate) errors: Vec<ConfigError>,
    /// Entries of `defaults:` lists that are meant for Hydra: what, and where.
    pub(crate) foreign: Vec<(String, Origin)>,
}

/// A file with its `defaults:` list taken out.
struct Parsed {
    defaults: Vec<DefaultsEntry>,
    body: Node,
    file: ConfFile,
}

struct Composer<'a> {
    tree: &'a ConfTree,
    /// What stands instead of the entries of `config.yaml`; loaded after it.
    chosen: &'a BTreeMap<Group, Choice>,
    /// What `override` entries put in the place of other entries.
    overrides: BTreeMap<Group, Vec<String>>,
    chain: Vec<String>,
    out: Composed,
}

/// Composes the files: `config.yaml` with what its list names, then the chosen ones.
pub(crate) fn compose(tree: &ConfTree, chosen: &BTreeMap<Group, Choice>) -> Composed {
    let mut overrides = BTreeMap::new();
    // An `override` met deep in a chain changes what an earlier entry loads: begin again with it. Each round adds a
    // group, so there are no more rounds than groups.
    for _ in 0..=Group::ALL.len() {
        let mut composer = Composer {
            tree,
            chosen,
            overrides: overrides.clone(),
            chain: Vec::new(),
            out: Composed::default(),
        };
        composer.run();
        if composer.overrides == overrides {
            return composer.out;
        }
        overrides = composer.overrides;
    }
    Composed::default()
}

impl Composer<'_> {
    fn run(&mut self) {
        let chosen: Vec<(Group, Choice)> =
            self.chosen.iter().map(|(group, choice)| (*group, choice.clone())).collect();
        self.load(None, "config", "the configuration", false);
        for (group, choice) in chosen {
            self.load(Some(group), &choice.name, &choice.by, false);
        }
    }

    /// Loads a file and, before and after it, what its list names.
    fn load(&mut self, group: Option<Group>, name: &str, wanted_by: &str, optional: bool) {
        let link = format!("{}{name}", group.map_or(String::new(), |group| format!("{}/", group.as_str())));
        if self.chain.contains(&link) {
            let circle = format!("{} → {link}", self.chain.join(" → "));
            let error = ConfigError::new(
                ConfigErrorKind::Cycle,
                format!("files are based on each other in a circle: {circle}"),
            );
            return self.fail(
                error.place(wanted_by).hinted("Take one of these entries out of its `defaults:` list."),
            );
        }
        if self.chain.len() >= MAX_CHAIN || self.out.files.len() >= MAX_FILES {
            let message = format!(
                "more than {MAX_CHAIN} files in a row, or {MAX_FILES} in all, are based on each other"
            );
            return self.fail(ConfigError::new(ConfigErrorKind::Defaults, message).place(wanted_by));
        }
        let Some(parsed) = self.parse(group, name, wanted_by, optional) else { return };
        self.out.files.push(LoadedFile { path: parsed.file.path.clone(), built_in: parsed.file.built_in });
        self.chain.push(link);
        let origin = Origin::File { path: parsed.file.path, line: 1, built_in: parsed.file.built_in };
        let mut body = Some(parsed.body);
        for entry in parsed.defaults {
            match entry {
                DefaultsEntry::Itself => {
                    if let Some(body) = body.take() {
                        let section: Vec<String> =
                            group.iter().map(|group| group.as_str().to_owned()).collect();
                        self.out.layers.push(origin.clone(), body.nested(&section));
                    }
                }
                DefaultsEntry::Sibling { name, mark } => {
                    self.load(group, &name, &at(&origin, mark), false);
                }
                DefaultsEntry::Choice { group: other, names, replaces, optional, mark } => {
                    self.choice(other, names, replaces, optional, &at(&origin, mark));
                }
                DefaultsEntry::Foreign { what, mark } => {
                    self.out.foreign.push((what, located(&origin, mark)))
                }
            }
        }
        self.chain.pop();
    }

    fn choice(&mut self, group: Group, names: Vec<String>, replaces: bool, optional: bool, wanted_by: &str) {
        if replaces {
            self.overrides.entry(group).or_insert(names);
        } else if !self.chosen.contains_key(&group) {
            for name in self.overrides.get(&group).cloned().unwrap_or(names) {
                self.load(Some(group), &name, wanted_by, optional);
            }
        }
    }

    fn parse(&mut self, group: Option<Group>, name: &str, wanted_by: &str, optional: bool) -> Option<Parsed> {
        let folder = group.map_or("", Group::as_str);
        let file = match self.tree.read(folder, &format!("{name}.yaml")) {
            Ok(Some(file)) => file,
            Ok(None) if optional => return None,
            Ok(None) => {
                let error = missing(self.tree, group, name).place(wanted_by);
                self.fail(error);
                return None;
            }
            Err(error) => {
                let message = format!("the file `{folder}/{name}.yaml` cannot be read: {error}");
                self.fail(ConfigError::new(ConfigErrorKind::Unreadable, message).place(wanted_by));
                return None;
            }
        };
        match read_file(&file, group) {
            Ok((defaults, body, errors)) => {
                let origin = Origin::File { path: file.path.clone(), line: 1, built_in: file.built_in };
                for (mark, error) in errors {
                    self.fail(error.key("defaults").place(at(&origin, mark)));
                }
                Some(Parsed { defaults, body, file })
            }
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// A file that two lists name is at fault once.
    fn fail(&mut self, error: ConfigError) {
        if !self.out.errors.contains(&error) {
            self.out.errors.push(error);
        }
    }
}

type Contents = (Vec<DefaultsEntry>, Node, Vec<(Mark, ConfigError)>);

/// A file's `defaults:` list and its values.
fn read_file(file: &ConfFile, group: Option<Group>) -> Result<Contents, ConfigError> {
    let mut body = read_map(&file.bytes, &file.path)?;
    let mut errors = Vec::new();
    let defaults = match take(&mut body, "defaults") {
        Some(list) => read_defaults(&list, group, &mut errors),
        None => vec![DefaultsEntry::Itself],
    };
    Ok((defaults, body, errors))
}

/// The user's own file: its values, and the files that its `defaults:` list chooses.
pub(crate) fn read_user_file(
    bytes: &[u8],
    path: &str,
    errors: &mut Vec<ConfigError>,
) -> Option<(Node, BTreeMap<Group, Choice>)> {
    let mut body = match read_map(bytes, path) {
        Ok(body) => body,
        Err(error) => {
            errors.push(error);
            return None;
        }
    };
    let mut choices = BTreeMap::new();
    if let Some(list) = take(&mut body, "defaults") {
        let mut found = Vec::new();
        for entry in read_defaults(&list, None, &mut found) {
            let by = |mark: Mark| format!("{path}:{}", mark.line);
            match entry {
                DefaultsEntry::Choice { group, names, mark, .. } => {
                    if let [name] = names.as_slice() {
                        choices.insert(group, Choice { name: name.clone(), by: by(mark) });
                    } else {
                        found.push((
                            mark,
                            ConfigError::new(
                                ConfigErrorKind::Defaults,
                                "one name for each group is expected here",
                            ),
                        ));
                    }
                }
                DefaultsEntry::Sibling { name, mark } => {
                    let message = format!(
                        "`{name}` names no group; this file's list chooses files of groups (`- llm: {name}`)"
                    );
                    found.push((mark, ConfigError::new(ConfigErrorKind::Defaults, message)));
                }
                DefaultsEntry::Itself | DefaultsEntry::Foreign { .. } => {}
            }
        }
        errors.extend(
            found
                .into_iter()
                .map(|(mark, error)| error.key("defaults").place(format!("{path}:{}", mark.line))),
        );
    }
    Some((body, choices))
}

/// The map that a file is; an empty file is an empty map.
fn read_map(bytes: &[u8], path: &str) -> Result<Node, ConfigError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        ConfigError::new(ConfigErrorKind::Syntax, "the file is not UTF-8").place(format!("{path}:{line}"))
    })?;
    let node = yaml::parse(text).map_err(|error| {
        let kind = if error.duplicate { ConfigErrorKind::DuplicateKey } else { ConfigErrorKind::Syntax };
        ConfigError::new(kind, error.message)
            .place(format!("{path}:{}:{}", error.mark.line, error.mark.column))
    })?;
    match node.value {
        NodeValue::Map(_) => Ok(node),
        _ if node.is_null() => Ok(Node::map(Vec::new(), node.mark)),
        _ => Err(ConfigError::new(
            ConfigErrorKind::WrongType,
            format!("a configuration file holds keys and values; this one holds {}", node.describe()),
        )
        .place(format!("{path}:{}", node.mark.line))),
    }
}

fn take(body: &mut Node, key: &str) -> Option<Node> {
    let NodeValue::Map(entries) = &mut body.value else { return None };
    let at = entries.iter().position(|entry: &Entry| entry.key == key)?;
    Some(entries.remove(at).node)
}

/// No such file: what there is, and what was probably meant.
pub(crate) fn missing(tree: &ConfTree, group: Option<Group>, name: &str) -> ConfigError {
    let folder = group.map_or("", Group::as_str);
    let presets = tree.presets(folder);
    let shown = if folder.is_empty() { format!("{name}.yaml") } else { format!("{folder}/{name}.yaml") };
    let looked = match tree.dir() {
        Some(dir) => format!("neither in {} nor built in", dir.display()),
        None => "among the built-in files".to_owned(),
    };
    let error =
        ConfigError::new(ConfigErrorKind::MissingFile, format!("there is no file `{shown}` ({looked})"));
    let near = nearest(&file_name(name), presets.iter().map(String::as_str));
    error.hinted(match near {
        Some(near) => format!("Did you mean `{near}`? There are: {}.", presets.join(", ")),
        None => format!("There are: {}.", presets.join(", ")),
    })
}

fn located(origin: &Origin, mark: Mark) -> Origin {
    match origin {
        Origin::File { path, built_in, .. } => {
            Origin::File { path: path.clone(), line: mark.line, built_in: *built_in }
        }
        other => other.clone(),
    }
}

fn at(origin: &Origin, mark: Mark) -> String {
    located(origin, mark).to_string()
}
