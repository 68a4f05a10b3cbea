//! What a script is made of: replies of the model, and the tools that answer its calls.

use core_protocol::event::ErrorReport;
use core_protocol::{
    Completion, ContentBlock, FinishReason, Message, Role, ToolCall, ToolDefinition, ToolResult, Usage,
};
use llm_providers::ToolProtocol;
use orchestrator::machine::state::PlannedCall;
use orchestrator::machine::{ModelFailure, ModelFailureClass, ModelReply, ToolReport};
use serde_json::{Map, Value, json};

/// One call that the model asks for.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// The model's own id in the native protocol; made from the request's number where none is given.
    pub(crate) id: Option<String>,
}

/// What comes back for one request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    thinking: String,
    text: String,
    calls: Vec<Call>,
    failure: Option<ModelFailureClass>,
    usage: Option<Usage>,
}

impl Reply {
    /// The tokens that the server reports: prompt and completion.
    pub(crate) fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some(Usage { input, output, ..Usage::default() });
        self
    }

    /// Tokens with everything that a server may say about them.
    pub(crate) fn full_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Thinking that the provider reports apart from the text.
    pub(crate) fn thinking(mut self, thinking: &str) -> Self {
        self.thinking = thinking.to_owned();
        self
    }

    /// Text in front of the calls.
    pub(crate) fn saying(mut self, text: &str) -> Self {
        self.text = text.to_owned();
        self
    }

    /// What the machine is told, spelled in the protocol of the run.
    pub(crate) fn answer(self, call: u64, protocol: ToolProtocol) -> Result<ModelReply, ModelFailure> {
        if let Some(class) = self.failure {
            let kind = match class {
                ModelFailureClass::Permanent => "authentication",
                ModelFailureClass::ContextExceeded => "context_exceeded",
                ModelFailureClass::Transient => "overloaded",
            };
            let report = ErrorReport { kind: kind.into(), message: format!("{kind} happened"), hint: None };
            return Err(ModelFailure { call, class, report });
        }
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            content.push(ContentBlock::Thinking { text: self.thinking, signature: Some("signed".into()) });
        }
        let mut tool_calls = Vec::new();
        let mut text = self.text;
        for (index, asked) in self.calls.into_iter().enumerate() {
            match protocol {
                ToolProtocol::Text => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&xml(&asked.server, &asked.tool, &asked.arguments.to_string()));
                }
                ToolProtocol::Native => tool_calls.push(ToolCall {
                    id: asked.id.unwrap_or_else(|| format!("n{call}.{index}")),
                    server: asked.server,
                    tool: asked.tool,
                    arguments: asked.arguments.as_object().cloned().unwrap_or_default(),
                    span: None,
                    server_span: None,
                    repaired: None,
                    provider_data: None,
                }),
            }
        }
        if !text.is_empty() {
            content.push(ContentBlock::text(text));
        }
        let finish_reason = if tool_calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        let message = Message { tool_calls, ..Message::new(Role::Assistant, content) };
        let completion =
            Completion { message, finish_reason, usage: self.usage, model: Some("scripted".into()) };
        Ok(ModelReply { call, completion, ms: 1, retries: 0, discarded: core_protocol::Usage::default() })
    }
}

fn empty_reply() -> Reply {
    Reply { thinking: String::new(), text: String::new(), calls: Vec::new(), failure: None, usage: None }
}

/// A reply of bare text.
pub(crate) fn text(text: impl Into<String>) -> Reply {
    Reply { text: text.into(), ..empty_reply() }
}

/// A reply with calls.
pub(crate) fn calls(calls: impl IntoIterator<Item = Call>) -> Reply {
    Reply { calls: calls.into_iter().collect(), ..empty_reply() }
}

/// A failed request.
pub(crate) fn failure(class: ModelFailureClass) -> Reply {
    Reply { failure: Some(class), ..empty_reply() }
}

/// A failure that may pass.
pub(crate) fn transient() -> Reply {
    failure(ModelFailureClass::Transient)
}

/// A request that was longer than the window.
pub(crate) fn too_long() -> Reply {
    failure(ModelFailureClass::ContextExceeded)
}

/// A failure that nothing can cure.
pub(crate) fn permanent() -> Reply {
    failure(ModelFailureClass::Permanent)
}

