//! `fathom mcp serve`: what other people's clients make of our servers. The official conformance suite and npm's
//! inspector are installed once below `target/`; where npm cannot do that, a test says so and ends.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::installed;
use crate::support::Home;

/// The suite and its Node.js; where the suite is for a client it is run beside the client.
const CONFORMANCE: [&str; 2] = ["@modelcontextprotocol/conformance@0.1.16", "node@22.23.3"];
const INSPECTOR: [&str; 2] = ["@modelcontextprotocol/inspector@2.12.0", "node@22.23.3"];

/// Scenarios for a server that has tools and nothing else.
const SCENARIOS: &[&str] =
    &["server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"];

/// All others of the suite, and why they do not apply.
const ELSEWHERE: &[(&str, &[&str])] = &[
    (
        "ask for tools of the suite's own reference server by name",
        &[
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-with-logging",
            "tools-call-error",
            "tools-call-with-progress",
            "json-schema-2020-12",
            "server-sse-polling",
        ],
    ),
    (
        "need a server that asks its client for a model or a person",
        &[
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
    ),
    (
        "are about logging and completion, which are not offered",
        &["logging-set-level", "completion-complete"],
    ),
    (
        "are about resources and prompts, which are not offered",
        &[
            "resources-list",
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "resources-subscribe",
            "resources-unsubscribe",
            "prompts-list",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
        ],
    ),
];

/// What the inspector is asked to do.
const LIST: &[&str] = &["--method", "tools/list"];
const CALL: &[&str] =
    &["--method", "tools/call", "--tool-name", "run_python_code", "--tool-arg", "code_block=6*7"];

/// A server over HTTP that has said where it is.
struct Served {
    program: Child,
    url: String,
}

impl Served {
    async fn start(home: &Home, name: &str) -> Self {
        let mut program = home.command(&["mcp", "serve", name, "--http", "0"]).spawn().unwrap();
        let mut said = String::new();
        let mut stderr = BufReader::new(program.stderr.take().unwrap());
        stderr.read_line(&mut said).await.unwrap();
        let url = said.split_whitespace().last().unwrap_or_default().to_owned();
        assert!(said.starts_with(&format!("{name} is served at http://127.0.0.1:")), "{said}");
        Self { program, url }
    }

    async fn end(mut self, signal: Signal) {
        let pid = Pid::from_raw(self.program.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let status = tokio::time::timeout(Duration::from_secs(60), self.program.wait())
            .await
            .expect("an end")
            .unwrap();
        assert_eq!(status.code(), Some(0));
    }
}

async fn install(name: &'static str, packages: &'static [&'static str]) -> Option<(PathBuf, PathBuf)> {
    let folder = tokio::task::spawn_blocking(move || installed::npm(name, packages)).await.unwrap()?;
    Some((installed::node(&folder, 22), folder))
}

/// What a program comes to: whether it succeeded, what it printed on both streams. It runs meanwhile.
fn output(command: &mut Command) -> JoinHandle<(bool, String, String)> {
    let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
    tokio::spawn(async move {
        let output = running.await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    })
}

fn suite(folder: &Path) -> PathBuf {
    folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js")
}

#[tokio::test]
async fn the_conformance_scenarios_for_a_server_of_tools_pass() {
    let Some((node, folder)) = install("conformance", &CONFORMANCE).await else { return };
    let home = Home::new();
    let served = Served::start(&home, "tool-python").await;
    let runs = SCENARIOS.iter().map(|scenario| {
        let mut command = Command::new(&node);
        command.arg(suite(&folder)).args(["server", "--url", &served.url, "--scenario", scenario]);
        (scenario, output(command.current_dir(home.path(""))))
    });
    for (scenario, run) in runs.collect::<Vec<_>>() {
        let (passed, stdout, stderr) = run.await.unwrap();
        assert!(passed && !stdout.contains("FAILURE"), "{scenario}\n{stdout}\n{stderr}");
    }
    served.end(Signal::INT).await;
}

#[tokio::test]
async fn every_scenario_for_servers_is_run_or_explained() {
    let Some((node, folder)) = install("conformance", &CONFORMANCE).await else { return };
    let (_, stdout, _) = output(Command::new(&node).arg(suite(&folder)).arg("list")).await.unwrap();
    let of_servers = stdout.split("Client scenarios").next().unwrap_or_default();
    let mut listed: Vec<&str> = of_servers
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ")?.split_whitespace().next())
        .collect();
    let mut known: Vec<&str> = SCENARIOS.to_vec();
    known.extend(ELSEWHERE.iter().flat_map(|(_, scenarios)| scenarios.iter().copied()));
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
}

#[tokio::test]
async fn the_inspector_lists_and_calls_over_both_transports() {
    let Some((node, folder)) = install("inspector", &INSPECTOR).await else { return };
    let home = Home::new();
    let served = Served::start(&home, "tool-python").await;
    let launcher =
        folder.join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let program = env!("CARGO_BIN_EXE_fathom");
    let targets = [vec![program, "mcp", "serve", "tool-python"], vec![served.url.as_str()]];
    let runs = targets.iter().flat_map(|target| {
        [LIST, CALL].map(|method| {
            let mut command = Command::new(&node);
            command.arg(&launcher).arg("--cli").args(target).args(method);
            command.env("HOME", home.path("")).current_dir(home.path(""));
            (target, method, output(&mut command))
        })
    });
    for (target, method, run) in runs.collect::<Vec<_>>() {
        let (passed, stdout, stderr) = run.await.unwrap();
        assert!(passed, "{target:?} {method:?}\n{stdout}\n{stderr}");
        let said: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}\n{stdout}\n{stderr}"));
        if method.len() == 2 {
            let tools = said["tools"].as_array().unwrap();
            assert!(tools.iter().any(|tool| tool["name"] == "run_python_code"), "{said}");
        } else {
            assert_eq!(said["content"][0]["text"], json!("42"), "{said}");
        }
    }
    served.end(Signal::TERM).await;
}

#[tokio::test]
async fn addresses_are_judged_before_anything_is_served() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let home = Home::new();
    for (address, expected) in [
        (port.as_str(), "is taken by another program: choose another port"),
        ("0.0.0.0:0", "can be reached from other machines: set a token"),
        ("somewhere", "is no address to listen on"),
    ] {
        let said = home.run(&["mcp", "serve", "tool-python", "--http", address]).await;
        assert_eq!(said.code, 2, "{address}: {}", said.stderr);
        assert!(said.stderr.contains(expected), "{address}: {}", said.stderr);
    }
}

#[tokio::test]
async fn the_token_may_be_in_a_variable() {
    let home = Home::new();
    let with_token = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("FATHOM_MCP_TOKEN", "a-token-0123456789");
        command
    };
    let mut program = with_token(&["mcp", "serve", "task_planner", "--http", "0"]).spawn().unwrap();
    let mut lines = BufReader::new(program.stderr.take().unwrap()).lines();
    let said = lines.next_line().await.unwrap().unwrap();
    let url = said.rsplit(' ').next().unwrap();
    let place = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    for (token, expected) in [("", "401"), ("Authorization: Bearer a-token-0123456789\r\n", "200")] {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\n{token}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut socket = tokio::net::TcpStream::connect(place).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).await.unwrap();
        assert_eq!(std::str::from_utf8(&answer[9..]).unwrap(), expected, "{url}");
    }
    program.kill().await.unwrap();
    // It is in the way of nothing else.
    let said = with_token(&["tools", "list"]).output().await.unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[tokio::test]
