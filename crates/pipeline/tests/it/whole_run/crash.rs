//! A run that is cut off anywhere goes on as if nothing had been.

use core_protocol::event::EventBody;
use pipeline::log::{LOG_NAME, RunRecord};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::support::{Lab, Shown, call, check_same, count, cut, essence, interrupted, search};

const TURNS: usize = 60;

/// Sixty turns of searches with a broken call, a repeated query and an unreadable page among them.
fn long_script(shown: &Shown) -> String {
    match shown.replies {
        _ if shown.is_last() => "It is \\boxed{60}.".to_owned(),
        _ if shown.hurry => "I know it now.".to_owned(),
        7 if !shown.hinted => "<use_mcp_tool>\n<server_name>research".to_owned(),
        20 if !shown.hinted => search("query 5"),
        30 => call("research", "scrape_website", &json!({ "url": "https://example.org/a", "size": 90_000 })),
        turn if turn < TURNS => format!("So far \\boxed{{{turn}}}. {}", search(&format!("query {turn}"))),
        _ => "I know it now.".to_owned(),
    }
}

fn long_lab() -> Lab {
    Lab::new(
        long_script,
        &["agent.main_agent.max_turns=100", "agent.keep_tool_result=5", "agent.rollback_hint=true"],
    )
}

/// Cuts a run in many places, goes on with each, and compares all with the run that was not cut.
async fn check_cuts(
    lab: &Lab,
    question: &str,
    (share, shares): (usize, usize),
    essence: impl Fn(&RunRecord) -> Vec<String>,
) {
    let whole = lab.ask(question).await;
    assert_eq!(whole.summary.answer.as_deref(), Some("60"), "{:?}", whole.summary);
    let record = RunRecord::read(&whole.run_dir).unwrap();
    let expected = essence(&record);
    let (asked, called) = (lab.asked(), lab.calls().len());
    let log = std::fs::read(whole.run_dir.join(LOG_NAME)).unwrap();
    let mut end = 0;
    let mut ends = Vec::new();
    for (index, line) in log.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if index % 10 == 9 {
            ends.push(end + line.len() / 2);
        }
        end += line.len();
        ends.push(end);
    }
    // After the last event the run is finished.
    ends.pop();
    assert!(ends.len() > 50);
    for (index, bytes) in ends.into_iter().enumerate().filter(|(index, _)| index % shares == share) {
        lab.forget();
        let home = tempfile::tempdir().unwrap();
        let dir = cut(&whole.run_dir, bytes, &home.path().join("run"));
        let (before, made) = match RunRecord::read(&dir) {
            Ok(before) => (count(&before), calls_made(&before)),
            Err(error) => {
                assert_eq!(error.kind(), "empty_log", "{error}");
                continue;
            }
        };
        let ended = |name: &str| before.get(name).copied().unwrap_or(0);
        // Most of them only to the next end, or this would take minutes.
        let to_the_end = index % 14 == 0 || shares == 1;
        lab.model.hurry.store(!to_the_end, std::sync::atomic::Ordering::Relaxed);
        let report = lab.resume(&dir).await;
        assert_eq!(report.summary.answer.as_deref(), Some("60"), "cut {index}");
        let resumed = RunRecord::read(&dir).unwrap();
        assert_eq!(resumed.torn_bytes, 0);
        if !to_the_end {
            let counts = count(&resumed);
            let after = |name: &str| counts.get(name).copied().unwrap_or(0);
            assert_eq!(after("llm_response"), ended("llm_response") + lab.asked(), "cut {index}");
            let calls = after("tool_call_finished") - ended("tool_call_finished");
            assert_eq!((lab.calls().len(), calls), (calls, calls.min(1)), "cut {index}");
            assert!(lab.asked() <= 3, "cut {index}: {} calls of the model", lab.asked());
            continue;
        }
        assert_eq!(lab.asked(), asked - ended("llm_response"), "cut {index}: calls of the model");
        assert_eq!(lab.calls().len(), called - made, "cut {index}: calls of tools");
        check_same(&essence(&resumed), &expected, &format!("cut {index}"));
    }
}

/// Calls of tools that ended, but for those that the run itself answers.
fn calls_made(record: &RunRecord) -> usize {
    let own: Vec<&str> = record
        .valid_events()
        .filter_map(|event| match &event.body {
            EventBody::ToolCallStarted { call_id, server, .. } if server == "findings" => {
                Some(call_id.as_str())
            }
            _ => None,
        })
        .collect();
    let ended = record.valid_events().filter(|event| match &event.body {
        EventBody::ToolCallFinished { call_id, .. } => !own.contains(&call_id.as_str()),
        _ => false,
    });
    ended.count()
}

/// For runs in which things happen at once: they are interleaved differently each time.
fn sorted(record: &RunRecord) -> Vec<String> {
    let mut lines = essence(record);
    lines.sort();
    lines
}

macro_rules! shares {
    ($($name:ident $share:literal)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            check_cuts(&long_lab(), "How many turns?", ($share, 10), essence).await;
        }
    )*};
}

