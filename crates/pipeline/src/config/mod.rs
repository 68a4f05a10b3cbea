//! Configuration: from files, variables and options to one typed value, with the origin of every part of it.
//!
//! # Layers, the later ones win
//!
//! 1. the defaults of the types;
//! 2. `conf/config.yaml` and the files that its `defaults:` list names;
//! 3. the files chosen with `--llm`, `--agent`, `--benchmark` (or `--set llm=NAME`, or `FATHOM_LLM=NAME`, or the
//!    `defaults:` list of the user's own file), each with its own `defaults:` list. A chosen file takes the place of
//!    the one that `config.yaml` names for the group: that one is not read;
//! 4. the user's own file;
//! 5. environment variables, `FATHOM_LLM__BASE_URL` for `llm.base_url`, with `.env` files under them;
//! 6. `--set key.path=value`.
//!
//! Maps are laid over each other key by key; lists and everything else are replaced as a whole. `key:` with nothing
//! after it is an empty map or list, or "none" where a key can be none.
//!
//! # Files
//!
//! Every file is looked for in the configuration directory first and then among the built-in ones, which are part of
//! the program. A file fills the section of its folder: `agent/x.yaml` is about `agent`. In a `defaults:` list,
//! `- name` is a file of the same folder, `- group: name` one of a group (`- /group: name` in a file of a group),
//! `- override /group: name` takes the place of another entry, and `- _self_` says where the file's own values come;
//! without it they come last, as in Hydra since 1.1.
//!
//! # Errors
//!
//! All at once, each with the key, the file and line (or variable, or option), what was expected and the nearest
//! valid name. A key that nobody reads is an error, but for a few of other programs' that are listed as accepted and
//! unused. Secrets are in no error and in nothing that is shown.
//!
//! ```
//! use pipeline::config::{ConfigSources, resolve};
//!
//! let mut sources = ConfigSources { agent: Some("quick_demo".to_owned()), ..ConfigSources::default() };
//! sources.sets.push("agent.main_agent.max_turns=4".to_owned());
//! let resolved = resolve(&sources)?;
//! assert_eq!(resolved.config.agent.main_agent.max_turns, 4);
//! assert_eq!(resolved.origin_of("agent.main_agent.max_turns").to_string(), "--set agent.main_agent.max_turns");
//!
//! sources.sets.push("agent.main_agent.max_turn=4".to_owned());
//! let errors = resolve(&sources).map(|_| ()).unwrap_err();
//! assert_eq!(errors.0[0].hint(), Some("Did you mean `max_turns`?"));
//! # Ok::<(), pipeline::config::ConfigErrors>(())
//! ```
//!
//! What the values mean is left to the crates that own the sections. Nothing here reads the process's environment or
//! looks for the user's folders: the caller hands both over.

mod accepted;
mod benchmark;
mod check;
mod compose;
mod defaults;
mod egress;
mod embedded;
mod environment;
mod error;
mod interpolate;
mod layer;
mod nearest;
mod node;
mod redact;
mod report;
mod resolve;
mod rules;
mod set;
mod show;
mod suite;
mod tools;
mod typed;
mod yaml;

use serde::{Deserialize, Serialize};

pub use accepted::AcceptedUnused;
pub use benchmark::{BenchmarkConfig, BenchmarkData, BenchmarkExecution, FieldMapping, JudgeConfig, JudgeId};
pub use check::{CheckReport, PresetReport, check, unknown_limits, unknown_servers};
pub use compose::LoadedFile;
pub use defaults::Group;
pub use egress::EgressConfig;
pub use embedded::{ConfEntry, ConfFile, ConfTree, embedded, find_conf_dir};
pub use environment::{OTHER_VARIABLES, PREFIX};
pub use error::{ConfigError, ConfigErrorKind, ConfigErrors};
pub use layer::Origin;
pub use redact::is_secret_name;
pub(crate) use redact::{without_password, without_query_secrets};
pub use resolve::{ConfigSources, Provenance, Resolved, resolve};
pub use set::key_of_set;
pub use tools::{
    BUILT_IN_SERVERS, LONGEST_CALL_LIMIT, LibraryConfig, PythonBackend, PythonConfig, PythonNetwork,
    ReadingConfig, Sandbox, SandboxLimits, ServerLimits, ToolModelsConfig, ToolsConfig, VideoForm,
};

/// The whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FathomConfig {
    /// The model.
    pub llm: llm_providers::LlmConfig,
    /// The agents and their loop.
    pub agent: orchestrator::AgentConfig,
    /// The benchmark, for programs that run one.
    pub benchmark: BenchmarkConfig,
    /// Limits of tool servers, and what the built-in ones may do.
    pub tools: ToolsConfig,
}
