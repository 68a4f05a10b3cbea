//! What a run survives: a server that is busy, a stream that breaks, a tool server that dies, Ctrl-C.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, Said, call, processes_with, search, wait_until};

const BOXED: &str = "The answer is \\boxed{42}";

#[tokio::test]
async fn a_busy_server_and_a_broken_stream() {
    let server = ScriptedServer::start(vec![
        Reply::status(429).header("retry-after", "0"),
        Reply::status(503),
        Reply::text(search("a")).cut_after(60),
        Reply::text(search("a")).usage(100, 10),
        Reply::text(BOXED).usage(100, 10),
        Reply::text(BOXED).usage(100, 10),
    ])
    .await;
    let home = Home::with_model(&server).with_research();
    let (said, result) = home.ask("What?").await;
    assert_eq!((said.code, result["answer"].as_str()), (0, Some("42")), "{}", said.stderr);
    let retries: Vec<Value> =
        home.events().into_iter().filter(|event| event["type"] == "llm_retry").collect();
    assert_eq!(retries.len(), 3);
    assert_eq!(home.calls().len(), 1, "a call that was cut is never run");
}

#[tokio::test]
async fn calls_in_thinking_and_cut_calls_are_not_run() {
    let quoted = format!("<think>I could write {} here</think>\nThe answer is 42.", search("quoted"));
    let server =
        ScriptedServer::start(vec![Reply::text(quoted).usage(100, 10), Reply::text(BOXED).usage(100, 10)])
            .await;
    let home = Home::with_model(&server).with_research();
    let (said, result) = home.ask("What?").await;
    assert_eq!((said.code, &result["tool_calls"]["total"]), (0, &json!(0)), "{}", said.stderr);
    assert!(home.calls().is_empty());
}

#[tokio::test]
async fn thinking_that_the_model_streams_apart_is_kept_apart() {
    let server = ScriptedServer::start(vec![
        Reply::text("It is 42.").reasoning("Let me think: \\boxed{wrong}").usage(100, 10),
        Reply::text(BOXED).usage(100, 10),
    ])
    .await;
    let home = Home::with_model(&server).with_research();
    let (said, result) = home.ask("What?").await;
    assert_eq!((said.code, result["answer"].as_str()), (0, Some("42")), "{}", said.stderr);
    let reply = home.events().into_iter().find(|event| event["message"]["role"] == "assistant").unwrap();
    assert_eq!(reply["message"]["content"][0]["type"], "thinking");
    assert_eq!(reply["message"]["content"][1]["text"], "It is 42.");
}

#[tokio::test]
async fn native_calls() {
    let server = ScriptedServer::start(vec![
        Reply::text("").tool_call("c1", "research-google_search", r#"{"q": "a"}"#).usage(100, 10),
        Reply::text(BOXED).usage(100, 10),
        Reply::text(BOXED).usage(100, 10),
    ])
    .await;
    let home = Home::with_model(&server).with_research().set("llm.tool_protocol=native");
    let (said, result) = home.ask("What?").await;
    assert_eq!((said.code, result["answer"].as_str()), (0, Some("42")), "{}", said.stderr);
    assert_eq!(home.calls().len(), 1);
    let bodies = server.bodies();
    assert_eq!(bodies[0]["tools"][0]["function"]["name"], "research-google_search");
    let messages = bodies[1]["messages"].as_array().unwrap();
    assert_eq!(messages[2]["tool_calls"][0]["id"], "c1");
    assert_eq!((&messages[3]["role"], &messages[3]["tool_call_id"]), (&json!("tool"), &json!("c1")));
}

#[tokio::test]
async fn a_limit_on_wall_time_cuts_a_tool_short_and_asks_for_the_answer() {
    let server = ScriptedServer::start_with(|request| {
        let ends = request.last_content().contains("\\boxed{");
        let text = if ends { BOXED.to_owned() } else { call("hold", &json!({"seconds": 60})) };
        Reply::text(text).usage(100, 10)
    })
    .await;
    let home = Home::with_model(&server).with_research().set("agent.limits.wall=1.5");
    let began = Instant::now();
    let (said, result) = home.ask("What?").await;
    assert_eq!((said.code, result["stop_reason"].as_str()), (4, Some("limit_wall")), "{}", said.stderr);
    assert_eq!(result["answer"], "42");
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(home.decisions().contains(&"limit_reached".to_owned()));
}

/// As below `nohup`: a program that was started so is not to hear that its terminal was closed.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

#[tokio::test]
async fn an_interruption_ends_the_run_and_its_tool_servers() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        if signal == "-HUP" && hangups_are_ignored() {
            println!("-HUP is left out: whoever started this test ignores it, and programs inherit that");
            continue;
        }
        let server = ScriptedServer::start(vec![Reply::text(call("hold", &json!({"seconds": 60})))]).await;
        let home = Home::with_model(&server).with_research();
        let log = home.path("calls.log");
        let child =
            home.command(&["ask", "--output", "json", "What?"]).stdout(Stdio::piped()).spawn().unwrap();
        let pid = child.id().unwrap().to_string();
        wait_until(|| log.is_file()).await;
        let began = Instant::now();
        let killed = std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(killed.success());
        if signal == "-HUP" {
            // A terminal that closes says so twice.
            tokio::time::sleep(Duration::from_millis(2)).await;
            let _ = std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
        }
        let said = Said::from(child.wait_with_output().await.unwrap());
        assert!(began.elapsed() < Duration::from_secs(30), "{signal}: {:?}", began.elapsed());
        assert_eq!(said.code, 130, "{signal}: {}", said.stderr);
        let result = said.json();
        assert_eq!((&result["status"], &result["stop_reason"]), (&json!("cancelled"), &json!("cancelled")));
        assert!(said.stderr.contains("Interrupted"), "{}", said.stderr);
        assert_eq!(processes_with(&log.display().to_string()), Vec::<String>::new());
        assert_eq!(home.events().last().unwrap()["type"], "run_finished");
    }
}

#[tokio::test]
async fn a_killed_run_leaves_no_tool_server_and_a_readable_log() {
    let server = ScriptedServer::start(vec![Reply::text(call("hold", &json!({"seconds": 60})))]).await;
    let home = Home::with_model(&server).with_research();
    let log = home.path("calls.log");
    let mut child = home.command(&["ask", "-q", "What?"]).spawn().unwrap();
    wait_until(|| log.is_file()).await;
    child.kill().await.unwrap();
    let name = log.display().to_string();
    wait_until(|| processes_with(&name).is_empty()).await;
    let events = home.events();
    assert_eq!(events.last().unwrap()["type"], "tool_call_started");
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], index);
    }
}
