//! The tools at hand: read from the system prompt or from the request, and known by their schemas.
//!
//! Decides which tool searches, which one opens a document, and with which arguments. Server names are never
//! looked at; names and parameters are matched against the lists below.

use core_protocol::{Dialect, DialectName, ToolDefinition, parse_arguments};
use serde_json::{Map, Value, json};

use crate::ChatRequest;

/// How calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// In the text, in this dialect.
    Text(DialectName),
    /// Beside the text.
    Native,
}

impl Protocol {
    /// The dialect in which calls of the history are read; native calls need none.
    pub(super) fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::Text(name) => name.dialect(),
            Self::Native => DialectName::McpXml.dialect(),
        }
    }
}

/// One tool and the parameter that carries what is wanted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    /// Its server; empty where the dialect names none.
    pub(super) server: String,
    /// Its name.
    pub(super) name: String,
    /// The parameter for the query, the id or the address.
    pub(super) main: String,
    /// A parameter for how many results.
    count: Option<String>,
    /// A parameter for where to go on reading.
    offset: Option<String>,
    /// Further required parameters of type string, which are given the question.
    purpose: Vec<String>,
}

/// What can be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Toolbox {
    /// How calls are written.
    pub(super) protocol: Protocol,
    /// Finds documents, or for an agent that works by itself: answers.
    pub(super) search: Option<Tool>,
    /// Opens one document.
    pub(super) read: Option<Tool>,
}

/// Parameters that take a query, best first.
const QUERY_PARAMETERS: &[&str] =
    &["q", "query", "Query", "search_query", "question", "keywords", "search", "subtask", "task"];
/// Parameters that take the id or address of a document.
const PLACE_PARAMETERS: &[&str] =
    &["id", "document_id", "doc_id", "url", "uri", "link", "page_url", "path", "document", "page_id"];
const COUNT_PARAMETERS: &[&str] =
    &["num", "num_results", "count", "limit", "top_k", "k", "max_results", "Cnt", "n"];
const OFFSET_PARAMETERS: &[&str] = &["offset", "start", "start_char", "from", "position"];
/// Parts of names by which a tool is known to search, best first.
const SEARCH_NAMES: &[&str] = &["search", "find", "lookup", "query", "retrieve"];
/// The same for opening a document.
const READ_NAMES: &[&str] =
    &["read", "open", "fetch", "scrape", "get", "visit", "browse", "view", "extract", "convert"];
/// Parts of names of tools that do something else.
const OTHER_NAMES: &[&str] = &[
    "write",
    "edit",
    "delete",
    "run",
    "python",
    "image",
    "video",
    "audio",
    "transcri",
    "visual",
    "upload",
    "download",
    "sandbox",
    "todo",
    "note",
    "skill",
    "command",
    "bash",
    "reasoning",
];

/// How many results a search is asked for.
const RESULTS: u64 = 10;

impl Toolbox {
    /// Reads the tools of a request.
    pub(super) fn of(request: &ChatRequest) -> Self {
        let protocol =
            if request.tools.is_empty() { text_protocol(&request.system) } else { Protocol::Native };
        let listed;
        let tools: &[ToolDefinition] = if request.tools.is_empty() {
            listed = tools_in_prompt(&request.system);
            &listed
        } else {
            &request.tools
        };
        let search = best(tools, search_score);
        let read = best(tools, read_score);
        Self { protocol, search, read }
    }
}

impl Tool {
    /// Whether the tool is an agent that is given a task and reports.
    pub(super) fn is_agent(&self) -> bool {
        matches!(self.main.as_str(), "subtask" | "task")
    }

    /// The arguments of a call with the query, id or address; `question` is told to tools that extract.
    pub(super) fn arguments(&self, value: &str, question: &str) -> Map<String, Value> {
        let mut arguments = Map::new();
        arguments.insert(self.main.clone(), json!(value));
        if let Some(count) = &self.count {
            arguments.insert(count.clone(), json!(RESULTS));
        }
        for name in &self.purpose {
            arguments.insert(name.clone(), json!(question));
        }
        arguments
    }

