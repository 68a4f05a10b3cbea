//! The `benchmark` section: which suite, where its tasks are, how they are run and judged.
//!
//! Decides names, types and defaults; the keys under `data` and `execution` are those that existing configurations
//! use. Running and judging are left to whoever reads it.

use std::path::PathBuf;

use llm_providers::LlmConfig;
use serde::{Deserialize, Serialize};

/// The `benchmark` section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BenchmarkConfig {
    /// The suite's name; it names the run directory and the submission file.
    pub name: String,
    /// Tasks that the suite has; another number in the data is warned of.
    pub tasks: Option<u64>,
    /// Runs of every task; none: as the built-in suite of this name has it, else 1.
    pub epochs: Option<u32>,
    /// Number that the order of tasks and every other draw is made from.
    pub seed: u64,
    /// Where the tasks are.
    pub data: BenchmarkData,
    /// How they are run.
    pub execution: BenchmarkExecution,
    /// Who says whether an answer is right.
    pub judge: JudgeConfig,
}

impl Default for BenchmarkConfig {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            tasks: None,
            epochs: None,
            seed: 0,
            data: BenchmarkData::default(),
            execution: BenchmarkExecution::default(),
            judge: JudgeConfig::default(),
        }
    }
}

/// Where the tasks of a suite are, and what their fields are called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BenchmarkData {
    /// Folder of the suite. A relative one is looked for from the configuration directory and from here.
    pub data_dir: Option<PathBuf>,
    /// File in that folder with one JSON object a line.
    pub metadata_file: String,
    /// Names of the fields in those objects.
    pub field_mapping: FieldMapping,
}

impl Default for BenchmarkData {
    fn default() -> Self {
        Self {
            data_dir: None,
            metadata_file: "standardized_data.jsonl".to_owned(),
            field_mapping: FieldMapping::default(),
        }
    }
}

/// Names of the fields of a task; every field not named here is kept as metadata.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FieldMapping {
    /// Its id.
    pub task_id_field: String,
    /// The question.
    pub task_question_field: String,
    /// The right answer; null in a task means that it is not judged.
    pub ground_truth_field: String,
    /// The name of a file that belongs to the question.
    pub file_name_field: String,
    /// The path of that file, where tasks give one.
    pub file_path_field: String,
}

impl Default for FieldMapping {
    fn default() -> Self {
        let [task_id_field, task_question_field, ground_truth_field, file_name_field, file_path_field] =
            ["task_id", "task_question", "ground_truth", "file_name", "file_path"].map(str::to_owned);
        Self { task_id_field, task_question_field, ground_truth_field, file_name_field, file_path_field }
    }
}

/// How the tasks are run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BenchmarkExecution {
    /// Only so many tasks; none: all of them.
    pub max_tasks: Option<u64>,
    /// Tasks under way at once.
    pub max_concurrent: u32,
    /// Attempts at a task that end with its first right answer; 1 is one attempt. Above 1, only "right in any
    /// attempt" can be reported.
    pub pass_at_k: u32,
    /// Whether the order of tasks is drawn from `seed`.
    pub shuffle: bool,
    /// Further strings that must not stand in a tool's result.
    pub canaries: Vec<String>,
}

impl Default for BenchmarkExecution {
    fn default() -> Self {
        Self { max_tasks: None, max_concurrent: 5, pass_at_k: 1, shuffle: false, canaries: Vec::new() }
    }
}

/// Who says whether an answer is right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeConfig {
    /// The procedure; none: as the built-in suite of this name has it.
    pub id: Option<JudgeId>,
    /// Replies that are asked for; the majority decides.
    pub votes: u32,
    /// Compare answers offline instead of asking a model.
    pub mock: bool,
    /// The model that judges; none: the procedure's reference model.
    pub llm: Option<LlmConfig>,
}

impl Default for JudgeConfig {
    fn default() -> Self {
        Self { id: None, votes: 1, mock: false, llm: None }
    }
}

/// A judging procedure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JudgeId {
    /// One word: the answer means the same as the truth, or not.
    Equivalence,
    /// A or B, asked in English.
    #[serde(rename = "ab-en")]
    AbEn,
    /// A or B, asked in Chinese.
    #[serde(rename = "ab-zh")]
    AbZh,
    /// A, B or C; C is not attempted.
    SimpleQa,
    /// Extracted answer, reasoning, verdict and confidence.
    Hle,
    /// An explanation, then the verdict, asked in Chinese.
    Xbench,
    /// Every expected part, and what is in excess.
    DeepSearchQa,
    /// No judging: answers are collected.
    None,
}
