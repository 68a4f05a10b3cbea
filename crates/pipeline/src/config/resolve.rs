//! From everything that is given to one typed configuration.
//!
//! Decides the order of the layers and gathers what is wrong from all of them. How each kind of source reads is
//! left to its own module.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use llm_providers::Environment;
use serde::Serialize;

use super::accepted::{self, AcceptedUnused};
use super::compose::{self, Choice, LoadedFile};
use super::defaults::{Group, file_name};
use super::embedded::ConfTree;
use super::environment::{self, Variables};
use super::error::{ConfigError, ConfigErrorKind, ConfigErrors};
use super::interpolate;
use super::layer::{Layers, Origin};
use super::node::{Node, NodeValue, Step};
use super::redact::Redactor;
use super::report;
use super::rules;
use super::set::{self, Setting};
use super::typed;
use super::{FathomConfig, suite};

/// Everything that a configuration is made from. The caller reads the process's environment and finds the user's
/// folders; nothing here does.
#[derive(Clone, Default)]
pub struct ConfigSources {
    /// A `conf` directory to lie over the built-in files; none: the built-in files alone.
    pub conf_dir: Option<PathBuf>,
    /// `--agent NAME`.
    pub agent: Option<String>,
    /// `--llm NAME`.
    pub llm: Option<String>,
    /// `--benchmark NAME`.
    pub benchmark: Option<String>,
    /// `--set key.path=value`, in order.
    pub sets: Vec<String>,
    /// The process's environment.
    pub environment: BTreeMap<String, String>,
    /// `.env` files; those that are not there are passed over, of two the first one wins.
    pub dotenv: Vec<PathBuf>,
    /// The user's own file; passed over where it is not there.
    pub user_config: Option<PathBuf>,
}

/// Shows neither variables' values nor settings: both may hold keys.
impl std::fmt::Debug for ConfigSources {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ConfigSources")
            .field("conf_dir", &self.conf_dir)
            .field("agent", &self.agent)
            .field("llm", &self.llm)
            .field("benchmark", &self.benchmark)
            .field("sets", &self.sets.len())
            .field("environment", &self.environment.len())
            .field("dotenv", &self.dotenv)
            .field("user_config", &self.user_config)
            .finish()
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// The place that it was written at.
    pub origin: Origin,
    /// The environment variables that `${env:…}` in it named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
}

/// A configuration that holds together. `Debug` shows it without secrets.
#[derive(Clone)]
pub struct Resolved {
    /// The values.
    pub config: FathomConfig,
    /// By key path, the origin of every value that is not a default.
    pub origins: BTreeMap<String, Provenance>,
    /// Keys that were accepted and have no effect.
    pub accepted_unused: Vec<AcceptedUnused>,
    /// What is allowed and probably not meant.
    pub warnings: Vec<String>,
    /// The files that took part, in the order of reading.
    pub files: Vec<LoadedFile>,
    /// Where prompts, articles and data folders are looked for.
    pub conf: ConfTree,
    /// The environment with the `.env` files under it.
    pub environment: Environment,
    /// `--agent` and `--llm`, as given.
    pub chosen: (Option<String>, Option<String>),
    /// What must not be shown.
    pub(crate) redactor: Redactor,
}

impl std::fmt::Debug for Resolved {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Resolved")
            .field("config", &self.to_json())
            .field("origins", &self.origins)
            .field("accepted_unused", &self.accepted_unused)
            .field("warnings", &self.warnings)
            .field("files", &self.files)
            .field("conf", &self.conf)
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}

impl Resolved {
    /// The folder of the chosen benchmark's tasks, if it is there: looked for from the configuration directory, the
    /// folder above it, and `here`. Tasks that the binary brings along are read through [`Resolved::conf`].
    #[must_use]
    pub fn data_dir(&self, here: &Path) -> Option<PathBuf> {
        let relative = self.config.benchmark.data.data_dir.as_deref()?;
        self.conf.places(here, relative).into_iter().find(|place| place.is_dir())
    }

    /// A text without the secrets of this configuration and its environment.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        self.redactor.text(text)
    }
}

