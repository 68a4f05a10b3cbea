//! Starts one MCP server, lists its tools, and calls one where a name is given.
//!
//! ```text
//! cargo run -p mcp-tools --example call_tool -- COMMAND [ARG…] [--call TOOL [JSON]]
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;

use mcp_tools::{ManagerOptions, ServerSpec, ToolManager, Transport};
use tokio_util::sync::CancellationToken;

#[tokio::main]
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]
async fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let call = words.iter().position(|word| word == "--call").map(|place| words.split_off(place));
    let Some((command, args)) = words.split_first() else {
        eprintln!("usage: call_tool COMMAND [ARG…] [--call TOOL [JSON]]");
        return ExitCode::from(2);
    };
    let transport =
        Transport::Stdio { command: command.clone(), args: args.to_vec(), env: BTreeMap::new(), cwd: None };
    let manager =
        ToolManager::start(vec![ServerSpec::new("server", transport)], ManagerOptions::default()).await;
    for status in manager.statuses() {
        if let Some(error) = status.error {
            eprintln!("{}: {error}", status.name);
            return ExitCode::FAILURE;
        }
    }
    for tool in manager.definitions().iter() {
        println!("{}: {}", tool.name, tool.description.lines().next().unwrap_or_default());
    }
    let mut code = ExitCode::SUCCESS;
    if let Some([_, tool, rest @ ..]) = call.as_deref() {
        let json = rest.first().map_or("{}", String::as_str);
        match serde_json::from_str(json) {
            Ok(arguments) => {
                let outcome = manager.call("server", tool, arguments, &CancellationToken::new()).await;
                println!("\n{}", outcome.result.joined_text());
                if let Some(failure) = outcome.failure {
                    eprintln!("failed: {}", failure.kind());
                    code = ExitCode::FAILURE;
                }
            }
            Err(error) => {
                eprintln!("the arguments are no JSON object: {error}");
                code = ExitCode::from(2);
            }
        }
    }
    manager.shutdown().await;
    code
}
