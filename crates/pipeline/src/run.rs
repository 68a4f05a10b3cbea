//! From a question to a finished run: model, tools, prompts, log, loop. The façade that programs use.
//!
//! Decides the order in which things are set up and what a run leaves behind; the run itself is decided by
//! `orchestrator`.

mod looks;
mod opening;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use core_protocol::ToolDefinition;
use core_protocol::event::{EventBody, RunSummary};
use futures_util::future::BoxFuture;
use llm_providers::{Limiters, LlmClient, LlmError, Registry, ToolProtocol};
use mcp_tools::{ManagerOptions, ServerSpec, ToolManager, Transport};
use orchestrator::config::ToolCallsPerTurn;
use orchestrator::journal::{Journal, JournalSink, NoJournal, Past};
use orchestrator::{Driver, EventSink, Machine, ModelFacts, RunClock, Setup, Stamp, Tools};
use serde::Serialize;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::cassette::{CassetteChoice, CassetteReport, Replay};
use crate::config::{FathomConfig, Origin, Resolved, is_secret_name};
use crate::error::PipelineError;
use crate::files;
use crate::log::{BLOBS_NAME, Observer};
use crate::own_log;
use crate::prompts::{PromptFacts, TemplatePrompts};
use crate::resume::Interrupted;
use crate::scrub::Scrubber;
use crate::servers::{Servers, Wiring};
use crate::surroundings::Places;

pub(crate) use opening::names_of;
use opening::{Beginning, Opening};

const OUTSIDE: Stamp<'static> = Stamp { pass: 0, turn: 0, agent: "main" };

/// Everything that runs of one configuration share. Cheap to keep, made once.
pub struct Pipeline {
    resolved: Resolved,
    places: Places,
    pub(crate) configured: Vec<ServerSpec>,
    configured_in: String,
    client: LlmClient,
    /// What requests to models wait for, the tools' own among them.
    limiters: Limiters,
    model_choice: String,
    /// Where exchanges are written to.
    record: Option<PathBuf>,
    /// Where they come from.
    replay: Option<Replay>,
    /// Set once the model server was looked at and nothing spoke against it.
    looked: OnceCell<()>,
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
    /// What requests to the model wait for, shared with whoever asks the same server with the same key.
    pub limiters: Limiters,
    /// Whether exchanges are recorded or replayed.
    pub cassette: Option<CassetteChoice>,
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
    /// The run's id, which names its folder; none: one that sorts by time. Callers give names that are file names.
    pub run_id: Option<String>,
}

