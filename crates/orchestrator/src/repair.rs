//! Mends what models habitually get wrong about a call before it is checked and run: argument names, the
//! server, the tool's name. Decides the mended call; whether it is run is left to the machine.

use core_protocol::{ToolCall, ToolDefinition};
use serde_json::Value;

/// Argument names that models write for another one: tool, written, meant.
const ARGUMENT_ALIASES: &[(&str, &str, &str)] = &[
    ("scrape_and_extract_info", "description", "info_to_extract"),
    ("scrape_and_extract_info", "introduction", "info_to_extract"),
    ("run_python_code", "code", "code_block"),
];

/// Arguments that a tool needs and models forget: tool, argument, value.
const ARGUMENT_DEFAULTS: &[(&str, &str, &str)] = &[("run_python_code", "sandbox_id", "default")];

/// Tool names that models write for another one.
const TOOL_ALIASES: &[(&str, &str)] = &[("python", "run_python_code"), ("python_code", "run_python_code")];

/// Mends a call in place and says in words what was changed; empty where nothing was.
pub(crate) fn repair(call: &mut ToolCall, tools: &[ToolDefinition]) -> Vec<String> {
    let mut changes = Vec::new();
    if !tools.iter().any(|tool| tool.name == call.tool)
        && let Some((_, meant)) = TOOL_ALIASES.iter().find(|(written, _)| *written == call.tool)
        && tools.iter().any(|tool| tool.name == *meant)
    {
        changes.push(format!("tool {} → {meant}", call.tool));
        (*meant).clone_into(&mut call.tool);
    }
    if let Some(server) = only_server_with(call, tools) {
        changes.push(format!("server {} → {server}", call.server));
        call.server = server;
    }
    for (tool, written, meant) in ARGUMENT_ALIASES {
        if *tool == call.tool
            && !call.arguments.contains_key(*meant)
            && let Some(value) = call.arguments.shift_remove(*written)
        {
            changes.push(format!("argument {written} → {meant}"));
            call.arguments.insert((*meant).to_owned(), value);
        }
    }
    let nulls: Vec<String> =
        call.arguments.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.clone()).collect();
    for name in nulls {
        call.arguments.shift_remove(&name);
        changes.push(format!("argument {name}: null dropped"));
    }
    for (tool, argument, value) in ARGUMENT_DEFAULTS {
        if *tool == call.tool && !call.arguments.contains_key(*argument) {
            call.arguments.insert((*argument).to_owned(), Value::from(*value));
            changes.push(format!("argument {argument}: {value} added"));
        }
    }
    changes
}

/// The server that alone offers the call's tool, where the written one does not offer it.
fn only_server_with(call: &ToolCall, tools: &[ToolDefinition]) -> Option<String> {
    let mut offering = tools.iter().filter(|tool| tool.name == call.tool).map(|tool| &tool.server);
    let first = offering.next()?;
    if *first == call.server || offering.any(|server| *server == call.server || server != first) {
        return None;
    }
    Some(first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn tools(names: &[(&str, &str)]) -> Vec<ToolDefinition> {
        names
            .iter()
            .map(|(server, name)| ToolDefinition {
                server: (*server).into(),
                name: (*name).into(),
                description: String::new(),
                input_schema: json!({}),
            })
            .collect()
    }

    fn check(written: (&str, &str, Value), offered: &[(&str, &str)], expected: (&str, &str, Value)) {
        let (server, tool, Value::Object(arguments)) = written.clone() else { unreachable!() };
        let mut call = ToolCall {
            id: "call_0".into(),
            server: server.into(),
            tool: tool.into(),
            arguments,
            span: None,
            server_span: None,
            repaired: None,
            provider_data: None,
        };
        let changes = repair(&mut call, &tools(offered));
        assert_eq!((call.server.as_str(), call.tool.as_str(), Value::Object(call.arguments)), expected);
        assert_eq!(changes.is_empty(), (server, tool) == (expected.0, expected.1) && written.2 == expected.2);
    }

    #[test]
    fn cases() {
        let python = [("tool-python", "run_python_code"), ("web", "google_search")];
        check(
            ("tool-python", "run_python_code", json!({"code": "1", "sandbox_id": null})),
            &python,
            ("tool-python", "run_python_code", json!({"code_block": "1", "sandbox_id": "default"})),
        );
        check(
            ("tool-python", "run_python_code", json!({"code_block": "1", "code": "2", "sandbox_id": "s"})),
            &python,
            ("tool-python", "run_python_code", json!({"code_block": "1", "code": "2", "sandbox_id": "s"})),
        );
        check(
            ("python", "python_code", json!({"code_block": "1", "sandbox_id": "s"})),
            &python,
            ("tool-python", "run_python_code", json!({"code_block": "1", "sandbox_id": "s"})),
        );
        check(
            ("stateless_python", "python", json!({"code": "1"})),
            &[("stateless_python", "python"), ("tool-python", "run_python_code")],
            ("stateless_python", "python", json!({"code": "1"})),
        );
        check(
            ("x", "scrape_and_extract_info", json!({"url": "u", "introduction": "i"})),
            &[("jina", "scrape_and_extract_info")],
            ("jina", "scrape_and_extract_info", json!({"url": "u", "info_to_extract": "i"})),
        );
        check(
            ("google", "google_search", json!({"q": "a", "tbs": null})),
            &python,
            ("web", "google_search", json!({"q": "a"})),
        );
        let twice = [("a", "search"), ("b", "search")];
        check(("c", "search", json!({})), &twice, ("c", "search", json!({})));
        check(("b", "search", json!({})), &twice, ("b", "search", json!({})));
        check(("b", "absent", json!({})), &twice, ("b", "absent", json!({})));
        check(("", "python", json!({})), &[], ("", "python", json!({})));
    }

    #[test]
    fn nested_nulls_stay() {
        let mut call = ToolCall {
            id: String::new(),
            server: "a".into(),
            tool: "t".into(),
            arguments: Map::from_iter([("o".to_owned(), json!({"inner": null}))]),
            span: None,
            server_span: None,
            repaired: None,
            provider_data: None,
        };
        assert!(repair(&mut call, &[]).is_empty());
        assert_eq!(call.arguments["o"], json!({"inner": null}));
    }
}
