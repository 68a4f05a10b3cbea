//! Runs that are killed, stopped or starved of disk, gone on with by the program itself; runs read again.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::scripted_server::{Reply, Request, ScriptedServer};
use crate::support::{Home, Said, call, search, wait_until};

const BOXED: &str = "The answer is \\boxed{42}";
const TURNS: usize = 24;

/// Searches and then knows the answer; says how often the model had replied.
fn next(request: &Request) -> Reply {
    let messages = request.body["messages"].as_array().unwrap();
    let replies = messages.iter().filter(|message| message["role"] == "assistant").count();
    let text = if request.last_content().contains("\\boxed{") {
        BOXED.to_owned()
    } else if replies < TURNS {
        search(&format!("query {replies}"))
    } else {
        "I know it.".to_owned()
    };
    Reply::text(text).usage(100, 10)
}

fn run_dir(home: &Home) -> String {
    let mut runs = std::fs::read_dir(home.path("runs")).unwrap();
    runs.next().unwrap().unwrap().path().display().to_string()
}

fn log_lines(home: &Home) -> usize {
    let Ok(mut runs) = std::fs::read_dir(home.path("runs")) else { return 0 };
    let Some(run) = runs.next() else { return 0 };
    let text = std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap_or_default();
    text.lines().count()
}

/// Kills the program when its log has so many lines, and goes on with the run.
async fn killed_at(lines: usize) {
    let server = ScriptedServer::start_with(next).await;
    let home = Home::with_model(&server).with_research().set("agent.main_agent.max_turns=50");
    let mut child = home.command(&["ask", "-q", "What?"]).spawn().unwrap();
    wait_until(|| log_lines(&home) >= lines).await;
    child.kill().await.unwrap();
    let said = home.run_as_is(&["resume", "--output", "json", &run_dir(&home)]).await;
    assert_eq!(said.code, 0, "killed at {lines}: {}", said.stderr);
    let result = said.json();
    assert_eq!((&result["answer"], &result["turns"]), (&json!("42"), &json!(TURNS + 1)));
    assert_eq!(result["usage"]["input"], 100 * (TURNS + 2));
    // Only what was under way may be done again.
    let (asked, called) = (server.bodies().len(), home.calls().len());
    assert!((TURNS + 2..=TURNS + 3).contains(&asked), "killed at {lines}: {asked} requests");
    assert!((TURNS..=TURNS + 1).contains(&called), "killed at {lines}: {called} calls");
    // And again: it is finished now.
    let again = home.run_as_is(&["resume", "--output", "json", &run_dir(&home)]).await;
    assert_eq!((again.code, &again.json()["answer"]), (0, &json!("42")));
    assert!(again.stderr.contains("finished"), "{}", again.stderr);
    assert_eq!(server.bodies().len(), asked);
}

#[tokio::test]
async fn killed_early() {
    for lines in [1, 4, 11, 26, 47] {
        killed_at(lines).await;
    }
}

#[tokio::test]
async fn killed_late() {
    for lines in [64, 83, 100, 131, 160] {
        killed_at(lines).await;
    }
}

#[tokio::test]
async fn an_interrupted_run_says_how_to_go_on_and_goes_on() {
    let server = ScriptedServer::start_with(|request| {
        let held = request.body["messages"].as_array().unwrap().len() > 2;
        let text = if request.last_content().contains("\\boxed{") || held {
            BOXED.to_owned()
        } else {
            call("hold", &json!({ "seconds": 60 }))
        };
        Reply::text(text).usage(100, 10)
    })
    .await;
    let home = Home::with_model(&server).with_research();
    let child = home.command(&["ask", "What?"]).spawn().unwrap();
    let pid = child.id().unwrap().to_string();
    wait_until(|| home.path("calls.log").is_file()).await;
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let said = Said::from(child.wait_with_output().await.unwrap());
    assert_eq!(said.code, 130);
    let told = format!("fathom resume {}", run_dir(&home));
    let same = std::fs::canonicalize(run_dir(&home)).unwrap();
    assert!(
        said.stderr.contains(&told) || said.stderr.contains(&format!("fathom resume {}", same.display())),
        "{}",
        said.stderr
    );
    let said = home.run_as_is(&["resume", "--output", "events", &run_dir(&home)]).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    let events: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["type"], "run_resumed");
    assert!(events.iter().any(|event| event["error_kind"] == "outcome_unknown"), "{}", said.stdout);
    assert_eq!(events.last().unwrap()["answer"], "42");
    assert_eq!(events.last().unwrap()["run_dir"], same.display().to_string());
    assert_eq!(home.calls().len(), 1, "a call whose outcome is unknown is not made again");
}

