//! Recording a run and replaying it: what of a run is on a cassette beside the exchanges with the model.
//!
//! Decides what makes a replay the same run again. On the cassette are the configuration, today's date, the tool
//! servers with their definitions and every tool call with its result. On replay date, model settings, definitions
//! and results come from there; neither the model nor a tool server is started. The question, the files given with
//! it, the prompts and the agent's settings are today's: where they lead to other requests, the replay ends with the
//! first difference. Pauses are not made again, and limits of wall time are not reached again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use core_protocol::event::{ErrorReport, RunStatus, RunSummary, ServerStatus, StopReason};
use core_protocol::{ToolDefinition, ToolResult};
use llm_providers::cassette::{CassetteError, CassetteWriter, Header, Player, Scrub};
use llm_providers::{LlmClient, LlmConfig};
use mcp_tools::{ToolFailure, ToolOutcome};
use orchestrator::Tools;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::{Origin, Resolved};
use crate::error::PipelineError;
use crate::scrub::Scrubber;
use crate::servers::Servers;

/// Kind of the exchanges with tools.
const TOOL: &str = "tool";
/// Kind of the entry that holds the tool servers.
const SERVERS: &str = "servers";
/// Differing settings that are named beside a mismatch.
const NAMED_SETTINGS: usize = 5;

/// What is done with exchanges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CassetteChoice {
    /// They are written to this new file.
    Record(PathBuf),
    /// They come from this file.
    Replay(PathBuf),
}

/// What a run did with its cassette.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CassetteReport {
    /// `record` or `replay`.
    pub mode: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What was recorded and not asked for by the replay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
}

/// The facts of a header.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Facts {
    question: String,
    date: String,
    /// The resolved configuration, without secrets.
    config: Value,
}

/// The tool servers of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct RecordedServers {
    definitions: Vec<ToolDefinition>,
    statuses: Vec<ServerStatus>,
    /// Names of servers by agent.
    agents: BTreeMap<String, Vec<String>>,
    /// Tools whose calls may be made again, as server and tool.
    repeatable: Vec<(String, String)>,
}

/// A cassette that answers.
pub(crate) struct Replay {
    path: PathBuf,
    player: Arc<Player>,
    facts: Facts,
    servers: RecordedServers,
    /// Settings of today that differ from the recorded ones, in words.
    differing: Vec<String>,
}

impl Replay {
    /// Opens a cassette. The model's settings of the configuration become the recorded ones.
    pub(crate) fn open(
        path: &Path,
        resolved: &mut Resolved,
        scrubber: Scrubber,
    ) -> Result<Self, PipelineError> {
        let player = Player::open(path, scrub(scrubber))?;
        let format =
            |detail: String| CassetteError::Format { path: path.display().to_string(), line: 1, detail };
        let facts: Facts = serde_json::from_value(Value::Object(player.header().facts.clone()))
            .map_err(|error| format(error.to_string()))?;
        let llm: LlmConfig =
            serde_json::from_value(facts.config["llm"].clone()).map_err(|error| format(error.to_string()))?;
        contradiction(resolved, &facts.config)?;
        resolved.config.llm = llm;
        let servers = match player.answer(SERVERS, "", &Value::Null) {
            Ok(value) => serde_json::from_value(value).map_err(|error| format(error.to_string()))?,
            // Killed before its servers were up.
            Err(_) => RecordedServers::default(),
        };
        let mut differing = Vec::new();
        let today = resolved.to_json();
        for section in ["agent", "tools"] {
            leaves_that_differ(&facts.config[section], &today[section], section, &mut differing);
        }
        Ok(Self { path: path.to_owned(), player: Arc::new(player), facts, servers, differing })
    }

    /// The model of the cassette.
    pub(crate) fn client(&self) -> LlmClient {
        self.player.client()
    }

    /// The question that was recorded.
    pub(crate) fn question(&self) -> &str {
        &self.facts.question
    }

