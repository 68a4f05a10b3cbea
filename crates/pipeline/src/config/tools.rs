//! The `tools` section: limits of tool servers, and what the built-in ones may do.
//!
//! Decides names, types and defaults. Which servers an agent uses is in the `agent` section, where servers of other
//! programs come from is in `mcp.json`, and carrying all this out is left to whoever reads it.

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use mcp_tools::servers::python::SandboxLimits;
use serde::{Deserialize, Serialize};

use super::egress::EgressConfig;

/// The longest limit that a call can be given, in seconds.
pub const LONGEST_CALL_LIMIT: f64 = 1200.0;

/// The `tools` section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// Seconds that a server has to start.
    pub start_limit: f64,
    /// Seconds that a call may take, at most 1200.
    pub call_limit: f64,
    /// Characters of a result that the model is shown.
    pub output_limit: usize,
    /// Whether the `<` of a protocol tag in a result is written `&lt;`.
    pub neutralise_tags: bool,
    /// Limits of single servers, by name.
    pub servers: BTreeMap<String, ServerLimits>,
    /// What may be fetched from the network.
    pub egress: EgressConfig,
    /// What the Python servers may do.
    pub python: PythonConfig,
    /// What the document reader may do.
    pub reading: ReadingConfig,
    /// Which models tools ask, where only a provider's key is set.
    pub models: ToolModelsConfig,
    /// What the library holds.
    pub library: LibraryConfig,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            start_limit: 30.0,
            call_limit: 300.0,
            output_limit: 100_000,
            neutralise_tags: true,
            servers: BTreeMap::new(),
            egress: EgressConfig::default(),
            python: PythonConfig::default(),
            reading: ReadingConfig::default(),
            models: ToolModelsConfig::default(),
            library: LibraryConfig::default(),
        }
    }
}

impl ToolsConfig {
    /// Seconds that a server has to start.
    #[must_use]
    pub fn start_limit_of(&self, server: &str) -> f64 {
        self.servers.get(server).and_then(|limits| limits.start_limit).unwrap_or(self.start_limit)
    }

    /// Seconds that a call to a server may take.
    #[must_use]
    pub fn call_limit_of(&self, server: &str) -> f64 {
        self.servers.get(server).and_then(|limits| limits.call_limit).unwrap_or(self.call_limit)
    }

    /// Calls to a server that may be under way at once; none: as many as are asked for.
    #[must_use]
    pub fn max_concurrency_of(&self, server: &str) -> Option<usize> {
        self.servers.get(server).and_then(|limits| limits.max_concurrency)
    }
}

/// Limits of one server; what is none is as for all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerLimits {
    /// Seconds that it has to start.
    pub start_limit: Option<f64>,
    /// Seconds that a call may take, at most 1200.
    pub call_limit: Option<f64>,
    /// Calls under way at once.
    pub max_concurrency: Option<usize>,
    /// Whether a call that was under way when a run was interrupted is made again; none: as the server says of its
    /// tools, else where the tool's name is that of one that only searches, reads or scrapes.
    pub repeatable: Option<bool>,
}

/// What the Python servers may do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PythonConfig {
    /// Where code runs.
    pub backend: PythonBackend,
    /// How code is confined on this machine.
    pub sandbox: Sandbox,
    /// What code reaches of the network.
    pub network: PythonNetwork,
    /// The interpreter; none: the first that is found on this machine.
    pub interpreter: Option<PathBuf>,
    /// Characters of output that a call shows.
    pub output_limit: usize,
    /// Sandboxes that may live at a time.
    pub most_sandboxes: usize,
    /// Seconds without a call after which a sandbox ends.
    pub lifetime: f64,
    /// What a sandbox may use up.
    pub limits: SandboxLimits,
}

impl Default for PythonConfig {
    fn default() -> Self {
        Self {
            backend: PythonBackend::default(),
            sandbox: Sandbox::default(),
            network: PythonNetwork::default(),
            interpreter: None,
            output_limit: 20_000,
            most_sandboxes: 16,
            lifetime: 1800.0,
            limits: SandboxLimits::default(),
        }
    }
}

/// Where code of a model runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PythonBackend {
    /// On this machine, confined.
    #[default]
    Local,
    /// In sandboxes of E2B (`E2B_API_KEY`); `stateless_python` stays on this machine.
    E2b,
}

/// How code of a model is confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// By everything that this machine can enforce; where it can enforce nothing, code is not run.
    #[default]
    Auto,
    /// Not at all.
    None,
}

/// What code of a model reaches of the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PythonNetwork {
    /// Nothing.
    #[default]
    None,
    /// What the egress policy lets through, by a proxy; nothing where this machine cannot keep code to that.
    Proxy,
}

/// What the document reader may do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadingConfig {
    /// Folders that it reads from, beside the files given with the question and the run's own folder.
    pub allowed_roots: Vec<PathBuf>,
}

/// Which models tools ask, where only a provider's key (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`) is set. Services of
/// their own are set up by `VISION_*`, `WHISPER_*` and `REASONING_*`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolModelsConfig {
    /// Looks at pictures; none: the provider's default.
    pub vision: Option<String>,
    /// How videos are shown to the model that looks at pictures.
    pub video: VideoForm,
    /// Solves hard questions; none: the provider's default.
    pub reasoning: Option<String>,
    /// Writes down what is said in recordings, at OpenAI.
    pub transcription: String,
    /// Answers questions about recordings, at OpenAI.
    pub audio: String,
}

impl Default for ToolModelsConfig {
    fn default() -> Self {
        Self {
            vision: None,
            video: VideoForm::default(),
            reasoning: None,
            transcription: "gpt-4o-transcribe".to_owned(),
            audio: "gpt-4o-audio-preview".to_owned(),
        }
    }
}

/// How a model is shown a video.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VideoForm {
    /// As it is where the endpoint may take it: one of one's own (`VISION_BASE_URL`), until it refuses. Else by still
    /// pictures.
    #[default]
    Auto,
    /// As it is, at endpoints of the chat-completions kind.
    Whole,
    /// By still pictures, which ffmpeg takes.
    Stills,
}

/// What the library holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LibraryConfig {
    /// Whether the articles that the program brings along are in it.
    pub built_in: bool,
    /// Whether the collections that `library add` installed are in it.
    pub installed: bool,
    /// Folders of documents that are in it.
    pub docs: Vec<PathBuf>,
    /// Where the index is kept; none: in the user's cache folder.
    pub cache_dir: Option<PathBuf>,
}

impl Default for LibraryConfig {
    fn default() -> Self {
        Self { built_in: true, installed: true, docs: Vec::new(), cache_dir: None }
    }
}

/// The servers that the program brings along, the one that is still to come last.
pub const BUILT_IN_SERVERS: [&str; 17] = [
    "library",
    "tool-reading",
    "tool-reader",
    "tool-python",
    "stateless_python",
    "search_and_scrape_webpage",
    "jina_scrape_llm_summary",
    "tool-google-search",
    "tool-sogou-search",
    "tool-vqa",
    "tool-vqa-os",
    "tool-transcribe",
    "tool-transcribe-os",
    "tool-reasoning",
    "tool-reasoning-os",
    "task_planner",
    "workspace",
];