async fn a_signal_ends_a_server_with_all_that_it_has_started() {
    let home = Home::new();
    for signal in [Signal::INT, Signal::TERM] {
        let mut program = home.command(&["mcp", "serve", "tool-python"]);
        let mut program = program.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = program.stdin.take().unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        let mut answer_to = async |message: Value| {
            stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            let Some(id) = message["id"].as_u64() else { return Value::Null };
            loop {
                let line = lines.next_line().await.unwrap().expect("an answer");
                let answer: Value = serde_json::from_str(&line).unwrap();
                if answer["id"] == id {
                    break answer;
                }
            }
        };
        let client = json!({"name": "t", "version": "1"});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        answer_to(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})).await;
        answer_to(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let call = |id: u32, name: &str, arguments: Value| {
            let params = json!({"name": name, "arguments": arguments});
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        };
        let made = answer_to(call(2, "create_sandbox", json!({}))).await;
        let made = made["result"]["content"][0]["text"].as_str().unwrap();
        let Some((_, sandbox)) = made.split_once("sandbox_id: ") else {
            eprintln!("skipped: no sandbox here: {made}");
            return;
        };
        let mark = format!("7{}", std::process::id());
        let code =
            format!("import subprocess; subprocess.Popen(['sleep', '{mark}'], start_new_session=True).pid");
        let arguments = json!({"code_block": code, "sandbox_id": sandbox});
        let answer = answer_to(call(3, "run_python_code", arguments)).await;
        assert!(running(&mark), "{answer}");
        let pid = Pid::from_raw(program.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let mut stderr = String::new();
        let _ = program.stderr.take().unwrap().read_to_string(&mut stderr).await;
        let status =
            tokio::time::timeout(Duration::from_secs(60), program.wait()).await.expect("an end").unwrap();
        assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
        assert!(!running(&mark), "left behind after {signal:?}");
    }
}

/// Whether a process with that in its command line runs.
fn running(mark: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(mark)
    })
}
