//! Recorded runs, replayed: the model server gone, no tool server started, the same run all the same.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::{Home, Said, call, search, wait_until};

const BOXED: &str = "The answer is \\boxed{42}";

fn script() -> Vec<Reply> {
    let page = call("scrape_website", &json!({"url": "https://example.org/page"}));
    let both = format!("{}\n{}", search("one"), search("two"));
    let text = |text: &str| Reply::text(text).usage(900, 50);
    vec![
        text(&search("stock market 2026")),
        Reply::status(429).header("retry-after", "0"),
        text(&page),
        text(&both),
        text(&search("stock market 2026")),
        Reply::text("It is 42.").reasoning("Let me think").usage(1000, 20),
        text(BOXED),
    ]
}

/// The stored events without what differs from run to run.
fn comparable(run: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    text.lines()
        .map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            strip(&mut event);
            event
        })
        // A busy machine makes a call wait its turn; a replay never does.
        .filter(|event| event["type"] != "llm_waited")
        .collect()
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                !matches!(name.as_str(), "ts" | "run_id" | "run_dir" | "ms" | "wait_ms")
                    && !name.ends_with("_ms")
            });
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn without_times(mut result: Value) -> Value {
    strip(&mut result);
    result.as_object_mut().unwrap().remove("cassette");
    result
}

/// Records the run of the script in a home of its own.
async fn recorded(home: &Home) -> (String, Value) {
    let tape = home.path("tape.jsonl").display().to_string();
    let said = home.run(&["ask", "--output", "json", "--record", &tape, "What is the answer?"]).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("recorded: "), "{}", said.stderr);
    (tape, said.json())
}

async fn replayed(home: &Home, more: &[&str]) -> (Said, Value) {
    let tape = home.path("tape.jsonl").display().to_string();
    let mut arguments = vec!["ask", "--output", "json", "--replay", &tape];
    arguments.extend(more);
    let said = home.run(&arguments).await;
    let value = said.json();
    (said, value)
}

#[tokio::test]
async fn a_run_is_replayed_without_model_and_tools() {
    let server = ScriptedServer::start(script()).await;
    let home = Home::with_model(&server).with_research().set("agent.tool_calls_per_turn=parallel");
    let (tape, first) = recorded(&home).await;
    assert_eq!(first["answer"], "42");
    assert_eq!(first["rollbacks"]["duplicate_query"], 1);
    assert_eq!(first["cassette"]["mode"], "record");
    let calls = home.calls().len();
    assert_eq!(calls, 4);
    let text = std::fs::read_to_string(&tape).unwrap();
    assert!(!text.contains("test-key-0123456789"), "the key is on the cassette");
    drop(server);

    let first_dir = std::path::PathBuf::from(first["run_dir"].as_str().unwrap());
    let (said, second) = replayed(&home, &["What is the answer?"]).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(without_times(second.clone()), without_times(first));
    let second_dir = std::path::PathBuf::from(second["run_dir"].as_str().unwrap());
    assert_ne!(first_dir, second_dir);
    let (one, other) = (in_call_order(comparable(&first_dir)), in_call_order(comparable(&second_dir)));
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    assert_eq!(home.calls().len(), calls, "a replay calls no tool");
    assert_eq!(second["cassette"].get("unused"), None, "{second}");

    // The question is on the cassette, and so is the day.
    let aged = text.replace(&today(), "2019-02-03");
    std::fs::write(&tape, aged).unwrap();
    let (said, third) = replayed(&home, &[]).await;
    assert_eq!((said.code, third["answer"].as_str()), (0, Some("42")), "{}", said.stderr);
}

/// Calls that run at once end in any order: each lot of ends in the order of the calls, numbers left out.
fn in_call_order(mut events: Vec<Value>) -> Vec<Value> {
    for event in &mut events {
        event.as_object_mut().unwrap().remove("seq");
    }
    for lot in events.chunk_by_mut(|one, next| one["type"] == next["type"]) {
        if lot[0]["type"] == "tool_call_finished" {
            lot.sort_by_key(|event| event["call_id"].to_string());
        }
    }
    events
}