    /// The day on which it was recorded.
    pub(crate) fn date(&self) -> &str {
        &self.facts.date
    }

    /// The servers that the run had; none of them is to be started.
    pub(crate) fn servers(&self) -> Servers {
        Servers {
            specs: Vec::new(),
            missing: self.servers.statuses.clone(),
            agents: self.servers.agents.clone(),
        }
    }
}

/// What a run needs to know to be recorded.
pub(crate) struct Beginning<'a> {
    pub(crate) path: &'a Path,
    pub(crate) question: &'a str,
    pub(crate) date: &'a str,
    pub(crate) resolved: &'a Resolved,
    pub(crate) scrubber: Scrubber,
    pub(crate) statuses: &'a [ServerStatus],
    pub(crate) agents: &'a BTreeMap<String, Vec<String>>,
}

/// The model and the tools of a run, with whatever stands between them and the loop.
pub(crate) struct Tape {
    pub(crate) client: LlmClient,
    pub(crate) tools: Arc<dyn Tools>,
    end: End,
    /// What went wrong between the loop and its tools; ends the run.
    broken: Arc<OnceLock<CassetteError>>,
}

enum End {
    Nothing,
    Recording { path: PathBuf, writer: Arc<CassetteWriter> },
    Replaying { path: PathBuf, player: Arc<Player>, differing: Vec<String> },
}

impl Tape {
    /// A run without a cassette.
    pub(crate) fn none(client: &LlmClient, tools: Arc<dyn Tools>) -> Self {
        Self { client: client.clone(), tools, end: End::Nothing, broken: Arc::default() }
    }

    /// A run that is recorded. `cancel` ends it where the cassette cannot be written.
    pub(crate) fn recording(
        client: &LlmClient,
        tools: Arc<dyn Tools>,
        run: &Beginning<'_>,
        cancel: &CancellationToken,
    ) -> Result<Self, PipelineError> {
        let facts = Facts {
            question: run.question.to_owned(),
            date: run.date.to_owned(),
            config: run.resolved.to_json(),
        };
        let header = Header {
            program: format!("fathom {}", env!("CARGO_PKG_VERSION")),
            recorded: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            model: client.profile(),
            facts: match serde_json::to_value(facts) {
                Ok(Value::Object(facts)) => facts,
                _ => Map::new(),
            },
        };
        let writer = Arc::new(CassetteWriter::create(run.path, &header, scrub(run.scrubber.clone()))?);
        let definitions = tools.definitions();
        let repeatable = definitions.iter().filter(|tool| tools.is_repeatable(&tool.server, &tool.name));
        let servers = RecordedServers {
            repeatable: repeatable.map(|tool| (tool.server.clone(), tool.name.clone())).collect(),
            definitions: definitions.to_vec(),
            statuses: run.statuses.to_vec(),
            agents: run.agents.clone(),
        };
        writer.exchange(SERVERS, "", Value::Null, serde_json::to_value(servers).unwrap_or_default())?;
        let broken = Arc::<OnceLock<_>>::default();
        Ok(Self {
            client: client.recorded_by(Arc::clone(&writer)),
            tools: Arc::new(Recording {
                tools,
                writer: Arc::clone(&writer),
                refreshed: AtomicU32::new(0),
                fault: Fault { broken: Arc::clone(&broken), cancel: cancel.clone() },
            }),
            end: End::Recording { path: run.path.to_owned(), writer },
            broken,
        })
    }

    /// A run that is replayed. `cancel` ends it at the first difference.
    pub(crate) fn replaying(replay: &Replay, client: &LlmClient, cancel: &CancellationToken) -> Self {
        let broken = Arc::<OnceLock<_>>::default();
        Self {
            client: client.clone(),
            tools: Arc::new(Replaying {
                player: Arc::clone(&replay.player),
                definitions: Mutex::new(replay.servers.definitions.clone().into()),
                repeatable: replay.servers.repeatable.clone(),
                refreshed: AtomicU32::new(0),
                fault: Fault { broken: Arc::clone(&broken), cancel: cancel.clone() },
            }),
            end: End::Replaying {
                path: replay.path.clone(),
                player: Arc::clone(&replay.player),
                differing: replay.differing.clone(),
            },
            broken,
        }
    }

