//! From a question to a finished run: model, tools, prompts, log, loop. The façade that programs use.
//!
//! Decides the order in which things are set up and what a run leaves behind; the run itself is decided by
//! `orchestrator`.

use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use core_protocol::event::{EVENT_SCHEMA_VERSION, EventBody, RunSummary, ServerStatus, Versions};
use llm_providers::{LlmClient, ToolProtocol};
use mcp_tools::{ManagerOptions, ServerSpec, ToolManager, Transport};
use orchestrator::config::ToolCallsPerTurn;
use orchestrator::{Driver, EventSink as _, Machine, ModelFacts, Setup, Stamp, Task};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::config::{FathomConfig, Resolved, is_secret_name};
use crate::error::PipelineError;
use crate::files::{self, Attachments};
use crate::log::{BLOBS_NAME, Observer, RunLog};
use crate::prompts::{PromptFacts, TemplatePrompts};
use crate::scrub::Scrubber;
use crate::servers::{Servers, Wiring};
use crate::supported;
use crate::surroundings::Places;

const OUTSIDE: Stamp<'static> = Stamp { pass: 0, turn: 0, agent: "main" };

/// Everything that runs of one configuration share. Cheap to keep, made once.
pub struct Pipeline {
    resolved: Resolved,
    places: Places,
    configured: Vec<ServerSpec>,
    configured_in: String,
    client: LlmClient,
    model_choice: String,
}

/// What a [`Pipeline`] is made from.
pub struct PipelineParts {
    /// The resolved configuration, with prompts, articles and the environment.
    pub resolved: Resolved,
    /// The user's folders.
    pub places: Places,
    /// Servers of `mcp.json`.
    pub configured: Vec<ServerSpec>,
    /// The path of that file, or where it was looked for.
    pub configured_in: String,
}

/// One question.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The question itself.
    pub text: String,
    /// Files that belong to it.
    pub files: Vec<PathBuf>,
    /// Folders that are searched in this run.
    pub docs: Vec<PathBuf>,
}

/// A finished run: the JSON object of `fathom ask`.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// The run.
    pub run_id: String,
    /// Its directory.
    pub run_dir: PathBuf,
    /// What came out.
    #[serde(flatten)]
    pub summary: RunSummary,
}

impl Pipeline {
    /// Chooses the model and checks what can be checked before a run.
    ///
    /// # Errors
    ///
    /// A setting that is not carried out yet, or a model that cannot be used.
    pub async fn new(parts: PipelineParts) -> Result<Self, PipelineError> {
        let PipelineParts { mut resolved, places, configured, configured_in } = parts;
        supported::check(&resolved.config.agent)?;
        let mut model_choice = "as configured".to_owned();
        if resolved.config.llm.provider == "auto" {
            let detected = llm_providers::detect(&resolved.environment, &resolved.config.llm).await;
            resolved.config.llm = detected.config;
            model_choice = detected.reason;
        }
        let client = LlmClient::from_config(&resolved.config.llm, &resolved.environment)?;
        Ok(Self { resolved, places, configured, configured_in, client, model_choice })
    }

    /// The model.
    #[must_use]
    pub const fn client(&self) -> &LlmClient {
        &self.client
    }

    /// Why this model was chosen, in words.
    #[must_use]
    pub fn model_choice(&self) -> &str {
        &self.model_choice
    }

    /// The resolved configuration.
    #[must_use]
    pub const fn config(&self) -> &FathomConfig {
        &self.resolved.config
    }

