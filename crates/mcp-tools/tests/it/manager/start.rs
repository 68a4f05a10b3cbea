//! Which servers come into use, and what is said of those that do not.

use std::sync::Arc;
use std::time::Duration;

use mcp_tools::{
    InProcessServer, ManagerOptions, ServerSpec, ToolFailure, ToolManager, Transport, serve_handler,
};
use serde_json::json;
use tokio::io::DuplexStream;
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

use super::in_process::Counter;
use super::support::{failure_of, fixture, fixture_path, started, stdio, text_of};

async fn reason_of(spec: ServerSpec) -> String {
    let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
    assert!(manager.definitions().is_empty());
    let status = manager.statuses().remove(0);
    assert!(status.tools.is_empty());
    manager.shutdown().await;
    status.error.expect("a reason")
}

#[tokio::test]
async fn failures_are_named_with_what_to_do() {
    let limited = |options: &[&str], seconds| {
        let mut spec = fixture("s", options);
        spec.start_limit = Duration::from_secs(seconds);
        spec
    };
    let mut lost = fixture("s", &[]);
    if let Transport::Stdio { cwd, .. } = &mut lost.transport {
        *cwd = Some("/does/not/exist".into());
    }
    for (spec, expected) in [
        (
            stdio("s", "no-such-program-here", &[]),
            "the program `no-such-program-here` was not found: install it",
        ),
        (stdio("s", "/no/such/program", &[]), "the program `/no/such/program` was not found: check the path"),
        (stdio("s", "/etc/passwd", &[]), "the program `/etc/passwd` may not be run"),
        (lost, "its working directory `/does/not/exist` does not exist"),
        (
            fixture("s", &["--exit-at-start", "3"]),
            "the program ended with status 3 before it was ready; the last that it printed:\n  fixture: a key is missing\n  fixture: giving up",
        ),
        (
            stdio("s", "sh", &["-c", "echo usage: server; exit 64"]),
            "ended with status 64 before it was ready; the last that it printed:\n  usage: server",
        ),
        (
            stdio("s", "sh", &["-c", "kill -9 $$"]),
            "the program ended by signal 9 before it was ready; it printed nothing",
        ),
        (
            fixture("s", &["--refuse"]),
            "it refused the handshake (JSON-RPC error -32602): Unsupported protocol version",
        ),
        (limited(&["--mute"], 1), "no answer to the handshake within 1 s: raise `start_limit`"),
        (limited(&["--no-tools"], 3), "no answer to the list of tools within 3 s: raise `start_limit`"),
    ] {
        let reason = reason_of(spec).await;
        assert!(reason.contains(expected), "{reason}\nshould say: {expected}");
    }
}

#[tokio::test]
async fn failed_servers_are_left_out_and_the_others_work() {
    let specs = vec![
        stdio("missing", "no-such-program-here", &[]),
        fixture("s", &[]),
        fixture("s", &["--mute"]),
        fixture("noisy", &["--junk-first"]),
    ];
    let manager = ToolManager::start(specs, ManagerOptions::default()).await;
    let statuses = manager.statuses();
    let names: Vec<_> =
        statuses.iter().map(|status| (status.name.as_str(), status.error.is_none())).collect();
    assert_eq!(names, [("missing", false), ("s", true), ("s", false), ("noisy", true)]);
    assert!(statuses[2].error.as_deref().unwrap().contains("has the same name"), "{statuses:?}");
    let servers: Vec<_> = manager.definitions().iter().map(|tool| tool.server.clone()).collect();
    let mut sorted = servers.clone();
    sorted.sort_by_key(|server| server == "noisy");
    assert_eq!(servers, sorted, "servers in the order given");
    assert_eq!(text_of(&manager, "echo", json!({"text": "hello"})).await, "hello");

    let outcome = manager.call("missing", "x", Default::default(), &CancellationToken::new()).await;
    assert_eq!(outcome.failure, Some(ToolFailure::UnknownServer));
    assert!(outcome.result.joined_text().contains("was not found"), "{outcome:?}");
    let outcome = manager.call("nosy", "x", Default::default(), &CancellationToken::new()).await;
    assert_eq!(outcome.failure, Some(ToolFailure::UnknownServer));
    let text = outcome.result.joined_text();
    assert_eq!(text, "There is no server `nosy`. Do you mean `noisy`? Servers: `s`, `noisy`.");
    manager.shutdown().await;
}

#[tokio::test]
async fn tools_are_listed_in_order_from_all_pages() {
    let (whole, paged) = tokio::join!(started(&[]), started(&["--pages"]));
    let names = |manager: &ToolManager| -> Vec<String> {
        manager.definitions().iter().map(|tool| tool.name.clone()).collect()
    };
    assert_eq!(names(&whole), names(&paged));
    assert_eq!(names(&whole)[..3], ["echo", "add", "fail"]);
    assert_eq!(whole.definitions()[1].input_schema["required"], json!(["a", "b"]));
    tokio::join!(whole.shutdown(), paged.shutdown());
}

