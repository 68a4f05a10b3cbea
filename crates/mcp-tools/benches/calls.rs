//! What one call costs on an open session, beside what starting a server for every call costs.
//!
//! The server over stdio is this program itself, run with `--serve`.

use std::collections::BTreeMap;

use divan::Bencher;
use mcp_tools::{ManagerOptions, ServerSpec, ToolManager, Transport, in_process, serve_handler};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::{self, JsonSchema};
use rmcp::{tool, tool_router};
use serde::Deserialize;
use serde_json::{Map, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Deserialize, JsonSchema)]
struct Text {
    /// What is given back.
    text: String,
}

#[derive(Clone)]
struct Echo;

#[tool_router(server_handler)]
impl Echo {
    #[tool(description = "Gives the text back.")]
    fn echo(&self, Parameters(Text { text }): Parameters<Text>) -> String {
        text
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "--serve") {
        serve();
    } else {
        divan::main();
    }
}

/// Serves over standard input and output, each joined to one end of an in-memory pipe.
fn serve() {
    let Ok(runtime) = Runtime::new() else { return };
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let serving = tokio::spawn(serve_handler(Echo, theirs, CancellationToken::new()));
        let (mut from_server, mut to_server) = tokio::io::split(ours);
        let (mut input, mut output) = (tokio::io::stdin(), Flushed(tokio::io::stdout()));
        let answers = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut output).await });
        let _ = tokio::io::copy(&mut input, &mut to_server).await;
        drop(to_server);
        answers.abort();
        serving.abort();
    });
}

/// Standard output that holds nothing back.
struct Flushed(tokio::io::Stdout);

impl tokio::io::AsyncWrite for Flushed {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        let written = std::pin::Pin::new(&mut self.0).poll_write(context, bytes);
        let _ = std::pin::Pin::new(&mut self.0).poll_flush(context);
        written
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_shutdown(context)
    }
}

fn own_program() -> ServerSpec {
    let command = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
    let transport =
        Transport::Stdio { command, args: vec!["--serve".to_owned()], env: BTreeMap::new(), cwd: None };
    ServerSpec::new("s", transport)
}

fn built_in() -> ServerSpec {
    ServerSpec::built_in(in_process("s", || Echo))
}

fn arguments(bytes: usize) -> Map<String, serde_json::Value> {
    Map::from_iter([("text".to_owned(), json!("x".repeat(bytes)))])
}

async fn call(manager: &ToolManager, bytes: usize) {
    let outcome = manager.call("s", "echo", arguments(bytes), &CancellationToken::new()).await;
    assert_eq!(outcome.failure, None, "{outcome:?}");
}

fn calls(bencher: Bencher<'_, '_>, spec: ServerSpec, bytes: usize) {
    let Ok(runtime) = Runtime::new() else { return };
    let manager = runtime.block_on(ToolManager::start(vec![spec], ManagerOptions::default()));
    bencher.bench_local(|| runtime.block_on(call(&manager, bytes)));
    runtime.block_on(manager.shutdown());
}

#[divan::bench(args = [10, 10_000])]
fn call_in_process(bencher: Bencher<'_, '_>, bytes: usize) {
    calls(bencher, built_in(), bytes);
}

#[divan::bench(args = [10, 10_000])]
fn call_over_stdio(bencher: Bencher<'_, '_>, bytes: usize) {
    calls(bencher, own_program(), bytes);
}

#[divan::bench(sample_count = 20)]
fn start_call_and_end_over_stdio(bencher: Bencher<'_, '_>) {
    let Ok(runtime) = Runtime::new() else { return };
    bencher.bench_local(|| {
        runtime.block_on(async {
            let manager = ToolManager::start(vec![own_program()], ManagerOptions::default()).await;
            call(&manager, 10).await;
            manager.shutdown().await;
        });
    });
}
