//! What a result means: a rollback or a result; which calls of a reply are run, and what the model is told.

use core_protocol::event::LlmPurpose;
use core_protocol::{DialectName, ParseOptions, parse_reply};
use llm_providers::ToolProtocol;
use orchestrator::config::ToolCallsPerTurn;
use serde_json::json;

use crate::harness::{Case, check};
use crate::script::{boxed, call, calls, failed, google, one, search, success, text, xml};

/// What a first call's result leads to: a rollback or the next turn.
#[track_caller]
fn check_result(reply: crate::script::Reply, report: &orchestrator::machine::ToolReport, rolled_back: bool) {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        let answer = report.clone();
        let record = Case::new([reply.clone(), text("Done."), boxed("42")])
            .protocol(protocol)
            .tool(move |_| answer.clone())
            .run();
        let decided = record.decisions.iter().any(|line| line == "rollback tool_error (1)");
        assert_eq!(decided, rolled_back, "for {report:?}\n{}", record.trace());
        let second = record.requests_for(LlmPurpose::Turn)[1];
        let told = second.all_text().contains(&report.result.joined_text());
        assert_eq!(told, !rolled_back, "for {report:?}\n{}", second.layout());
    }
}

#[test]
fn results_that_another_spelling_cures_are_rolled_back_and_no_others() {
    let scrape = || call("web", "scrape_website", json!({ "url": "u" }));
    for (report, rolled_back) in [
        (success("a page"), false),
        (success(""), false),
        (success(r#"{"organic": []}"#), false),
        (failed("unknown_tool", true, "Unknown tool: scrape"), true),
        (failed("invalid_arguments", true, "url is not a URL"), true),
        (failed("protocol_error", true, "-32602 invalid params"), true),
        (failed("tool_error", true, "Error executing tool scrape_website: no url"), true),
        (failed("tool_error", false, "the page answered 404"), false),
        (failed("timeout", false, "no answer in 300 s"), false),
        (failed("server_died", false, "the server ended"), false),
        (failed("unknown_server", false, "no such server; there are web, jina"), false),
    ] {
        check_result(scrape(), &report, rolled_back);
    }
}

#[test]
fn a_search_without_organic_entries_is_rolled_back() {
    for (page, rolled_back) in [
        (r#"{"organic": [], "searchParameters": {"q": "a"}}"#, true),
        (r#"{"organic": [{"title": "t", "link": "l"}], "searchParameters": {"q": "a"}}"#, false),
    ] {
        check_result(search("a"), &success(page), rolled_back);
    }
    check_result(call("web", "sogou_search", json!({ "q": "a" })), &success(r#"{"organic": []}"#), false);
}

#[test]
fn an_unknown_server_is_told_and_kept() {
    let record = check(
        Case::new([
            call("nowhere", "lookup", json!({ "q": "a" })),
            call("nowhere", "no_such_tool", json!({})),
            text("Done."),
            boxed("42"),
        ]),
        "1 ask
         1 run nowhere/lookup(q: a)
         2 ask
         2 run nowhere/no_such_tool()
         3 ask
         ask for the answer
         pass 1: completed, turns 3, attempts 3, rollbacks 0
         answered: 42 (final_reply)",
    );
    let told = record.requests[2].all_text();
    assert_eq!(told.matches("the servers are: web, jina").count(), 2, "{told}");
}

#[test]
fn an_unknown_tool_is_rolled_back_only_where_no_other_call_was_run() {
    let unknown = || one("web", "no_such_tool", json!({}));
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        check(
            Case::new([calls([unknown(), google("a")]), text("Done."), boxed("42")]).protocol(protocol),
            "1 ask
             1 run web/no_such_tool()
             rollback tool_error (1)
             1 ask
             ask for the answer
             pass 1: completed, turns 1, attempts 2, rollbacks 1
             answered: 42 (final_reply)",
        );
        let record = check(
            Case::new([calls([google("a"), unknown(), google("b")]), text("Done."), boxed("42")])
                .protocol(protocol),
            "1 ask
             1 run web/google_search(q: a)
             1 run web/no_such_tool()
             1 run web/google_search(q: b)
             2 ask
             ask for the answer
             pass 1: completed, turns 2, attempts 2, rollbacks 0
             answered: 42 (final_reply)",
        );
        let told = record.requests[1].all_text();
        for result in ["About a", "Unknown tool: no_such_tool", "About b"] {
            assert!(told.contains(result), "{result} is missing in: {told}");
        }
    }
}

#[test]
fn a_second_calls_error_or_empty_search_is_kept() {
    let record = check(
        Case::new([
            calls([google("a"), one("web", "scrape_website", json!({ "url": "wrong" })), google("nothing")]),
            text("Done."),
            boxed("42"),
        ]),
        "1 ask
         1 run web/google_search(q: a)
         1 run web/scrape_website(url: wrong)
         1 run web/google_search(q: nothing)
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 2, rollbacks 0
         answered: 42 (final_reply)",
    );
    insta::assert_snapshot!(record.requests[1].messages[2].joined_text(), @r#"
    {"organic":[{"title":"About a"}]}
    invalid arguments: wrong
    {"organic":[],"searchParameters":{"q":"nothing"}}
    "#);
}

#[test]
fn a_curable_error_is_kept_when_no_rollback_is_left() {
    let wrong = || call("web", "scrape_website", json!({ "url": "wrong" }));
    let record = check(
        Case::new([wrong(), wrong(), wrong(), wrong(), wrong(), text("Done."), boxed("42")]),
        "1 ask
         1 run web/scrape_website(url: wrong)
         rollback tool_error (1)
         1 ask
         1 run web/scrape_website(url: wrong)
         rollback tool_error (2)
         1 ask
         1 run web/scrape_website(url: wrong)
         rollback tool_error (3)
         1 ask
         1 run web/scrape_website(url: wrong)
         rollback tool_error (4)
         1 ask
         1 run web/scrape_website(url: wrong)
         recovered after 4
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 6, rollbacks 4
         answered: 42 (final_reply)",
    );
    assert!(record.requests[5].last_text().contains("invalid arguments: wrong"));
}

#[test]
fn a_block_that_cannot_be_read_stops_no_other_call() {
    let good = xml("web", "google_search", r#"{"q": "a"}"#);
    let bad = xml("web", "scrape_website", "no object at all");
    for reply in [format!("{bad}\n{good}"), format!("{good}\nand\n{bad}")] {
        let parsed = parse_reply(&reply, &ParseOptions::new(DialectName::McpXml.dialect()));
        let problem = parsed.malformed[0].problem.to_string();
        let record = check(
            Case::new([text(reply), text("Done."), boxed("42")]),
            "1 ask
             1 run web/google_search(q: a)
             2 ask
             ask for the answer
             pass 1: completed, turns 2, attempts 2, rollbacks 0
             answered: 42 (final_reply)",
        );
        let told = record.requests[1].last_text();
        assert!(told.contains("About a"), "{told}");
        assert!(told.contains(&problem), "`{problem}` is not said in: {told}");
    }
}

fn three_calls() -> crate::script::Reply {
    calls([google("a"), one("web", "scrape_website", json!({ "url": "fail" })), google("b")])
}

#[test]
fn calls_of_one_reply_are_run_one_by_one_or_at_once_or_only_the_first() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        for (mode, lines) in [
            (
                ToolCallsPerTurn::All,
                "1 run web/google_search(q: a)
                 1 run web/scrape_website(url: fail)
                 1 run web/google_search(q: b)",
            ),
            (
                ToolCallsPerTurn::Parallel,
                "1 run web/google_search(q: a) | web/scrape_website(url: fail) | web/google_search(q: b)",
            ),
            (ToolCallsPerTurn::First, "1 run web/google_search(q: a)"),
        ] {
            let case = Case::new([three_calls(), text("Done."), boxed("42")])
                .protocol(protocol)
                .config(|config| config.tool_calls_per_turn = mode);
            check(
                case,
                &format!(
                    "1 ask
                     {lines}
                     2 ask
                     ask for the answer
                     pass 1: completed, turns 2, attempts 2, rollbacks 0
                     answered: 42 (final_reply)"
                ),
            );
        }
    }
}

#[test]
fn calls_at_once_give_their_results_in_call_order_whatever_fails() {
    let record = Case::new([
        calls([one("web", "scrape_website", json!({ "url": "wrong" })), google("a"), google("nothing")]),
        text("Done."),
        boxed("42"),
    ])
    .config(|config| config.tool_calls_per_turn = ToolCallsPerTurn::Parallel)
    .run();
    assert!(!record.trace().contains("rollback tool_error"), "other calls were run: {}", record.trace());
    insta::assert_snapshot!(record.requests[1].messages[2].joined_text(), @r#"
    invalid arguments: wrong
    {"organic":[{"title":"About a"}]}
    {"organic":[],"searchParameters":{"q":"nothing"}}
    "#);
}

#[test]
fn a_single_call_among_calls_at_once_can_be_rolled_back() {
    check(
        Case::new([search("nothing"), text("Done."), boxed("42")])
            .config(|config| config.tool_calls_per_turn = ToolCallsPerTurn::Parallel),
        "1 ask
         1 run web/google_search(q: nothing)
         rollback tool_error (1)
         1 ask
         ask for the answer
         pass 1: completed, turns 1, attempts 2, rollbacks 1
         answered: 42 (final_reply)",
    );
}

#[test]
fn failed_calls_are_counted() {
    let record = Case::new([three_calls(), text("Done."), boxed("42")]).run();
    let counts = &record.state.tool_calls;
    assert_eq!((counts.total, counts.failed), (3, 1));
    assert_eq!(counts.by_tool.get("google_search"), Some(&2));
}

#[test]
fn results_of_scraping_can_be_cut() {
    let page = "ä".repeat(30);
    let case = |tool: &str, limit| {
        let answer = page.clone();
        Case::new([call("web", tool, json!({ "url": "u" })), text("Done."), boxed("42")])
            .config(|config| config.scrape_result_limit = limit)
            .tool(move |_| success(answer.clone()))
    };
    for (tool, limit, whole) in [
        ("scrape_website", Some(10), false),
        ("scrape_website", Some(30), true),
        ("scrape_website", None, true),
        ("sogou_search", Some(10), true),
    ] {
        let record = case(tool, limit).run();
        let told = record.requests[1].last_text();
        assert_eq!(told.matches('ä').count(), if whole { 30 } else { 10 }, "{tool}, {limit:?}: {told}");
    }
}
