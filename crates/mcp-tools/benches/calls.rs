//! What one call costs on an open session, beside what starting a server for every call costs.
//!
//! The server over stdio is this program itself, run with `--serve`.

use std::collections::BTreeMap;

use divan::Bencher;
use mcp_tools::{ManagerOptions, ServerSpec, ToolManager, Transport, in_process, serve_stdio};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::{self, JsonSchema};
use rmcp::{tool, tool_router};
use serde::Deserialize;
use serde_json::{Map, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Calls of a figure: the first hundred or so find processors that have gone to sleep.
const SAMPLES: u32 = 5_000;
/// The name of the one server.
const SERVER: &str = "s";

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

/// Serves over standard input and output as programs of this crate do.
fn serve() {
    let Ok(runtime) = Runtime::new() else { return };
    runtime.block_on(serve_stdio(in_process(SERVER, || Echo), CancellationToken::new()));
}

fn own_program() -> ServerSpec {
    let command = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
    let transport =
        Transport::Stdio { command, args: vec!["--serve".to_owned()], env: BTreeMap::new(), cwd: None };
    ServerSpec::new(SERVER, transport)
}

fn built_in() -> ServerSpec {
    ServerSpec::built_in(in_process(SERVER, || Echo))
}

fn arguments(bytes: usize) -> Map<String, serde_json::Value> {
    Map::from_iter([("text".to_owned(), json!("x".repeat(bytes)))])
}

async fn call(manager: &ToolManager, tool: &str, arguments: Map<String, serde_json::Value>) {
    let outcome = manager.call(SERVER, tool, arguments, &CancellationToken::new()).await;
    assert_eq!(outcome.failure, None, "{outcome:?}");
}

fn calls(bencher: Bencher<'_, '_>, spec: ServerSpec, tool: &str, arguments: &Map<String, serde_json::Value>) {
    let Ok(runtime) = Runtime::new() else { return };
    let manager = runtime.block_on(ToolManager::start(vec![spec], ManagerOptions::default()));
    bencher.bench_local(|| runtime.block_on(call(&manager, tool, arguments.clone())));
    runtime.block_on(manager.shutdown());
}

#[divan::bench(args = [10, 10_000], sample_count = SAMPLES)]
fn call_in_process(bencher: Bencher<'_, '_>, bytes: usize) {
    calls(bencher, built_in(), "echo", &arguments(bytes));
}

/// A server that has several tools, with arguments of its own each.
#[cfg(feature = "planner")]
#[divan::bench(sample_count = SAMPLES)]
fn call_of_the_planner(bencher: Bencher<'_, '_>) {
    let planner = Transport::InProcess(mcp_tools::servers::planner::server());
    let planner = ServerSpec::new(SERVER, planner);
    calls(bencher, planner, "list_todos", &Map::new());
}

#[divan::bench(args = [10, 10_000], sample_count = SAMPLES)]
fn call_over_stdio(bencher: Bencher<'_, '_>, bytes: usize) {
    calls(bencher, own_program(), "echo", &arguments(bytes));
}

#[divan::bench(sample_count = 20)]
fn start_call_and_end_over_stdio(bencher: Bencher<'_, '_>) {
    let Ok(runtime) = Runtime::new() else { return };
    bencher.bench_local(|| {
        runtime.block_on(async {
            let manager = ToolManager::start(vec![own_program()], ManagerOptions::default()).await;
            call(&manager, "echo", arguments(10)).await;
            manager.shutdown().await;
        });
    });
}
