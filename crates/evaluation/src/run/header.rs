//! What a run over a suite was made of: everything that somebody needs who wants the same figures again. Written
//! when the run begins and compared when it is gone on with; only who judges, and how that was asked for, changes later.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use pipeline::config::{is_secret_name, key_of_set};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::judge::Identity;

/// Version of this file's shape.
pub const HEADER_SCHEMA: u32 = 1;

/// `header.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`HEADER_SCHEMA`].
    pub schema: u32,
    /// The suite.
    pub suite: String,
    /// Tasks that were selected, in the order of the dataset.
    pub task_ids: Vec<String>,
    /// Where they are from.
    pub dataset: DatasetFacts,
    /// Runs of every task.
    pub epochs: u32,
    /// What the order is drawn from.
    pub seed: u64,
    /// Whether it is drawn.
    pub shuffle: bool,
    /// Attempts at a task that end with the first right one, where that was asked for.
    pub stop_on_pass: Option<u32>,
    /// The model that runs.
    pub provider: String,
    /// Its name.
    pub model: String,
    /// The agent's configuration and that of the model, without secrets; what is read from the tasks; and the templates
    /// of the agent's prompts, each with the hexadecimal SHA-256 of its text.
    pub config: Value,
    /// The servers of `mcp.json` that runs use, as [`pipeline::Pipeline::server_identities`] tells them apart; none
    /// where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Map<String, Value>>,
    /// Who judges.
    pub judge: Identity,
    /// Prices of the model, US dollars for a million tokens, where they are known.
    pub prices: Map<String, Value>,
    /// The revision of the program's sources, where it is run from them.
    pub git: Option<GitFacts>,
    /// What was typed, less secrets: enough to go on with the run.
    pub invocation: Invocation,
    /// Versions of what took part.
    pub versions: BTreeMap<String, String>,
    /// When the run was begun, RFC 3339 in UTC.
    pub created: String,
}

/// What a run was begun with, as typed, and how its judge was asked for last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// The preset of `conf/benchmark/`.
    pub suite: String,
    /// The file of tasks, where it is none of a suite.
    pub file: Option<PathBuf>,
    /// The preset of `conf/llm/`.
    pub llm: Option<String>,
    /// The preset of `conf/agent/`.
    pub agent: Option<String>,
    /// Single settings, those that hold secrets left out.
    pub sets: Vec<String>,
    /// The configuration folder.
    pub conf_dir: Option<PathBuf>,
    /// The file of tool servers.
    pub mcp_config: Option<PathBuf>,
    /// Who judges: `mock`, or a preset of `conf/llm/`; none where the suite says.
    #[serde(default)]
    pub judge: Option<String>,
}

impl Invocation {
    /// The same with another judge: who was asked for, and what was set for the judging. That takes the place of what
    /// was set for the same keys before.
    #[must_use]
    pub fn judged_by(self, judge: Option<String>, sets: Vec<String>) -> Self {
        let replaced: BTreeSet<&str> = sets.iter().map(|set| key_of_set(set)).collect();
        let mut all = self.sets;
        all.retain(|set| !replaced.contains(key_of_set(set)));
        all.extend(sets);
        Self { judge, sets: all, ..self }
    }
}

/// The dataset of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetFacts {
    /// The file.
    pub file: String,
    /// Hexadecimal SHA-256 of its content.
    pub sha256: String,
    /// Tasks in it.
    pub tasks: usize,
    /// Records that were left out because they are no tasks.
    pub bad_records: usize,
    /// Selected tasks that were left out because their files are not there.
    #[serde(default)]
    pub without_files: usize,
    /// Selected tasks without a right answer: they are run, not judged, and in no denominator.
    #[serde(default)]
    pub without_truth: usize,
}

/// A revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitFacts {
    /// Its id.
    pub revision: String,
    /// Whether there were changes on top of it.
    pub dirty: bool,
}

/// Something that differs between the run in a folder and the one that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What differs, such as `epochs` or `config.llm.model_name`.
    pub what: String,
    /// As it is in the folder.
    pub there: String,
    /// As it was asked for.
    pub asked: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} there, {} asked for", self.what, self.there, self.asked)
    }
}

impl Header {
    /// What differs in a way that makes figures incomparable. The judge, versions and the time may differ: a run can
    /// be judged again and gone on with after an update; so may secrets and the address at which a model is served.
    #[must_use]
    pub fn mismatches(&self, asked: &Self) -> Vec<Mismatch> {
        let mut found = Vec::new();
        let pairs = [
            ("suite", Value::from(self.suite.as_str()), Value::from(asked.suite.as_str())),
            ("dataset.sha256", self.dataset.sha256.as_str().into(), asked.dataset.sha256.as_str().into()),
            ("epochs", self.epochs.into(), asked.epochs.into()),
            ("seed", self.seed.into(), asked.seed.into()),
            ("shuffle", self.shuffle.into(), asked.shuffle.into()),
            ("stop_on_pass", self.stop_on_pass.into(), asked.stop_on_pass.into()),
            ("provider", self.provider.as_str().into(), asked.provider.as_str().into()),
            ("model", self.model.as_str().into(), asked.model.as_str().into()),
        ];
        for (what, there, asked) in pairs {
            differences(what, &there, &asked, &|_| true, &mut found);
        }
        if self.task_ids != asked.task_ids {
            found.push(Mismatch {
                what: "tasks".to_owned(),
                there: format!("{} tasks", self.task_ids.len()),
                asked: format!("{} tasks", asked.task_ids.len()),
            });
        }
        let is_setting = |key: &str| !is_secret_name(key) && key != "base_url";
        differences("config", &self.config, &asked.config, &is_setting, &mut found);
        if let (Some(there), Some(asked)) = (&self.servers, &asked.servers) {
            let [there, asked] = [there, asked].map(|servers| Value::Object(servers.clone()));
            differences("servers", &there, &asked, &|_| true, &mut found);
        }
        found
    }
}

/// Every leaf that differs, below keys that are compared.
fn differences(
    what: &str,
    there: &Value,
    asked: &Value,
    is_compared: &dyn Fn(&str) -> bool,
    found: &mut Vec<Mismatch>,
) {
    match (there, asked) {
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys.into_iter().filter(|key| is_compared(key)) {
                let value = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or(Value::Null);
                differences(&format!("{what}.{key}"), &value(left), &value(right), is_compared, found);
            }
        }
        _ if there == asked => {}
        _ => found.push(Mismatch { what: what.to_owned(), there: short(there), asked: short(asked) }),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 {
        return text;
    }
    text.chars().take(59).chain(['…']).collect()
}
