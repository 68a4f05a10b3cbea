//! What a program finds around it: the user's folders, `.env`, `mcp.json`. Decides where each is looked for.
//!
//! The process's environment, its folder and its options are handed in, so that every program and every test finds
//! its things by the same rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use llm_providers::{Environment, Limiters};
use mcp_tools::{McpJson, ServerSpec, Transport, parse_mcp_json};

use crate::cassette::CassetteChoice;
use crate::config::{ConfigSources, Resolved, find_conf_dir, resolve, unknown_limits};
use crate::error::PipelineError;
use crate::resume::Interrupted;
use crate::run::{Pipeline, PipelineParts};
use crate::servers::unavailable;

/// The file that names further tool servers.
pub const MCP_FILE: &str = "mcp.json";

/// Folders of the user and of this call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Where relative paths are looked up.
    pub here: PathBuf,
    /// What is kept: libraries.
    pub data: PathBuf,
    /// What can be made again: indices.
    pub cache: PathBuf,
    /// Where runs leave their folders.
    pub runs: PathBuf,
}

impl Places {
    /// What a tool server may read for programs of others: what is below the current folder, unless that is the whole
    /// machine or all that a person owns.
    #[must_use]
    pub fn open_to_clients(&self, environment: &Environment) -> Vec<PathBuf> {
        let is_home = environment.get("HOME").is_some_and(|home| Path::new(home) == self.here);
        let is_closed = is_home || self.here.parent().is_none();
        (!is_closed).then(|| self.here.clone()).into_iter().collect()
    }
}

/// What was chosen when the program was called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// A configuration folder; none: `conf` here, where there is one.
    pub conf_dir: Option<PathBuf>,
    /// The model: `conf/llm/NAME.yaml`.
    pub llm: Option<String>,
    /// The agent: `conf/agent/NAME.yaml`.
    pub agent: Option<String>,
    /// The benchmark: `conf/benchmark/NAME.yaml`.
    pub benchmark: Option<String>,
    /// `key.path=value`, in order.
    pub sets: Vec<String>,
    /// Further tool servers; none: `mcp.json` here, then the user's.
    pub mcp_config: Option<PathBuf>,
    /// Where runs leave their folders.
    pub runs_dir: PathBuf,
    /// Whether exchanges are recorded or replayed.
    pub cassette: Option<CassetteChoice>,
}

/// Servers of `mcp.json`, and where they were found or looked for.
#[derive(Debug)]
pub struct Configured {
    /// The servers.
    pub servers: Vec<ServerSpec>,
    /// The file.
    pub origin: String,
    /// What of the file was read over.
    pub notes: Vec<String>,
}

impl Configured {
    /// The names of all.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.servers.iter().map(|spec| spec.name.clone()).collect()
    }

    /// What was read over, and which servers cannot be had.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let unavailable = self.servers.iter().filter_map(|spec| match &spec.transport {
            Transport::Unavailable { reason, switched_off: false } => {
                Some(format!("the tool server `{}` cannot be used: {reason}", spec.name))
            }
            _ => None,
        });
        self.notes.iter().cloned().chain(unavailable).collect()
    }

    /// Whether every configured server that these `tools` name can be had.
    ///
    /// # Errors
    ///
    /// The first that cannot.
    pub fn check<'a>(&self, tools: impl IntoIterator<Item = &'a String>) -> Result<(), PipelineError> {
        tools.into_iter().find_map(|name| unavailable(&self.servers, name)).map_or(Ok(()), Err)
    }
}

/// Everything that a program finds around it.
#[derive(Clone)]
pub struct Surroundings {
    /// What was chosen.
    pub options: Options,
    /// The user's folders.
    pub places: Places,
    /// What all clients of a model wait for that are made here. Clones share it.
    pub limiters: Limiters,
    variables: BTreeMap<String, String>,
    user_config_dir: Option<PathBuf>,
}

impl Surroundings {
    /// Finds the user's folders as the XDG base directory specification says: `XDG_*_HOME` where it is an absolute
    /// path, else below `HOME`. `temporary` takes their place where neither is set.
    #[must_use]
    pub fn new(
        variables: BTreeMap<String, String>,
        here: PathBuf,
        temporary: &Path,
        options: Options,
    ) -> Self {
        let set = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = |variable: &str, below_home: &str| {
            let chosen = set(variable).filter(|path| path.is_absolute());
            chosen.or_else(|| Some(set("HOME")?.join(below_home))).map(|path| path.join("fathom"))
        };
        let places = Places {
            data: folder("XDG_DATA_HOME", ".local/share").unwrap_or_else(|| temporary.join("fathom/data")),
            cache: folder("XDG_CACHE_HOME", ".cache").unwrap_or_else(|| temporary.join("fathom/cache")),
            runs: options.runs_dir.clone(),
            here,
        };
        let user_config_dir = folder("XDG_CONFIG_HOME", ".config");
        Self { options, places, limiters: Limiters::new(), variables, user_config_dir }
    }

