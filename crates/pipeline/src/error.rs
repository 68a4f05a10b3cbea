//! What keeps a run from beginning. Decides the words: what happened, where, and what to do.
//!
//! What goes wrong inside a run is no error of this crate: the run ends with a summary that says it.

use core_protocol::event::ErrorReport;
use llm_providers::LlmError;

use crate::config::ConfigErrors;

/// Whose fault it is, which decides a program's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// What was asked or configured cannot be done.
    Usage,
    /// The machine or a service failed.
    Failure,
}

/// A run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The question is empty.
    #[error("the question is empty")]
    EmptyQuestion,
    /// A file given with the question cannot be used.
    #[error("the file {path} cannot be read: {problem}")]
    File {
        /// The file as given.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A prompt template cannot be used.
    #[error("the prompt template {place} cannot be used: {problem}")]
    Prompt {
        /// Its file.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// A setting that this version does not carry out.
    #[error("{key} cannot be used: {problem}")]
    Unsupported {
        /// The key.
        key: String,
        /// Why.
        problem: String,
        /// What to do instead.
        remedy: String,
    },
    /// A tool server that is neither built in nor configured.
    #[error("{key} names the server `{name}`, which is neither built in nor in {config}")]
    UnknownServer {
        /// The setting that names it.
        key: String,
        /// The name.
        name: String,
        /// Where configured servers are.
        config: String,
        /// The nearest name there is.
        nearest: Option<String>,
        /// All names there are.
        known: Vec<String>,
    },
    /// A server that is configured and cannot be had.
    #[error("the tool server `{name}` cannot be used: {reason}")]
    ServerUnavailable {
        /// The name.
        name: String,
        /// Why, with its place in the file.
        reason: String,
    },
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// `mcp.json` cannot be read.
    #[error("the tool servers in {path} cannot be read: {problem}")]
    McpFile {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// `mcp.json` cannot be used.
    #[error(transparent)]
    McpConfig(#[from] mcp_tools::ToolsError),
    /// The library cannot be used.
    #[error(transparent)]
    Library(#[from] mcp_tools::servers::library::LibraryError),
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] LlmError),
    /// The log of a run cannot be read.
    #[error(transparent)]
    Log(#[from] crate::log::LogError),
    /// A cassette cannot be used.
    #[error(transparent)]
    Cassette(#[from] llm_providers::cassette::CassetteError),
    /// Another process works on the run.
    #[error("another process{} works on the run in {dir}", pid.map_or_else(String::new, |pid| format!(" ({pid})")))]
    Locked {
        /// The run's directory.
        dir: String,
        /// The other process.
        pid: Option<u32>,
    },
    /// Something is not as it was when the run began.
    #[error("the run in {dir} cannot be gone on with: {problem}")]
    Differs {
        /// The run's directory.
        dir: String,
        /// What differs.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// The run, driven again, does not do what its log says it did.
    #[error("the run in {dir} cannot be gone on with: {departure}")]
    Departed {
        /// The run's directory.
        dir: String,
        /// Where and how.
        departure: orchestrator::journal::Departure,
    },
    /// The run's directory or log cannot be written.
    #[error("{what} {path} cannot be written: {source}")]
    Write {
        /// What it is.
        what: &'static str,
        /// Its path.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl PipelineError {
    /// A stable word to branch on.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::EmptyQuestion => "empty_question",
            Self::File { .. } => "file",
            Self::Prompt { .. } => "prompt",
            Self::Unsupported { .. } => "unsupported",
            Self::UnknownServer { .. } => "unknown_server",
            Self::ServerUnavailable { .. } => "server_unavailable",
            Self::Config(errors) => errors.kind(),
            Self::McpFile { .. } | Self::McpConfig(_) => "mcp_config",
            Self::Library(_) => "library",
            Self::Model(error) => error.kind(),
            Self::Log(error) => error.kind(),
            Self::Cassette(error) => error.kind(),
            Self::Locked { .. } => "locked",
            Self::Differs { .. } => "other_configuration",
            Self::Departed { .. } => "departed_from_log",
            Self::Write { .. } => "io",
        }
    }

    /// Whose fault it is.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::EmptyQuestion
            | Self::File { .. }
            | Self::Prompt { .. }
            | Self::Unsupported { .. }
            | Self::UnknownServer { .. }
            | Self::ServerUnavailable { .. }
            | Self::Config(_)
            | Self::McpFile { .. }
            | Self::McpConfig(_)
            | Self::Cassette(_)
            | Self::Locked { .. }
            | Self::Differs { .. } => ErrorClass::Usage,
            // What only another setting cures is wrong with the settings.
            Self::Model(error) if error.is_permanent() => ErrorClass::Usage,
            Self::Model(_) => ErrorClass::Failure,
            Self::Log(error) if matches!(error.kind(), "not_a_run" | "other_log_form") => ErrorClass::Usage,
            Self::Log(_) | Self::Departed { .. } => ErrorClass::Failure,
            Self::Library(error) if error.is_usage() => ErrorClass::Usage,
            Self::Library(_) | Self::Write { .. } => ErrorClass::Failure,
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::EmptyQuestion => Some(
                "Give the question as an argument: fathom ask \"Who …?\"; or pipe it in: echo \"Who …?\" | fathom ask -"
                    .to_owned(),
            ),
            Self::File { .. } => Some("Give the path of a text, Markdown or HTML file that exists.".to_owned()),
            Self::Prompt { .. } => Some(
                "Correct the template, or remove it from your prompts folder so that the built-in one is used."
                    .to_owned(),
            ),
            Self::Unsupported { remedy, .. } => Some(remedy.clone()),
            Self::UnknownServer { nearest, known, .. } => {
                let meant = nearest.as_ref().map_or_else(String::new, |name| format!("Did you mean `{name}`? "));
                Some(format!("{meant}There are: {}.", known.join(", ")))
            }
            Self::ServerUnavailable { name, .. } => {
                Some(format!("Mend that, or take `{name}` out of agent.main_agent.tools."))
            }
            Self::Config(errors) => errors.hint().map(str::to_owned),
            Self::McpFile { .. } => Some(
                "Give a file in the format of desktop MCP clients: {\"mcpServers\": {\"NAME\": {\"command\": …}}}."
                    .to_owned(),
            ),
            Self::McpConfig(_) | Self::Library(_) => None,
            Self::Model(error) => error.hint(),
            Self::Cassette(error) => Some(error.hint()),
            Self::Log(error) => Some(error.hint()),
            Self::Locked { .. } => {
                Some("Wait until it has ended, or end it; then resume the run once more.".to_owned())
            }
            Self::Differs { remedy, .. } => Some(remedy.clone()),
            Self::Departed { .. } => Some(
                "Nothing was added to the log. Resume with the version of the program that wrote it, or ask again; \
                 what the run found is in its log: fathom trace show."
                    .to_owned(),
            ),
            Self::Write { .. } => Some("Choose another place with --runs-dir, or free some space.".to_owned()),
        }
    }

    /// The error as programs meet it.
    #[must_use]
    pub fn report(&self) -> ErrorReport {
        ErrorReport { kind: self.kind().to_owned(), message: self.to_string(), hint: self.hint() }
    }
}
