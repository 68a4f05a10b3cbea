//! A suite as it is going to be run: its tasks and its header. Decides where tasks are found and which of them are
//! taken; everything that can be wrong is found out here, before anything runs.

mod attachments;
mod judging;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use core_protocol::Usage;
use llm_providers::{LlmClient, LlmError};
use pipeline::config::{ConfFile, ConfTree, JudgeId, Resolved};
use pipeline::{Pipeline, nearest_name};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

pub use attachments::BadFile;
pub use judging::{JudgeWish, judge_of};

use crate::dataset::{self, Dataset, DatasetError, Reading, Task};
use crate::judge::{Judge, JudgeError, PromptError};
use crate::run::{DatasetFacts, GitFacts, HEADER_SCHEMA, Header, Invocation, samples_in_order};
use crate::sample::{Row, SampleId};

/// What is taken of a suite.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Read this file instead of the suite's own.
    pub file: Option<PathBuf>,
    /// Where the tasks were when the run was begun; read where the suite's own are not found from here.
    pub recorded: Option<PathBuf>,
    /// Only these tasks.
    pub task_ids: Vec<String>,
    /// Only so many, from the front; none: as configured.
    pub limit: Option<usize>,
    /// Runs of every task; none: as configured.
    pub epochs: Option<u32>,
    /// What the order is drawn from; none: as configured.
    pub seed: Option<u64>,
    /// Draw the order.
    pub shuffle: bool,
    /// End a task with its first right epoch, after at most so many.
    pub stop_on_pass: Option<u32>,
    /// Leave out records that are no tasks.
    pub skip_bad: bool,
}

/// A suite that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The tasks that were selected.
    pub tasks: Vec<Task>,
    /// Records that were left out.
    pub bad: Vec<crate::records::BadRecord>,
    /// Where the tasks are from.
    pub facts: DatasetFacts,
    /// Runs of every task.
    pub epochs: u32,
    /// What the order is drawn from.
    pub seed: u64,
    /// Whether it is drawn.
    pub shuffle: bool,
    /// End a task with its first right epoch, after at most so many.
    pub stop_on_pass: Option<u32>,
    /// What is worth a second look, in words.
    pub warnings: Vec<String>,
}

/// Why a suite cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// Its tasks are not on this machine.
    #[error(
        "the tasks of {suite} are not here; looked for {}. Prepare them from the published original: \
         fathom-bench prepare {suite} --from FILE",
        .looked.join(", ")
    )]
    NoTasks {
        /// The suite.
        suite: String,
        /// The files that were looked for.
        looked: Vec<String>,
    },
    /// Its tasks cannot be used.
    #[error("{0}\n--skip-bad-lines leaves such records out")]
    BadRecords(DatasetError),
    /// Its file cannot be used.
    #[error(transparent)]
    Dataset(DatasetError),
    /// A task that was asked for is not in it.
    #[error("{suite} has no task {task_id}{}", .nearest.as_ref().map(|id| format!("; did you mean {id}?")).unwrap_or_default())]
    UnknownTask {
        /// The suite.
        suite: String,
        /// The task.
        task_id: String,
        /// The task whose id is most like it.
        nearest: Option<String>,
    },
    /// Files of tasks that are to be run are not there.
    #[error(
        "files of tasks that cannot be used: {} ({selected} tasks are selected)\n{}\n{remedy}",
        .bad.len(),
        attachments::listed(.bad)
    )]
    BadFiles {
        /// The files.
        bad: Vec<BadFile>,
        /// Tasks that were selected.
        selected: usize,
        /// What can be done about it.
        remedy: &'static str,
    },
    /// The judge's prompt cannot be used.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The judge's model cannot be set up.
    #[error(
        "the judge of {suite} cannot be used: {problem}\nSet its key, choose another model with --judge NAME or \
         benchmark.judge.llm, or compare offline with --judge mock"
    )]
    JudgeModel {
        /// The suite.
        suite: String,
        /// What is wrong.
        problem: LlmError,
    },
    /// The judge's model does not take the key, or is not there.
    #[error(
        "{0}\nChoose another model with --judge NAME or benchmark.judge.llm, or compare offline with --judge mock"
    )]
    Judge(JudgeError),
}

