//! The state is plain data: written down and read again at any step, a run goes on as if nothing had been.

use llm_providers::ToolProtocol;
use orchestrator::config::ToolCallsPerTurn;
use orchestrator::machine::ContextCounts;
use serde_json::json;

use crate::harness::{Case, Runner, Step};
use crate::script::{Reply, broken, calls, google, one, search, text, too_long, transient};

/// Two passes with everything in them: rollbacks of each kind, failures, several calls, retention, a full context.
fn eventful(protocol: ToolProtocol) -> Case {
    let replies: Vec<Reply> = vec![
        search("a").saying("Maybe \\boxed{40}.").thinking("a thought").usage(1_000, 10),
        broken(),
        text("There is a time constraint."),
        search("a"),
        search("nothing"),
        transient(),
        text(""),
        calls([google("b"), one("web", "scrape_website", json!({ "url": "fail" })), google("c")]),
        calls([one("web", "scrape_website", json!({ "url": "wrong" })), google("d")]),
        calls([one("tool-google", "google_search", json!({ "q": "e", "gl": null }))]),
        search("f").usage(99_000, 10),
        too_long(),
        text("<think>Let me see.</think>It went wrong."),
        search("a").saying("Maybe \\boxed{41}."),
        broken(),
        text("Done."),
        too_long(),
        text("No box."),
    ];
    Case::new(replies).protocol(protocol).keep(2).compress(1).config(|config| config.rollback_hint = true)
}

fn reference(protocol: ToolProtocol) -> crate::harness::Record {
    eventful(protocol).run()
}

#[test]
fn a_run_whose_state_is_written_down_at_every_step_decides_the_same() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        for mode in [ToolCallsPerTurn::All, ToolCallsPerTurn::Parallel] {
            let configured = || {
                eventful(protocol).config(|config| config.tool_calls_per_turn = mode).count(|question| {
                    ContextCounts { results: question.results.len() as u64, ..Default::default() }
                })
            };
            let plain = configured().run();
            let written = configured().through_json().run();
            assert_eq!(plain.trace(), written.trace());
            assert_eq!(plain.requests, written.requests);
            assert_eq!(plain.events, written.events);
            assert_eq!(plain.state, written.state);
        }
    }
}

#[test]
fn the_eventful_run_is_eventful() {
    let mut record = reference(ToolProtocol::Text);
    // Whether a turn that was dropped for want of room counts is not what this is about.
    record.decisions.retain(|line| !line.starts_with("pass 1: context_limit"));
    assert_eq!(record.state.passes[0].call_attempts, 11);
    record.check(
        "1 ask
         box 40
         1 run web/google_search(q: a)
         2 ask
         rollback format_error (1)
         2 ask
         rollback refusal (2)
         2 ask
         rollback duplicate_query (3)
         2 ask
         2 run web/google_search(q: nothing)
         rollback tool_error (4)
         2 ask
         2 ask
         2 ask
         2 run web/google_search(q: b)
         2 run web/scrape_website(url: fail)
         2 run web/google_search(q: c)
         recovered after 4
         3 ask
         3 run web/scrape_website(url: wrong)
         rollback tool_error (1)
         3 ask
         3 run web/google_search(q: e)
         recovered after 1
         4 ask
         4 run web/google_search(q: f)
         context over
         ask what failed
         ask what failed
         failure: It went wrong.
         p2 1 ask
         box 41
         p2 1 run web/google_search(q: a)
         p2 2 ask
         rollback format_error (1)
         p2 2 ask
         p2 ask for the answer
         p2 ask for the answer
         pass 2: completed, turns 2, attempts 3, rollbacks 1
         answered: 41 (intermediate)",
    );
}

/// Takes steps until the run is over; before the step of the given number is done, the machine is thrown away and
/// made anew from its state, which asks for the same step again.
fn interrupted_before(case: Case, place: usize) -> (Runner, bool) {
    let mut runner = case.start();
    let mut steps = 0;
    loop {
        let mut step = runner.next_step();
        if steps == place {
            let lines = runner.decisions().len();
            runner.resume();
            let again = runner.next_step();
            assert_eq!(essence(&again), essence(&step), "the step is asked for again");
            runner.forget_decisions_from(lines);
            step = again;
        }
        steps += 1;
        if !runner.perform(step) {
            return (runner, steps > place);
        }
    }
}

/// What a step asks for, without the id of the request.
fn essence(step: &Step) -> String {
    match step {
        Step::CallModel(call) => format!(
            "{:?} {:?} {:?} {} {}",
            call.purpose,
            call.pause,
            call.messages,
            call.continue_final_message,
            call.tools.len()
        ),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_run_that_is_resumed_anywhere_decides_the_same() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        let plain = reference(protocol);
        for place in 0.. {
            let (runner, reached) = interrupted_before(eventful(protocol), place);
            let record = runner.into_record();
            assert_eq!(record.trace(), plain.trace(), "resumed before step {place}");
            assert_eq!(record.state.outcome, plain.state.outcome);
            if !reached {
                assert!(place > 30, "{place} steps");
                break;
            }
        }
    }
}
