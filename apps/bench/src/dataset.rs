//! Reads a file of questions. A line that cannot be read is an error with its number, never left out in silence.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) task_id: String,
    pub(crate) task_question: String,
    /// The right answer; none is not scored.
    pub(crate) ground_truth: Option<String>,
    /// Further right answers.
    pub(crate) aliases: Vec<String>,
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Line {
    task_id: Value,
    task_question: String,
    #[serde(default)]
    ground_truth: Value,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    file_path: Option<String>,
}

impl Task {
    /// All right answers; none where the task is not scored.
    pub(crate) fn accepted(&self) -> Option<Vec<&str>> {
        let truth = self.ground_truth.as_deref()?;
        Some(std::iter::once(truth).chain(self.aliases.iter().map(String::as_str)).collect())
    }
}

pub(crate) fn load(file: &Path) -> anyhow::Result<Vec<Task>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut ids = BTreeSet::new();
    let mut tasks = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("{}:{}", file.display(), index + 1);
        let line: Line = serde_json::from_str(line)
            .with_context(|| format!("{}: not a task with task_id and task_question", place()))?;
        let task_id =
            scalar(&line.task_id).with_context(|| format!("{}: task_id is no text or number", place()))?;
        if line.task_question.trim().is_empty() {
            bail!("{}: the question is empty", place());
        }
        if !ids.insert(task_id.clone()) {
            bail!("{}: the task_id {task_id} stands twice", place());
        }
        tasks.push(Task {
            task_id,
            task_question: line.task_question,
            ground_truth: scalar(&line.ground_truth),
            aliases: line.aliases,
            files: line
                .file_path
                .filter(|path| !path.is_empty())
                .map(|path| folder.join(path))
                .into_iter()
                .collect(),
        });
    }
    if tasks.is_empty() {
        bail!("{} holds no tasks", file.display());
    }
    Ok(tasks)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> anyhow::Result<Vec<Task>> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tasks.jsonl");
        std::fs::write(&file, text).unwrap();
        load(&file)
    }

    #[test]
    fn good_lines() {
        let tasks = check(
            "{\"task_id\": 1, \"task_question\": \"Q?\", \"ground_truth\": 42}\n\n{\"task_id\": \"b\", \"task_question\": \"R?\"}\n",
        )
        .unwrap();
        assert_eq!(tasks[0].accepted(), Some(vec!["42"]));
        assert_eq!((tasks[1].task_id.as_str(), tasks[1].accepted()), ("b", None));
    }

    #[test]
    fn bad_lines_are_numbered() {
        for (text, expected) in [
            ("{\"task_id\": 1, \"task_question\": \"Q?\"}\nnonsense\n", ":2: not a task"),
            ("{\"task_id\": [], \"task_question\": \"Q?\"}\n", ":1: task_id"),
            ("{\"task_id\": 1, \"task_question\": \" \"}\n", ":1: the question is empty"),
            (
                "{\"task_id\": 1, \"task_question\": \"Q\"}\n{\"task_id\": 1, \"task_question\": \"R\"}\n",
                ":2: the task_id 1",
            ),
            ("\n", "holds no tasks"),
        ] {
            let error = format!("{:#}", check(text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
