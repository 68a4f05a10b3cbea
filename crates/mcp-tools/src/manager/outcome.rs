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
    /// The server refused the arguments (JSON-RPC error −32602).
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

    /// What a server's own error text says about how the call failed.
    pub(crate) fn of_error_text(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with(UNKNOWN_TOOL_PREFIX) {
            Self::UnknownTool
        } else if text.starts_with(EXECUTION_ERROR_PREFIX) {
            Self::ExecutionError
        } else {
            Self::ToolError
        }
    }
}

/// JSON-RPC's code for a method that does not exist.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC's code for parameters that do not fit.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// How servers, and the manager, begin the text about a tool that does not exist.
pub(crate) const UNKNOWN_TOOL_PREFIX: &str = "Unknown tool:";
/// How Python servers begin the text about a tool that raised or refused its arguments.
pub(crate) const EXECUTION_ERROR_PREFIX: &str = "Error executing tool";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_texts_are_classified() {
        for (text, expected) in [
            ("Unknown tool: serach", ToolFailure::UnknownTool),
            ("\n Unknown tool: x", ToolFailure::UnknownTool),
            ("Error executing tool add: 2 validation errors", ToolFailure::ExecutionError),
            ("HTTP 503", ToolFailure::ToolError),
            ("", ToolFailure::ToolError),
        ] {
            assert_eq!(ToolFailure::of_error_text(text), expected, "{text:?}");
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
