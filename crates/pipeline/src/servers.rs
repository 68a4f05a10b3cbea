//! Which tool servers a run uses and how they are set up. Decides between built-in and configured servers of the same
//! name, and what is said of those that cannot be had; starting them is left to `mcp_tools`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use core_protocol::event::ServerStatus;
use llm_providers::{Environment, Limiters};
use mcp_tools::servers::library::{self, Collection, LibraryOptions};
use mcp_tools::servers::planner;
use mcp_tools::servers::python::{self, PythonOptions, SandboxMode};
use mcp_tools::servers::reading::{self, ReadingOptions};
use mcp_tools::{DEFAULT_CALL_LIMIT, DEFAULT_START_LIMIT, InProcessServer, ServerSpec, Transport};
use orchestrator::RunClock;

use crate::agents::MAIN;
use crate::config::{BUILT_IN_SERVERS, ConfTree, FathomConfig, PythonNetwork, Sandbox};
use crate::error::PipelineError;
use crate::surroundings::Places;

/// Those of [`BUILT_IN_SERVERS`](crate::config::BUILT_IN_SERVERS) that this version brings along. A run goes on
/// without the others.
pub const AVAILABLE: &[&str] = match BUILT_IN_SERVERS.split_last() {
    Some((_to_come, available)) => available,
    None => &[],
};

/// What servers are made from.
pub struct Wiring<'a> {
    /// The whole configuration.
    pub config: &'a FathomConfig,
    /// What requests to models wait for, shared with whoever else asks them.
    pub limiters: &'a Limiters,
    /// The clock of the run, which is told what its tools wait for; one of its own where there is no run.
    pub clock: RunClock,
    /// Variables, `.env` included.
    pub environment: &'a Environment,
    /// Prompts, articles and presets.
    pub conf: &'a ConfTree,
    /// The user's folders.
    pub places: &'a Places,
    /// Servers of `mcp.json`, with the file's path for messages.
    pub configured: &'a [ServerSpec],
    /// That path.
    pub configured_in: &'a str,
    /// Folders that this run searches.
    pub docs: &'a [PathBuf],
    /// The run's own folder.
    pub run_dir: &'a Path,
    /// Files given with the question.
    pub files: &'a [PathBuf],
}

/// Servers to start, and those that cannot be.
#[derive(Debug, Default)]
pub struct Servers {
    /// To be started, in the order in which the model sees them.
    pub specs: Vec<ServerSpec>,
    /// Named and not to be had here.
    pub missing: Vec<ServerStatus>,
    /// By agent (`main`, or a sub-agent's name): the servers that it uses, in the order in which it sees them.
    pub agents: BTreeMap<String, Vec<String>>,
}