/// A finished run: the JSON object of `fathom ask`.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// The run.
    pub run_id: String,
    /// Its directory.
    pub run_dir: PathBuf,
    /// What was recorded or replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cassette: Option<CassetteReport>,
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
    pub fn new(parts: PipelineParts) -> BoxFuture<'static, Result<Self, PipelineError>> {
        Box::pin(Self::made(parts))
    }

    async fn made(parts: PipelineParts) -> Result<Self, PipelineError> {
        let PipelineParts { mut resolved, places, configured, configured_in, limiters, cassette } = parts;
        let scrubber = scrubber_of(&resolved, &configured);
        own_log::hide(scrubber.clone());
        let (record, replay) = match cassette {
            None => (None, None),
            Some(CassetteChoice::Record(path)) => (Some(path), None),
            Some(CassetteChoice::Replay(path)) => (None, Some(Replay::open(&path, &mut resolved, scrubber)?)),
        };
        let (client, model_choice) = match &replay {
            Some(replay) => (replay.client(), "from the cassette".to_owned()),
            None => chosen_model(&mut resolved, &limiters).await?,
        };
        Ok(Self {
            resolved,
            places,
            configured,
            configured_in,
            client,
            limiters,
            model_choice,
            record,
            replay,
            looked: OnceCell::new(),
        })
    }

    /// The same around a model of one's own; `llm` of the configuration is not asked, and nothing is recorded.
    #[must_use]
    pub fn with_client(parts: PipelineParts, client: LlmClient) -> Self {
        let PipelineParts { resolved, places, configured, configured_in, limiters, .. } = parts;
        own_log::hide(scrubber_of(&resolved, &configured));
        let model_choice = "the program's own".to_owned();
        Self {
            resolved,
            places,
            configured,
            configured_in,
            client,
            limiters,
            model_choice,
            record: None,
            replay: None,
            // Whatever the configuration names as a model is not asked.
            looked: OnceCell::new_with(Some(())),
        }
    }

    /// The same with the folders of its runs in another place.
    #[must_use]
    pub fn keeping_runs_in(mut self, folder: PathBuf) -> Self {
        self.places.runs = folder;
        self
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

    /// The question that a replay was recorded with.
    #[must_use]
    pub fn recorded_question(&self) -> Option<&str> {
        self.replay.as_ref().map(Replay::question)
    }

    /// The resolved configuration.
    #[must_use]
    pub const fn config(&self) -> &FathomConfig {
        &self.resolved.config
    }

    /// The same with where its values came from, its prompts and the environment.
    #[must_use]
    pub const fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// The user's folders.
    #[must_use]
    pub const fn places(&self) -> &Places {
        &self.places
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
        if question.text.trim().is_empty() {
            return Err(PipelineError::EmptyQuestion);
        }
        self.preflight().await?;
        let attachments = files::read(&question.files, self.client.capabilities().images)?;
        self.carry_out(Beginning::New(Box::new((question, attachments))), cancel, observer).await
    }

    /// Goes on with an interrupted run, to be called on the pipeline that [`Surroundings::pipeline_of`] made for it.
    /// What its log holds is not done again and not told to the observer again.
    ///
    /// [`Surroundings::pipeline_of`]: crate::Surroundings::pipeline_of
    ///
    /// # Errors
    ///
    /// What keeps the run from going on; nothing is added to its log then.
    pub async fn resume(
        &self,
        interrupted: Interrupted,
        cancel: CancellationToken,
        observer: Option<Box<Observer>>,
    ) -> Result<RunReport, PipelineError> {
        self.carry_out(Beginning::Again(Box::new(interrupted)), cancel, observer).await
    }

    /// Looks at a model server on this machine before the first run; see [`llm_providers::preflight`].
    async fn preflight(&self) -> Result<(), PipelineError> {
        if self.replay.is_some() {
            return Ok(());
        }
        let look = llm_providers::preflight(&self.resolved.config.llm, &self.resolved.environment);
        self.looked.get_or_try_init(|| async { look.await.map_err(PipelineError::from) }).await.copied()
    }

    /// A box ends here what every crate above would compile once more.
    fn carry_out(
        &self,
        beginning: Beginning,
        cancel: CancellationToken,
        observer: Option<Box<Observer>>,
    ) -> BoxFuture<'_, Result<RunReport, PipelineError>> {
        Box::pin(self.carried_out(beginning, cancel, observer))
    }

    async fn carried_out(
        &self,
        beginning: Beginning,
        cancel: CancellationToken,
        observer: Option<Box<Observer>>,
    ) -> Result<RunReport, PipelineError> {
        let started = Instant::now();
        // A cassette may have to end the run, and no other one.
        let cancel = cancel.child_token();
        let date = self.replay.as_ref().map_or_else(|| beginning.date(), |replay| replay.date().to_owned());
        let prompts = Arc::new(self.prompts(&date, "main")?);
        let (run_id, run_dir) = match &beginning {
            Beginning::New(new) => self.open_run_dir(new.0.run_id.as_deref())?,
            Beginning::Again(run) => (run.record.run_id.clone(), run.record.dir.clone()),
        };
        let (docs, files) = beginning.reading();
        let clock = RunClock::default();
        let wiring = Wiring { clock: clock.clone(), ..self.wiring(&docs, &run_dir, &files) };
        let Servers { specs, missing, agents: servers_of } =
            match self.replay.as_ref().map_or_else(|| wiring.servers(), |replay| Ok(replay.servers())) {
                Ok(servers) => servers,
                Err(error) => {
                    if matches!(beginning, Beginning::New(_)) {
                        // Nothing has happened in it yet.
                        let _ = std::fs::remove_dir(&run_dir);
                    }
                    return Err(error);
                }
            };
        let tools = tokio::select! {
            tools = ToolManager::start(specs, self.manager_options(&run_dir)) => tools,
            // A server may take its time to start, and nobody waits for it any more.
            () = cancel.cancelled() => ToolManager::start(Vec::new(), self.manager_options(&run_dir)).await,
        };
        let mut servers = tools.statuses();
        servers.extend(missing);
        let before = match &beginning {
            Beginning::New(_) => None,
            Beginning::Again(run) => Some(&run.setup.tools),
        };
        let tape = match self.tape(&beginning, &date, &tools, &servers, &servers_of, &cancel) {
            Ok(tape) => tape,
            Err(error) => {
                tools.shutdown().await;
                if matches!(beginning, Beginning::New(_)) {
                    let _ = std::fs::remove_dir(&run_dir);
                }
                return Err(error);
            }
        };
        let opened = self.agents(&tape.tools, servers_of, &date, before).and_then(|agents| {
            servers.extend(agents.unused().iter().cloned());
            let opening =
                self.open_log(beginning, &run_id, &run_dir, servers, &agents, (observer, &cancel))?;
            Ok((opening, agents))
        });
        let (Opening { log, begun, task, past }, agents) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tools.shutdown().await;
                return Err(error);
            }
        };
        let setup = Setup { sub_agents: agents.names(), ..self.setup(prompts, agents.main().definitions()) };
        let mut machine = Machine::new(setup, task);
        if let Err(error) = begun {
            machine.fail(core_protocol::event::ErrorReport {
                kind: "io".to_owned(),
                message: format!("the run's log cannot be written: {error}"),
                hint: None,
            });
        }
        let (past, goes_on) = past.unzip();
        let resumed = past.as_ref().map(|past| JournalSink::new(past, &log, goes_on));
        let driver = Driver {
            client: &tape.client,
            tools: agents.main(),
            journal: past.as_ref().map_or(&NoJournal as &dyn Journal, |past| past),
            sink: resumed.as_ref().map_or(&log as &dyn EventSink, |sink| sink),
            cancel,
            limits: self.resolved.config.agent.limits.clone(),
            agent: "main",
            started,
            clock,
            sub_agents: Some(&agents),
        };
        let summary = driver.drive(&mut machine).await;
        tools.shutdown().await;
        let (summary, cassette) = tape.end(summary);
        if let Some(departure) = past.as_ref().and_then(Past::departure) {
            return Err(PipelineError::Departed { dir: run_dir.display().to_string(), departure });
        }
        let logged = RunSummary {
            // A report is owned by `final_answer`; only a short answer is repeated.
            answer: summary.answer.clone().filter(|_| summary.citations.is_none()),
            final_text: None,
            run_dir: Some(run_dir.display().to_string()),
            ..summary.clone()
        };
        let (pass, turn) = machine.position();
        let stamp = Stamp { pass, turn, agent: "main" };
        let resumes = resumed.as_ref().map_or(Ok(()), JournalSink::begin);
        let kept = resumes.and_then(|()| log.emit(stamp, EventBody::RunFinished(Box::new(logged))));
        if let Err(error) =
            kept.map_err(|error| error.to_string()).and(log.close().map_err(|e| e.to_string()))
        {
            tracing::warn!(%error, "the end of the run could not be logged");
        }
        Ok(RunReport { run_id, run_dir, cassette, summary })
    }

    /// The texts of a role, with the date that the model is told.
    pub(crate) fn prompts(&self, date: &str, role: &str) -> Result<TemplatePrompts, PipelineError> {
        let agent = &self.resolved.config.agent;
        let facts = PromptFacts {
            date: date.to_owned(),
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
            role: role.to_owned(),
        };
        let source = |name: &str| {
            let file = self.resolved.conf.read("prompts", name).ok().flatten()?;
            Some((file.text()?.to_owned(), file.path))
        };
        TemplatePrompts::load(&source, facts)
    }

    /// The main agent's setup, without sub-agents.
    pub(crate) fn setup(&self, prompts: Arc<TemplatePrompts>, tools: Arc<[ToolDefinition]>) -> Setup {
        let capabilities = self.client.capabilities();
        let mut config = self.resolved.config.agent.clone();
        if self.replay.is_some() {
            config.llm_retry_pause = 0.0;
        }
        Setup {
            config: Arc::new(config),
            role: self.resolved.config.agent.main_agent.clone(),
            prompts,
            agent: orchestrator::Agent::Main,
            tools,
            sub_agents: Arc::from([]),
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
            // Each agent has its own.
            blacklist: Vec::new(),
            output_limit: self.resolved.config.tools.output_limit,
            blob_dir: Some(run_dir.join(BLOBS_NAME)),
            neutralise_tags: if self.resolved.config.tools.neutralise_tags {
                tags.iter().map(|tag| (*tag).to_owned()).collect()
            } else {
                Vec::new()
            },
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
            repeatable: self.repeatable(),
        }
    }

    /// Servers of which the configuration says whether their calls may be made again.
    fn repeatable(&self) -> BTreeMap<String, bool> {
        let servers = self.resolved.config.tools.servers.iter();
        servers.filter_map(|(name, set)| Some((name.clone(), set.repeatable?))).collect()
    }

    fn scrubber(&self) -> Scrubber {
        scrubber_of(&self.resolved, &self.configured)
    }
}