impl Suite {
    /// Finds and selects the tasks of the chosen benchmark. Whether their files are there is not asked:
    /// [`Suite::check_files`] does that for those that are run.
    ///
    /// # Errors
    ///
    /// Tasks that are not there or cannot be used, a task that there is not.
    pub fn load(resolved: &Resolved, here: &Path, selection: &Selection) -> Result<Self, SuiteError> {
        let config = &resolved.config.benchmark;
        let dataset = dataset_of(resolved, here, selection)?;
        let (name, Dataset { mut tasks, bad, sha256 }) = dataset;
        let mut warnings = Vec::new();
        let in_file = tasks.len();
        if let Some(expected) = config.tasks
            && selection.file.is_none()
            && usize::try_from(expected).ok() != Some(in_file)
        {
            warnings.push(format!("{} has {expected} tasks, {name} has {in_file}", config.name));
        }
        if !selection.task_ids.is_empty() {
            let known: BTreeSet<&str> = tasks.iter().map(|task| task.task_id.as_str()).collect();
            if let Some(unknown) = selection.task_ids.iter().find(|id| !known.contains(id.as_str())) {
                return Err(SuiteError::UnknownTask {
                    suite: config.name.clone(),
                    task_id: unknown.clone(),
                    nearest: nearest_name(unknown, known).map(str::to_owned),
                });
            }
            let chosen: BTreeSet<&String> = selection.task_ids.iter().collect();
            tasks.retain(|task| chosen.contains(&task.task_id));
        }
        let configured = config.execution.max_tasks.and_then(|most| usize::try_from(most).ok());
        tasks.truncate(selection.limit.or(configured).unwrap_or(usize::MAX));
        let stop_on_pass =
            selection.stop_on_pass.or(Some(config.execution.pass_at_k).filter(|attempts| *attempts > 1));
        let without_truth = tasks.iter().filter(|task| task.ground_truth.is_none()).count();
        if without_truth > 0 && config.judge.id != Some(JudgeId::None) {
            warnings.push(truths_missing(
                without_truth,
                tasks.len(),
                &config.data.field_mapping.ground_truth_field,
            ));
        }
        if selection.seed.is_some() && !selection.shuffle && !config.execution.shuffle {
            warnings
                .push("the seed has no effect: the order is drawn from it only with --shuffle".to_owned());
        }
        Ok(Self {
            facts: DatasetFacts {
                file: name,
                sha256,
                tasks: in_file,
                bad_records: bad.len(),
                without_files: 0,
                without_truth,
            },
            tasks,
            bad,
            epochs: stop_on_pass.or(selection.epochs).or(config.epochs).unwrap_or(1).max(1),
            seed: selection.seed.unwrap_or(config.seed),
            shuffle: selection.shuffle || config.execution.shuffle,
            stop_on_pass,
            warnings,
        })
    }

    /// All samples, in the order in which they are run.
    #[must_use]
    pub fn samples(&self) -> Vec<SampleId> {
        let ids: Vec<String> = self.tasks.iter().map(|task| task.task_id.clone()).collect();
        samples_in_order(&ids, self.epochs, self.shuffle.then_some(self.seed))
    }

