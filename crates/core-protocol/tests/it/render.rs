//! Writing: calls, results and the tool section, letter by letter.

use core_protocol::{
    DialectName, ParseOptions, SchemaStyle, ToolCall, ToolDefinition, correct_server_names, parse_reply,
    render_call, render_results, render_tool_section,
};
use serde_json::{Map, Value, json};

fn call(arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    ToolCall::new("srv", "find", arguments)
}

fn tools() -> Vec<ToolDefinition> {
    vec![
        ToolDefinition {
            server: "srv".to_owned(),
            name: "find".to_owned(),
            description: "Finds it.".to_owned(),
            input_schema: json!({"type": "object", "properties": {"q": {"type": "string", "description": "What's \"sought\"", "default": null}, "n": {"type": "integer", "default": 5}}, "required": ["q"], "additionalProperties": false}),
        },
        ToolDefinition {
            server: "other".to_owned(),
            name: "list".to_owned(),
            description: "Lists.".to_owned(),
            input_schema: json!({"type": "object", "properties": {}}),
        },
        ToolDefinition {
            server: "srv".to_owned(),
            name: "drop".to_owned(),
            description: "Drops it.".to_owned(),
            input_schema: json!({"type": "object", "maximum": 1.5, "big": 1e20, "small": 0.00001}),
        },
    ]
}

#[test]
fn calls() {
    let call = call(json!({"q": "a b", "n": 2}));
    for (dialect, wanted) in [
        (
            DialectName::McpXml,
            "<use_mcp_tool>\n<server_name>srv</server_name>\n<tool_name>find</tool_name>\n<arguments>\n{\"q\":\"a b\",\"n\":2}\n</arguments>\n</use_mcp_tool>",
        ),
        (
            DialectName::Hermes,
            "<tool_call>\n{\"name\": \"srv-find\", \"arguments\": {\"q\": \"a b\", \"n\": 2}}\n</tool_call>",
        ),
        (
            DialectName::QwenXml,
            "<tool_call>\n<function=srv-find>\n<parameter=q>\na b\n</parameter>\n<parameter=n>\n2\n</parameter>\n</function>\n</tool_call>",
        ),
    ] {
        assert_eq!(render_call(dialect.dialect(), &call), wanted);
    }
}

#[test]
fn a_value_with_the_calls_own_tags_is_written_as_json() {
    let written = render_call(DialectName::QwenXml.dialect(), &call(json!({"q": "</parameter>"})));
    assert_eq!(
        written,
        "<tool_call>\n{\"name\": \"srv-find\", \"arguments\": {\"q\": \"</parameter>\"}}\n</tool_call>"
    );
}

#[test]
fn results() {
    let call = call(json!({}));
    let results = [(&call, "one\ntwo".to_owned()), (&call, String::new())];
    assert_eq!(render_results(DialectName::McpXml.dialect(), &results), "one\ntwo\n");
    let wrapped = "<tool_response>\none\ntwo\n</tool_response>\n<tool_response>\n\n</tool_response>";
    for dialect in [DialectName::Hermes, DialectName::QwenXml] {
        assert_eq!(render_results(dialect.dialect(), &results), wrapped);
        assert_eq!(dialect.dialect().split_results(wrapped), Some(vec!["one\ntwo", ""]));
        assert_eq!(dialect.dialect().split_results("no responses"), None);
    }
}

#[test]
fn tool_section_of_mcp_xml() {
    assert_eq!(
        render_tool_section(DialectName::McpXml.dialect(), &tools(), SchemaStyle::Json),
        r#"## Server name: srv
### Tool name: find
Description: Finds it.

Input JSON schema: {"type": "object", "properties": {"q": {"type": "string", "description": "What's \"sought\"", "default": null}, "n": {"type": "integer", "default": 5}}, "required": ["q"], "additionalProperties": false}
### Tool name: drop
Description: Drops it.

Input JSON schema: {"type": "object", "maximum": 1.5, "big": 1e+20, "small": 0.00001}

## Server name: other
### Tool name: list
Description: Lists.

Input JSON schema: {"type": "object", "properties": {}}
"#
    );
}

#[test]
fn schemas_as_python_prints_them() {
    let section = render_tool_section(DialectName::McpXml.dialect(), &tools(), SchemaStyle::Python);
    for schema in [
        r#"{'type': 'object', 'properties': {'q': {'type': 'string', 'description': 'What\'s "sought"', 'default': None}, 'n': {'type': 'integer', 'default': 5}}, 'required': ['q'], 'additionalProperties': False}"#,
        "{'type': 'object', 'maximum': 1.5, 'big': 1e+20, 'small': 1e-05}",
        "{'type': 'object', 'properties': {}}",
    ] {
        assert!(section.contains(&format!("Input JSON schema: {schema}\n")), "{section}");
    }
}

#[test]
fn python_strings() {
    for (text, wanted) in [
        ("it's", r#"{'d': "it's"}"#),
        ("say \"hi\"", r#"{'d': 'say "hi"'}"#),
        ("it's \"x\"", r#"{'d': 'it\'s "x"'}"#),
        ("a\nb\tc\\d\r", r"{'d': 'a\nb\tc\\d\r'}"),
        ("é東🦀", "{'d': 'é東🦀'}"),
        ("\u{0}\u{7f}\u{a0}\u{200b}\u{feff}", r"{'d': '\x00\x7f\xa0\u200b\ufeff'}"),
    ] {
        let tool = ToolDefinition {
            server: "s".to_owned(),
            name: "t".to_owned(),
            description: String::new(),
            input_schema: json!({"d": text}),
        };
        let section = render_tool_section(DialectName::McpXml.dialect(), &[tool], SchemaStyle::Python);
        assert!(section.ends_with(&format!("Input JSON schema: {wanted}\n")), "{section}");
    }
}

#[test]
fn tool_section_of_hermes() {
    let section = render_tool_section(DialectName::Hermes.dialect(), &tools()[1..2], SchemaStyle::Json);
    assert_eq!(
        section,
        "<tools>\n{\"type\": \"function\", \"function\": {\"name\": \"other-list\", \"description\": \"Lists.\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}}\n</tools>"
    );
}

#[test]
fn tool_section_of_qwen_xml() {
    let section = render_tool_section(DialectName::QwenXml.dialect(), &tools()[..1], SchemaStyle::Json);
    assert_eq!(
        section,
        "<tools>\n<function>\n<name>srv-find</name>\n<description>Finds it.</description>\n<parameters>\n\
         <parameter>\n<name>q</name>\n<type>string</type>\n<description>What's \"sought\"</description>\n<default>null</default>\n</parameter>\n\
         <parameter>\n<name>n</name>\n<type>integer</type>\n<default>5</default>\n</parameter>\n\
         <required>[\"q\"]</required>\n<additionalProperties>false</additionalProperties>\n</parameters>\n</function>\n</tools>"
    );
}

#[test]
fn server_names_are_corrected_in_place() {
    let dialect = DialectName::McpXml.dialect();
    let source = format!(
        "a {} b {}",
        render_call(dialect, &ToolCall::new("wrong", "t", Map::new())),
        render_call(dialect, &ToolCall::new("right", "u", Map::new()))
    );
    let reply = parse_reply(&source, &ParseOptions::new(dialect));
    let corrected = correct_server_names(&source, &reply, &[Some("srv".to_owned()), None]);
    assert_eq!(corrected, source.replace("wrong", "srv"));
    assert_eq!(correct_server_names(&source, &reply, &[]), source);
}
