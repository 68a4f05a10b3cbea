//! Files that belong to tasks. Decides whose are looked at before the first sample begins: those of all tasks that are
//! still to be run. Samples that have ended, and judging, need none.

use std::collections::BTreeSet;

use super::{Suite, SuiteError};
use crate::sample::Row;

/// A file of a task that cannot be given with its question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("task {task_id}: {problem}")]
pub struct BadFile {
    /// The task.
    pub task_id: String,
    /// The file, and what is wrong with it.
    pub problem: String,
}

const PUT_THERE: &str = "Put them there and run the same command again.";
const OTHER_TASKS: &str =
    "Put them there, run other tasks (--task, --limit), or leave these tasks out: --skip-bad-lines";

/// The first few, a line each.
pub(super) fn listed(bad: &[BadFile]) -> String {
    const SHOWN: usize = 5;
    let mut lines: Vec<String> = bad.iter().take(SHOWN).map(|file| format!("  {file}")).collect();
    if bad.len() > SHOWN {
        lines.push(format!("  and {} more", bad.len() - SHOWN));
    }
    lines.join("\n")
}

impl Suite {
    /// Whether the files of all tasks that are still to be run can be used. `rows` is what has ended of a run that
    /// `has_begun`; without them it does not go on.
    ///
    /// # Errors
    ///
    /// Files that cannot be given with their questions, all of them.
    pub fn check_files<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a Row>,
        has_begun: bool,
    ) -> Result<(), SuiteError> {
        let remedy = if has_begun { PUT_THERE } else { OTHER_TASKS };
        match self.bad_files(rows) {
            bad if bad.is_empty() => Ok(()),
            bad => Err(SuiteError::BadFiles { bad, selected: self.tasks.len(), remedy }),
        }
    }

    /// Leaves out the tasks that are still to be run and whose files are not there. They come back, to be told.
    ///
    /// # Errors
    ///
    /// No task is left.
    pub fn leave_out_bad_files<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a Row>,
    ) -> Result<Vec<BadFile>, SuiteError> {
        let bad = self.bad_files(rows);
        let gone: BTreeSet<&String> = bad.iter().map(|file| &file.task_id).collect();
        if !bad.is_empty() && gone.len() == self.tasks.len() {
            return Err(SuiteError::BadFiles { bad, selected: self.tasks.len(), remedy: PUT_THERE });
        }
        self.tasks.retain(|task| !gone.contains(&task.task_id));
        self.facts.without_files = gone.len();
        self.facts.without_truth = self.tasks.iter().filter(|task| task.ground_truth.is_none()).count();
        Ok(bad)
    }

    fn bad_files<'a>(&self, rows: impl IntoIterator<Item = &'a Row>) -> Vec<BadFile> {
        let samples = self.samples_to_run(rows);
        let to_run: BTreeSet<&String> = samples.iter().map(|sample| &sample.task_id).collect();
        let files = self
            .tasks
            .iter()
            .filter(|task| to_run.contains(&task.task_id))
            .flat_map(|task| task.files.iter().map(move |file| (task, file)));
        files
            .filter_map(|(task, file)| {
                let problem = pipeline::files::check(file).err()?.to_string();
                Some(BadFile { task_id: task.task_id.clone(), problem })
            })
            .collect()
    }
}
