//! `config check`: everything that is wrong or doubtful about a configuration, and what takes part in it.

use std::collections::BTreeMap;

use llm_providers::Registry;

use super::accepted::{self, AcceptedUnused};
use super::compose::LoadedFile;
use super::defaults::Group;
use super::embedded::ConfTree;
use super::error::{ConfigError, ConfigErrorKind};
use super::interpolate::is_open;
use super::layer::Layers;
use super::nearest::nearest;
use super::node::{Node, NodeValue};
use super::redact::Redactor;
use super::resolve::{Attempt, ConfigSources, Resolved, attempt};
use super::set::key_of_set;
use super::tools::BUILT_IN_SERVERS;
use super::{FathomConfig, report, typed};

/// A file of the user's own that could be chosen, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetReport {
    /// The group.
    pub group: Group,
    /// The name.
    pub name: String,
    /// What is wrong when it is chosen, beyond what is wrong anyway.
    pub errors: Vec<ConfigError>,
}

/// What `config check` found.
#[derive(Debug, Clone)]
pub struct CheckReport {
    /// What is wrong.
    pub errors: Vec<ConfigError>,
    /// What is allowed and probably not meant.
    pub warnings: Vec<String>,
    /// Keys that were accepted and have no effect.
    pub accepted_unused: Vec<AcceptedUnused>,
    /// Prompts of the user's own that take the place of built-in ones, by file name.
    pub overridden_prompts: Vec<String>,
    /// Files in the user's `prompts` folder that no built-in prompt goes by.
    pub unknown_prompts: Vec<String>,
    /// The files that took part, in the order of reading.
    pub files: Vec<LoadedFile>,
    /// The names that can be chosen, by group.
    pub presets: BTreeMap<Group, Vec<String>>,
    /// The user's own files of the groups, each checked as if it were chosen.
    pub own_presets: Vec<PresetReport>,
    /// The configuration, where it holds together.
    pub resolved: Option<Resolved>,
}

impl CheckReport {
    /// Whether nothing is wrong, neither with what is chosen nor with the user's other files.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.errors.is_empty() && self.own_presets.iter().all(|preset| preset.errors.is_empty())
    }
}

/// Checks a configuration. `servers` are the names of tool servers that are configured elsewhere (`mcp.json`).
#[must_use]
pub fn check(sources: &ConfigSources, servers: &[String]) -> CheckReport {
    let Attempt { resolved, mut errors, layers, redactor } = attempt(sources);
    for error in hidden_errors(&layers, &redactor) {
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    if let Some(resolved) = &resolved {
        errors.extend(unknown_names(resolved, servers));
    }
    let conf = ConfTree::new(sources.conf_dir.clone());
    let prompts = conf.list("prompts");
    let own_presets = own_presets(&conf, sources, servers, &errors);
    CheckReport {
        warnings: resolved
            .as_ref()
            .map(|resolved| [resolved.warnings.clone(), unknown_limits(resolved, servers)].concat())
            .unwrap_or_default(),
        accepted_unused: resolved
            .as_ref()
            .map(|resolved| resolved.accepted_unused.clone())
            .unwrap_or_default(),
        overridden_prompts: prompts
            .iter()
            .filter(|prompt| prompt.overridden())
            .map(|prompt| prompt.name.clone())
            .collect(),
        unknown_prompts: prompts
            .iter()
            .filter(|prompt| !prompt.built_in)
            .map(|prompt| prompt.name.clone())
            .collect(),
        files: resolved.as_ref().map(|resolved| resolved.files.clone()).unwrap_or_default(),
        presets: Group::ALL.into_iter().map(|group| (group, conf.presets(group.as_str()))).collect(),
        own_presets,
        resolved: resolved.filter(|_| errors.is_empty()),
        errors,
    }
}

/// Errors in values that a later layer covers: they do no harm now and will when the layer is gone.
fn hidden_errors(layers: &Layers, redactor: &Redactor) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    for layer in layers.iter() {
        let mut root = layer.root.clone();
        accepted::take(&mut root, layers);
        drop_open(&mut root);
        let (_, problems) = typed::read::<FathomConfig>(&root);
        errors.extend(problems.iter().map(|problem| report::problem(problem, layers, redactor)));
    }
    errors
}

/// Takes out what cannot be read before it is resolved.
fn drop_open(node: &mut Node) {
    let stays = |node: &Node| !matches!(&node.value, NodeValue::Scalar(scalar) if is_open(scalar));
    match &mut node.value {
        NodeValue::Scalar(_) => {}
        NodeValue::List(list) => {
            list.items.retain(stays);
            list.items.iter_mut().for_each(drop_open);
        }
        NodeValue::Map(entries) => {
            entries.retain(|entry| stays(&entry.node));
            entries.iter_mut().for_each(|entry| drop_open(&mut entry.node));
        }
    }
}

