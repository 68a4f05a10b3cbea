//! Conversations for training: exactly what the model was sent, omitted results omitted, with the tools it was shown.
//!
//! Decides that each pass of each agent is one conversation: its last request and the reply to it, which hold
//! everything that the model saw last. One JSON object a line.

use core_protocol::native::function_name;
use core_protocol::{ContentBlock, MediaSource, Message, Role, ToolDefinition};
use serde_json::{Value, json};

use super::views::{SentView, views};
use crate::log::RunRecord;

/// `{"id", "agent", "pass", "messages": [{"role", "content", …}], "tools": […]}` a line: the messages and tools as the
/// chat-completions API spells them.
#[must_use]
pub fn chatml(record: &RunRecord) -> String {
    lines(record, |view| {
        json!({
            "id": conversation_id(record, view),
            "agent": view.agent,
            "pass": view.pass,
            "messages": wire_messages(view).into_iter().chain(view.reply.as_deref().map(wire_message)).collect::<Vec<_>>(),
            "tools": view.tools.iter().map(wire_tool).collect::<Vec<_>>(),
        })
    })
}

/// `{"id", "system", "conversations": [{"from", "value"}], "tools"}` a line, with `human`, `gpt`, and for native calls
/// `function_call` and `observation`; `tools` is a JSON text.
#[must_use]
pub fn sharegpt(record: &RunRecord) -> String {
    lines(record, |view| {
        let all = view.messages.iter().map(|message| &**message).chain(view.reply.as_deref());
        let tools: Vec<Value> = view.tools.iter().map(wire_tool).collect();
        json!({
            "id": conversation_id(record, view),
            "system": &*view.system,
            "conversations": all.flat_map(said).collect::<Vec<_>>(),
            "tools": Value::Array(tools).to_string(),
        })
    })
}

fn conversation_id(record: &RunRecord, view: &SentView) -> String {
    format!("{}/{}/{}", record.run_id, view.agent, view.pass)
}

/// The last request of each pass of each agent.
fn lines(record: &RunRecord, line: impl Fn(&SentView) -> Value) -> String {
    let views = views(record);
    let mut text = String::new();
    for (index, view) in views.iter().enumerate() {
        let goes_on = |later: &SentView| later.agent == view.agent && later.pass == view.pass;
        if !views[index + 1..].iter().any(goes_on) {
            text.push_str(&line(view).to_string());
            text.push('\n');
        }
    }
    text
}

/// The messages of a request as the chat-completions API spells them, the system prompt first.
#[must_use]
pub fn wire_messages(view: &SentView) -> Vec<Value> {
    let system = json!({ "role": "system", "content": &*view.system });
    std::iter::once(system).chain(view.messages.iter().map(|message| wire_message(message))).collect()
}

fn wire_message(message: &Message) -> Value {
    let role = role_name(message.role);
    let mut wire = json!({ "role": role, "content": wire_content(message) });
    if !message.tool_calls.is_empty() {
        wire["tool_calls"] = message
            .tool_calls
            .iter()
            .map(|call| {
                json!({
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": function_name(&call.server, &call.tool),
                        "arguments": Value::Object(call.arguments.clone()).to_string(),
                    },
                })
            })
            .collect();
    }
    if let Some(id) = &message.tool_call_id {
        wire["tool_call_id"] = json!(id);
    }
    let thinking = message.joined_thinking();
    if !thinking.is_empty() {
        wire["reasoning_content"] = json!(thinking);
    }
    wire
}

/// Text as a text; a list of parts where there are media.
fn wire_content(message: &Message) -> Value {
    let has_media = message.content.iter().any(|block| {
        matches!(block, ContentBlock::Image { .. } | ContentBlock::Audio { .. } | ContentBlock::Video { .. })
    });
    if !has_media {
        return json!(message.joined_text());
    }
    let part = |block: &ContentBlock| match block {
        ContentBlock::Text { text } => Some(json!({ "type": "text", "text": text })),
        ContentBlock::Image { source } => {
            Some(json!({ "type": "image_url", "image_url": { "url": address(source) } }))
        }
        ContentBlock::Audio { source } => {
            Some(json!({ "type": "input_audio", "input_audio": { "data": address(source) } }))
        }
        ContentBlock::Video { source } => {
            Some(json!({ "type": "video_url", "video_url": { "url": address(source) } }))
        }
        ContentBlock::File { uri, .. } => Some(json!({ "type": "text", "text": uri })),
        ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. } => None,
    };
    message.content.iter().filter_map(part).collect()
}

fn address(source: &MediaSource) -> String {
    match source {
        MediaSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
        MediaSource::Url { url } => url.clone(),
    }
}

fn wire_tool(tool: &ToolDefinition) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": function_name(&tool.server, &tool.name),
            "description": tool.description,
            "parameters": tool.input_schema,
        },
    })
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// One message as the things that were said in it.
fn said(message: &Message) -> Vec<Value> {
    let from = match message.role {
        Role::System => "system",
        Role::User => "human",
        Role::Assistant => "gpt",
        Role::Tool => "observation",
    };
    let text = message.joined_text();
    let mut said = Vec::new();
    if !text.is_empty() || message.tool_calls.is_empty() {
        said.push(json!({ "from": from, "value": text }));
    }
    for call in &message.tool_calls {
        let name = function_name(&call.server, &call.tool);
        let value = json!({ "name": name, "arguments": call.arguments });
        said.push(json!({ "from": "function_call", "value": value.to_string() }));
    }
    said
}