shares! {
    sixty_turns_cut_anywhere_1 0
    sixty_turns_cut_anywhere_2 1
    sixty_turns_cut_anywhere_3 2
    sixty_turns_cut_anywhere_4 3
    sixty_turns_cut_anywhere_5 4
    sixty_turns_cut_anywhere_6 5
    sixty_turns_cut_anywhere_7 6
    sixty_turns_cut_anywhere_8 7
    sixty_turns_cut_anywhere_9 8
    sixty_turns_cut_anywhere_10 9
}

/// Three passes, calls at once, failure summaries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passes_and_parallel_calls_cut_anywhere() {
    let script = |shown: &Shown| {
        let third = shown.first.contains("## Attempt 2");
        if shown.last.contains("Failure type") && !shown.is_last() {
            return "<think>Hm.</think>It went nowhere.".to_owned();
        }
        match shown.replies {
            _ if shown.is_last() && third => "It is \\boxed{60}.".to_owned(),
            _ if shown.is_last() => "I do not know.".to_owned(),
            turn if turn < 4 => {
                let query = |part: &str| search(&format!("{} {turn} {part}", shown.first.len()));
                format!("{}\n{}\n{}", query("a"), query("b"), query("c"))
            }
            _ => "That is all.".to_owned(),
        }
    };
    let lab = Lab::new(
        script,
        &["agent.tool_calls_per_turn=parallel", "agent.context_compress_limit=2", "agent.keep_tool_result=1"],
    );
    check_cuts(&lab, "Who?", (0, 1), sorted).await;
}

/// The older part of the conversation is summed up again and again, facts are kept apart, tools come and go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn summaries_and_findings_cut_anywhere() {
    let script = |shown: &Shown| {
        let seen = shown.digest;
        match shown.replies {
            _ if shown.last.contains("sum up this conversation") => {
                format!("Summed up at {seen}: nothing was found. Sources: none.")
            }
            _ if shown.is_last() => "It is \\boxed{60}.".to_owned(),
            replies if replies % 3 == 1 => {
                let fact = json!({ "name": format!("at {seen}"), "text": "nothing", "source": "https://example.org" });
                call("findings", "record_finding", &fact)
            }
            replies => search(&format!("{replies} {seen}")),
        }
    };
    let lab = Lab::new(
        script,
        &[
            "agent.main_agent.max_turns=8",
            "agent.summarize_every=2",
            "agent.findings=true",
            "agent.keep_tool_result=1",
            "agent.tool_selection=[{server: research, tools: [scrape_website], from_turn: 4}]",
        ],
    );
    let whole = lab.ask("Who?").await;
    let record = RunRecord::read(&whole.run_dir).unwrap();
    let counts = count(&record);
    assert!(counts["compressed"] >= 2 && counts["finding"] >= 1, "{counts:?}");
    lab.forget();
    check_cuts(&lab, "Who?", (0, 1), essence).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sub_agents_cut_anywhere() {
    let script = |shown: &Shown| {
        let is_sub_agent = !shown.system.contains("agent-browsing");
        match (is_sub_agent, shown.replies) {
            (false, _) if shown.is_last() => "It is \\boxed{60}.".to_owned(),
            (true, turn) if turn < 3 => search(&format!("{} {turn}", shown.first.len())),
            (true, _) => "The report: found.".to_owned(),
            (false, turn) if turn < 2 => {
                let task = |name: &str| {
                    let subtask = format!("Find {name} {}", "x".repeat(turn + name.len()));
                    call("agent-browsing", "search_and_browse", &json!({ "subtask": subtask }))
                };
                format!("{}\n{}", task("a"), task("bcd"))
            }
            (false, _) => "That is all.".to_owned(),
        }
    };
    let lab = Lab::new(
        script,
        &[
            "agent.tool_calls_per_turn=parallel",
            "agent.sub_agents={agent-browsing: {tools: [research], max_turns: 10}}",
        ],
    );
    let whole = lab.ask("Who?").await;
    assert_eq!((whole.summary.answer.as_deref(), whole.summary.sub_agents), (Some("60"), 4));
    let record = RunRecord::read(&whole.run_dir).unwrap();
    let (expected, asked, called) = (sorted(&record), lab.asked(), lab.calls().len());
    let log = std::fs::read(whole.run_dir.join(LOG_NAME)).unwrap();
    let mut end = 0;
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    for line in &lines[..lines.len() - 1] {
        end += line.len();
        lab.forget();
        let home = tempfile::tempdir().unwrap();
        let dir = cut(&whole.run_dir, end, &home.path().join("run"));
        let before = count(&RunRecord::read(&dir).unwrap());
        let report = lab.resume(&dir).await;
        assert_eq!(report.summary.answer.as_deref(), Some("60"));
        assert_eq!(report.summary.usage, whole.summary.usage);
        assert_eq!(report.summary.sub_agents, 4);
        assert_eq!(lab.asked(), asked - before.get("llm_response").unwrap_or(&0), "at byte {end}");
        let research_calls = RunRecord::read(&dir).unwrap();
        check_same(&sorted(&research_calls), &expected, &format!("at byte {end}"));
        assert!(lab.calls().len() <= called);
    }
}