/// A reply that holds a boxed answer.
pub(crate) fn boxed(answer: &str) -> Reply {
    text(format!("The answer is \\boxed{{{answer}}}."))
}

/// A reply with one search.
pub(crate) fn search(query: &str) -> Reply {
    calls([google(query)])
}

/// A reply with one call of any tool.
pub(crate) fn call(server: &str, tool: &str, arguments: Value) -> Reply {
    calls([one(server, tool, arguments)])
}

/// A reply with a tag of the dialect and no call.
pub(crate) fn broken() -> Reply {
    text("I would use <use_mcp_tool> here.")
}

/// One call of any tool.
pub(crate) fn one(server: &str, tool: &str, arguments: Value) -> Call {
    Call { server: server.into(), tool: tool.into(), arguments, id: None }
}

/// One search.
pub(crate) fn google(query: &str) -> Call {
    one("web", "google_search", json!({ "q": query }))
}

/// A call as the `mcp_xml` dialect spells it.
pub(crate) fn xml(server: &str, tool: &str, arguments: &str) -> String {
    format!(
        "<use_mcp_tool>\n<server_name>{server}</server_name>\n<tool_name>{tool}</tool_name>\n\
         <arguments>\n{arguments}\n</arguments>\n</use_mcp_tool>"
    )
}

/// The tools of every scripted run. `lookup` is offered by two servers, every other name by one.
pub(crate) fn offered_tools() -> Vec<ToolDefinition> {
    [
        ("web", "google_search"),
        ("web", "sogou_search"),
        ("web", "scrape_website"),
        ("jina", "scrape_and_extract_info"),
        ("tool-python", "run_python_code"),
        ("left", "lookup"),
        ("right", "lookup"),
        ("agent-browsing", "search_and_browse"),
    ]
    .map(|(server, name)| ToolDefinition {
        server: server.into(),
        name: name.into(),
        description: format!("The tool {name}."),
        input_schema: json!({ "type": "object", "properties": {} }),
    })
    .to_vec()
}

/// A success.
pub(crate) fn success(text: impl Into<String>) -> ToolReport {
    ToolReport { result: ToolResult::text(text), error_kind: None, curable: false, ms: 1, sub_agent: None }
}

/// A failure of the given kind.
pub(crate) fn failed(kind: &str, curable: bool, text: impl Into<String>) -> ToolReport {
    ToolReport { ms: 1, ..ToolReport::failed(kind, curable, text) }
}

/// Tools that behave as their arguments say: a value that begins with `fail` fails for good, `wrong` fails in a way
/// that another spelling cures, `nothing` makes an empty search. Unknown servers and tools are told as such.
pub(crate) fn obedient_tool(planned: &PlannedCall, offered: &[ToolDefinition]) -> ToolReport {
    let call = &planned.call;
    if !offered.iter().any(|tool| tool.server == call.server) {
        return failed(
            "unknown_server",
            false,
            format!("no server {}; the servers are: web, jina", call.server),
        );
    }
    if !offered.iter().any(|tool| tool.server == call.server && tool.name == call.tool) {
        return failed("unknown_tool", true, format!("Unknown tool: {}", call.tool));
    }
    let wish = call.arguments.values().find_map(Value::as_str).unwrap_or_default();
    if wish.starts_with("fail") {
        failed("tool_error", false, format!("the server answered 500 for {wish}"))
    } else if wish.starts_with("wrong") {
        failed("invalid_arguments", true, format!("invalid arguments: {wish}"))
    } else if call.tool == "google_search" && wish.starts_with("nothing") {
        success(json!({ "organic": [], "searchParameters": { "q": wish } }).to_string())
    } else if call.tool == "google_search" {
        success(json!({ "organic": [{ "title": format!("About {wish}") }] }).to_string())
    } else {
        success(format!("Result of {}", describe(&call.server, &call.tool, &call.arguments)))
    }
}

/// A call in one line.
pub(crate) fn describe(server: &str, tool: &str, arguments: &Map<String, Value>) -> String {
    let arguments: Vec<String> = arguments
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            other => format!("{name}: {other}"),
        })
        .collect();
    format!("{server}/{tool}({})", arguments.join(", "))
}
