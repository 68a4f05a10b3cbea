//! Servers that run inside this process.
//!
//! Decides how handlers become servers, how their sessions are ended, and how long they have for that. What arguments
//! they get and what is shown of their tools is left to `arguments`. A call that nobody waits for any longer does not
//! go on for ever: `rmcp` tells a handler of the cancellation, and leaves it running where it does not listen.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientNotification, ClientRequest, ErrorCode, ErrorData,
    JsonObject, ProtocolVersion, ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, Service};
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use tokio::io::DuplexStream;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::arguments;
use super::spec::InProcessServer;

/// Room of the in-memory transport in each direction, in bytes: most results in one piece.
const BUFFER: usize = 64 * 1024;
/// From the cancellation of a call until its handler is dropped.
const CALL_LEAVE_TIME: Duration = Duration::from_secs(1);
/// Code of the answer to a call that was dropped. A call that somebody still waits for is dropped only
/// when the server ends.
pub(crate) const DROPPED: i32 = -32800;
/// From the request to end until a server is dropped.
const LEAVE_TIME: Duration = Duration::from_secs(2);

/// An [`InProcessServer`] from anything that makes handlers, one for each session.
///
/// A handler whose call is cancelled is told by the token of its request context, and dropped a
/// second later.
pub fn in_process<F, H>(name: impl Into<String>, make_handler: F) -> Arc<dyn InProcessServer>
where
    F: Fn() -> H + Send + Sync + 'static,
    H: ServerHandler,
{
    Arc::new(HandlerServer { name: name.into(), make_handler })
}

/// Serves one session of a handler: the body of [`InProcessServer::serve`] for servers that
/// implement the trait themselves. Calls are cancelled as [`in_process`] says.
pub async fn serve_handler<H: ServerHandler>(handler: H, io: DuplexStream, stop: CancellationToken) {
    let handler = Arc::new(handler);
    let tools = Arc::clone(&handler);
    // Handlers make their list of tools anew each time they are asked, which would be most of what a call costs.
    let known: Mutex<BTreeMap<String, Arc<JsonObject>>> = Mutex::default();
    let schema_of = Box::new(move |tool: &str| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = known.get(tool) {
            return Some(Arc::clone(schema));
        }
        let schema = Arc::new(arguments::judged(&tools.get_tool(tool)?.input_schema));
        known.insert(tool.to_owned(), Arc::clone(&schema));
        Some(schema)
    });
    serve_session(Session { handler: handler.into_dyn(), schema_of }, io, stop).await;
}

/// Compiled once for all handlers: the session is by far the larger part of serving.
async fn serve_session(handler: Session, io: DuplexStream, stop: CancellationToken) {
    match handler.serve_with_ct(io, stop).await {
        Ok(session) => {
            if let Err(error) = session.waiting().await {
                tracing::warn!(%error, "an in-process tool server ended with an error");
            }
        }
        Err(error) => tracing::debug!(%error, "an in-process tool server got no handshake"),
    }
}

struct HandlerServer<F> {
    name: String,
    make_handler: F,
}

#[async_trait]
impl<F, H> InProcessServer for HandlerServer<F>
where
    F: Fn() -> H + Send + Sync + 'static,
    H: ServerHandler,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn serve(&self, io: DuplexStream, stop: CancellationToken) {
        serve_handler((self.make_handler)(), io, stop).await;
    }
}

/// The schema by which a tool's arguments are judged, by its name.
type SchemaOf = dyn Fn(&str) -> Option<Arc<JsonObject>> + Send + Sync;

/// A handler whose cancelled requests end, whose tools are shown as models need them, and called with arguments that
/// fit.
struct Session {
    handler: Box<dyn rmcp::service::DynService<RoleServer>>,
    schema_of: Box<SchemaOf>,
}

impl Session {
    /// Brings the arguments of a call into the types that its tool wants. Returns the answer where they do not fit.
    fn refused(&self, call: &mut CallToolRequestParams) -> Option<CallToolResult> {
        let schema = (self.schema_of)(&call.name)?;
        match arguments::taken(&schema, call.arguments.take().unwrap_or_default()) {
            Ok(taken) => {
                call.arguments = Some(taken);
                None
            }
            Err(misfits) => Some(arguments::refusal(&call.name, misfits)),
        }
    }
}

/// The answer to a request, tools as models are shown them.
fn as_shown(mut result: ServerResult) -> ServerResult {
    if let ServerResult::ListToolsResult(list) = &mut result {
        for tool in &mut list.tools {
            tool.input_schema = Arc::new(arguments::shown(&tool.input_schema));
        }
    }
    result
}

impl Service<RoleServer> for Session {
    async fn handle_request(
        &self,
        mut request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if let ClientRequest::CallToolRequest(call) = &mut request
            && let Some(refusal) = self.refused(&mut call.params)
        {
            return Ok(ServerResult::CallToolResult(refusal));
        }
        let cancelled = context.ct.clone();
        let handling = self.handler.handle_request(request, context);
        tokio::pin!(handling);
        tokio::select! {
            result = &mut handling => return result.map(as_shown),
            () = cancelled.cancelled() => {}
        }
        let gone = || Err(ErrorData::new(ErrorCode(DROPPED), "the request was dropped", None));
        timeout(CALL_LEAVE_TIME, handling).await.unwrap_or_else(|_| gone())
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.handler.handle_notification(notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        self.handler.get_info()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.handler.supported_protocol_versions()
    }
}

/// A server that serves one session. Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct InProcessTask {
    stop: CancellationToken,
    ended: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl InProcessTask {
    /// Starts serving; the stream is the client's end.
    pub(crate) fn start(server: Arc<dyn InProcessServer>) -> (Self, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let (stopped, ending) = (stop.clone(), ended.clone().drop_guard());
        tokio::spawn(async move {
            let _ending = ending; // dropped after the server, be it by a panic
            let serving = server.serve(theirs, stopped.clone());
            tokio::pin!(serving);
            tokio::select! {
                () = &mut serving => return,
                () = stopped.cancelled() => {}
            }
            if timeout(LEAVE_TIME, serving).await.is_err() {
                tracing::warn!(
                    server = server.name(),
                    "an in-process tool server did not end and was dropped"
                );
            }
        });
        (Self { stop: stop.clone(), ended, _stop_on_drop: stop.drop_guard() }, ours)
    }

    /// Ends the server and waits until it has.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        let _ = timeout(2 * LEAVE_TIME, self.ended.cancelled()).await;
    }
}