#[tokio::test]
async fn lists_that_miss_the_protocol_cost_no_tool() {
    let whole = started(&[]).await;
    let names = |manager: &ToolManager| -> Vec<String> {
        manager.definitions().iter().map(|tool| tool.name.clone()).collect()
    };
    let ragged = [names(&whole), vec!["bare".to_owned()]].concat();
    for (options, expected) in [
        (&["--marked"][..], names(&whole)),
        (&["--ragged"], ragged),
        (&["--last-cursor", ""], names(&whole)),
        (&["--last-cursor", "same"], names(&whole)),
    ] {
        let manager = started(options).await;
        assert_eq!(names(&manager), expected, "{options:?}");
        assert_eq!(text_of(&manager, "echo", json!({"text": "hello"})).await, "hello", "{options:?}");
        manager.shutdown().await;
    }
    whole.shutdown().await;
}

#[tokio::test]
async fn blacklisted_and_disabled_tools_are_neither_shown_nor_called() {
    let options = ManagerOptions { blacklist: vec![("s".into(), "die".into())], ..ManagerOptions::default() };
    let mut spec = fixture("s", &[]);
    spec.disabled_tools = vec!["echo".into()];
    let manager = ToolManager::start(vec![spec], options).await;
    assert!(manager.definitions().iter().all(|tool| tool.name != "die" && tool.name != "echo"));
    for tool in ["die", "echo"] {
        let text = failure_of(&manager, tool, json!({}), ToolFailure::UnknownTool).await;
        assert!(text.starts_with(&format!("Unknown tool: {tool}")), "{text}");
    }
    assert_eq!(text_of(&manager, "count", json!({})).await, "1");
    manager.shutdown().await;
}

#[tokio::test]
async fn changed_tools_are_listed_again_when_asked() {
    let manager = started(&[]).await;
    let has_grown = || manager.definitions().iter().any(|tool| tool.name == "grown");
    assert!(!manager.refresh().await);
    assert_eq!(text_of(&manager, "grow", json!({})).await, "grew");
    assert!(!has_grown(), "the prompt must not change under a running pass");
    // The notification is handled beside the answer; one more round trip puts it before.
    assert_eq!(text_of(&manager, "count", json!({})).await, "1");
    assert!(manager.refresh().await);
    assert!(has_grown());
    assert_eq!(text_of(&manager, "grown", json!({})).await, "grown");
    manager.shutdown().await;
}

#[tokio::test]
async fn servers_inherit_little_of_the_environment() {
    // Cargo sets this one for every test; it stands for a key of the program's own.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    let mut spec = fixture("s", &[]);
    if let Transport::Stdio { env, .. } = &mut spec.transport {
        env.insert("OWN".into(), "value".into());
    }
    let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
    for (name, expected) in [("CARGO_MANIFEST_DIR", "(unset)"), ("OWN", "value")] {
        assert_eq!(text_of(&manager, "env", json!({"name": name})).await, expected);
    }
    assert_ne!(text_of(&manager, "env", json!({"name": "PATH"})).await, "(unset)");
    manager.shutdown().await;
}

/// Serves only once as many sessions as the barrier asks for are being opened.
struct Together(&'static str, Arc<Barrier>);

#[async_trait::async_trait]
impl InProcessServer for Together {
    fn name(&self) -> &str {
        self.0
    }

    async fn serve(&self, io: DuplexStream, stop: CancellationToken) {
        self.1.wait().await;
        serve_handler(Counter::default(), io, stop).await;
    }

    fn confinement(&self) -> Vec<String> {
        vec!["landlock".to_owned()]
    }
}

#[tokio::test]
async fn servers_start_at_the_same_time() {
    let barrier = Arc::new(Barrier::new(3));
    let specs = ["a", "b", "c"]
        .map(|name| {
            let mut spec = ServerSpec::built_in(Arc::new(Together(name, Arc::clone(&barrier))));
            spec.start_limit = Duration::from_secs(30);
            spec
        })
        .to_vec();
    let manager = ToolManager::start(specs, ManagerOptions::default()).await;
    for status in manager.statuses() {
        assert_eq!(status.error, None);
        assert_eq!(status.sandbox, ["landlock"]);
    }
    manager.shutdown().await;
}

#[tokio::test]
async fn a_file_of_a_desktop_client_starts_its_servers() {
    let text = format!(
        r#"{{"mcpServers": {{"s": {{"command": "python3", "args": ["{}"], "env": {{"KEY": "${{WORD}}"}}}}}}}}"#,
        fixture_path()
    );
    let specs =
        mcp_tools::parse_mcp_json(&text, "mcp.json", &|name| (name == "WORD").then(|| "w".into())).unwrap();
    let manager = ToolManager::start(specs.servers, ManagerOptions::default()).await;
    assert_eq!(text_of(&manager, "env", json!({"name": "KEY"})).await, "w");
    manager.shutdown().await;
    let text = failure_of(&manager, "echo", json!({}), ToolFailure::ServerDied).await;
    assert!(text.contains("was shut down"), "{text}");
}
