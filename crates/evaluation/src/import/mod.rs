//! Run directories of the reference as runs of ours, so that old runs can be reported, compared and judged again. Decides
//! which of a task's logs counts, and what the run is made of that they are put into. Attempts at a task that end with
//! the first right one are no epochs: such a run is reported as right in any of K.

mod effort;
mod find;
mod log;
mod row;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

pub use find::{Source, find};

use self::find::{LogName, logs_in};
use self::log::{TaskLog, digits};
use self::row::{Around, Attempt};
use crate::dataset::Task;
use crate::judge::Identity;
use crate::run::{DatasetFacts, HEADER_SCHEMA, Header, Invocation, Store, StoreError};
use crate::sample::{Judged, Row, SampleId};

/// The provider of a run that was taken over.
pub const IMPORTED: &str = "imported";

/// The questions and right answers of the logs, where no dataset has them: in the folder of the run, so that its answers
/// can be judged again.
pub const TASKS: &str = "tasks.jsonl";

/// The suite of a run, as far as it is known.
#[derive(Debug, Clone, Default)]
pub struct SuiteOfRun {
    /// Its name.
    pub name: String,
    /// The preset of `conf/benchmark/` that says how its answers are judged; none: as those of a suite that nobody
    /// knows.
    pub preset: Option<String>,
    /// The configuration folder, where another one than the usual was given.
    pub conf_dir: Option<PathBuf>,
    /// Its tasks, where they are on this machine.
    pub dataset: Option<DatasetOfRun>,
}

/// The tasks of a suite.
#[derive(Debug, Clone)]
pub struct DatasetOfRun {
    /// The file, where one was named; none: where the suite has its own.
    pub file: Option<PathBuf>,
    /// What is known of it.
    pub facts: DatasetFacts,
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// What was taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Samples.
    pub samples: usize,
    /// Their tasks.
    pub tasks: usize,
    /// Runs over the suite, or attempts at a task where those end with the first right one.
    pub epochs: u32,
    /// Whether those are attempts.
    pub of_k: bool,
    /// Samples without a verdict.
    pub unjudged: usize,
    /// Samples that had not ended.
    pub unfinished: usize,
    /// Tasks whose question stands nowhere: their answers cannot be judged again.
    pub without_question: usize,
    /// Tasks that are not in the dataset of the suite on this machine, which is not used then.
    pub not_in_dataset: usize,
    /// Logs that were left out, and why.
    pub unreadable: Vec<(String, String)>,
}

/// Why nothing is taken over.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The directory is none of the reference's.
    #[error(
        "{folder} has no task logs: looked for task_ID_attempt-1_format-retry-0_TIME.json and the like in it, in \
         run_1, run_2… and in folders of models and suites; give a folder that has them"
    )]
    NoLogs {
        /// The directory.
        folder: String,
    },
    /// No log says what became of its task.
    #[error("{folder} has {logs} task logs, and none of them is that of a task that ended: {first}")]
    NothingEnded {
        /// The directory.
        folder: String,
        /// Its logs.
        logs: usize,
        /// What is wrong with the first of them.
        first: String,
    },
    /// There is a run already.
    #[error(
        "{folder} holds a benchmark run already, and an import never adds to one; choose another folder with --out, or \
         delete that one first"
    )]
    Exists {
        /// The folder.
        folder: String,
    },
    /// The dataset is another one.
    #[error(
        "{} of {of} tasks of the logs are not in {file}, such as {}; give the dataset that was run, or none",
        .missing.len(),
        .missing.first().map_or("", String::as_str)
    )]
    OtherDataset {
        /// The dataset.
        file: String,
        /// Tasks that it does not have.
        missing: Vec<String>,
        /// Tasks of the logs.
        of: usize,
    },
    /// Something cannot be written.
    #[error("{file} cannot be written: {source}")]
    Write {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The new folder.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was read of a source.
#[derive(Default)]
struct Read {
    attempts: Vec<Attempt>,
    unreadable: Vec<(String, String)>,
    /// Attempts whose last log cannot be read.
    lost: usize,
}

/// Makes a run of ours in `out` from runs of the reference.
///
/// # Errors
///
/// Logs of which none says how its task ended, a dataset of other tasks, a folder that is in use. Nothing is written
/// then.
pub fn import(source: &Source, suite: &SuiteOfRun, out: &Path) -> Result<Imported, ImportError> {
    if out.join("header.json").exists() {
        return Err(ImportError::Exists { folder: out.display().to_string() });
    }
    let read = read(source);
    let task_ids: BTreeSet<&str> =
        read.attempts.iter().map(|attempt| attempt.sample.task_id.as_str()).collect();
    let (dataset, not_in_dataset) = dataset_of(suite, &task_ids)?;
    let known: BTreeMap<&str, &Task> =
        dataset.iter().flat_map(|dataset| &dataset.tasks).map(|task| (task.task_id.as_str(), task)).collect();
    let is_judged =
        read.attempts.iter().flat_map(|attempt| &attempt.tries).any(|log| row::verdict(log).is_some());
    let mut rows = Vec::new();
    let mut unfinished = read.lost;
    for attempt in &read.attempts {
        let task = known.get(attempt.sample.task_id.as_str());
        let around = Around {
            is_judged,
            truth: task.and_then(|task| task.ground_truth.clone()),
            group: task.and_then(|task| task.group()),
        };
        match row::row(attempt, around) {
            Some(row) => rows.push(row),
            None => unfinished += 1,
        }
    }
    if rows.is_empty() {
        let first = read.unreadable.first().map(|(file, problem)| format!("{file}: {problem}"));
        return Err(ImportError::NothingEnded {
            folder: source.folder.display().to_string(),
            logs: source.runs.iter().map(|(_, run)| logs_in(run).len()).sum(),
            first: first.unwrap_or_else(|| "they were all still running".to_owned()),
        });
    }
    let kept = if dataset.is_some() { Kept::default() } else { Kept::of(&read.attempts) };
    let header = header(source, suite, dataset, (&read, &rows), &kept, out);
    let imported = Imported {
        samples: rows.len(),
        tasks: header.task_ids.len(),
        epochs: header.epochs,
        of_k: header.stop_on_pass.is_some(),
        unjudged: rows.iter().filter(|row| row.is_unjudged()).count(),
        unfinished,
        without_question: kept.without_question,
        not_in_dataset,
        unreadable: read.unreadable,
    };
    let mut store = Store::open(out, header)?;
    if !kept.text.is_empty() {
        let file = out.join(TASKS);
        std::fs::write(&file, &kept.text)
            .map_err(|source| ImportError::Write { file: file.display().to_string(), source })?;
    }
    store.rewrite(rows)?;
    Ok(imported)
}

/// The dataset, if all tasks are in it. One that was named must be the right one.
fn dataset_of<'a>(
    suite: &'a SuiteOfRun,
    task_ids: &BTreeSet<&str>,
) -> Result<(Option<&'a DatasetOfRun>, usize), ImportError> {
    let Some(dataset) = &suite.dataset else { return Ok((None, 0)) };
    let known: BTreeSet<&str> = dataset.tasks.iter().map(|task| task.task_id.as_str()).collect();
    let missing: Vec<String> = task_ids.difference(&known).map(|id| (*id).to_owned()).collect();
    if missing.is_empty() {
        return Ok((Some(dataset), 0));
    }
    match &dataset.file {
        Some(file) => {
            Err(ImportError::OtherDataset { file: file.display().to_string(), missing, of: task_ids.len() })
        }
        None => Ok((None, missing.len())),
    }
}

