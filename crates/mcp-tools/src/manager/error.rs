//! What can go wrong before a server is started.
//!
//! A server that does not start, and a call that fails, are no errors of this kind: the first is in
//! the manager's statuses, the second in the call's outcome.

/// An error of the configuration of tool servers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// The file is not JSON, not even with JSON5's liberties.
    #[error("{origin}:{line}:{column}: not valid JSON: {problem}")]
    McpJsonSyntax {
        /// The file, as the caller named it.
        origin: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the parser expected.
        problem: String,
    },
    /// The file is JSON but says something that cannot be used.
    #[error("{}: {problem}", located(origin, *line, path))]
    McpJson {
        /// The file, as the caller named it.
        origin: String,
        /// The line of the key, from 1; none where it is not known.
        line: Option<usize>,
        /// The key, as `mcpServers.NAME.KEY`; empty for the file as a whole.
        path: String,
        /// What is wrong and what to do.
        problem: String,
    },
}

impl ToolsError {
    /// A stable word for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::McpJsonSyntax { .. } => "mcp_json_syntax",
            Self::McpJson { .. } => "mcp_json",
        }
    }

    /// Whether the same thing may work when it is tried again: never for a file.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::McpJsonSyntax { .. } | Self::McpJson { .. } => false,
        }
    }
}

fn located(origin: &str, line: Option<usize>, path: &str) -> String {
    let mut place = origin.to_owned();
    if let Some(line) = line {
        place.push_str(&format!(":{line}"));
    }
    if !path.is_empty() {
        place.push_str(&format!(": {path}"));
    }
    place
}
