//! Names of functions in native tool protocols.
//!
//! Decides how server and tool become one name that every provider takes (letters, digits, `_`, `-`, at
//! most 64) and how such a name is read back: by the tools that were offered, else at its last `-`.

use std::collections::HashMap;

use core_protocol::ToolDefinition;

/// Longest name that providers take.
const LONGEST: usize = 64;

/// The name of a server's tool on the wire.
pub(crate) fn wire_name(server: &str, tool: &str) -> String {
    let full = if server.is_empty() { tool.to_owned() } else { format!("{server}-{tool}") };
    let safe: String = full
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .collect();
    if safe.len() <= LONGEST && safe == full {
        return safe;
    }
    // What was changed could collide with another tool's name: a digest of the original keeps them apart.
    let digest = format!("-{:08x}", fnv1a(full.as_bytes()));
    let head: String = safe.chars().take(LONGEST - digest.len()).collect();
    head + &digest
}

/// Reads names back.
#[derive(Debug, Default)]
pub(crate) struct FunctionNames {
    /// (server, tool) by wire name, and by bare tool name where only one server has it.
    known: HashMap<String, (String, String)>,
}

impl FunctionNames {
    /// Knows the tools that a request offers.
    pub(crate) fn new(tools: &[ToolDefinition]) -> Self {
        let mut known = HashMap::new();
        let mut bare: HashMap<&str, Option<&ToolDefinition>> = HashMap::new();
        for tool in tools {
            bare.entry(&tool.name).and_modify(|only| *only = None).or_insert(Some(tool));
        }
        for tool in bare.into_values().flatten() {
            known.insert(tool.name.clone(), (tool.server.clone(), tool.name.clone()));
        }
        for tool in tools {
            known.insert(wire_name(&tool.server, &tool.name), (tool.server.clone(), tool.name.clone()));
        }
        Self { known }
    }

    /// Server and tool of a name; the server is empty where the name does not tell.
    pub(crate) fn resolve(&self, name: &str) -> (String, String) {
        if let Some(found) = self.known.get(name) {
            return found.clone();
        }
        match name.rsplit_once('-') {
            Some((server, tool)) if !server.is_empty() && !tool.is_empty() => {
                (server.to_owned(), tool.to_owned())
            }
            _ => (String::new(), name.to_owned()),
        }
    }
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use core_protocol::ToolDefinition;
    use serde_json::json;

    use super::{FunctionNames, wire_name};

    fn tool(server: &str, name: &str) -> ToolDefinition {
        ToolDefinition {
            server: server.into(),
            name: name.into(),
            description: String::new(),
            input_schema: json!({}),
        }
    }

    #[test]
    fn every_tool_survives_the_round_trip() {
        let tools = [
            tool("tool-python", "run_python_code"),
            tool("search", "web-search"),
            tool("files", "read.file"),
            tool("files", "read file"),
            tool("数据", "查询"),
            tool("", "bare"),
            tool(&"long".repeat(20), &"name".repeat(20)),
            tool(&"long".repeat(20), &"name".repeat(21)),
        ];
        let names = FunctionNames::new(&tools);
        for tool in &tools {
            let wire = wire_name(&tool.server, &tool.name);
            assert!(wire.len() <= 64 && !wire.is_empty(), "{wire}");
            assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{wire}");
            assert_eq!(names.resolve(&wire), (tool.server.clone(), tool.name.clone()));
        }
    }

    #[test]
    fn unknown_names_are_split_at_the_last_hyphen() {
        let names = FunctionNames::new(&[tool("a", "x-y"), tool("b", "same"), tool("c", "same")]);
        let check = |name: &str, server: &str, tool: &str| {
            assert_eq!(names.resolve(name), (server.to_owned(), tool.to_owned()), "{name}");
        };
        check("a-x-y", "a", "x-y");
        check("tool-python-run", "tool-python", "run");
        check("x-y", "a", "x-y");
        check("same", "", "same");
        check("-odd", "", "-odd");
        check("odd-", "", "odd-");
        check("", "", "");
    }
}
