//! One open MCP session, whatever carries it.
//!
//! Decides how a session is opened within its limit, what is asked of it, and how it is closed. When
//! to open one again is left to `server`.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[expect(deprecated, reason = "servers of today still send log messages")]
use rmcp::model::LoggingMessageNotificationParam;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ErrorData, Implementation,
    PaginatedRequestParams, ProtocolVersion, Tool,
};
use rmcp::service::{ClientInitializeError, NotificationContext, RunningService};
use rmcp::transport::IntoTransport;
use rmcp::{ClientHandler, Peer, RoleClient, ServiceError, ServiceExt as _};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::child::{ChildProcess, Ended, STOP_TIME};
use super::failure::{StartFailure, Step};
use super::in_process::{DROPPED, InProcessTask};
use super::lenient::Lenient;
use super::lines::LineTransport;
use super::spec::{ServerSpec, Transport};
use super::tail::Tail;

/// How long the end of a program is waited for when its session breaks off.
const EXIT_TIME: Duration = Duration::from_millis(1500);
/// How long closing a session may take beside ending its program.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// Pages of a list of tools that are asked for. Servers with thousands of tools put hundreds on a page.
const MOST_PAGES: usize = 1000;
/// The newest version of the protocol that is asked for; older ones are accepted.
const PROTOCOL: ProtocolVersion = ProtocolVersion::V_2025_11_25;

/// An open session. Dropping it ends the server that it belongs to.
#[derive(Debug)]
pub(crate) struct Session {
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    tools_changed: Arc<AtomicBool>,
    broken: AtomicBool,
    backend: Backend,
    tail: Arc<Tail>,
    opened: Instant,
}

/// What stands behind a session and ends with it.
#[derive(Debug)]
enum Backend {
    Child(ChildProcess),
    InProcess(InProcessTask),
    #[cfg(feature = "http")]
    Http {
        url: String,
    },
}

