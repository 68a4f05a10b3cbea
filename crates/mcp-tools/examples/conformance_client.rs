//! Connects to an MCP endpoint, lists its tools and calls each of them with made-up arguments: the client that
//! `@modelcontextprotocol/conformance` examines.
//!
//! ```text
//! cargo run -p mcp-tools --example conformance_client -- http://127.0.0.1:8000/mcp
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;

use mcp_tools::{ManagerOptions, ServerSpec, ToolManager, Transport};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

#[tokio::main]
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: conformance_client URL");
        return ExitCode::from(2);
    };
    let transport = Transport::Http { url, bearer: None, headers: BTreeMap::new() };
    let server = ServerSpec::new("server", transport);
    let manager = ToolManager::start(vec![server], ManagerOptions::default()).await;
    let mut code = ExitCode::SUCCESS;
    for status in manager.statuses() {
        if let Some(error) = status.error {
            eprintln!("{}: {error}", status.name);
            code = ExitCode::FAILURE;
        }
    }
    for tool in manager.definitions().iter() {
        let arguments = made_up(&tool.input_schema);
        let outcome = manager.call("server", &tool.name, arguments, &CancellationToken::new()).await;
        println!("{}: {}", tool.name, outcome.result.joined_text());
        if let Some(failure) = outcome.failure {
            eprintln!("{}: {}", tool.name, failure.kind());
            code = ExitCode::FAILURE;
        }
    }
    manager.shutdown().await;
    code
}

/// One value for every argument that the schema names.
fn made_up(schema: &Value) -> Map<String, Value> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Map::new() };
    let value = |schema: &Value| match schema.get("type").and_then(Value::as_str) {
        Some("number" | "integer") => json!(3),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    };
    properties.iter().map(|(name, schema)| (name.clone(), value(schema))).collect()
}
