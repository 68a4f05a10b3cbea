//! Reads a run's log back: every event whole, or an error that says where the log is damaged.
//!
//! Decides what is tolerated: a last line that was cut off. Nothing is changed on the disk.

use std::io;
use std::path::{Path, PathBuf};

use core_protocol::event::{EVENT_SCHEMA_VERSION, Event, EventBody, RunSummary};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::stored::{self, Broken, Sources};
use super::{BLOBS_NAME, LOG_NAME};

/// How much of a bad line an error shows.
const EXCERPT_CHARACTERS: usize = 80;

/// A run as its log tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The run's directory.
    pub dir: PathBuf,
    /// The run.
    pub run_id: String,
    /// Its events in order, whole; the number of each is its place.
    pub events: Vec<Event>,
    /// Bytes of the log that hold them.
    pub(crate) valid_bytes: u64,
    /// Whether the last of them lacks its line break.
    pub(crate) unterminated: bool,
    /// Bytes after them: a line that was cut off.
    pub torn_bytes: u64,
}

/// A log that cannot be read or used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no log.
    #[error("{dir} is not the directory of a run: it has no {LOG_NAME}")]
    NotARun {
        /// The directory.
        dir: String,
    },
    /// The log cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The log.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// Nothing was logged.
    #[error("{path} holds no event: the run was interrupted before it had begun")]
    Empty {
        /// The log.
        path: String,
    },
    /// A line before the last is no event.
    #[error("{path}, line {line}: {problem}")]
    BadLine {
        /// The log.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A text that was too large for the log is not where it was put.
    #[error("{path}, line {line} refers to {blob}, which {problem}")]
    Blob {
        /// The log.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The file.
        blob: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The log was written in another form.
    #[error(
        "{path} was written by version {version} in form {found} of the event log; this version reads form {EVENT_SCHEMA_VERSION}"
    )]
    OtherForm {
        /// The log.
        path: String,
        /// The program's version that wrote it.
        version: String,
        /// The form.
        found: u64,
    },
}

impl LogError {
    /// A stable word to branch on.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NotARun { .. } => "not_a_run",
            Self::Read { .. } => "io",
            Self::Empty { .. } => "empty_log",
            Self::BadLine { .. } | Self::Blob { .. } => "damaged_log",
            Self::OtherForm { .. } => "other_log_form",
        }
    }

    /// Never: a log does not mend itself.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        false
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotARun { .. } => {
                "Give the directory that `ask` named at its end, such as runs/20261121-101500-abc123."
                    .to_owned()
            }
            Self::Read { .. } => "Check the permissions of the file and of the folders above it.".to_owned(),
            Self::Empty { .. } => "Nothing is lost: ask the question again.".to_owned(),
            Self::BadLine { line, .. } => format!(
                "Nothing was changed. Put the file back from a copy; or, to go on from before the damage, copy the \
                 run's directory and keep only the first {} lines of the log in the copy.",
                line - 1
            ),
            Self::Blob { line, .. } => format!(
                "Nothing was changed. Put the file back from a copy; or, to go on from before it, copy the run's \
                 directory and keep only the first {} lines of the log in the copy.",
                line - 1
            ),
            Self::OtherForm { version, .. } => format!("Use version {version} of the program for this run."),
        }
    }
}

impl RunRecord {
    /// Reads the log in a run's directory.
    ///
    /// # Errors
    ///
    /// A directory without a log, a log without events, in another form, or damaged before its last line.
    pub fn read(dir: &Path) -> Result<Self, LogError> {
        let path = dir.join(LOG_NAME);
        let shown = path.display().to_string();
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(LogError::NotARun { dir: dir.display().to_string() });
            }
            Err(source) => return Err(LogError::Read { path: shown, source }),
        };
        let mut record = Self {
            dir: dir.to_owned(),
            run_id: String::new(),
            events: Vec::new(),
            valid_bytes: 0,
            unterminated: false,
            torn_bytes: 0,
        };
        let blobs = dir.join(BLOBS_NAME);
        for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let whole = line.ends_with(b"\n");
            let sources = Read { blobs: &blobs, events: &record.events };
            match event_of(line, &record, &sources) {
                Ok(event) => {
                    if index == 0 {
                        record.run_id.clone_from(&event.run_id);
                    }
                    record.events.push(event);
                    record.valid_bytes += line.len() as u64;
                    record.unterminated = !whole;
                }
                Err(Problem::Line(_)) if !whole => record.torn_bytes = line.len() as u64,
                Err(problem) => return Err(problem.at(&shown, index + 1)),
            }
        }
        if record.events.is_empty() {
            return Err(LogError::Empty { path: shown });
        }
        Ok(record)
    }

    /// The summary that ended the run; none for a run that was interrupted or is under way.
    #[must_use]
    pub fn summary(&self) -> Option<&RunSummary> {
        self.events.iter().rev().find_map(|event| match &event.body {
            EventBody::RunFinished(summary) => Some(Some(&**summary)),
            EventBody::RunResumed { .. } => Some(None),
            _ => None,
        })?
    }

    /// The events that count: without what an interruption left behind and a later part of the run declared void.
    pub fn valid_events(&self) -> impl Iterator<Item = &Event> {
        let void: std::collections::HashSet<u64> = self
            .events
            .iter()
            .filter_map(|event| match &event.body {
                EventBody::RunResumed { void, .. } => Some(void.iter().copied()),
                _ => None,
            })
            .flatten()
            .collect();
        self.events.iter().filter(move |event| !void.contains(&event.seq))
    }
}

