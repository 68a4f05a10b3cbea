//! The `function_call` items of OpenAI's Responses API.
//!
//! Calls and results are paired by `call_id`. The item's own `id` has another form and is left out when
//! a call is sent back.

use serde_json::{Value, json};

use super::{NativeCalls, NativeShape, RawCall, function_name, others, with_others};
use crate::{ToolCall, ToolDefinition, render};

/// OpenAI Responses.
#[derive(Debug, Clone, Copy)]
pub struct OpenAiResponses;

/// Keys of a call that are read or that belong to one response only.
const KNOWN: &[&str] = &["type", "id", "call_id", "name", "arguments", "status"];

impl NativeShape for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai_responses"
    }

    fn read_calls(&self, items: &[Value], known_tools: &[ToolDefinition]) -> NativeCalls {
        let mut calls = NativeCalls::default();
        for (index, item) in items.iter().enumerate().filter(|(_, item)| item["type"] == "function_call") {
            let raw = RawCall {
                index,
                id: item["call_id"].as_str().or_else(|| item["id"].as_str()),
                name: item["name"].as_str(),
                arguments: item.get("arguments"),
                provider_data: others(item, KNOWN),
            };
            calls.add(raw, known_tools);
        }
        calls
    }

    fn render_call(&self, call: &ToolCall) -> Value {
        let item = json!({
            "type": "function_call",
            "call_id": call.id,
            "name": function_name(&call.server, &call.tool),
            "arguments": render::compact_json(&call.arguments),
        });
        with_others(item, call.provider_data.as_ref())
    }

    /// The format has no mark for errors; the text must say so.
    fn render_result(&self, call_id: &str, text: &str, _is_error: bool) -> Value {
        json!({"type": "function_call_output", "call_id": call_id, "output": text})
    }

    fn render_tool(&self, tool: &ToolDefinition) -> Value {
        json!({
            "type": "function",
            "name": function_name(&tool.server, &tool.name),
            "description": tool.description,
            "parameters": tool.input_schema,
            "strict": false,
        })
    }
}
