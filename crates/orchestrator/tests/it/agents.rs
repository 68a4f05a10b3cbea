//! Sub-agents, seen from both sides: the agent that calls one, and the one that is called.

use core_protocol::event::{EventBody, LlmPurpose, PassSummary, StopReason, ToolCallCounts, UsageTotals};
use llm_providers::ToolProtocol;
use orchestrator::config::ToolCallsPerTurn;
use orchestrator::machine::ToolReport;
use orchestrator::machine::state::{Executor, PlannedCall};
use orchestrator::{Finding, SubAgentReport};
use serde_json::json;

use crate::harness::{Case, Step, check};
use crate::script::{
    Call, Reply, boxed, broken, call, calls, failed, google, obedient_tool, offered_tools, one, permanent,
    search, success, text, too_long,
};

fn ask_agent(subtask: &str) -> Call {
    one("agent-browsing", "search_and_browse", json!({ "subtask": subtask }))
}

fn nested(input: u64) -> SubAgentReport {
    SubAgentReport {
        summary: PassSummary { stop_reason: StopReason::Completed, turns: 2, call_attempts: 2, rollbacks: 0 },
        usage: UsageTotals { input, output: 1, ..UsageTotals::default() },
        tool_calls: ToolCallCounts { total: 3, failed: 1, by_tool: [("google_search".to_owned(), 3)].into() },
        findings: vec![Finding {
            name: "from below".into(),
            text: "t".into(),
            source: "https://a.org".into(),
            quote: String::new(),
        }],
        sources: vec!["https://a.org".into()],
    }
}

/// Agents that report; `fail` in the subtask makes them fail. Other calls go to the obedient tools.
fn agents_report(planned: &PlannedCall) -> ToolReport {
    match &planned.executor {
        Executor::SubAgent { id, subtask } if subtask.contains("fail") => ToolReport {
            sub_agent: Some(Box::new(nested(10))),
            ..failed("sub_agent_failed", false, format!("{id} could not"))
        },
        Executor::SubAgent { id, subtask } => {
            ToolReport { sub_agent: Some(Box::new(nested(10))), ..success(format!("{id} on {subtask}")) }
        }
        Executor::Tools => obedient_tool(planned, &offered_tools()),
        Executor::Own => unreachable!("the machine runs these itself"),
    }
}

fn with_agents(replies: impl IntoIterator<Item = Reply>) -> Case {
    Case::new(replies).with_agent("agent-browsing").tool(agents_report)
}

#[test]
fn a_call_to_an_agent_is_a_tool_call_with_an_agent_in_it() {
    for protocol in [ToolProtocol::Text, ToolProtocol::Native] {
        let record = check(
            with_agents([calls([ask_agent("A")]), calls([ask_agent("B")]), text("Done."), boxed("42")])
                .protocol(protocol),
            "1 ask
             begin agent-browsing-1
             1 run agent-browsing/search_and_browse(subtask: A)
             end agent-browsing-1 completed
             2 ask
             begin agent-browsing-2
             2 run agent-browsing/search_and_browse(subtask: B)
             end agent-browsing-2 completed
             3 ask
             ask for the answer
             pass 1: completed, turns 3, attempts 3, rollbacks 0
             answered: 42 (final_reply)",
        );
        assert!(record.requests[1].all_text().contains("agent-browsing-1 on A"));
        assert_eq!(record.state.nested.agents, 2);
        assert_eq!(record.state.nested.usage.input, 20);
        assert_eq!((record.state.tool_calls.total, record.state.nested.tool_calls.total), (2, 6));
        assert_eq!(record.state.nested.tool_calls.by_tool["google_search"], 6);
    }
}

#[test]
fn the_figures_of_the_main_agent_are_what_they_were() {
    let record = with_agents([calls([ask_agent("A")]).usage(700, 10), text("Done."), boxed("42")]).run();
    let checked = record.events.iter().find_map(|event| match &event.body {
        EventBody::ContextChecked { estimated, .. } => Some(*estimated),
        _ => None,
    });
    assert_eq!(checked, Some(700 + 10 + 4_096 + 1_000));
}

