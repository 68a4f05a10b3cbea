//! Native calls: what providers send is read, and what is sent back is what they expect.

use core_protocol::native::{
    AnthropicBlocks, MAX_FUNCTION_NAME, NativeShape, OpenAiChat, OpenAiResponses, function_name,
    split_function_name,
};
use core_protocol::{ArgumentRepair, ToolCall, ToolDefinition};
use serde_json::{Value, json};

use crate::calls::known_tools;

const SHAPES: [&dyn NativeShape; 3] = [&OpenAiChat, &OpenAiResponses, &AnthropicBlocks];

/// An item of the shape with these arguments.
fn item(shape: &dyn NativeShape, id: Value, name: Value, arguments: Value) -> Value {
    match shape.name() {
        "openai_chat" => {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        }
        "openai_responses" => {
            json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": arguments})
        }
        _ => json!({"type": "tool_use", "id": id, "name": name, "input": arguments}),
    }
}

#[test]
fn arguments_are_read_in_every_form() {
    for shape in SHAPES {
        for (arguments, wanted, repaired) in [
            (json!("{\"a\": 1}"), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!(""), json!({}), None),
            (json!(null), json!({}), None),
            (json!("null"), json!({}), None),
            (json!("\"{\\\"a\\\": 1}\""), json!({"a": 1}), None),
            (json!("{'a': 1}"), json!({"a": 1}), Some(ArgumentRepair::Json5)),
            (json!("{\"a\": True}"), json!({"a": true}), Some(ArgumentRepair::Repaired)),
        ] {
            let read = shape.read_calls(&[item(shape, json!("id1"), json!("srv-t"), arguments.clone())], &[]);
            assert_eq!(read.malformed, [], "{} {arguments}", shape.name());
            let call = &read.calls[0];
            assert_eq!(Value::Object(call.arguments.clone()), wanted, "{} {arguments}", shape.name());
            assert_eq!((call.id.as_str(), call.server.as_str(), call.tool.as_str()), ("id1", "srv", "t"));
            assert_eq!(call.repaired, repaired);
        }
    }
}

#[test]
fn what_cannot_be_read_is_reported_with_its_id() {
    for shape in SHAPES {
        for (name, arguments, problem) in [
            (json!("t"), json!("[1]"), "a list"),
            (json!("t"), json!([1]), "not a JSON object"),
            (json!("t"), json!("hello"), "cannot be mended"),
            (json!(""), json!("{}"), "no function name"),
            (json!(null), json!("{}"), "no function name"),
        ] {
            let items =
                [item(shape, json!("x"), name, arguments), item(shape, json!("y"), json!("t"), json!("{}"))];
            let read = shape.read_calls(&items, &[]);
            assert_eq!(read.calls.len(), 1, "{}", shape.name());
            assert_eq!((read.malformed[0].index, read.malformed[0].id.as_str()), (0, "x"));
            assert!(read.malformed[0].problem.contains(problem), "{}", read.malformed[0].problem);
        }
    }
}

#[test]
fn a_call_comes_back_as_it_was() {
    let known = known_tools();
    for shape in SHAPES {
        let items = [
            item(shape, json!("a"), json!("fs-read-file"), json!("{\"path\": \"x\"}")),
            item(shape, json!(null), json!("search"), json!({})),
        ];
        let read = shape.read_calls(&items, &known);
        assert_eq!((read.calls[0].server.as_str(), read.calls[0].tool.as_str()), ("fs", "read-file"));
        assert_eq!((read.calls[1].server.as_str(), read.calls[1].tool.as_str()), ("web-search", "search"));
        let sent: Vec<Value> = read.calls.iter().map(|call| shape.render_call(call)).collect();
        assert_eq!(shape.read_calls(&sent, &known), read, "{}", shape.name());
    }
}

#[test]
fn fields_that_a_provider_wants_back_are_kept() {
    let sent = json!({"id": "a", "type": "function", "index": 0, "function": {"name": "t", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "xyz"}}});
    let read = OpenAiChat.read_calls(&[sent], &[]);
    assert_eq!(
        OpenAiChat.render_call(&read.calls[0]),
        json!({"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "xyz"}}})
    );
    let item = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "t", "arguments": "{}", "status": "completed"});
    let read = OpenAiResponses.read_calls(&[item], &[]);
    assert_eq!(
        OpenAiResponses.render_call(&read.calls[0]),
        json!({"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"})
    );
}

#[test]
fn other_items_are_passed_over() {
    let blocks =
        [json!({"type": "text", "text": "hi"}), json!({"type": "thinking", "thinking": "hm"}), json!(5)];
    assert_eq!(AnthropicBlocks.read_calls(&blocks, &[]).calls, []);
    let items = [json!({"type": "message"}), json!({"type": "reasoning"}), json!(null)];
    assert_eq!(OpenAiResponses.read_calls(&items, &[]), Default::default());
}

#[test]
fn results_and_definitions() {
    assert_eq!(
        OpenAiChat.render_result("a", "ok", true),
        json!({"role": "tool", "tool_call_id": "a", "content": "ok"})
    );
    assert_eq!(
        OpenAiResponses.render_result("a", "ok", false),
        json!({"type": "function_call_output", "call_id": "a", "output": "ok"})
    );
    assert_eq!(
        AnthropicBlocks.render_result("a", "bad", true),
        json!({"type": "tool_result", "tool_use_id": "a", "content": "bad", "is_error": true})
    );
    let tool = &known_tools()[0];
    assert_eq!(OpenAiChat.render_tool(tool)["function"]["name"], "fs-read-file");
    assert_eq!(OpenAiResponses.render_tool(tool)["parameters"], tool.input_schema);
    assert_eq!(AnthropicBlocks.render_tool(tool)["input_schema"], tool.input_schema);
}

/// Tools whose names are the same once they are cut, or once characters are replaced.
#[test]
fn tools_whose_names_coincide_are_told_apart() {
    let long = "x".repeat(60);
    let tools: Vec<ToolDefinition> = [
        ("server", format!("{long}_one")),
        ("server", format!("{long}_two")),
        ("server", format!("{long}_one_more")),
        ("files", "read.all".to_owned()),
        ("files", "read all".to_owned()),
        ("files", "read_all".to_owned()),
        ("größe", "t".to_owned()),
        ("grö_e", "t".to_owned()),
        ("", long.clone()),
        ("", format!("{long}{long}")),
    ]
    .into_iter()
    .map(|(server, name)| ToolDefinition {
        server: server.to_owned(),
        name,
        description: String::new(),
        input_schema: json!({"type": "object"}),
    })
    .collect();
    for tool in &tools {
        let name = function_name(&tool.server, &tool.name);
        assert!(name.len() <= MAX_FUNCTION_NAME, "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{name}");
        assert_eq!(split_function_name(&name, &tools), (tool.server.clone(), tool.name.clone()), "{name}");
        for shape in SHAPES {
            let call =
                ToolCall { id: "a".into(), ..ToolCall::new(&*tool.server, &*tool.name, Default::default()) };
            let read = shape.read_calls(&[shape.render_call(&call)], &tools);
            assert_eq!(read.calls, [call], "{} {name}", shape.name());
        }
    }
    assert_eq!(function_name("files", "read_all"), "files-read_all", "a good name stays");
}
