//! Repeated queries: what identifies one, what counts as made, and what happens to it.

use core_protocol::event::EventBody;
use serde_json::{Value, json};

use crate::harness::{Case, check};
use crate::script::{Call, boxed, broken, calls, failed, google, one, search, success, text};

/// Whether the second of two calls is held to repeat the first.
#[track_caller]
fn check_pair(configure: impl Fn(Case) -> Case, first: Call, second: Call, repeated: bool) {
    let shown = format!("{first:?} then {second:?}");
    let replies = [calls([first]), calls([second]), text("Done."), boxed("42")];
    let record = configure(Case::new(replies)).run();
    let rolled_back = record.decisions.iter().any(|line| line == "rollback duplicate_query (1)");
    assert_eq!(rolled_back, repeated, "{shown}\n{}", record.trace());
}

#[test]
fn the_identifying_arguments_of_each_tool() {
    let python =
        |code: &str| one("tool-python", "run_python_code", json!({ "code_block": code, "sandbox_id": "s" }));
    let extract = |url: &str, info: &str| {
        one("jina", "scrape_and_extract_info", json!({ "url": url, "info_to_extract": info }))
    };
    let web = |tool: &str, arguments: Value| one("web", tool, arguments);
    let browse = |subtask: &str| one("agent-browsing", "search_and_browse", json!({ "subtask": subtask }));
    let cases = [
        (google("a"), google("a"), true),
        (google("a"), google("b"), false),
        (google("a"), web("google_search", json!({ "q": "a", "num": 20, "page": 2 })), true),
        (web("sogou_search", json!({ "q": "a" })), web("sogou_search", json!({ "q": "a" })), true),
        (
            web("sogou_search", json!({ "Query": "a" })),
            web("sogou_search", json!({ "Query": "a", "Cnt": 3 })),
            true,
        ),
        (web("sogou_search", json!({ "Query": "a" })), web("sogou_search", json!({ "Query": "b" })), false),
        (google("a"), web("sogou_search", json!({ "q": "a" })), false),
        (web("scrape_website", json!({ "url": "u" })), web("scrape_website", json!({ "url": "u" })), true),
        (web("scrape_website", json!({ "url": "u" })), web("scrape_website", json!({ "url": "v" })), false),
        (extract("u", "price"), extract("u", "price"), true),
        (extract("u", "price"), extract("u", "date"), false),
        (extract("u", "price"), extract("v", "price"), false),
        (extract("a b", "c"), extract("a", "b c"), false),
        (browse("find it"), browse("find it"), true),
        (browse("find it"), browse("find more"), false),
        (python("1"), python("1"), false),
        (one("left", "lookup", json!({ "q": "a" })), one("left", "lookup", json!({ "q": "a" })), false),
        (web("google_search", json!({ "num": 3 })), web("google_search", json!({ "num": 3 })), false),
    ];
    for (first, second, repeated) in cases {
        check_pair(|case| case, first.clone(), second.clone(), repeated);
        check_pair(Case::native, first, second, repeated);
    }
}

#[test]
fn queries_are_counted_for_each_server() {
    let configured = |case: Case| {
        case.config(|config| {
            config.duplicate_keys.insert("lookup".into(), vec!["name".into(), "year".into()]);
        })
    };
    let lookup = |server: &str, arguments: Value| one(server, "lookup", arguments);
    let asked = json!({ "name": "x", "year": 1990 });
    for (server, arguments, repeated) in [
        ("left", json!({ "name": "x", "year": 1990, "format": "long" }), true),
        ("right", asked.clone(), false),
        ("left", json!({ "name": "x", "year": 1991 }), false),
    ] {
        check_pair(configured, lookup("left", asked.clone()), lookup(server, arguments), repeated);
    }
}

#[test]
fn calls_are_mended_before_they_are_compared() {
    let extract = |arguments: Value| one("jina", "scrape_and_extract_info", arguments);
    check_pair(
        |case| case,
        extract(json!({ "url": "u", "info_to_extract": "price" })),
        extract(json!({ "url": "u", "description": "price" })),
        true,
    );
    check_pair(|case| case, google("a"), one("wrong-server", "google_search", json!({ "q": "a" })), true);
}

