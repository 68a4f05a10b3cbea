//! Servers of others, from npm. Skipped, with a printed reason, where they cannot be had.

use mcp_tools::{ManagerOptions, ToolFailure, ToolManager};
use serde_json::json;

use super::support::{call, failure_of, stdio, text_of};
use crate::installed;

/// Packages with the versions that the tests were written for.
const PACKAGES: [&str; 2] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
];

/// The path of a package's program.
pub(crate) fn program(name: &str) -> Option<String> {
    let path = installed::npm("reference", &PACKAGES)?.join("node_modules/.bin").join(name);
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
    assert!(text.contains("`a` is to be a number") && text.contains("`b` is missing"), "{text}");
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
