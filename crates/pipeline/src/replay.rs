//! Drives a run again from its own log: nothing is asked, nothing is run, nothing is written.
//!
//! Decides what counts as the same: every event but its time and number, and the figures at the end but for times.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use core_protocol::event::{Event, EventBody, RunSummary};
use core_protocol::{Message, ToolDefinition, Usage};
use llm_providers::{CallOutcome, ChatRequest, LlmClient, LlmError};
use mcp_tools::ToolOutcome;
use orchestrator::journal::{Departure, JournalSink};
use orchestrator::{
    CallObserver, Driver, EventSink, Machine, Model, RunClock, Setup, SinkError, Stamp, Task, Tools,
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::error::PipelineError;
use crate::resume::Interrupted;
use crate::run::Pipeline;

/// How a run that was driven again went.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// Events that were told again, each as the log has it.
    pub events: usize,
    /// Whether the run came to its end; a run that was interrupted ends where its log does.
    pub finished: bool,
}

/// Counts and prices as the run's model does, and never asks it.
struct Offline<'a> {
    client: &'a LlmClient,
    end: &'a CancellationToken,
}

#[async_trait]
impl Model for Offline<'_> {
    async fn complete(
        &self,
        _request: &ChatRequest,
        _observer: &mut CallObserver<'_>,
    ) -> Result<CallOutcome, LlmError> {
        // The log ends inside this call; so does the replay.
        self.end.cancel();
        std::future::pending().await
    }

    fn count_tokens(&self, text: &str) -> u64 {
        self.client.count_tokens(text)
    }

    fn count_message(&self, message: &Arc<Message>) -> u64 {
        self.client.count_message(message)
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        self.client.cost(usage)
    }
}

/// Runs nothing.
struct NoTools {
    end: CancellationToken,
}

#[async_trait]
impl Tools for NoTools {
    fn definitions(&self) -> Arc<[ToolDefinition]> {
        Arc::new([])
    }

    async fn call(
        &self,
        _server: &str,
        _tool: &str,
        _arguments: Map<String, Value>,
        _cancel: &CancellationToken,
    ) -> ToolOutcome {
        self.end.cancel();
        std::future::pending().await
    }

    fn is_repeatable(&self, _server: &str, _tool: &str) -> bool {
        true
    }
}

/// Takes what the log does not have: nothing. Ends the replay.
struct End {
    reached: CancellationToken,
}

impl EventSink for End {
    fn emit(&self, _stamp: Stamp<'_>, _body: EventBody) -> Result<(), SinkError> {
        self.reached.cancel();
        Err(SinkError("the log ends here".to_owned()))
    }
}

impl Pipeline {
    /// Drives a run again from its log, to be called on the pipeline that [`Surroundings::pipeline_of`] made for it.
    /// Needs neither network nor tool servers.
    ///
    /// [`Surroundings::pipeline_of`]: crate::Surroundings::pipeline_of
    ///
    /// # Errors
    ///
    /// [`PipelineError::Departed`] where an event differs from the log's, with its number.
    pub async fn replay(&self, run: Interrupted) -> Result<Replayed, PipelineError> {
        let dir = run.record.dir.display().to_string();
        let end = End { reached: CancellationToken::new() };
        let departed = |departure| PipelineError::Departed { dir: dir.clone(), departure };
        let no_tools: Arc<dyn Tools> = Arc::new(NoTools { end: end.reached.clone() });
        let agents = self.agents(&no_tools, BTreeMap::new(), &run.setup.date, Some(&run.setup.tools))?;
        let prompts = Arc::new(self.prompts(&run.setup.date, "main")?);
        let setup = Setup { sub_agents: agents.names(), ..self.setup(prompts, agents.main().definitions()) };
        let Some(task) = run.task() else { return Ok(Replayed { events: 0, finished: false }) };
        let mut machine = Machine::new(setup, Task { files: run.file_names(), ..task });
        let sink = JournalSink::new(&run.past, &end, None);
        let driver = Driver {
            client: &Offline { client: self.client(), end: &end.reached },
            tools: agents.main(),
            journal: &run.past,
            sink: &sink,
            cancel: CancellationToken::new(),
            limits: self.config().agent.limits.clone(),
            agent: "main",
            started: Instant::now(),
            clock: RunClock::default(),
            sub_agents: Some(&agents),
        };
        let summary = tokio::select! {
            biased;
            () = end.reached.cancelled() => None,
            summary = driver.drive(&mut machine) => Some(summary),
        };
        if let Some(departure) = run.past.departure() {
            return Err(departed(departure));
        }
        let counts = |event: &&Event| is_told(&event.body) && !run.past.void().contains(&event.seq);
        let told = run.record.valid_events().filter(counts).count();
        let logged = run.record.events.iter().rev().find_map(|event| match &event.body {
            EventBody::RunFinished(summary) => Some((event.seq, summary)),
            _ => None,
        });
        let (Some((seq, logged)), Some(summary)) = (logged, summary) else {
            return Ok(Replayed { events: told, finished: false });
        };
        if let Some(seq) = run.past.untold() {
            return Err(departed(Departure {
                seq,
                expected: "this event".to_owned(),
                found: "the end of the run".to_owned(),
            }));
        }
        let (expected, found) = (figures(logged), figures(&summary));
        if expected != found {
            return Err(departed(Departure { seq, expected, found }));
        }
        Ok(Replayed { events: told + 1, finished: true })
    }
}

/// Whether a machine tells the event.
const fn is_told(body: &EventBody) -> bool {
    !matches!(
        body,
        EventBody::RunStarted { .. }
            | EventBody::RunResumed { .. }
            | EventBody::RunFinished(_)
            | EventBody::LlmRetry { .. }
            | EventBody::LlmWaited { .. }
            | EventBody::ToolsWaited { .. }
    )
}

/// What of a summary is the same each time; prices are those of today.
fn figures(summary: &RunSummary) -> String {
    let same = RunSummary {
        cost_usd: None,
        answer: None,
        final_text: None,
        run_dir: None,
        wall_ms: 0,
        llm_ms: 0,
        tool_ms: 0,
        overhead_ms: 0,
        limiter_ms: 0,
        ..summary.clone()
    };
    serde_json::to_string(&same).unwrap_or_default()
}
