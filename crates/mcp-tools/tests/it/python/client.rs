//! A session with a built-in server, as a client has it.

use std::sync::Arc;

use mcp_tools::InProcessServer;
use mcp_tools::servers::python::{self, PythonOptions};
use rmcp::model::{CallToolRequestParams, Tool};
use rmcp::service::{RoleClient, RunningService, ServiceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct Client {
    pub(crate) session: RunningService<RoleClient, ()>,
    stop: CancellationToken,
    served: JoinHandle<()>,
    pub(crate) scratch: tempfile::TempDir,
}

/// What a call gave: its text, and whether it is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

impl Client {
    pub(crate) async fn connect(server: Arc<dyn InProcessServer>, scratch: tempfile::TempDir) -> Self {
        let (near, far) = tokio::io::duplex(1 << 16);
        let stop = CancellationToken::new();
        let token = stop.clone();
        let served = tokio::spawn(async move { server.serve(far, token).await });
        let session = ().serve(near).await.expect("a session");
        Self { session, stop, served, scratch }
    }

    pub(crate) async fn tools(&self) -> Vec<Tool> {
        self.session.list_all_tools().await.expect("tools")
    }

    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> Reply {
        call(&self.session, tool, arguments).await
    }

    /// Runs code in the default sandbox.
    pub(crate) async fn run(&self, code: &str) -> Reply {
        self.call("run_python_code", json!({ "code_block": code })).await
    }

    /// Ends the server as its owner does.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.served.await.expect("an orderly end");
    }
}

pub(crate) async fn call(session: &rmcp::Peer<RoleClient>, tool: &'static str, arguments: Value) -> Reply {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let result = session
        .call_tool(CallToolRequestParams::new(tool).with_arguments(arguments))
        .await
        .expect("an answer");
    let text: Vec<_> =
        result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.clone()).collect();
    Reply { text: text.join("\n"), is_error: result.is_error.unwrap_or(false) }
}

/// A directory that sandboxes with users of their own can pass through.
pub(crate) fn scratch() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o711)).expect("its mode");
    directory
}

pub(crate) fn options(scratch: &tempfile::TempDir) -> PythonOptions {
    PythonOptions { scratch_root: scratch.path().to_owned(), ..PythonOptions::default() }
}

/// A `tool-python` server with options changed by `change`.
pub(crate) async fn client_with(change: impl FnOnce(&mut PythonOptions)) -> Client {
    let scratch = scratch();
    let mut options = options(&scratch);
    change(&mut options);
    Client::connect(python::server(options), scratch).await
}

pub(crate) async fn client() -> Client {
    client_with(|_| {}).await
}
