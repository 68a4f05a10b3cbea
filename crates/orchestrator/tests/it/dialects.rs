//! Whole turns in the dialects of text, and calls that stand in the wrong protocol.

use core_protocol::DialectName;
use core_protocol::event::LlmPurpose;

use crate::harness::{Case, check};
use crate::script::{Reply, boxed, text, xml};

fn written_in(dialect: DialectName) -> Reply {
    text(match dialect {
        DialectName::Hermes => {
            r#"<tool_call>{"name": "google_search", "arguments": {"q": "a", "gl": null}}</tool_call>"#
                .to_owned()
        }
        DialectName::QwenXml => {
            "<tool_call>\n<function=google_search>\n<parameter=q>\na\n</parameter>\n</function>\n</tool_call>"
                .to_owned()
        }
        DialectName::McpXml | DialectName::Auto => xml("web", "google_search", r#"{"q": "a"}"#),
    })
}

#[test]
fn each_dialect_runs_a_turn() {
    for (dialect, in_results) in [
        (DialectName::McpXml, None),
        (DialectName::Hermes, Some("<tool_response>")),
        (DialectName::QwenXml, Some("<tool_response>")),
        (DialectName::Auto, None),
    ] {
        let record = check(
            Case::new([written_in(dialect), written_in(dialect), text("Done."), boxed("42")])
                .with(|case| case.dialect = dialect),
            "1 ask
             1 run web/google_search(q: a)
             2 ask
             rollback duplicate_query (1)
             2 ask
             ask for the answer
             pass 1: completed, turns 2, attempts 3, rollbacks 1
             answered: 42 (final_reply)",
        );
        let results = record.requests[1].last_text();
        assert!(results.contains("About a"), "{results}");
        assert_eq!(results.contains("<tool_response>"), in_results.is_some(), "{results}");
    }
}

#[test]
fn auto_reads_whichever_dialect_stands_there() {
    for dialect in [DialectName::McpXml, DialectName::Hermes, DialectName::QwenXml] {
        let record = Case::new([written_in(dialect), text("Done."), boxed("42")])
            .with(|case| case.dialect = DialectName::Auto)
            .run();
        assert_eq!(record.ran(), ["web/google_search(q: a)"]);
    }
}

#[test]
fn a_call_written_as_text_where_native_calls_are_due_is_no_end() {
    for reply in [
        xml("web", "google_search", r#"{"q": "a"}"#),
        xml("web", "google_search", "no object at all"),
        "I use <use_mcp_tool> now.".to_owned(),
    ] {
        let mut runner =
            Case::new([text(reply.clone()), text("Done."), boxed("42"), boxed("42")]).native().start();
        runner.finish();
        let record = runner.into_record();
        assert_eq!(record.requests_for(LlmPurpose::Turn).len(), 2, "for {reply}\n{}", record.trace());
        assert_eq!(record.state.rollbacks.format_error, 1, "for {reply}");
    }
}