/// Resolves a configuration.
///
/// # Errors
/// Everything that is wrong with it, in the order of the layers.
pub fn resolve(sources: &ConfigSources) -> Result<Resolved, ConfigErrors> {
    match attempt(sources) {
        Attempt { resolved: Some(resolved), errors, .. } if errors.is_empty() => Ok(resolved),
        Attempt { errors, .. } => Err(ConfigErrors(errors)),
    }
}

/// All that is known after a try, successful or not.
pub(crate) struct Attempt {
    /// None where not even parts could be read.
    pub(crate) resolved: Option<Resolved>,
    pub(crate) errors: Vec<ConfigError>,
    pub(crate) layers: Layers,
    pub(crate) redactor: Redactor,
}

/// Resolves as far as that is possible.
pub(crate) fn attempt(sources: &ConfigSources) -> Attempt {
    let mut errors = Vec::new();
    let conf = conf_tree(sources, &mut errors);
    let variables = environment::variables(&sources.environment, &sources.dotenv, &mut errors);
    let mut redactor = Redactor::new(&variables.values);
    let settings = set::read(&sources.sets, &mut errors);
    let user = user_file(sources, &mut errors);
    let user_choices = user.as_ref().map(|(_, choices)| choices.clone()).unwrap_or_default();
    let chosen = choices(sources, &settings, &variables, user_choices, &mut errors);

    let composed = compose::compose(&conf, &chosen);
    errors.extend(composed.errors);
    let (mut layers, mut files) = (composed.layers, composed.files);
    if let (Some((node, _)), Some(path)) = (user, &sources.user_config) {
        let path = path.display().to_string();
        files.push(LoadedFile { path: path.clone(), built_in: false });
        layers.push(Origin::File { path, line: 1, built_in: false }, node);
    }
    environment::add_layers(&variables, &mut layers, &mut errors);
    set::add_layers(settings, &mut layers);

    let mut tree = match layers.merged() {
        Ok(tree) => tree,
        Err(error) => {
            let message = format!("the layers cannot be laid over each other: {error}");
            errors.push(ConfigError::new(ConfigErrorKind::WrongType, message));
            return Attempt { resolved: None, errors, layers, redactor };
        }
    };
    let mut accepted_unused = accepted::take(&mut tree, &layers);
    accepted_unused.extend(composed.foreign.into_iter().map(|(what, origin)| AcceptedUnused {
        key: format!("defaults: {what}"),
        origin,
        why: "an entry for Hydra itself".to_owned(),
    }));
    for unresolved in interpolate::resolve(&mut tree, &variables.values) {
        errors.push(report::unresolved(&unresolved, &layers, &variables.values));
        tree.remove(&unresolved.path);
    }
    redactor.learn(&tree);
    let (config, problems) = typed::read::<FathomConfig>(&tree);
    errors.extend(problems.iter().map(|problem| report::problem(problem, &layers, &redactor)));
    let resolved = config.map(|config| {
        finish(
            config,
            &tree,
            &layers,
            &mut errors,
            Parts {
                accepted_unused,
                files,
                conf,
                variables,
                redactor: redactor.clone(),
                chosen: (sources.agent.clone(), sources.llm.clone()),
            },
        )
    });
    Attempt { resolved, errors, layers, redactor }
}

struct Parts {
    accepted_unused: Vec<AcceptedUnused>,
    files: Vec<LoadedFile>,
    conf: ConfTree,
    variables: Variables,
    redactor: Redactor,
    chosen: (Option<String>, Option<String>),
}

fn finish(
    mut config: FathomConfig,
    tree: &Node,
    layers: &Layers,
    errors: &mut Vec<ConfigError>,
    parts: Parts,
) -> Resolved {
    let findings = rules::check(&config);
    for (path, expected) in findings.broken {
        errors.push(report::out_of_range(&path, expected, tree, layers, &parts.redactor));
    }
    let warnings =
        findings.doubtful.into_iter().map(|(path, message)| report::warning(&path, &message, tree, layers));
    let warnings = warnings.collect();
    let mut origins = BTreeMap::new();
    collect(tree, layers, &mut Vec::new(), &mut origins);
    suite::fill(&mut config.benchmark, &mut origins);
    Resolved {
        config,
        origins,
        accepted_unused: parts.accepted_unused,
        warnings,
        files: parts.files,
        conf: parts.conf,
        environment: Environment::new(parts.variables.values),
        chosen: parts.chosen,
        redactor: parts.redactor,
    }
}

