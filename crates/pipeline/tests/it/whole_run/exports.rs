//! What a log says that was sent is what was sent; what other programs are given has their shape.

use llm_providers::ChatRequest;
use pipeline::RunReport;
use pipeline::log::RunRecord;
use pipeline::trace::{self, Judgement, SentView};
use serde_json::{Value, json};

use super::support::{Lab, Shown, call, search};

/// Rollbacks, results that are omitted, a pass that fails and is summed up.
fn eventful(shown: &Shown) -> String {
    if shown.last.contains("Failure type") && !shown.is_last() {
        return "<think>Hm.</think>It went nowhere.".to_owned();
    }
    let second = shown.first.contains("## Attempt 1");
    match shown.replies {
        _ if shown.is_last() && second => "It is \\boxed{9}.".to_owned(),
        _ if shown.is_last() => "I do not know.".to_owned(),
        2 if !shown.hinted => "<use_mcp_tool>\n<server_name>research".to_owned(),
        turn if turn < 6 => search(&format!("{} {turn}", shown.first.len())),
        _ => "That is all.".to_owned(),
    }
}

async fn eventful_run() -> (Lab, RunReport, RunRecord) {
    let lab = Lab::new(
        eventful,
        &["agent.context_compress_limit=1", "agent.keep_tool_result=2", "agent.rollback_hint=true"],
    );
    let report = lab.ask("Who built \"it\"?").await;
    assert_eq!(report.summary.answer.as_deref(), Some("9"), "{:?}", report.summary);
    let record = RunRecord::read(&report.run_dir).unwrap();
    (lab, report, record)
}

#[track_caller]
fn check_views(views: &[SentView], sent: &[ChatRequest]) {
    assert_eq!(views.len(), sent.len());
    for (index, (view, request)) in views.iter().zip(sent).enumerate() {
        assert_eq!(view.system, request.system, "request {index}");
        assert_eq!(view.messages, request.messages, "request {index}");
        assert_eq!(view.continue_final_message, request.continue_final_message, "request {index}");
    }
}

#[tokio::test]
async fn views_are_what_was_sent() {
    let (lab, _, record) = eventful_run().await;
    let views = trace::views(&record);
    check_views(&views, &lab.model.requests.lock().unwrap());
    let omitted = |view: &SentView| {
        view.messages
            .iter()
            .filter(|message| message.joined_text().starts_with("Tool result is omitted"))
            .count()
    };
    assert!(views.iter().any(|view| omitted(view) > 2));
    assert!(views.iter().all(|view| view.tools.iter().any(|tool| tool.name == "google_search")));
}

#[tokio::test]
async fn views_of_sub_agents() {
    let script = |shown: &Shown| match (!shown.system.contains("agent-browsing"), shown.replies) {
        (false, _) if shown.is_last() => "It is \\boxed{9}.".to_owned(),
        (true, 0) => search("a"),
        (true, _) => "The report.".to_owned(),
        (false, 0) => call("agent-browsing", "search_and_browse", &json!({ "subtask": "Find it." })),
        (false, _) => "That is all.".to_owned(),
    };
    let lab = Lab::new(script, &["agent.sub_agents={agent-browsing: {tools: [research], max_turns: 5}}"]);
    let report = lab.ask("Who?").await;
    let record = RunRecord::read(&report.run_dir).unwrap();
    let views = trace::views(&record);
    check_views(&views, &lab.model.requests.lock().unwrap());
    assert!(views.iter().any(|view| view.agent == "agent-browsing-1"));
    let log = trace::mirothinker(&record, &Judgement::default());
    assert_eq!(log["sub_agent_counter"], 1);
    let session = &log["sub_agent_message_history_sessions"]["agent-browsing_1"];
    assert!(session["message_history"].as_array().unwrap().len() >= 4, "{session}");
    let spans = trace::otlp(&record);
    let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let named = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
    let (tool, agent) = (named("execute_tool search_and_browse"), named("invoke_agent agent-browsing"));
    assert_eq!(agent["parentSpanId"], tool["spanId"]);
}

#[tokio::test]
async fn chatml_and_sharegpt_hold_what_the_model_was_shown() {
    let (_, _, record) = eventful_run().await;
    let parse = |text: String| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let chat = parse(trace::chatml(&record));
    assert_eq!(chat.len(), 2, "one conversation for each pass");
    let views = trace::views(&record);
    let last = views.last().unwrap();
    let messages = chat[1]["messages"].as_array().unwrap();
    assert_eq!(messages[..messages.len() - 1], trace::wire_messages(last));
    assert_eq!(messages.last().unwrap(), &json!({ "role": "assistant", "content": "It is \\boxed{9}." }));
    assert!(messages.iter().any(|message| message["content"] == "Tool result is omitted to save tokens."));
    assert_eq!(chat[1]["tools"][0]["function"]["name"], "research-google_search");
    let share = parse(trace::sharegpt(&record));
    let said = share[1]["conversations"].as_array().unwrap();
    assert_eq!(said[0]["from"], "human");
    assert_eq!(said.last().unwrap(), &json!({ "from": "gpt", "value": "It is \\boxed{9}." }));
    assert_eq!(said.len(), messages.len() - 1);
    let tools: Value = serde_json::from_str(share[1]["tools"].as_str().unwrap()).unwrap();
    assert_eq!(tools, chat[1]["tools"]);
}

