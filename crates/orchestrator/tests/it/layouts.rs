//! What goes to the model, message by message: before and after retention, a rollback, the final answer, the failure
//! summary and a second pass, with calls in text and with native calls.

use core_protocol::event::LlmPurpose;

use crate::harness::{Case, Record};
use crate::script::{Call, Reply, boxed, broken, calls, google, text};

fn named(id: &str, query: &str) -> Call {
    Call { id: Some(id.into()), ..google(query) }
}

fn script() -> Vec<Reply> {
    vec![
        calls([named("x1", "a")]).saying("First."),
        calls([named("x2", "b"), named("x3", "c")]),
        broken(),
        calls([named("x4", "d")]).thinking("a thought"),
        text("It went wrong."),
        calls([named("x5", "a")]),
        text("Done."),
        boxed("42"),
    ]
}

fn run(native: bool, keep: i64, prefix: bool) -> Record {
    let case = Case::new(script())
        .max_turns(3)
        .compress(1)
        .keep(keep)
        .with(|case| case.model.assistant_prefix = prefix)
        .config(|config| config.rollback_hint = true);
    if native { case.native().run() } else { case.run() }
}

fn turn(record: &Record, index: usize) -> String {
    record.requests_for(LlmPurpose::Turn)[index].layout()
}

fn layout(record: &Record, purpose: LlmPurpose) -> String {
    record.requests_for(purpose)[0].layout()
}

