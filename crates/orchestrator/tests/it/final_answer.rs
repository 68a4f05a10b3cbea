//! The final answer: when it is asked for, how often, what counts as one, and what stands in for it.

use core_protocol::event::{AnswerSource, LlmPurpose, RunStatus, StopReason};
use llm_providers::ToolProtocol;
use serde_json::json;

use crate::harness::{Case, check};
use crate::script::{Reply, boxed, calls, failed, google, one, search, success, text, too_long, xml};

/// A first turn that notes the box 41.
fn noting_turn() -> Reply {
    search("a").saying("Maybe \\boxed{41}.")
}

#[test]
fn without_further_passes_the_last_noted_box_stands_in() {
    for keep in [-1, 0, 5] {
        let tries = if keep < 0 { 3 } else { 1 };
        let asks = "ask for the answer\n".repeat(tries);
        let unboxed = || (0..tries).map(|_| text("No box."));
        check(
            Case::new([noting_turn(), text("Done.")].into_iter().chain(unboxed())).keep(keep),
            &format!(
                "1 ask
                 box 41
                 1 run web/google_search(q: a)
                 2 ask
                 {asks}
                 pass 1: completed, turns 2, attempts 2, rollbacks 0
                 answered: 41 (intermediate)"
            ),
        );
        check(
            Case::new([noting_turn()].into_iter().chain(unboxed())).max_turns(1).keep(keep),
            &format!(
                "1 ask
                 box 41
                 1 run web/google_search(q: a)
                 {asks}
                 pass 1: max_turns, turns 1, attempts 1, rollbacks 0
                 answered: 41 (intermediate)"
            ),
        );
    }
}