    /// Carries one question to its end. Everything that goes wrong on the way is in the report.
    ///
    /// # Errors
    ///
    /// What keeps the run from beginning.
    pub async fn ask(
        &self,
        question: Question,
        cancel: CancellationToken,
        observer: Option<Box<Observer>>,
    ) -> Result<RunReport, PipelineError> {
        let started = Instant::now();
        if question.text.trim().is_empty() {
            return Err(PipelineError::EmptyQuestion);
        }
        let capabilities = self.client.capabilities();
        let attachments = files::read(&question.files, capabilities.images)?;
        let prompts = Arc::new(self.prompts()?);
        let (run_id, run_dir) = self.open_run_dir()?;
        let wiring = self.wiring(&question.docs, &run_dir, &attachments.paths);
        let Servers { specs, missing } = match wiring.servers() {
            Ok(servers) => servers,
            Err(error) => {
                // Nothing has happened in it yet.
                let _ = std::fs::remove_dir(&run_dir);
                return Err(error);
            }
        };
        let log = RunLog::create(&run_dir, &run_id, self.scrubber(), observer)
            .map_err(|source| write_error("the log of the run in", &run_dir, source))?;
        let tools = tokio::select! {
            tools = ToolManager::start(specs, self.manager_options(&run_dir)) => tools,
            // A server may take its time to start, and nobody waits for it any more.
            () = cancel.cancelled() => ToolManager::start(Vec::new(), self.manager_options(&run_dir)).await,
        };
        let mut servers = tools.statuses();
        servers.extend(missing);
        let begun = log.emit(OUTSIDE, self.run_started(&question, &attachments, servers));

        let task = Task {
            question: question.text,
            attached_text: attachments.text,
            attached_media: attachments.media,
        };
        let mut machine = Machine::new(self.setup(prompts, &tools), task);
        if let Err(error) = begun {
            machine.fail(core_protocol::event::ErrorReport {
                kind: "io".to_owned(),
                message: format!("the run's log cannot be written: {error}"),
                hint: None,
            });
        }
        let driver = Driver {
            client: &self.client,
            tools: &tools,
            sink: &log,
            cancel,
            limits: self.resolved.config.agent.limits.clone(),
            agent: "main",
            started,
        };
        let summary = driver.drive(&mut machine).await;
        tools.shutdown().await;
        let logged = RunSummary { final_text: None, ..summary.clone() };
        let (pass, turn) = machine.position();
        let stamp = Stamp { pass, turn, agent: "main" };
        let kept = log.emit(stamp, EventBody::RunFinished(Box::new(logged)));
        if let Err(error) =
            kept.map_err(|error| error.to_string()).and(log.close().map_err(|e| e.to_string()))
        {
            tracing::warn!(%error, "the end of the run could not be logged");
        }
        Ok(RunReport { run_id, run_dir, summary })
    }

    /// The servers that a run would use, started for a look. The caller shuts them down.
    ///
    /// # Errors
    ///
    /// As for a run.
    pub async fn start_tools(
        &self,
        docs: &[PathBuf],
        scratch: &Path,
    ) -> Result<(ToolManager, Vec<ServerStatus>), PipelineError> {
        let wiring = self.wiring(docs, scratch, &[]);
        let Servers { specs, missing } = wiring.servers()?;
        let manager = ToolManager::start(specs, self.manager_options(scratch)).await;
        let mut statuses = manager.statuses();
        statuses.extend(missing);
        Ok((manager, statuses))
    }

