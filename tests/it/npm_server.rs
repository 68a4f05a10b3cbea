//! A tool server of somebody else's in a run: `@modelcontextprotocol/server-filesystem` from npm.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::scripted_server::{Reply, ScriptedServer};
use crate::support::Home;

const PACKAGE: &str = "@modelcontextprotocol/server-filesystem";

/// The server's script, installed once below `target/`; none where npm cannot do it.
fn installed() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/npm-servers/filesystem");
    let script = folder.join("node_modules").join(PACKAGE).join("dist/index.js");
    if !script.is_file() {
        std::fs::create_dir_all(&folder).ok()?;
        let status = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
            .arg(&folder)
            .arg(PACKAGE)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .ok()?;
        if !status.success() {
            return None;
        }
    }
    script.is_file().then_some(script)
}

#[tokio::test]
async fn a_run_reads_a_file_through_a_server_from_npm() {
    let Some(script) = tokio::task::spawn_blocking(installed).await.unwrap() else {
        eprintln!("skipped: npm cannot install {PACKAGE} here");
        return;
    };
    let server = ScriptedServer::start_with(|request| {
        let last = request.last_content();
        if last.contains("opened in 1883") {
            Reply::text("The file says so: \\boxed{1883}").usage(100, 10)
        } else if last.contains("\\boxed{") {
            Reply::text("\\boxed{1883}").usage(100, 10)
        } else {
            let path = last.split('`').nth(1).unwrap_or_default();
            Reply::text(format!(
                "<use_mcp_tool>\n<server_name>files</server_name>\n<tool_name>read_text_file</tool_name>\n<arguments>\n{}\n</arguments>\n</use_mcp_tool>",
                json!({ "path": path })
            ))
            .usage(100, 10)
        }
    })
    .await;
    let home = Home::with_model(&server);
    let file = home.write("documents/bridge.txt", "The bridge opened in 1883.\n");
    home.write(
        "mcp.json",
        &json!({"mcpServers": {"files": {"command": "node", "args": [script, file.parent().unwrap()]}}})
            .to_string(),
    );
    let home = home.set("agent.main_agent.tools=[files]");
    let (said, result) = home.ask(&format!("When did the bridge of `{}` open?", file.display())).await;
    assert_eq!((said.code, result["answer"].as_str()), (0, Some("1883")), "{}", said.stderr);
    assert_eq!(result["tool_calls"]["by_tool"], json!({"read_text_file": 1}));
}
