//! What must hold for every text: no panic, no gap, the same result however it is cut, and calls that
//! come back as they were written.

use core_protocol::{
    ArgumentRepair, DialectName, ParseOptions, ToolCall, ToolDefinition, boxed_answer, failure_summary_text,
    last_boxed, parse_arguments, parse_reply, render_call,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::calls::assert_covers;
use crate::stream::stream_pieces;

/// Pieces that make hostile replies: every tag, whole or cut, and what may confuse a reader.
const PIECES: &[&str] = &[
    "<use_mcp_tool>",
    "</use_mcp_tool>",
    "<server_name>",
    "</server_name>",
    "<tool_name>",
    "</tool_name>",
    "<arguments>",
    "</arguments>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<function=",
    "<function=f>",
    "</function>",
    "<parameter=",
    "<parameter=p>",
    "</parameter>",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "\\",
    ",",
    ":",
    "\n",
    " ",
    "{\"name\"",
    "{\"name\": \"t\", \"arguments\": {}}",
    "{\"a\": 1}",
    "{\"a\": \"",
    "```json\n",
    "```",
    "//",
    "/*",
    "*/",
    "<use_mcp",
    "</thi",
    "é",
    "🦀",
    "text",
    "a < b",
    "True",
    "None",
    "\\boxed{",
    "\\boxed",
    "<![CDATA[",
    "]]>",
    "<use_mcp_tool><server_name>s</server_name><tool_name>t</tool_name><arguments>",
    "<use_mcp_tool><server_name>s</server_name><tool_name>t</tool_name><arguments>{\"q\": \"x\"}</arguments></use_mcp_tool>",
    "<tool_call>{\"name\": \"t\", \"arguments\": {\"q\": 1}}</tool_call>",
    "<tool_call><function=t><parameter=q>1</parameter></function></tool_call>",
];

fn hostile() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![9 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => any::<String>()],
        0..40,
    )
    .prop_map(|pieces| pieces.concat())
}

fn dialect() -> impl Strategy<Value = DialectName> {
    prop::sample::select(&DialectName::ALL[..])
}

/// Names that every dialect can write.
fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z_ö東][a-zA-Z0-9_.:/ö東]{0,12}"
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        hostile().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn call() -> impl Strategy<Value = ToolCall> {
    let key = prop_oneof![4 => "[a-zA-Z_]{1,10}", 1 => any::<String>(), 1 => hostile()];
    (name(), name(), prop::collection::btree_map(key, value(), 0..6)).prop_map(|(server, tool, arguments)| {
        ToolCall::new(server, tool, arguments.into_iter().collect::<Map<String, Value>>())
    })
}

/// A tool whose schema says what the arguments of the call are.
fn definition_of(call: &ToolCall) -> ToolDefinition {
    let properties: Map<String, Value> = call
        .arguments
        .iter()
        .map(|(name, value)| {
            let kind = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(number) if number.is_f64() => "number",
                Value::Number(_) => "integer",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            (name.clone(), json!({"type": kind}))
        })
        .collect();
    ToolDefinition {
        server: call.server.clone(),
        name: call.tool.clone(),
        description: String::new(),
        input_schema: json!({"type": "object", "properties": properties}),
    }
}

