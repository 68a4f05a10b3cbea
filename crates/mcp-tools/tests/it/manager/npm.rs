//! Servers of others, from npm. Skipped, with a printed reason, where they cannot be had.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use mcp_tools::{ManagerOptions, ToolFailure, ToolManager};
use serde_json::json;

use super::support::{call, failure_of, stdio, text_of};

/// Packages with the versions that the tests were written for.
const PACKAGES: [&str; 2] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
];

/// The folder that holds the packages, installed once; none where that is not possible.
pub(crate) fn packages() -> Option<&'static PathBuf> {
    static INSTALLED: OnceLock<Option<PathBuf>> = OnceLock::new();
    INSTALLED
        .get_or_init(|| match install() {
            Ok(folder) => Some(folder),
            Err(reason) => {
                eprintln!("skipped: {reason}");
                None
            }
        })
        .as_ref()
}

fn install() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = own.ancestors().nth(3).ok_or("no target folder")?;
    let folder = target.join("npm-servers");
    let mark = folder.join("installed");
    if std::fs::read_to_string(&mark).ok().as_deref() == Some(&PACKAGES.join("\n")) {
        return Ok(folder);
    }
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let installed = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
        .arg(&folder)
        .args(PACKAGES)
        .output()
        .map_err(|error| format!("npm cannot be run: {error}"))?;
    if !installed.status.success() {
        return Err(format!("npm install failed: {}", String::from_utf8_lossy(&installed.stderr)));
    }
    std::fs::write(&mark, PACKAGES.join("\n")).map_err(|error| error.to_string())?;
    Ok(folder)
}

/// The path of a package's program.
pub(crate) fn program(name: &str) -> Option<String> {
    let path = packages()?.join("node_modules/.bin").join(name);
    Some(path.display().to_string())
}

#[tokio::test]
async fn server_everything_is_listed_and_called() {
    let Some(program) = program("mcp-server-everything") else { return };
    let spec = stdio("s", &program, &["stdio"]);
    let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
    assert_eq!(manager.statuses()[0].error, None);
    assert!(manager.definitions().iter().any(|tool| tool.name == "echo"), "{:?}", manager.statuses());
    assert_eq!(text_of(&manager, "echo", json!({"message": "hello"})).await, "Echo: hello");
    let sum = text_of(&manager, "get-sum", json!({"a": 2, "b": 3})).await;
    assert!(sum.contains('5'), "{sum}");
    let image = call(&manager, "get-tiny-image", json!({})).await;
    assert!(image.result.content.len() > 1, "{image:?}");
    let text = failure_of(&manager, "get-sum", json!({"a": "two"}), ToolFailure::InvalidArguments).await;
    assert!(text.contains("expected number"), "{text}");
    failure_of(&manager, "no-such-tool", json!({}), ToolFailure::UnknownTool).await;
    manager.shutdown().await;
}

#[tokio::test]
async fn server_filesystem_is_listed_and_called() {
    let Some(program) = program("mcp-server-filesystem") else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let file = root.join("note.txt");
    std::fs::write(&file, "what the note says").unwrap();
    let spec = stdio("s", &program, &[&root.display().to_string()]);
    let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
    assert_eq!(manager.statuses()[0].error, None);
    let path = file.display().to_string();
    assert_eq!(text_of(&manager, "read_text_file", json!({"path": path})).await, "what the note says");
    let outcome = call(&manager, "read_text_file", json!({"path": "/etc/passwd"})).await;
    assert_eq!(outcome.failure, Some(ToolFailure::ToolError), "{outcome:?}");
    manager.shutdown().await;
}
