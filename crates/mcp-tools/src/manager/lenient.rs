//! Answers that miss the protocol in a small way.
//!
//! Decides what is saved of them: one tool that is described badly costs no other tool of its list, one piece of
//! content of an unknown kind costs no other piece of its result. Answers that fit pass untouched.

use rmcp::RoleClient;
use rmcp::model::{CallToolResult, ContentBlock, JsonRpcMessage, ListToolsResult, ServerResult, Tool};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Map, Value, json};

/// A transport whose answers are mended as they come in.
#[derive(Debug)]
pub(super) struct Lenient<T>(pub(super) T);

impl<T: Transport<RoleClient>> Transport<RoleClient> for Lenient<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.0.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut message = self.0.receive().await?;
        if let JsonRpcMessage::Response(response) = &mut message
            && let ServerResult::CustomResult(custom) = &mut response.result
            && let Some(mended) = mended(&mut custom.0)
        {
            response.result = mended;
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.0.close()
    }
}

/// What can be made of a result that is none of the protocol's.
fn mended(result: &mut Value) -> Option<ServerResult> {
    let result = result.as_object_mut()?;
    if let Some(Value::Array(tools)) = result.get_mut("tools") {
        let tools: Vec<Value> = std::mem::take(tools).into_iter().filter_map(tool).collect();
        // Whatever else there is may be what did not fit.
        let cursor = result.get("nextCursor").filter(|cursor| cursor.is_string());
        let list = json!({"tools": tools, "nextCursor": cursor});
        return serde_json::from_value::<ListToolsResult>(list).ok().map(ServerResult::ListToolsResult);
    }
    if let Some(Value::Array(content)) = result.get_mut("content") {
        let content: Vec<Value> = std::mem::take(content).into_iter().map(block).collect();
        let mut call = json!({
            "content": content,
            "isError": result.get("isError").and_then(Value::as_bool),
        });
        if let Some(structured) = result.remove("structuredContent") {
            call["structuredContent"] = structured;
        }
        return serde_json::from_value::<CallToolResult>(call).ok().map(ServerResult::CallToolResult);
    }
    None
}

/// A tool as it is, or with its name, description and schema alone; none where it has no name.
fn tool(tool: Value) -> Option<Value> {
    if serde_json::from_value::<Tool>(tool.clone()).is_ok() {
        return Some(tool);
    }
    let Some(name) = tool.get("name").and_then(Value::as_str) else {
        tracing::warn!("a tool without a name is left out");
        return None;
    };
    tracing::debug!(tool = name, "the description of a tool does not fit the protocol");
    let schema = tool.get("inputSchema").and_then(Value::as_object).cloned().unwrap_or_else(any_object);
    Some(json!({
        "name": name,
        "description": tool.get("description").and_then(Value::as_str),
        "inputSchema": schema,
    }))
}

fn any_object() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("object"))])
}

/// A piece of content as it is, or as text that tells what it was.
fn block(block: Value) -> Value {
    if serde_json::from_value::<ContentBlock>(block.clone()).is_ok() {
        return block;
    }
    let text = match (&block, block.get("text").and_then(Value::as_str)) {
        (Value::String(text), _) => text.clone(),
        (_, Some(text)) => text.to_owned(),
        _ => match block.get("type").and_then(Value::as_str) {
            Some(kind) => format!("[Content of the kind `{kind}`, which cannot be shown.]"),
            None => "[Content of a kind that cannot be shown.]".to_owned(),
        },
    };
    json!({"type": "text", "text": text})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: Value, expected: Option<Value>) {
        // What fits is never seen here.
        let parsed: ServerResult = serde_json::from_value(result.clone()).unwrap();
        assert!(matches!(parsed, ServerResult::CustomResult(_)), "{result} fits: {parsed:?}");
        let mended = mended(&mut result.clone()).map(|mended| serde_json::to_value(mended).unwrap());
        assert_eq!(mended, expected, "{result}");
    }

    #[test]
    fn what_fits_is_saved() {
        let good = json!({"name": "good", "inputSchema": {"type": "object", "properties": {"a": {}}}});
        check(
            json!({"tools": [
                {"name": "a"},
                {"name": "b", "inputSchema": null, "description": "text"},
                {"name": "c", "inputSchema": "x", "description": 7},
                {"description": "nameless", "inputSchema": {"type": "object"}},
                good,
            ], "nextCursor": "n"}),
            Some(json!({"nextCursor": "n", "tools": [
                {"name": "a", "inputSchema": {"type": "object"}},
                {"name": "b", "inputSchema": {"type": "object"}, "description": "text"},
                {"name": "c", "inputSchema": {"type": "object"}},
                good,
            ]})),
        );
        check(
            json!({"isError": true, "content": [
                {"type": "hologram", "data": "x"},
                "bare",
                {"text": "no type"},
                {"type": "text", "text": "after"},
            ]}),
            Some(json!({"isError": true, "content": [
                {"type": "text", "text": "[Content of the kind `hologram`, which cannot be shown.]"},
                {"type": "text", "text": "bare"},
                {"type": "text", "text": "no type"},
                {"type": "text", "text": "after"},
            ]})),
        );
        check(json!({"other": 1}), None);
        check(json!({"tools": 7}), None);
    }
}
