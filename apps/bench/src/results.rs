//! What is kept of a run over a file, and what is printed. A row is on disk before the next sample counts as done.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::dataset::Task;

/// One finished sample.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) task_id: String,
    /// `answered`, `no_answer`, `failed`, `cancelled`.
    pub(crate) state: String,
    pub(crate) answer: Option<String>,
    /// None where the task is not scored or the run failed.
    pub(crate) correct: Option<bool>,
    pub(crate) run_id: Option<String>,
    pub(crate) turns: u32,
    pub(crate) tool_calls: u32,
    pub(crate) tokens: u64,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) wall_ms: u64,
    pub(crate) error: Option<String>,
}

/// The rows of a folder, old and new.
pub(crate) struct Results {
    file: File,
    rows: BTreeMap<String, Row>,
}

impl Results {
    /// Opens the folder and reads what is done there. Failed samples are asked again.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let path = folder.join("results.jsonl");
        let mut rows = BTreeMap::new();
        let mut torn = false;
        if let Ok(text) = std::fs::read_to_string(&path) {
            // A line that was cut by a crash is a sample that is not done.
            for line in text.lines() {
                if let Ok(row) = serde_json::from_str::<Row>(line) {
                    rows.insert(row.task_id.clone(), row);
                }
            }
            torn = !text.is_empty() && !text.ends_with('\n');
        }
        rows.retain(|_, row| row.state != "failed");
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        if torn {
            file.write_all(b"\n").with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok(Self { file, rows })
    }

    pub(crate) fn has(&self, task_id: &str) -> bool {
        self.rows.contains_key(task_id)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    pub(crate) fn add(&mut self, row: Row) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(&row)?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).context("results.jsonl cannot be written")?;
        self.file.sync_data().context("results.jsonl cannot be written")?;
        self.rows.insert(row.task_id.clone(), row);
        Ok(())
    }

    /// A line a finished sample.
    pub(crate) fn progress(&self, of: usize) {
        let right = self.rows.values().filter(|row| row.correct == Some(true)).count();
        note(&format!("{}/{of} done · {right} correct", self.rows.len()));
    }

    /// The figures over all selected tasks: what is not right is not correct, whatever it is.
    pub(crate) fn report(&self, tasks: &[Task], took: Duration) {
        let rows: Vec<&Row> = tasks.iter().filter_map(|task| self.rows.get(&task.task_id)).collect();
        let count = |state: &str| rows.iter().filter(|row| row.state == state).count();
        let scored = tasks.iter().filter(|task| task.ground_truth.is_some()).count();
        let right = rows.iter().filter(|row| row.correct == Some(true)).count();
        line(&format!(
            "answered {} · no answer {} · failed {} · not asked {}",
            count("answered"),
            count("no_answer"),
            count("failed"),
            tasks.len() - rows.len()
        ));
        let turns: u32 = rows.iter().map(|row| row.turns).sum();
        let calls: u32 = rows.iter().map(|row| row.tool_calls).sum();
        let tokens: u64 = rows.iter().map(|row| row.tokens).sum();
        let cost: Option<f64> = rows.iter().map(|row| row.cost_usd).sum();
        let cost = cost.map_or_else(|| "unknown".to_owned(), |cost| format!("${cost:.4}"));
        line(&format!(
            "turns {turns} · tool calls {calls} · tokens {tokens} · cost {cost} · {:.1} s",
            took.as_secs_f64()
        ));
        #[expect(clippy::cast_precision_loss, reason = "counts of samples")]
        let share = 100.0 * right as f64 / scored.max(1) as f64;
        line(&format!("accuracy (exact match): {right} of {scored} = {share:.1} %"));
    }
}

/// A line on stdout.
fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// A line on stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(task_id: &str, state: &str) -> Row {
        Row { task_id: task_id.into(), state: state.into(), ..Row::default() }
    }

    #[test]
    fn done_samples_are_kept_and_torn_or_failed_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut results = Results::open(dir.path()).unwrap();
        results.add(row("a", "answered")).unwrap();
        results.add(row("b", "failed")).unwrap();
        results.file.write_all(b"{\"task_id\": \"c\", \"sta").unwrap();
        drop(results);
        let mut results = Results::open(dir.path()).unwrap();
        assert!(results.has("a") && !results.has("b") && !results.has("c"));
        results.add(row("c", "no_answer")).unwrap();
        drop(results);
        assert!(Results::open(dir.path()).unwrap().has("c"));
    }
}
