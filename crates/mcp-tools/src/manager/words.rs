//! What the model is told about calls that never reached a server.
//!
//! Decides which names are offered instead; every text says what can be called.

use core_protocol::ToolDefinition;
use serde_json::Value;

use super::outcome::{ToolFailure, ToolOutcome, UNKNOWN_TOOL_PREFIX};

/// Likeness from which on a name is proposed, of 1.
const LIKENESS: f64 = 0.7;

/// The name that is most like the one given, where any is like it.
pub(crate) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    names
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// No server has this name.
pub(crate) fn unknown_server(server: &str, known: &mut dyn Iterator<Item = &str>) -> ToolOutcome {
    let known: Vec<&str> = known.collect();
    let text = format!("There is no server `{server}`.{}", instead("Servers", server, &known));
    ToolOutcome::failed(ToolFailure::UnknownServer, text)
}

/// The server of this name is not in use.
pub(crate) fn not_in_use(server: &str, reason: &str, failure: ToolFailure) -> ToolOutcome {
    ToolOutcome::failed(failure, format!("The server `{server}` is not in use: {reason}"))
}

/// The server has no such tool.
pub(crate) fn unknown_tool(server: &str, tool: &str, known: &mut dyn Iterator<Item = &str>) -> ToolOutcome {
    let known: Vec<&str> = known.collect();
    let what = format!("Tools of the server `{server}`");
    let text = format!("{UNKNOWN_TOOL_PREFIX} {tool}.{}", instead(&what, tool, &known));
    ToolOutcome::failed(ToolFailure::UnknownTool, text)
}

/// The arguments do not fit, so the call was not sent.
pub(crate) fn misfit(
    server: &str,
    tool: &str,
    offered: Option<&ToolDefinition>,
    misfits: &[String],
) -> ToolOutcome {
    let text = format!(
        "The call of `{tool}` of the server `{server}` was not made, because its arguments do not fit: {}.{}",
        misfits.join("; "),
        offered.map(expected_arguments).unwrap_or_default()
    );
    ToolOutcome::failed(ToolFailure::InvalidArguments, text)
}

fn instead(what: &str, name: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return format!(" {what}: none.");
    }
    let proposal = nearest(name, known.iter().copied())
        .map(|near| format!(" Do you mean `{near}`?"))
        .unwrap_or_default();
    let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    format!("{proposal} {what}: {list}.")
}

/// The caller has cancelled the call.
pub(crate) fn cancelled(server: &str, tool: &str) -> ToolOutcome {
    let text = format!("The call of `{tool}` of the server `{server}` was cancelled.");
    ToolOutcome::failed(ToolFailure::Cancelled, text)
}

/// What arguments a tool takes, as a line to be appended.
pub(crate) fn expected_arguments(tool: &ToolDefinition) -> String {
    let Some(properties) = tool.input_schema.get("properties").and_then(Value::as_object) else {
        return String::new();
    };
    if properties.is_empty() {
        return format!("\n`{}` takes no arguments.", tool.name);
    }
    let required: Vec<&str> = tool
        .input_schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let arguments: Vec<String> = properties
        .iter()
        .map(|(name, schema)| {
            let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any type");
            let need = if required.contains(&name.as_str()) { "required" } else { "optional" };
            format!("`{name}` ({kind}, {need})")
        })
        .collect();
    format!("\n`{}` takes: {}.", tool.name, arguments.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_that_are_like_are_proposed() {
        let names = ["google_search", "scrape_website", "python"];
        for (name, expected) in [
            ("google-search", Some("google_search")),
            ("Google_Search", Some("google_search")),
            ("scrape", Some("scrape_website")),
            ("add_todo", None),
        ] {
            assert_eq!(nearest(name, names), expected, "{name}");
        }
    }

    #[test]
    fn texts_name_what_there_is() {
        let names = || ["echo", "add"].into_iter();
        for (outcome, failure, expected) in [
            (
                unknown_server("ech", &mut names()),
                ToolFailure::UnknownServer,
                "There is no server `ech`. Do you mean `echo`? Servers: `echo`, `add`.",
            ),
            (
                unknown_tool("s", "multiply", &mut names()),
                ToolFailure::UnknownTool,
                "Unknown tool: multiply. Tools of the server `s`: `echo`, `add`.",
            ),
            (
                unknown_tool("s", "x", &mut std::iter::empty()),
                ToolFailure::UnknownTool,
                "Unknown tool: x. Tools of the server `s`: none.",
            ),
        ] {
            assert_eq!(outcome.result.joined_text(), expected);
            assert_eq!(outcome.failure, Some(failure));
            assert!(outcome.result.is_error);
        }
    }

    #[test]
    fn arguments_are_listed() {
        let tool = |input_schema| ToolDefinition {
            server: "s".into(),
            name: "t".into(),
            description: String::new(),
            input_schema,
        };
        for (schema, expected) in [
            (
                json!({"properties": {"q": {"type": "string"}, "num": {}}, "required": ["q"]}),
                "\n`t` takes: `q` (string, required), `num` (any type, optional).",
            ),
            (json!({"properties": {}}), "\n`t` takes no arguments."),
            (json!({}), ""),
        ] {
            assert_eq!(expected_arguments(&tool(schema)), expected);
        }
    }
}
