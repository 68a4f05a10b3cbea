//! Samples of a run as training data, or as task logs of the reference. Decides which samples are taken; how a run is
//! written is `pipeline`'s.

use std::collections::BTreeMap;
use std::path::Path;

use pipeline::log::{LogError, RunRecord};
use pipeline::trace::{self, Judgement};
use serde_json::{Value, json};

use crate::file_names::{file_name_of, plain};
use crate::run::{StoreError, read_run};
use crate::sample::{Judged, Row, SampleState};

/// What samples are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Chat records, one for each pass of each agent, exactly as the model was sent them.
    Chatml,
    /// The same as conversations of human and gpt.
    Sharegpt,
    /// Pairs of a task's right and wrong epochs.
    Dpo,
    /// A task log of the reference each.
    Mirothinker,
}

/// Which samples are taken. Task logs are written whatever became of the sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter {
    /// Samples that are not correct too.
    pub incorrect: bool,
    /// Contaminated samples too.
    pub contaminated: bool,
    /// Only samples of at most so many turns.
    pub max_turns: Option<u32>,
    /// Only samples of at most so many tokens.
    pub max_tokens: Option<u64>,
}

/// What was exported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exported {
    /// A name that can be a file's, and the record.
    pub records: Vec<(String, Value)>,
    /// Samples that were left out.
    pub left_out: usize,
}

/// Why nothing is exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The folder of the benchmark.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log of a sample's run.
    #[error("the run of task {task_id}, epoch {epoch}: {source}")]
    Log {
        /// The task.
        task_id: String,
        /// The epoch.
        epoch: u32,
        /// What is wrong with it.
        source: LogError,
    },
}

/// Exports the samples of a run.
///
/// # Errors
///
/// No run, or logs that cannot be read.
pub fn export(folder: &Path, target: Target, filter: &Filter) -> Result<Exported, ExportError> {
    let (header, rows) = read_run(folder)?;
    match target {
        Target::Dpo => pairs(folder, &rows, filter),
        Target::Mirothinker => {
            let suite = &header.suite;
            let mut exported = Exported::default();
            for row in &rows {
                let record = if is_short_enough(row, filter) { record_of(folder, row)? } else { None };
                let Some(record) = record else {
                    exported.left_out += 1;
                    continue;
                };
                let name = format!(
                    "{suite}/run_{}/task_{}{FIRST_TRY}_{}.json",
                    row.sample.epoch,
                    file_name_of(&row.sample.task_id, '-'),
                    plain(&row.ended, '-')
                );
                exported.records.push((name, trace::mirothinker(&record, &judgement(row))));
            }
            Ok(exported)
        }
        Target::Chatml | Target::Sharegpt => {
            let mut exported = Exported::default();
            for row in &rows {
                let taken = is_taken(row, filter) && (filter.incorrect || row.correct == Some(true));
                let record = if taken { record_of(folder, row)? } else { None };
                let Some(record) = record else {
                    exported.left_out += 1;
                    continue;
                };
                let text =
                    if target == Target::Chatml { trace::chatml(&record) } else { trace::sharegpt(&record) };
                let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
                exported.records.extend(lines.map(|line: Value| (row.sample.task_id.clone(), line)));
            }
            Ok(exported)
        }
    }
}

fn is_taken(row: &Row, filter: &Filter) -> bool {
    let clean = filter.contaminated || !matches!(row.state, SampleState::Contaminated { .. });
    clean && is_short_enough(row, filter)
}

fn is_short_enough(row: &Row, filter: &Filter) -> bool {
    filter.max_turns.is_none_or(|most| row.turns <= most)
        && filter.max_tokens.is_none_or(|most| row.usage.input + row.usage.output <= most)
}

fn record_of(folder: &Path, row: &Row) -> Result<Option<RunRecord>, ExportError> {
    let Some(run_dir) = &row.run_dir else { return Ok(None) };
    RunRecord::read(&folder.join(run_dir)).map(Some).map_err(|source| ExportError::Log {
        task_id: row.sample.task_id.clone(),
        epoch: row.sample.epoch,
        source,
    })
}

/// The first right epoch of a task against each of its wrong ones. Only epochs whose prompts are the same are pairs.
fn pairs(folder: &Path, rows: &[Row], filter: &Filter) -> Result<Exported, ExportError> {
    let mut tasks: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    let mut exported = Exported::default();
    for row in rows {
        if is_taken(row, filter) && row.correct.is_some() && row.run_dir.is_some() {
            tasks.entry(&row.sample.task_id).or_default().push(row);
        } else {
            exported.left_out += 1;
        }
    }
    for (task_id, rows) in tasks {
        let right = rows.iter().find(|row| row.correct == Some(true));
        let chosen = match right {
            Some(row) => conversation(folder, row)?,
            None => None,
        };
        for wrong in rows.iter().filter(|row| row.correct == Some(false)) {
            let rejected = conversation(folder, wrong)?;
            match (&chosen, rejected) {
                (Some((prompt, chosen, tools)), Some((other, rejected, _))) if *prompt == other => {
                    exported.records.push((
                        task_id.to_owned(),
                        json!({
                            "id": format!("{task_id}/{}", wrong.sample.epoch),
                            "prompt": prompt,
                            "chosen": chosen,
                            "rejected": rejected,
                            "tools": tools,
                        }),
                    ));
                }
                _ => exported.left_out += 1,
            }
        }
    }
    Ok(exported)
}

/// Prompt (system and first user message), everything after it, and the tools: of the main agent's last pass.
type Conversation = (Vec<Value>, Vec<Value>, Value);

fn conversation(folder: &Path, row: &Row) -> Result<Option<Conversation>, ExportError> {
    let Some(record) = record_of(folder, row)? else { return Ok(None) };
    let text = trace::chatml(&record);
    let of_main = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = of_main.rev().find(|line| line["agent"] == "main");
    Ok(last.and_then(|mut line| {
        let Value::Array(mut messages) = line["messages"].take() else { return None };
        let first_reply = messages.iter().position(|message| message["role"] == "assistant")?;
        let rest = messages.split_off(first_reply);
        Some((messages, rest, line["tools"].take()))
    }))
}

/// What the reference's logs say of a verdict.
fn judgement(row: &Row) -> Judgement {
    let (judge, details) = match &row.judgement {
        Judged::Exact { tier } => (format!("{tier:?}").to_lowercase(), None),
        Judged::ByJudge { transcript, .. } => {
            (transcript.judge.clone(), serde_json::to_value(&row.judgement).ok())
        }
        Judged::Unjudged { .. } | Judged::NoAnswer | Judged::NotScored => (String::new(), None),
    };
    let result = match row.correct {
        Some(true) => "CORRECT",
        Some(false) => "INCORRECT",
        None => "NOT_ATTEMPTED",
    };
    Judgement {
        // The reference names attempt and retry in the id.
        task_id: format!("{}{FIRST_TRY}", row.sample.task_id),
        ground_truth: row.ground_truth.clone().unwrap_or_default(),
        result: result.to_owned(),
        judge,
        details,
    }
}

/// What stands behind a task's id in the reference's logs.
const FIRST_TRY: &str = "_attempt-1_format-retry-0";
