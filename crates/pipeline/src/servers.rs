//! Which tool servers a run uses and how they are set up. Decides between built-in and configured servers of the same
//! name, and what is said of those that cannot be had; starting them is left to `mcp_tools`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use core_protocol::event::ServerStatus;
use mcp_tools::servers::library::{self, Collection, LibraryOptions};
use mcp_tools::servers::python::{self, PythonOptions, SandboxMode};
use mcp_tools::servers::reading::{self, ReadingOptions};
use mcp_tools::{DEFAULT_CALL_LIMIT, DEFAULT_START_LIMIT, InProcessServer, ServerSpec, Transport};

use crate::config::{BUILT_IN_SERVERS, ConfTree, FathomConfig, Sandbox};
use crate::error::PipelineError;
use crate::surroundings::Places;

/// Those of [`BUILT_IN_SERVERS`](crate::config::BUILT_IN_SERVERS) that this version brings along. A run goes on
/// without the others.
pub const AVAILABLE: &[&str] = &["library", "tool-python", "stateless_python", "tool-reading", "tool-reader"];

/// What servers are made from.
pub struct Wiring<'a> {
    /// The whole configuration.
    pub config: &'a FathomConfig,
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
}

impl Wiring<'_> {
    /// The servers of the main agent.
    ///
    /// `main_agent.tools` names them, built-in or configured. Where it names none of the configured ones, all of
    /// those are used as well: whoever writes an `mcp.json` means to use it.
    ///
    /// # Errors
    ///
    /// A name that nobody knows; a library that cannot be set up.
    pub fn servers(&self) -> Result<Servers, PipelineError> {
        let named = &self.config.agent.main_agent.tools;
        let mut servers = Servers::default();
        for name in named {
            if let Some(spec) = self.configured.iter().find(|spec| spec.name == *name) {
                servers.specs.push(self.limited(spec.clone()));
            } else if AVAILABLE.contains(&name.as_str()) {
                servers.specs.push(self.spec(self.built_in(name)?));
            } else if BUILT_IN_SERVERS.contains(&name.as_str()) {
                servers.missing.push(ServerStatus {
                    name: name.clone(),
                    tools: Vec::new(),
                    error: Some(format!(
                        "not part of this version; configure a server named `{name}` in mcp.json to have it"
                    )),
                    sandbox: Vec::new(),
                });
            } else {
                return Err(self.unknown(name));
            }
        }
        if !self.configured.iter().any(|spec| named.contains(&spec.name)) {
            servers.specs.extend(self.configured.iter().cloned().map(|spec| self.limited(spec)));
        }
        let asks_for_docs = !self.docs.is_empty() || !self.config.tools.library.docs.is_empty();
        if asks_for_docs && !servers.specs.iter().any(|spec| spec.name == "library") {
            servers.specs.insert(0, self.spec(self.built_in("library")?));
        }
        Ok(servers)
    }

    /// One built-in server by its name.
    ///
    /// # Errors
    ///
    /// A name that is not one of [`AVAILABLE`]; a library that cannot be set up.
    pub fn built_in(&self, name: &str) -> Result<Arc<dyn InProcessServer>, PipelineError> {
        Ok(match name {
            "library" => library::server(self.library_options()?)?,
            "tool-python" => python::server(self.python_options()),
            "stateless_python" => python::stateless_server(self.python_options()),
            "tool-reading" | "tool-reader" => reading::named_server(name, self.reading_options()),
            _ => return Err(self.unknown(name)),
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

    fn library_options(&self) -> Result<LibraryOptions, PipelineError> {
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

    fn python_options(&self) -> PythonOptions {
        let config = &self.config.tools.python;
        let mut roots = self.config.tools.reading.allowed_roots.clone();
        roots.extend(self.files.iter().cloned());
        roots.push(self.run_dir.to_owned());
        let mut options = PythonOptions {
            sandbox: match config.sandbox {
                Sandbox::Auto => SandboxMode::Auto,
                Sandbox::None => SandboxMode::None,
            },
            python: config.interpreter.clone(),
            output_limit: config.output_limit,
            most_sandboxes: config.most_sandboxes,
            allowed_roots: roots,
            downloads: Some(self.run_dir.join("files")),
            ..PythonOptions::default()
        };
        options.limits.memory = config.limits.memory;
        options.limits.processes = config.limits.processes;
        options.limits.file_size = config.limits.file_size;
        options.limits.processor_seconds = config.limits.processor_seconds;
        options.limits.open_files = config.limits.open_files;
        options.lifetime = seconds(config.lifetime, options.lifetime);
        options
    }

    fn reading_options(&self) -> ReadingOptions {
        let mut roots = self.config.tools.reading.allowed_roots.clone();
        roots.push(self.run_dir.to_owned());
        roots.extend(self.files.iter().cloned());
        roots.extend(self.docs.iter().cloned());
        ReadingOptions { allowed_roots: roots, ..ReadingOptions::default() }
    }

    fn unknown(&self, name: &str) -> PipelineError {
        let mut known: Vec<String> = self.configured.iter().map(|spec| spec.name.clone()).collect();
        known.extend(AVAILABLE.iter().map(|name| (*name).to_owned()));
        let nearest = known
            .iter()
            .map(|candidate| (strsim::damerau_levenshtein(candidate, name), candidate))
            .filter(|(distance, candidate)| *distance <= candidate.len().max(name.len()) / 3)
            .min()
            .map(|(_, candidate)| candidate.clone());
        PipelineError::UnknownServer {
            name: name.to_owned(),
            config: self.configured_in.to_owned(),
            nearest,
            known,
        }
    }
}

fn seconds(value: f64, otherwise: Duration) -> Duration {
    Duration::try_from_secs_f64(value).ok().filter(|limit| !limit.is_zero()).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let configured = [ServerSpec::new("files", stdio()), ServerSpec::new("tool-vqa", stdio())];
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
        check(&["library", "tool-python"], &[], Ok(("library tool-python files tool-vqa", "")));
        check(&["files", "library"], &[], Ok(("files library", "")));
        check(
            &["tool-vqa", "tool-google-search", "tool-reader"],
            &[],
            Ok(("tool-vqa tool-reader", "tool-google-search")),
        );
        check(&["files"], &["papers"], Ok(("library files", "")));
        check(&[], &[], Ok(("files tool-vqa", "")));
        check(&["file"], &[], Err("Did you mean `files`?"));
        check(&["nothing-like-it"], &[], Err("There are: files, tool-vqa, library"));
    }
}