    /// The same for going on from a place in the document; none where the tool cannot.
    pub(super) fn arguments_from(
        &self,
        value: &str,
        question: &str,
        offset: u64,
    ) -> Option<Map<String, Value>> {
        let name = self.offset.clone()?;
        let mut arguments = self.arguments(value, question);
        arguments.insert(name, json!(offset));
        Some(arguments)
    }
}

fn text_protocol(system: &str) -> Protocol {
    let name = if system.contains("<use_mcp_tool>") {
        DialectName::McpXml
    } else if system.contains("<function=") {
        DialectName::QwenXml
    } else if system.contains("<tool_call>") {
        DialectName::Hermes
    } else {
        DialectName::McpXml
    };
    Protocol::Text(name)
}

/// The tools that a system prompt lists, in any of the known forms.
pub(super) fn tools_in_prompt(system: &str) -> Vec<ToolDefinition> {
    let mut list = by_headings(system);
    if list.is_empty() {
        list = in_tools_tags(system);
    }
    list
}

fn by_headings(system: &str) -> Vec<ToolDefinition> {
    let mut list: Vec<ToolDefinition> = Vec::new();
    let mut server = String::new();
    let mut schema_open = false;
    let mut schema = String::new();
    let close = |schema: &mut String, list: &mut Vec<ToolDefinition>| {
        if let Some(last) = list.last_mut()
            && !schema.trim().is_empty()
        {
            last.input_schema = read_schema(schema);
        }
        schema.clear();
    };
    for line in system.lines() {
        if let Some(name) = line.strip_prefix("## Server name:") {
            close(&mut schema, &mut list);
            schema_open = false;
            name.trim().clone_into(&mut server);
        } else if let Some(name) = line.strip_prefix("### Tool name:") {
            close(&mut schema, &mut list);
            schema_open = false;
            list.push(ToolDefinition {
                server: server.clone(),
                name: name.trim().to_owned(),
                description: String::new(),
                input_schema: Value::Null,
            });
        } else if let Some(rest) = line.strip_prefix("Input JSON schema:") {
            schema_open = true;
            schema.push_str(rest);
        } else if line.starts_with("# ") {
            close(&mut schema, &mut list);
            schema_open = false;
        } else if schema_open {
            schema.push('\n');
            schema.push_str(line);
        } else if let Some(last) = list.last_mut() {
            last.description.push_str(line.strip_prefix("Description:").unwrap_or(line));
            last.description.push('\n');
        }
    }
    close(&mut schema, &mut list);
    list
}

/// A schema as JSON, or as the Python dictionary that some prompts print.
fn read_schema(text: &str) -> Value {
    match serde_json::from_str(text.trim()) {
        Ok(value) => value,
        Err(_) => parse_arguments(text.trim()).map_or(Value::Null, |parsed| Value::Object(parsed.arguments)),
    }
}

fn in_tools_tags(system: &str) -> Vec<ToolDefinition> {
    // Prose may mention the empty pair of tags; the list is the last opener's.
    let Some(start) = system.rfind("<tools>") else { return Vec::new() };
    let body = system.get(start + "<tools>".len()..).unwrap_or_default();
    let body = body.find("</tools>").and_then(|end| body.get(..end)).unwrap_or(body);
    let mut list = Vec::new();
    for line in body.lines() {
        let Ok(value) = serde_json::from_str::<Value>(line.trim()) else { continue };
        let function = value.get("function").unwrap_or(&value);
        let Some(name) = function.get("name").and_then(Value::as_str) else { continue };
        list.push(ToolDefinition {
            server: String::new(),
            name: name.to_owned(),
            description: function.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
            input_schema: function.get("parameters").cloned().unwrap_or(Value::Null),
        });
    }
    if list.is_empty() {
        list = in_function_tags(body);
    }
    list
}

