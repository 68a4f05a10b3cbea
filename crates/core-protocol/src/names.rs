//! Function names: `server-tool`, where a format has one name for both.
//!
//! Decides how the two are joined and told apart again. Tool names hold hyphens too, so the known tools
//! are asked first; without them the last hyphen divides.

use crate::ToolDefinition;

/// The function name of a tool: `server-tool`, or the tool's name alone where no server is known.
#[must_use]
pub fn join(server: &str, tool: &str) -> String {
    if server.is_empty() { tool.to_owned() } else { format!("{server}-{tool}") }
}

/// Server and tool of a function name; the server is empty where it cannot be told.
///
/// In order: a known tool whose full name it is; a known tool whose bare name it is, with its server if
/// only one has it; a known server's name before a hyphen, the longest; the last hyphen. White space
/// around either is no part of it.
#[must_use]
pub fn split<'n>(name: &'n str, known: &'n [ToolDefinition]) -> (&'n str, &'n str) {
    let mut bare: Option<&ToolDefinition> = None;
    let mut bare_servers = 0usize;
    let mut server: Option<&str> = None;
    for tool in known {
        let behind_server = name.strip_prefix(tool.server.as_str()).and_then(|rest| rest.strip_prefix('-'));
        if !tool.server.is_empty() && behind_server == Some(tool.name.as_str()) {
            return (&tool.server, &tool.name);
        }
        if tool.name == name {
            bare_servers += 1;
            bare = bare.or(Some(tool));
        }
        if behind_server.is_some_and(|rest| !rest.trim().is_empty())
            && server.is_none_or(|longest| longest.len() < tool.server.len())
        {
            server = Some(&tool.server);
        }
    }
    match (bare, server) {
        (Some(tool), _) => (if bare_servers == 1 { &tool.server } else { "" }, &tool.name),
        (None, Some(server)) => (server, name.get(server.len() + 1..).unwrap_or_default().trim()),
        (None, None) => match name.rsplit_once('-').map(|(server, tool)| (server.trim(), tool.trim())) {
            Some((server, tool)) if !server.is_empty() && !tool.is_empty() => (server, tool),
            _ => ("", name),
        },
    }
}

/// What is wrong with a function name that a model wrote, if anything.
pub(crate) fn fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("the function name is empty")
    } else if name.contains(|character: char| matches!(character, '<' | '>') || character.is_control()) {
        Some("the function name holds a tag, a line break or a control character")
    } else {
        None
    }
}