/// What is wrong with a line.
enum Problem {
    Line(String),
    Form { version: String, found: u64 },
    Blob { blob: String, problem: String },
}

impl Problem {
    fn at(self, path: &str, line: usize) -> LogError {
        let path = path.to_owned();
        match self {
            Self::Line(problem) => LogError::BadLine { path, line, problem },
            Self::Form { version, found } => LogError::OtherForm { path, version, found },
            Self::Blob { blob, problem } => LogError::Blob { path, line, blob, problem },
        }
    }
}

fn event_of(line: &[u8], record: &RunRecord, sources: &Read<'_>) -> Result<Event, Problem> {
    let text = std::str::from_utf8(line).map_err(|_| Problem::Line("it is not UTF-8 text".to_owned()))?;
    let mut value: Value = serde_json::from_str(text).map_err(|error| {
        let shown: String = text.trim_end().chars().take(EXCERPT_CHARACTERS).collect();
        Problem::Line(format!("it is not JSON ({error}); it begins: {shown}"))
    })?;
    if record.events.is_empty() {
        check_form(&value)?;
    }
    stored::restore(&mut value, sources).map_err(|broken| match broken {
        Broken::MissingBlob(blob, problem) => Problem::Blob { blob, problem },
        Broken::DamagedBlob(blob) => {
            Problem::Blob { blob, problem: "does not hold what its name says".to_owned() }
        }
        Broken::Reference(problem) => Problem::Line(problem),
    })?;
    let event: Event =
        serde_json::from_value(value).map_err(|error| Problem::Line(format!("it is no event: {error}")))?;
    let expected = record.events.len() as u64;
    if event.seq != expected {
        return Err(Problem::Line(format!(
            "event {expected} was to follow and this is event {}: lines are missing or doubled",
            event.seq
        )));
    }
    if !record.run_id.is_empty() && event.run_id != record.run_id {
        return Err(Problem::Line(format!(
            "it belongs to the run {}, not to {}",
            event.run_id, record.run_id
        )));
    }
    Ok(event)
}

/// Looks at the form of the first event before anything else of it is read.
fn check_form(value: &Value) -> Result<(), Problem> {
    if value["type"] != "run_started" {
        return Err(Problem::Line("the first event is not run_started".to_owned()));
    }
    let versions = &value["versions"];
    match versions["schema"].as_u64() {
        Some(found) if found == u64::from(EVENT_SCHEMA_VERSION) => Ok(()),
        Some(found) => {
            Err(Problem::Form { version: versions["fathom"].as_str().unwrap_or("?").to_owned(), found })
        }
        None => Err(Problem::Line("it does not say which form of the event log this is".to_owned())),
    }
}

/// Blobs of the directory and results of the events read so far.
struct Read<'a> {
    blobs: &'a Path,
    events: &'a [Event],
}

impl Sources for Read<'_> {
    fn blob(&self, name: &str, bytes: u64) -> Result<String, Broken> {
        let path = self.blobs.join(name);
        let shown = || path.display().to_string();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Broken::Reference(format!("`{name}` is no name of a blob")));
        }
        let text = std::fs::read(&path).map_err(|error| {
            let problem = if error.kind() == io::ErrorKind::NotFound {
                "is missing".to_owned()
            } else {
                format!("cannot be read: {error}")
            };
            Broken::MissingBlob(shown(), problem)
        })?;
        if text.len() as u64 != bytes || hex::encode(Sha256::digest(&text)) != name {
            return Err(Broken::DamagedBlob(shown()));
        }
        String::from_utf8(text).map_err(|_| Broken::DamagedBlob(shown()))
    }

    fn result(&self, seq: u64, block: usize) -> Option<&str> {
        match &self.events.get(usize::try_from(seq).ok()?)?.body {
            EventBody::ToolCallFinished { result, .. } => result.content.get(block)?.as_text(),
            _ => None,
        }
    }
}
