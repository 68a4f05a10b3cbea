//! Going on with an interrupted run: what its log must hold, and what must be as it was.
//!
//! Decides that a run goes on as it began: its configuration, tools, date and files come from its log; secrets,
//! which no log has, and limits come from today. What differs is an error before anything is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use core_protocol::event::{Event, EventBody, RunSetup, RunStatus, RunSummary, ServerStatus, Versions};
use core_protocol::{ContentBlock, Message};
use orchestrator::Task;
use orchestrator::journal::Past;
use serde_json::Value;

use crate::config::{FathomConfig, Resolved, key_of_set};
use crate::error::PipelineError;
use crate::lock::{FolderLock, LockError};
use crate::log::{LOCK_NAME, LogError, RunRecord};
use crate::run::{RunReport, names_of};
use crate::surroundings::Options;

/// What stands in a log where a secret was.
const MASK: &str = "***";

/// Settings that may differ from those that the run began with: they say where and how patiently the model is
/// reached and how far the run may go, not what the run is.
const MAY_DIFFER: &[&str] = &["llm.api_key", "llm.base_url", "llm.retries", "agent.limits", "tools.servers"];

/// The directory of a run, opened to go on with it.
pub enum Opened {
    /// The run is over; this is its result.
    Finished(Box<RunReport>),
    /// The run was interrupted.
    Interrupted(Box<Interrupted>),
}

/// A run that was interrupted. While this lives, no other process goes on with it.
pub struct Interrupted {
    pub(crate) record: RunRecord,
    /// None where the run is only looked at.
    pub(crate) lock: Option<FolderLock>,
    pub(crate) past: Past,
    pub(crate) question: String,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) setup: RunSetup,
    config: Value,
    versions: Versions,
    servers: Vec<ServerStatus>,
}

/// The report of a finished run, as `ask` gave it; none for a run that is not finished.
#[must_use]
pub fn report_of(record: &RunRecord) -> Option<RunReport> {
    let summary = record.summary()?;
    let settled =
        record.valid_events().filter(|event| event.agent == "main").filter_map(|event| match &event.body {
            EventBody::FinalAnswer { message_id, answer, .. } => Some((message_id, answer)),
            _ => None,
        });
    let (id, answer) = settled.last().map_or((None, None), |(id, answer)| (id.as_ref(), answer.clone()));
    let text = record.valid_events().find_map(|event| match &event.body {
        EventBody::Message { id: this, message } if Some(this) == id && event.agent == "main" => {
            Some(message.joined_text())
        }
        _ => None,
    });
    let dir = std::path::absolute(&record.dir).unwrap_or_else(|_| record.dir.clone());
    Some(RunReport {
        run_id: record.run_id.clone(),
        run_dir: dir,
        cassette: None,
        summary: RunSummary {
            answer: summary.answer.clone().or(answer),
            final_text: text,
            run_dir: None,
            ..summary.clone()
        },
    })
}

impl Opened {
    /// Opens the directory of a run. With `retry_failed`, a run that failed because the model could not be reached or
    /// used goes on from before the calls that failed.
    ///
    /// # Errors
    ///
    /// A directory without a run, a damaged log, a log of another version, a run that another process works on.
    pub fn open(run_dir: &Path, retry_failed: bool) -> Result<Self, PipelineError> {
        if !run_dir.join(crate::log::LOG_NAME).is_file() {
            return Err(LogError::NotARun { dir: run_dir.display().to_string() }.into());
        }
        let run_dir = std::path::absolute(run_dir).unwrap_or_else(|_| run_dir.to_owned());
        let lock = FolderLock::take(&run_dir.join(LOCK_NAME)).map_err(|error| match error {
            LockError::Held(pid) => PipelineError::Locked { dir: run_dir.display().to_string(), pid },
            LockError::Io(source) => PipelineError::Write {
                what: "the lock of the run in",
                path: run_dir.display().to_string(),
                source,
            },
        })?;
        let record = RunRecord::read(&run_dir)?;
        let mut behind = Vec::new();
        if let Some(report) = report_of(&record) {
            let goes_on = match report.summary.status {
                RunStatus::Cancelled => true,
                RunStatus::Failed => retry_failed,
                RunStatus::Answered | RunStatus::NoAnswer => false,
            };
            if !goes_on {
                return Ok(Self::Finished(Box::new(report)));
            }
            if report.summary.status == RunStatus::Failed {
                behind = failed_calls(&record);
            }
        }
        Ok(Self::Interrupted(Box::new(Interrupted::new(record, Some(lock), |events| {
            Past::new(events, &behind)
        })?)))
    }
}

