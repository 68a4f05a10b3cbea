//! One sample through the pipeline: asked anew, or gone on with where a run of it was interrupted. Decides where the
//! run of a sample is kept, and whether a tool showed it the suite.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use core_protocol::event::{ErrorReport, RunSummary};
use pipeline::log::LOG_NAME;
use pipeline::{Opened, Pipeline, PipelineError, Question, RunReport};
use tokio_util::sync::CancellationToken;

use crate::canary::Canaries;
use crate::dataset::Task;
use crate::file_names::file_name_of;
use crate::sample::{SampleId, SampleState};

/// What became of a sample's run.
#[derive(Debug, Clone)]
pub struct SampleRun {
    /// How it ended.
    pub state: SampleState,
    /// Its figures.
    pub summary: RunSummary,
    /// The run, where it could begin.
    pub run_id: Option<String>,
    /// Its folder, relative to that of the benchmark.
    pub run_dir: Option<PathBuf>,
}

/// Runs samples.
#[async_trait]
pub trait SampleRunner: Send + Sync {
    /// Runs one sample to its end; none where it was interrupted and can be gone on with.
    async fn run(&self, sample: &SampleId, task: &Task, cancel: &CancellationToken) -> Option<SampleRun>;
}

/// Runs samples through the pipeline, each in the folder that its id names.
pub struct PipelineRunner {
    /// The pipeline; it keeps runs in `runs/` of the benchmark's folder.
    pub pipeline: Arc<Pipeline>,
    /// Texts that must not stand in a tool's result.
    pub canaries: Canaries,
}

/// The name of a sample's run: its task's id where that can be a file name, else a part of it and a digest, and the
/// epoch.
pub fn run_folder(sample: &SampleId) -> String {
    format!("{}-e{}", file_name_of(&sample.task_id, '_'), sample.epoch)
}

impl PipelineRunner {
    /// A run that was interrupted or failed is gone on with: what its log holds is not done again.
    async fn ask_or_resume(
        &self,
        task: &Task,
        run_id: &str,
        folder: &Path,
        cancel: &CancellationToken,
    ) -> Result<RunReport, PipelineError> {
        if has_begun(folder) {
            return match Opened::open(folder, true)? {
                Opened::Finished(report) => Ok(*report),
                Opened::Interrupted(run) => self.pipeline.resume(*run, cancel.clone(), None).await,
            };
        }
        // Of a run that was killed while it was set up nothing is worth keeping.
        let _ = std::fs::remove_dir_all(folder);
        let question = Question {
            text: task.question.clone(),
            files: task.files.clone(),
            docs: Vec::new(),
            run_id: Some(run_id.to_owned()),
        };
        self.pipeline.ask(question, cancel.clone(), None).await
    }
}

/// Whether the log of a run holds at least its first event.
fn has_begun(folder: &Path) -> bool {
    let mut first = Vec::new();
    File::open(folder.join(LOG_NAME))
        .and_then(|file| BufReader::new(file).read_until(b'\n', &mut first))
        .is_ok_and(|_| first.last() == Some(&b'\n'))
}

#[async_trait]
impl SampleRunner for PipelineRunner {
    async fn run(&self, sample: &SampleId, task: &Task, cancel: &CancellationToken) -> Option<SampleRun> {
        let run_id = run_folder(sample);
        let folder = self.pipeline.places().runs.join(&run_id);
        let report = match self.ask_or_resume(task, &run_id, &folder, cancel).await {
            Ok(report) => report,
            Err(error) => {
                let error = ErrorReport {
                    kind: error.kind().to_owned(),
                    message: error.to_string(),
                    hint: error.hint(),
                };
                return Some(SampleRun {
                    state: SampleState::Error { kind: error.kind.clone() },
                    summary: RunSummary::never_begun(Some(error)),
                    run_id: None,
                    run_dir: None,
                });
            }
        };
        let state = SampleState::of_run(&report.summary)?;
        let state = match self.canaries.found_in(&folder) {
            Some(found) => SampleState::Contaminated { found },
            None => state,
        };
        Some(SampleRun {
            state,
            summary: report.summary,
            run_id: Some(report.run_id),
            run_dir: Some(PathBuf::from("runs").join(run_id)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_file_names_and_differ() {
        let name = |id: &str| run_folder(&SampleId { task_id: id.to_owned(), epoch: 2 });
        assert_eq!(name("gaia-12_b"), "gaia-12_b-e2");
        assert!(name("a/b").starts_with("a_b-") && name("a/b") != name("a b") && name("a/b") != name("a_b"));
        assert!(name("../..").starts_with("_____-"));
        assert!(name(&"x".repeat(300)).len() < 100);
    }
}
