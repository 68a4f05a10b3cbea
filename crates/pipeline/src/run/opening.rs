//! How a run begins or goes on: its directory, its log, and the first thing that is told. Decides what is written before
//! the loop starts, and that a run which cannot go on leaves its log as it was.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use core_protocol::event::{EVENT_SCHEMA_VERSION, EventBody, RunSetup, ServerStatus, Versions};
use mcp_tools::ToolManager;
use orchestrator::journal::Past;
use orchestrator::{EventSink, SinkError, Task, Tools};
use tokio_util::sync::CancellationToken;

use super::{OUTSIDE, Pipeline, Question};
use crate::agents::Agents;
use crate::cassette::{self, Tape};
use crate::error::PipelineError;
use crate::files::{self, Attachments};
use crate::log::{Observer, RunLog};
use crate::resume::{self, Interrupted};

/// How a run begins.
pub(super) enum Beginning {
    /// With a question and what its files say.
    New(Box<(Question, Attachments)>),
    /// Where it was interrupted.
    Again(Box<Interrupted>),
}

impl Beginning {
    /// Today, as the model is told it.
    pub(super) fn date(&self) -> String {
        match self {
            Self::New(_) => today(),
            Self::Again(run) => run.setup.date.clone(),
        }
    }

    /// Folders and files that the run's tools may read.
    pub(super) fn reading(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        match self {
            Self::New(new) => (new.0.docs.clone(), new.1.paths.clone()),
            Self::Again(run) => (run.docs(), run.files.clone()),
        }
    }
}

/// A run whose log is open.
pub(super) struct Opening {
    pub(super) log: RunLog,
    /// Whether its first event could be kept.
    pub(super) begun: Result<(), SinkError>,
    pub(super) task: Task,
    /// What the log has of it, and what is told before the first event that it has not.
    pub(super) past: Option<(Past, EventBody)>,
}

impl Pipeline {
    /// The file that its tool servers come from, where there are any.
    #[must_use]
    pub fn mcp_file(&self) -> Option<&Path> {
        (!self.configured.is_empty()).then(|| Path::new(&self.configured_in))
    }

    /// What stands between the run and its model and tools: a cassette that is recorded or replayed, or nothing.
    pub(super) fn tape(
        &self,
        beginning: &Beginning,
        date: &str,
        tools: &ToolManager,
        statuses: &[ServerStatus],
        agents: &BTreeMap<String, Vec<String>>,
        cancel: &CancellationToken,
    ) -> Result<Tape, PipelineError> {
        let live: Arc<dyn Tools> = Arc::new(tools.clone());
        match (beginning, &self.record, &self.replay) {
            (Beginning::New(_), _, Some(replay)) => Ok(Tape::replaying(replay, &self.client, cancel)),
            (Beginning::New(new), Some(path), None) => {
                let run = cassette::Beginning {
                    path,
                    question: &new.0.text,
                    date,
                    resolved: &self.resolved,
                    scrubber: self.scrubber(),
                    statuses,
                    agents,
                };
                Tape::recording(&self.client, live, &run, cancel)
            }
            _ => Ok(Tape::none(&self.client, live)),
        }
    }

    /// Opens the log and tells how the run begins, or that it goes on. Where it cannot go on, nothing is written.
    pub(super) fn open_log(
        &self,
        beginning: Beginning,
        run_id: &str,
        run_dir: &Path,
        servers: Vec<ServerStatus>,
        agents: &Agents,
        (observer, cancel): (Option<Box<Observer>>, &CancellationToken),
    ) -> Result<Opening, PipelineError> {
        let unwritable = |source| write_error("the log of the run in", run_dir, source);
        match beginning {
            Beginning::New(new) => {
                let (question, attachments) = *new;
                let log = RunLog::create(run_dir, run_id, self.scrubber(), observer).map_err(unwritable)?;
                let begun = log.emit(OUTSIDE, self.run_started(&question, &attachments, servers, agents));
                let task = Task {
                    question: question.text,
                    attached_text: attachments.text,
                    attached_media: attachments.media,
                    files: names_of(&attachments.paths),
                };
                Ok(Opening { log, begun, task, past: None })
            }
            Beginning::Again(run) => {
                // A cancelled start has no servers.
                if !cancel.is_cancelled() {
                    run.check_servers(&servers)?;
                }
                let files = names_of(&run.files);
                let task = match run.task() {
                    Some(task) => Task { files, ..task },
                    None => {
                        let attachments = files::read(&run.files, self.client.capabilities().images)?;
                        Task {
                            question: run.question.clone(),
                            attached_text: attachments.text,
                            attached_media: attachments.media,
                            files,
                        }
                    }
                };
                let Interrupted { record, lock, past, .. } = *run;
                let log = RunLog::reopen(&record, lock, self.scrubber(), observer).map_err(unwritable)?;
                let versions =
                    Versions { fathom: env!("CARGO_PKG_VERSION").to_owned(), schema: EVENT_SCHEMA_VERSION };
                let goes_on = EventBody::RunResumed { void: past.void().to_vec(), versions };
                Ok(Opening { log, begun: Ok(()), task, past: Some((past, goes_on)) })
            }
        }
    }

    pub(super) fn run_started(
        &self,
        question: &Question,
        attachments: &Attachments,
        servers: Vec<ServerStatus>,
        agents: &Agents,
    ) -> EventBody {
        let (agent, llm) = self.resolved.chosen.clone();
        let shown =
            |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
        let setup = RunSetup {
            date: today(),
            tools: agents.offered(),
            prompts: resume::prompt_digests(&self.resolved),
            docs: question.docs.iter().map(|folder| shown(folder)).collect(),
            mcp_config: self.mcp_file().map(shown),
            conf_dir: self.resolved.conf.dir().map(shown),
            llm,
            agent,
            here: shown(&self.places.here),
            price: self.client.config().price.and_then(|price| serde_json::to_value(price).ok()),
        };
        EventBody::RunStarted {
            question: question.text.clone(),
            files: attachments.paths.iter().map(|path| path.display().to_string()).collect(),
            config: self.resolved.to_json(),
            versions: Versions { fathom: env!("CARGO_PKG_VERSION").to_owned(), schema: EVENT_SCHEMA_VERSION },
            servers,
            setup: Box::new(setup),
        }
    }

    /// Makes the run's directory. Its name, where none is chosen, sorts by time and is unique.
    pub(super) fn open_run_dir(&self, chosen: Option<&str>) -> Result<(String, PathBuf), PipelineError> {
        let root = &self.places.runs;
        std::fs::create_dir_all(root).map_err(|source| write_error("the folder of runs", root, source))?;
        loop {
            let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
            let drawn = || format!("{time}-{:06x}", random() & 0xff_ffff);
            let run_id = chosen.map_or_else(drawn, str::to_owned);
            let run_dir = root.join(&run_id);
            match std::fs::create_dir(&run_dir) {
                Ok(()) => {
                    let run_dir = std::path::absolute(&run_dir).unwrap_or(run_dir);
                    return Ok((run_id, run_dir));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && chosen.is_none() => {}
                Err(source) => return Err(write_error("the run's folder", &run_dir, source)),
            }
        }
    }
}

/// The names by which a report may cite files.
pub(crate) fn names_of(files: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    files.iter().flat_map(|path| [Some(path.display().to_string()), name(path)]).flatten().collect()
}

fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// A number that no other process has drawn: the standard library seeds its hashers from the system.
fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

fn write_error(what: &'static str, path: &Path, source: std::io::Error) -> PipelineError {
    PipelineError::Write { what, path: path.display().to_string(), source }
}