impl Session {
    /// Starts the server, shakes hands and lists its tools.
    ///
    /// # Errors
    /// Why that could not be done within the server's start limit.
    pub(crate) async fn open(
        spec: &ServerSpec,
        client_version: &str,
    ) -> Result<(Self, Vec<Tool>), StartFailure> {
        let deadline = Instant::now() + spec.start_limit;
        let name: Arc<str> = Arc::from(spec.name.as_str());
        let tail = Arc::new(Tail::default());
        let handler = Handler::new(Arc::clone(&name), client_version);
        let opening = Opening { spec, deadline, handler, tail: Arc::clone(&tail) };
        let session = match &spec.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let cwd = cwd.as_deref();
                let started =
                    ChildProcess::start(Arc::clone(&name), command, args, env, cwd, Arc::clone(&tail));
                let (child, stdout, stdin) = started.await?;
                let transport = LineTransport::new(name, stdout, stdin, tail);
                opening.shake_hands(transport, Backend::Child(child)).await?
            }
            Transport::InProcess(server) => {
                let (task, ours) = InProcessTask::start(Arc::clone(server));
                let (reader, writer) = tokio::io::split(ours);
                let transport = LineTransport::new(name, reader, writer, tail);
                opening.shake_hands(transport, Backend::InProcess(task)).await?
            }
            Transport::Unavailable { reason, .. } => return Err(StartFailure::BadSpec(reason.clone())),
            #[cfg(feature = "http")]
            Transport::Http { url, bearer, headers } => {
                let limit = spec.start_limit;
                let transport = super::http::transport(url, bearer.as_deref(), headers, limit)?;
                let url = super::spec::without_query(url);
                opening.shake_hands(transport, Backend::Http { url }).await?
            }
            #[cfg(not(feature = "http"))]
            Transport::Http { .. } => {
                let problem = "this build has no HTTP transport: build it with the feature `http`";
                return Err(StartFailure::BadSpec(problem.to_owned()));
            }
        };
        match timeout_at(deadline, session.list_tools()).await {
            Ok(Ok(tools)) => Ok((session, tools)),
            Ok(Err(error)) => {
                let problem = match &error {
                    ServiceError::McpError(error) => Problem::Refused(error.clone()),
                    ServiceError::UnexpectedResponse => Problem::Misfit,
                    ServiceError::TransportSend(error) => Problem::Broken(transport_problem(&*error.error)),
                    other => Problem::Broken(other.to_string()),
                };
                Err(failure_of(&session.backend, &session.tail, Step::Tools, problem).await)
            }
            Err(_) => Err(StartFailure::TooSlow {
                waited_for: Step::Tools,
                limit: spec.start_limit,
                output: session.tail.indented(),
            }),
        }
    }

    /// All tools that the server names, each name once, from all pages: up to the last, which some servers mark by an
    /// empty cursor, or to one that leads back.
    pub(crate) async fn list_tools(&self) -> Result<Vec<Tool>, ServiceError> {
        self.tools_changed.store(false, Ordering::Release);
        if self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
            return Ok(Vec::new());
        }
        let mut tools = Vec::new();
        let (mut names, mut cursors) = (HashSet::new(), HashSet::new());
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page =
                self.peer.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
            tools.extend(page.tools.into_iter().filter(|tool| names.insert(tool.name.clone())));
            cursor = page.next_cursor.filter(|next| !next.is_empty());
            match &cursor {
                Some(next) if cursors.insert(next.clone()) => {}
                Some(_) => {
                    tracing::warn!("a list of tools leads back to a page before and is ended there");
                    return Ok(tools);
                }
                None => return Ok(tools),
            }
        }
        tracing::warn!(pages = MOST_PAGES, "a list of tools has no end and is cut");
        Ok(tools)
    }

    /// Whether the server has said that its tools changed since they were listed last.
    pub(crate) fn tools_changed(&self) -> bool {
        self.tools_changed.load(Ordering::Acquire)
    }

    /// Calls a tool. Dropping the future tells the server that nobody waits any longer.
    pub(crate) async fn call(&self, params: CallToolRequestParams) -> Result<CallToolResponse, ServiceError> {
        let answer = match self.peer.call_tool_once(params).await {
            Err(ServiceError::McpError(error)) if self.is_ending(&error) => {
                Err(ServiceError::TransportClosed)
            }
            answer => answer,
        };
        if matches!(answer, Err(ServiceError::TransportClosed)) {
            self.broken.store(true, Ordering::Release);
        }
        answer
    }

    /// Whether the server looks at the arguments of a call itself, as servers of this process do.
    pub(crate) fn judges_arguments(&self) -> bool {
        matches!(self.backend, Backend::InProcess(_))
    }

    fn is_ending(&self, error: &ErrorData) -> bool {
        matches!(self.backend, Backend::InProcess(_)) && error.code.0 == DROPPED
    }

    /// Whether no further call can be made.
    pub(crate) fn is_closed(&self) -> bool {
        // The peer learns of the end a moment after the calls that it cuts off.
        self.broken.load(Ordering::Acquire) || self.peer.is_transport_closed()
    }

    /// When the session was opened.
    pub(crate) fn opened(&self) -> Instant {
        self.opened
    }

    /// How the server ended, in words that follow its name, once its session has broken off.
    pub(crate) async fn ending(&self) -> String {
        match &self.backend {
            Backend::Child(child) => {
                let ended = match child.ended(EXIT_TIME).await {
                    Ended::Yes(status) => format!("ended {}", super::failure::status_words(status)),
                    Ended::No => "closed its output".to_owned(),
                };
                match self.tail.indented() {
                    Some(output) => format!("{ended}; the last that it printed:\n{output}"),
                    None => ended,
                }
            }
            Backend::InProcess(_) => "ended".to_owned(),
            #[cfg(feature = "http")]
            Backend::Http { url } => format!("at {url} closed the connection"),
        }
    }

    /// Closes the session and ends the server. Takes five seconds at most.
    pub(crate) async fn close(&self) {
        let service = self.service.lock().await.take();
        if let Some(mut service) = service
            && service.close_with_timeout(CLOSE_TIME).await.is_err()
        {
            tracing::debug!("the task of a session was gone before it was closed");
        }
        match &self.backend {
            Backend::Child(child) => {
                child.stop();
                if matches!(child.ended(STOP_TIME).await, Ended::No) {
                    tracing::warn!("a tool server did not end in time");
                }
            }
            Backend::InProcess(task) => task.stop().await,
            #[cfg(feature = "http")]
            Backend::Http { .. } => {}
        }
    }
}