#[test]
fn a_repetition_within_one_reply_runs_nothing() {
    check(
        Case::new([
            calls([google("a"), google("b"), google("a")]),
            calls([google("a"), google("b")]),
            text("Done."),
            boxed("42"),
        ]),
        "1 ask
         rollback duplicate_query (1)
         1 ask
         1 run web/google_search(q: a)
         1 run web/google_search(q: b)
         recovered after 1
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 3, rollbacks 1
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_repetition_behind_a_new_query_runs_neither() {
    check(
        Case::new([search("a"), calls([google("new"), google("a")]), text("Done."), boxed("42")]),
        "1 ask
         1 run web/google_search(q: a)
         2 ask
         rollback duplicate_query (1)
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 3, rollbacks 1
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_repeated_query_is_run_when_no_rollback_is_left() {
    let record = check(
        Case::new([
            search("a"),
            search("a"),
            search("a"),
            search("a"),
            search("a"),
            search("a"),
            search("a"),
            text("Done."),
            boxed("42"),
        ]),
        "1 ask
         1 run web/google_search(q: a)
         2 ask
         rollback duplicate_query (1)
         2 ask
         rollback duplicate_query (2)
         2 ask
         rollback duplicate_query (3)
         2 ask
         rollback duplicate_query (4)
         2 ask
         duplicate allowed
         2 run web/google_search(q: a)
         recovered after 4
         3 ask
         rollback duplicate_query (1)
         3 ask
         ask for the answer
         pass 1: completed, turns 3, attempts 8, rollbacks 5
         answered: 42 (final_reply)",
    );
    let started = record.events.iter().rev().find_map(|event| match &event.body {
        EventBody::ToolCallStarted { call_id, .. } => Some(call_id.as_str()),
        _ => None,
    });
    let allowed = record.events.iter().find_map(|event| match &event.body {
        EventBody::DuplicateAllowed { call_id, .. } => Some(call_id.as_str()),
        _ => None,
    });
    assert_eq!(started, allowed, "the event names the call that was run");
}

#[test]
fn a_repetition_within_one_reply_is_run_too_when_no_rollback_is_left() {
    check(
        Case::new([calls([google("a"), google("a")]), text("Done."), boxed("42")])
            .config(|config| config.max_consecutive_rollbacks = 1),
        "1 ask
         duplicate allowed
         1 run web/google_search(q: a)
         1 run web/google_search(q: a)
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 2, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_search_that_failed_was_not_made() {
    let mut tries = 0;
    check(
        Case::new([search("a"), search("a"), search("a"), text("Done."), boxed("42")]).tool(move |_| {
            tries += 1;
            if tries == 1 {
                failed("timeout", false, "no answer in 300 s")
            } else {
                success(r#"{"organic": [{}]}"#)
            }
        }),
        "1 ask
         1 run web/google_search(q: a)
         2 ask
         2 run web/google_search(q: a)
         3 ask
         rollback duplicate_query (1)
         3 ask
         ask for the answer
         pass 1: completed, turns 3, attempts 4, rollbacks 1
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_curable_failure_was_not_made() {
    let mut tries = 0;
    check(
        Case::new([search("a"), search("a"), text("Done."), boxed("42")]).tool(move |_| {
            tries += 1;
            if tries == 1 {
                failed("invalid_arguments", true, "bad")
            } else {
                success(r#"{"organic": [{}]}"#)
            }
        }),
        "1 ask
         1 run web/google_search(q: a)
         rollback tool_error (1)
         1 ask
         1 run web/google_search(q: a)
         recovered after 1
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 3, rollbacks 1
         answered: 42 (final_reply)",
    );
}

#[test]
fn an_empty_search_was_made_and_is_rolled_back() {
    check(
        Case::new([search("nothing"), search("nothing"), search("b"), text("Done."), boxed("42")]),
        "1 ask
         1 run web/google_search(q: nothing)
         rollback tool_error (1)
         1 ask
         rollback duplicate_query (2)
         1 ask
         1 run web/google_search(q: b)
         recovered after 2
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 4, rollbacks 2
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_query_of_a_call_that_was_never_run_was_not_made() {
    check(
        Case::new([
            calls([one("web", "scrape_website", json!({ "url": "wrong" })), google("a")]),
            broken(),
            search("a"),
            text("Done."),
            boxed("42"),
        ]),
        "1 ask
         1 run web/scrape_website(url: wrong)
         rollback tool_error (1)
         1 ask
         rollback format_error (2)
         1 ask
         1 run web/google_search(q: a)
         recovered after 2
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 4, rollbacks 2
         answered: 42 (final_reply)",
    );
}
