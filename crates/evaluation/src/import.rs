//! Run directories of the reference as runs of ours, so that old scores can be reported and compared. Decides which of
//! a task's logs counts (the last retry of its last attempt) and what its fields mean.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use core_protocol::event::{ErrorReport, UsageTotals};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::judge::Identity;
use crate::run::{DatasetFacts, HEADER_SCHEMA, Header, Invocation, Store, StoreError};
use crate::sample::{Judged, Row, SampleId, SampleState, Transcript};
use crate::verdict::{Judgement, Verdict};

/// What was taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Samples.
    pub samples: usize,
    /// Their tasks.
    pub tasks: usize,
    /// Runs over the suite.
    pub epochs: u32,
    /// Logs that could not be read, and why.
    pub unreadable: Vec<(String, String)>,
}

/// Why nothing is taken over.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The directory is none of the reference's.
    #[error(
        "{folder} has no task logs: looked for run_1/task_ID_attempt-1_format-retry-0_TIME.json and the like; give \
         the folder that has run_1, run_2… in it"
    )]
    NoLogs {
        /// The directory.
        folder: String,
    },
    /// The new folder.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The fields of a task log that are taken over.
#[derive(Debug, Deserialize)]
struct TaskLog {
    #[serde(default, deserialize_with = "null_or")]
    status: String,
    #[serde(default, deserialize_with = "null_or")]
    task_id: String,
    #[serde(default)]
    ground_truth: Value,
    #[serde(default)]
    final_boxed_answer: Option<String>,
    #[serde(default)]
    final_judge_result: Option<String>,
    #[serde(default)]
    judge_type: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    end_time: Option<String>,
    #[serde(default, deserialize_with = "null_or")]
    current_main_turn_id: u32,
    #[serde(default, deserialize_with = "null_or")]
    env_info: Map<String, Value>,
}

/// A value, or its default where the log says null.
fn null_or<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// A log file by what its name says.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    task: String,
    attempt: u32,
    retry: u32,
    time: String,
}

/// Makes a run of ours from a run directory of the reference.
///
/// # Errors
///
/// A directory without task logs, a new folder that is in use.
pub fn import(from: &Path, suite: Option<&str>, out: &Path) -> Result<Imported, ImportError> {
    let runs = run_folders(from);
    let mut unreadable = Vec::new();
    let mut rows = Vec::new();
    let mut digest = Sha256::new();
    let mut models = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (index, run) in runs.iter().enumerate() {
        let epoch = u32::try_from(index + 1).unwrap_or(u32::MAX);
        for file in last_logs(run) {
            let read = std::fs::read(&file).map_err(|error| error.to_string());
            let log = read.and_then(|bytes| {
                digest.update(&bytes);
                serde_json::from_slice::<TaskLog>(&bytes).map_err(|error| error.to_string())
            });
            match log {
                Ok(log) if log.task_id.is_empty() => {
                    unreadable.push((file.display().to_string(), "it has no task_id".to_owned()));
                }
                Ok(log) if !seen.insert((log.task_id.clone(), epoch)) => {
                    unreadable
                        .push((file.display().to_string(), format!("task {} has another log", log.task_id)));
                }
                Ok(log) => {
                    models.extend(model_of(&log));
                    rows.push(row(log, epoch));
                }
                Err(problem) => unreadable.push((file.display().to_string(), problem)),
            }
        }
    }
    if rows.is_empty() {
        return Err(ImportError::NoLogs { folder: from.display().to_string() });
    }
    let task_ids: BTreeSet<String> = rows.iter().map(|row| row.sample.task_id.clone()).collect();
    let epochs = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    let above = from.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let judges: BTreeSet<&str> = rows.iter().filter_map(judge_name).collect();
    let header = Header {
        schema: HEADER_SCHEMA,
        suite: suite.map(str::to_owned).or(above).unwrap_or_else(|| "imported".to_owned()),
        dataset: DatasetFacts {
            file: from.display().to_string(),
            sha256: crate::hexadecimal(&digest.finalize()),
            tasks: task_ids.len(),
            bad_records: unreadable.len(),
        },
        task_ids: task_ids.iter().cloned().collect(),
        epochs,
        seed: 0,
        shuffle: false,
        stop_on_pass: None,
        provider: "imported".to_owned(),
        model: models.into_iter().collect::<Vec<_>>().join(", "),
        config: json!({}),
        judge: Identity { judge: judges.into_iter().collect::<Vec<_>>().join(", "), ..Identity::default() },
        prices: Map::new(),
        git: None,
        invocation: Invocation::default(),
        versions: BTreeMap::new(),
        created: crate::now(),
    };
    let imported = Imported { samples: rows.len(), tasks: task_ids.len(), epochs, unreadable };
    Store::open(out, header)?.rewrite(rows)?;
    Ok(imported)
}

/// `run_1`, `run_2`… in the order of their numbers; the folder itself where it holds logs.
fn run_folders(from: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(from).into_iter().flatten().flatten();
    let mut runs: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("run_")?.parse().ok()?;
            entry.path().is_dir().then(|| (number, entry.path()))
        })
        .collect();
    runs.sort();
    if runs.is_empty() { vec![from.to_owned()] } else { runs.into_iter().map(|(_, path)| path).collect() }
}