/// Names that other crates know: tool servers and providers.
fn unknown_names(resolved: &Resolved, servers: &[String]) -> Vec<ConfigError> {
    let judge = resolved.config.benchmark.judge.llm.as_ref().map(|llm| ("benchmark.judge.llm.provider", llm));
    let mut errors = unknown_servers(resolved, servers);
    for (key, llm) in [("llm.provider", &resolved.config.llm)].into_iter().chain(judge) {
        let mut known = Registry::builtin().names();
        known.insert(0, "auto".to_owned());
        if known.contains(&llm.provider) {
            continue;
        }
        let message = format!(
            "there is no provider `{}`; there are {}",
            resolved.redacted(&llm.provider),
            known.join(", ")
        );
        let error = ConfigError::new(ConfigErrorKind::UnknownName, message)
            .key(key)
            .place(resolved.origin_of(key).to_string());
        errors.push(match nearest(&llm.provider, known.iter().map(String::as_str)) {
            Some(near) => error.hinted(format!("Did you mean `{near}`?")),
            None => error.hinted("A server that speaks OpenAI's chat completions is `openai_compatible`."),
        });
    }
    errors
}

/// Servers in `tools` lists that neither are built in nor configured.
#[must_use]
pub fn unknown_servers(resolved: &Resolved, servers: &[String]) -> Vec<ConfigError> {
    let agent = &resolved.config.agent;
    let known: Vec<&str> = BUILT_IN_SERVERS.into_iter().chain(servers.iter().map(String::as_str)).collect();
    let main = ("agent.main_agent.tools".to_owned(), &agent.main_agent);
    let others = agent.sub_agents.iter().map(|(name, role)| (format!("agent.sub_agents.{name}.tools"), role));
    let mut errors = Vec::new();
    for (path, role) in std::iter::once(main).chain(others) {
        for (index, server) in role.tools.iter().enumerate() {
            if known.contains(&server.as_str()) {
                continue;
            }
            let key = format!("{path}[{index}]");
            let message = format!("there is no tool server `{server}`, neither built in nor in `mcp.json`");
            let error = ConfigError::new(ConfigErrorKind::UnknownServer, message)
                .place(resolved.origin_of(&key).to_string())
                .key(key);
            errors.push(error.hinted(match nearest(server, known.iter().copied()) {
                Some(near) => format!("Did you mean `{near}`? There are {}.", known.join(", ")),
                None => format!("There are {}.", known.join(", ")),
            }));
        }
    }
    errors
}

/// Limits under `tools.servers` for servers that neither are built in nor configured.
#[must_use]
pub fn unknown_limits(resolved: &Resolved, servers: &[String]) -> Vec<String> {
    let known: Vec<&str> = BUILT_IN_SERVERS.into_iter().chain(servers.iter().map(String::as_str)).collect();
    let named = resolved.config.tools.servers.keys().filter(|name| !known.contains(&name.as_str()));
    let warning = |name: &String| {
        let near = match nearest(name, known.iter().copied()) {
            Some(near) => format!(" Did you mean `{near}`?"),
            None => String::new(),
        };
        format!("tools.servers.{name} has no effect: there is no tool server of that name.{near}")
    };
    named.map(warning).collect()
}

fn own_presets(
    conf: &ConfTree,
    sources: &ConfigSources,
    servers: &[String],
    known: &[ConfigError],
) -> Vec<PresetReport> {
    let mut reports = Vec::new();
    for group in Group::ALL {
        for entry in conf.list(group.as_str()).into_iter().filter(|entry| entry.own) {
            let Some(name) = entry.name.strip_suffix(".yaml") else { continue };
            let mut sources = sources.clone();
            sources.sets.retain(|set| key_of_set(set) != group.as_str());
            match group {
                Group::Llm => sources.llm = Some(name.to_owned()),
                Group::Agent => sources.agent = Some(name.to_owned()),
                Group::Benchmark => sources.benchmark = Some(name.to_owned()),
            }
            let Attempt { resolved, mut errors, .. } = attempt(&sources);
            errors.extend(resolved.iter().flat_map(|resolved| unknown_names(resolved, servers)));
            errors.retain(|error| !known.contains(error));
            reports.push(PresetReport { group, name: name.to_owned(), errors });
        }
    }
    reports
}
