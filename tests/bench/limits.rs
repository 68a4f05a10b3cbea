//! Limits of a sample: working time leaves out waiting for limiters, counts everything else, and goes on counting in a
//! run that is gone on with.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::scripted_server::{Reply, Request, ScriptedServer};
use crate::support::{Home, reply_to};

/// A server that refuses the request of this number, from 0, and otherwise plays `then`.
async fn refusing(
    number: usize,
    seconds: &'static str,
    then: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
) -> ScriptedServer {
    let asked = AtomicUsize::new(0);
    ScriptedServer::start_with(move |request| {
        let asked = asked.fetch_add(1, Ordering::SeqCst);
        if asked == number { Reply::status(429).header("Retry-After", seconds) } else { then(asked, request) }
    })
    .await
}

/// The log of a sample.
fn events(home: &Home, row: &Value) -> Vec<Value> {
    let log = home.path("out").join(row["run_dir"].as_str().unwrap()).join("events.jsonl");
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The times of a row, in milliseconds.
fn wall_and_working(row: &Value) -> (u64, u64) {
    (row["wall_ms"].as_u64().unwrap(), row["working_ms"].as_u64().unwrap())
}

/// Whether a request asks for the final answer.
fn is_last(request: &Request) -> bool {
    request.body["messages"].to_string().contains("The search is over.")
}

#[tokio::test]
async fn waiting_does_not_end_a_sample() {
    // The call that was refused waits for its retry, the other one for the limiter that they share.
    let server = refusing(0, "3", |_, request| reply_to(request)).await;
    let home = Home::with_model(&server).set("agent.limits.working_time=2.5");
    let tasks = home.tasks(2);
    let arguments =
        ["run", tasks.to_str().unwrap(), "--judge", "mock", "--max-concurrent", "2", "--out", "out"];
    home.run(&arguments).await.expect(0);
    let rows = home.rows("out");
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let (_, working) = wall_and_working(row);
        // On a busy machine the work itself may take too long.
        assert!(row["state"] == "answered" || working >= 2500, "{row}");
    }
    let has_waited = |row: &Value| {
        let (wall, working) = wall_and_working(row);
        wall - working >= 3000
    };
    assert!(rows.iter().any(has_waited), "{rows:?}");
}

#[tokio::test]
async fn tools_that_wait_for_the_limiter_do_not_work() {
    // The agent's turn, the question of its tool, which is refused at first, and the turns that are left.
    let call = "<use_mcp_tool>\n<server_name>tool-reasoning</server_name>\n<tool_name>reasoning</tool_name>\n\
                <arguments>\n{\"question\": \"How many?\"}\n</arguments>\n</use_mcp_tool>";
    let server = refusing(1, "1", move |asked, request| match asked {
        0 => Reply::text(call),
        2 => Reply::text("One."),
        _ => reply_to(request),
    })
    .await;
    let home = Home::with_model(&server).set("agent.main_agent.tools=[tool-reasoning]");
    let same_server = format!(
        "REASONING_BASE_URL={}\nREASONING_MODEL_NAME=scripted\nREASONING_API_KEY=test-key-0123456789\n",
        server.base_url()
    );
    std::fs::write(home.path(".env"), same_server).unwrap();
    let tasks = home.tasks(2);
    let arguments = ["run", tasks.to_str().unwrap(), "--task", "1", "--judge", "mock", "--out", "out"];
    home.run(&arguments).await.expect(0);
    let rows = home.rows("out");
    let row = rows.first().unwrap();
    assert_eq!((row["state"].as_str(), row["tool_calls"].as_u64()), (Some("answered"), Some(1)), "{row}");
    assert_eq!(server.requests().len(), 5);
    let (wall, working) = wall_and_working(row);
    let waited = wall - working;
    let told = events(&home, row).into_iter().find(|event| event["type"] == "tools_waited").unwrap();
    let told = told["ms"].as_u64().unwrap();
    assert!(told >= 1000 && waited >= told, "{told} ms were told: {row}");
}

#[tokio::test]
async fn work_ends_a_sample() {
    let server = ScriptedServer::start_with(|request| match is_last(request) {
        true => Reply::text("No idea."),
        false => Reply::text("late").delay(Duration::from_secs(60)),
    })
    .await;
    let home = Home::with_model(&server).set("agent.limits.working_time=0.4");
    let tasks = home.tasks(1);
    home.run(&["run", tasks.to_str().unwrap(), "--judge", "mock", "--out", "out"]).await.expect(0);
    let rows = home.rows("out");
    let row = rows.first().unwrap();
    assert_eq!(
        (row["state"].as_str(), row["limit"].as_str()),
        (Some("limit"), Some("working_time")),
        "{row}"
    );
    assert_eq!(
        (row["correct"].as_bool(), row["stop_reason"].as_str()),
        (Some(false), Some("limit_working_time"))
    );
    assert_eq!(home.report("out")["states"], serde_json::json!({ "limit": 1 }));
}

/// A sample that waits for a second, works for a second, is killed, and gone on with until its working time is used up.
/// None where that was used up before the kill.
async fn killed_and_resumed(working_time: u32) -> Option<(Value, Vec<Value>)> {
    let server = refusing(0, "1", |asked, request| match (is_last(request), asked) {
        (true, _) => Reply::text("No idea."),
        (false, 1) => reply_to(request).delay(Duration::from_secs(1)),
        (false, _) => Reply::text("late").delay(Duration::from_secs(60)),
    })
    .await;
    let home = Home::with_model(&server).set(&format!("agent.limits.working_time={working_time}"));
    let tasks = home.tasks(1);
    let arguments = ["run", tasks.to_str().unwrap(), "--judge", "mock", "--out", "out"];
    let mut child = home.command(&arguments).spawn().unwrap();
    server.wait_for_requests(3).await;
    if server.requests().iter().any(is_last) {
        return None;
    }
    child.kill().await.unwrap();
    home.run(&["resume", "out", "--judge", "mock"]).await.expect(0);
    let row = home.rows("out").remove(0);
    let events = events(&home, &row);
    Some((row, events))
}

#[tokio::test]
async fn both_are_remembered_by_a_run_that_is_gone_on_with() {
    let mut outcome = None;
    // On a busy machine a program may take long to get under way.
    for working_time in [3, 6, 12, 24] {
        outcome = killed_and_resumed(working_time).await;
        if outcome.is_some() {
            break;
        }
    }
    let (row, events) = outcome.unwrap();
    assert_eq!(
        (row["state"].as_str(), row["limit"].as_str()),
        (Some("limit"), Some("working_time")),
        "{row}"
    );
    let event = |name: &str| events.iter().find(|event| event["type"] == name).unwrap();
    assert_eq!(event("llm_waited")["ms"].as_u64().unwrap() / 100, 10);
    // The second of waiting does not count, though it was before the interruption.
    let (wall, working) = wall_and_working(&row);
    assert!(wall - working >= 1000, "{row}");
    // The second of work counts, though it was before the interruption too.
    let time = |event: &Value| evaluation::run::time_of(event["ts"].as_str().unwrap()).unwrap();
    let limit = event("limit_reached");
    let since_resumed = time(limit).duration_since(time(event("run_resumed"))).unwrap().as_secs_f64();
    let spent = limit["spent"].as_f64().unwrap();
    assert!(spent >= since_resumed + 0.5, "{spent} s were spent, {since_resumed} s since it was resumed");
}
