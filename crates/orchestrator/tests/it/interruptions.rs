//! Limits of the whole run, and cancellation, at every place where they can come.

use core_protocol::event::{ErrorReport, LlmPurpose, RunStatus, StopReason};
use llm_providers::ToolProtocol;
use orchestrator::config::ToolCallsPerTurn;

use crate::harness::{Case, Record, Runner, Step};
use crate::script::{boxed, calls, google, search, text};

fn script(compress: u32, protocol: ToolProtocol) -> Case {
    Case::new([
        search("a").saying("Maybe \\boxed{41}."),
        calls([google("b"), google("c")]),
        search("d"),
        text("It went wrong."),
        text("Done."),
        boxed("42"),
    ])
    .protocol(protocol)
    .max_turns(3)
    .compress(compress)
}

/// Takes `steps` steps, interrupts before the next is done, and answers what is asked after that with a box.
fn interrupt_after(case: Case, steps: usize, interrupt: impl Fn(&mut Runner)) -> Option<Record> {
    let mut runner = case.start();
    for _ in 0..steps {
        if !runner.step() {
            return None;
        }
    }
    let pending = runner.next_step();
    if matches!(pending, Step::Finished) {
        return None;
    }
    interrupt(&mut runner);
    loop {
        let step = runner.next_step();
        if let Step::CallModel(call) = &step {
            assert_ne!(
                call.purpose,
                LlmPurpose::Turn,
                "the loop goes on after:\n{}",
                runner.decisions().join("\n")
            );
            runner.replace_script([boxed("42")]);
        }
        if !runner.perform(step) {
            return Some(runner.into_record());
        }
    }
}

#[test]
fn a_limit_forces_an_answer_from_wherever_the_loop_is() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        for mode in [ToolCallsPerTurn::All, ToolCallsPerTurn::Parallel] {
            for reason in [StopReason::LimitWall, StopReason::LimitTokens, StopReason::LimitCost] {
                for compress in [0, 5] {
                    // The loop takes nine steps or more: three requests, three or four lots of calls, three counts.
                    for steps in 0..9 {
                        let case =
                            script(compress, protocol).config(|config| config.tool_calls_per_turn = mode);
                        let record = interrupt_after(case, steps, |runner| {
                            assert!(runner.machine.in_loop());
                            runner.machine.limit_reached(reason);
                        })
                        .expect("the run is longer");
                        let outcome = record.outcome();
                        assert_eq!(outcome.stop_reason, Some(reason));
                        assert_eq!(
                            (outcome.status, outcome.answer.as_deref()),
                            (RunStatus::Answered, Some("42"))
                        );
                        assert_eq!(record.state.passes.len(), 1, "no further pass follows a limit");
                        assert_eq!(record.requests_for(LlmPurpose::FailureSummary).len(), 0);
                        assert!(reason.is_capped());
                    }
                }
            }
        }
    }
}

#[test]
fn a_limit_falls_back_to_the_last_noted_box() {
    let mut runner = script(5, ToolProtocol::Text).keep(5).start();
    for _ in 0..4 {
        runner.step();
    }
    runner.machine.limit_reached(StopReason::LimitTokens);
    runner.replace_script([text("No box.")]);
    runner.finish();
    let record = runner.into_record();
    assert_eq!(record.outcome().answer.as_deref(), Some("41"));
    assert_eq!(record.outcome().stop_reason, Some(StopReason::LimitTokens));
}

#[test]
fn a_limit_in_a_later_pass_ends_the_run() {
    let mut runner = script(5, ToolProtocol::Text).start();
    loop {
        let step = runner.next_step();
        if runner.decisions().iter().any(|line| line == "p2 1 ask") {
            break;
        }
        runner.perform(step);
    }
    let before = runner.machine.state().passes.len();
    runner.machine.limit_reached(StopReason::LimitWall);
    runner.replace_script([boxed("42")]);
    runner.finish();
    let record = runner.into_record();
    assert_eq!(record.state.passes.len(), before + 1);
    assert_eq!(record.outcome().stop_reason, Some(StopReason::LimitWall));
    assert_eq!(record.outcome().answer.as_deref(), Some("42"));
    assert_eq!(record.requests_for(LlmPurpose::FinalAnswer).len(), 1);
}

#[test]
fn a_cancelled_run_is_over_at_once() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        for compress in [0, 1] {
            let mut places = 0;
            for steps in 0.. {
                let record = interrupt_after(script(compress, protocol), steps, |runner| {
                    runner.machine.cancel();
                    assert!(matches!(runner.next_step(), Step::Finished));
                });
                let Some(record) = record else { break };
                let outcome = record.outcome();
                assert_eq!(
                    (outcome.status, outcome.stop_reason),
                    (RunStatus::Cancelled, Some(StopReason::Cancelled))
                );
                places += 1;
            }
            assert!(places >= 12, "{places}");
        }
    }
}

#[test]
fn a_run_that_cannot_be_kept_fails_with_its_reason() {
    let mut runner = script(0, ToolProtocol::Text).start();
    runner.step();
    let error = ErrorReport { kind: "io".into(), message: "the disk is full".into(), hint: None };
    runner.machine.fail(error.clone());
    runner.finish();
    let record = runner.into_record();
    assert_eq!(
        (record.outcome().status, record.outcome().stop_reason),
        (RunStatus::Failed, Some(StopReason::Error))
    );
    assert_eq!(record.outcome().error, Some(error));
}

#[test]
fn nothing_changes_a_run_that_is_over() {
    let mut runner = Case::new([text("Done."), boxed("42")]).start();
    runner.finish();
    let before = runner.machine.state().clone();
    runner.machine.limit_reached(StopReason::LimitWall);
    runner.machine.cancel();
    runner.machine.fail(ErrorReport { kind: "io".into(), message: "late".into(), hint: None });
    runner.machine.tools_finished(Vec::new());
    assert!(matches!(runner.next_step(), Step::Finished));
    assert_eq!(runner.machine.state(), &before);
}
