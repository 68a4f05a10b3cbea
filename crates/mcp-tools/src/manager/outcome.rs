//! What a call came to.
//!
//! Decides how failures are named and which of them a rewritten call can cure; the words for the
//! model are in the result itself.

use core_protocol::ToolResult;

/// What one call gave: always something to show to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// What the model is shown; an error text where the call failed.
    pub result: ToolResult,
    /// How it failed, where it did.
    pub failure: Option<ToolFailure>,
}

impl ToolOutcome {
    pub(crate) fn failed(failure: ToolFailure, text: impl Into<String>) -> Self {
        Self { result: ToolResult::error(text), failure: Some(failure) }
    }
}

/// How a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolFailure {
    /// No server has that name, or the one that has it could not be started.
    UnknownServer,
    /// The server has no such tool, or does not offer it.
    UnknownTool,
    /// The server refused the arguments: JSON-RPC error −32602, or a result that says so.
    InvalidArguments,
    /// The server answered with another JSON-RPC error of this code.
    ProtocolError(i64),
    /// The tool ran and says that it failed.
    ToolError,
    /// The server says that it could not run the tool (`Error executing tool …`), as Python
    /// servers do for arguments that they refuse.
    ExecutionError,
    /// The call took longer than the server's call limit.
    Timeout,
    /// The server ended, or the connection to it broke, while the call ran or before.
    ServerDied,
    /// The caller cancelled it.
    Cancelled,
}

impl ToolFailure {
    /// A stable word for logs.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::UnknownServer => "unknown_server",
            Self::UnknownTool => "unknown_tool",
            Self::InvalidArguments => "invalid_arguments",
            Self::ProtocolError(_) => "protocol_error",
            Self::ToolError => "tool_error",
            Self::ExecutionError => "execution_error",
            Self::Timeout => "timeout",
            Self::ServerDied => "server_died",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether a rewritten call can cure it: another tool name or other arguments.
    #[must_use]
    pub const fn is_curable(self) -> bool {
        match self {
            Self::UnknownTool | Self::InvalidArguments | Self::ExecutionError => true,
            Self::ProtocolError(code) => code == METHOD_NOT_FOUND || code == INVALID_PARAMS,
            Self::UnknownServer | Self::ToolError | Self::Timeout | Self::ServerDied | Self::Cancelled => {
                false
            }
        }
    }

    /// How a call failed, by the first text of its result; none where it did not.
    pub(crate) fn of_result(text: &str, is_error: bool) -> Option<Self> {
        let text = text.trim_start();
        let told =
            TOLD_IN_WORDS.iter().find(|(prefix, _, whole)| (is_error || *whole) && text.starts_with(prefix));
        match told {
            Some(&(_, failure, _)) => Some(failure),
            None => is_error.then_some(Self::ToolError),
        }
    }
}

/// JSON-RPC's code for a method that does not exist.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC's code for parameters that do not fit.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// How the text about a tool that does not exist begins, also the manager's own.
pub(crate) const UNKNOWN_TOOL_PREFIX: &str = "Unknown tool:";

/// How texts begin in which servers tell a failure, and whether that counts where the result is not
/// marked as an error: old servers know no other way.
const TOLD_IN_WORDS: &[(&str, ToolFailure, bool)] = &[
    (UNKNOWN_TOOL_PREFIX, ToolFailure::UnknownTool, true),
    ("Error executing tool", ToolFailure::ExecutionError, true),
    ("MCP error -32602", ToolFailure::InvalidArguments, false),
    ("Input validation error", ToolFailure::InvalidArguments, false),
    ("failed to deserialize parameters:", ToolFailure::InvalidArguments, false),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_classified() {
        for (text, if_error, if_not) in [
            ("Unknown tool: serach", ToolFailure::UnknownTool, Some(ToolFailure::UnknownTool)),
            ("\n Unknown tool: x", ToolFailure::UnknownTool, Some(ToolFailure::UnknownTool)),
            (
                "Error executing tool add: 2 validation errors",
                ToolFailure::ExecutionError,
                Some(ToolFailure::ExecutionError),
            ),
            ("MCP error -32602: Input validation error: …", ToolFailure::InvalidArguments, None),
            ("Input validation error: 'q' is a required property", ToolFailure::InvalidArguments, None),
            ("failed to deserialize parameters: missing field `q`", ToolFailure::InvalidArguments, None),
            ("HTTP 503", ToolFailure::ToolError, None),
            ("", ToolFailure::ToolError, None),
        ] {
            assert_eq!(ToolFailure::of_result(text, true), Some(if_error), "{text:?}");
            assert_eq!(ToolFailure::of_result(text, false), if_not, "{text:?}");
        }
    }

    #[test]
    fn curable_is_what_other_words_can_cure() {
        for (failure, expected) in [
            (ToolFailure::UnknownTool, true),
            (ToolFailure::InvalidArguments, true),
            (ToolFailure::ExecutionError, true),
            (ToolFailure::ProtocolError(-32601), true),
            (ToolFailure::ProtocolError(-32602), true),
            (ToolFailure::ProtocolError(-32603), false),
            (ToolFailure::ToolError, false),
            (ToolFailure::Timeout, false),
            (ToolFailure::ServerDied, false),
        ] {
            assert_eq!(failure.is_curable(), expected, "{failure:?}");
        }
    }
}
