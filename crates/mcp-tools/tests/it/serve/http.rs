//! A server over streamable HTTP, from its own client and from raw requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_tools::{
    HttpOptions, HttpServer, ManagerOptions, ServeError, ServerSpec, ToolFailure, ToolManager, Transport,
    in_process,
};
use rmcp::{tool, tool_router};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Counts its calls; every handler by itself.
struct Counter {
    count: AtomicUsize,
    ended: Arc<AtomicUsize>,
    hanging: CancellationToken,
    dropped: CancellationToken,
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[tool_router(server_handler)]
impl Counter {
    #[tool(description = "How often this was called in this session.")]
    fn count(&self) -> String {
        (self.count.fetch_add(1, Ordering::SeqCst) + 1).to_string()
    }

    #[tool(description = "Never returns.")]
    async fn hang(&self) -> String {
        let _dropped = self.dropped.clone().drop_guard();
        self.hanging.cancel();
        std::future::pending().await
    }
}

/// A server that listens, and what can be seen of it from outside.
struct Served {
    url: String,
    stop: CancellationToken,
    running: JoinHandle<()>,
    ended: Arc<AtomicUsize>,
    hanging: CancellationToken,
    dropped: CancellationToken,
}

impl Served {
    async fn start(token: Option<&str>) -> Self {
        let (ended, hanging, dropped) =
            (Arc::new(AtomicUsize::new(0)), CancellationToken::new(), CancellationToken::new());
        let shared = (Arc::clone(&ended), hanging.clone(), dropped.clone());
        let server = in_process("counter", move || Counter {
            count: AtomicUsize::new(0),
            ended: Arc::clone(&shared.0),
            hanging: shared.1.clone(),
            dropped: shared.2.clone(),
        });
        let options = HttpOptions { address: ([127, 0, 0, 1], 0).into(), token: token.map(str::to_owned) };
        let server = HttpServer::bind(server, options).await.unwrap();
        let (url, stop) = (server.url(), CancellationToken::new());
        let running = tokio::spawn(server.run(stop.clone()));
        Self { url, stop, running, ended, hanging, dropped }
    }

    fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap()
    }

    async fn client(&self, bearer: Option<&str>) -> ToolManager {
        let transport = Transport::Http {
            url: self.url.clone(),
            bearer: bearer.map(str::to_owned),
            headers: BTreeMap::new(),
        };
        ToolManager::start(vec![ServerSpec::new("s", transport)], ManagerOptions::default()).await
    }

