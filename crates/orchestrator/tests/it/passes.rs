//! Failed passes: how they are summed up, and what the next is told.

use std::sync::Arc;

use core_protocol::ToolDefinition;
use core_protocol::event::{EventBody, LlmPurpose, StopReason};
use llm_providers::ToolProtocol;
use serde_json::json;

use crate::harness::{Case, check};
use crate::script::{Reply, boxed, broken, calls, google, offered_tools, search, text, too_long, xml};

/// The summary that is read from a reply.
#[track_caller]
fn check_summary(configure: impl Fn(Case) -> Case, reply: &Reply, expected: &str) {
    for prefix in [true, false] {
        let record = configure(
            Case::new([search("a"), reply.clone(), text("Done."), boxed("42")])
                .with(|case| case.model.assistant_prefix = prefix),
        )
        .max_turns(1)
        .compress(1)
        .run();
        assert_eq!(record.state.failures, [expected], "for {reply:?}, prefix: {prefix}");
    }
}

#[test]
fn the_summary_is_what_follows_the_thinking_and_precedes_a_call() {
    let call = xml("web", "google_search", r#"{"q": "b"}"#);
    for (reply, expected) in [
        ("It went wrong.".to_owned(), "It went wrong."),
        ("<think>Let me see.</think>\n\nIt went wrong.\n".to_owned(), "It went wrong."),
        ("<think>\nLooking back.\n</think>\n\nIt went wrong.".to_owned(), "It went wrong."),
        (format!("It went wrong.\n{call}\nAnd more."), "It went wrong."),
        (format!("<think>Let me see.</think>It went wrong.{call}"), "It went wrong."),
        ("<think>Only a thought.</think>".to_owned(), "Only a thought."),
        (format!("<think>Only a thought.</think>\n{call}"), "Only a thought."),
    ] {
        check_summary(|case| case, &text(reply.clone()), expected);
        check_summary(Case::native, &text(reply), expected);
    }
    check_summary(|case| case, &text("Let me see.</think>It went wrong."), "It went wrong.");
    check_summary(|case| case, &text("It went wrong.").thinking("Let me see."), "It went wrong.");
    check_summary(Case::native, &text("").thinking("Only a thought."), "Only a thought.");
}

#[test]
fn a_prefix_closes_the_thinking_that_the_chat_template_opens() {
    let call = xml("web", "google_search", r#"{"q": "b"}"#);
    for (prefix, reply) in
        [(true, format!("It went wrong.{call}")), (false, format!("Let me see.</think>It went wrong.{call}"))]
    {
        let record = Case::new([search("a"), text(reply), text("Done."), boxed("42")])
            .with(|case| {
                case.protocol = ToolProtocol::Native;
                case.starts_in_thinking = true;
                case.model.assistant_prefix = prefix;
            })
            .max_turns(1)
            .compress(1)
            .run();
        assert_eq!(record.state.failures, ["It went wrong."], "prefix: {prefix}");
    }
}

#[test]
fn a_native_call_in_a_summary_is_not_run() {
    let reply = calls([google("b")]).saying("It went wrong.");
    let record =
        Case::new([search("a"), reply, text("Done."), boxed("42")]).native().max_turns(1).compress(1).run();
    assert_eq!(record.state.failures, ["It went wrong."]);
    assert_eq!(record.ran().len(), 1);
}

#[test]
fn the_summary_is_asked_for_with_the_beginning_of_its_reply() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        // Servers refuse a history with native calls in it and no tools.
        let keeps_its_tools = protocol == ToolProtocol::Native;
        let script = || [search("a"), text("It went wrong."), text("Done."), boxed("42")];
        let record = Case::new(script()).protocol(protocol).max_turns(1).compress(1).run();
        let asked = record.requests_for(LlmPurpose::FailureSummary)[0];
        assert_eq!(asked.tools > 0, keeps_its_tools);
        assert!(asked.continue_final_message);
        assert_eq!(asked.last_text().trim_end(), "<think>\nLooking back.\n</think>");
        let record = Case::new(script())
            .protocol(protocol)
            .with(|case| case.model.assistant_prefix = false)
            .max_turns(1)
            .compress(1)
            .run();
        let asked = record.requests_for(LlmPurpose::FailureSummary)[0];
        assert_eq!(asked.tools > 0, keeps_its_tools);
        assert!(!asked.continue_final_message);
        assert!(asked.last_text().starts_with("SUMMARY PROMPT"));
        assert!(asked.last_text().contains("<think>\nLooking back.\n</think>"), "the prefix is folded in");
    }
}

#[test]
fn the_prompt_of_a_summary_is_never_omitted() {
    for keep in [0, 1, 2] {
        let record =
            Case::new([search("a"), search("b"), text("It went wrong."), text("Done."), boxed("42")])
                .max_turns(2)
                .keep(keep)
                .compress(1)
                .run();
        assert!(record.requests_for(LlmPurpose::FailureSummary)[0].all_text().contains("SUMMARY PROMPT"));
    }
}

#[test]
fn a_summary_beyond_the_window_gets_smaller_three_times() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        let turns = || (0..6).map(|turn| search(&format!("query {turn}")));
        let replies = turns().chain([
            too_long(),
            too_long(),
            too_long(),
            text("It went wrong."),
            text("Done."),
            boxed("42"),
        ]);
        let record = Case::new(replies).protocol(protocol).max_turns(6).compress(1).run();
        let sizes: Vec<usize> = record
            .requests_for(LlmPurpose::FailureSummary)
            .iter()
            .map(|request| request.messages.len())
            .collect();
        assert_eq!(sizes.len(), 4);
        assert!(sizes.windows(2).all(|pair| pair[1] < pair[0]), "{sizes:?}");
        assert_eq!(record.state.failures, ["It went wrong."]);
        for request in record.requests_for(LlmPurpose::FailureSummary) {
            assert!(request.all_text().contains("SUMMARY PROMPT"));
            assert!(request.messages[0].joined_text().starts_with("QUESTION"));
        }
        let replies =
            turns().chain([too_long(), too_long(), too_long(), too_long(), text("Done."), boxed("42")]);
        let record = Case::new(replies).protocol(protocol).max_turns(6).compress(1).run();
        assert_eq!(record.requests_for(LlmPurpose::FailureSummary).len(), 4);
        assert_eq!(record.outcome().answer.as_deref(), Some("42"), "the next pass runs all the same");
    }
}

