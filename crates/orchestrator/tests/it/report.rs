//! A report with citations in the place of a box.

use core_protocol::event::{CitationCounts, EventBody, LlmPurpose, RunStatus};
use orchestrator::config::AnswerFormat;
use orchestrator::machine::state::PlannedCall;
use serde_json::json;

use crate::harness::{Case, Record};
use crate::script::{Reply, call, permanent, search, success, text, transient};

fn reporting(replies: impl IntoIterator<Item = Reply>) -> Case {
    Case::new(replies)
        .config(|config| config.answer_format = AnswerFormat::Report)
        .tool(|planned: &PlannedCall| {
            success(json!({"organic": [{"title": "About", "link": format!("https://a.org/{}", planned.call.tool)}]}).to_string())
        })
}

fn answer(record: &Record) -> Option<&str> {
    record.outcome().answer.as_deref()
}

#[test]
fn citations_are_checked_against_what_the_run_saw() {
    let written = "# Report\n\nSeen [1](https://a.org/google_search), not seen [2](https://b.org), given [[notes.txt]].";
    let record = reporting([search("a"), text("Done."), text(written)])
        .with(|case| case.task.files = vec!["notes.txt".into()])
        .run();
    assert_eq!(record.requests.last().unwrap().last_text(), "REPORT PROMPT: QUESTION");
    assert_eq!(
        answer(&record),
        Some(
            "# Report\n\nSeen [1](https://a.org/google_search), not seen [2](https://b.org) [unverified source], given [[notes.txt]]."
        )
    );
    let outcome = record.outcome();
    assert_eq!(outcome.status, RunStatus::Answered);
    assert_eq!(outcome.final_text.as_deref(), Some(written));
    let counts = CitationCounts { total: 3, verified: 2, unknown: vec!["https://b.org".into()] };
    assert_eq!(outcome.citations, Some(counts.clone()));
    let told = record.events.iter().find_map(|event| match &event.body {
        EventBody::FinalAnswer { citations, .. } => citations.clone(),
        _ => None,
    });
    assert_eq!(told, Some(counts));
}

#[test]
fn what_a_call_was_given_and_the_question_named_are_sources() {
    let record = reporting([
        call("web", "scrape_website", json!({"url": "https://c.org/page"})),
        text("Done."),
        text("See https://c.org/page and https://d.org/q."),
    ])
    .with(|case| case.task.question = "What does https://d.org/q say?".into())
    .run();
    assert_eq!(record.outcome().citations.as_ref().map(|counts| counts.verified), Some(2));
}

#[test]
fn the_ways_to_a_report() {
    for (replies, expected) in [
        // A box is not looked for.
        (vec![text("It is \\boxed{1}."), text("The report.")], Some("The report.")),
        // Thinking and calls are not part of it; what has nothing else is no report.
        (vec![text("Done."), text("<think>So.</think>The report.")], Some("The report.")),
        (vec![text("Done."), search("x"), transient(), text("The report.")], Some("The report.")),
        // What the loop said last stands for one that cannot be had.
        (vec![text("As good as a report."), permanent()], Some("As good as a report.")),
        (vec![permanent()], None),
    ] {
        let record = reporting(replies).run();
        assert_eq!(answer(&record), expected);
        let noted =
            record.events.iter().any(|event| matches!(event.body, EventBody::IntermediateAnswer { .. }));
        assert!(!noted);
    }
}

#[test]
fn passes_are_for_runs_that_were_cut_short() {
    let record = reporting([search("a"), text("It went wrong."), text("Done."), text("The report.")])
        .max_turns(1)
        .compress(1)
        .run();
    assert_eq!(record.requests_for(LlmPurpose::FailureSummary).len(), 1);
    assert_eq!(answer(&record), Some("The report."));
}
