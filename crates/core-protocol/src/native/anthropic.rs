//! The `tool_use` and `tool_result` blocks of Anthropic's messages.

use serde_json::{Value, json};

use super::{NativeCalls, NativeShape, RawCall, function_name, others, with_others};
use crate::{ToolCall, ToolDefinition};

/// Anthropic messages.
#[derive(Debug, Clone, Copy)]
pub struct AnthropicBlocks;

/// Keys of a call that are read; what else there is goes back as it came.
const KNOWN: &[&str] = &["type", "id", "name", "input"];

impl NativeShape for AnthropicBlocks {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    /// `input` is an object, or the JSON text that its streamed pieces make.
    fn read_calls(&self, items: &[Value], known_tools: &[ToolDefinition]) -> NativeCalls {
        let mut calls = NativeCalls::default();
        for (index, item) in items.iter().enumerate().filter(|(_, item)| item["type"] == "tool_use") {
            let raw = RawCall {
                index,
                id: item["id"].as_str(),
                name: item["name"].as_str(),
                arguments: item.get("input"),
                provider_data: others(item, KNOWN),
            };
            calls.add(raw, known_tools);
        }
        calls
    }

    fn render_call(&self, call: &ToolCall) -> Value {
        let item = json!({
            "type": "tool_use",
            "id": call.id,
            "name": function_name(&call.server, &call.tool),
            "input": call.arguments,
        });
        with_others(item, call.provider_data.as_ref())
    }

    fn render_result(&self, call_id: &str, text: &str, is_error: bool) -> Value {
        let mut block = json!({"type": "tool_result", "tool_use_id": call_id, "content": text});
        if let (Value::Object(members), true) = (&mut block, is_error) {
            members.insert("is_error".to_owned(), Value::Bool(true));
        }
        block
    }

    fn render_tool(&self, tool: &ToolDefinition) -> Value {
        json!({
            "name": function_name(&tool.server, &tool.name),
            "description": tool.description,
            "input_schema": tool.input_schema,
        })
    }
}
