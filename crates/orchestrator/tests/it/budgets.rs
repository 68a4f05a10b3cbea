//! The counters of a pass: turns, call attempts, rollbacks in a row; and what a retry is told.

use core_protocol::event::{LlmPurpose, RollbackReason, StopReason};
use llm_providers::ToolProtocol;
use serde_json::json;

use crate::harness::{Case, check};
use crate::script::{Reply, boxed, broken, call, calls, google, search, text};

#[test]
fn call_attempts_are_bounded_beside_turns() {
    let record = check(
        Case::new([search("a"), broken(), search("b"), broken(), broken(), boxed("42")])
            .max_turns(3)
            .config(|config| config.extra_call_attempts = 2),
        "1 ask
         1 run web/google_search(q: a)
         2 ask
         rollback format_error (1)
         2 ask
         2 run web/google_search(q: b)
         recovered after 1
         3 ask
         rollback format_error (1)
         3 ask
         rollback format_error (2)
         ask for the answer
         pass 1: max_call_attempts, turns 2, attempts 5, rollbacks 3
         answered: 42 (final_reply)",
    );
    assert!(record.outcome().stop_reason.is_some_and(StopReason::is_capped));
}

#[test]
fn the_last_turn_is_no_matter_of_call_attempts() {
    check(
        Case::new([search("a"), boxed("42")]).max_turns(1).config(|config| config.extra_call_attempts = 0),
        "1 ask
         1 run web/google_search(q: a)
         ask for the answer
         pass 1: max_turns, turns 1, attempts 1, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_recovery_gives_all_rollbacks_back() {
    let four = || (0..4).map(|_| broken());
    let replies = four().chain([search("a")]).chain(four()).chain([search("b"), text("Done."), boxed("42")]);
    let record = Case::new(replies).run();
    let kept: Vec<&str> =
        record.decisions.iter().map(String::as_str).filter(|line| !line.ends_with("ask")).collect();
    assert_eq!(
        kept,
        [
            "rollback format_error (1)",
            "rollback format_error (2)",
            "rollback format_error (3)",
            "rollback format_error (4)",
            "1 run web/google_search(q: a)",
            "recovered after 4",
            "rollback format_error (1)",
            "rollback format_error (2)",
            "rollback format_error (3)",
            "rollback format_error (4)",
            "2 run web/google_search(q: b)",
            "recovered after 4",
            "ask for the answer",
            "pass 1: completed, turns 3, attempts 11, rollbacks 8",
            "answered: 42 (final_reply)",
        ]
    );
}

#[test]
fn rollbacks_in_a_row_stay_below_the_setting_less_one() {
    for (setting, allowed) in [(0, 0), (1, 0), (2, 1), (3, 2), (5, 4), (8, 7)] {
        let replies = (0..=allowed).map(|_| broken()).chain([boxed("42")]);
        let record = Case::new(replies).config(|config| config.max_consecutive_rollbacks = setting).run();
        assert_eq!(record.state.rollbacks.total, allowed, "with {setting}");
        assert_eq!(record.outcome().stop_reason, Some(StopReason::FormatError), "with {setting}");
    }
}

#[test]
fn a_reply_that_ends_the_run_after_rollbacks_is_a_turn() {
    check(
        Case::new([broken(), text("I'm sorry, I cannot solve this."), text("Done."), boxed("42")]),
        "1 ask
         rollback format_error (1)
         1 ask
         rollback refusal (2)
         1 ask
         ask for the answer
         pass 1: completed, turns 1, attempts 3, rollbacks 2
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_rollback_leaves_the_history_as_it_was() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        for dropped in [
            broken(),
            text("There is a time constraint."),
            calls([google("a")]),
            call("web", "scrape_website", json!({ "url": "wrong" })),
            calls([google("nothing"), google("c")]),
        ] {
            let record = Case::new([search("a"), dropped.clone(), search("b"), text("Done."), boxed("42")])
                .protocol(protocol)
                .run();
            let asked = record.requests_for(LlmPurpose::Turn);
            assert_eq!(record.state.rollbacks.total, 1, "{}", record.trace());
            assert_eq!(asked[1].messages, asked[2].messages, "after {dropped:?}");
            assert_eq!((asked[1].turn, asked[2].turn, asked[3].turn), (2, 2, 3));
        }
    }
}

#[test]
fn a_hint_is_given_once_and_not_kept() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        for keep in [-1, 0, 1] {
            let bad: [(Reply, RollbackReason); 4] = [
                (broken(), RollbackReason::FormatError),
                (text("There is a time constraint."), RollbackReason::Refusal),
                (search("a"), RollbackReason::DuplicateQuery),
                (search("nothing"), RollbackReason::ToolError),
            ];
            for (reply, reason) in bad {
                let hint = format!("HINT {}", reason.as_str());
                let record = Case::new([search("a"), reply, search("b"), text("Done."), boxed("42")])
                    .protocol(protocol)
                    .keep(keep)
                    .config(|config| config.rollback_hint = true)
                    .run();
                let hinted: Vec<bool> =
                    record.requests.iter().map(|request| request.all_text().contains("HINT")).collect();
                assert_eq!(
                    hinted,
                    [false, false, true, false, false],
                    "{protocol:?}, keep {keep}, {reason:?}"
                );
                let retry = &record.requests[2];
                assert!(retry.last_text().ends_with(&hint), "the hint is said last:\n{}", retry.layout());
                assert_eq!(retry.transient.as_deref(), Some(hint.as_str()));
                assert!(
                    record
                        .state
                        .pass
                        .history
                        .iter()
                        .all(|entry| !entry.message.joined_text().contains("HINT"))
                );
            }
        }
    }
}

#[test]
fn each_rollback_in_a_row_has_its_own_hint() {
    let record = Case::new([broken(), text("There is a time constraint."), text("Done."), boxed("42")])
        .config(|config| config.rollback_hint = true)
        .run();
    insta::assert_snapshot!(record.requests[1].layout(), @"user: QUESTION HINT format_error");
    insta::assert_snapshot!(record.requests[2].layout(), @"user: QUESTION HINT refusal");
}

#[test]
fn no_hint_is_given_unless_it_is_asked_for() {
    let record = Case::new([broken(), text("Done."), boxed("42")]).run();
    assert_eq!(record.requests[1].messages, record.requests[0].messages);
    assert_eq!(record.requests[1].transient, None);
}

#[test]
fn a_reply_in_the_history_is_what_the_model_wrote() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        let record = Case::new([
            search("a").saying("<think>why not</think>I search.").thinking("a signed thought"),
            text("Done."),
            boxed("42"),
        ])
        .protocol(protocol)
        .run();
        let reply = &record.requests[1].messages[1];
        assert!(reply.joined_text().starts_with("<think>why not</think>I search."));
        assert_eq!(reply.joined_thinking(), "a signed thought", "thinking can be sent back");
    }
}
