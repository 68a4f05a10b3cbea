//! Calls: every table case, read whole and in pieces, must give what it says.

use core_protocol::{
    DialectName, Outcome, ParseOptions, ParsedReply, SegmentKind, ToolCall, ToolDefinition, parse_reply,
    render_call,
};
use serde_json::{Map, Value, json};

use crate::stream::stream_reply;
use crate::table::{self, Case};

const SHARED: &str = include_str!("cases/shared.cases");
const MCP_XML: &str = include_str!("cases/mcp_xml.cases");
const HERMES: &str = include_str!("cases/hermes.cases");
const QWEN_XML: &str = include_str!("cases/qwen_xml.cases");
const AUTO: &str = include_str!("cases/auto.cases");
const TOOLS: &str = include_str!("cases/tools.json");

pub(crate) fn known_tools() -> Vec<ToolDefinition> {
    serde_json::from_str(TOOLS).expect("tools.json")
}

/// The calls that the shared cases are made of.
fn named_call(name: &str) -> Option<ToolCall> {
    let arguments = match name {
        "1" => json!({"q": "one"}),
        "2" => json!({"q": "two", "n": "2"}),
        "3" => json!({"q": "three", "list": [1, 2]}),
        "thinker" => json!({"text": "a <think>b</think> c </think>"}),
        "markup" => json!({
            "html": "<p>x</p> </arguments> </tool_name> <server_name>a</server_name> <arguments>{}</arguments>",
        }),
        "entities" => json!({"xml": "&lt;a&gt; &amp; <![CDATA[ x < y ]]> &#39;"}),
        "unicode" => json!({"größe": "東京 🦀 \u{feff}é", "emoji": "👩‍👩‍👧"}),
        "bare" => json!({}),
        "braces" => json!({"re": "^\\{\"a\": [}]{2,}$", "quote": "she said \"}\" and 'ok' \\"}),
        "large" => json!({"text": "lorem ipsum \"dolor\" <sit> ".repeat(600)}),
        "indented" => json!({"code": "def f():\n    if x:\n\treturn '1'\n\n"}),
        "quoting" => json!({
            "doc": "<use_mcp_tool><server_name>x</server_name><tool_name>y</tool_name><arguments>{\"a\": 1}</arguments></use_mcp_tool>\n<tool_call>\n{\"name\": \"x-y\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n<function=x-y>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        }),
        _ => return None,
    };
    let Value::Object(arguments) = arguments else { return None };
    let tool = if name.len() == 1 { format!("t{name}") } else { name.to_owned() };
    Some(ToolCall::new("srv", tool, arguments))
}

const NAMES: &[&str] = &[
    "1", "2", "3", "thinker", "markup", "entities", "unicode", "bare", "braces", "large", "indented",
    "quoting",
];

/// Text that needs no escapes in JSON and is too long for a table.
fn twelve_kilobytes() -> String {
    "x < y {<tool>} </tool> ".repeat(12_000 / 23)
}

/// Replaces the placeholders of a case.
fn expand(text: &str, writer: DialectName) -> String {
    let text = &text.replace("{12 KB}", &twelve_kilobytes());
    let dialect = writer.dialect();
    let opener = dialect.openers()[0];
    let first = render_call(dialect, &named_call("1").expect("call 1"));
    let unclosed = first.strip_suffix(opener.closer).expect("a closing tag");
    let cut = &first[..first.find("one").expect("the argument") + 2];
    let mut text = text
        .replace("{open}", opener.literal)
        .replace("{close}", opener.closer)
        .replace("{unclosed}", unclosed.trim_end())
        .replace("{cut}", cut);
    for name in NAMES {
        let placeholder = format!("{{{name}}}");
        if text.contains(&placeholder) {
            text = text.replace(&placeholder, &render_call(dialect, &named_call(name).expect("a call")));
        }
    }
    text
}

/// `1`, or `server | tool | {arguments} | id | repaired`.
fn expected_call(value: &str) -> (ToolCall, Option<String>, Option<String>) {
    if let Some(call) = named_call(value) {
        return (call, None, None);
    }
    let value = &value.replace("{12 KB}", &twelve_kilobytes());
    let parts: Vec<&str> = value.split('|').map(str::trim).collect();
    let arguments: Map<String, Value> =
        serde_json::from_str(parts[2]).unwrap_or_else(|error| panic!("{value}: {error}"));
    let part = |index: usize| parts.get(index).filter(|part| !part.is_empty()).map(|part| (*part).to_owned());
    (ToolCall::new(parts[0], parts[1], arguments), part(3), part(4))
}

fn options<'a>(case: &Case, reader: DialectName, tools: &'a [ToolDefinition]) -> ParseOptions<'a> {
    ParseOptions {
        starts_in_thinking: case.has("starts_in_thinking"),
        accept_unclosed_at_end: case.has("accept_unclosed"),
        known_tools: if case.has("tools") { tools } else { &[] },
        ..ParseOptions::new(reader.dialect())
    }
}

