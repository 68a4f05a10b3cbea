//! What a program finds around it: the user's folders, `.env`, `mcp.json`. Decides where each is looked for.
//!
//! The process's environment, its folder and its options are handed in, so that every program and every test finds
//! its things by the same rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mcp_tools::{ServerSpec, parse_mcp_json};

use crate::config::{ConfigSources, Resolved, find_conf_dir, resolve};
use crate::error::PipelineError;
use crate::run::{Pipeline, PipelineParts};

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

/// What was chosen when the program was called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// A configuration folder; none: `conf` here, where there is one.
    pub conf_dir: Option<PathBuf>,
    /// The model: `conf/llm/NAME.yaml`.
    pub llm: Option<String>,
    /// The agent: `conf/agent/NAME.yaml`.
    pub agent: Option<String>,
    /// `key.path=value`, in order.
    pub sets: Vec<String>,
    /// Further tool servers; none: `mcp.json` here, then the user's.
    pub mcp_config: Option<PathBuf>,
    /// Where runs leave their folders.
    pub runs_dir: PathBuf,
}

/// Servers of `mcp.json`, and where they were found or looked for.
#[derive(Debug)]
pub struct Configured {
    /// The servers.
    pub servers: Vec<ServerSpec>,
    /// The file.
    pub origin: String,
}

/// Everything that a program finds around it.
#[derive(Clone)]
pub struct Surroundings {
    /// What was chosen.
    pub options: Options,
    /// The user's folders.
    pub places: Places,
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
        Self { options, places, variables, user_config_dir }
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
            benchmark: None,
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
            return Ok(Configured { servers: Vec::new(), origin: MCP_FILE.to_owned() });
        };
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| PipelineError::McpFile { path: origin.clone(), problem: error.to_string() })?;
        let lookup = |name: &str| resolved.environment.get(name).map(str::to_owned);
        Ok(Configured { servers: parse_mcp_json(&text, &origin, &lookup)?, origin })
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
        let Configured { servers, origin } = self.configured(&resolved)?;
        Pipeline::new(PipelineParts {
            resolved,
            places: self.places.clone(),
            configured: servers,
            configured_in: origin,
        })
        .await
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