    /// The run is over. What went wrong with the cassette is in its summary.
    pub(crate) fn end(self, mut summary: RunSummary) -> (RunSummary, Option<CassetteReport>) {
        if let Some(error) = self.broken.get() {
            fail(&mut summary, error);
        }
        let report = match self.end {
            End::Nothing => return (summary, None),
            End::Recording { path, writer } => {
                if let Err(error) = writer.close() {
                    fail(&mut summary, &error);
                }
                CassetteReport { mode: "record", path, unused: Vec::new() }
            }
            End::Replaying { path, player, differing } => {
                let mismatch = summary.error.as_mut().filter(|error| error.kind == "replay_mismatch");
                if let (Some(error), false) = (mismatch, differing.is_empty()) {
                    let hint = error.hint.take().unwrap_or_default();
                    error.hint = Some(format!("{hint}; settings that differ: {}", differing.join(", ")));
                }
                CassetteReport { mode: "replay", path, unused: player.unused() }
            }
        };
        (summary, Some(report))
    }
}

/// What went wrong with the cassette is what the run ended of.
fn fail(summary: &mut RunSummary, error: &CassetteError) {
    summary.status = RunStatus::Failed;
    summary.stop_reason = Some(StopReason::Error);
    summary.error = Some(ErrorReport {
        kind: error.kind().to_owned(),
        message: error.to_string(),
        hint: Some(error.hint()),
    });
}

/// Tells the end of a run from within a tool call.
struct Fault {
    broken: Arc<OnceLock<CassetteError>>,
    cancel: CancellationToken,
}

impl Fault {
    /// The run ends; what the model would be shown is never sent.
    fn end(&self, error: CassetteError) -> ToolOutcome {
        let text = error.to_string();
        let _ = self.broken.set(error);
        self.cancel.cancel();
        ToolOutcome { result: ToolResult::error(text), failure: Some(ToolFailure::Cancelled) }
    }
}

/// Tools whose calls are written down.
struct Recording {
    tools: Arc<dyn Tools>,
    writer: Arc<CassetteWriter>,
    refreshed: AtomicU32,
    fault: Fault,
}

#[async_trait]
impl Tools for Recording {
    fn definitions(&self) -> Arc<[ToolDefinition]> {
        self.tools.definitions()
    }

    async fn refresh(&self) {
        self.tools.refresh().await;
        let number = self.refreshed.fetch_add(1, Ordering::Relaxed);
        let definitions = serde_json::to_value(&*self.tools.definitions()).unwrap_or_default();
        if let Err(error) = self.writer.exchange(SERVERS, "again", json!(number), definitions) {
            self.fault.end(error);
        }
    }

    async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        let request = request(server, tool, &arguments);
        let outcome = self.tools.call(server, tool, arguments, cancel).await;
        match self.writer.exchange(TOOL, &format!("{server}/{tool}"), request, response(&outcome)) {
            Ok(()) => outcome,
            Err(error) => self.fault.end(error),
        }
    }

    fn is_repeatable(&self, server: &str, tool: &str) -> bool {
        self.tools.is_repeatable(server, tool)
    }
}

/// Tools that answer from a cassette.
struct Replaying {
    player: Arc<Player>,
    definitions: Mutex<Arc<[ToolDefinition]>>,
    repeatable: Vec<(String, String)>,
    refreshed: AtomicU32,
    fault: Fault,
}

