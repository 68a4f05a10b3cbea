//! The tasks of a suite. Decides which fields of a record are what, and that nothing is left out in silence.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pipeline::config::FieldMapping;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::records::{self, BadRecord, Record, RecordsError, scalar_text};

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its id, unique in the dataset.
    pub task_id: String,
    /// The question.
    pub question: String,
    /// The right answer; none: not judged.
    pub ground_truth: Option<String>,
    /// Further right answers (`aliases`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Files that belong to the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
    /// Every other field.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Task {
    /// All right answers, the ground truth first; empty where the task is not judged.
    pub fn accepted(&self) -> impl Iterator<Item = &str> {
        let aliases = self.ground_truth.is_some().then_some(&self.aliases).into_iter().flatten();
        self.ground_truth.as_deref().into_iter().chain(aliases.map(String::as_str))
    }

    /// What figures are broken down by: the level, else the category or type of answer, where the task has one, at
    /// the top or inside `metadata`.
    #[must_use]
    pub fn group(&self) -> Option<(String, String)> {
        GROUPS.into_iter().find_map(|name| {
            let inside = || {
                ["metadata", "info"]
                    .iter()
                    .find_map(|outer| scalar_text(self.metadata.get(*outer)?.get(name)?))
            };
            let value = self.metadata.get(name).and_then(scalar_text);
            Some((name.to_lowercase(), value.or_else(inside)?))
        })
    }
}

/// What publishers call the fields that figures are broken down by; the first that a task has counts.
const GROUPS: [&str; 14] = [
    "Level",
    "level",
    "category",
    "Category",
    "difficulty",
    "difficulty_level",
    "kind",
    "problem_topic",
    "problem_category",
    "Topic",
    "topic",
    "domain",
    "reasoning_types",
    "answer_type",
];

/// The tasks of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The tasks in the order of the file.
    pub tasks: Vec<Task>,
    /// Records that were left out, where that was asked for.
    pub bad: Vec<BadRecord>,
    /// The hexadecimal SHA-256 of the file.
    pub sha256: String,
}

/// Why a dataset cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] RecordsError),
    /// Records that are no tasks.
    #[error("{} of the records cannot be used:\n{}", .0.len(), listed(.0))]
    Bad(Vec<BadRecord>),
    /// No task at all.
    #[error("{file} holds no tasks")]
    Empty {
        /// The file.
        file: String,
    },
}

/// The first few, a line each.
fn listed(bad: &[BadRecord]) -> String {
    const SHOWN: usize = 10;
    let mut lines: Vec<String> = bad.iter().take(SHOWN).map(|record| format!("  {record}")).collect();
    if bad.len() > SHOWN {
        lines.push(format!("  and {} more", bad.len() - SHOWN));
    }
    lines.join("\n")
}

/// How a dataset is read.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// What the fields are called.
    pub fields: &'a FieldMapping,
    /// Whether records that are no tasks are left out (and told) instead of being an error.
    pub skip_bad: bool,
}

/// Reads the tasks of a file.
///
/// # Errors
///
/// A file that cannot be read, records that are no tasks, an empty file.
pub fn load(file: &Path, reading: Reading<'_>) -> Result<Dataset, DatasetError> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).map_err(|source| RecordsError::Read { file: name.clone(), source })?;
    load_bytes(&name, bytes, file.parent(), reading)
}

/// Reads the tasks of a file's content; `folder` is where the files of its tasks are.
///
/// # Errors
///
/// As for [`load`].
pub fn load_bytes(
    name: &str,
    bytes: Vec<u8>,
    folder: Option<&Path>,
    reading: Reading<'_>,
) -> Result<Dataset, DatasetError> {
    let sha256 = hex::encode(Sha256::digest(&bytes));
    let (mut tasks, mut bad, mut ids) = (Vec::new(), Vec::new(), BTreeSet::new());
    for record in records::records_of(name, bytes)? {
        let task = record.and_then(|record| {
            let line = record.line;
            let bad = |problem| BadRecord { file: name.to_owned(), line, problem };
            let task = task(record, folder, reading.fields).map_err(bad)?;
            if ids.insert(task.task_id.clone()) {
                Ok(task)
            } else {
                Err(bad(format!("the {} {:?} stands twice", reading.fields.task_id_field, task.task_id)))
            }
        });
        match task {
            Ok(task) => tasks.push(task),
            Err(record) => bad.push(record),
        }
    }
    if !bad.is_empty() && !reading.skip_bad {
        return Err(DatasetError::Bad(bad));
    }
    if tasks.is_empty() {
        return Err(DatasetError::Empty { file: name.to_owned() });
    }
    Ok(Dataset { tasks, bad, sha256 })
}

fn task(record: Record, folder: Option<&Path>, names: &FieldMapping) -> Result<Task, String> {
    let mut fields = record.fields;
    let mut take = |name: &str| fields.shift_remove(name).unwrap_or(Value::Null);
    let id = take(&names.task_id_field);
    let question = take(&names.task_question_field);
    let truth = take(&names.ground_truth_field);
    let file_name = take(&names.file_name_field);
    let file_path = take(&names.file_path_field);
    let aliases = take("aliases");
    let missing = |name: &str, value: &Value| match value {
        Value::Null => format!("`{name}` is missing"),
        Value::String(_) => format!("`{name}` is empty"),
        _ => format!("`{name}` is neither text nor number"),
    };
    let ground_truth = match &truth {
        Value::Null => None,
        Value::String(text) if text.trim().is_empty() => None,
        value => Some(scalar_text(value).unwrap_or_else(|| value.to_string())),
    };
    let aliases = match aliases {
        Value::Null => Vec::new(),
        Value::Array(list) => list.iter().filter_map(scalar_text).collect(),
        other => scalar_text(&other).into_iter().collect(),
    };
    Ok(Task {
        task_id: scalar_text(&id).ok_or_else(|| missing(&names.task_id_field, &id))?,
        question: scalar_text(&question).ok_or_else(|| missing(&names.task_question_field, &question))?,
        ground_truth,
        aliases,
        files: files(&file_path, &file_name, folder),
        metadata: fields,
    })
}

/// The task's file: its path where that leads somewhere, else its name in the folder of the dataset.
fn files(path: &Value, name: &Value, folder: Option<&Path>) -> Vec<PathBuf> {
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let named: Vec<PathBuf> =
        [path, name].into_iter().filter_map(scalar_text).map(|path| folder.join(path)).collect();
    // A path that leads nowhere is kept, so that whoever opens it says which file is missing.
    named.iter().find(|path| path.exists()).or_else(|| named.first()).cloned().into_iter().collect()
}
