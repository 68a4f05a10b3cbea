//! Where a request's cache breakpoints stand.
//!
//! Decides on at most four, in the order in which the server reads: the last tool, the system prompt,
//! the user's side before the last, the last side. All have the same life, so none stands before a longer-lived one.

use serde_json::{Value, json};

/// Blocks that a breakpoint may stand on.
const CAN_BE_MARKED: &[&str] = &["text", "image", "tool_use", "tool_result"];

/// Sets the breakpoints. `ttl`: `5m` or `1h`; none is the server's default.
pub(super) fn mark(tools: &mut [Value], system: &mut [Value], messages: &mut [Value], ttl: Option<&str>) {
    let control = match ttl {
        Some(ttl) => json!({"type": "ephemeral", "ttl": ttl}),
        None => json!({"type": "ephemeral"}),
    };
    if let Some(tool) = tools.last_mut() {
        set(tool, &control);
    }
    if let Some(block) = system.last_mut() {
        set(block, &control);
    }
    // The last user side is new in this request; the one before was written to the cache by the last one.
    let users = messages.iter_mut().rev().filter(|message| message.get("role") == Some(&json!("user")));
    for message in users.take(2) {
        let blocks = message.get_mut("content").and_then(Value::as_array_mut);
        let block = blocks.into_iter().flatten().rev().find(|block| {
            block.get("type").and_then(Value::as_str).is_some_and(|kind| CAN_BE_MARKED.contains(&kind))
        });
        if let Some(block) = block {
            set(block, &control);
        }
    }
}

fn set(block: &mut Value, control: &Value) {
    if let Some(fields) = block.as_object_mut() {
        fields.insert("cache_control".to_owned(), control.clone());
    }
}