impl Wiring<'_> {
    /// The servers of all agents, each once.
    ///
    /// The `tools` of an agent name them, built-in or configured. Where no agent names any of the configured ones, all
    /// of those are used by all agents as well: whoever writes an `mcp.json` means to use it. Folders of one's own are
    /// searched by all agents too.
    ///
    /// # Errors
    ///
    /// A name that nobody knows; a library that cannot be set up.
    pub fn servers(&self) -> Result<Servers, PipelineError> {
        let agent = &self.config.agent;
        let main = ("agent.main_agent.tools".to_owned(), MAIN.to_owned(), &agent.main_agent);
        let others = agent
            .sub_agents
            .iter()
            .map(|(name, role)| (format!("agent.sub_agents.{name}.tools"), name.clone(), role));
        let roles: Vec<_> = std::iter::once(main).chain(others).collect();
        let use_configured = !names_any(self.config, self.configured);
        let asks_for_docs = !self.docs.is_empty() || !self.config.tools.library.docs.is_empty();
        let mut servers = Servers::default();
        for (key, name, role) in &roles {
            let mut used: Vec<String> = Vec::new();
            for server in &role.tools {
                if self.add(server, key, &mut servers)? && !used.contains(server) {
                    used.push(server.clone());
                }
            }
            if use_configured {
                for spec in self.configured.iter().filter(|spec| !is_switched_off(spec)) {
                    if !servers.specs.iter().any(|known| known.name == spec.name) {
                        servers.specs.push(self.limited(spec.clone()));
                    }
                    used.push(spec.name.clone());
                }
            }
            if asks_for_docs && !used.iter().any(|server| server == "library") {
                self.add("library", key, &mut servers)?;
                used.insert(0, "library".to_owned());
            }
            servers.agents.insert(name.clone(), used);
        }
        Ok(servers)
    }

    /// One server by its name, whoever uses it: configured or built-in.
    ///
    /// # Errors
    ///
    /// A name that nobody knows; a library that cannot be set up.
    pub fn only(&self, name: &str) -> Result<Servers, PipelineError> {
        let mut servers = Servers::default();
        self.add(name, "the command", &mut servers)?;
        Ok(servers)
    }

    /// Adds a server that an agent names, where it is not there yet. False: it is not to be had.
    fn add(&self, name: &str, key: &str, servers: &mut Servers) -> Result<bool, PipelineError> {
        if servers.specs.iter().any(|spec| spec.name == name) {
            return Ok(true);
        }
        if let Some(spec) = self.configured.iter().find(|spec| spec.name == name) {
            if let Some(error) = unavailable(self.configured, name) {
                return Err(error);
            }
            servers.specs.push(self.limited(spec.clone()));
            return Ok(true);
        }
        if let Some(problem) =
            crate::model_tools::missing(name, self.environment).or_else(|| self.keyless(name))
        {
            if !servers.missing.iter().any(|status| status.name == name) {
                servers.missing.push(not_to_be_had(name, problem));
            }
            return Ok(false);
        }
        if AVAILABLE.contains(&name) {
            servers.specs.push(self.spec(self.built_in(name)?));
            return Ok(true);
        }
        if !BUILT_IN_SERVERS.contains(&name) {
            return Err(self.unknown(name, key));
        }
        if !servers.missing.iter().any(|status| status.name == name) {
            let problem =
                format!("not part of this version; configure a server named `{name}` in mcp.json to have it");
            servers.missing.push(not_to_be_had(name, problem));
        }
        Ok(false)
    }

    /// One built-in server by its name.
    ///
    /// # Errors
    ///
    /// A name that is not one of [`AVAILABLE`]; a library that cannot be set up.
    pub fn built_in(&self, name: &str) -> Result<Arc<dyn InProcessServer>, PipelineError> {
        Ok(match name {
            "library" => library::server(self.library_options()?)?,
            "tool-python" => match self.e2b_options()? {
                Some(options) => python::e2b::server(options),
                None => python::server(self.python_options()?),
            },
            "stateless_python" => python::stateless_server(self.python_options()?),
            "tool-reading" | "tool-reader" => reading::named_server(name, self.reading_options()?),
            "task_planner" => planner::server(),
            _ => match self
                .model_server(name)?
                .map_or_else(|| self.web_server(name), |server| Ok(Some(server)))?
            {
                Some(server) => server,
                None => return Err(self.unknown(name, "the command")),
            },
        })
    }

    fn spec(&self, server: Arc<dyn InProcessServer>) -> ServerSpec {
        self.limited(ServerSpec::new(server.name().to_owned(), Transport::InProcess(server)))
    }

    /// The server with the limits of the configuration. What `mcp.json` says of a server stands, unless the server is
    /// named under `tools.servers`.
    fn limited(&self, mut spec: ServerSpec) -> ServerSpec {
        let tools = &self.config.tools;
        let named = tools.servers.get(&spec.name);
        if spec.start_limit == DEFAULT_START_LIMIT || named.is_some_and(|limits| limits.start_limit.is_some())
        {
            spec.start_limit = seconds(tools.start_limit_of(&spec.name), spec.start_limit);
        }
        if spec.call_limit == DEFAULT_CALL_LIMIT || named.is_some_and(|limits| limits.call_limit.is_some()) {
            spec.call_limit = seconds(tools.call_limit_of(&spec.name), spec.call_limit);
        }
        spec.max_concurrency = tools.max_concurrency_of(&spec.name).or(spec.max_concurrency);
        spec
    }

    pub(crate) fn library_options(&self) -> Result<LibraryOptions, PipelineError> {
        let config = &self.config.tools.library;
        let mut collections = Vec::new();
        for (index, folder) in self.docs.iter().chain(&config.docs).enumerate() {
            let name = if index == 0 { "docs".to_owned() } else { format!("docs-{}", index + 1) };
            collections.push(Collection::folder(name, folder)?);
        }
        // A run over folders of one's own is about those folders.
        if collections.is_empty() {
            if config.built_in {
                collections.push(Collection::documents("fathom", crate::articles::shipped(self.conf))?);
            }
            if config.installed {
                collections
                    .extend(library::Registry::new(&self.places.data, Some(self.cache_dir())).collections()?);
            }
        }
        Ok(LibraryOptions::new(collections, Some(self.cache_dir())))
    }

    /// Where indices of documents are kept.
    fn cache_dir(&self) -> PathBuf {
        let set = self.config.tools.library.cache_dir.clone();
        set.unwrap_or_else(|| self.places.cache.join("library"))
    }

    fn python_options(&self) -> Result<PythonOptions, PipelineError> {
        let config = &self.config.tools.python;
        let mut roots = self.config.tools.reading.allowed_roots.clone();
        roots.extend(self.files.iter().cloned());
        roots.push(self.run_dir.to_owned());
        let egress = crate::web_tools::egress(&self.config.tools, self.environment)?;
        let mut options = PythonOptions {
            sandbox: match config.sandbox {
                Sandbox::Auto => SandboxMode::Auto,
                Sandbox::None => SandboxMode::None,
            },
            python: config.interpreter.clone(),
            output_limit: config.output_limit,
            most_sandboxes: config.most_sandboxes,
            allowed_roots: roots,
            network: (config.network == PythonNetwork::Proxy).then(|| egress.clone()),
            egress: Some(egress),
            downloads: Some(self.run_dir.join("files")),
            limits: config.limits.clone(),
            ..PythonOptions::default()
        };
        options.lifetime = seconds(config.lifetime, options.lifetime);
        Ok(options)
    }

    fn reading_options(&self) -> Result<ReadingOptions, PipelineError> {
        let egress = crate::web_tools::egress(&self.config.tools, self.environment)?;
        Ok(ReadingOptions {
            allowed_roots: self.readable(),
            egress: Some(egress),
            ..ReadingOptions::default()
        })
    }

    /// What tools may read of this machine.
    pub(crate) fn readable(&self) -> Vec<PathBuf> {
        let mut roots = self.config.tools.reading.allowed_roots.clone();
        roots.push(self.run_dir.to_owned());
        roots.extend(self.files.iter().cloned());
        roots.extend(self.docs.iter().cloned());
        roots
    }

    fn unknown(&self, name: &str, key: &str) -> PipelineError {
        let configured = self.configured.iter().filter(|spec| !is_switched_off(spec));
        let mut known: Vec<String> = configured.map(|spec| spec.name.clone()).collect();
        known.extend(AVAILABLE.iter().map(|name| (*name).to_owned()));
        let nearest = nearest_name(name, known.iter().map(String::as_str)).map(str::to_owned);
        PipelineError::UnknownServer {
            key: key.to_owned(),
            name: name.to_owned(),
            config: self.configured_in.to_owned(),
            nearest,
            known,
        }
    }
}

