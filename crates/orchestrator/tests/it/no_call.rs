//! A reply without a call: the end, a broken call, or a refusal; and what thinking may say.

use core_protocol::DialectName;
use core_protocol::event::StopReason;

use crate::harness::{Case, check};
use crate::script::{Reply, boxed, search, text, xml};

/// What follows from a first reply: `completed`, or the reason of the rollback.
#[track_caller]
fn check_reply(case: impl Fn(Vec<Reply>) -> Case, reply: &Reply, expected: &str) {
    let replies = match expected {
        "completed" => vec![reply.clone(), boxed("42")],
        _ => vec![reply.clone(), text("Done."), boxed("42")],
    };
    let record = case(replies).run();
    let decided = match record.decisions[1].as_str() {
        "ask for the answer" => "completed",
        other => other,
    };
    assert_eq!(decided, expected, "for {reply:?}");
    assert_eq!(record.outcome().stop_reason, Some(StopReason::Completed));
}

#[test]
fn tags_outside_thinking_are_a_format_error_and_inside_are_none() {
    let tags = [
        "<use_mcp_tool>",
        "</use_mcp_tool>",
        "<server_name>",
        "</server_name>",
        "<arguments>",
        "</arguments>",
    ];
    for tag in tags {
        for (reply, expected) in [
            (format!("The answer is 42, found with {tag} as told."), "rollback format_error (1)"),
            (format!("<think>First I plan.</think>Then I use {tag}."), "rollback format_error (1)"),
            (format!("<think>I could use {tag} here.</think>The answer is 42."), "completed"),
            (format!("I could use {tag} here.</think>The answer is 42."), "completed"),
        ] {
            check_reply(Case::new, &text(reply), expected);
        }
        let reply = text(format!("I could use {tag} here.</think>The answer is 42."));
        check_reply(
            |replies| Case::new(replies).with(|case| case.starts_in_thinking = true),
            &reply,
            "completed",
        );
    }
}

#[test]
fn blocks_that_cannot_be_read_are_a_format_error() {
    let whole = xml("web", "google_search", r#"{"q": "a"}"#);
    for reply in [
        whole.replace("</use_mcp_tool>", ""),
        whole.replace("</arguments>\n</use_mcp_tool>", ""),
        whole.replace(r#"{"q": "a"}"#, "no object at all"),
        whole.replace("<tool_name>google_search</tool_name>\n", ""),
    ] {
        check_reply(Case::new, &text(reply), "rollback format_error (1)");
    }
}

#[test]
fn a_call_inside_thinking_is_never_run() {
    let whole = xml("web", "google_search", r#"{"q": "a"}"#);
    let record =
        Case::new([text(format!("<think>Maybe {whole}</think>The answer is 42.")), boxed("42")]).run();
    assert!(record.ran().is_empty(), "{}", record.trace());
    let record = Case::new([text(format!("{whole} Hm.</think>The answer is 42.")), boxed("42")])
        .with(|case| case.starts_in_thinking = true)
        .run();
    assert!(record.ran().is_empty(), "{}", record.trace());
}

#[test]
fn each_dialect_has_tags_of_its_own() {
    for (dialect, reply, expected) in [
        (DialectName::Hermes, "I use <tool_call> for this.", "rollback format_error (1)"),
        (DialectName::Hermes, "The server is named in <server_name>.", "completed"),
        (DialectName::QwenXml, "I use <function=search> for this.", "rollback format_error (1)"),
        (DialectName::McpXml, "I use <tool_call> for this.", "completed"),
    ] {
        check_reply(|replies| Case::new(replies).with(|case| case.dialect = dialect), &text(reply), expected);
    }
}

#[test]
fn refusal_phrases_are_found_with_both_apostrophes_and_not_in_thinking() {
    for (reply, expected) in [
        ("I'm sorry, but I can't do this.", "rollback refusal (1)"),
        ("I’m sorry, but I can’t do this.", "rollback refusal (1)"),
        ("I'm sorry, I cannot solve this.", "rollback refusal (1)"),
        ("Given the time constraint I stop here.", "rollback refusal (1)"),
        ("<think>Easy.</think>I'm sorry, but I can't do this.", "rollback refusal (1)"),
        ("<think>Is there a time constraint? No.</think>It is 42.", "completed"),
        ("<think>I’m sorry, but I can’t say yet.</think>It is 42.", "completed"),
        ("A time constraint? None.</think>It is 42.", "completed"),
        ("I am sorry, it is 42.", "completed"),
        ("The constraint of time is loose. It is 42.", "completed"),
    ] {
        check_reply(Case::new, &text(reply), expected);
    }
    let thought = text("It is 42.").thinking("There is a time constraint and <use_mcp_tool> to think of.");
    check_reply(Case::new, &thought, "completed");
    check_reply(|replies| Case::new(replies).native(), &thought, "completed");
}

#[test]
fn a_format_error_is_looked_for_before_a_refusal() {
    let both = text("I'm sorry, but I can't use <use_mcp_tool>.");
    check_reply(Case::new, &both, "rollback format_error (1)");
}

#[test]
fn refusal_phrases_can_be_configured() {
    let configured =
        |replies| Case::new(replies).config(|config| config.refusal_phrases = vec!["no way".into()]);
    check_reply(configured, &text("There is no way."), "rollback refusal (1)");
    check_reply(configured, &text("There is a time constraint."), "completed");
}

#[test]
fn a_refusal_phrase_beside_a_call_is_no_refusal() {
    check(
        Case::new([
            search("a").saying("There is a time constraint, so I search."),
            text("Done."),
            boxed("42"),
        ]),
        "1 ask
         1 run web/google_search(q: a)
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 2, rollbacks 0
         answered: 42 (final_reply)",
    );
}

#[test]
fn refusals_end_the_loop_when_no_rollback_is_left() {
    let refusals = (0..5).map(|_| text("I'm sorry, I cannot solve this."));
    check(
        Case::new(refusals.chain([text("still no box"); 1]).chain([text("none"), text("none")])),
        "1 ask
         rollback refusal (1)
         1 ask
         rollback refusal (2)
         1 ask
         rollback refusal (3)
         1 ask
         rollback refusal (4)
         1 ask
         ask for the answer
         ask for the answer
         ask for the answer
         pass 1: refusal, turns 1, attempts 5, rollbacks 4
         no_answer",
    );
}

#[test]
fn an_end_on_the_last_allowed_turn_is_an_end() {
    check(
        Case::new([search("a"), boxed("42"), boxed("42")]).max_turns(2).compress(3),
        "1 ask
         1 run web/google_search(q: a)
         2 ask
         box 42
         ask for the answer
         pass 1: completed, turns 2, attempts 2, rollbacks 0
         answered: 42 (final_reply)",
    );
}