impl Interrupted {
    fn new(
        record: RunRecord,
        lock: Option<FolderLock>,
        past: impl FnOnce(&[Event]) -> Past,
    ) -> Result<Self, PipelineError> {
        let Some(Event {
            body: EventBody::RunStarted { question, files, config, versions, servers, setup },
            ..
        }) = record.events.first()
        else {
            return Err(LogError::Empty {
                path: record.dir.join(crate::log::LOG_NAME).display().to_string(),
            }
            .into());
        };
        if setup.date.is_empty() {
            return Err(PipelineError::Differs {
                dir: record.dir.display().to_string(),
                problem: format!(
                    "version {} wrote too little into its log to go on from it",
                    versions.fathom
                ),
                remedy: "Ask the question again; what the run found is in its log: fathom trace show."
                    .to_owned(),
            });
        }
        Ok(Self {
            past: past(&record.events),
            lock,
            question: question.clone(),
            files: files.iter().map(PathBuf::from).collect(),
            setup: (**setup).clone(),
            config: config.clone(),
            versions: versions.clone(),
            servers: servers.clone(),
            record,
        })
    }

    /// A run, finished or not, to be driven again from its log alone; see [`Pipeline::replay`].
    ///
    /// [`Pipeline::replay`]: crate::Pipeline::replay
    ///
    /// # Errors
    ///
    /// A log that does not hold enough.
    pub fn again(record: RunRecord) -> Result<Self, PipelineError> {
        Self::new(record, None, Past::whole)
    }

