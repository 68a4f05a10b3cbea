//! What a sandbox costs: its start with an interpreter in it, and a call into one that lives.

use std::sync::Arc;

use divan::Bencher;
use mcp_tools::servers::python::{PythonOptions, server, stateless_server};
use mcp_tools::{InProcessServer, ManagerOptions, ServerSpec, ToolManager};
use serde_json::{Map, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

fn main() {
    divan::main();
}

fn calls(bencher: Bencher<'_, '_>, server: Arc<dyn InProcessServer>, tool: &str, argument: &str) {
    let Ok(runtime) = Runtime::new() else { return };
    let name = server.name().to_owned();
    let specs = vec![ServerSpec::built_in(server)];
    let manager = runtime.block_on(ToolManager::start(specs, ManagerOptions::default()));
    let call = || {
        let arguments = Map::from_iter([(argument.to_owned(), json!("1 + 1"))]);
        let outcome = runtime.block_on(manager.call(&name, tool, arguments, &CancellationToken::new()));
        assert_eq!(outcome.result.joined_text(), "2");
    };
    // The first looks for an interpreter.
    call();
    bencher.bench_local(call);
    runtime.block_on(manager.shutdown());
}

#[divan::bench(sample_count = 50)]
fn start_run_and_end(bencher: Bencher<'_, '_>) {
    calls(bencher, stateless_server(PythonOptions::default()), "python", "code");
}

#[divan::bench]
fn call_into_a_live_interpreter(bencher: Bencher<'_, '_>) {
    calls(bencher, server(PythonOptions::default()), "run_python_code", "code_block");
}