/// Cuts a text at the given places, taken modulo its length.
fn cut<'t>(bytes: &'t [u8], at: &[usize]) -> Vec<&'t [u8]> {
    let mut places: Vec<usize> = at.iter().map(|place| place % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_what_the_whole_text_gives(
        text in hostile(),
        at in prop::collection::vec(any::<usize>(), 0..12),
        dialect in dialect(),
        starts_in_thinking in any::<bool>(),
        accept_unclosed_at_end in any::<bool>(),
    ) {
        let options = ParseOptions {
            starts_in_thinking,
            accept_unclosed_at_end,
            ..ParseOptions::new(dialect.dialect())
        };
        let whole = parse_reply(&text, &options);
        assert_covers("any text", &text, &whole);
        let pieces = cut(text.as_bytes(), &at);
        prop_assert_eq!(&stream_pieces(pieces, &options), &whole);
        prop_assert_eq!(&stream_pieces(text.as_bytes().chunks(1), &options), &whole);
    }

    #[test]
    fn a_written_call_is_read_as_it_was(call in call(), dialect in dialect(), before in "[a-z \n]{0,20}") {
        let known = [definition_of(&call)];
        let options = ParseOptions { known_tools: &known, ..ParseOptions::new(dialect.dialect()) };
        let text = format!("{before}{}", render_call(dialect.dialect(), &call));
        let reply = parse_reply(&text, &options);
        prop_assert_eq!(reply.calls.len(), 1, "{}\n{:#?}", text, reply);
        let read = &reply.calls[0];
        prop_assert_eq!((&read.server, &read.tool), (&call.server, &call.tool));
        prop_assert_eq!(&read.arguments, &call.arguments, "{}", text);
        prop_assert_eq!(read.repaired, None);
        prop_assert_eq!(reply.text(&text), before);
    }

    #[test]
    fn a_call_that_was_read_survives_every_dialect(text in hostile(), from in dialect(), to in dialect()) {
        for call in parse_reply(&text, &ParseOptions::new(from.dialect())).calls {
            let known = [definition_of(&call)];
            let options = ParseOptions { known_tools: &known, ..ParseOptions::new(to.dialect()) };
            let written = render_call(to.dialect(), &call);
            let again = parse_reply(&written, &options);
            prop_assert_eq!(again.calls.len(), 1, "{}\n{:#?}", written, again);
            let read = &again.calls[0];
            prop_assert_eq!(
                (&read.server, &read.tool, &read.arguments),
                (&call.server, &call.tool, &call.arguments),
                "{}", written
            );
        }
    }

    #[test]
    fn no_call_is_read_inside_of_thinking(inside in hostile(), dialect in dialect()) {
        let inside = inside.replace("</", "<");
        let reply = parse_reply(&format!("<think>{inside}"), &ParseOptions::new(dialect.dialect()));
        prop_assert!(reply.calls.is_empty() && reply.malformed.is_empty() && reply.stray_tags.is_empty());
    }

    #[test]
    fn strict_json_is_left_alone(arguments in prop::collection::btree_map(any::<String>(), value(), 0..6)) {
        let object: Map<String, Value> = arguments.into_iter().collect();
        let read = parse_arguments(&Value::Object(object.clone()).to_string()).expect("JSON");
        prop_assert_eq!(read.repaired, None);
        prop_assert_eq!(read.arguments, object);
    }

    #[test]
    fn python_is_read_as_it_was_meant(arguments in prop::collection::btree_map("[a-z]{1,6}", plain_value(), 1..5)) {
        let object: Map<String, Value> = arguments.into_iter().collect();
        let read = parse_arguments(&python(&Value::Object(object.clone()))).expect("readable");
        prop_assert_eq!(read.arguments, object);
    }

    #[test]
    fn arguments_of_any_text_are_an_object_or_an_error(text in prop_oneof![hostile(), any::<String>()]) {
        if let Ok(read) = parse_arguments(&text) {
            let again = parse_arguments(&Value::Object(read.arguments.clone()).to_string()).expect("JSON");
            prop_assert_eq!(again.repaired, None::<ArgumentRepair>);
            prop_assert_eq!(again.arguments, read.arguments);
        }
    }

    #[test]
    fn the_last_box_is_what_a_naive_reader_finds(text in "[\\\\boxed{} a?\n]{0,60}", boxes in 0usize..4) {
        let text = format!("{text}{}", "\\boxed{x}".repeat(boxes));
        prop_assert_eq!(last_boxed(&text).map(str::to_owned), naive_last_boxed(&text));
        let _ = boxed_answer(&text);
    }

    #[test]
    fn a_failure_summary_never_holds_a_call(text in hostile(), dialect in dialect()) {
        let options = ParseOptions::new(dialect.dialect());
        let summary = failure_summary_text(&text, &options);
        let reply = parse_reply(&text, &options);
        prop_assert!(text.contains(summary.as_str()) || reply.segments.len() > 1, "{}", summary);
    }
}

/// Values without characters that Python's quotes would have to escape.
fn plain_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-zA-Z0-9 .!?é東]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A value as Python prints it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => format!("'{text}'"),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("'{key}': {}", python(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// The definition of the last box, written without any thought of speed.
fn naive_last_boxed(text: &str) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let word: Vec<char> = "\\boxed".chars().collect();
    let mut last = None;
    let mut at = 0;
    while at < characters.len() {
        if !characters[at..].starts_with(&word) {
            at += 1;
            continue;
        }
        at += word.len();
        let mut open = at;
        while characters.get(open).is_some_and(|character| character.is_whitespace()) {
            open += 1;
        }
        if characters.get(open) != Some(&'{') {
            continue;
        }
        let mut depth = 1;
        let mut end = open + 1;
        while end < characters.len() && depth > 0 {
            match characters[end] {
                '\\' => end += 1,
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            end += 1;
        }
        let close = if depth == 0 { end - 1 } else { characters.len() };
        last = Some(characters[open + 1..close.max(open + 1)].iter().collect::<String>().trim().to_owned());
        at = end;
    }
    last
}
