//! The `tool_calls` of OpenAI's chat completions, and of everyone who speaks their language.

use serde_json::{Value, json};

use super::{NativeCalls, NativeShape, RawCall, function_name, others, with_others};
use crate::{ToolCall, ToolDefinition, render};

/// OpenAI chat completions.
#[derive(Debug, Clone, Copy)]
pub struct OpenAiChat;

/// Keys of a call that are read; what else there is goes back as it came.
const KNOWN: &[&str] = &["id", "type", "function", "index"];

impl NativeShape for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai_chat"
    }

    fn read_calls(&self, items: &[Value], known_tools: &[ToolDefinition]) -> NativeCalls {
        let mut calls = NativeCalls::default();
        for (index, item) in items.iter().enumerate() {
            let function = &item["function"];
            if function.is_null() && item["type"].as_str().is_some_and(|kind| kind != "function") {
                continue;
            }
            let raw = RawCall {
                index,
                id: item["id"].as_str(),
                name: function["name"].as_str(),
                arguments: function.get("arguments"),
                provider_data: others(item, KNOWN),
            };
            calls.add(raw, known_tools);
        }
        calls
    }

    fn render_call(&self, call: &ToolCall) -> Value {
        let item = json!({
            "id": call.id,
            "type": "function",
            "function": {
                "name": function_name(&call.server, &call.tool),
                "arguments": render::compact_json(&call.arguments),
            }
        });
        with_others(item, call.provider_data.as_ref())
    }

    /// The format has no mark for errors; the text must say so.
    fn render_result(&self, call_id: &str, text: &str, _is_error: bool) -> Value {
        json!({"role": "tool", "tool_call_id": call_id, "content": text})
    }

    fn render_tool(&self, tool: &ToolDefinition) -> Value {
        json!({
            "type": "function",
            "function": {
                "name": function_name(&tool.server, &tool.name),
                "description": tool.description,
                "parameters": tool.input_schema,
            }
        })
    }
}
