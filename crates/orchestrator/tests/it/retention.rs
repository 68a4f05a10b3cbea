//! Which results a request shows, over whole runs; the stored history is never changed by it.

use core_protocol::event::LlmPurpose;
use core_protocol::{Message, Role};
use llm_providers::ToolProtocol;

use crate::harness::{Case, Record, Request};
use crate::script::{Reply, boxed, broken, calls, google, search, text};
use crate::shown::OMITTED;

/// Turns whose results a request shows in full and in which they are omitted, by number from 1. Every result must be
/// one or the other as a whole.
fn shown_and_omitted(request: &Request) -> (Vec<usize>, Vec<usize>) {
    let (mut shown, mut omitted) = (Vec::new(), Vec::new());
    let mut turn = 0;
    for message in request.messages.iter().skip(1) {
        match message.role {
            Role::Assistant => turn += 1,
            Role::User if message.joined_text().starts_with("FINAL PROMPT") => {}
            Role::User | Role::Tool => {
                let list = if message.joined_text() == OMITTED { &mut omitted } else { &mut shown };
                if list.last() != Some(&turn) {
                    list.push(turn);
                }
            }
            Role::System => panic!("a system message in the history"),
        }
    }
    (shown, omitted)
}

/// One turn of a long run: sometimes two calls, sometimes a rollback before it.
fn turn_replies(turn: usize) -> Vec<Reply> {
    let mut replies = Vec::new();
    if turn.is_multiple_of(10) {
        replies.push(broken());
    }
    replies.push(if turn.is_multiple_of(7) {
        calls([google(&format!("query {turn}")), google(&format!("more {turn}"))])
    } else {
        search(&format!("query {turn}"))
    });
    replies
}

#[track_caller]
fn check_turns(protocol: ToolProtocol, keep: i64, turns: usize) -> Record {
    let replies = (1..=turns).flat_map(turn_replies).chain([boxed("42")]);
    let record = Case::new(replies).protocol(protocol).keep(keep).max_turns(turns as u32).run();
    let context = format!("{protocol:?}, keep {keep}");
    let kept = usize::try_from(keep).unwrap_or(usize::MAX);
    for request in record.requests_for(LlmPurpose::Turn) {
        let before = request.turn as usize - 1;
        let first_shown = before.saturating_sub(kept) + 1;
        let (shown, omitted) = shown_and_omitted(request);
        assert_eq!(shown, (first_shown..=before).collect::<Vec<_>>(), "{context}, turn {}", request.turn);
        assert_eq!(omitted, (1..first_shown).collect::<Vec<_>>(), "{context}, turn {}", request.turn);
        check_assistants(&request.messages, before);
    }
    let stored: Vec<String> =
        record.state.pass.history.iter().map(|entry| entry.message.joined_text()).collect();
    assert!(stored.iter().all(|text| text != OMITTED), "the stored history is left as it was");
    assert!(stored.iter().any(|text| text.contains("About query 1\"")));
    record
}

/// The prompt counts as one of the newest `keep`, and is shown whatever `keep` is.
#[track_caller]
fn check_final(protocol: ToolProtocol, keep: i64, turns: usize) {
    let record = check_turns(protocol, keep, turns);
    let context = format!("{protocol:?}, keep {keep}");
    let kept = usize::try_from(keep).unwrap_or(usize::MAX);
    let request = record.requests_for(LlmPurpose::FinalAnswer)[0];
    // With calls in text the prompt takes the place of the last results.
    let before = if protocol == ToolProtocol::Text { turns - 1 } else { turns };
    let first_shown = before.saturating_sub(kept.saturating_sub(1)) + 1;
    let (shown, omitted) = shown_and_omitted(request);
    assert_eq!(shown, (first_shown..=before).collect::<Vec<_>>(), "{context}, the final answer");
    assert_eq!(omitted, (1..first_shown).collect::<Vec<_>>(), "{context}, the final answer");
    assert_eq!(request.last_text(), "FINAL PROMPT: QUESTION");
}

fn check_assistants(messages: &[std::sync::Arc<Message>], turns: usize) {
    assert_eq!(messages.iter().filter(|message| message.role == Role::Assistant).count(), turns);
    assert_eq!(messages[0].joined_text(), "QUESTION");
}

const SETTINGS: [i64; 7] = [-1, 0, 1, 2, 3, 5, 100];

#[test]
fn turns_show_the_newest_results() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        for keep in SETTINGS {
            check_turns(protocol, keep, 12);
        }
    }
}

#[test]
fn the_final_prompt_counts_with_calls_in_text() {
    for keep in SETTINGS {
        check_final(ToolProtocol::Text, keep, 12);
    }
}

#[test]
fn the_final_prompt_counts_with_native_calls() {
    for keep in SETTINGS {
        check_final(ToolProtocol::Native, keep, 12);
    }
}

#[test]
fn two_hundred_turns_with_the_newest_five() {
    check_final(ToolProtocol::Text, 5, 200);
    check_turns(ToolProtocol::Native, 5, 200);
}

#[test]
fn an_omitted_native_result_still_belongs_to_its_call() {
    let record = Case::new([calls([google("a"), google("b")]), search("c"), text("Done."), boxed("42")])
        .native()
        .keep(1)
        .run();
    let shown = &record.requests[2].messages;
    for (index, call) in shown[1].tool_calls.iter().enumerate() {
        let result = &shown[2 + index];
        assert_eq!(result.joined_text(), OMITTED);
        assert_eq!(result.tool_call_id.as_deref(), Some(call.id.as_str()));
        assert_eq!(result.name, record.requests[1].messages[2 + index].name);
    }
}

#[test]
fn a_reply_without_results_counts_as_none() {
    // The last reply has no results: two turns have.
    let record = Case::new([search("a"), search("b"), text("Done."), boxed("42")]).keep(2).run();
    let (shown, omitted) = shown_and_omitted(record.requests_for(LlmPurpose::FinalAnswer)[0]);
    assert_eq!((shown, omitted), (vec![2], vec![1]), "the prompt is one of the two");
}