#[async_trait]
impl Tools for Replaying {
    fn definitions(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.definitions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn refresh(&self) {
        let number = self.refreshed.fetch_add(1, Ordering::Relaxed);
        let recorded = self.player.answer(SERVERS, "again", &json!(number)).ok();
        if let Some(definitions) = recorded.and_then(|value| serde_json::from_value(value).ok()) {
            *self.definitions.lock().unwrap_or_else(PoisonError::into_inner) = definitions;
        }
    }

    async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        _: &CancellationToken,
    ) -> ToolOutcome {
        let name = format!("{server}/{tool}");
        match self.player.answer(TOOL, &name, &request(server, tool, &arguments)) {
            Ok(response) => outcome(&response),
            Err(error) => self.fault.end(error),
        }
    }

    fn is_repeatable(&self, server: &str, tool: &str) -> bool {
        self.repeatable.iter().any(|(of, name)| of == server && name == tool)
    }
}

fn request(server: &str, tool: &str, arguments: &Map<String, Value>) -> Value {
    json!({ "server": server, "tool": tool, "arguments": arguments })
}

fn response(outcome: &ToolOutcome) -> Value {
    let code = match outcome.failure {
        Some(ToolFailure::ProtocolError(code)) => Some(code),
        _ => None,
    };
    json!({ "result": outcome.result, "failure": outcome.failure.map(ToolFailure::kind), "code": code })
}

fn outcome(response: &Value) -> ToolOutcome {
    const FAILURES: [ToolFailure; 8] = [
        ToolFailure::UnknownServer,
        ToolFailure::UnknownTool,
        ToolFailure::InvalidArguments,
        ToolFailure::ToolError,
        ToolFailure::ExecutionError,
        ToolFailure::Timeout,
        ToolFailure::ServerDied,
        ToolFailure::Cancelled,
    ];
    let failure = response["failure"].as_str().map(|kind| match response["code"].as_i64() {
        Some(code) => ToolFailure::ProtocolError(code),
        None => FAILURES.into_iter().find(|known| known.kind() == kind).unwrap_or(ToolFailure::ToolError),
    });
    let result = serde_json::from_value(response["result"].clone())
        .unwrap_or_else(|error| ToolResult::error(format!("the recorded result cannot be read: {error}")));
    ToolOutcome { result, failure }
}

fn scrub(scrubber: Scrubber) -> Scrub {
    Arc::new(move |line| scrubber.scrub(line))
}

/// A setting of the model that was typed for this call and is not what was recorded: it would have no effect.
fn contradiction(resolved: &Resolved, recorded: &Value) -> Result<(), PipelineError> {
    let today = resolved.to_json();
    let typed = resolved.origins.iter().filter(|(_, from)| matches!(from.origin, Origin::Set { .. }));
    for (key, _) in typed.filter(|(key, _)| key.starts_with("llm.") && !key.starts_with("llm.api_key")) {
        let pointer = format!("/{}", key.replace('.', "/"));
        let (then, now) = (recorded.pointer(&pointer), today.pointer(&pointer));
        if then != now && now != Some(&json!("auto")) {
            return Err(PipelineError::Unsupported {
                key: key.clone(),
                problem: format!(
                    "a replay takes the model's settings from its cassette, where it is {}",
                    then.map_or_else(|| "not set".to_owned(), Value::to_string)
                ),
                remedy: "Leave it out, or record the run again with it.".to_owned(),
            });
        }
    }
    Ok(())
}

/// Settings that differ, in words, a few of them.
fn leaves_that_differ(recorded: &Value, today: &Value, path: &str, differing: &mut Vec<String>) {
    if differing.len() >= NAMED_SETTINGS || recorded == today {
        return;
    }
    match (recorded, today) {
        (Value::Object(one), Value::Object(other)) => {
            for key in one.keys().chain(other.keys().filter(|key| !one.contains_key(*key))) {
                let null = Value::Null;
                let (one, other) = (one.get(key).unwrap_or(&null), other.get(key).unwrap_or(&null));
                leaves_that_differ(one, other, &format!("{path}.{key}"), differing);
            }
        }
        (one, other) => differing.push(format!("{path} (recorded {one}, now {other})")),
    }
}
