//! Ids of calls: the model's own are kept, and each is unique in the run.

use std::collections::BTreeSet;

use core_protocol::Role;
use core_protocol::event::EventBody;

use crate::harness::{Case, Record};
use crate::script::{Call, boxed, calls, google, text};

fn named(id: &str, query: &str) -> Call {
    Call { id: Some(id.into()), ..google(query) }
}

fn started(record: &Record) -> Vec<String> {
    record
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolCallStarted { call_id, .. } => Some(call_id.clone()),
            _ => None,
        })
        .collect()
}

/// Ids that a model gives, turn by turn, and whether each is unique in log and request.
#[track_caller]
fn check_unique(turns: &[&[&str]]) {
    let replies = turns.iter().enumerate().map(|(turn, ids)| {
        calls(ids.iter().enumerate().map(|(index, id)| named(id, &format!("query {turn}.{index}"))))
    });
    // The harness checks that every request holds each id once, with its one result.
    let record = Case::new(replies.chain([text("Done."), boxed("42")])).native().run();
    let ids = started(&record);
    assert_eq!(ids.len(), turns.iter().map(|ids| ids.len()).sum::<usize>());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
}

#[test]
fn ids_of_a_model_are_kept() {
    let record =
        Case::new([calls([named("x", "a"), named("y", "b")]), text("Done."), boxed("42")]).native().run();
    assert_eq!(started(&record), ["x", "y"]);
    let results: Vec<Option<&str>> = record.requests[1]
        .messages
        .iter()
        .filter(|message| message.role == Role::Tool)
        .map(|message| message.tool_call_id.as_deref())
        .collect();
    assert_eq!(results, [Some("x"), Some("y")]);
}

#[test]
fn repeated_and_missing_ids_are_told_apart() {
    check_unique(&[&["call_0"], &["call_0"], &["call_0", "call_1"]]);
    check_unique(&[&["same", "same", "same"]]);
    check_unique(&[&["", ""], &[""]]);
}

#[test]
fn an_id_that_was_made_never_meets_one_that_was_given() {
    check_unique(&[&["call_1", ""]]);
    check_unique(&[&["", "call_1"]]);
    check_unique(&[&["x", "x", "x_2"]]);
    check_unique(&[&["x_2"], &["x"], &["x"]]);
}

#[test]
fn ids_in_text_are_unique_over_turns() {
    let record = Case::new([
        calls([google("a"), google("b")]),
        calls([google("c"), google("d")]),
        text("Done."),
        boxed("42"),
    ])
    .run();
    let ids = started(&record);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 4, "{ids:?}");
}