/// The XML form: `<function><name>…</name>…<parameter><name>…</name><type>…</type>…`.
fn in_function_tags(body: &str) -> Vec<ToolDefinition> {
    let mut list = Vec::new();
    for function in body.split("<function>").skip(1) {
        let function = function.split("</function>").next().unwrap_or_default();
        let head = function.split("<parameter").next().unwrap_or_default();
        let Some(name) = between(head, "<name>", "</name>") else { continue };
        let mut properties = Map::new();
        let mut required = Vec::new();
        for parameter in function.split("<parameter>").skip(1) {
            let Some(parameter_name) = between(parameter, "<name>", "</name>") else { continue };
            let kind = between(parameter, "<type>", "</type>").unwrap_or("string");
            properties.insert(parameter_name.to_owned(), json!({ "type": kind }));
        }
        if let Some(names) = between(function, "<required>", "</required>") {
            required = serde_json::from_str::<Vec<String>>(names).unwrap_or_default();
        }
        list.push(ToolDefinition {
            server: String::new(),
            name: name.to_owned(),
            description: between(head, "<description>", "</description>").unwrap_or_default().to_owned(),
            input_schema: json!({ "type": "object", "properties": properties, "required": required }),
        });
    }
    list
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let start = text.find(open)? + open.len();
    let rest = text.get(start..)?;
    rest.get(..rest.find(close)?).map(str::trim)
}

fn best(tools: &[ToolDefinition], score: fn(&ToolDefinition) -> Option<(i32, String)>) -> Option<Tool> {
    let mut found: Option<(i32, Tool)> = None;
    for tool in tools {
        let Some((points, main)) = score(tool) else { continue };
        let Some(made) = fill(tool, main) else { continue };
        // The first of equals: the order of the list is the configuration's.
        if found.as_ref().is_none_or(|(most, _)| points > *most) {
            found = Some((points, made));
        }
    }
    found.map(|(_, tool)| tool)
}

fn properties(tool: &ToolDefinition) -> Option<&Map<String, Value>> {
    tool.input_schema.get("properties")?.as_object()
}

fn required(tool: &ToolDefinition) -> Vec<&str> {
    let list = tool.input_schema.get("required").and_then(Value::as_array);
    list.map(|names| names.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// Whether a parameter may take a string.
fn takes_text(schema: &Value) -> bool {
    match schema.get("type") {
        None => true,
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        Some(_) => false,
    }
}

fn parameter<'a>(tool: &ToolDefinition, names: &[&'a str]) -> Option<(usize, &'a str)> {
    let properties = properties(tool)?;
    names.iter().enumerate().find(|(_, name)| properties.contains_key(**name)).map(|(at, name)| (at, *name))
}

fn name_rank(name: &str, parts: &[&str]) -> Option<usize> {
    let lower = name.to_lowercase();
    parts.iter().position(|part| lower.contains(part))
}

fn search_score(tool: &ToolDefinition) -> Option<(i32, String)> {
    let (rank, main) = parameter(tool, QUERY_PARAMETERS)?;
    if !properties(tool)?.get(main).is_some_and(takes_text) {
        return None;
    }
    let searches = name_rank(&tool.name, SEARCH_NAMES)?;
    if searches > 0 && name_rank(&tool.name, OTHER_NAMES).is_some() {
        return None;
    }
    // A search engine is preferred to an agent that is given a task.
    let agent = matches!(main, "subtask" | "task");
    let points = 100 - 10 * i32::try_from(searches).unwrap_or(9) - i32::try_from(rank).unwrap_or(9);
    Some((if agent { points - 60 } else { points }, main.to_owned()))
}

fn read_score(tool: &ToolDefinition) -> Option<(i32, String)> {
    let (rank, main) = parameter(tool, PLACE_PARAMETERS)?;
    let reads = name_rank(&tool.name, READ_NAMES)?;
    if name_rank(&tool.name, OTHER_NAMES).is_some() {
        return None;
    }
    let points = 100 - 4 * i32::try_from(reads).unwrap_or(9) - i32::try_from(rank).unwrap_or(9);
    Some((points, main.to_owned()))
}

/// The tool with its other parameters; none where it requires something that cannot be given.
fn fill(tool: &ToolDefinition, main: String) -> Option<Tool> {
    let optional = |names: &[&str]| parameter(tool, names).map(|(_, name)| name.to_owned());
    let count = optional(COUNT_PARAMETERS);
    let offset = optional(OFFSET_PARAMETERS);
    let mut purpose = Vec::new();
    for name in required(tool) {
        if name == main || Some(name) == count.as_deref() || Some(name) == offset.as_deref() {
            continue;
        }
        let schema = properties(tool)?.get(name)?;
        if !takes_text(schema) {
            return None;
        }
        purpose.push(name.to_owned());
    }
    Some(Tool { server: tool.server.clone(), name: tool.name.clone(), main, count, offset, purpose })
}
