//! One managed server: its session, its tools, and its one restart.
//!
//! Decides when a session is opened again and what a call comes to. A call is sent once: where the
//! session breaks off under it, nobody knows what the server has done, and the model is told so.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use core_protocol::event::ServerStatus;
use core_protocol::{ContentBlock, ToolDefinition, ToolResult};
use rmcp::ServiceError;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, Tool};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::cut::cut;
use super::failure::seconds;
use super::outcome::{INVALID_PARAMS, ToolFailure, ToolOutcome};
use super::session::{Session, transport_problem};
use super::spec::{MAX_CALL_LIMIT, ManagerOptions, ServerSpec, Transport};
use super::text::Neutraliser;
use super::{arguments, lines, render, words};

/// How often a server that has ended is started again.
const RESTARTS: u32 = 1;
/// The least time between the start of a session that ended and that of the next.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Calls that may run at once where no bound is set.
const UNBOUNDED: usize = Semaphore::MAX_PERMITS;

/// What all servers of a manager share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ManagerOptions,
    pub(crate) neutraliser: Neutraliser,
}

impl Shared {
    /// An outcome in the manager's own words, which repeat names that a model made up.
    pub(crate) fn as_data(&self, mut outcome: ToolOutcome) -> ToolOutcome {
        for block in &mut outcome.result.content {
            if let ContentBlock::Text { text } = block {
                *text = self.neutraliser.data(text);
            }
        }
        outcome
    }
}

/// One server of a manager.
#[derive(Debug)]
pub(crate) struct Server {
    spec: ServerSpec,
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// Held while a session is opened again or tools are listed again.
    gate: tokio::sync::Mutex<()>,
    slots: Semaphore,
    restarts: AtomicU32,
    /// Tools whose calls may be made again.
    repeatable: Mutex<HashSet<String>>,
    /// Cancelled when the server shall not be in use any more.
    stop: CancellationToken,
}

#[derive(Debug)]
enum State {
    /// In use, or ended without anybody having noticed.
    Open { session: Arc<Session>, tools: Arc<[ToolDefinition]> },
    /// Not in use, for this reason; calls fail in this way.
    Failed { reason: String, failure: ToolFailure },
}