    /// What servers are made from, for a run or a look.
    #[must_use]
    pub const fn wiring<'a>(
        &'a self,
        docs: &'a [PathBuf],
        run_dir: &'a Path,
        files: &'a [PathBuf],
    ) -> Wiring<'a> {
        Wiring {
            config: &self.resolved.config,
            conf: &self.resolved.conf,
            places: &self.places,
            configured: self.configured.as_slice(),
            configured_in: self.configured_in.as_str(),
            docs,
            run_dir,
            files,
        }
    }

    fn prompts(&self) -> Result<TemplatePrompts, PipelineError> {
        let agent = &self.resolved.config.agent;
        let facts = PromptFacts {
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
            dialect: match self.resolved.config.llm.tool_protocol {
                ToolProtocol::Text => self.resolved.config.llm.dialect.dialect().name().to_owned(),
                ToolProtocol::Native => "native".to_owned(),
            },
            several_calls: agent.tool_calls_per_turn != ToolCallsPerTurn::First,
            style: match agent.prompt_style {
                orchestrator::config::PromptStyle::Plain => "plain",
                orchestrator::config::PromptStyle::Example => "example",
            }
            .to_owned(),
            role: "main".to_owned(),
        };
        let source = |name: &str| {
            let file = self.resolved.conf.read("prompts", name).ok().flatten()?;
            Some((file.text()?.to_owned(), file.path))
        };
        TemplatePrompts::load(&source, facts)
    }

    fn setup(&self, prompts: Arc<TemplatePrompts>, tools: &ToolManager) -> Setup {
        let capabilities = self.client.capabilities();
        Setup {
            config: Arc::new(self.resolved.config.agent.clone()),
            role: self.resolved.config.agent.main_agent.clone(),
            prompts,
            tools: tools.definitions(),
            protocol: self.resolved.config.llm.tool_protocol,
            dialect: self.resolved.config.llm.dialect.dialect(),
            starts_in_thinking: self.resolved.config.llm.starts_in_thinking,
            model: ModelFacts {
                assistant_prefix: capabilities.assistant_prefix,
                images: capabilities.images,
                audio: capabilities.audio,
                max_context_length: self.client.max_context_length(),
                max_tokens: self.client.max_tokens(),
            },
            params: self.client.describe(),
        }
    }

    fn manager_options(&self, run_dir: &Path) -> ManagerOptions {
        let tags = self.resolved.config.llm.dialect.dialect().tags();
        ManagerOptions {
            blacklist: self.resolved.config.agent.main_agent.tool_blacklist.clone(),
            output_limit: self.resolved.config.tools.output_limit,
            blob_dir: Some(run_dir.join(BLOBS_NAME)),
            neutralise_tags: if self.resolved.config.tools.neutralise_tags {
                tags.iter().map(|tag| (*tag).to_owned()).collect()
            } else {
                Vec::new()
            },
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn run_started(
        &self,
        question: &Question,
        attachments: &Attachments,
        servers: Vec<ServerStatus>,
    ) -> EventBody {
        EventBody::RunStarted {
            question: question.text.clone(),
            files: attachments.paths.iter().map(|path| path.display().to_string()).collect(),
            config: self.resolved.to_json(),
            versions: Versions { fathom: env!("CARGO_PKG_VERSION").to_owned(), schema: EVENT_SCHEMA_VERSION },
            servers,
        }
    }

    fn scrubber(&self) -> Scrubber {
        let key = self.resolved.config.llm.api_key.as_ref().map(|key| key.expose());
        let of_servers = self.configured.iter().flat_map(secrets_of);
        Scrubber::of_environment(&self.resolved.environment, key.into_iter().chain(of_servers))
    }

    /// Makes the run's directory. Its name sorts by time and is unique.
    fn open_run_dir(&self) -> Result<(String, PathBuf), PipelineError> {
        let root = &self.places.runs;
        std::fs::create_dir_all(root).map_err(|source| write_error("the folder of runs", root, source))?;
        loop {
            let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
            let run_id = format!("{time}-{:06x}", random() & 0xff_ffff);
            let run_dir = root.join(&run_id);
            match std::fs::create_dir(&run_dir) {
                Ok(()) => {
                    let run_dir = std::path::absolute(&run_dir).unwrap_or(run_dir);
                    return Ok((run_id, run_dir));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(write_error("the run's folder", &run_dir, source)),
            }
        }
    }
}

/// What a configured server is given that its names mark as secret.
fn secrets_of(spec: &ServerSpec) -> Vec<&str> {
    let (pairs, bearer) = match &spec.transport {
        Transport::Stdio { env, .. } => (Some(env), None),
        Transport::Http { bearer, headers, .. } => (Some(headers), bearer.as_deref()),
        Transport::InProcess(_) => (None, None),
    };
    let marked = pairs.into_iter().flatten().filter(|(name, _)| is_secret_name(name));
    marked.map(|(_, value)| value.as_str()).chain(bearer).collect()
}

/// A number that no other process has drawn: the standard library seeds its hashers from the system.
fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

fn write_error(what: &'static str, path: &Path, source: std::io::Error) -> PipelineError {
    PipelineError::Write { what, path: path.display().to_string(), source }
}
