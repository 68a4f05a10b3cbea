//! Streamable HTTP: a real server over the loopback, and the words for what goes wrong.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use mcp_tools::{ManagerOptions, ServerSpec, ToolFailure, ToolManager, Transport};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use wiremock::matchers::{header, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::npm::program;
use super::support::{failure_of, text_of};

fn endpoint(url: String) -> ServerSpec {
    let transport = Transport::Http { url, bearer: None, headers: BTreeMap::new() };
    let mut spec = ServerSpec::new("s", transport);
    spec.start_limit = Duration::from_secs(30);
    spec.call_limit = Duration::from_secs(30);
    spec
}

async fn reason_of(spec: ServerSpec) -> String {
    let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
    let reason = manager.statuses().remove(0).error.expect("a reason");
    manager.shutdown().await;
    reason
}

/// A port that no program is given unasked: it lies below those that the system hands out.
fn free_port() -> u16 {
    let start = 10_000 + u16::try_from(std::process::id() * 7 % 20_000).unwrap();
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (start..).find(is_free).unwrap()
}

#[tokio::test]
async fn statuses_are_explained() {
    for (status, expected) in [
        (401, "HTTP status 401: a token is missing or wrong"),
        (403, "HTTP status 403: the token does not permit this"),
        (404, "HTTP status 404: nothing is there: check the path"),
        (405, "HTTP status 405: the address is no streamable HTTP endpoint"),
        (429, "HTTP status 429: too many requests"),
        (500, "HTTP status 500: the server has a fault of its own"),
        (503, "HTTP status 503: the server has a fault of its own"),
        (200, "is this the address of an MCP endpoint?"),
    ] {
        let server = MockServer::start().await;
        let answer = ResponseTemplate::new(status).set_body_raw("<html>", "text/html");
        Mock::given(method("POST")).respond_with(answer).mount(&server).await;
        let reason = reason_of(endpoint(format!("{}/mcp?key=s3cr3t", server.uri()))).await;
        assert!(reason.contains(expected), "{reason}");
        assert!(reason.starts_with(&format!("{}/mcp: ", server.uri())), "{reason}");
        assert!(!reason.contains("s3cr3t"), "{reason}");
    }
}

#[tokio::test]
async fn a_challenge_for_a_token_is_explained() {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(401).insert_header("WWW-Authenticate", "Bearer");
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let reason = reason_of(endpoint(server.uri())).await;
    assert!(reason.contains("HTTP status 401: a token is missing or wrong"), "{reason}");
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_explained() {
    // Bound and not listening: nobody else can take the port meanwhile.
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let reason = reason_of(endpoint(format!("http://{}/mcp", silent.local_addr().unwrap()))).await;
    assert!(reason.contains("no connection") && reason.contains("is the server running?"), "{reason}");
    let reason = reason_of(endpoint("file:///etc/passwd".to_owned())).await;
    assert!(reason.contains("the scheme `file`: use http or https"), "{reason}");
}

#[tokio::test]
async fn a_mute_endpoint_ends_at_its_limit() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut spec = endpoint(format!("http://{}/mcp", listener.local_addr().unwrap()));
    spec.start_limit = Duration::from_millis(500);
    let reason = reason_of(spec).await;
    assert!(reason.contains("no answer to the handshake within 0.5 s"), "{reason}");
}

#[tokio::test]
async fn token_and_headers_are_sent() {
    let server = MockServer::start().await;
    let initialized = ResponseTemplate::new(200).set_body_json(json!({
        "jsonrpc": "2.0", "id": 0,
        "result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "n", "version": "1"}},
    }));
    Mock::given(method("POST"))
        .and(header("Authorization", "Bearer t0ken"))
        .and(header("X-Own", "value"))
        .respond_with(initialized)
        .mount(&server)
        .await;
    let mut spec = endpoint(server.uri());
    spec.transport = Transport::Http {
        url: server.uri(),
        bearer: Some("t0ken".to_owned()),
        headers: BTreeMap::from([("X-Own".to_owned(), "value".to_owned())]),
    };
    let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
    // A server that offers no tools is in use and has none.
    assert_eq!(manager.statuses()[0].error, None);
    assert!(manager.definitions().is_empty());
    manager.shutdown().await;
}

/// npm's server over HTTP; none where it cannot be had.
async fn everything(port: u16) -> Option<Child> {
    let program = program("mcp-server-everything")?;
    let mut child = Command::new(program)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("it says when it listens");
        if line.contains("listening") {
            break;
        }
    }
    // Its later lines must not fill the pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Some(child)
}

#[tokio::test]
async fn server_everything_is_called_over_http() {
    let port = free_port();
    let Some(mut server) = everything(port).await else { return };
    let spec = endpoint(format!("http://127.0.0.1:{port}/mcp"));
    let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
    assert_eq!(manager.statuses()[0].error, None);
    assert_eq!(text_of(&manager, "echo", json!({"message": "hello"})).await, "Echo: hello");

    // A server that was started anew has forgotten the session; a new one is opened unseen.
    server.kill().await.unwrap();
    let text = failure_of(&manager, "echo", json!({"message": "x"}), ToolFailure::ServerDied).await;
    assert!(text.contains("no connection") && text.contains("is the server running?"), "{text}");
    let _server = everything(port).await.unwrap();
    assert_eq!(text_of(&manager, "echo", json!({"message": "again"})).await, "Echo: again");
    manager.shutdown().await;
}
