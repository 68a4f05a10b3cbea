//! Files given with the question: they stand in the first message, in every pass.

use core_protocol::event::{LlmPurpose, StopReason};
use core_protocol::{ContentBlock, MediaSource};
use llm_providers::ToolProtocol;
use orchestrator::Task;

use crate::harness::Case;
use crate::script::{boxed, search, text};

fn task() -> Task {
    let source = MediaSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() };
    Task {
        question: "QUESTION".into(),
        attached_text: "\n\nFILE notes.md:\n# Notes".into(),
        attached_media: vec![ContentBlock::Image { source }],
        ..Task::question("")
    }
}

#[test]
fn the_first_message_holds_question_text_and_media() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        let record = Case::new([search("a"), search("b"), text("Done."), boxed("42")])
            .with(|case| case.task = task())
            .protocol(protocol)
            .keep(0)
            .run();
        for request in &record.requests {
            let first = &request.messages[0];
            let said = first.joined_text();
            assert!(said.starts_with("QUESTION"), "{said}");
            assert_eq!(said.matches("FILE notes.md:\n# Notes").count(), 1);
            assert!(first.content.iter().any(|block| matches!(block, ContentBlock::Image { .. })));
        }
        assert!(!record.requests_for(LlmPurpose::FinalAnswer)[0].last_text().contains("FILE"));
    }
}

#[test]
fn each_pass_is_given_the_files_again() {
    let record = Case::new([search("a"), text("It went wrong."), text("Done."), boxed("42")])
        .with(|case| case.task = task())
        .max_turns(1)
        .compress(1)
        .run();
    let second = record.requests_for(LlmPurpose::Turn)[1];
    let said = second.messages[0].joined_text();
    assert!(said.contains("QUESTION") && said.contains("[1: It went wrong.]"), "{said}");
    assert_eq!(said.matches("# Notes").count(), 1);
    assert!(second.messages[0].content.iter().any(|block| matches!(block, ContentBlock::Image { .. })));
}

#[test]
fn an_answer_that_is_forced_before_the_first_reply_knows_the_files() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        let mut runner = Case::new([boxed("42")]).with(|case| case.task = task()).protocol(protocol).start();
        runner.machine.limit_reached(StopReason::LimitWall);
        runner.finish();
        let record = runner.into_record();
        let asked = record.requests_for(LlmPurpose::FinalAnswer)[0];
        assert!(
            asked.all_text().contains("# Notes") && asked.all_text().contains("FINAL PROMPT"),
            "{}",
            asked.layout()
        );
        assert!(asked.messages[0].content.iter().any(|block| matches!(block, ContentBlock::Image { .. })));
    }
}
