//! Published originals into `standardized_data.jsonl`. Decides which field of an original is what, suite by suite, as
//! a table; how originals are enciphered is in [`cipher`], and pictures go into files beside the tasks.

mod cipher;
mod ids;
mod pictures;
mod recipes;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::records::{BadRecord, Record, RecordsError, read_records, scalar_text};

use ids::Wanted;
use recipes::{Recipe, recipe_of, suites};

/// What was prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The file that was written.
    pub file: PathBuf,
    /// Tasks in it.
    pub tasks: usize,
    /// Tasks with a ground truth.
    pub judged: usize,
    /// Tasks with a file or picture.
    pub with_files: usize,
    /// Files of tasks that are neither beside the original nor in the folder.
    pub files_missing: usize,
    /// Records that were left out because the suite takes only part of the original.
    pub not_selected: usize,
}

/// Why an original cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The original cannot be read.
    #[error(transparent)]
    File(#[from] RecordsError),
    /// A record that cannot be read or deciphered.
    #[error("{0}")]
    Bad(BadRecord),
    /// A field that the originals of the suite have is not there.
    #[error("{file} is no original of {suite}: a record has none of the fields {wanted}; it has {found}")]
    NotTheOriginal {
        /// The file.
        file: String,
        /// The suite.
        suite: String,
        /// Names that were looked for.
        wanted: String,
        /// Names that are there.
        found: String,
    },
    /// Nothing is known about originals of this suite.
    #[error("there is no recipe for {suite}; there are {known}")]
    UnknownSuite {
        /// The suite.
        suite: String,
        /// Suites with a recipe.
        known: String,
    },
    /// The suite is a selection whose ids are not known here.
    #[error(
        "{suite} is a selection of {tasks} of the {found} records that were found ({origin}); give the ids of its \
         tasks, one a line: fathom-bench prepare {suite} --from FILE --ids FILE"
    )]
    NeedsIds {
        /// The suite.
        suite: String,
        /// Tasks that it has.
        tasks: usize,
        /// Records that could be tasks.
        found: usize,
        /// Whose selection it is.
        origin: String,
    },
    /// Tasks that were asked for are not in the original.
    #[error("{file} lacks {} of the {wanted} tasks that {origin} names: {}", .missing.len(), shown(.missing))]
    Missing {
        /// The original.
        file: String,
        /// How many were asked for.
        wanted: usize,
        /// Where the ids are from.
        origin: String,
        /// Those that are not there.
        missing: Vec<String>,
    },
    /// There is a prepared file already.
    #[error("{file} is there already; remove it or choose another folder with --out")]
    Exists {
        /// The file.
        file: String,
    },
    /// Something cannot be written.
    #[error("{file} cannot be written: {source}")]
    Write {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
}

/// The first few.
fn shown(ids: &[String]) -> String {
    const SHOWN: usize = 5;
    let rest = if ids.len() > SHOWN { ", …" } else { "" };
    ids.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ") + rest
}

/// Writes `standardized_data.jsonl` of a suite into a folder, from the original that the user has. `ids` is a file of
/// the ids that are taken; without it, those that are known of the suite, or all records.
///
/// # Errors
///
/// An original that is none of the suite's, or cannot be read; ids that are not in it or not known; a folder that
/// cannot be written or holds a prepared file already. Nothing is left behind then but pictures.
pub fn prepare(
    suite: &str,
    original: &Path,
    folder: &Path,
    ids: Option<&Path>,
) -> Result<Prepared, PrepareError> {
    let recipe = recipe_of(suite).ok_or_else(|| PrepareError::UnknownSuite {
        suite: suite.to_owned(),
        known: suites().collect::<Vec<_>>().join(", "),
    })?;
    let file = folder.join("standardized_data.jsonl");
    if file.exists() {
        return Err(PrepareError::Exists { file: file.display().to_string() });
    }
    let write = |path: &Path| {
        let file = path.display().to_string();
        move |source| PrepareError::Write { file, source }
    };
    let mut wanted = Wanted::of(recipe, ids)?;
    let mut text = String::new();
    let mut prepared = Prepared {
        file: file.clone(),
        tasks: 0,
        judged: 0,
        with_files: 0,
        files_missing: 0,
        not_selected: 0,
    };
    for record in read_records(original)? {
        let record = record.map_err(PrepareError::Bad)?;
        let taken = |id: &str| wanted.as_mut().is_none_or(|wanted| wanted.takes(id));
        let number = prepared.tasks + prepared.not_selected + 1;
        let Some(task) = standardized(recipe, record, original, folder, number, taken)? else {
            prepared.not_selected += 1;
            continue;
        };
        prepared.tasks += 1;
        prepared.judged += usize::from(!task["ground_truth"].is_null());
        if let Some(name) = task.get("file_name").and_then(Value::as_str) {
            prepared.with_files += 1;
            prepared.files_missing += usize::from(!folder.join(name).is_file());
        }
        text.push_str(&Value::Object(task).to_string());
        text.push('\n');
    }
    if prepared.tasks == 0 {
        return Err(RecordsError::Broken {
            file: original.display().to_string(),
            problem: format!("none of its records is a task of {suite}"),
        }
        .into());
    }
    if let Some(wanted) = wanted {
        wanted.all_found(original)?;
    } else if let Some(selection) = recipe.selection.filter(|selection| selection.tasks != prepared.tasks) {
        return Err(PrepareError::NeedsIds {
            suite: suite.to_owned(),
            tasks: selection.tasks,
            found: prepared.tasks,
            origin: selection.source.to_owned(),
        });
    }
    std::fs::create_dir_all(folder).map_err(write(folder))?;
    // Whole or not at all.
    let unfinished = folder.join(".standardized_data.jsonl.part");
    let mut out = std::fs::File::create(&unfinished).map_err(write(&unfinished))?;
    out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(write(&unfinished))?;
    std::fs::rename(&unfinished, &file).map_err(write(&file))?;
    Ok(prepared)
}

