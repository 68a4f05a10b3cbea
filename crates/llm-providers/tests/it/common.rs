//! What the tests have in common.

use std::sync::Arc;

use core_protocol::{Message, Role, ToolCall, ToolDefinition};
use llm_providers::{
    CallEvent, CallOutcome, ChatRequest, Environment, LlmClient, LlmConfig, LlmError, RetryConfig,
};
use serde_json::{Map, Value, json};

/// Pauses that a test does not notice.
pub(crate) fn quick() -> RetryConfig {
    RetryConfig { base_wait: 0.001, max_wait: 0.002, ..RetryConfig::default() }
}

/// A configuration from YAML, for a server, with quick retries.
pub(crate) fn config(base_url: &str, yaml: &str) -> LlmConfig {
    let mut config: LlmConfig = serde_yaml::from_str(yaml).unwrap();
    config.base_url = Some(base_url.to_owned());
    config.retries = RetryConfig { max_tries: config.retries.max_tries, ..quick() };
    if config.model_name.is_empty() {
        config.model_name = "some-model".to_owned();
    }
    config
}

pub(crate) fn client(base_url: &str, yaml: &str) -> LlmClient {
    LlmClient::from_config(&config(base_url, yaml), &Environment::default()).unwrap()
}

pub(crate) fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest::new("Be exact.", messages.into_iter().map(Arc::new).collect())
}

pub(crate) fn question() -> ChatRequest {
    request(vec![Message::user("What is it?")])
}

/// What an observer saw: pieces of text, of thinking, and retries.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) text: String,
    pub(crate) thinking: String,
    pub(crate) retries: Vec<String>,
}

pub(crate) async fn call(client: &LlmClient, request: &ChatRequest) -> (Result<CallOutcome, LlmError>, Seen) {
    let mut seen = Seen::default();
    let result = client
        .complete(request, &mut |event| match event {
            CallEvent::TextDelta(text) => seen.text.push_str(text),
            CallEvent::ThinkingDelta(text) => seen.thinking.push_str(text),
            CallEvent::Retry { kind, .. } => {
                seen.text.clear();
                seen.thinking.clear();
                seen.retries.push(kind.to_owned());
            }
            CallEvent::Waiting | CallEvent::Waited { .. } => {}
        })
        .await;
    (result, seen)
}

pub(crate) async fn complete(client: &LlmClient, request: &ChatRequest) -> CallOutcome {
    call(client, request).await.0.unwrap()
}

pub(crate) fn tool(server: &str, name: &str) -> ToolDefinition {
    ToolDefinition {
        server: server.into(),
        name: name.into(),
        description: format!("Does {name}."),
        input_schema: json!({"type": "object", "properties": {"q": {"type": "string"}}}),
    }
}

pub(crate) fn tool_call(id: &str, server: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.into(),
        server: server.into(),
        tool: tool.into(),
        arguments: arguments.as_object().cloned().unwrap_or_else(Map::new),
        span: None,
        server_span: None,
        repaired: None,
        provider_data: None,
    }
}

pub(crate) fn tool_result(id: &str, text: &str) -> Message {
    let mut message = Message::text(Role::Tool, text);
    message.tool_call_id = Some(id.to_owned());
    message
}