fn check(case: &Case, reader: DialectName, writer: DialectName) {
    let label = format!("{} (read as {}, written as {})", case.name, reader.as_str(), writer.as_str());
    let tools = known_tools();
    let options = options(case, reader, &tools);
    let input = expand(&case.input, writer);
    let reply = parse_reply(&input, &options);
    assert_covers(&label, &input, &reply);

    let calls: Vec<_> = case.all("call").map(expected_call).collect();
    let found: Vec<_> = reply.calls.iter().map(|call| (&call.server, &call.tool, &call.arguments)).collect();
    let wanted: Vec<_> = calls.iter().map(|(call, ..)| (&call.server, &call.tool, &call.arguments)).collect();
    assert_eq!(found, wanted, "{label}: calls of {input}\n{:#?}", reply.malformed);
    for ((_, id, repaired), call) in calls.iter().zip(&reply.calls) {
        if let Some(id) = id {
            assert_eq!(&call.id, id, "{label}: id");
        }
        if let Some(repaired) = repaired {
            assert_eq!(&json!(call.repaired).as_str().unwrap_or("strict"), repaired, "{label}: repair");
        }
    }
    if let Some(ids) = case.one("ids") {
        let found: Vec<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(found.join(" "), ids, "{label}: ids");
    }
    let outcome = match case.one("outcome") {
        None if calls.is_empty() => panic!("{label}: the case says neither call nor outcome"),
        None => "calls".to_owned(),
        Some(outcome) => outcome.to_owned(),
    };
    assert_eq!(json!(reply.outcome()), json!(outcome), "{label}: outcome; {:#?}", reply.malformed);
    for (key, found) in [("text", reply.text(&input)), ("thinking", reply.thinking(&input))] {
        if let Some(wanted) = case.one(key) {
            let wanted: String =
                serde_json::from_str(wanted).unwrap_or_else(|error| panic!("{label}: {error}"));
            assert_eq!(found, expand(&wanted, writer), "{label}: {key}");
        }
    }
    let problems: Vec<&str> = case.all("malformed").collect();
    if !problems.is_empty() || reply.outcome() == Outcome::Calls {
        assert_eq!(reply.malformed.len(), problems.len(), "{label}: malformed {:#?}", reply.malformed);
    }
    for (problem, block) in problems.iter().zip(&reply.malformed) {
        assert!(*problem == "*" || block.problem.contains(problem), "{label}: problem {:?}", block.problem);
        let line = input[..block.offset].matches('\n').count() + 1;
        assert_eq!(block.line, line, "{label}: line");
        assert!(block.span.of(&input).contains(&block.excerpt), "{label}: excerpt {:?}", block.excerpt);
    }
    for (place, block) in case.all("where").zip(&reply.malformed) {
        let found = format!("line {} byte {} {:?}", block.line, block.offset, block.excerpt);
        assert_eq!(found, place, "{label}: where");
    }
    let stray: Vec<String> = case.all("stray").map(|tag| expand(tag, writer)).collect();
    if !stray.is_empty() {
        let found: Vec<_> = reply.stray_tags.iter().map(|tag| tag.tag.to_string()).collect();
        assert_eq!(found, stray, "{label}: stray tags");
    }
    for call in &reply.calls {
        DialectName::ALL.iter().for_each(|dialect| assert_written_again(&label, call, *dialect));
    }
    for size in [1, 2, 3, 7, 64] {
        assert_eq!(stream_reply(input.as_bytes(), size, &options), reply, "{label}: in pieces of {size}");
    }
}

/// The call, written in a dialect and read again where its tool is known, is the same. `qwen_xml` has no
/// types of its own, so its values are not compared here.
fn assert_written_again(label: &str, call: &ToolCall, dialect: DialectName) {
    let tools = [ToolDefinition {
        server: call.server.clone(),
        name: call.tool.clone(),
        description: String::new(),
        input_schema: json!({}),
    }];
    let written = render_call(dialect.dialect(), call);
    let options = ParseOptions { known_tools: &tools, ..ParseOptions::new(dialect.dialect()) };
    let again = parse_reply(&written, &options);
    let [read] = again.calls.as_slice() else { panic!("{label}: {written} is read as {again:?}") };
    assert_eq!((&read.server, &read.tool), (&call.server, &call.tool), "{label}: {written}");
    if dialect != DialectName::QwenXml {
        assert_eq!(read.arguments, call.arguments, "{label}: {written}");
    }
}

/// Segments follow each other without a gap, and calls and blocks are where their segments say.
pub(crate) fn assert_covers(label: &str, input: &str, reply: &ParsedReply) {
    let mut at = 0;
    for segment in &reply.segments {
        assert_eq!(segment.span.start, at, "{label}: gap in {:?}", reply.segments);
        assert!(segment.span.end > at, "{label}: empty segment");
        assert!(segment.content.start >= at && segment.content.end <= segment.span.end, "{label}: content");
        at = segment.span.end;
        match segment.kind {
            SegmentKind::Call(index) => assert_eq!(reply.calls[index].span, Some(segment.span), "{label}"),
            SegmentKind::Malformed(index) => assert_eq!(reply.malformed[index].span, segment.span, "{label}"),
            SegmentKind::Text | SegmentKind::Thinking => {}
        }
    }
    assert_eq!(at, input.len(), "{label}: the segments end early");
}

#[test]
fn shared_cases_hold_in_every_dialect() {
    for writer in [DialectName::McpXml, DialectName::Hermes, DialectName::QwenXml] {
        table::run(&table::read(SHARED), |case| {
            check(case, writer, writer);
            check(case, DialectName::Auto, writer);
        });
    }
}

#[test]
fn cases_of_one_dialect() {
    for (table, dialect, least) in [
        (MCP_XML, DialectName::McpXml, 90),
        (HERMES, DialectName::Hermes, 75),
        (QWEN_XML, DialectName::QwenXml, 120),
        (AUTO, DialectName::Auto, 8),
    ] {
        let cases = table::read(table);
        assert!(cases.len() >= least, "{}: {} cases", dialect.as_str(), cases.len());
        table::run(&cases, |case| {
            check(case, dialect, dialect);
            check(case, DialectName::Auto, dialect);
        });
    }
}

#[test]
fn written_calls_are_enough() {
    let written: usize =
        [SHARED, MCP_XML, HERMES, QWEN_XML, AUTO].map(|table| table::read(table).len()).iter().sum();
    assert!(written >= 250, "{written} cases");
}