    /// The samples that are still to be run: those without a row, and those whose run failed.
    #[must_use]
    pub fn samples_to_run<'a>(&self, rows: impl IntoIterator<Item = &'a Row>) -> Vec<SampleId> {
        let (mut ended, mut settled) = (BTreeSet::new(), BTreeSet::new());
        for row in rows.into_iter().filter(|row| !row.has_failed()) {
            ended.insert(&row.sample);
            if self.stop_on_pass.is_some() && row.correct == Some(true) {
                settled.insert(row.sample.task_id.as_str());
            }
        }
        let mut samples = self.samples();
        samples.retain(|sample| !ended.contains(sample) && !settled.contains(sample.task_id.as_str()));
        samples
    }

    /// What goes into `header.json`.
    #[must_use]
    pub fn header(
        &self,
        pipeline: &Pipeline,
        judge: &Judge,
        git: Option<GitFacts>,
        invocation: Invocation,
    ) -> Header {
        let client = pipeline.client();
        let mut config = pipeline.resolved().to_json();
        if let Value::Object(sections) = &mut config {
            // How many run at once, where the tasks are and who judges does not change what a run is; what is read
            // from the tasks does.
            let benchmark = sections.shift_remove("benchmark").unwrap_or_default();
            let kept = json!({
                "data": {"field_mapping": benchmark["data"]["field_mapping"]},
                "execution": {"canaries": benchmark["execution"]["canaries"]},
            });
            sections.insert("benchmark".to_owned(), kept);
            sections.insert("prompts".to_owned(), Value::Object(prompts(&pipeline.resolved().conf)));
        }
        Header {
            schema: HEADER_SCHEMA,
            suite: pipeline.config().benchmark.name.clone(),
            task_ids: self.tasks.iter().map(|task| task.task_id.clone()).collect(),
            dataset: self.facts.clone(),
            epochs: self.epochs,
            seed: self.seed,
            shuffle: self.shuffle,
            stop_on_pass: self.stop_on_pass,
            provider: client.provider_name().to_owned(),
            model: client.model().to_owned(),
            config,
            servers: Some(pipeline.server_identities()),
            judge: judge.identity(),
            prices: prices(client),
            git,
            invocation,
            versions: BTreeMap::from([("fathom".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
            created: crate::now(),
        }
    }
}

fn truths_missing(count: usize, of: usize, field: &str) -> String {
    if count == of {
        format!(
            "none of the {of} tasks has a right answer (`{field}`): nothing will be judged, and there will be no \
             accuracy. If the field has another name, set benchmark.data.field_mapping.ground_truth_field"
        )
    } else {
        format!(
            "{count} of {of} tasks have no right answer (`{field}`): they are run, but not judged and in no \
             denominator"
        )
    }
}

/// The templates that an agent can be given, with what their texts hash to.
fn prompts(conf: &ConfTree) -> Map<String, Value> {
    let templates = conf.list("prompts").into_iter().map(|entry| entry.name);
    templates
        .filter(|name| name.ends_with(".md") && name != "README.md" && !name.starts_with("judge/"))
        .filter_map(|name| {
            let file = conf.read("prompts", &name).ok().flatten()?;
            Some((name, hex::encode(Sha256::digest(&file.bytes)).into()))
        })
        .collect()
}

/// What a million tokens cost, by kind; empty where no price is known.
fn prices(client: &LlmClient) -> Map<String, Value> {
    const MILLION: u64 = 1_000_000;
    let kinds = [
        ("input", Usage { input: MILLION, ..Usage::default() }),
        ("output", Usage { output: MILLION, ..Usage::default() }),
        ("cache_read", Usage { input: MILLION, cache_read: MILLION, ..Usage::default() }),
    ];
    kinds.iter().filter_map(|(kind, usage)| Some(((*kind).to_owned(), client.cost(usage)?.into()))).collect()
}

/// Where the tasks of the chosen benchmark are; none where they are not on this machine.
#[must_use]
pub fn data_file(resolved: &Resolved, here: &Path) -> Option<String> {
    let relative = relative_file(resolved);
    let places = resolved.conf.places(here, &relative);
    if let Some(file) = places.iter().find(|file| file.is_file()) {
        return Some(file.display().to_string());
    }
    built_in(resolved, &relative).map(|file| file.path)
}

fn relative_file(resolved: &Resolved) -> PathBuf {
    let config = &resolved.config.benchmark;
    let folder = config.data.data_dir.clone().unwrap_or_else(|| PathBuf::from("data").join(&config.name));
    folder.join(&config.data.metadata_file)
}

/// The file as it came with the program.
fn built_in(resolved: &Resolved, relative: &Path) -> Option<ConfFile> {
    resolved.conf.read("", relative.to_str()?).ok().flatten()
}

fn dataset_of(
    resolved: &Resolved,
    here: &Path,
    selection: &Selection,
) -> Result<(String, Dataset), SuiteError> {
    let config = &resolved.config.benchmark;
    let reading = Reading { fields: &config.data.field_mapping, skip_bad: selection.skip_bad };
    let sorted = |error| match error {
        DatasetError::Bad(_) => SuiteError::BadRecords(error),
        other => SuiteError::Dataset(other),
    };
    let from_file = |file: &Path| {
        let dataset = dataset::load(file, reading).map_err(sorted)?;
        Ok((file.display().to_string(), dataset))
    };
    if let Some(file) = &selection.file {
        return from_file(file);
    }
    let relative = relative_file(resolved);
    let places = resolved.conf.places(here, &relative);
    if let Some(file) = places.iter().find(|file| file.is_file()) {
        return from_file(file);
    }
    if let Some(file) = selection.recorded.as_ref().filter(|file| file.is_absolute() && file.is_file()) {
        return from_file(file);
    }
    match built_in(resolved, &relative) {
        Some(file) => {
            let dataset = dataset::load_bytes(&file.path, file.bytes, None, reading).map_err(sorted)?;
            Ok((file.path, dataset))
        }
        None => Err(SuiteError::NoTasks {
            suite: config.name.clone(),
            looked: places.iter().map(|place| place.display().to_string()).collect(),
        }),
    }
}