/// What is wrong with a connection, in words for a person.
pub(crate) fn transport_problem(error: &(dyn std::error::Error + 'static)) -> String {
    #[cfg(feature = "http")]
    return super::http::problem_words(error);
    #[cfg(not(feature = "http"))]
    return error.to_string();
}

/// What is known while a session is being opened.
struct Opening<'a> {
    spec: &'a ServerSpec,
    deadline: Instant,
    handler: Handler,
    tail: Arc<Tail>,
}

impl Opening<'_> {
    async fn shake_hands<T, E, A>(self, transport: T, backend: Backend) -> Result<Session, StartFailure>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let tools_changed = Arc::clone(&self.handler.tools_changed);
        let transport = Lenient(transport.into_transport());
        let problem = match timeout_at(self.deadline, self.handler.serve(transport)).await {
            Ok(Ok(service)) => {
                return Ok(Session {
                    peer: service.peer().clone(),
                    service: Mutex::new(Some(service)),
                    tools_changed,
                    broken: AtomicBool::new(false),
                    backend,
                    tail: self.tail,
                    opened: Instant::now(),
                });
            }
            Ok(Err(problem)) => problem,
            Err(_) => {
                return Err(StartFailure::TooSlow {
                    waited_for: Step::Handshake,
                    limit: self.spec.start_limit,
                    output: self.tail.indented(),
                });
            }
        };
        let problem = match &problem {
            ClientInitializeError::TransportError { error, .. } => {
                Problem::Broken(transport_problem(&*error.error))
            }
            ClientInitializeError::JsonRpcError(error) => Problem::Refused(error.clone()),
            ClientInitializeError::ExpectedInitResponse(Some(_))
            | ClientInitializeError::ExpectedInitResult(Some(_)) => Problem::Misfit,
            other => Problem::Broken(other.to_string()),
        };
        Err(failure_of(&backend, &self.tail, Step::Handshake, problem).await)
    }
}

/// What came instead of an answer.
enum Problem {
    /// An error.
    Refused(ErrorData),
    /// An answer that is none to what was asked.
    Misfit,
    /// Nothing more.
    Broken(String),
}

async fn failure_of(backend: &Backend, tail: &Tail, step: Step, problem: Problem) -> StartFailure {
    let problem = match problem {
        // A server that has answered ends because nobody wants more of it: that is not what went wrong.
        Problem::Refused(error) => {
            let (code, said) = (error.code.0, error.message.into_owned());
            return StartFailure::Refused { step, code, said, output: tail.indented() };
        }
        Problem::Misfit => {
            let problem = "the answer is not what the protocol asks for".to_owned();
            return StartFailure::Protocol { step, problem, output: tail.indented() };
        }
        Problem::Broken(problem) => problem,
    };
    match backend {
        Backend::Child(child) => match child.ended(EXIT_TIME).await {
            Ended::Yes(status) => StartFailure::Exited { status, output: tail.indented() },
            Ended::No => StartFailure::Protocol { step, problem, output: tail.indented() },
        },
        Backend::InProcess(_) => StartFailure::Protocol { step, problem, output: None },
        #[cfg(feature = "http")]
        Backend::Http { url } => StartFailure::Http { url: url.clone(), problem },
    }
}

/// What this client does with what servers say unasked.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    server: Arc<str>,
    config: ClientConfig,
    tools_changed: Arc<AtomicBool>,
}

impl Handler {
    fn new(server: Arc<str>, client_version: &str) -> Self {
        let client = Implementation::new("fathom", client_version);
        let config = ClientConfig::new(ClientCapabilities::default(), client).with_protocol_version(PROTOCOL);
        Self { server, config, tools_changed: Arc::default() }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::Release);
    }

    #[expect(deprecated, reason = "servers of today still send log messages")]
    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text = message.data.to_string();
        tracing::debug!(server = %self.server, level = ?message.level, message = %super::text::clean(&text), "log");
    }
}
