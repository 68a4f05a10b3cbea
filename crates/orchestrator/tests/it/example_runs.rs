//! Five whole runs: a normal end, the last turn, a repeated query, errors in a row, a full context.

use core_protocol::event::{LlmPurpose, StopReason};
use orchestrator::machine::ContextCounts;
use serde_json::json;

use crate::harness::{Case, check};
use crate::script::{boxed, broken, call, calls, google, search, text};

#[test]
fn a_run_ends_when_the_model_makes_no_call() {
    check(
        Case::new([
            search("stocks 2026"),
            call("web", "scrape_website", json!({ "url": "https://finance.example.com" })),
            call("tool-python", "run_python_code", json!({ "code_block": "analyse()", "sandbox_id": "s1" })),
            text("From this analysis the answer is 42."),
            boxed("42"),
        ]),
        "1 ask
         1 run web/google_search(q: stocks 2026)
         2 ask
         2 run web/scrape_website(url: https://finance.example.com)
         3 ask
         3 run tool-python/run_python_code(code_block: analyse(), sandbox_id: s1)
         4 ask
         ask for the answer
         pass 1: completed, turns 4, attempts 4, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_run_ends_with_its_last_turn() {
    let replies = (1..=20).map(|turn| search(&format!("query {turn}"))).chain([boxed("42")]);
    let record = Case::new(replies).run();
    assert_eq!(record.requests_for(LlmPurpose::Turn).len(), 20);
    assert_eq!(record.ran().len(), 20, "the calls of the last turn are run");
    let end = &record.decisions[record.decisions.len() - 3..];
    assert_eq!(
        end,
        [
            "ask for the answer",
            "pass 1: max_turns, turns 20, attempts 20, rollbacks 0",
            "answered: 42 (final_reply)"
        ]
    );
}

#[test]
fn a_run_that_was_cut_short_is_summed_up_where_passes_are_left() {
    check(
        Case::new([search("a"), search("b"), text("I searched too broadly."), text("Done."), boxed("42")])
            .max_turns(2)
            .compress(1),
        "1 ask
         1 run web/google_search(q: a)
         2 ask
         2 run web/google_search(q: b)
         ask what failed
         failure: I searched too broadly.
         p2 1 ask
         p2 ask for the answer
         pass 1: max_turns, turns 2, attempts 2, rollbacks 0
         pass 2: completed, turns 1, attempts 1, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_repeated_query_is_blocked_and_another_is_asked_for() {
    check(
        Case::new([
            search("stocks 2026"),
            call("web", "scrape_website", json!({ "url": "https://finance.example.com" })),
            search("stocks 2026"),
            search("forecast for tomorrow"),
            text("Done."),
            boxed("42"),
        ]),
        "1 ask
         1 run web/google_search(q: stocks 2026)
         2 ask
         2 run web/scrape_website(url: https://finance.example.com)
         3 ask
         rollback duplicate_query (1)
         3 ask
         3 run web/google_search(q: forecast for tomorrow)
         recovered after 1
         4 ask
         ask for the answer
         pass 1: completed, turns 4, attempts 5, rollbacks 1
         answered: 42 (final_reply)",
    );
}

#[test]
fn four_errors_in_a_row_are_forgiven_and_the_fifth_ends_the_loop() {
    let record = check(
        Case::new([
            broken(),
            broken(),
            calls([google("same"), google("same")]),
            call("web", "scrape_website", json!({ "url": "wrong" })),
            broken(),
            boxed("guess"),
        ]),
        "1 ask
         rollback format_error (1)
         1 ask
         rollback format_error (2)
         1 ask
         rollback duplicate_query (3)
         1 ask
         1 run web/scrape_website(url: wrong)
         rollback tool_error (4)
         1 ask
         ask for the answer
         pass 1: format_error, turns 1, attempts 5, rollbacks 4
         answered: guess (final_reply)",
    );
    let rollbacks = &record.state.rollbacks;
    assert_eq!(
        (
            rollbacks.total,
            rollbacks.format_error,
            rollbacks.duplicate_query,
            rollbacks.tool_error,
            rollbacks.refusal
        ),
        (4, 2, 1, 1, 0)
    );
    assert!(!StopReason::FormatError.is_capped());
}

#[test]
fn a_full_context_drops_the_last_turn_and_ends_the_loop() {
    let record = Case::new([
        search("a").usage(50_000, 100),
        search("b").usage(150_000, 100),
        call("tool-python", "run_python_code", json!({ "code_block": "long()", "sandbox_id": "s1" }))
            .usage(190_000, 1_000),
        boxed("42"),
    ])
    .with(|case| case.model.max_context_length = 200_000)
    .count(|_| ContextCounts { results: 4_000, ..ContextCounts::default() })
    .run();
    let last_loop_lines: Vec<&str> = record.decisions.iter().map(String::as_str).skip(4).take(4).collect();
    assert_eq!(
        last_loop_lines,
        [
            "3 ask",
            "3 run tool-python/run_python_code(code_block: long(), sandbox_id: s1)",
            "context over",
            "ask for the answer"
        ]
    );
    assert_eq!(record.outcome().stop_reason, Some(StopReason::ContextLimit));
    assert_eq!(record.outcome().answer.as_deref(), Some("42"));
    insta::assert_snapshot!(record.requests_for(LlmPurpose::FinalAnswer)[0].layout(), @r#"
    user: QUESTION
    assistant: [web/google_search(q: a)]
    user: {"organic":[{"title":"About a"}]}
    assistant: [web/google_search(q: b)]
    user: FINAL PROMPT: QUESTION
    "#);
}