/// The name that was probably meant: the one with the fewest edits, where those are no more than a third of the longer
/// of the two.
#[must_use]
pub fn nearest_name<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(name, written), name))
        .filter(|(distance, name)| *distance <= name.len().max(written.len()) / 3)
        .min()
        .map(|(_, name)| name)
}

/// The configured servers that agents use: those that an agent names, or all where none is named.
pub(crate) fn configured_in_use<'a>(
    config: &'a FathomConfig,
    configured: &'a [ServerSpec],
) -> impl Iterator<Item = &'a ServerSpec> {
    let all = !names_any(config, configured);
    configured.iter().filter(move |spec| is_named(config, spec) || (all && !is_switched_off(spec)))
}

fn names_any(config: &FathomConfig, configured: &[ServerSpec]) -> bool {
    configured.iter().any(|spec| is_named(config, spec))
}

fn is_named(config: &FathomConfig, spec: &ServerSpec) -> bool {
    let agent = &config.agent;
    let mut roles = std::iter::once(&agent.main_agent).chain(agent.sub_agents.values());
    roles.any(|role| role.tools.contains(&spec.name))
}

fn is_switched_off(spec: &ServerSpec) -> bool {
    matches!(spec.transport, Transport::Unavailable { switched_off: true, .. })
}

/// Why a configured server cannot be had, for whoever names it and so cannot do without.
pub(crate) fn unavailable(configured: &[ServerSpec], name: &str) -> Option<PipelineError> {
    match &configured.iter().find(|spec| spec.name == name)?.transport {
        Transport::Unavailable { reason, .. } => {
            Some(PipelineError::ServerUnavailable { name: name.to_owned(), reason: reason.clone() })
        }
        _ => None,
    }
}

fn not_to_be_had(name: &str, problem: String) -> ServerStatus {
    ServerStatus { name: name.to_owned(), tools: Vec::new(), error: Some(problem), sandbox: Vec::new() }
}

