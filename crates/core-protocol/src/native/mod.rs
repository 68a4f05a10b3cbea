//! Native tool calls: the JSON that providers have for calls, results and definitions.
//!
//! Decides what each piece looks like, as pure functions from and to [`Value`]; how pieces make up a
//! request, and how they arrive over a wire, is left to the providers. One module a shape, all behind
//! [`NativeShape`].

mod anthropic;
mod openai_chat;
mod openai_responses;

use serde_json::{Map, Value};

use crate::{ToolCall, ToolDefinition, names, parse_arguments};

pub use anthropic::AnthropicBlocks;
pub use openai_chat::OpenAiChat;
pub use openai_responses::OpenAiResponses;

/// Longest function name that providers accept, in bytes.
pub const MAX_FUNCTION_NAME: usize = 64;

/// The form that a family of providers has for calls.
pub trait NativeShape: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Reads the calls among the items that a reply holds: the `tool_calls` of an OpenAI chat message,
    /// the `output` of an OpenAI response, the `content` of an Anthropic message. Items of other kinds
    /// are passed over.
    fn read_calls(&self, items: &[Value], known_tools: &[ToolDefinition]) -> NativeCalls;

    /// A call as it is sent back in the history.
    fn render_call(&self, call: &ToolCall) -> Value;

    /// A result as it is sent back: a message, an item or a block, by the shape.
    fn render_result(&self, call_id: &str, text: &str, is_error: bool) -> Value;

    /// A tool as it is offered.
    fn render_tool(&self, tool: &ToolDefinition) -> Value;
}

/// The calls of one reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NativeCalls {
    /// Those that can be run.
    pub calls: Vec<ToolCall>,
    /// Those that cannot be read.
    pub malformed: Vec<MalformedCall>,
}

/// A native call that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedCall {
    /// Its place among the items.
    pub index: usize,
    /// Its id, by which it must be answered; empty where the model gave none.
    pub id: String,
    /// The function's name, as far as it was given.
    pub name: String,
    /// What is wrong, for a person and for the model.
    pub problem: String,
    /// The arguments as they came.
    pub raw: String,
}

/// The function name under which a tool is offered: `server-tool`, with characters that providers
/// refuse replaced by `_`, at most [`MAX_FUNCTION_NAME`] bytes. A name that had to be changed ends in a
/// digest of what it was, so that no two tools are offered under one name.
#[must_use]
pub fn function_name(server: &str, tool: &str) -> String {
    let full = names::join(server, tool);
    let mut name: String = full
        .chars()
        .map(|character| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
            _ => '_',
        })
        .collect();
    if name != full || name.len() > MAX_FUNCTION_NAME {
        let digest = format!("-{:08x}", fnv1a(full.as_bytes()));
        name.truncate(MAX_FUNCTION_NAME - digest.len());
        name.push_str(&digest);
    }
    name
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Server and tool of a function name: a known tool that is offered under it, else as [`names::split`].
#[must_use]
pub fn split_function_name(name: &str, known_tools: &[ToolDefinition]) -> (String, String) {
    let offered = known_tools.iter().find(|tool| function_name(&tool.server, &tool.name) == name);
    match offered {
        Some(tool) => (tool.server.clone(), tool.name.clone()),
        None => {
            let (server, tool) = names::split(name, known_tools);
            (server.to_owned(), tool.to_owned())
        }
    }
}

/// One call as all shapes have it.
struct RawCall<'v> {
    index: usize,
    id: Option<&'v str>,
    name: Option<&'v str>,
    arguments: Option<&'v Value>,
    provider_data: Option<Value>,
}

impl NativeCalls {
    fn add(&mut self, raw: RawCall<'_>, known_tools: &[ToolDefinition]) {
        let name = raw.name.unwrap_or_default().trim();
        let read = if name.is_empty() {
            Err(("the call has no function name".to_owned(), String::new()))
        } else {
            read_arguments(raw.arguments)
        };
        let (arguments, repaired) = match read {
            Ok(read) => read,
            Err((problem, text)) => {
                self.malformed.push(MalformedCall {
                    index: raw.index,
                    id: raw.id.unwrap_or_default().to_owned(),
                    name: name.to_owned(),
                    problem,
                    raw: text,
                });
                return;
            }
        };
        let (server, tool) = split_function_name(name, known_tools);
        let id = match raw.id {
            Some(id) if !id.is_empty() => id.to_owned(),
            _ => format!("call_{}", self.calls.len()),
        };
        self.calls.push(ToolCall {
            id,
            server,
            tool,
            arguments,
            span: None,
            server_span: None,
            repaired,
            provider_data: raw.provider_data,
        });
    }
}

type ReadArguments = Result<(Map<String, Value>, Option<crate::ArgumentRepair>), (String, String)>;

/// Arguments are JSON in a string; some servers send the object itself, or nothing.
fn read_arguments(arguments: Option<&Value>) -> ReadArguments {
    match arguments {
        None | Some(Value::Null) => Ok((Map::new(), None)),
        Some(Value::Object(arguments)) => Ok((arguments.clone(), None)),
        Some(Value::String(text)) => match parse_arguments(text) {
            Ok(read) => Ok((read.arguments, read.repaired)),
            Err(error) => Err((error.to_string(), text.clone())),
        },
        Some(other) => Err(("the arguments are not a JSON object".to_owned(), other.to_string())),
    }
}

/// What an item holds beside the given keys, to be sent back unchanged.
fn others(item: &Value, known: &[&str]) -> Option<Value> {
    let kept: Map<String, Value> = item
        .as_object()?
        .iter()
        .filter(|(key, _)| !known.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    (!kept.is_empty()).then_some(Value::Object(kept))
}

/// Puts back what [`others`] kept.
fn with_others(mut item: Value, provider_data: Option<&Value>) -> Value {
    if let (Value::Object(members), Some(Value::Object(kept))) = (&mut item, provider_data) {
        for (key, value) in kept {
            members.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    item
}