/// For each task the log of the last retry of its last attempt.
fn last_logs(run: &Path) -> Vec<PathBuf> {
    let mut logs: BTreeMap<String, (Named, PathBuf)> = BTreeMap::new();
    for entry in std::fs::read_dir(run).into_iter().flatten().flatten() {
        let Some(named) = entry.file_name().to_str().and_then(named) else { continue };
        let is_later = logs.get(&named.task).is_none_or(|(known, _)| *known < named);
        if is_later {
            logs.insert(named.task.clone(), (named, entry.path()));
        }
    }
    logs.into_values().map(|(_, path)| path).collect()
}

/// `task_ID_attempt-K_format-retry-R_TIME.json`; the retry may be missing in old logs.
fn named(file: &str) -> Option<Named> {
    let name = file.strip_prefix("task_")?.strip_suffix(".json")?;
    let (task, rest) = name.rsplit_once("_attempt-").or_else(|| name.rsplit_once("_attempt_"))?;
    let (attempt, rest) = rest.split_once('_').unwrap_or((rest, ""));
    let (retry, time) = match rest.strip_prefix("format-retry-") {
        Some(rest) => rest.split_once('_').unwrap_or((rest, "")),
        None => ("0", rest),
    };
    Some(Named {
        task: task.to_owned(),
        attempt: attempt.parse().ok()?,
        retry: retry.parse().ok()?,
        time: time.to_owned(),
    })
}

fn model_of(log: &TaskLog) -> Option<String> {
    ["llm_model_name", "model_name", "llm_model"]
        .iter()
        .find_map(|name| log.env_info.get(*name)?.as_str())
        .map(str::to_owned)
}

fn judge_name(row: &Row) -> Option<&str> {
    match &row.judgement {
        Judged::ByJudge { transcript, .. } => Some(&transcript.judge),
        _ => None,
    }
}

fn row(log: TaskLog, epoch: u32) -> Row {
    let answer = log.final_boxed_answer.clone().filter(|answer| !answer.trim().is_empty());
    let is_done = matches!(log.status.as_str(), "success" | "completed");
    let problem = log.error.clone().filter(|error| !error.is_empty());
    let state = match (&answer, is_done) {
        (Some(_), _) => SampleState::Answered,
        (None, true) => SampleState::NoAnswer,
        (None, false) => SampleState::Error {
            kind: if log.status.is_empty() { "unknown".to_owned() } else { log.status.clone() },
        },
    };
    let ground_truth = crate::records::scalar_text(&log.ground_truth);
    let judgement = judgement(&log, ground_truth.is_some(), answer.is_some());
    let mut row = Row {
        sample: SampleId { task_id: log.task_id, epoch },
        state,
        correct: None,
        answer,
        ground_truth,
        group: None,
        judgement: Judged::NotScored,
        stop_reason: None,
        capped: false,
        passes: 1,
        turns: log.current_main_turn_id,
        rollbacks: 0,
        tool_calls: 0,
        usage: UsageTotals::default(),
        cost_usd: None,
        wall_ms: 0,
        working_ms: 0,
        run_id: None,
        run_dir: None,
        error: problem.map(|message| ErrorReport { kind: "imported".to_owned(), message, hint: None }),
        ended: log.end_time.unwrap_or_default(),
    };
    row.judge(judgement);
    row
}

/// The reference stores a judge that failed as a wrong answer under other names; here it is unjudged.
fn judgement(log: &TaskLog, is_scored: bool, is_answered: bool) -> Judged {
    let said = log.final_judge_result.clone().unwrap_or_default();
    let verdict = match said.trim().to_uppercase().as_str() {
        "CORRECT" | "PASS_AT_K_SUCCESS" => Some(Verdict::Correct),
        "INCORRECT" => Some(Verdict::Incorrect),
        "NOT_ATTEMPTED" if is_answered => Some(Verdict::NotAttempted),
        _ => None,
    };
    match verdict {
        _ if !is_scored => Judged::NotScored,
        _ if !is_answered => Judged::NoAnswer,
        Some(verdict) => Judged::ByJudge {
            judgement: Judgement::from(verdict),
            transcript: Transcript {
                judge: log.judge_type.clone().unwrap_or_default(),
                provider: String::new(),
                model: String::new(),
                prompt_sha256: String::new(),
                replies: vec![said],
                usage: UsageTotals::default(),
                cost_usd: None,
            },
        },
        None => Judged::Unjudged { reason: format!("the log says {said:?}"), transcript: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_logs() {
        let name = |task: &str, attempt, retry, time: &str| {
            Some(Named { task: task.into(), attempt, retry, time: time.into() })
        };
        for (file, expected) in [
            (
                "task_a_b_attempt-2_format-retry-1_2026-01-02-03-04-05.json",
                name("a_b", 2, 1, "2026-01-02-03-04-05"),
            ),
            ("task_x_attempt-1_2026.json", name("x", 1, 0, "2026")),
            ("task_x_attempt_3.json", name("x", 3, 0, "")),
            ("task_x.json", None),
            ("summary.json", None),
        ] {
            assert_eq!(named(file), expected, "{file}");
        }
    }
}