impl Server {
    /// A server that is not in use yet.
    pub(crate) fn new(spec: ServerSpec, shared: Arc<Shared>) -> Self {
        let slots = Semaphore::new(spec.max_concurrency.map_or(UNBOUNDED, |bound| bound.clamp(1, UNBOUNDED)));
        Self {
            spec,
            shared,
            state: Mutex::new(State::Failed {
                reason: "it was not started".to_owned(),
                failure: ToolFailure::UnknownServer,
            }),
            gate: tokio::sync::Mutex::new(()),
            slots,
            restarts: AtomicU32::new(RESTARTS),
            repeatable: Mutex::default(),
            stop: CancellationToken::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    /// Whether calls may reach it.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(&*self.state(), State::Open { .. })
    }

    /// Leaves the server out of use from the start.
    pub(crate) fn fail(&self, reason: impl Into<String>) {
        *self.state() = State::Failed { reason: reason.into(), failure: ToolFailure::UnknownServer };
    }

    /// Opens the session; what keeps it from being opened is in the status.
    pub(crate) async fn start(&self) {
        match Session::open(&self.spec, &self.shared.options.client_version).await {
            Ok((session, tools)) => {
                self.open(Arc::new(session), tools);
            }
            Err(failure) => {
                tracing::warn!(server = self.name(), reason = %failure, "a tool server is not in use");
                self.fail(self.shared.neutraliser.data(&failure.to_string()));
            }
        }
    }

    /// The tools that are offered; none where the server is not in use.
    pub(crate) fn tools(&self) -> Arc<[ToolDefinition]> {
        match &*self.state() {
            State::Open { tools, .. } => Arc::clone(tools),
            State::Failed { .. } => Arc::new([]),
        }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let sandbox = match &self.spec.transport {
            Transport::InProcess(server) => server.confinement(),
            Transport::Stdio { .. } | Transport::Http { .. } | Transport::Unavailable { .. } => Vec::new(),
        };
        let (tools, error) = match &*self.state() {
            State::Open { tools, .. } => (tools.iter().map(|tool| tool.name.clone()).collect(), None),
            State::Failed { reason, .. } => (Vec::new(), Some(reason.clone())),
        };
        ServerStatus { name: self.name().to_owned(), tools, error, sandbox }
    }

    /// Lists the tools again where the server has said that they changed. Returns whether it had.
    pub(crate) async fn refresh(&self) -> bool {
        let _gate = self.gate.lock().await;
        let Some(session) = self.session() else { return false };
        if !session.tools_changed() || session.is_closed() {
            return false;
        }
        match timeout(self.spec.start_limit, session.list_tools()).await {
            Ok(Ok(tools)) => {
                return self.open(session, tools);
            }
            Ok(Err(error)) => tracing::warn!(server = self.name(), %error, "tools could not be listed again"),
            Err(_) => tracing::warn!(server = self.name(), "tools were not listed again in time"),
        }
        false
    }

    /// Calls a tool.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        let work = async {
            let Ok(_slot) = self.slots.acquire().await else {
                return Err(words::cancelled(self.name(), tool));
            };
            let session = self.live_session().await?;
            if !self.offers(tool) {
                self.refresh().await;
            }
            if !self.offers(tool) {
                return Err(self.unknown_tool(tool));
            }
            let misfits =
                if session.judges_arguments() { Vec::new() } else { self.misfits(tool, &arguments) };
            if !misfits.is_empty() {
                return Err(self.misfit(tool, &misfits));
            }
            Ok(self.call_session(&session, tool, arguments).await)
        };
        tokio::select! {
            outcome = work => outcome.unwrap_or_else(|outcome| self.shared.as_data(outcome)),
            () = cancel.cancelled() => self.shared.as_data(words::cancelled(self.name(), tool)),
        }
    }

    /// Ends the server; later calls say that it was ended.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        let ended = State::Failed { reason: "it was shut down".to_owned(), failure: ToolFailure::ServerDied };
        let session = {
            let mut state = self.state();
            match &mut *state {
                State::Failed { .. } => None,
                open @ State::Open { .. } => Some(std::mem::replace(open, ended)),
            }
        };
        if let Some(State::Open { session, .. }) = session {
            session.close().await;
        }
    }

    async fn call_session(
        &self,
        session: &Session,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> ToolOutcome {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let limit = self.spec.call_limit.min(MAX_CALL_LIMIT);
        let neutraliser = &self.shared.neutraliser;
        let answer = match timeout(limit, session.call(params)).await {
            Ok(answer) => answer,
            Err(_) => {
                let text = format!(
                    "`{tool}` of the server `{}` gave no answer within {} s and was cancelled. Ask for less at once, or use another tool.",
                    self.name(),
                    seconds(limit)
                );
                return self.error(ToolFailure::Timeout, text).await;
            }
        };
        match answer {
            Ok(CallToolResponse::Complete(result)) => {
                let refused = session.judges_arguments().then(|| arguments::refused(&result)).flatten();
                match refused {
                    Some(misfits) => self.shared.as_data(self.misfit(tool, &misfits)),
                    None => self.outcome(result).await,
                }
            }
            Ok(_) => {
                let text = format!(
                    "`{tool}` of the server `{}` asks for input or goes on in the background; neither can be done here.",
                    self.name()
                );
                self.error(ToolFailure::ToolError, text).await
            }
            Err(ServiceError::McpError(error)) => {
                let code = i64::from(error.code.0);
                let said = render::error_text(&error, neutraliser);
                if code == i64::from(lines::UNUSABLE_ANSWER) && said.starts_with(lines::UNUSABLE) {
                    let text = format!(
                        "The server `{}` has answered the call of `{tool}`, but {said}. Ask for less at a time, or in \
                         another way.",
                        self.name()
                    );
                    return self.error(ToolFailure::ProtocolError(code), text).await;
                }
                let mut text = format!(
                    "The server `{}` refused the call of `{tool}` (JSON-RPC error {code}): {said}",
                    self.name()
                );
                if code != INVALID_PARAMS {
                    return self.error(ToolFailure::ProtocolError(code), text).await;
                }
                if let Some(tool) = self.tools().iter().find(|offered| offered.name == tool) {
                    text.push_str(&words::expected_arguments(tool));
                }
                self.error(ToolFailure::InvalidArguments, text).await
            }
            Err(ServiceError::TransportSend(error)) if !session.is_closed() => {
                let text = format!(
                    "The call of `{tool}` to the server `{}` failed: {}",
                    self.name(),
                    transport_problem(&*error.error)
                );
                self.error(ToolFailure::ServerDied, text).await
            }
            Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => {
                let text = format!(
                    "The call of `{tool}` was cut off and is not repeated, because it may have had effects: the server `{}` {}",
                    self.name(),
                    session.ending().await
                );
                self.error(ToolFailure::ServerDied, text).await
            }
            Err(error) => {
                let text = format!(
                    "The server `{}` did not answer the call of `{tool}` properly: {error}",
                    self.name()
                );
                self.error(ToolFailure::ToolError, text).await
            }
        }
    }

    async fn outcome(&self, result: CallToolResult) -> ToolOutcome {
        let is_error = result.is_error.unwrap_or(false);
        let blocks = render::blocks(result, &self.shared.neutraliser);
        let failure = blocks.iter().find_map(|block| match block {
            ContentBlock::Text { text } => Some(ToolFailure::of_result(text, is_error)),
            _ => None,
        });
        let failure = failure.unwrap_or(is_error.then_some(ToolFailure::ToolError));
        ToolOutcome { result: ToolResult { content: self.cut(blocks).await, is_error }, failure }
    }

    async fn error(&self, failure: ToolFailure, text: String) -> ToolOutcome {
        let blocks = vec![ContentBlock::text(self.shared.neutraliser.data(&text))];
        let result = ToolResult { content: self.cut(blocks).await, is_error: true };
        ToolOutcome { result, failure: Some(failure) }
    }

    async fn cut(&self, blocks: Vec<ContentBlock>) -> Vec<ContentBlock> {
        let options = &self.shared.options;
        cut(blocks, options.output_limit, options.blob_dir.as_deref()).await
    }

    /// The session, opened again where it has ended and that is still allowed.
    async fn live_session(self: &Arc<Self>) -> Result<Arc<Session>, ToolOutcome> {
        match &*self.state() {
            State::Open { session, .. } if !session.is_closed() => return Ok(Arc::clone(session)),
            State::Open { .. } => {}
            State::Failed { reason, failure } => {
                return Err(words::not_in_use(self.name(), reason, *failure));
            }
        }
        // In a task of its own: a caller that goes away does not waste the one restart.
        let server = Arc::clone(self);
        let restarted = tokio::spawn(async move { server.restart().await }).await;
        restarted
            .unwrap_or_else(|_| Err("its restart broke off".to_owned()))
            .map_err(|reason| words::not_in_use(self.name(), &reason, ToolFailure::ServerDied))
    }

    async fn restart(&self) -> Result<Arc<Session>, String> {
        let _gate = self.gate.lock().await;
        let ended = match &*self.state() {
            State::Open { session, .. } => Arc::clone(session),
            State::Failed { reason, .. } => return Err(reason.clone()),
        };
        if !ended.is_closed() {
            return Ok(ended); // somebody else was quicker
        }
        let ending = self.shared.neutraliser.data(&ended.ending().await);
        let left = |restarts: u32| restarts.checked_sub(1);
        if self.restarts.fetch_update(Ordering::AcqRel, Ordering::Acquire, left).is_err() {
            let reason = format!("it {ending}\nIt had been started again before and is not once more.");
            return Err(self.died(reason));
        }
        tracing::warn!(server = self.name(), %ending, "a tool server ended and is started again");
        let restarting = async {
            ended.close().await;
            tokio::time::sleep_until(ended.opened() + RESTART_PAUSE).await;
            Session::open(&self.spec, &self.shared.options.client_version).await
        };
        let restarted = tokio::select! {
            restarted = restarting => restarted,
            () = self.stop.cancelled() => return Err("it was shut down".to_owned()),
        };
        match restarted {
            Ok((session, tools)) => {
                let session = Arc::new(session);
                if self.open(Arc::clone(&session), tools) {
                    Ok(session)
                } else {
                    session.close().await;
                    Err("it was shut down".to_owned())
                }
            }
            Err(failure) => Err(self.died(format!("it {ending}\nStarting it again failed: {failure}"))),
        }
    }

    /// Puts a session in use, unless the server was shut down. Returns whether it is in use.
    fn open(&self, session: Arc<Session>, tools: Vec<Tool>) -> bool {
        let configured = self.shared.options.repeatable.get(self.name()).copied();
        let repeatable = tools.iter().filter(|tool| {
            super::repeatable::is_repeatable(configured, tool.annotations.as_ref(), &tool.name)
        });
        *self.repeatable.lock().unwrap_or_else(PoisonError::into_inner) =
            repeatable.map(|tool| tool.name.to_string()).collect();
        let tools = self.offered(tools);
        let mut state = self.state();
        // Looked at under the lock: a shutdown either sees the session or is seen here.
        if self.stop.is_cancelled() {
            return false;
        }
        tracing::info!(server = self.name(), tools = tools.len(), "a tool server is in use");
        *state = State::Open { session, tools };
        true
    }

    /// Whether a call to the tool may be made again where nobody knows whether it was carried out.
    pub(crate) fn is_repeatable(&self, tool: &str) -> bool {
        self.repeatable.lock().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }

    fn died(&self, reason: String) -> String {
        let reason = self.shared.neutraliser.data(&reason);
        *self.state() = State::Failed { reason: reason.clone(), failure: ToolFailure::ServerDied };
        reason
    }

    fn unknown_tool(&self, tool: &str) -> ToolOutcome {
        let offered = self.tools();
        words::unknown_tool(self.name(), tool, &mut offered.iter().map(|offered| offered.name.as_str()))
    }

    /// What is certain not to fit the tool's schema.
    fn misfits(&self, tool: &str, arguments: &Map<String, Value>) -> Vec<String> {
        let tools = self.tools();
        let schema =
            tools.iter().find(|offered| offered.name == tool).and_then(|tool| tool.input_schema.as_object());
        schema.map(|schema| arguments::misfits(schema, arguments)).unwrap_or_default()
    }

    /// What is said of a call that was not made because of its arguments.
    fn misfit(&self, tool: &str, misfits: &[String]) -> ToolOutcome {
        let tools = self.tools();
        words::misfit(self.name(), tool, tools.iter().find(|offered| offered.name == tool), misfits)
    }

    fn offers(&self, tool: &str) -> bool {
        self.tools().iter().any(|offered| offered.name == tool)
    }

    /// What of the server's tools is offered, as it is shown.
    fn offered(&self, tools: Vec<Tool>) -> Arc<[ToolDefinition]> {
        let neutraliser = &self.shared.neutraliser;
        let blacklist = &self.shared.options.blacklist;
        tools
            .into_iter()
            .filter(|tool| {
                let named = |name: &String| *name == tool.name;
                self.spec.enabled_tools.as_ref().is_none_or(|enabled| enabled.iter().any(named))
                    && !self.spec.disabled_tools.iter().any(named)
                    && !blacklist.iter().any(|(server, name)| *server == self.spec.name && named(name))
            })
            .map(|tool| {
                let mut input_schema = Value::Object(Arc::unwrap_or_clone(tool.input_schema));
                neutraliser.data_of_json(&mut input_schema);
                ToolDefinition {
                    server: self.spec.name.clone(),
                    name: neutraliser.data(&tool.name),
                    description: neutraliser.data(tool.description.as_deref().unwrap_or_default()),
                    input_schema,
                }
            })
            .collect()
    }

    fn session(&self) -> Option<Arc<Session>> {
        match &*self.state() {
            State::Open { session, .. } => Some(Arc::clone(session)),
            State::Failed { .. } => None,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