/// One task; none where the suite leaves the record out.
fn standardized(
    recipe: &Recipe,
    record: Record,
    original: &Path,
    folder: &Path,
    number: usize,
    taken: impl FnOnce(&str) -> bool,
) -> Result<Option<Map<String, Value>>, PrepareError> {
    let name = original.display().to_string();
    let Record { line, mut fields } = record;
    let bad = |problem: String| PrepareError::Bad(BadRecord { file: name.clone(), line, problem });
    let found = fields.keys().cloned().collect::<Vec<_>>().join(", ");
    let mut take = |names: &[&str]| {
        let name = names.iter().find(|name| fields.contains_key(**name))?;
        fields.shift_remove(*name)
    };
    let missing = |names: &[&str]| PrepareError::NotTheOriginal {
        file: name.clone(),
        suite: recipe.suite.to_owned(),
        wanted: names.join(", "),
        found: found.clone(),
    };
    let id = take(recipe.id).as_ref().and_then(scalar_text);
    let question = take(recipe.question).ok_or_else(|| missing(recipe.question))?;
    let answer = match take(recipe.answer) {
        Some(answer) => answer,
        None if recipe.is_open => Value::Null,
        None => return Err(missing(recipe.answer)),
    };
    let file_name = take(recipe.file).as_ref().and_then(scalar_text);
    let picture = take(recipe.picture).as_ref().and_then(scalar_text);
    if recipe.text_only && (picture.is_some() || file_name.is_some()) {
        return Ok(None);
    }
    let task_id = id.unwrap_or_else(|| format!("{}-{number:04}", recipe.suite));
    if !taken(&task_id) {
        return Ok(None);
    }
    let key = fields.get("canary").and_then(scalar_text);
    let deciphered = |value: &Value| -> Result<Option<String>, PrepareError> {
        let Some(text) = scalar_text(value) else { return Ok(None) };
        cipher::decipher(recipe.cipher, &text, key.as_deref()).map(Some).map_err(&bad)
    };
    let question = deciphered(&question)?.ok_or_else(|| bad("the question is empty".to_owned()))?;
    let answer = match answer {
        Value::Array(_) | Value::Object(_) => Some(answer.to_string()),
        other => deciphered(&other)?.filter(|answer| Some(answer.as_str()) != recipe.no_answer),
    };
    let mut task = Map::new();
    task.insert("task_id".to_owned(), json!(task_id));
    task.insert("task_question".to_owned(), json!(question));
    task.insert("ground_truth".to_owned(), json!(answer));
    if let Some(name) = file_name {
        copy_beside(original, folder, &name).map_err(&bad)?;
        task.insert("file_name".to_owned(), json!(name));
    } else if let Some(picture) = picture {
        let name = pictures::write(&picture, &task_id, folder).map_err(&bad)?;
        task.insert("file_name".to_owned(), json!(name));
    }
    for name in recipe.also_enciphered {
        let Some(Value::String(value)) = fields.get_mut(*name) else { continue };
        if let Ok(plain) = cipher::decipher(recipe.cipher, value, key.as_deref())
            && !plain.contains(|c: char| c.is_control() && !c.is_whitespace())
        {
            *value = plain;
        }
    }
    let is_kept = |name: &str| !recipe.left_out.contains(&name) && !task.contains_key(name);
    fields.retain(|name, value| !value.is_null() && is_kept(name));
    task.extend(fields);
    Ok(Some(task))
}

/// Brings the file of a task into the folder of the prepared tasks, where it is looked for. One that the user does not
/// have is missed when a run that needs it begins; one that is in the folder already stays.
fn copy_beside(original: &Path, folder: &Path, name: &str) -> Result<(), String> {
    let is_plain = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !is_plain {
        return Err(format!("{name:?} is no name of a file beside the original"));
    }
    let (source, target) =
        (original.parent().unwrap_or_else(|| Path::new(".")).join(name), folder.join(name));
    if !source.is_file() || target.exists() {
        return Ok(());
    }
    let parent = target.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::copy(&source, &target))
        .map(|_| ())
        .map_err(|error| format!("{} cannot be copied to {}: {error}", source.display(), target.display()))
}