/// Tasks as the logs have them.
#[derive(Default)]
struct Kept {
    text: String,
    without_truth: usize,
    without_question: usize,
}

impl Kept {
    fn of(attempts: &[Attempt]) -> Self {
        let mut tasks: BTreeMap<&str, (Option<String>, &Value)> = BTreeMap::new();
        for attempt in attempts {
            for log in &attempt.tries {
                let (question, truth) = tasks.entry(&attempt.sample.task_id).or_insert((None, &Value::Null));
                *question = question.take().or_else(|| log.question());
                if log.truth().is_some() && truth.is_null() {
                    *truth = log.get("ground_truth");
                }
            }
        }
        let mut kept = Self::default();
        for (task_id, (question, truth)) in tasks {
            kept.without_truth += usize::from(truth.is_null());
            let Some(question) = question else {
                kept.without_question += 1;
                continue;
            };
            let task = json!({ "task_id": task_id, "task_question": question, "ground_truth": truth });
            kept.text.push_str(&format!("{task}\n"));
        }
        kept
    }
}

fn header(
    source: &Source,
    suite: &SuiteOfRun,
    dataset: Option<&DatasetOfRun>,
    (read, rows): (&Read, &[Row]),
    kept: &Kept,
    out: &Path,
) -> Header {
    let absolute = |file: &Path| std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let ids: BTreeSet<&str> = read.attempts.iter().map(|attempt| attempt.sample.task_id.as_str()).collect();
    let task_ids: Vec<String> = match dataset {
        Some(dataset) => {
            let ordered = dataset.tasks.iter().map(|task| &task.task_id);
            ordered.filter(|id| ids.contains(id.as_str())).cloned().collect()
        }
        None => ids.iter().map(|id| (*id).to_owned()).collect(),
    };
    let facts = dataset.map_or_else(
        || DatasetFacts {
            file: source.folder.display().to_string(),
            sha256: hex::encode(Sha256::digest(kept.text.as_bytes())),
            tasks: ids.len(),
            bad_records: 0,
            without_files: 0,
            without_truth: kept.without_truth,
        },
        |dataset| dataset.facts.clone(),
    );
    let models: BTreeSet<String> =
        read.attempts.iter().flat_map(|attempt| &attempt.tries).filter_map(TaskLog::model).collect();
    let folder = source.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let model = if models.is_empty() {
        folder.unwrap_or_default()
    } else {
        models.into_iter().collect::<Vec<_>>().join(", ")
    };
    let judges: BTreeSet<&str> = rows.iter().filter_map(judge_name).filter(|name| !name.is_empty()).collect();
    let of_k = source.attempts > 1;
    let runs = u32::try_from(source.runs.len()).unwrap_or(u32::MAX);
    // What is needed to judge the answers again.
    let invocation = Invocation {
        suite: suite.preset.clone().unwrap_or_else(|| "default".to_owned()),
        file: match dataset {
            Some(dataset) => dataset.file.as_deref().map(absolute),
            None => (!kept.text.is_empty()).then(|| absolute(&out.join(TASKS))),
        },
        sets: match suite.preset {
            Some(_) => Vec::new(),
            None => vec![format!("benchmark.name={}", json!(suite.name))],
        },
        conf_dir: suite.conf_dir.as_deref().map(absolute),
        ..Invocation::default()
    };
    Header {
        schema: HEADER_SCHEMA,
        suite: suite.name.clone(),
        dataset: facts,
        task_ids,
        epochs: if of_k { source.attempts } else { runs },
        seed: 0,
        shuffle: false,
        stop_on_pass: of_k.then_some(source.attempts),
        provider: IMPORTED.to_owned(),
        model,
        config: json!({}),
        servers: None,
        judge: Identity { judge: judges.into_iter().collect::<Vec<_>>().join(", "), ..Identity::default() },
        prices: Map::new(),
        git: None,
        invocation,
        versions: BTreeMap::new(),
        created: crate::now(),
    }
}