    /// The run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.record.run_id
    }

    /// Turns of the main agent that are done.
    #[must_use]
    pub fn turns_done(&self) -> u32 {
        let main = self.record.valid_events().filter(|event| event.agent == "main");
        main.filter(|event| matches!(event.body, EventBody::ContextChecked { over: false, .. })).count()
            as u32
    }

    /// Names of the files given with the question.
    pub(crate) fn file_names(&self) -> Vec<String> {
        names_of(&self.files)
    }

    /// Folders that the run searches.
    pub(crate) fn docs(&self) -> Vec<PathBuf> {
        self.setup.docs.iter().map(PathBuf::from).collect()
    }

    /// The options that the run began with, with what is given today where that may differ.
    ///
    /// # Errors
    ///
    /// An option that would make it another run.
    pub(crate) fn options(&self, today: &Options) -> Result<Options, PipelineError> {
        for (option, given, before) in
            [("--llm", &today.llm, &self.setup.llm), ("--agent", &today.agent, &self.setup.agent)]
        {
            if given.is_some() && given != before {
                return Err(self.differs(
                    format!(
                        "it began with {}",
                        before
                            .as_ref()
                            .map_or_else(|| format!("no {option}"), |name| format!("{option} {name}"),)
                    ),
                    format!("Leave {option} out: a run goes on as it began."),
                ));
            }
        }
        for set in &today.sets {
            let key = key_of_set(set);
            if !MAY_DIFFER.iter().any(|allowed| key == *allowed || key.starts_with(&format!("{allowed}."))) {
                return Err(self.differs(
                    format!("`{key}` cannot be changed in the middle of a run"),
                    format!("Leave it out. What may be set: {}.", MAY_DIFFER.join(", ")),
                ));
            }
        }
        let or = |given: &Option<PathBuf>, before: &Option<String>| {
            given.clone().or_else(|| before.as_ref().map(PathBuf::from))
        };
        Ok(Options {
            conf_dir: or(&today.conf_dir, &self.setup.conf_dir),
            llm: self.setup.llm.clone(),
            agent: self.setup.agent.clone(),
            benchmark: None,
            sets: today.sets.clone(),
            mcp_config: or(&today.mcp_config, &self.setup.mcp_config),
            runs_dir: today.runs_dir.clone(),
            cassette: None,
        })
    }

    /// The configuration that the run began with, with today's secrets and what is set today.
    ///
    /// # Errors
    ///
    /// A secret that is not to be had today; templates that have changed since.
    pub(crate) fn configuration(
        &self,
        mut today: Resolved,
        sets: &[String],
    ) -> Result<Resolved, PipelineError> {
        let mut config = self.config.clone();
        let mut now = serde_json::to_value(&today.config).unwrap_or_default();
        let api_key = today.config.llm.api_key.clone();
        for set in sets {
            let key = key_of_set(set);
            let path = format!("/{}", key.replace('.', "/"));
            if let Some(value) = now.pointer(&path).cloned() {
                put(&mut config, &path, value);
            }
        }
        // A key that the configuration does not name is looked for where the provider keeps it.
        if let Some(llm) = config.get_mut("llm").and_then(Value::as_object_mut) {
            llm.insert("api_key".to_owned(), Value::Null);
        }
        if let Some(llm) = now.get_mut("llm").and_then(Value::as_object_mut) {
            llm.insert("api_key".to_owned(), Value::Null);
        }
        fill_secrets(&mut config, Some(&now), "").map_err(|key| {
            self.differs(
                format!("the secret at `{key}` is not set today, and no log keeps secrets"),
                "Set it where it was set when the run began: in the environment, in .env, or in the configuration."
                    .to_owned(),
            )
        })?;
        let mut config: FathomConfig = serde_json::from_value(config).map_err(|error| {
            self.differs(
                format!("this version cannot use the configuration in its log: {error}"),
                format!("Use version {} of the program for this run.", self.versions.fathom),
            )
        })?;
        config.llm.api_key = api_key;
        today.config = config;
        let changed = self.changed_prompts(&prompt_digests(&today));
        if !changed.is_empty() {
            return Err(self.differs(
                format!("since it began, templates have changed: {}", changed.join(", ")),
                format!(
                    "Put them back as they were, or use version {} of the program if they came with it.",
                    self.versions.fathom
                ),
            ));
        }
        Ok(today)
    }

    fn changed_prompts(&self, now: &BTreeMap<String, String>) -> Vec<String> {
        let before = &self.setup.prompts;
        let names = before.keys().chain(now.keys());
        let mut changed: Vec<String> = names
            .filter(|name| before.get(*name) != now.get(*name))
            .map(|name| format!("prompts/{name}"))
            .collect();
        changed.sort();
        changed.dedup();
        changed
    }

    /// Whether every server that the run used is there again.
    ///
    /// # Errors
    ///
    /// The first that is not, with the reason.
    pub(crate) fn check_servers(&self, now: &[ServerStatus]) -> Result<(), PipelineError> {
        for before in self.servers.iter().filter(|server| server.error.is_none()) {
            let found = now.iter().find(|server| server.name == before.name);
            let missing = match found {
                None => Some("it is not configured any more".to_owned()),
                Some(server) => server.error.clone().or_else(|| {
                    let gone: Vec<&str> = before
                        .tools
                        .iter()
                        .filter(|tool| !server.tools.contains(tool))
                        .map(String::as_str)
                        .collect();
                    (!gone.is_empty()).then(|| format!("it no longer offers {}", gone.join(", ")))
                }),
            };
            if let Some(problem) = missing {
                return Err(self.differs(
                    format!("it used the tool server `{}`, which is not in use now: {problem}", before.name),
                    "Make the server available again and resume once more; `fathom doctor` looks at every server."
                        .to_owned(),
                ));
            }
        }
        Ok(())
    }

    /// What was asked, with what the files said then; none where the log ends before the first message.
    pub(crate) fn task(&self) -> Option<Task> {
        let first = self.record.valid_events().find_map(|event| match &event.body {
            EventBody::Message { message, .. } if event.agent == "main" => Some(message),
            _ => None,
        })?;
        task_of(&self.question, first)
    }

    fn differs(&self, problem: String, remedy: String) -> PipelineError {
        PipelineError::Differs { dir: self.record.dir.display().to_string(), problem, remedy }
    }
}

/// The task of a first message: the question, what follows it, and the media.
fn task_of(question: &str, message: &Message) -> Option<Task> {
    let (first, media) = message.content.split_first()?;
    let attached = first.as_text()?.strip_prefix(question)?;
    let media: Vec<ContentBlock> = media.to_vec();
    Some(Task { attached_text: attached.to_owned(), attached_media: media, ..Task::question(question) })
}

/// Digests of the prompt templates in use, by name.
pub(crate) fn prompt_digests(resolved: &Resolved) -> BTreeMap<String, String> {
    use sha2::Digest as _;
    let mut digests = BTreeMap::new();
    for entry in resolved.conf.list("prompts") {
        if let Ok(Some(file)) = resolved.conf.read("prompts", &entry.name) {
            let digest = hex::encode(sha2::Sha256::digest(&file.bytes));
            digests.insert(entry.name, digest.get(..16).unwrap_or_default().to_owned());
        }
    }
    digests
}