#[tokio::test]
async fn a_failed_run_can_be_retried() {
    let server = ScriptedServer::start(vec![
        Reply::text(search("a")).usage(100, 10),
        Reply::status(401),
        Reply::text(BOXED).usage(100, 10),
        Reply::text(BOXED).usage(100, 10),
    ])
    .await;
    let home = Home::with_model(&server).with_research();
    let (said, _) = home.ask("What?").await;
    assert_eq!(said.code, 1);
    let said = home.run_as_is(&["resume", &run_dir(&home)]).await;
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("--retry-failed"), "{}", said.stderr);
    let said = home.run_as_is(&["resume", "--retry-failed", &run_dir(&home)]).await;
    assert_eq!((said.code, said.stdout.trim()), (0, "42"), "{}", said.stderr);
    assert_eq!(home.calls().len(), 1);
}

#[tokio::test]
async fn a_full_disk_ends_the_run_and_its_log_stays_whole() {
    let server = ScriptedServer::start_with(next).await;
    let home = Home::with_model(&server).with_research().set("agent.main_agent.max_turns=50");
    // A limit on the size of files is met like the end of the disk.
    let script = "trap '' XFSZ; ulimit -f 48; exec \"$0\" \"$@\"";
    let ask = home.command(&["ask", "--output", "json", "What?"]);
    let ask = ask.as_std();
    let mut limited = tokio::process::Command::new("bash");
    limited.args(["-c", script]).arg(ask.get_program()).args(ask.get_args());
    limited.current_dir(home.path("")).env_clear();
    for (name, value) in ask.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    let said = Said::from(limited.stdin(Stdio::null()).output().await.unwrap());
    assert_eq!(said.code, 1, "{}", said.stderr);
    let result = said.json();
    assert_eq!(result["error"]["kind"], "io");
    assert!(result["error"]["message"].as_str().unwrap().contains("log cannot be written"), "{result}");
    let (asked, called) = (server.bodies().len(), home.calls().len());
    let said = home.run_as_is(&["resume", "--output", "json", &run_dir(&home)]).await;
    assert_eq!((said.code, &said.json()["answer"]), (0, &json!("42")), "{}", said.stderr);
    assert!(server.bodies().len() - asked <= TURNS + 2 && home.calls().len() - called < TURNS);
}

#[tokio::test]
async fn what_cannot_be_gone_on_with() {
    let server = ScriptedServer::start_with(next).await;
    let home = Home::with_model(&server).with_research().set("agent.main_agent.max_turns=3");
    home.ask("What?").await;
    let run = run_dir(&home);
    let check = async |arguments: &[&str], code: i32, parts: &[&str]| {
        let said = home.run_as_is(arguments).await;
        assert_eq!(said.code, code, "{arguments:?}: {}", said.stderr);
        for part in parts {
            assert!(said.stderr.contains(part), "{arguments:?}: {part:?} is not in {}", said.stderr);
        }
    };
    check(&["resume", "nowhere"], 2, &["nowhere", "events.jsonl", "hint:"]).await;
    // The exit code of a finished run is the run's: it was cut short by its turns.
    check(&["resume", &run], 4, &["finished"]).await;
    // Without its end it can be gone on with, but not as another run.
    let log = std::path::Path::new(&run).join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let kept: Vec<&str> = text.lines().take(text.lines().count() - 4).collect();
    std::fs::write(&log, kept.join("\n") + "\n").unwrap();
    check(&["resume", "-s", "agent.keep_tool_result=1", &run], 2, &["agent.keep_tool_result", "limits"])
        .await;
    check(&["resume", "--agent", "research", &run], 2, &["--agent"]).await;
    check(&["resume", "--mcp-config", "absent.json", &run], 2, &["absent.json"]).await;
    assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), kept.len(), "nothing was added");
    check(&["resume", "-q", &run], 4, &[]).await;
}

