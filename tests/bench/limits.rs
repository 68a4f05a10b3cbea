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
    for row in rows {
        let (wall, working) = (row["wall_ms"].as_u64().unwrap(), row["working_ms"].as_u64().unwrap());
        assert_eq!(row["state"], "answered", "{row}");
        assert!(wall > 2500 && working < 2500, "{row}");
    }
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
    let waited = row["wall_ms"].as_u64().unwrap() - row["working_ms"].as_u64().unwrap();
    let told = events(&home, row).into_iter().find(|event| event["type"] == "tools_waited").unwrap();
    let told = told["ms"].as_u64().unwrap();
    assert!(told >= 1000 && waited >= told, "{told} ms were told: {row}");
}

#[tokio::test]
async fn work_ends_a_sample() {
    let asked = AtomicUsize::new(0);
    let server = ScriptedServer::start_with(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::text("late").delay(Duration::from_secs(60)),
        _ => Reply::text("No idea."),
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

#[tokio::test]
async fn both_are_remembered_by_a_run_that_is_gone_on_with() {
    // 2 s of waiting, 1 s of work, and then nothing any more.
    let server = refusing(0, "2", |asked, request| match asked {
        1 => reply_to(request).delay(Duration::from_secs(1)),
        2 | 3 => Reply::text("late").delay(Duration::from_secs(60)),
        _ => Reply::text("No idea."),
    })
    .await;
    let home = Home::with_model(&server).set("agent.limits.working_time=2.5");
    let tasks = home.tasks(1);
    let arguments = ["run", tasks.to_str().unwrap(), "--judge", "mock", "--out", "out"];
    let mut child = home.command(&arguments).spawn().unwrap();
    server.wait_for_requests(3).await;
    child.kill().await.unwrap();
    home.run(&["resume", "out", "--judge", "mock"]).await.expect(0);

    let rows = home.rows("out");
    let row = rows.first().unwrap();
    assert_eq!(
        (row["state"].as_str(), row["limit"].as_str()),
        (Some("limit"), Some("working_time")),
        "{row}"
    );
    let events = events(&home, row);
    let waited = events.iter().find(|event| event["type"] == "llm_waited").unwrap();
    assert_eq!(waited["ms"].as_u64().unwrap() / 100, 20);
    // The second of work before the interruption counts, the two of waiting do not: the model was asked once more, and
    // for the answer after what was left.
    let asked: Vec<_> = server.requests().iter().map(|request| request.at).collect();
    let second_part = asked[4] - asked[3];
    assert!(
        second_part > Duration::from_millis(200) && second_part < Duration::from_secs(2),
        "{second_part:?}"
    );
    let (wall, working) = (row["wall_ms"].as_u64().unwrap(), row["working_ms"].as_u64().unwrap());
    assert!(wall - working >= 1900 && working >= 2500, "{row}");
}