    /// What the configuration is made from.
    #[must_use]
    pub fn sources(&self) -> ConfigSources {
        let conf_dir = self.options.conf_dir.clone().or_else(|| find_conf_dir(&self.places.here));
        let mut dotenv = vec![self.places.here.join(".env")];
        let beside = conf_dir.as_deref().and_then(Path::parent).map(|folder| folder.join(".env"));
        dotenv.extend(beside.filter(|path| *path != dotenv[0]));
        ConfigSources {
            conf_dir,
            agent: self.options.agent.clone(),
            llm: self.options.llm.clone(),
            benchmark: self.options.benchmark.clone(),
            sets: self.options.sets.clone(),
            environment: self.variables.clone(),
            dotenv,
            user_config: self.user_config_dir.as_ref().map(|folder| folder.join("config.yaml")),
        }
    }

    /// The configuration.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn resolve(&self) -> Result<Resolved, PipelineError> {
        Ok(resolve(&self.sources())?)
    }

    /// The servers of `mcp.json`.
    ///
    /// # Errors
    ///
    /// A file that was named and is not there, and everything that is wrong in it.
    pub fn configured(&self, resolved: &Resolved) -> Result<Configured, PipelineError> {
        let user = self.user_config_dir.as_ref().map(|folder| folder.join(MCP_FILE));
        let path = match &self.options.mcp_config {
            Some(path) => Some(path.clone()),
            None => [Some(self.places.here.join(MCP_FILE)), user]
                .into_iter()
                .flatten()
                .find(|path| path.is_file()),
        };
        let Some(path) = path else {
            return Ok(Configured { servers: Vec::new(), origin: MCP_FILE.to_owned(), notes: Vec::new() });
        };
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| PipelineError::McpFile { path: origin.clone(), problem: error.to_string() })?;
        let lookup = |name: &str| resolved.environment.get(name).map(str::to_owned);
        let McpJson { servers, notes } = parse_mcp_json(&text, &origin, &lookup)?;
        Ok(Configured { servers, origin, notes })
    }

    /// Everything that runs share.
    ///
    /// # Errors
    ///
    /// As [`Surroundings::resolve`], [`Surroundings::configured`] and [`Pipeline::new`].
    pub async fn pipeline(&self) -> Result<Pipeline, PipelineError> {
        let resolved = self.resolve()?;
        for warning in &resolved.warnings {
            tracing::warn!("{warning}");
        }
        let configured = self.configured(&resolved)?;
        for warning in configured.warnings().iter().chain(&unknown_limits(&resolved, &configured.names())) {
            tracing::warn!("{warning}");
        }
        Pipeline::new(self.parts(resolved, configured, self.options.cassette.clone())).await
    }
}

impl Surroundings {
    /// Everything that going on with an interrupted run needs: as [`Surroundings::pipeline`], with the configuration
    /// that the run began with.
    ///
    /// # Errors
    ///
    /// As [`Surroundings::pipeline`], and whatever is not as it was when the run began.
    pub async fn pipeline_of(&self, interrupted: &Interrupted) -> Result<Pipeline, PipelineError> {
        let options = interrupted.options(&self.options)?;
        let began_like_this = Self { options, ..self.clone() };
        let resolved = began_like_this.resolve()?;
        let configured = began_like_this.configured(&resolved)?;
        let resolved = interrupted.configuration(resolved, &self.options.sets)?;
        Pipeline::new(self.parts(resolved, configured, None)).await
    }

    fn parts(
        &self,
        resolved: Resolved,
        configured: Configured,
        cassette: Option<CassetteChoice>,
    ) -> PipelineParts {
        PipelineParts {
            resolved,
            places: self.places.clone(),
            configured: configured.servers,
            configured_in: configured.origin,
            limiters: self.limiters.clone(),
            cassette,
        }
    }
}

/// Shows no variables: they may hold keys.
impl std::fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Surroundings")
            .field("options", &self.options)
            .field("places", &self.places)
            .field("variables", &self.variables.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(variables: &[(&str, &str)]) -> Places {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Surroundings::new(variables, "/here".into(), Path::new("/tmp"), Options::default()).places
    }

    #[test]
    fn folders() {
        assert_eq!(places(&[("HOME", "/home/u")]).data, Path::new("/home/u/.local/share/fathom"));
        assert_eq!(places(&[("HOME", "/home/u"), ("XDG_CACHE_HOME", "/c")]).cache, Path::new("/c/fathom"));
        assert_eq!(
            places(&[("HOME", "/home/u"), ("XDG_DATA_HOME", "relative")]).data,
            Path::new("/home/u/.local/share/fathom")
        );
        assert_eq!(places(&[]).cache, Path::new("/tmp/fathom/cache"));
    }
}
