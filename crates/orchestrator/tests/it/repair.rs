//! What is mended in a call before it is run, and what the model sees of it.

use core_protocol::ToolDefinition;
use serde_json::{Value, json};

use crate::harness::Case;
use crate::script::{boxed, call, search, text};

fn tool(server: &str, name: &str) -> ToolDefinition {
    ToolDefinition {
        server: server.into(),
        name: name.into(),
        description: String::new(),
        input_schema: json!({ "type": "object" }),
    }
}

#[track_caller]
fn check_repair(
    configure: impl Fn(Case) -> Case,
    (server, tool, arguments): (&str, &str, Value),
    expected: &str,
) {
    for native in [false, true] {
        let mut case =
            configure(Case::new([call(server, tool, arguments.clone()), text("Done."), boxed("42")]));
        if native {
            case = case.native();
        }
        let record = case.run();
        assert_eq!(record.ran(), [expected], "{server}/{tool}({arguments}), native: {native}");
    }
}

#[test]
fn argument_aliases() {
    for (written, expected) in [
        (
            ("jina", "scrape_and_extract_info", json!({ "url": "u", "description": "price" })),
            "jina/scrape_and_extract_info(url: u, info_to_extract: price)",
        ),
        (
            ("jina", "scrape_and_extract_info", json!({ "url": "u", "introduction": "price" })),
            "jina/scrape_and_extract_info(url: u, info_to_extract: price)",
        ),
        (
            ("tool-python", "run_python_code", json!({ "code": "1", "sandbox_id": "s1" })),
            "tool-python/run_python_code(sandbox_id: s1, code_block: 1)",
        ),
        (
            ("tool-python", "run_python_code", json!({ "code_block": "1" })),
            "tool-python/run_python_code(code_block: 1, sandbox_id: default)",
        ),
        (
            ("web", "google_search", json!({ "q": "a", "description": "kept" })),
            "web/google_search(q: a, description: kept)",
        ),
        (("left", "lookup", json!({ "code": "1" })), "left/lookup(code: 1)"),
    ] {
        // The order of the arguments of an object means nothing.
        let sorted = |line: &str| {
            let (name, arguments) = line.trim_end_matches(')').split_once('(').expect("a call");
            let mut arguments: Vec<String> = arguments.split(", ").map(str::to_owned).collect();
            arguments.sort();
            (name.to_owned(), arguments)
        };
        let (server, tool, arguments) = written;
        let record = Case::new([call(server, tool, arguments), text("Done."), boxed("42")]).run();
        assert_eq!(record.ran().len(), 1);
        assert_eq!(sorted(record.ran()[0]), sorted(expected));
    }
}

#[test]
fn nulls_at_the_top_are_dropped_and_others_kept() {
    check_repair(
        |case| case,
        ("web", "google_search", json!({ "q": "a", "gl": null, "extra": { "inner": null } })),
        r#"web/google_search(q: a, extra: {"inner":null})"#,
    );
}

#[test]
fn a_wrong_server_is_corrected_where_one_server_has_the_tool() {
    let google = json!({ "q": "a" });
    for (server, name, expected) in [
        ("tool-google", "google_search", "web/google_search(q: a)"),
        ("jina", "google_search", "web/google_search(q: a)"),
        ("web", "google_search", "web/google_search(q: a)"),
        ("nowhere", "lookup", "nowhere/lookup(q: a)"),
        ("right", "lookup", "right/lookup(q: a)"),
    ] {
        check_repair(|case| case, (server, name, google.clone()), expected);
    }
}

#[test]
fn a_corrected_server_is_what_the_model_sees_of_its_reply() {
    let record = Case::new([
        call("tool-google", "google_search", json!({ "q": "about tool-google" }))
            .saying("I ask tool-google:"),
        text("Done."),
        boxed("42"),
    ])
    .run();
    insta::assert_snapshot!(record.requests[1].messages[1].joined_text(), @r#"
    I ask tool-google:
    <use_mcp_tool>
    <server_name>web</server_name>
    <tool_name>google_search</tool_name>
    <arguments>
    {"q":"about tool-google"}
    </arguments>
    </use_mcp_tool>
    "#);
    let record =
        Case::new([call("tool-google", "google_search", json!({ "q": "a" })), text("Done."), boxed("42")])
            .native()
            .run();
    assert_eq!(record.requests[1].messages[1].tool_calls[0].server, "web");
}

#[test]
fn a_reply_without_a_wrong_server_is_kept_to_the_byte() {
    let written = "  <think>hm</think>\nFirst:\r\n<use_mcp_tool><server_name>web</server_name><tool_name>google_search\
                   </tool_name><arguments>{ 'q': \"a\", }</arguments></use_mcp_tool> \n after ";
    let record = Case::new([text(written), text("Done."), boxed("42")]).run();
    assert_eq!(record.requests[1].messages[1].joined_text(), written);
}

#[test]
fn python_has_other_names() {
    for written in ["python", "python_code"] {
        let record = Case::new([
            call("tool-python", written, json!({ "code_block": "1", "sandbox_id": "s1" })),
            text("Done."),
            boxed("42"),
        ])
        .run();
        assert_eq!(record.ran(), ["tool-python/run_python_code(code_block: 1, sandbox_id: s1)"]);
    }
    let record =
        Case::new([call("python", "python", json!({ "code": "1" })), text("Done."), boxed("42")]).run();
    assert_eq!(
        record.ran(),
        ["tool-python/run_python_code(code_block: 1, sandbox_id: default)"],
        "the new name's server and aliases hold for it"
    );
}

#[test]
fn python_keeps_its_name_where_a_tool_has_it_or_no_other_is_offered() {
    check_repair(
        |case| case.with(|case| case.tools.push(tool("stateless_python", "python"))),
        ("stateless_python", "python", json!({ "code": "1" })),
        "stateless_python/python(code: 1)",
    );
    let record = Case::new([call("web", "python", json!({ "code": "1" })), text("Done."), boxed("42")])
        .with(|case| case.tools.retain(|tool| tool.name != "run_python_code"))
        .run();
    assert_eq!(record.ran(), ["web/python(code: 1)"]);
    assert!(record.trace().contains("rollback tool_error (1)"), "it is an unknown tool: {}", record.trace());
}

#[test]
fn what_was_mended_is_logged() {
    let record = Case::new([
        call("tool-google", "google_search", json!({ "q": "a", "gl": null })),
        search("b"),
        text("Done."),
        boxed("42"),
    ])
    .run();
    let repairs: Vec<usize> = record
        .events
        .iter()
        .filter_map(|event| match &event.body {
            core_protocol::event::EventBody::ToolCallStarted { repairs, .. } => Some(repairs.len()),
            _ => None,
        })
        .collect();
    assert!(repairs[0] >= 1 && repairs[1] == 0, "{repairs:?}");
}