/// The day in UTC, as the prompts have it.
fn today() -> String {
    let output = std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_difference_ends_the_replay_and_is_told() {
    let server = ScriptedServer::start(script()).await;
    let home = Home::with_model(&server).with_research();
    let (tape, _) = recorded(&home).await;
    drop(server);
    let check = async |more: &[&str], parts: &[&str]| {
        let (said, value) = replayed(&home, more).await;
        assert_eq!(said.code, 1, "{}", said.stderr);
        assert_eq!(
            (&value["status"], &value["error"]["kind"]),
            (&json!("failed"), &json!("replay_mismatch"))
        );
        let told = format!("{}\n{}", value["error"]["message"].as_str().unwrap(), value["error"]["hint"]);
        for part in parts {
            assert!(told.contains(part), "{told}\n  does not say {part}");
        }
        (said, value)
    };
    let (said, value) = check(
        &["What was the answer?"],
        &["tape.jsonl", "request to the model 1", "message 1 (user)", "What is the", "What was the"],
    )
    .await;
    assert!(value["cassette"]["unused"].as_array().unwrap().len() >= 10, "{value}");
    assert!(
        said.stderr.contains("not asked for by the replay") && said.stderr.contains("tool call research/")
    );
    check(
        &["What is the answer?", "-s", "agent.keep_tool_result=0"],
        &["omitted", "agent.keep_tool_result (recorded -1, now 0)"],
    )
    .await;
    // A tool call that nobody made: the second page instead of the first.
    let text = std::fs::read_to_string(&tape).unwrap();
    std::fs::write(&tape, text.replace("example.org/page\\", "example.org/other\\")).unwrap();
    check(
        &["What is the answer?"],
        &["tool call 2 (research/scrape_website)", "arguments.url", "other", "page"],
    )
    .await;
}

#[tokio::test]
async fn what_cannot_be_replayed_or_recorded_is_a_usage_error() {
    let server = ScriptedServer::start(script()).await;
    let home = Home::with_model(&server).with_research();
    let check = async |arguments: &[&str], parts: &[&str]| {
        let said = home.run(arguments).await;
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.stderr);
        for part in parts {
            assert!(said.stderr.contains(part), "{} does not say {part}", said.stderr);
        }
    };
    check(&["ask", "--replay", "absent.jsonl", "Q?"], &["absent.jsonl", "--record"]).await;
    home.write("other.jsonl", "{\"not\": \"a cassette\"}\n");
    check(&["ask", "--replay", "other.jsonl", "Q?"], &["other.jsonl:1"]).await;
    check(&["ask", "--record", "other.jsonl", "Q?"], &["other.jsonl", "not overwritten"]).await;
    check(&["ask", "--record", "a", "--replay", "b", "Q?"], &["--record", "--replay"]).await;
    check(&["tools", "list", "--record", "a.jsonl"], &["fathom ask"]).await;
    assert!(!home.path("runs").is_dir() || std::fs::read_dir(home.path("runs")).unwrap().next().is_none());
    recorded(&home).await;
    let tape = home.path("tape.jsonl").display().to_string();
    check(
        &["ask", "--replay", &tape, "-s", "llm.max_tokens=17", "Q?"],
        &["llm.max_tokens", "4096", "cassette"],
    )
    .await;
}

#[tokio::test]
async fn a_killed_recording_is_read_as_far_as_it_goes() {
    let server = ScriptedServer::start(vec![
        Reply::text(search("a")).usage(100, 10),
        Reply::text(call("hold", &json!({"seconds": 60}))).usage(100, 10),
    ])
    .await;
    let home = Home::with_model(&server).with_research();
    let tape = home.path("tape.jsonl");
    let name = tape.display().to_string();
    let mut child = home
        .command(&["ask", "-q", "--record", &name, "What is the answer?"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| home.calls().len() >= 2).await;
    child.kill().await.unwrap();
    drop(server);
    let whole = std::fs::read_to_string(&tape).unwrap();
    // The call that was under way is not there; a line that was torn is passed over.
    std::fs::write(&tape, format!("{whole}{{\"kind\":\"exchange\",\"of\":\"to")).unwrap();
    let (said, value) = replayed(&home, &[]).await;
    assert_eq!((said.code, &value["error"]["kind"]), (1, &json!("replay_mismatch")), "{}", said.stderr);
    let message = value["error"]["message"].as_str().unwrap();
    assert!(message.contains("research/hold") && message.contains("recording ends here"), "{message}");
    assert_eq!(value["tool_calls"]["by_tool"]["google_search"], 1);
    assert_eq!(home.calls().len(), 2);
}
