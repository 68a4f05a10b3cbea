//! The boxed answer: table cases, and what counts in a whole reply.

use core_protocol::{
    DialectName, ParseOptions, boxed_answer, boxed_answer_of_reply, last_boxed, parse_reply,
};

use crate::arguments::input;
use crate::table::{self, Case};

const TABLE: &str = include_str!("cases/boxed.cases");

fn check(case: &Case) {
    let input = input(case);
    let content: Option<String> = match case.one("content").expect("content") {
        "none" => None,
        text => Some(serde_json::from_str(text).expect("a JSON string")),
    };
    assert_eq!(last_boxed(&input), content.as_deref(), "{input:?}");
    let answer = if case.one("answer") == Some("none") { None } else { content };
    assert_eq!(boxed_answer(&input), answer, "{input:?}");
}

#[test]
fn table_cases() {
    let cases = table::read(TABLE);
    assert!(cases.len() >= 120, "{} cases", cases.len());
    table::run(&cases, check);
}

#[test]
fn in_a_reply_thinking_counts_only_where_nothing_else_does() {
    let call = r#"<use_mcp_tool><server_name>s</server_name><tool_name>t</tool_name><arguments>{"code": "\\boxed{3}"}</arguments></use_mcp_tool>"#;
    for (source, answer) in [
        (r"<think>\boxed{1}</think>\boxed{2}".to_owned(), Some("2")),
        (r"\boxed{2}<think>\boxed{1}</think>".to_owned(), Some("2")),
        (r"<think>\boxed{1}</think>so".to_owned(), Some("1")),
        (r"\boxed{1}</think>so".to_owned(), Some("1")),
        (r"<think>\boxed{1}</think>\boxed{?}".to_owned(), None),
        (format!(r"\boxed{{2}} {call}"), Some("2")),
        (call.to_owned(), None),
        (r"Write <use_mcp_tool> first. \boxed{5}".to_owned(), Some("5")),
        ("nothing".to_owned(), None),
    ] {
        let reply = parse_reply(&source, &ParseOptions::new(DialectName::McpXml.dialect()));
        assert_eq!(boxed_answer_of_reply(&source, &reply).as_deref(), answer, "{source}");
    }
}
