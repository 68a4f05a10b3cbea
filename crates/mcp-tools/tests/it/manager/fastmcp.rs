//! A server written with FastMCP, in an environment of its own. Skipped, with a printed reason, where that cannot be
//! made.

use std::path::PathBuf;

use mcp_tools::{ManagerOptions, ToolFailure, ToolManager};
use serde_json::json;

use super::support::{failure_of, stdio, text_of};
use crate::installed;

/// The version that the test was written for.
const PACKAGES: [&str; 1] = ["fastmcp==4.1.2"];

#[tokio::test]
async fn a_fastmcp_server_is_listed_and_called() {
    let Some(python) = tokio::task::spawn_blocking(|| installed::python("fastmcp", &PACKAGES)).await.unwrap()
    else {
        return;
    };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fastmcp_server.py");
    let spec = stdio("s", &python.display().to_string(), &[&script.display().to_string()]);
    let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
    assert_eq!(manager.statuses()[0].error, None);
    let definitions = manager.definitions();
    let names: Vec<&str> = definitions.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add", "fail", "weather"]);
    assert_eq!(definitions[0].description, "Adds two numbers.");
    assert_eq!(text_of(&manager, "add", json!({"a": 2, "b": 3})).await, "5");
    // Such a server takes a number in quotes, and what may be left out has a default.
    assert_eq!(text_of(&manager, "add", json!({"a": "2"})).await, "3");
    assert!(text_of(&manager, "weather", json!({"place": "Bern"})).await.contains("21.5"));
    let text = failure_of(&manager, "fail", json!({"text": "not today"}), ToolFailure::ToolError).await;
    assert!(text.contains("not today"), "{text}");
    let text = failure_of(&manager, "add", json!({"b": 1}), ToolFailure::InvalidArguments).await;
    assert!(text.contains("`a` is missing; it is to be a whole number"), "{text}");
    manager.shutdown().await;
}