fn judge_name(row: &Row) -> Option<&str> {
    match &row.judgement {
        Judged::ByJudge { transcript, .. } => Some(&transcript.judge),
        _ => None,
    }
}

/// A log that was read, or why it was not.
struct Tried {
    name: LogName,
    file: PathBuf,
    log: Result<TaskLog, String>,
}

impl Tried {
    fn read((name, file): (LogName, PathBuf)) -> Self {
        let log = std::fs::read(&file)
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
        Self { name, file, log }
    }

    /// Logs in the order in which they were begun: a task that was begun again has its retries counted from 0 again.
    /// One whose time nobody knows counts as the last, so that no older one is taken in its place.
    fn order(&self) -> (String, u32) {
        let named = digits(&self.name.time);
        let time = match &self.log {
            _ if !named.is_empty() => named,
            Ok(log) => log.began(),
            Err(_) => "9".to_owned(),
        };
        (time, self.name.retry)
    }
}

fn read(source: &Source) -> Read {
    let mut read = Read::default();
    let mut seen = BTreeSet::new();
    for (number, run) in &source.runs {
        let mut attempts: BTreeMap<(String, u32), Vec<(LogName, PathBuf)>> = BTreeMap::new();
        for (name, file) in logs_in(run) {
            attempts.entry((name.task.clone(), name.attempt)).or_default().push((name, file));
        }
        for ((named, attempt), logs) in attempts {
            let epoch = if source.attempts > 1 { attempt } else { *number };
            let mut tries: Vec<Tried> = logs.into_iter().map(Tried::read).collect();
            tries.sort_by_cached_key(Tried::order);
            for tried in &tries {
                if let Err(problem) = &tried.log {
                    read.unreadable.push((tried.file.display().to_string(), problem.clone()));
                }
            }
            let Some(last) = tries.pop() else { continue };
            let Ok(log) = last.log else {
                read.lost += 1;
                continue;
            };
            let told = log.text(&["task_id"]).map(|id| bare_id(&id).to_owned());
            let sample = SampleId { task_id: told.unwrap_or(named), epoch };
            if !seen.insert(sample.clone()) {
                let problem = format!("task {} has another log", sample.task_id);
                read.unreadable.push((last.file.display().to_string(), problem));
                continue;
            }
            let (mut tries, missing) = tries_before(tries, last.name.retry);
            tries.push(log);
            read.attempts.push(Attempt { sample, tries, missing });
        }
    }
    read
}

/// The tries that a last one with this number follows: of each lower number the latest log. How many of them there
/// should be and are not.
fn tries_before(tries: Vec<Tried>, last: u32) -> (Vec<TaskLog>, usize) {
    let mut latest: BTreeMap<u32, Result<TaskLog, String>> = BTreeMap::new();
    for tried in tries.into_iter().filter(|tried| tried.name.retry < last) {
        latest.insert(tried.name.retry, tried.log);
    }
    let before: Vec<TaskLog> = latest.into_values().filter_map(Result::ok).collect();
    let missing = usize::try_from(last).unwrap_or(usize::MAX).saturating_sub(before.len());
    (before, missing)
}

/// The id of the task, which the logs of one of the reference's programs have with the attempt and the retry behind it.
fn bare_id(id: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match id.rsplit_once("_attempt-").or_else(|| id.rsplit_once("_attempt_")) {
        Some((task, rest)) => {
            let (attempt, retry) = rest.split_once("_format-retry-").unwrap_or((rest, "0"));
            if is_number(attempt) && is_number(retry) && !task.is_empty() { task } else { id }
        }
        None => id,
    }
}
