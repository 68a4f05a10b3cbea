//! Facts that are kept apart from the history.

use core_protocol::event::{EventBody, LlmPurpose};
use orchestrator::config::ToolCallsPerTurn;
use serde_json::json;

use crate::harness::{Case, check};
use crate::script::{Call, Reply, boxed, calls, google, one, search, text};

fn fact(name: &str, said: &str) -> Call {
    one("findings", "record_finding", json!({"name": name, "text": said, "source": "https://a.org"}))
}

fn with_findings(replies: impl IntoIterator<Item = Reply>) -> Case {
    Case::new(replies).config(|config| config.findings = true)
}

#[test]
fn facts_are_noted_without_any_tool_server() {
    let list = || one("findings", "list_findings", json!({}));
    let record = check(
        with_findings([
            calls([google("a"), fact("birth", "1570"), fact("birth", "1571")]),
            calls([list()]),
            text("Done."),
            boxed("1571"),
        ]),
        "1 ask
         1 run web/google_search(q: a)
         fact birth
         fact birth again
         2 ask
         3 ask
         ask for the answer
         pass 1: completed, turns 3, attempts 3, rollbacks 0
         answered: 1571 (final_reply)",
    );
    assert!(record.requests[1].last_text().contains("Noted: birth (1 in all)"));
    assert!(record.requests[2].last_text().contains("birth: 1571\nSource: https://a.org"));
    assert_eq!(record.requests.last().unwrap().last_text(), "FINAL PROMPT: QUESTION\n\nFACTS: birth");
    assert_eq!((record.state.tool_calls.total, record.state.tool_calls.by_tool["record_finding"]), (4, 2));
    // The call owns the text, the event names it.
    let noted: Vec<_> = record
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Finding { name, call_id, replaced } => {
                Some((name.as_str(), call_id.as_str(), *replaced))
            }
            _ => None,
        })
        .collect();
    assert_eq!(noted, [("birth", "call_1", false), ("birth", "call_2", true)]);
}

#[test]
fn facts_outlive_retention_and_passes() {
    let record = with_findings([
        calls([fact("a", "1")]),
        search("x"),
        text("It went wrong."),
        calls([fact("b", "2")]),
        text("Done."),
        boxed("42"),
    ])
    .keep(0)
    .compress(1)
    .max_turns(2)
    .run();
    let failed = record.requests_for(LlmPurpose::FailureSummary)[0];
    assert!(failed.all_text().contains("SUMMARY PROMPT\n\nFACTS: a"), "{}", failed.layout());
    let second = record.requests.iter().find(|request| request.pass == 2).unwrap();
    assert!(second.messages[0].joined_text().ends_with("FACTS: a"), "{}", second.layout());
    assert_eq!(record.requests.last().unwrap().last_text(), "FINAL PROMPT: QUESTION\n\nFACTS: a, b");
}

#[test]
fn a_fact_without_its_source_is_asked_for_again() {
    check(
        with_findings([
            calls([one("findings", "record_finding", json!({"name": "a", "text": "1"}))]),
            calls([fact("a", "1")]),
            text("Done."),
            boxed("42"),
        ]),
        "1 ask
         rollback tool_error (1)
         1 ask
         fact a
         recovered after 1
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 3, rollbacks 1
         answered: 42 (final_reply)",
    );
}

#[test]
fn at_once_means_up_to_the_next_fact() {
    check(
        with_findings([
            calls([google("a"), google("b"), fact("f", "1"), google("c")]),
            text("Done."),
            boxed("42"),
        ])
        .config(|config| config.tool_calls_per_turn = ToolCallsPerTurn::Parallel),
        "1 ask
         1 run web/google_search(q: a) | web/google_search(q: b)
         fact f
         1 run web/google_search(q: c)
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 2, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn without_the_setting_there_are_no_such_tools() {
    let system = |on: bool| {
        let case = Case::new([]).config(|config| config.findings = on);
        case.start().machine.system_prompt()
    };
    assert!(system(true).contains("record_finding") && system(true).contains("list_findings"));
    assert!(!system(false).contains("record_finding"));
    let record = Case::new([calls([fact("a", "1")]), text("Done."), boxed("42")]).run();
    assert_eq!(record.ran(), ["findings/record_finding(name: a, text: 1, source: https://a.org)"]);
    assert!(record.state.findings.is_empty());
}

#[test]
fn facts_are_part_of_the_written_state() {
    let case =
        || with_findings([calls([fact("a", "1"), google("x"), fact("b", "2")]), text("Done."), boxed("42")]);
    let (plain, written) = (case().run(), case().through_json().run());
    assert_eq!((plain.trace(), plain.events, plain.state), (written.trace(), written.events, written.state));
}