/// Puts a value at a place, making maps on the way.
fn put(into: &mut Value, path: &str, value: Value) {
    let mut place = into;
    for name in path.split('/').skip(1) {
        if !place.is_object() {
            *place = Value::Object(serde_json::Map::new());
        }
        let Value::Object(fields) = place else { return };
        place = fields.entry(name.to_owned()).or_insert(Value::Null);
    }
    *place = value;
}

/// Puts today's values where the log has masks; the key of the first that is not to be had otherwise.
fn fill_secrets(logged: &mut Value, now: Option<&Value>, key: &str) -> Result<(), String> {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match logged {
        Value::String(text) if text.contains(MASK) => match now {
            Some(value) if !value.as_str().is_some_and(|text| text.contains(MASK)) => {
                *logged = value.clone();
                Ok(())
            }
            _ => Err(key.to_owned()),
        },
        Value::Object(fields) => fields.iter_mut().try_for_each(|(name, value)| {
            fill_secrets(value, now.and_then(|now| now.get(name)), &below(name))
        }),
        Value::Array(items) => items.iter_mut().enumerate().try_for_each(|(index, value)| {
            fill_secrets(value, now.and_then(|now| now.get(index)), &below(&index.to_string()))
        }),
        _ => Ok(()),
    }
}

/// The events of the calls to the model that failed at the end of a failed run, and of the end itself.
fn failed_calls(record: &RunRecord) -> Vec<u64> {
    let mut behind = Vec::new();
    let mut failed = std::collections::HashSet::new();
    let mut replies = std::collections::HashSet::new();
    for event in record.valid_events().collect::<Vec<_>>().into_iter().rev() {
        let goes = event.agent == "main"
            && match &event.body {
                EventBody::RunFinished(_)
                | EventBody::FinalAnswer { .. }
                | EventBody::PassFinished { .. }
                | EventBody::LlmRetry { .. }
                | EventBody::LlmWaited { .. } => true,
                EventBody::LlmFailed { call, .. } => {
                    failed.insert(*call);
                    true
                }
                EventBody::LlmResponse { call, message_id, .. } if failed.contains(call) => {
                    replies.insert(message_id.clone());
                    true
                }
                EventBody::LlmRequest { call, .. } => failed.contains(call),
                EventBody::Message { id, .. } => replies.contains(id),
                _ => false,
            };
        if !goes {
            break;
        }
        behind.push(event.seq);
    }
    behind.sort_unstable();
    behind
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_come_from_today() {
        for (logged, now, expected) in [
            (json!({"a": {"b": "***"}}), json!({"a": {"b": "key"}}), Ok(json!({"a": {"b": "key"}}))),
            (json!({"u": "http://***@h"}), json!({"u": "http://p@h"}), Ok(json!({"u": "http://p@h"}))),
            (json!({"l": ["x", "***"]}), json!({"l": ["y", "z"]}), Ok(json!({"l": ["x", "z"]}))),
            (json!({"a": {"b": "***"}}), json!({}), Err("a.b")),
            (json!({"a": "***"}), json!({"a": "***"}), Err("a")),
            (json!({"a": 1}), json!({"a": 2}), Ok(json!({"a": 1}))),
        ] {
            let mut filled = logged.clone();
            let result = fill_secrets(&mut filled, Some(&now), "");
            assert_eq!(result.map(|()| filled), expected.map_err(str::to_owned), "{logged}");
        }
    }

    #[test]
    fn values_are_put_where_they_belong() {
        let mut value = json!({"a": {"b": 1}});
        put(&mut value, "/a/c/d", json!(2));
        put(&mut value, "/a/b", json!(3));
        assert_eq!(value, json!({"a": {"b": 3, "c": {"d": 2}}}));
    }

    #[test]
    fn a_task_is_read_from_its_first_message() {
        let message = Message::user("Who?\n\n# Files\n\n## a.txt");
        let task = task_of("Who?", &message).unwrap();
        assert_eq!(
            (task.question.as_str(), task.attached_text.as_str()),
            ("Who?", "\n\n# Files\n\n## a.txt")
        );
        assert_eq!(task_of("What?", &message), None);
    }

    #[test]
    fn every_preset_survives_its_log() {
        for agent in crate::config::ConfTree::default().presets("agent") {
            let sources = crate::config::ConfigSources { agent: Some(agent.clone()), ..Default::default() };
            let Ok(resolved) = crate::config::resolve(&sources) else { continue };
            let mut logged = resolved.to_json();
            fill_secrets(&mut logged, serde_json::to_value(&resolved.config).ok().as_ref(), "").unwrap();
            let read: FathomConfig = serde_json::from_value(logged).unwrap();
            assert_eq!(read, resolved.config, "{agent}");
        }
    }
}