fn seconds(value: f64, otherwise: Duration) -> Duration {
    Duration::try_from_secs_f64(value).ok().filter(|limit| !limit.is_zero()).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestrator::AgentRole;

    /// What the main agent gets for the named servers, with `files` and `web` in `mcp.json`: names to start, and
    /// names that are not to be had.
    fn check(tools: &[&str], docs: &[&str], expected: Result<(&str, &str), &str>) {
        let mut config = FathomConfig::default();
        config.agent.main_agent.tools = tools.iter().map(|name| (*name).to_owned()).collect();
        let stdio = || Transport::Stdio {
            command: "true".into(),
            args: Vec::new(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
        };
        let absent = |name: &str, reason: &str, switched_off: bool| {
            let reason = reason.to_owned();
            ServerSpec::new(name, Transport::Unavailable { reason, switched_off })
        };
        let configured = [
            ServerSpec::new("files", stdio()),
            ServerSpec::new("tool-vqa", stdio()),
            absent("off", "mcp.json:2: mcpServers.off.disabled: it is switched off there", true),
            absent("keyless", "mcp.json:3: `KEY` is not set", false),
        ];
        let dir = tempfile::tempdir().unwrap();
        let places = Places {
            here: dir.path().into(),
            data: dir.path().into(),
            cache: dir.path().into(),
            runs: dir.path().into(),
        };
        let docs: Vec<PathBuf> = docs.iter().map(|name| dir.path().join(name)).collect();
        for folder in &docs {
            std::fs::create_dir_all(folder).unwrap();
        }
        let wiring = Wiring {
            config: &config,
            limiters: &Limiters::new(),
            clock: RunClock::default(),
            environment: &Environment::default(),
            conf: &ConfTree::default(),
            places: &places,
            configured: &configured,
            configured_in: "mcp.json",
            docs: &docs,
            run_dir: dir.path(),
            files: &[],
        };
        let found = wiring.servers().map_err(|error| format!("{error} {}", error.hint().unwrap_or_default()));
        match (found, expected) {
            (Ok(servers), Ok((started, missing))) => {
                let names: Vec<&str> = servers.specs.iter().map(|spec| spec.name.as_str()).collect();
                let absent: Vec<&str> = servers.missing.iter().map(|status| status.name.as_str()).collect();
                assert_eq!(
                    (names.join(" ").as_str(), absent.join(" ").as_str()),
                    (started, missing),
                    "{tools:?}"
                );
            }
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (found, expected) => panic!("{tools:?}: {found:?} is not {expected:?}"),
        }
    }

    #[test]
    fn which_servers_are_used() {
        check(&["library", "tool-python"], &[], Ok(("library tool-python files tool-vqa keyless", "")));
        check(&["files", "library"], &[], Ok(("files library", "")));
        check(
            &["tool-vqa", "tool-vqa-os", "tool-google-search"],
            &[],
            Ok(("tool-vqa tool-google-search", "tool-vqa-os")),
        );
        check(&["files"], &["papers"], Ok(("files library", "")));
        check(&[], &[], Ok(("files tool-vqa keyless", "")));
        check(
            &["files", "off"],
            &[],
            Err("`off` cannot be used: mcp.json:2: mcpServers.off.disabled: it is switched"),
        );
        check(&["keyless"], &[], Err("`keyless` cannot be used: mcp.json:3: `KEY` is not set"));
        check(&["file"], &[], Err("Did you mean `files`?"));
        check(&["nothing-like-it"], &[], Err("There are: files, tool-vqa, keyless, library"));
    }

    #[test]
    fn agents_share_servers_and_have_lists_of_their_own() {
        let mut config = FathomConfig::default();
        config.agent.main_agent.tools = vec!["tool-python".into(), "library".into()];
        let role = |tools: &[&str]| AgentRole {
            tools: tools.iter().map(|name| (*name).to_owned()).collect(),
            ..AgentRole::default()
        };
        config.agent.sub_agents.insert("agent-a".into(), role(&["tool-reader", "tool-python"]));
        config.agent.sub_agents.insert("agent-b".into(), role(&["tool-vqa-os"]));
        let dir = tempfile::tempdir().unwrap();
        let places = Places {
            here: dir.path().into(),
            data: dir.path().into(),
            cache: dir.path().into(),
            runs: dir.path().into(),
        };
        let wired = |config: &FathomConfig| {
            let wiring = Wiring {
                config,
                limiters: &Limiters::new(),
                clock: RunClock::default(),
                environment: &Environment::default(),
                conf: &ConfTree::default(),
                places: &places,
                configured: &[],
                configured_in: "mcp.json",
                docs: &[],
                run_dir: dir.path(),
                files: &[],
            };
            wiring.servers()
        };
        let servers = wired(&config).unwrap();
        let names: Vec<&str> = servers.specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["tool-python", "library", "tool-reader"]);
        assert_eq!(servers.missing.len(), 1);
        let of = |agent: &str| servers.agents[agent].join(" ");
        assert_eq!(
            (of("main"), of("agent-a"), of("agent-b")),
            ("tool-python library".into(), "tool-reader tool-python".into(), String::new())
        );
        config.agent.sub_agents.insert("agent-c".into(), role(&["tool-pyton"]));
        let error = wired(&config).unwrap_err();
        assert!(error.to_string().starts_with("agent.sub_agents.agent-c.tools names"), "{error}");
        assert!(error.hint().unwrap().contains("tool-python"));
    }
}