#[test]
fn each_pass_is_told_of_all_failures_before_it() {
    let record = check(
        Case::new([
            search("a"),
            text("First failure."),
            search("a"),
            text("Second failure."),
            search("a"),
            text("Third failure."),
            text("Done."),
            boxed("42"),
        ])
        .max_turns(1)
        .compress(3),
        "1 ask
         1 run web/google_search(q: a)
         ask what failed
         failure: First failure.
         p2 1 ask
         p2 1 run web/google_search(q: a)
         p2 ask what failed
         failure: Second failure.
         p3 1 ask
         p3 1 run web/google_search(q: a)
         p3 ask what failed
         failure: Third failure.
         p4 1 ask
         p4 ask for the answer
         pass 1: max_turns, turns 1, attempts 1, rollbacks 0
         pass 2: max_turns, turns 1, attempts 1, rollbacks 0
         pass 3: max_turns, turns 1, attempts 1, rollbacks 0
         pass 4: completed, turns 1, attempts 1, rollbacks 0
         answered: 42 (final_reply)",
    );
    let tasks: Vec<String> = record
        .requests_for(LlmPurpose::Turn)
        .iter()
        .map(|request| request.messages[0].joined_text())
        .collect();
    assert_eq!(
        tasks,
        [
            "QUESTION",
            "QUESTION BEFORE: [1: First failure.]",
            "QUESTION BEFORE: [1: First failure.] [2: Second failure.]",
            "QUESTION BEFORE: [1: First failure.] [2: Second failure.] [3: Third failure.]",
        ]
    );
    let last = record.requests_for(LlmPurpose::FinalAnswer)[0];
    assert_eq!(last.last_text(), "FINAL PROMPT: QUESTION", "the question is repeated as it was asked");
}

#[test]
fn there_is_one_pass_more_than_configured_failures() {
    for limit in [0, 1, 2, 4] {
        let mut replies = Vec::new();
        for _ in 0..limit {
            replies.extend([search("a"), text("It went wrong.")]);
        }
        replies.extend([search("a"), text("No box.")]);
        let record = Case::new(replies).max_turns(1).keep(0).compress(limit).run();
        assert_eq!(record.state.passes.len(), limit as usize + 1);
        assert_eq!(record.state.failures.len(), limit as usize);
        assert_eq!(record.requests_for(LlmPurpose::FinalAnswer).len(), 1);
    }
}

#[test]
fn without_summaries_the_next_pass_is_told_nothing() {
    let record = check(
        Case::new([search("a"), text("Done."), boxed("42")])
            .max_turns(1)
            .compress(1)
            .config(|config| config.retry_with_summary = false),
        "1 ask
         1 run web/google_search(q: a)
         p2 1 ask
         p2 ask for the answer
         pass 1: max_turns, turns 1, attempts 1, rollbacks 0
         pass 2: completed, turns 1, attempts 1, rollbacks 0
         answered: 42 (final_reply)",
    );
    insta::assert_snapshot!(record.requests[1].layout(), @"user: QUESTION");
    assert!(record.state.failures.is_empty());
}

#[test]
fn counters_queries_and_boxes_start_afresh() {
    let four = || (0..4).map(|_| broken());
    let replies = four()
        .chain([search("a").saying("Maybe \\boxed{41}."), text("It went wrong.")])
        .chain(four())
        .chain([search("a"), text("No box.")]);
    let record = Case::new(replies).max_turns(1).keep(0).compress(1).run();
    assert_eq!(record.state.rollbacks.total, 8);
    assert!(!record.trace().contains("duplicate"), "{}", record.trace());
    assert_eq!(record.outcome().answer, None);
    let turns: Vec<(u32, u32)> =
        record.requests_for(LlmPurpose::Turn).iter().map(|request| (request.pass, request.turn)).collect();
    assert_eq!(turns, [vec![(1, 1); 5], vec![(2, 1); 5]].concat());
    for pass in &record.state.passes {
        assert_eq!(
            (pass.stop_reason, pass.turns, pass.call_attempts, pass.rollbacks),
            (StopReason::MaxTurns, 1, 5, 4)
        );
    }
}

#[test]
fn tools_that_changed_are_offered_from_the_next_pass_on() {
    let grown = ToolDefinition {
        server: "web".into(),
        name: "grown".into(),
        description: "New.".into(),
        input_schema: json!({}),
    };
    let now: Arc<[ToolDefinition]> = offered_tools().into_iter().chain([grown]).collect();
    let replies = [search("a"), text("It went wrong."), search("b"), boxed("42"), boxed("42")];
    let mut runner = Case::new(replies).max_turns(1).compress(1).start();
    loop {
        // At any time: within a pass it must not show.
        runner.machine.offer_next(&now);
        if !runner.step() {
            break;
        }
    }
    let record = runner.into_record();
    let prompts: Vec<(u32, bool)> = record
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::SystemPrompt { text } => Some((event.pass, text.contains("grown"))),
            _ => None,
        })
        .collect();
    assert_eq!(prompts, [(1, false), (2, true)]);
}