#[test]
fn agents_work_at_once_and_one_failure_is_a_result() {
    let case =
        with_agents([calls([ask_agent("A"), google("x"), ask_agent("fail")]), text("Done."), boxed("42")])
            .config(|config| config.tool_calls_per_turn = ToolCallsPerTurn::Parallel);
    let record = check(
        case,
        "1 ask
         begin agent-browsing-1
         begin agent-browsing-2
         1 run agent-browsing/search_and_browse(subtask: A) | web/google_search(q: x) | agent-browsing/search_and_browse(subtask: fail)
         end agent-browsing-1 completed
         end agent-browsing-2 completed
         2 ask
         ask for the answer
         pass 1: completed, turns 2, attempts 2, rollbacks 0
         answered: 42 (final_reply)",
    );
    assert!(record.requests[1].all_text().contains("agent-browsing-2 could not"));
    assert_eq!((record.state.tool_calls.total, record.state.tool_calls.failed), (3, 1));
}

#[test]
fn the_same_subtask_is_not_given_twice_and_a_dropped_call_uses_no_number() {
    check(
        with_agents([
            calls([ask_agent("A")]),
            calls([ask_agent("A")]),
            calls([ask_agent("B")]),
            text("Done."),
            boxed("42"),
        ]),
        "1 ask
         begin agent-browsing-1
         1 run agent-browsing/search_and_browse(subtask: A)
         end agent-browsing-1 completed
         2 ask
         rollback duplicate_query (1)
         2 ask
         begin agent-browsing-2
         2 run agent-browsing/search_and_browse(subtask: B)
         end agent-browsing-2 completed
         recovered after 1
         3 ask
         ask for the answer
         pass 1: completed, turns 3, attempts 4, rollbacks 1
         answered: 42 (final_reply)",
    );
}

#[test]
fn calls_that_no_agent_can_carry_out_are_told_so() {
    for (reply, expected, rolled_back) in [
        (call("agent-reading", "search_and_browse", json!({"subtask": "A"})), "agent-browsing", false),
        (call("agent-reading", "read", json!({})), "There are: web, jina, tool-python", false),
        (call("agent-browsing", "search_and_browse", json!({})), "`subtask` is missing", true),
        (call("agent-browsing", "search_and_browse", json!({"subtask": " "})), "`subtask` is missing", true),
        (call("agent-browsing", "search_and_browse", json!({"subtask": 3})), "must be a text", true),
        (call("agent-browsing", "browse", json!({"subtask": "A"})), "Unknown tool: browse", true),
    ] {
        let record = with_agents([reply, text("Done."), boxed("42")]).run();
        let finished = record.events.iter().find_map(|event| match &event.body {
            EventBody::ToolCallFinished { result, .. } => Some(result.joined_text()),
            _ => None,
        });
        // A tool of a name that one server alone offers is sent there.
        if let Some(finished) = finished.filter(|text| !text.contains("agent-browsing-1 on A")) {
            assert!(finished.contains(expected), "{finished}");
            assert_eq!(record.state.rollbacks.tool_error, u32::from(rolled_back), "{finished}");
        }
    }
}

#[test]
fn what_an_agent_found_belongs_to_the_run() {
    let record = with_agents([calls([ask_agent("A")]), text("Done."), text("The report https://a.org.")])
        .config(|config| {
            config.findings = true;
            config.answer_format = orchestrator::config::AnswerFormat::Report;
        })
        .run();
    assert_eq!(record.state.findings.len(), 1);
    assert!(record.requests.last().unwrap().last_text().contains("FACTS: from below"));
    assert_eq!(record.outcome().answer.as_deref(), Some("The report https://a.org."));
}

#[test]
fn an_agent_ends_in_a_report() {
    for (replies, expected, answer) in [
        (
            vec![search("a"), text("I found it."), text("<think>So.</think>It is 1571, see a.org.")],
            "AGENT REPORT PROMPT: QUESTION",
            Some("It is 1571, see a.org."),
        ),
        // A box is nothing special here, and a call beside the report is not run.
        (
            vec![text("Done."), search("b").saying("It is \\boxed{1}.")],
            "AGENT REPORT PROMPT: QUESTION",
            Some("It is \\boxed{1}."),
        ),
        // A report that cannot be had is made up for by what the loop said at its end.
        (
            vec![text("It is 1571."), too_long(), too_long()],
            "AGENT REPORT PROMPT: QUESTION",
            Some("It is 1571."),
        ),
        (vec![text("It is 1571."), permanent()], "AGENT REPORT PROMPT: QUESTION", Some("It is 1571.")),
        (vec![text("<think>Hm.</think>"), permanent()], "AGENT REPORT PROMPT: QUESTION", None),
        (vec![permanent()], "SUBTASK: QUESTION", None),
    ] {
        let record = Case::new(replies).sub_agent("agent-browsing-3").run();
        assert!(record.requests.last().unwrap().all_text().contains(expected));
        assert_eq!(record.outcome().answer.as_deref(), answer);
        let notes =
            record.events.iter().filter(|event| matches!(event.body, EventBody::IntermediateAnswer { .. }));
        assert_eq!(notes.count(), 0);
    }
}