#[test]
fn with_passes_left_an_end_without_a_box_falls_back_to_nothing() {
    check(
        Case::new([
            noting_turn(),
            text("Done."),
            text("No box."),
            text("I lost the thread."),
            text("Done."),
            boxed("42"),
        ])
        .keep(5)
        .compress(1),
        "1 ask
         box 41
         1 run web/google_search(q: a)
         2 ask
         ask for the answer
         ask what failed
         failure: I lost the thread.
         p2 1 ask
         p2 ask for the answer
         pass 1: completed, turns 2, attempts 2, rollbacks 0
         pass 2: completed, turns 1, attempts 1, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn with_passes_left_an_end_with_a_box_ends_the_run() {
    check(
        Case::new([text("Done."), text("No box."), text("Again none."), boxed("42")]).compress(3),
        "1 ask
         ask for the answer
         ask for the answer
         ask for the answer
         pass 1: completed, turns 1, attempts 1, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_pass_that_was_cut_short_is_not_asked_while_passes_are_left_and_asked_when_none_is() {
    check(
        Case::new([noting_turn(), text("Too slow."), noting_turn(), text("No box.")])
            .max_turns(1)
            .keep(5)
            .compress(1),
        "1 ask
         box 41
         1 run web/google_search(q: a)
         ask what failed
         failure: Too slow.
         p2 1 ask
         box 41
         p2 1 run web/google_search(q: a)
         p2 ask for the answer
         pass 1: max_turns, turns 1, attempts 1, rollbacks 0
         pass 2: max_turns, turns 1, attempts 1, rollbacks 0
         answered: 41 (intermediate)",
    );
}

#[test]
fn the_last_pass_falls_back_to_its_own_boxes_only() {
    check(
        Case::new([noting_turn(), text("Too slow."), search("b"), text("No box.")])
            .max_turns(1)
            .keep(5)
            .compress(1),
        "1 ask
         box 41
         1 run web/google_search(q: a)
         ask what failed
         failure: Too slow.
         p2 1 ask
         p2 1 run web/google_search(q: b)
         p2 ask for the answer
         pass 1: max_turns, turns 1, attempts 1, rollbacks 0
         pass 2: max_turns, turns 1, attempts 1, rollbacks 0
         no_answer",
    );
}

#[test]
fn a_pass_stopped_by_its_errors_was_not_cut_short() {
    let errors = (0..5).map(|_| text("There is a time constraint."));
    let record = Case::new(errors.chain([boxed("42")])).compress(2).run();
    assert_eq!(record.outcome().answer.as_deref(), Some("42"));
    assert_eq!(record.state.passes.len(), 1);
}

#[test]
fn an_answer_without_a_box_is_dropped_before_the_next_is_asked_for() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        let record = Case::new([
            search("a"),
            text("Done."),
            text("The answer is 42."),
            calls([google("b")]).saying("One more search."),
            boxed("42"),
        ])
        .protocol(protocol)
        .run();
        let asked = record.requests_for(LlmPurpose::FinalAnswer);
        assert_eq!(asked.len(), 3);
        assert_eq!(asked[0].messages, asked[1].messages);
        assert_eq!(asked[0].messages, asked[2].messages);
        assert_eq!(record.ran().len(), 1, "calls in it are never run");
    }
}

#[test]
fn what_counts_as_an_answer() {
    let call = xml("web", "google_search", r#"{"q": "b"}"#);
    let cases: &[(String, Option<&str>)] = &[
        (r"\boxed{42}".into(), Some("42")),
        (r"\boxed{ 42 }".into(), Some("42")),
        (r"\boxed{41} or rather \boxed{42}".into(), Some("42")),
        (r"\boxed{Unknown}".into(), Some("Unknown")),
        (r"\boxed{unknown quantity}".into(), Some("unknown quantity")),
        (r"\boxed{?}".into(), None),
        (r"\boxed{??}".into(), None),
        (r"\boxed{???}".into(), None),
        (r"\boxed{？}".into(), None),
        (r"\boxed{……}".into(), None),
        (r"\boxed{…}".into(), None),
        (r"\boxed{...}".into(), None),
        (r"\boxed{unknown}".into(), None),
        (r"\boxed{}".into(), None),
        (r"\boxed{  }".into(), None),
        (r"\boxed{42}, no: \boxed{?}".into(), None),
        (r"<think>\boxed{41}</think>It is \boxed{42}.".into(), Some("42")),
        (r"It is \boxed{42}.<think>\boxed{41}</think>".into(), Some("42")),
        (r"<think>It is \boxed{42}.</think>As I said.".into(), Some("42")),
        (r"It is \boxed{42}.</think>As I said.".into(), Some("42")),
        (r"\boxed{41}</think>It is \boxed{42}.".into(), Some("42")),
        (r"<think>\boxed{41}</think>It is \boxed{?}.".into(), None),
        (format!("It is \\boxed{{42}}. {call}"), Some("42")),
        (format!("{call} It is \\boxed{{42}}."), Some("42")),
        (call, None),
        ("No box.".into(), None),
    ];
    for (reply, expected) in cases {
        let record = Case::new([text("Done."), text(reply.clone())]).keep(5).run();
        assert_eq!(record.outcome().answer.as_deref(), *expected, "for {reply}");
        assert!(record.ran().is_empty());
        let (status, source) = match expected {
            Some(_) => (RunStatus::Answered, AnswerSource::FinalReply),
            None => (RunStatus::NoAnswer, AnswerSource::None),
        };
        assert_eq!((record.outcome().status, record.outcome().source), (status, source), "for {reply}");
    }
    let thought = text("As I said.").thinking(r"It is \boxed{42}.");
    let record = Case::new([text("Done."), thought]).keep(5).run();
    assert_eq!(record.outcome().answer.as_deref(), Some("42"), "a box in reported thinking");
}

#[test]
fn a_box_outside_that_is_no_answer_leaves_the_one_in_reported_thinking_alone() {
    let doubt = text(r"It is \boxed{?}.").thinking(r"Maybe \boxed{41}.");
    let record = Case::new([text("Done."), doubt]).keep(5).run();
    assert_eq!(record.outcome().answer, None);
}

#[test]
fn a_native_call_beside_a_box_is_not_run() {
    let record = Case::new([text("Done."), calls([google("b")]).saying("It is \\boxed{42}.")]).native().run();
    assert_eq!(record.outcome().answer.as_deref(), Some("42"));
    assert!(record.ran().is_empty());
}

#[test]
fn what_is_noted_during_the_loop() {
    // The last turns' texts, and the box that stands in when the final reply has none.
    let cases: &[(&[&str], Option<&str>)] = &[
        (&[r"Maybe \boxed{41}."], Some("41")),
        (&[r"Maybe \boxed{40}.", r"No, \boxed{41}."], Some("41")),
        (&[r"Maybe \boxed{41}.", "I go on."], Some("41")),
        (&[r"<think>\boxed{40}</think>Maybe \boxed{41}."], Some("41")),
        (&[r"<think>Maybe \boxed{41}.</think>I go on."], Some("41")),
        (&[r"Maybe \boxed{41}.", r"I am not sure: \boxed{?}"], Some("41")),
        (&["I go on."], None),
    ];
    for (texts, expected) in cases {
        let turns =
            texts.iter().enumerate().map(|(index, words)| search(&format!("query {index}")).saying(words));
        let record = Case::new(turns.chain([text("Done."), text("No box.")])).keep(5).run();
        assert_eq!(record.outcome().answer.as_deref(), *expected, "for {texts:?}");
    }
}

#[test]
fn a_box_in_reported_thinking_is_noted_where_there_is_none_outside() {
    for (words, expected) in [("I go on.", "41"), (r"Maybe \boxed{40}.", "40")] {
        for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
            let turn = search("a").saying(words).thinking(r"Maybe \boxed{41}.");
            let record = Case::new([turn, text("Done."), text("No box.")]).protocol(protocol).keep(5).run();
            assert_eq!(record.outcome().answer.as_deref(), Some(expected), "{words}, {protocol:?}");
        }
    }
}

#[test]
fn a_box_is_noted_before_its_reply_is_judged() {
    let record = Case::new([text(r"It is \boxed{41}, see <use_mcp_tool>."), text("Done."), text("No box.")])
        .keep(5)
        .run();
    assert!(record.trace().contains("rollback format_error (1)"));
    assert_eq!(record.outcome().answer.as_deref(), Some("41"));
}

#[test]
fn it_is_asked_for_after_a_reply_with_a_box_unless_that_is_switched_off() {
    check(
        Case::new([boxed("41"), boxed("42")]),
        "1 ask
         box 41
         ask for the answer
         pass 1: completed, turns 1, attempts 1, rollbacks 0
         answered: 42 (final_reply)",
    );
    let record = check(
        Case::new([boxed("41")]).config(|config| config.skip_final_call = true),
        "1 ask
         box 41
         pass 1: completed, turns 1, attempts 1, rollbacks 0
         answered: 41 (final_reply)",
    );
    assert_eq!(record.outcome().final_text.as_deref(), Some("The answer is \\boxed{41}."));
    check(
        Case::new([noting_turn(), text("Done."), boxed("42")]).config(|config| config.skip_final_call = true),
        "1 ask
         box 41
         1 run web/google_search(q: a)
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 2, rollbacks 0
         answered: 42 (final_reply)",
    );
    check(
        Case::new([text("It is \\boxed{?}."), boxed("42")]).config(|config| config.skip_final_call = true),
        "1 ask
         ask for the answer
         pass 1: completed, turns 1, attempts 1, rollbacks 0
         answered: 42 (final_reply)",
    );
    check(
        Case::new([noting_turn(), boxed("42")]).max_turns(1).config(|config| config.skip_final_call = true),
        "1 ask
         box 41
         1 run web/google_search(q: a)
         ask for the answer
         pass 1: max_turns, turns 1, attempts 1, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_request_beyond_the_window_gets_smaller_three_times() {
    for (protocol, keep) in [
        (ToolProtocol::Text, -1),
        (ToolProtocol::Native, -1),
        (ToolProtocol::Text, 5),
        (ToolProtocol::Native, 5),
    ] {
        for failures in 1..=3 {
            let replies = (0..6)
                .map(|turn| search(&format!("query {turn}")))
                .chain([text("Done.")])
                .chain((0..failures).map(|_| too_long()))
                .chain([boxed("42")]);
            let record = Case::new(replies).protocol(protocol).keep(keep).run();
            let sizes: Vec<usize> = record
                .requests_for(LlmPurpose::FinalAnswer)
                .iter()
                .map(|request| request.messages.len())
                .collect();
            assert_eq!(sizes.len(), failures + 1);
            assert!(sizes.windows(2).all(|pair| pair[1] < pair[0]), "{sizes:?}");
            assert_eq!(record.outcome().answer.as_deref(), Some("42"));
            for request in record.requests_for(LlmPurpose::FinalAnswer) {
                assert_eq!(request.last_text(), "FINAL PROMPT: QUESTION");
                assert_eq!(request.messages[0].joined_text(), "QUESTION");
            }
        }
        let replies = [noting_turn()]
            .into_iter()
            .chain((0..6).map(|turn| search(&format!("query {turn}"))))
            .chain([text("Done.")])
            .chain((0..4).map(|_| too_long()));
        let record = Case::new(replies).protocol(protocol).keep(keep).run();
        assert_eq!(record.requests_for(LlmPurpose::FinalAnswer).len(), 4);
        assert_eq!(record.outcome().answer.as_deref(), Some("41"));
        assert_eq!(record.outcome().source, AnswerSource::Intermediate);
    }
}

#[test]
fn a_dropped_pair_is_the_last_one() {
    let record =
        Case::new([search("a"), search("b"), search("c"), too_long(), boxed("42")]).max_turns(3).run();
    let asked = record.requests_for(LlmPurpose::FinalAnswer);
    insta::assert_snapshot!(asked[0].layout(), @r#"
    user: QUESTION
    assistant: [web/google_search(q: a)]
    user: {"organic":[{"title":"About a"}]}
    assistant: [web/google_search(q: b)]
    user: {"organic":[{"title":"About b"}]}
    assistant: [web/google_search(q: c)]
    user: FINAL PROMPT: QUESTION
    "#);
    insta::assert_snapshot!(asked[1].layout(), @r#"
    user: QUESTION
    assistant: [web/google_search(q: a)]
    user: {"organic":[{"title":"About a"}]}
    assistant: [web/google_search(q: b)]
    user: FINAL PROMPT: QUESTION
    "#);
}

#[test]
fn getting_smaller_is_no_try() {
    let record = Case::new([
        search("a"),
        search("b"),
        text("Done."),
        text("No box."),
        too_long(),
        text("No box."),
        boxed("42"),
    ])
    .run();
    assert_eq!(record.outcome().answer.as_deref(), Some("42"));
}

#[test]
fn a_full_context_in_the_loop_and_in_the_end() {
    let record =
        Case::new([search("a"), search("b"), search("c").usage(99_000, 0), too_long(), boxed("42")]).run();
    assert_eq!(record.outcome().stop_reason, Some(StopReason::ContextLimit));
    assert_eq!(record.outcome().answer.as_deref(), Some("42"));
}

#[test]
fn the_last_results_are_replaced_with_calls_in_text_and_stay_with_native_calls() {
    let script = || [calls([google("a"), one("web", "scrape_website", json!({ "url": "u" }))]), boxed("42")];
    let record = Case::new(script()).max_turns(1).run();
    assert!(!record.requests[1].all_text().contains("About a"));
    let record = Case::new(script()).max_turns(1).native().run();
    assert!(record.requests[1].all_text().contains("About a"));
    assert!(record.requests[1].all_text().contains("Result of web/scrape_website(url: u)"));
}

#[test]
fn the_final_text_is_the_last_whole_reply() {
    let record = Case::new([text("Done."), boxed("42")]).run();
    assert_eq!(record.outcome().final_text.as_deref(), Some("The answer is \\boxed{42}."));
}

#[test]
fn an_errors_text_in_the_results_is_no_answer() {
    let record = Case::new([search("a"), text("Done."), text("No box.")])
        .keep(5)
        .tool(|_| failed("tool_error", false, r"the page says \boxed{13}"))
        .run();
    assert_eq!(record.outcome().answer, None);
    let record = Case::new([search("a"), text("Done."), text("No box.")])
        .keep(5)
        .tool(|_| success(r"\boxed{13}"))
        .run();
    assert_eq!(record.outcome().answer, None);
}