#[test]
fn all_results_in_text() {
    let record = run(false, -1, true);
    insta::assert_snapshot!(turn(&record, 0), @"user: QUESTION");
    insta::assert_snapshot!(turn(&record, 1), @r#"
    user: QUESTION
    assistant: First. [web/google_search(q: a)]
    user: {"organic":[{"title":"About a"}]}
    "#);
    insta::assert_snapshot!(turn(&record, 2), @r#"
    user: QUESTION
    assistant: First. [web/google_search(q: a)]
    user: {"organic":[{"title":"About a"}]}
    assistant: [web/google_search(q: b)] [web/google_search(q: c)]
    user: {"organic":[{"title":"About b"}]} {"organic":[{"title":"About c"}]}
    "#);
    insta::assert_snapshot!(turn(&record, 3), @r#"
    user: QUESTION
    assistant: First. [web/google_search(q: a)]
    user: {"organic":[{"title":"About a"}]}
    assistant: [web/google_search(q: b)] [web/google_search(q: c)]
    user: {"organic":[{"title":"About b"}]} {"organic":[{"title":"About c"}]} HINT format_error
    "#);
    insta::assert_snapshot!(layout(&record, LlmPurpose::FailureSummary), @r#"
    user: QUESTION
    assistant: First. [web/google_search(q: a)]
    user: {"organic":[{"title":"About a"}]}
    assistant: [web/google_search(q: b)] [web/google_search(q: c)]
    user: {"organic":[{"title":"About b"}]} {"organic":[{"title":"About c"}]}
    assistant: {a thought} [web/google_search(q: d)]
    user: SUMMARY PROMPT
    assistant: <think> Looking back. </think>
    (the reply goes on from here)
    "#);
    insta::assert_snapshot!(turn(&record, 4), @"user: QUESTION BEFORE: [1: It went wrong.]");
    insta::assert_snapshot!(turn(&record, 5), @r#"
    user: QUESTION BEFORE: [1: It went wrong.]
    assistant: [web/google_search(q: a)]
    user: {"organic":[{"title":"About a"}]}
    "#);
    insta::assert_snapshot!(layout(&record, LlmPurpose::FinalAnswer), @r#"
    user: QUESTION BEFORE: [1: It went wrong.]
    assistant: [web/google_search(q: a)]
    user: {"organic":[{"title":"About a"}]}
    assistant: Done.
    user: FINAL PROMPT: QUESTION
    "#);
}

#[test]
fn the_newest_result_in_text() {
    let record = run(false, 1, false);
    insta::assert_snapshot!(turn(&record, 2), @r#"
    user: QUESTION
    assistant: First. [web/google_search(q: a)]
    user: (omitted)
    assistant: [web/google_search(q: b)] [web/google_search(q: c)]
    user: {"organic":[{"title":"About b"}]} {"organic":[{"title":"About c"}]}
    "#);
    insta::assert_snapshot!(layout(&record, LlmPurpose::FinalAnswer), @r#"
    user: QUESTION BEFORE: [1: It went wrong.]
    assistant: [web/google_search(q: a)]
    user: (omitted)
    assistant: Done.
    user: FINAL PROMPT: QUESTION
    "#);
}

#[test]
fn no_result_in_text() {
    let record = run(false, 0, true);
    insta::assert_snapshot!(turn(&record, 2), @r"
    user: QUESTION
    assistant: First. [web/google_search(q: a)]
    user: (omitted)
    assistant: [web/google_search(q: b)] [web/google_search(q: c)]
    user: (omitted)
    ");
    insta::assert_snapshot!(layout(&record, LlmPurpose::FinalAnswer), @r"
    user: QUESTION BEFORE: [1: It went wrong.]
    assistant: [web/google_search(q: a)]
    user: (omitted)
    assistant: Done.
    user: FINAL PROMPT: QUESTION
    ");
}

#[test]
fn all_results_with_native_calls() {
    let record = run(true, -1, true);
    insta::assert_snapshot!(turn(&record, 1), @r#"
    user: QUESTION
    assistant: First. [x1 web/google_search(q: a)]
    tool x1: {"organic":[{"title":"About a"}]}
    "#);
    insta::assert_snapshot!(turn(&record, 2), @r#"
    user: QUESTION
    assistant: First. [x1 web/google_search(q: a)]
    tool x1: {"organic":[{"title":"About a"}]}
    assistant: [x2 web/google_search(q: b)] [x3 web/google_search(q: c)]
    tool x2: {"organic":[{"title":"About b"}]}
    tool x3: {"organic":[{"title":"About c"}]}
    "#);
    insta::assert_snapshot!(layout(&record, LlmPurpose::FailureSummary), @r#"
    user: QUESTION
    assistant: First. [x1 web/google_search(q: a)]
    tool x1: {"organic":[{"title":"About a"}]}
    assistant: [x2 web/google_search(q: b)] [x3 web/google_search(q: c)]
    tool x2: {"organic":[{"title":"About b"}]}
    tool x3: {"organic":[{"title":"About c"}]}
    assistant: {a thought} [x4 web/google_search(q: d)]
    tool x4: {"organic":[{"title":"About d"}]}
    user: SUMMARY PROMPT
    assistant: <think> Looking back. </think>
    (the reply goes on from here)
    "#);
    insta::assert_snapshot!(layout(&record, LlmPurpose::FinalAnswer), @r#"
    user: QUESTION BEFORE: [1: It went wrong.]
    assistant: [x5 web/google_search(q: a)]
    tool x5: {"organic":[{"title":"About a"}]}
    assistant: Done.
    user: FINAL PROMPT: QUESTION
    "#);
}

#[test]
fn the_newest_turn_with_native_calls() {
    let record = run(true, 1, false);
    insta::assert_snapshot!(turn(&record, 2), @r#"
    user: QUESTION
    assistant: First. [x1 web/google_search(q: a)]
    tool x1: (omitted)
    assistant: [x2 web/google_search(q: b)] [x3 web/google_search(q: c)]
    tool x2: {"organic":[{"title":"About b"}]}
    tool x3: {"organic":[{"title":"About c"}]}
    "#);
}

#[test]
fn the_prompt_of_the_answer_is_one_of_the_newest_with_native_calls() {
    let record = run(true, 1, false);
    insta::assert_snapshot!(layout(&record, LlmPurpose::FinalAnswer), @r#"
    user: QUESTION BEFORE: [1: It went wrong.]
    assistant: [x5 web/google_search(q: a)]
    tool x5: (omitted)
    assistant: Done.
    user: FINAL PROMPT: QUESTION
    "#);
}

#[test]
fn the_tools_are_in_the_prompt_or_beside_it() {
    let text_run = run(false, -1, true);
    let native_run = run(true, -1, true);
    assert!(text_run.requests.iter().all(|request| request.tools == 0));
    for request in native_run.requests_for(LlmPurpose::Turn) {
        assert_eq!(request.tools, crate::script::offered_tools().len());
    }
    let prompt = |case: Case| case.start().machine.system_prompt();
    let in_text = prompt(Case::new([]));
    let beside = prompt(Case::new([]).native());
    for tool in crate::script::offered_tools() {
        assert!(in_text.contains(&format!("### Tool name: {}", tool.name)));
        assert!(!beside.contains(&tool.name));
    }
}