#[test]
fn an_agent_that_runs_out_of_turns_reports_all_the_same() {
    let record = Case::new([search("a"), search("b"), text("What I have so far.")])
        .sub_agent("agent-browsing-1")
        .compress(3)
        .with(|case| case.config = case.config.for_sub_agent())
        .max_turns(2)
        .run();
    assert_eq!(record.state.passes[0].stop_reason, StopReason::MaxTurns);
    assert_eq!(record.outcome().answer.as_deref(), Some("What I have so far."));
}

#[test]
fn ids_of_an_agent_are_its_own() {
    let record = Case::new([search("a"), broken(), text("Done."), text("Report.")])
        .sub_agent("agent-browsing-2")
        .run();
    for event in &record.events {
        match &event.body {
            EventBody::Message { id, .. } => assert!(id.starts_with("agent-browsing-2.m"), "{id}"),
            EventBody::ToolCallStarted { call_id, .. } => assert_eq!(call_id, "agent-browsing-2.call_0"),
            EventBody::Rollback { dropped, .. } => assert!(dropped.starts_with("agent-browsing-2.m")),
            _ => {}
        }
    }
    // The model knows its calls by its own ids.
    let native =
        Case::new([search("a"), text("Done."), text("Report.")]).sub_agent("agent-browsing-2").native().run();
    assert!(native.requests[1].layout().contains("tool n0.0:"), "{}", native.requests[1].layout());
}

#[test]
fn the_requests_of_an_agent() {
    let record = Case::new([search("a"), search("b"), text("Done."), text("Report.")])
        .sub_agent("agent-browsing-1")
        .keep(1)
        .run();
    let turns = record.requests_for(LlmPurpose::Turn);
    insta::assert_snapshot!(turns[0].layout(), @"user: SUBTASK: QUESTION");
    insta::assert_snapshot!(turns[2].layout(), @r#"
    user: SUBTASK: QUESTION
    assistant: [web/google_search(q: a)]
    user: (omitted)
    assistant: [web/google_search(q: b)]
    user: {"organic":[{"title":"About b"}]}
    "#);
    insta::assert_snapshot!(record.requests_for(LlmPurpose::FinalAnswer)[0].layout(), @r"
    user: SUBTASK: QUESTION
    assistant: [web/google_search(q: a)]
    user: (omitted)
    assistant: [web/google_search(q: b)]
    user: (omitted)
    assistant: Done.
    user: AGENT REPORT PROMPT: QUESTION
    ");
}

#[test]
fn the_requests_of_the_agent_that_calls() {
    let record = with_agents([calls([ask_agent("A")]), text("Done."), boxed("42")]).run();
    insta::assert_snapshot!(record.requests_for(LlmPurpose::FinalAnswer)[0].layout(), @r"
    user: QUESTION
    assistant: [agent-browsing/search_and_browse(subtask: A)]
    user: agent-browsing-1 on A
    assistant: Done.
    user: FINAL PROMPT: QUESTION FACTS: from below
    ");
    let system = with_agents([]).start().machine.system_prompt();
    assert!(system.contains("## Server name: agent-browsing") && system.contains("search_and_browse"));
}

#[test]
fn a_run_with_agents_goes_on_from_its_written_state() {
    let case = || {
        with_agents([
            calls([ask_agent("A"), google("x")]),
            calls([ask_agent("A")]),
            calls([ask_agent("fail")]),
            text("Done."),
            boxed("42"),
        ])
    };
    let (plain, written) = (case().run(), case().through_json().run());
    assert_eq!(plain.trace(), written.trace());
    assert_eq!(plain.events, written.events);
    assert_eq!(plain.state, written.state);
}

#[test]
fn calls_that_are_cut_off_count() {
    let mut runner = with_agents([calls([ask_agent("A")]), boxed("42")]).start();
    runner.step();
    let Step::CallTools(calls) = runner.next_step() else { panic!("a call") };
    runner.machine.tools_cut_off(&calls);
    runner.machine.cancel();
    runner.finish();
    let record = runner.into_record();
    assert_eq!((record.state.tool_calls.total, record.state.tool_calls.failed), (1, 1));
    assert_eq!(record.state.tool_calls.by_tool["search_and_browse"], 1);
    assert_eq!(record.state.nested.agents, 1);
    let finished = record.events.iter().any(|event| matches!(event.body, EventBody::ToolCallFinished { .. }));
    assert!(!finished, "a call without an end is told without one");
}
