//! The manager: long-lived MCP sessions of many servers behind one handle.
//!
//! Decides which servers are in use, which tools are offered, and where a call goes. How one server
//! is started, watched and ended is left to `server` and what it stands on.

mod arguments;
mod child;
mod cut;
mod environment;
mod error;
mod failure;
#[cfg(feature = "http")]
mod http;
mod in_process;
mod lenient;
mod lines;
mod mcp_json;
mod outcome;
mod oversized;
mod render;
mod repeatable;
mod server;
mod session;
mod spec;
mod tail;
mod text;
mod words;

use std::collections::HashSet;
use std::sync::Arc;

use core_protocol::ToolDefinition;
use core_protocol::event::ServerStatus;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use child::ends_with_server;
pub use environment::is_secret_name;
pub use error::ToolsError;
#[cfg(feature = "serve")]
pub(crate) use in_process::InProcessTask;
pub use in_process::{in_process, serve_handler};
#[cfg(feature = "serve")]
pub(crate) use lines::MAX_MESSAGE;
pub use mcp_json::{IGNORED_KEYS, McpJson, parse_mcp_json};
pub use outcome::{ToolFailure, ToolOutcome};
pub use spec::{
    DEFAULT_CALL_LIMIT, DEFAULT_OUTPUT_LIMIT, DEFAULT_START_LIMIT, InProcessServer, MAX_CALL_LIMIT,
    ManagerOptions, ServerSpec, Transport,
};

use server::{Server, Shared};
use text::Neutraliser;

/// Open sessions of tool servers. Clones share them; when the last is dropped, the servers end.
///
/// End them with [`ToolManager::shutdown`] where you can: it waits until they are gone.
#[derive(Debug, Clone)]
pub struct ToolManager {
    servers: Arc<[Arc<Server>]>,
    shared: Arc<Shared>,
}

impl ToolManager {
    /// Starts all servers at once and waits until each has listed its tools or failed, which takes
    /// no longer than the longest of their start limits. Those that failed are named, with the
    /// reason, in [`ToolManager::statuses`], and their tools are not offered.
    ///
    /// Must be called within a tokio runtime with time and I/O enabled.
    pub fn start(servers: Vec<ServerSpec>, options: ManagerOptions) -> BoxFuture<'static, Self> {
        // Boxes end here what every crate above would compile once more: the whole of a session.
        Box::pin(Self::started(servers, options))
    }

    async fn started(servers: Vec<ServerSpec>, options: ManagerOptions) -> Self {
        let neutraliser = Neutraliser::new(&options.neutralise_tags);
        let shared = Arc::new(Shared { options, neutraliser });
        let is_wanted =
            |spec: &ServerSpec| !matches!(spec.transport, Transport::Unavailable { switched_off: true, .. });
        let servers: Arc<[Arc<Server>]> = servers
            .into_iter()
            .filter(is_wanted)
            .map(|spec| Arc::new(Server::new(spec, Arc::clone(&shared))))
            .collect();
        let mut names = HashSet::new();
        let mut starting = Vec::with_capacity(servers.len());
        for server in servers.iter() {
            if names.insert(server.name().to_owned()) {
                starting.push(server.start());
            } else {
                server.fail("another server before it has the same name: give it one of its own");
            }
        }
        join_all(starting).await;
        Self { servers, shared }
    }

    /// The tools that are offered: servers in the order in which they were given, tools in the order
    /// of the server; those on the blacklist are left out.
    ///
    /// The list changes in [`ToolManager::refresh`] and when a server was started again.
    #[must_use]
    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        self.servers.iter().flat_map(|server| server.tools().to_vec()).collect()
    }

    /// All servers in the order in which they were given, with the tools that each offers, or the
    /// reason why it is not in use.
    #[must_use]
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.servers.iter().map(|server| server.status()).collect()
    }

    /// Lists the tools again of servers that have said that theirs changed; to be called where a
    /// change of the prompt does no harm. Returns whether any had.
    pub fn refresh(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { join_all(self.servers.iter().map(|server| server.refresh())).await.contains(&true) })
    }

    /// Calls a tool. Whatever happens becomes something to show to the model.
    ///
    /// The time that the call may take does not include waiting for one of the server's slots, where
    /// their number is bounded. When `cancel` is cancelled, or the future dropped, the server is told
    /// that nobody waits any longer.
    pub fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        arguments: Map<String, Value>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(self.called(server, tool, arguments, cancel))
    }

    async fn called(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        match self.servers.iter().find(|known| known.name() == server) {
            Some(server) => server.call(tool, arguments, cancel).await,
            None => {
                let mut known =
                    self.servers.iter().filter(|known| known.is_in_use()).map(|known| known.name());
                self.shared.as_data(words::unknown_server(server, &mut known))
            }
        }
    }

    /// Whether a call to the tool may be made again where nobody knows whether it was carried out: because the
    /// options say so of its server, because the server says that it only reads or changes nothing the second time,
    /// or because of its name, where it says nothing. An unknown tool may not.
    #[must_use]
    pub fn is_repeatable(&self, server: &str, tool: &str) -> bool {
        self.servers
            .iter()
            .find(|known| known.name() == server)
            .is_some_and(|known| known.is_repeatable(tool))
    }

    /// Ends all servers at once and waits until they are gone, for five seconds at most. Calls that
    /// run end with an error text, as later calls do.
    pub fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            join_all(self.servers.iter().map(|server| server.close())).await;
        })
    }
}
