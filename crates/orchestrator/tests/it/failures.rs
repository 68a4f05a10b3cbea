//! Requests without a usable reply: undone, tried again, or the end.

use core_protocol::event::{LlmPurpose, RunStatus, StopReason};
use llm_providers::ToolProtocol;
use orchestrator::machine::ModelFailureClass;

use crate::harness::{Case, Record, Step, check};
use crate::script::{
    Reply, boxed, broken, calls, failure, google, permanent, search, text, too_long, transient,
};

/// Runs the script and answers whatever is asked after it with the same failure.
fn run_then_fail(case: Case, class: ModelFailureClass) -> Record {
    let mut runner = case.start();
    loop {
        let step = runner.next_step();
        if matches!(step, Step::CallModel(_)) && runner.script_is_used_up() {
            runner.feed(failure(class));
        }
        if !runner.perform(step) {
            return runner.into_record();
        }
    }
}

#[test]
fn a_failure_or_an_empty_reply_undoes_the_turn() {
    for unusable in [transient(), text("")] {
        let record = check(
            Case::new([search("a"), unusable, search("b"), text("Done."), boxed("42")]),
            "1 ask
             1 run web/google_search(q: a)
             2 ask
             2 ask
             2 run web/google_search(q: b)
             3 ask
             ask for the answer
             pass 1: completed, turns 3, attempts 4, rollbacks 0
             answered: 42 (final_reply)",
        );
        assert_eq!(record.requests[1].messages, record.requests[2].messages, "nothing is left of it");
    }
}

#[test]
fn blanks_are_an_empty_reply() {
    let record = Case::new([text(" \n\t "), text("Done."), boxed("42")]).run();
    assert_eq!(record.requests_for(LlmPurpose::Turn).len(), 2);
}

#[test]
fn a_pause_follows_a_failure_and_nothing_else() {
    let record = Case::new([broken(), transient(), text(""), search("a"), text("Done."), boxed("42")])
        .config(|config| config.llm_retry_pause = 1.5)
        .run();
    let pauses: Vec<u128> = record.requests.iter().map(|request| request.pause_ms).collect();
    assert_eq!(pauses, [0, 0, 1_500, 1_500, 0, 0]);
    let record = Case::new([transient(), text("Done."), boxed("42")]).run();
    assert_eq!(record.requests[1].pause_ms, 5_000);
}

#[test]
fn a_native_reply_with_calls_and_no_text_is_usable() {
    check(
        Case::new([search("a"), text("Done."), boxed("42")]).native(),
        "1 ask
         1 run web/google_search(q: a)
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 2, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn three_failures_in_a_row_stop_the_pass() {
    for unusable in [transient(), text("")] {
        let replies = [search("a"), unusable.clone(), unusable.clone(), unusable];
        let record = run_then_fail(Case::new(replies), ModelFailureClass::Transient);
        assert_eq!(record.state.passes[0].stop_reason, StopReason::Error);
        assert_eq!(record.requests_for(LlmPurpose::Turn).len(), 4);
        assert_eq!(record.state.passes[0].turns, 1);
        assert_eq!(record.state.passes[0].call_attempts, 4, "a go of the loop counts, kept or not");
        assert_eq!(record.outcome().status, RunStatus::Failed);
        assert!(record.outcome().error.is_some(), "a failed run says what stopped it");
    }
}

#[test]
fn the_number_of_failures_in_a_row_is_configured() {
    for most in [1, 2, 4] {
        let replies = (0..most).map(|_| transient());
        let case = Case::new(replies).config(|config| config.max_llm_failures = most);
        let record = run_then_fail(case, ModelFailureClass::Transient);
        assert_eq!(record.requests_for(LlmPurpose::Turn).len(), most as usize);
        assert_eq!(record.outcome().stop_reason, Some(StopReason::Error));
    }
}

#[test]
fn any_usable_reply_ends_a_row_of_failures() {
    for between in [search("a"), broken(), text("There is a time constraint.")] {
        let replies = [
            transient(),
            text(""),
            between,
            transient(),
            transient(),
            search("b"),
            text("Done."),
            boxed("42"),
        ];
        let record = Case::new(replies).run();
        assert_eq!(record.outcome().stop_reason, Some(StopReason::Completed));
    }
}

#[test]
fn a_failure_gives_no_rollback_back() {
    let replies = (0..4).map(|_| broken()).chain([transient(), broken(), boxed("42")]);
    let record = Case::new(replies).run();
    assert_eq!(record.outcome().stop_reason, Some(StopReason::FormatError));
    assert_eq!(record.state.rollbacks.total, 4);
}

#[test]
fn failures_are_call_attempts() {
    let record = Case::new([transient(), text(""), transient(), boxed("42")])
        .max_turns(1)
        .config(|config| {
            config.max_llm_failures = 100;
            config.extra_call_attempts = 2;
        })
        .run();
    assert_eq!(record.outcome().stop_reason, Some(StopReason::MaxCallAttempts));
    assert_eq!(record.state.passes[0].call_attempts, 3);
    assert_eq!(record.state.passes[0].turns, 0);
}

#[test]
fn a_failure_that_nothing_cures_stops_the_pass_at_once() {
    for compress in [0, 2] {
        let case = Case::new([search("a"), permanent()]).compress(compress);
        let record = run_then_fail(case, ModelFailureClass::Permanent);
        assert_eq!(record.requests_for(LlmPurpose::Turn).len(), 2, "{}", record.trace());
        assert_eq!(record.state.passes[0].stop_reason, StopReason::Error);
        assert_eq!(record.outcome().status, RunStatus::Failed);
        let error = record.outcome().error.clone().expect("a failed run says what stopped it");
        assert_eq!(error.kind, "authentication");
    }
}

#[test]
fn a_request_beyond_the_window_drops_the_last_turn_and_stops_the_loop() {
    for (protocol, left) in [
        (
            ToolProtocol::Text,
            "user: QUESTION
assistant: [web/google_search(q: a)]
user: FINAL PROMPT: QUESTION",
        ),
        (
            ToolProtocol::Native,
            "user: QUESTION
assistant: [x web/google_search(q: a)]
tool x: {\"organic\":[{\"title\":\"About a\"}]}
user: FINAL PROMPT: QUESTION",
        ),
    ] {
        let named = |id: &str, query: &str| {
            let mut call = google(query);
            call.id = Some(id.into());
            call
        };
        let replies: [Reply; 4] =
            [calls([named("x", "a")]), calls([named("y", "b"), named("z", "c")]), too_long(), boxed("42")];
        let record = Case::new(replies).protocol(protocol).run();
        assert_eq!(record.outcome().stop_reason, Some(StopReason::ContextLimit));
        assert_eq!(record.requests_for(LlmPurpose::FinalAnswer)[0].layout(), left);
    }
}

#[test]
fn a_first_request_beyond_the_window_ends_without_an_answer() {
    let record = run_then_fail(Case::new([]), ModelFailureClass::ContextExceeded);
    assert_eq!(record.outcome().stop_reason, Some(StopReason::ContextLimit));
    assert_eq!(record.outcome().answer, None);
}