#[tokio::test]
async fn runs_are_shown_exported_and_driven_again() {
    let server = ScriptedServer::start_with(next).await;
    let home = Home::with_model(&server).with_research().set("agent.main_agent.max_turns=50");
    let (_, result) = home.ask("What?").await;
    let id = result["run_id"].as_str().unwrap();
    let asked = server.bodies().len();
    let said = home.run_as_is(&["trace", "show", id]).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("question: What?") && said.stdout.contains("answer: 42"), "{}", said.stdout);
    let said = home.run_as_is(&["trace", "show", "--output", "json", &run_dir(&home)]).await;
    assert_eq!(said.json()["answer"], "42");
    let said = home.run_as_is(&["trace", "replay", id]).await;
    assert_eq!((said.code, server.bodies().len()), (0, asked), "{}", said.stderr);
    assert!(said.stdout.contains("to its end"), "{}", said.stdout);

    let said = home.run_as_is(&["trace", "export", id, "--to", "mirothinker"]).await;
    let log: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&log["status"], &log["final_boxed_answer"]), (&json!("success"), &json!("42")));
    let file = home.path("chat.jsonl").display().to_string();
    let said = home.run_as_is(&["trace", "export", id, "--to", "chatml", "-o", &file]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{}", said.stderr);
    let chat: Value = serde_json::from_str(std::fs::read_to_string(&file).unwrap().trim()).unwrap();
    // Exactly what the server got last, and the reply to it.
    let sent = server.bodies().last().unwrap()["messages"].as_array().unwrap().clone();
    assert_eq!(chat["messages"].as_array().unwrap()[..sent.len()], sent);
    for (form, part) in [("sharegpt", "boxed{42}"), ("markdown", "boxed{42}"), ("otlp", "resourceSpans")] {
        let said = home.run_as_is(&["trace", "export", id, "--to", form]).await;
        assert!(said.code == 0 && said.stdout.contains(part), "{form}: {} {}", said.stdout, said.stderr);
    }
    let said = home.run_as_is(&["trace", "show", "no-such-run"]).await;
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("no-such-run"), "{}", said.stderr);
}

/// The body of one request, answered with 200.
async fn collector() -> (String, tokio::task::JoinHandle<(String, Value)>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let got = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        let (head, length) = loop {
            let mut piece = [0; 4096];
            let count = socket.read(&mut piece).await.unwrap();
            bytes.extend_from_slice(&piece[..count]);
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap();
                break (head.clone(), end + 4 + length.trim().parse::<usize>().unwrap());
            }
        };
        while bytes.len() < length {
            let mut piece = [0; 4096];
            let count = socket.read(&mut piece).await.unwrap();
            bytes.extend_from_slice(&piece[..count]);
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        let body = head.len() + 4;
        (head, serde_json::from_slice(&bytes[body..]).unwrap())
    });
    (address, got)
}

#[tokio::test]
async fn spans_reach_a_collector() {
    let server = ScriptedServer::start_with(next).await;
    let home = Home::with_model(&server).with_research().set("agent.main_agent.max_turns=50");
    let (_, result) = home.ask("What?").await;
    let id = result["run_id"].as_str().unwrap();
    let (address, got) = collector().await;
    let said = home.run_as_is(&["trace", "export", id, "--to", "otlp", "--endpoint", &address]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{}", said.stderr);
    let (head, body) = got.await.unwrap();
    assert!(
        head.starts_with("post /v1/traces ") && head.contains("content-type: application/json"),
        "{head}"
    );
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 2 + (TURNS + 2) + TURNS);
    let said =
        home.run_as_is(&["trace", "export", id, "--to", "otlp", "--endpoint", "http://127.0.0.1:9"]).await;
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("http://127.0.0.1:9"), "{}", said.stderr);
}

#[tokio::test]
async fn a_run_tells_the_collector_that_the_environment_names() {
    let server = ScriptedServer::start_with(next).await;
    let home = Home::with_model(&server).with_research().set("agent.main_agent.max_turns=50");
    let (address, got) = collector().await;
    let mut command = home.command(&["ask", "--output", "json", "What?"]);
    let said = Said::from(command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &address).output().await.unwrap());
    assert_eq!(said.code, 0, "{}", said.stderr);
    let (_, body) = got.await.unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 2 + (TURNS + 2) + TURNS);
    // One that is not there costs a note.
    let mut command = home.command(&["ask", "--output", "json", "What?"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let said = Said::from(command.output().await.unwrap());
    assert!(said.code == 0 && said.stderr.contains("http://127.0.0.1:9"), "{}", said.stderr);
}