/// The origins of all values; a list counts as one.
fn collect(node: &Node, layers: &Layers, path: &mut Vec<Step>, origins: &mut BTreeMap<String, Provenance>) {
    match &node.value {
        NodeValue::Map(entries) if !entries.is_empty() || path.is_empty() => {
            for entry in entries {
                path.push(Step::Key(entry.key.clone()));
                collect(&entry.node, layers, path, origins);
                path.pop();
            }
        }
        value => {
            let mut variables = Vec::new();
            variables_in(value, &mut variables);
            let provenance = Provenance { origin: layers.origin(node.mark), variables };
            origins.insert(super::node::path_text(path), provenance);
        }
    }
}

fn variables_in(value: &NodeValue, variables: &mut Vec<String>) {
    match value {
        NodeValue::Scalar(scalar) => variables.extend(scalar.variables.iter().cloned()),
        NodeValue::List(list) => list.items.iter().for_each(|item| variables_in(&item.value, variables)),
        NodeValue::Map(entries) => {
            entries.iter().for_each(|entry| variables_in(&entry.node.value, variables))
        }
    }
}

fn conf_tree(sources: &ConfigSources, errors: &mut Vec<ConfigError>) -> ConfTree {
    if let Some(dir) = sources.conf_dir.as_ref().filter(|dir| !dir.is_dir()) {
        let message = if dir.exists() { "this is no directory" } else { "there is no such directory" };
        errors.push(
            ConfigError::new(ConfigErrorKind::MissingFile, message)
                .place(format!("configuration directory {}", dir.display()))
                .hinted("Leave --conf-dir out to use the built-in files."),
        );
    }
    ConfTree::new(sources.conf_dir.clone())
}

type UserFile = (Node, BTreeMap<Group, Choice>);

fn user_file(sources: &ConfigSources, errors: &mut Vec<ConfigError>) -> Option<UserFile> {
    let path = sources.user_config.as_ref()?;
    let shown = path.display().to_string();
    match fs::read(path) {
        Ok(bytes) => compose::read_user_file(&bytes, &shown, errors),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            let message = format!("the file cannot be read: {error}");
            errors.push(ConfigError::new(ConfigErrorKind::Unreadable, message).place(shown));
            None
        }
    }
}

/// Who chooses the file of a group: an option or `--set llm=NAME`, then the environment, then the user's own file.
fn choices(
    sources: &ConfigSources,
    settings: &[Setting],
    variables: &Variables,
    mut chosen: BTreeMap<Group, Choice>,
    errors: &mut Vec<ConfigError>,
) -> BTreeMap<Group, Choice> {
    for group in Group::ALL {
        let key = group.as_str();
        let option = match group {
            Group::Llm => &sources.llm,
            Group::Agent => &sources.agent,
            Group::Benchmark => &sources.benchmark,
        };
        let mut named: Vec<Choice> = Vec::new();
        named.extend(option.as_ref().map(|name| Choice { name: file_name(name), by: format!("--{key}") }));
        named.extend(settings.iter().filter_map(|setting| match setting {
            Setting::Choice { group: other, name } if *other == group => {
                Some(Choice { name: name.clone(), by: format!("--set {key}") })
            }
            _ => None,
        }));
        if let [first, .., last] = named.as_slice()
            && first.name != last.name
        {
            let message = format!("`{}` was chosen, and so was `{}` with {}", first.name, last.name, last.by);
            let error = ConfigError::new(ConfigErrorKind::Conflict, message).place(first.by.clone());
            errors.push(error.hinted(format!("Choose one file of `{key}`.")));
        }
        let from_environment =
            || environment::choice(variables, group).map(|(name, by)| Choice { name: file_name(&name), by });
        if let Some(choice) = named.pop().or_else(from_environment) {
            chosen.insert(group, choice);
        }
    }
    chosen
}
