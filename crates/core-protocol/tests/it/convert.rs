//! Histories in another dialect, as native calls, and back.

use core_protocol::{
    ContentBlock, DialectName, Message, ParseOptions, Role, ToolCall, convert_history, history_from_native,
    history_to_native, parse_reply, render_call, render_results,
};
use serde_json::{Map, Value, json};

fn call(tool: &str, arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    ToolCall::new("srv", tool, arguments)
}

/// Two turns with calls and an answer.
fn history(dialect: DialectName) -> Vec<Message> {
    let dialect = dialect.dialect();
    let (first, second) = (call("find", json!({"q": "</tool_call>"})), call("open", json!({"u": "x"})));
    vec![
        Message::text(Role::System, "You are."),
        Message::user("What?"),
        Message::assistant(format!("<think>hm <use_mcp_tool></think>Look: {}", render_call(dialect, &first))),
        Message::user(render_results(dialect, &[(&first, "found\nit".to_owned())])),
        Message::assistant(format!("{}\n{}", render_call(dialect, &first), render_call(dialect, &second))),
        Message::user(render_results(dialect, &[(&first, "one".to_owned()), (&second, "two".to_owned())])),
        Message::assistant("It is \\boxed{x}."),
        Message::user("Thanks <tool_response>"),
    ]
}

#[test]
fn from_every_dialect_to_every_other() {
    for from in [DialectName::Hermes, DialectName::QwenXml] {
        for to in [DialectName::McpXml, DialectName::Hermes, DialectName::QwenXml] {
            let options = ParseOptions::new(from.dialect());
            assert_eq!(
                convert_history(&history(from), &options, to.dialect()),
                history(to),
                "{from:?} to {to:?}"
            );
        }
    }
}

#[test]
fn results_that_cannot_be_told_apart_stay_together() {
    let options = ParseOptions::new(DialectName::McpXml.dialect());
    let converted = convert_history(&history(DialectName::McpXml), &options, DialectName::Hermes.dialect());
    let wanted = history(DialectName::Hermes);
    assert_eq!(converted[..5], wanted[..5]);
    assert_eq!(converted[5].joined_text(), "<tool_response>\none\ntwo\n</tool_response>");
    assert_eq!(converted[6..], wanted[6..]);
}

#[test]
fn to_native_calls_and_back() {
    let options = ParseOptions::new(DialectName::Hermes.dialect());
    let native = history_to_native(&history(DialectName::Hermes), &options);
    let roles: Vec<Role> = native.iter().map(|message| message.role).collect();
    use Role::{Assistant, System, Tool, User};
    assert_eq!(roles, [System, User, Assistant, Tool, Assistant, Tool, Tool, Assistant, User]);
    assert_eq!(
        native[2].content,
        [
            ContentBlock::Thinking { text: "hm <use_mcp_tool>".to_owned(), signature: None },
            ContentBlock::text("Look:")
        ]
    );
    let ids: Vec<&str> =
        native.iter().flat_map(|message| &message.tool_calls).map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_0", "call_1", "call_2"]);
    let answered: Vec<_> = native.iter().filter_map(|message| message.tool_call_id.as_deref()).collect();
    assert_eq!(answered, ids, "every call has exactly one result");
    assert_eq!(native[6].joined_text(), "two");
    assert_eq!(native[6].name.as_deref(), Some("srv-open"));

    let text = history_from_native(&native, DialectName::Hermes.dialect());
    let wanted = history(DialectName::Hermes);
    assert_eq!(text.len(), wanted.len());
    for (found, wanted) in text.iter().zip(&wanted) {
        let calls = |message: &Message| {
            let text = message.joined_text();
            let reply = parse_reply(&text, &options);
            reply.calls.into_iter().map(|call| (call.tool, call.arguments)).collect::<Vec<_>>()
        };
        assert_eq!((found.role, calls(found)), (wanted.role, calls(wanted)));
    }
    assert_eq!(text[5], wanted[5], "results");
}

#[test]
fn native_results_are_put_into_the_order_of_the_calls() {
    let mut asking = Message::assistant("");
    asking.tool_calls = vec![
        ToolCall { id: "a".to_owned(), ..ToolCall::new("s", "t", Map::new()) },
        ToolCall { id: "b".to_owned(), ..ToolCall::new("s", "u", Map::new()) },
    ];
    let result = |id: &str, text: &str| Message {
        tool_call_id: Some(id.to_owned()),
        ..Message::text(Role::Tool, text)
    };
    let history = [asking, result("b", "second"), result("a", "first")];
    let text = history_from_native(&history, DialectName::McpXml.dialect());
    assert_eq!(text[1], Message::user("first\nsecond"));
    assert!(text[0].tool_calls.is_empty() && text[0].joined_text().contains("<tool_name>u</tool_name>"));
}