/// Puts the model that is found in the place of `auto`. Returns why it was chosen.
pub async fn find_model(resolved: &mut Resolved) -> String {
    if resolved.config.llm.provider != "auto" {
        return "as configured".to_owned();
    }
    let detected = llm_providers::detect(&resolved.environment, &resolved.config.llm).await;
    resolved.config.llm = detected.config;
    detected.reason
}

/// The configured model, or the one that is found, and why it was chosen.
async fn chosen_model(
    resolved: &mut Resolved,
    limiters: &Limiters,
) -> Result<(LlmClient, String), PipelineError> {
    let choice = find_model(resolved).await;
    let client = Registry::builtin().client_sharing(&resolved.config.llm, &resolved.environment, limiters);
    Ok((client.map_err(|error| located(error, resolved))?, choice))
}

/// The error of a setting, with the place that the setting was made at.
fn located(error: LlmError, resolved: &Resolved) -> LlmError {
    let LlmError::Configuration { message, hint } = error else { return error };
    let words =
        message.split(|character: char| !character.is_ascii_alphanumeric() && !"._".contains(character));
    let setting = words.map(|word| word.trim_end_matches('.')).find(|word| word.starts_with("llm."));
    let place = setting.map(|setting| resolved.origin_of(setting)).filter(|place| *place != Origin::Default);
    match place {
        Some(place) => LlmError::Configuration { message: format!("{message} (set at {place})"), hint },
        None => LlmError::Configuration { message, hint },
    }
}

fn scrubber_of(resolved: &Resolved, configured: &[ServerSpec]) -> Scrubber {
    let key = resolved.config.llm.api_key.as_ref().map(|key| key.expose());
    let of_servers = configured.iter().flat_map(secrets_of);
    Scrubber::of_environment(&resolved.environment, key.into_iter().chain(of_servers))
}

/// What a configured server is given that its names mark as secret.
fn secrets_of(spec: &ServerSpec) -> Vec<&str> {
    let (pairs, bearer) = match &spec.transport {
        Transport::Stdio { env, .. } => (Some(env), None),
        Transport::Http { bearer, headers, .. } => (Some(headers), bearer.as_deref()),
        Transport::InProcess(_) | Transport::Unavailable { .. } => (None, None),
    };
    let marked = pairs.into_iter().flatten().filter(|(name, _)| is_secret_name(name));
    marked.map(|(_, value)| value.as_str()).chain(bearer).collect()
}