#[tokio::test]
async fn a_call_that_must_not_be_made_twice_is_not() {
    let script = |shown: &Shown| match shown.replies {
        0 => call("research", "send_mail", &json!({ "to": "ada" })),
        1 if shown.last.contains("its outcome is unknown") => "So it is \\boxed{unknown}.".to_owned(),
        1 => "It is \\boxed{sent}.".to_owned(),
        _ if shown.last.contains("\\boxed{") => "It is \\boxed{told}.".to_owned(),
        _ => "?".to_owned(),
    };
    for (set, expected) in [
        (None, 0),
        (Some("tools.servers={research: {repeatable: true}}"), 1),
        (Some("tools.servers={research: {repeatable: false}}"), 0),
    ] {
        let lab = Lab::new(script, set.as_slice());
        let whole = lab.ask("Who?").await;
        let log = std::fs::read_to_string(whole.run_dir.join(LOG_NAME)).unwrap();
        let started = log.lines().position(|line| line.contains("\"tool_call_started\"")).unwrap();
        let bytes: usize = log.split_inclusive('\n').take(started + 1).map(str::len).sum();
        lab.forget();
        let dir = cut(&whole.run_dir, bytes, &lab.dir.path().join("cut"));
        lab.resume(&dir).await;
        assert_eq!(lab.calls().len(), expected, "{set:?}");
        let record = RunRecord::read(&dir).unwrap();
        let told = essence(&record).iter().any(|line| line.contains("outcome_unknown"));
        assert_eq!(told, expected == 0);
    }
}

#[tokio::test]
async fn a_run_that_was_stopped_goes_on() {
    let lab = long_lab();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let observer = Box::new(move |event: &core_protocol::event::Event, _: &str| {
        if event.turn == 9 {
            stop.cancel();
        }
    });
    let question = pipeline::Question { text: "How many turns?".to_owned(), ..Default::default() };
    let stopped = lab.pipeline().ask(question, cancel, Some(observer)).await.unwrap();
    assert_eq!(stopped.summary.status, core_protocol::event::RunStatus::Cancelled);
    let report = lab.resume(&stopped.run_dir).await;
    assert_eq!(report.summary.answer.as_deref(), Some("60"));
    let whole = long_lab();
    let other = whole.ask("How many turns?").await;
    assert_eq!(report.summary.turns, other.summary.turns);
    assert_eq!(report.summary.passes, other.summary.passes);
    // A request in flight was given up and is asked again; every reply that came is used.
    assert!(lab.asked() <= whole.asked() + 1);
    let record = RunRecord::read(&stopped.run_dir).unwrap();
    check_same(&essence(&record), &essence(&RunRecord::read(&other.run_dir).unwrap()), "stopped");
}

#[tokio::test]
async fn a_run_driven_again_from_its_log_needs_nobody() {
    let lab = long_lab();
    let whole = lab.ask("How many turns?").await;
    lab.forget();
    let record = RunRecord::read(&whole.run_dir).unwrap();
    let events = record.events.len();
    let again = pipeline::Interrupted::again(record).unwrap();
    let replayed = lab.pipeline().replay(again).await.unwrap();
    assert_eq!((replayed.events, replayed.finished), (events - 1, true));
    assert_eq!((lab.asked(), lab.calls().len()), (0, 0));
    // A run that was cut, after whatever event, ends where its log does.
    let log = std::fs::read(whole.run_dir.join(LOG_NAME)).unwrap();
    let ends = log.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    for (number, end) in ends.take(60).enumerate() {
        let dir = cut(&whole.run_dir, end, &lab.dir.path().join(format!("cut{number}")));
        let again = pipeline::Interrupted::again(RunRecord::read(&dir).unwrap()).unwrap();
        let replayed = lab.pipeline().replay(again).await.unwrap();
        assert!(!replayed.finished && replayed.events <= number, "{number}: {replayed:?}");
    }
}

#[tokio::test]
async fn a_run_of_another_configuration_departs_loudly_and_changes_nothing() {
    let lab = long_lab();
    let whole = lab.ask("How many turns?").await;
    let log = std::fs::read(whole.run_dir.join(LOG_NAME)).unwrap();
    let dir = cut(&whole.run_dir, log.len() / 2, &lab.dir.path().join("cut"));
    let other = Lab::new(long_script, &["agent.keep_tool_result=2", "agent.rollback_hint=true"]);
    let error = other.pipeline().resume(interrupted(&dir), CancellationToken::new(), None).await.unwrap_err();
    assert_eq!(error.kind(), "departed_from_log");
    assert!(error.to_string().contains("at event "), "{error}");
    assert_eq!((other.asked(), other.calls().len()), (0, 0));
    // Only that it was tried is in the log; the run goes on as before.
    assert_eq!(lab.resume(&dir).await.summary.answer.as_deref(), Some("60"));
}
