//! Writing: calls, results and the tool section, and the JSON styles that they are written in.
//!
//! Decides what all dialects share. What a dialect writes is in its own module; the functions here ask
//! it.

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};
use std::fmt::Write as _;
use std::io;

use crate::{Dialect, ParsedReply, ToolCall, ToolDefinition};

/// How JSON schemas are written into the tool section.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SchemaStyle {
    /// As JSON.
    #[default]
    Json,
    /// As Python prints a dictionary, for models that were trained on it.
    Python,
}

/// The tool section of a system prompt: every tool, in the dialect's form, servers in the order of
/// their first tool.
#[must_use]
pub fn render_tool_section(dialect: &dyn Dialect, tools: &[ToolDefinition], style: SchemaStyle) -> String {
    dialect.render_tools(tools, style)
}

/// A call as the dialect writes it. Parsed again it is the same call, if its names are plain
/// (no `<`, `>`, line breaks), and for dialects that join server and tool, if the tool is known or has
/// no hyphen.
#[must_use]
pub fn render_call(dialect: &dyn Dialect, call: &ToolCall) -> String {
    dialect.render_call(call)
}

/// The results of one turn's calls, in order, as the text of the one user message that carries them:
/// bare texts joined by newlines for `mcp_xml`, `<tool_response>` elements for the others.
#[must_use]
pub fn render_results(dialect: &dyn Dialect, results: &[(&ToolCall, String)]) -> String {
    dialect.render_results(results)
}

/// The reply with server names replaced: `replacements[i]` is the right one for `reply.calls[i]`, none
/// where it is right already. Calls whose dialect has no place for a server are left as they are.
#[must_use]
pub fn correct_server_names(source: &str, reply: &ParsedReply, replacements: &[Option<String>]) -> String {
    let mut corrected = String::with_capacity(source.len());
    let mut copied = 0;
    for (call, replacement) in reply.calls.iter().zip(replacements) {
        let (Some(span), Some(name)) = (call.server_span, replacement) else { continue };
        corrected.push_str(source.get(copied..span.start).unwrap_or_default());
        corrected.push_str(name);
        copied = span.end;
    }
    corrected.push_str(source.get(copied..).unwrap_or_default());
    corrected
}

/// The section of `mcp_xml`: a heading for each server and for each tool.
pub(crate) fn tools_by_server(tools: &[ToolDefinition], style: SchemaStyle) -> String {
    let mut servers: Vec<&str> = Vec::new();
    for tool in tools {
        if !servers.contains(&tool.server.as_str()) {
            servers.push(&tool.server);
        }
    }
    let mut section = String::new();
    for server in servers {
        if !section.is_empty() {
            section.push('\n');
        }
        let _ = writeln!(section, "## Server name: {server}");
        for tool in tools.iter().filter(|tool| tool.server == server) {
            let schema = match style {
                SchemaStyle::Json => spaced_json(&tool.input_schema),
                SchemaStyle::Python => crate::python_repr::repr(&tool.input_schema),
            };
            let _ = write!(
                section,
                "### Tool name: {}\nDescription: {}\n\nInput JSON schema: {schema}\n",
                tool.name, tool.description
            );
        }
    }
    section
}

/// `<tool_response>` elements, one a result.
pub(crate) fn tool_responses(results: &[(&ToolCall, String)]) -> String {
    let responses: Vec<String> =
        results.iter().map(|(_, text)| format!("{RESPONSE_OPEN}\n{text}\n{RESPONSE_CLOSE}")).collect();
    responses.join("\n")
}

const RESPONSE_OPEN: &str = "<tool_response>";
const RESPONSE_CLOSE: &str = "</tool_response>";

/// The texts inside `<tool_response>` elements, where the message is made of nothing else.
pub(crate) fn split_tool_responses(text: &str) -> Option<Vec<&str>> {
    let mut rest = text.trim();
    let mut texts = Vec::new();
    while !rest.is_empty() {
        let inside = rest.strip_prefix(RESPONSE_OPEN)?;
        let (response, after) = inside.split_once(RESPONSE_CLOSE)?;
        let response = response.strip_prefix('\n').unwrap_or(response);
        texts.push(response.strip_suffix('\n').unwrap_or(response));
        rest = after.trim_start();
    }
    Some(texts)
}

/// JSON without white space.
pub(crate) fn compact_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// JSON on one line with a blank after each comma and colon, as chat templates print it.
pub(crate) fn spaced_json(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Spaced);
    if value.serialize(&mut serializer).is_err() {
        return String::new();
    }
    String::from_utf8(bytes).unwrap_or_default()
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// The definition of a function as OpenAI's chat format and the chat templates have it.
pub(crate) fn function_definition(tool: &ToolDefinition) -> Value {
    serde_json::json!({
        "type": "function",
        "function": {
            "name": crate::names::join(&tool.server, &tool.name),
            "description": tool.description,
            "parameters": tool.input_schema,
        }
    })
}

/// The list of functions as the template of Qwen3-Coder prints it.
pub(crate) fn tools_as_xml(tools: &[ToolDefinition], style: SchemaStyle) -> String {
    let json = |value: &Value| match (value, style) {
        (Value::String(text), _) => text.clone(),
        (value, SchemaStyle::Json) => spaced_json(value),
        (value, SchemaStyle::Python) => crate::python_repr::repr(value),
    };
    let mut section = String::from("<tools>");
    for tool in tools {
        let _ = write!(
            section,
            "\n<function>\n<name>{}</name>\n<description>{}</description>\n<parameters>",
            crate::names::join(&tool.server, &tool.name),
            tool.description.trim()
        );
        for (name, schema) in tool.input_schema["properties"].as_object().into_iter().flatten() {
            let _ = write!(section, "\n<parameter>\n<name>{name}</name>");
            let first = ["type", "description"].into_iter().filter_map(|key| Some((key, schema.get(key)?)));
            let others = schema.as_object().into_iter().flatten();
            let others = others.map(|(key, value)| (key.as_str(), value));
            let others = others.filter(|(key, _)| !matches!(*key, "name" | "type" | "description"));
            for (key, value) in first.chain(others) {
                let _ = write!(section, "\n<{key}>{}</{key}>", json(value).trim());
            }
            section.push_str("\n</parameter>");
        }
        for (key, value) in tool.input_schema.as_object().into_iter().flatten() {
            if !matches!(key.as_str(), "type" | "properties") {
                let _ = write!(section, "\n<{key}>{}</{key}>", json(value));
            }
        }
        section.push_str("\n</parameters>\n</function>");
    }
    section.push_str("\n</tools>");
    section
}