    /// The status of an `initialize` with these headers.
    async fn status(&self, path: &str, headers: &[(&str, &str)]) -> u16 {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        .to_string();
        let mut head = format!(
            "POST {path} HTTP/1.1\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = TcpStream::connect(self.address()).await.unwrap();
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.unwrap();
        String::from_utf8_lossy(&start[9..]).parse().unwrap()
    }

    async fn end(self) -> usize {
        self.stop.cancel();
        tokio::time::timeout(Duration::from_secs(30), self.running).await.expect("an end").unwrap();
        self.ended.load(Ordering::SeqCst)
    }
}

async fn text(manager: &ToolManager, tool: &str) -> (String, Option<ToolFailure>) {
    let outcome = manager.call("s", tool, Map::<String, Value>::new(), &CancellationToken::new()).await;
    (outcome.result.joined_text(), outcome.failure)
}

#[tokio::test]
async fn every_client_has_a_server_of_its_own() {
    let served = Served::start(None).await;
    let (one, other) = tokio::join!(served.client(None), served.client(None));
    assert_eq!(
        one.definitions().iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
        ["count", "hang"]
    );
    for expected in ["1", "2"] {
        assert_eq!(text(&one, "count").await, (expected.to_owned(), None));
    }
    assert_eq!(text(&other, "count").await, ("1".to_owned(), None));
    one.shutdown().await;
    other.shutdown().await;
    // The one that was asked for its name, and the two.
    assert_eq!(served.end().await, 3);
}

#[tokio::test]
async fn the_end_does_not_wait_for_a_call_that_hangs() {
    let served = Served::start(None).await;
    let client = served.client(None).await;
    let (hanging, stop) = (served.hanging.clone(), served.stop.clone());
    let ((said, failure), ()) = tokio::join!(text(&client, "hang"), async {
        hanging.cancelled().await;
        stop.cancel();
    });
    assert_eq!(failure, Some(ToolFailure::ServerDied), "{said}");
    assert_eq!(served.end().await, 2);
    client.shutdown().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_on_the_other_side() {
    let served = Served::start(None).await;
    let client = served.client(None).await;
    let cancel = CancellationToken::new();
    let call = client.call("s", "hang", Map::new(), &cancel);
    let (outcome, ()) = tokio::join!(call, async {
        served.hanging.cancelled().await;
        cancel.cancel();
    });
    assert_eq!(outcome.failure, Some(ToolFailure::Cancelled));
    tokio::time::timeout(Duration::from_secs(30), served.dropped.cancelled()).await.expect("it is dropped");
    assert_eq!(text(&client, "count").await.0, "1");
    client.shutdown().await;
    served.end().await;
}

#[tokio::test]
async fn pages_and_rebound_names_stay_outside() {
    let served = Served::start(None).await;
    let address = served.address().to_owned();
    let port = address.rsplit_once(':').unwrap().1.to_owned();
    let local = format!("localhost:{port}");
    for (path, headers, expected) in [
        ("/mcp", vec![("host", address.as_str())], 200),
        ("/mcp", vec![("host", &local)], 200),
        ("/mcp/", vec![("host", &address)], 200),
        ("/mcp", vec![("host", &address), ("origin", "http://localhost:6274")], 200),
        ("/mcp", vec![("host", "evil.example")], 403),
        ("/mcp", vec![("host", &address), ("origin", "http://evil.example")], 403),
        ("/mcp", vec![("host", &address), ("origin", "https://localhost.evil.example")], 403),
        ("/mcp", vec![("host", &address), ("origin", "null")], 403),
        ("/mcp", vec![], 400),
        ("/", vec![("host", &address)], 404),
        ("/sse", vec![("host", &address)], 404),
    ] {
        assert_eq!(served.status(path, &headers).await, expected, "{path} {headers:?}");
    }
    served.end().await;
}

#[tokio::test]
async fn a_token_is_asked_for() {
    let served = Served::start(Some("s3cr3t")).await;
    let address = served.address().to_owned();
    for (value, expected) in [
        (None, 401),
        (Some("Bearer wrong"), 401),
        (Some("s3cr3t"), 401),
        (Some("Basic s3cr3t"), 401),
        (Some("Bearer s3cr3t"), 200),
        (Some("bearer s3cr3t"), 200),
    ] {
        let mut headers = vec![("host", address.as_str())];
        headers.extend(value.map(|value| ("authorization", value)));
        assert_eq!(served.status("/mcp", &headers).await, expected, "{value:?}");
    }
    let client = served.client(Some("s3cr3t")).await;
    assert_eq!(text(&client, "count").await, ("1".to_owned(), None));
    client.shutdown().await;
    let client = served.client(None).await;
    let reason = client.statuses().remove(0).error.expect("a reason");
    assert!(reason.contains("a token is missing or wrong"), "{reason}");
    served.end().await;
}

#[tokio::test]
async fn addresses_that_cannot_be_had_are_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = || {
        let ended = Arc::new(AtomicUsize::new(0));
        in_process("idle", move || Counter {
            count: AtomicUsize::new(0),
            ended: Arc::clone(&ended),
            hanging: CancellationToken::new(),
            dropped: CancellationToken::new(),
        })
    };
    let bind = async |address: &str, token: Option<&str>| {
        let options = HttpOptions { address: address.parse().unwrap(), token: token.map(str::to_owned) };
        HttpServer::bind(server(), options).await.map(drop)
    };
    let error = bind(&taken.local_addr().unwrap().to_string(), None).await.unwrap_err();
    assert!(matches!(error, ServeError::Taken { .. }) && error.is_retryable(), "{error}");
    assert!(error.to_string().contains("is taken by another program: choose another port"), "{error}");
    let error = bind("0.0.0.0:0", None).await.unwrap_err();
    assert!(matches!(error, ServeError::Unprotected { .. }), "{error}");
    assert!(bind("0.0.0.0:0", Some("t")).await.is_ok());
    for token in ["", "two\nlines"] {
        assert!(matches!(bind("127.0.0.1:0", Some(token)).await, Err(ServeError::Token)), "{token:?}");
    }
    let error = bind("203.0.113.1:1", Some("t")).await.unwrap_err();
    assert!(
        matches!(error, ServeError::Listen { .. }) && error.to_string().contains("203.0.113.1:1"),
        "{error}"
    );
}
