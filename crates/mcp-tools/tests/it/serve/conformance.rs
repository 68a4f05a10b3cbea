//! The official conformance suite, `@modelcontextprotocol/conformance`, against the client of this crate. The server
//! side is examined where the program is that serves.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::installed;

/// The suite needs a newer Node.js than some systems have, so npm's own comes along.
pub(crate) const PACKAGES: [&str; 2] = ["@modelcontextprotocol/conformance@0.1.16", "node@22.23.3"];

/// Scenarios for a client that lists and calls tools. All others are about things that this client does not claim:
/// `elicitation-…` needs a person who fills in forms while a tool runs, `auth/…` an OAuth login in a browser (tokens
/// are configured here, as headers or `bearer`).
const SCENARIOS: [&str; 3] = ["initialize", "tools_call", "sse-retry"];

fn client() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().and_then(Path::parent).unwrap().join("examples/conformance_client")
}

#[tokio::test]
async fn the_client_passes_the_scenarios_for_tools() {
    let Some(folder) =
        tokio::task::spawn_blocking(|| installed::npm("conformance", &PACKAGES)).await.unwrap()
    else {
        return;
    };
    let node = installed::node(&folder, 22);
    let suite = folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let client = client();
    assert!(client.is_file(), "{}: `cargo build -p mcp-tools --examples` makes it", client.display());
    let runs = SCENARIOS.map(|scenario| {
        let mut command = Command::new(&node);
        command
            .arg(&suite)
            .args(["client", "--timeout", "9000", "--scenario", scenario, "--command"])
            .arg(&client);
        command.stdin(Stdio::null()).kill_on_drop(true);
        async move { (scenario, command.output().await.unwrap()) }
    });
    for (scenario, output) in futures_util::future::join_all(runs).await {
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{scenario}\n{}", String::from_utf8_lossy(&said));
    }
}