/// The fields of the task log and what kind of value each has.
const TASK_LOG: &[(&str, &str)] = &[
    ("status", "string"),
    ("start_time", "string"),
    ("end_time", "string"),
    ("task_id", "string"),
    ("input", "object"),
    ("ground_truth", "string"),
    ("final_boxed_answer", "string"),
    ("final_judge_result", "string"),
    ("judge_type", "string"),
    ("eval_details", "null"),
    ("error", "string"),
    ("current_main_turn_id", "number"),
    ("current_sub_agent_turn_id", "number"),
    ("sub_agent_counter", "number"),
    ("current_sub_agent_session_id", "null"),
    ("env_info", "object"),
    ("log_dir", "string"),
    ("main_agent_message_history", "object"),
    ("sub_agent_message_history_sessions", "object"),
    ("step_logs", "array"),
    ("trace_data", "object"),
];

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[tokio::test]
async fn the_task_log_has_the_shape_of_its_readers() {
    let (_, report, record) = eventful_run().await;
    let judgement = Judgement {
        task_id: "task-1".to_owned(),
        ground_truth: "9".to_owned(),
        result: "CORRECT".to_owned(),
        judge: "exact".to_owned(),
        details: None,
    };
    let log = trace::mirothinker(&record, &judgement);
    let fields: Vec<(&str, &str)> =
        log.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), kind(value))).collect();
    assert_eq!(fields, TASK_LOG);
    assert_eq!((&log["status"], &log["final_boxed_answer"]), (&json!("success"), &json!("9")));
    assert_eq!(log["task_id"], "task-1");
    assert_eq!(log["input"]["task_description"], "Who built \"it\"?");
    assert_eq!(log["log_dir"], report.run_dir.display().to_string());
    let time = log["start_time"].as_str().unwrap();
    assert!(time.len() == 19 && &time[10..11] == " ", "{time}");
    let history = &log["main_agent_message_history"];
    assert!(history["system_prompt"].as_str().unwrap().contains("research"));
    let messages = history["message_history"].as_array().unwrap();
    assert_eq!(messages.first().unwrap()["role"], "user");
    assert_eq!(messages.last().unwrap()["content"][0]["text"], "It is \\boxed{9}.");
    let whole = messages.iter().all(|message| {
        !message["content"][0]["text"].as_str().unwrap().starts_with("Tool result is omitted")
    });
    assert!(whole, "nothing is omitted in a stored history");
    for step in log["step_logs"].as_array().unwrap() {
        let fields: Vec<(&str, &str)> =
            step.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), kind(value))).collect();
        assert_eq!(
            fields,
            [
                ("step_name", "string"),
                ("message", "string"),
                ("timestamp", "string"),
                ("info_level", "string"),
                ("metadata", "object")
            ]
        );
        assert!(["info", "warning", "error", "debug"].contains(&step["info_level"].as_str().unwrap()));
    }
    assert!(log["trace_data"]["performance_summary"]["total_wall_time"].is_number());
}

#[tokio::test]
async fn spans_follow_the_conventions() {
    let (_, report, record) = eventful_run().await;
    let body = trace::otlp(&record);
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let attribute = |span: &Value, name: &str| {
        let found = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == name);
        found.map(|attribute| attribute["value"].clone())
    };
    let of = |operation: &str| {
        let is = |span: &&Value| {
            attribute(span, "gen_ai.operation.name") == Some(json!({ "stringValue": operation }))
        };
        spans.iter().filter(is).collect::<Vec<_>>()
    };
    let chats = of("chat");
    assert_eq!(chats.len(), trace::views(&record).len());
    assert_eq!(of("execute_tool").len() as u32, report.summary.tool_calls.total);
    // The run and its two passes.
    assert_eq!(of("invoke_agent").len(), 3);
    for chat in &chats {
        assert_eq!(chat["kind"], 3);
        assert_eq!(attribute(chat, "gen_ai.usage.input_tokens"), Some(json!({ "intValue": "1000" })));
        assert_eq!(attribute(chat, "gen_ai.response.model"), Some(json!({ "stringValue": "scripted-1" })));
    }
    let trace_id = spans[0]["traceId"].as_str().unwrap();
    assert_eq!(trace_id.len(), 32);
    let ids: Vec<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "every span has an id of its own");
    let mut roots = 0;
    for span in spans {
        assert_eq!(span["traceId"], trace_id);
        match span["parentSpanId"].as_str() {
            Some(parent) => assert!(ids.contains(&parent)),
            None => roots += 1,
        }
        let nanos = |name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
        assert!(nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"));
    }
    assert_eq!(roots, 1);
    assert_eq!(trace::otlp(&record), body, "the same run gives the same spans");
}

#[tokio::test]
async fn a_story_tells_what_happened() {
    let (_, _, record) = eventful_run().await;
    let story = trace::story(&record);
    for part in [
        "question: Who built \"it\"?",
        "pass 1",
        "pass 2",
        "→ research.google_search q=",
        "dropped, format_error (1 in a row)",
        "kept after 1 dropped replies",
        "failure summary: It went nowhere.",
        "1000 in, 10 out · $0.0010",
        "answer (from the final reply): 9",
        "answered · 2 passes",
        "answer: 9",
    ] {
        assert!(story.contains(part), "{part:?} is not in\n{story}");
    }
    assert!(!story.chars().any(|c| c.is_control() && c != '\n'));
    let document = trace::markdown(&record);
    assert!(
        document.starts_with("# Who built \"it\"?\n") && document.contains("## Result\n\n```text\n9\n```")
    );
}
