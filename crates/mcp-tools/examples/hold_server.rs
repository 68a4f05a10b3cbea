//! Holds one MCP server open and does what it is told on standard input: the tests of how a program
//! may end use it, and it serves to try a server by hand.
//!
//! ```text
//! hold_server COMMAND [ARG…]
//! ```
//!
//! Each line is `TOOL [JSON]`, answered by the result as one JSON string, or one of `!exit` (leave
//! without ending the server), `!panic`, `!drop` (drop the manager after its runtime). At the end of
//! its input it ends the server and leaves.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};

use mcp_tools::{ManagerOptions, ServerSpec, ToolManager, Transport};
use tokio_util::sync::CancellationToken;

#[allow(clippy::panic, clippy::print_stderr, reason = "one way to end; an example prints")]
fn main() -> std::io::Result<()> {
    let mut words = std::env::args().skip(1);
    let Some(command) = words.next() else {
        eprintln!("usage: hold_server COMMAND [ARG…]");
        std::process::exit(2);
    };
    let transport = Transport::Stdio { command, args: words.collect(), env: BTreeMap::new(), cwd: None };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let servers = vec![ServerSpec::new("server", transport)];
    let manager = runtime.block_on(ToolManager::start(servers, ManagerOptions::default()));
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (tool, json) = line.split_once(' ').unwrap_or((&line, "{}"));
        match tool {
            "!exit" => std::process::exit(3),
            "!panic" => panic!("as asked"),
            "!drop" => {
                drop(runtime);
                drop(manager);
                return Ok(());
            }
            _ => {}
        }
        let arguments = serde_json::from_str(json)?;
        let outcome = runtime.block_on(manager.call("server", tool, arguments, &CancellationToken::new()));
        let mut stdout = std::io::stdout().lock();
        serde_json::to_writer(&mut stdout, &outcome.result.joined_text())?;
        writeln!(stdout)?;
        stdout.flush()?;
    }
    runtime.block_on(manager.shutdown());
    Ok(())
}
