//! Summaries in the place of the older history.

use core_protocol::event::{EventBody, LlmPurpose};
use llm_providers::ToolProtocol;

use crate::harness::{Case, Record, check};
use crate::script::{Reply, boxed, call, permanent, search, text, too_long, transient};

fn summing_up(every: u32, replies: impl IntoIterator<Item = Reply>) -> Case {
    Case::new(replies).config(|config| config.summarize_every = every).sizes(|_| (5_000, 100))
}

fn layouts(record: &Record, purpose: LlmPurpose) -> Vec<String> {
    record.requests_for(purpose).iter().map(|request| request.layout()).collect()
}

#[test]
fn every_so_many_turns() {
    let replies = || {
        [
            search("a"),
            search("b"),
            text("<think>Hm.</think>Tried a."),
            search("c"),
            search("d"),
            text("Tried a, b, c."),
            text("Done."),
            boxed("42"),
        ]
    };
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        let record = check(
            summing_up(2, replies()).protocol(protocol),
            "1 ask
             1 run web/google_search(q: a)
             2 ask
             2 run web/google_search(q: b)
             ask for a summary
             summary of 2: used
             3 ask
             3 run web/google_search(q: c)
             4 ask
             4 run web/google_search(q: d)
             ask for a summary
             summary of 6: used
             5 ask
             ask for the answer
             pass 1: completed, turns 5, attempts 5, rollbacks 0
             answered: 42 (final_reply)",
        );
        // What was said first is all there; the view is made of other messages.
        assert_eq!(record.state.pass.history.len(), 11);
        // A summary is no turn, and its tokens are not the loop's.
        assert_eq!(record.state.passes[0].call_attempts, 5);
    }
    let record = summing_up(2, replies()).run();
    let asked = layouts(&record, LlmPurpose::Compression);
    insta::assert_snapshot!(asked[0], @r#"
    user: QUESTION
    assistant: [web/google_search(q: a)]
    user: {"organic":[{"title":"About a"}]} COMPRESS TO 1500
    "#);
    insta::assert_snapshot!(asked[1], @r#"
    user: QUESTION
    assistant: [Summary] Tried a.
    user: GO ON
    assistant: [web/google_search(q: b)]
    user: {"organic":[{"title":"About b"}]}
    assistant: [web/google_search(q: c)]
    user: {"organic":[{"title":"About c"}]} COMPRESS TO 1500
    "#);
    let turns = layouts(&record, LlmPurpose::Turn);
    insta::assert_snapshot!(turns[2], @r#"
    user: QUESTION
    assistant: [Summary] Tried a.
    user: GO ON
    assistant: [web/google_search(q: b)]
    user: {"organic":[{"title":"About b"}]}
    "#);
    insta::assert_snapshot!(turns[4], @r#"
    user: QUESTION
    assistant: [Summary] Tried a, b, c.
    user: GO ON
    assistant: [web/google_search(q: d)]
    user: {"organic":[{"title":"About d"}]}
    "#);
    insta::assert_snapshot!(layouts(&record, LlmPurpose::FinalAnswer)[0], @r#"
    user: QUESTION
    assistant: [Summary] Tried a, b, c.
    user: GO ON
    assistant: [web/google_search(q: d)]
    user: {"organic":[{"title":"About d"}]}
    assistant: Done.
    user: FINAL PROMPT: QUESTION
    "#);
}

#[test]
fn with_native_calls() {
    let record = summing_up(1, [search("a"), search("b"), text("Tried a."), text("Done."), boxed("42")])
        .native()
        .run();
    insta::assert_snapshot!(layouts(&record, LlmPurpose::Compression)[0], @r#"
    user: QUESTION
    assistant: [n0.0 web/google_search(q: a)]
    tool n0.0: {"organic":[{"title":"About a"}]}
    user: COMPRESS TO 1500
    "#);
    insta::assert_snapshot!(layouts(&record, LlmPurpose::Turn)[2], @r#"
    user: QUESTION
    assistant: [Summary] Tried a.
    user: GO ON
    assistant: [n1.0 web/google_search(q: b)]
    tool n1.0: {"organic":[{"title":"About b"}]}
    "#);
}

/// Every decision about summaries: the setting, the limit, what the server counts for each turn, whether a summary
/// is asked for after which turns.
#[test]
fn when_a_summary_is_due() {
    for (every, limit, prompts, expected) in [
        (0, 100, [50_000, 50_000, 50_000], ""),
        (2, 80_000, [10, 10, 10], "2"),
        (1, 80_000, [10, 10, 10], "2 3"),
        (3, 80_000, [10, 10, 10], "3"),
        (4, 80_000, [10, 10, 10], ""),
        // Full before its time: as soon as there is a round beside the newest.
        (10, 20_000, [30_000, 10, 10], ""),
        (10, 20_000, [10, 30_000, 10], "2"),
        (10, 20_000, [10, 19_990, 10], ""),
        (10, 20_000, [10, 19_991, 10], "2"),
        (10, 20_000, [10, 30_000, 30_000], "2 3"),
    ] {
        let mut runner = Case::new([])
            .max_turns(5)
            .config(|config| {
                config.summarize_every = every;
                config.token_limit = limit;
            })
            .sizes(|_| (5_000, 100))
            .start();
        let mut asked = Vec::new();
        let mut turn = 0;
        loop {
            let step = runner.next_step();
            if let orchestrator::Step::CallModel(call) = &step {
                match call.purpose {
                    LlmPurpose::Turn if turn < 3 => {
                        runner.feed(search(&format!("q{turn}")).usage(prompts[turn], 10));
                        turn += 1;
                    }
                    LlmPurpose::Turn => runner.feed(text("Done.")),
                    LlmPurpose::Compression => {
                        asked.push(turn.to_string());
                        runner.feed(text("Summed up."));
                    }
                    LlmPurpose::FinalAnswer | LlmPurpose::FailureSummary => runner.feed(boxed("42")),
                }
            }
            if !runner.perform(step) {
                break;
            }
        }
        assert_eq!(asked.join(" "), expected, "every {every}, limit {limit}, {prompts:?}");
    }
}

#[test]
fn no_summary_before_the_end() {
    check(
        summing_up(2, [search("a"), search("b"), boxed("42")]).max_turns(2),
        "1 ask
         1 run web/google_search(q: a)
         2 ask
         2 run web/google_search(q: b)
         ask for the answer
         pass 1: max_turns, turns 2, attempts 2, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn a_summary_that_cannot_be_had_is_not_the_end() {
    for (keep, failures, asked) in [
        (-1, vec![transient()], 1),
        (-1, vec![permanent()], 1),
        (-1, vec![too_long()], 1),
        // Shorter once: with the results that turns are shown.
        (0, vec![too_long(), too_long()], 2),
        (-1, vec![text("<think>Nothing.</think>")], 1),
        (-1, vec![search("x")], 1),
    ] {
        let mut replies = vec![search("a"), search("b")];
        replies.extend(failures);
        replies.extend([search("c"), text("Done."), boxed("42")]);
        let record = summing_up(2, replies).keep(keep).run();
        assert_eq!(record.outcome().answer.as_deref(), Some("42"));
        assert_eq!(record.requests_for(LlmPurpose::Compression).len(), asked);
        assert_eq!(record.state.pass.compressed, None);
        assert_eq!(record.state.passes[0].turns, 4);
    }
}

#[test]
fn the_result_is_checked() {
    // Too long the first time, then short enough; too long twice; no gain at all.
    for (sizes, expected) in [
        (vec![(5_000, 3_000), (5_000, 900)], "summary of 2: not used, over the limit; summary of 2: used"),
        (
            vec![(5_000, 3_000), (5_000, 2_000)],
            "summary of 2: not used, over the limit; summary of 2: used, over the limit",
        ),
        (vec![(900, 950)], "summary of 2: not used"),
        (
            vec![(5_000, 6_000), (5_000, 6_000)],
            "summary of 2: not used, over the limit; summary of 2: not used, over the limit",
        ),
    ] {
        let mut replies = vec![search("a"), search("b")];
        replies.extend(sizes.iter().map(|_| text("Summed up.")));
        replies.extend([text("Done."), boxed("42")]);
        let mut sizes = sizes.into_iter();
        let record = Case::new(replies)
            .config(|config| {
                config.summarize_every = 2;
                config.token_limit = 1_000;
            })
            .sizes(move |_| sizes.next().expect("asked once more than expected"))
            .run();
        let summaries: Vec<&str> =
            record.decisions.iter().filter(|line| line.starts_with("summary")).map(String::as_str).collect();
        assert_eq!(summaries.join("; "), expected);
        let prompts: Vec<String> =
            record.requests_for(LlmPurpose::Compression).iter().map(|request| request.last_text()).collect();
        assert!(prompts[0].ends_with("COMPRESS TO 125"), "{prompts:?}");
        if let Some(second) = prompts.get(1) {
            assert!(second.ends_with("COMPRESS TO 60"), "{second}");
        }
    }
}

#[test]
fn retention_and_facts_go_with_it() {
    let fact = serde_json::json!({"name": "birth", "text": "1571", "source": "https://a.org"});
    let record = summing_up(
        3,
        [
            call("findings", "record_finding", fact),
            search("b"),
            search("c"),
            text("Tried b."),
            search("d"),
            text("Done."),
            boxed("42"),
        ],
    )
    .keep(1)
    .config(|config| config.findings = true)
    .run();
    // The summary is made from all results, also those that turns no longer show.
    assert!(record.requests_for(LlmPurpose::Compression)[0].all_text().contains("Noted: birth"));
    insta::assert_snapshot!(layouts(&record, LlmPurpose::Turn)[4], @r#"
    user: QUESTION
    assistant: [Summary] Tried b.
    user: GO ON FACTS: birth
    assistant: [web/google_search(q: c)]
    user: (omitted)
    assistant: [web/google_search(q: d)]
    user: {"organic":[{"title":"About d"}]}
    "#);
}

#[test]
fn what_a_summary_stands_for_is_never_dropped() {
    // The window overflows in the turn after the summary, and the final request is too long again and again.
    let record = summing_up(
        2,
        [search("a"), search("b"), text("Tried a."), too_long(), too_long(), too_long(), boxed("42")],
    )
    .config(|config| config.context_compress_limit = 0)
    .run_any();
    for layout in layouts(&record, LlmPurpose::FinalAnswer) {
        assert!(layout.contains("[Summary] Tried a."), "{layout}");
    }
}

#[test]
fn a_run_with_summaries_goes_on_from_its_written_state() {
    let case = || {
        summing_up(
            1,
            [
                search("a"),
                search("b"),
                text("Tried a."),
                search("c"),
                transient(),
                search("d"),
                text("Tried all."),
                text("Done."),
                boxed("42"),
            ],
        )
    };
    let (plain, written) = (case().run(), case().through_json().run());
    assert_eq!((plain.trace(), plain.events, plain.state), (written.trace(), written.events, written.state));
}

#[test]
fn the_log_tells_what_a_summary_stands_for() {
    let record =
        summing_up(2, [search("a"), search("b"), text("Tried a."), text("Done."), boxed("42")]).run();
    let (message_id, replaced) = record
        .events
        .iter()
        .find_map(|event| match &event.body {
            EventBody::Compressed { message_id, replaced, before: 5_000, after: 100, .. } => {
                Some((message_id.clone(), replaced.clone()))
            }
            _ => None,
        })
        .expect("a summary");
    let message = |wanted: &str| {
        record.events.iter().find_map(|event| match &event.body {
            EventBody::Message { id, message } if id == wanted => Some(message.joined_text()),
            _ => None,
        })
    };
    assert_eq!(message(&message_id).as_deref(), Some("[Summary] Tried a."));
    assert_eq!(replaced, ["m2", "m3"]);
    let shown = record.events.iter().rev().find_map(|event| match &event.body {
        EventBody::LlmRequest { view, purpose: LlmPurpose::Turn, .. } => Some(view.clone()),
        _ => None,
    });
    assert_eq!(shown.unwrap()[..2], ["m1".to_owned(), message_id]);
}
