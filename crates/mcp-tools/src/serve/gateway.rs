//! One HTTP session in front of one session of an in-process server.
//!
//! Decides that every client gets a server of its own, begun with its first request and ended with its
//! session: live interpreters and lists are nobody else's. Calls are passed on as they come.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::{Peer, RoleClient, RoleServer, ServerHandler, ServiceError, ServiceExt as _};
use tokio::io::DuplexStream;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::InProcessServer;
use crate::manager::InProcessTask;

/// The newest version of the protocol that has sessions, which state between calls needs.
const NEWEST: ProtocolVersion = ProtocolVersion::V_2025_11_25;

/// A server whose sessions are counted, so that their end can be waited for.
pub(super) struct Tracked {
    pub(super) server: Arc<dyn InProcessServer>,
    pub(super) sessions: TaskTracker,
}

#[async_trait]
impl InProcessServer for Tracked {
    fn name(&self) -> &str {
        self.server.name()
    }

    async fn serve(&self, io: DuplexStream, stop: CancellationToken) {
        let _counted = self.sessions.token();
        self.server.serve(io, stop).await;
    }
}

/// What one HTTP session talks to.
pub(super) struct Gateway {
    server: Arc<dyn InProcessServer>,
    info: ServerConfig,
    behind: OnceCell<Behind>,
}

/// A running session of the server. Dropping it ends that.
struct Behind {
    peer: Peer<RoleClient>,
    _session: RunningService<RoleClient, ()>,
    _task: InProcessTask,
}

impl Behind {
    async fn start(server: Arc<dyn InProcessServer>) -> Result<Self, String> {
        let (task, stream) = InProcessTask::start(server);
        let session = ().serve(stream).await.map_err(|error| error.to_string())?;
        Ok(Self { peer: session.peer().clone(), _session: session, _task: task })
    }
}

/// What a server says of itself.
///
/// # Errors
/// Why it cannot be asked.
pub(super) async fn info(server: &Arc<dyn InProcessServer>) -> Result<ServerConfig, String> {
    let behind = Behind::start(Arc::clone(server)).await?;
    let told = behind.peer.peer_info().ok_or("it does not say what it is")?;
    // Tools are what is passed on, whatever else it may offer.
    let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
    if let Some(implementation) = &told.server_info {
        info.server_info = implementation.clone();
    }
    info.instructions.clone_from(&told.instructions);
    Ok(info.with_protocol_version(NEWEST))
}

impl Gateway {
    pub(super) fn new(server: Arc<dyn InProcessServer>, info: ServerConfig) -> Self {
        Self { server, info, behind: OnceCell::new() }
    }

    async fn peer(&self) -> Result<&Peer<RoleClient>, ErrorData> {
        let behind = self.behind.get_or_try_init(|| Behind::start(Arc::clone(&self.server))).await;
        behind.map(|behind| &behind.peer).map_err(|problem| {
            ErrorData::internal_error(
                format!("the server `{}` does not start: {problem}", self.server.name()),
                None,
            )
        })
    }

    fn refused(&self, error: ServiceError) -> ErrorData {
        match error {
            ServiceError::McpError(error) => error,
            other => ErrorData::internal_error(format!("the server `{}`: {other}", self.server.name()), None),
        }
    }
}

impl ServerHandler for Gateway {
    fn get_info(&self) -> ServerConfig {
        self.info.clone()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&NEWEST))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.peer().await?.list_tools(request).await.map_err(|error| self.refused(error))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let peer = self.peer().await?;
        tokio::select! {
            // Dropping the call passes the cancellation on.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
            answer = peer.call_tool_once(request) => answer.map_err(|error| self.refused(error)),
        }
    }
}
