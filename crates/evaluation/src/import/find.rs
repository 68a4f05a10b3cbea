//! Where the reference keeps its logs. Decides which folders are runs, which runs are epochs of one thing, and what the
//! names of logs say; what stands in the logs is `log`'s.

use std::path::{Path, PathBuf};

use super::ImportError;

/// Runs that make one run of ours: those of one model and agent over a suite, an epoch each; or one of them, where
/// tasks were tried until they were right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The folder that holds the runs.
    pub(super) folder: PathBuf,
    /// Where it is below the folder that was given.
    pub(super) below: PathBuf,
    /// The runs with their numbers.
    pub(super) runs: Vec<(u32, PathBuf)>,
    /// Attempts that a task had at most.
    pub(super) attempts: u32,
}

impl Source {
    /// Where it is below the folder that was given; empty where it is that folder.
    #[must_use]
    pub fn below(&self) -> &Path {
        &self.below
    }

    /// What its suite may be called, the likeliest first: the folder above it, unless that is named for a day, and
    /// the folder itself, which is the suite's in an export of ours.
    #[must_use]
    pub fn suite_names(&self) -> Vec<String> {
        let is_day = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
        let mut names: Vec<String> = self
            .folder
            .ancestors()
            .filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()))
            .collect();
        let own = if names.is_empty() { None } else { Some(names.remove(0)) };
        names.retain(|name| !is_day(name));
        names.truncate(1);
        names.extend(own);
        names
    }
}

/// How deep below the given folder runs may be: suite, day, provider.
const DEPTH: usize = 3;

/// The runs in a folder of the reference: that of a run, of a model's runs, of a suite, or of several suites.
///
/// # Errors
///
/// A folder without task logs.
pub fn find(from: &Path) -> Result<Vec<Source>, ImportError> {
    let folder = std::fs::canonicalize(from).unwrap_or_else(|_| from.to_owned());
    let mut sources = Vec::new();
    collect(&folder, Path::new(""), DEPTH, &mut sources);
    if sources.is_empty() {
        return Err(ImportError::NoLogs { folder: from.display().to_string() });
    }
    Ok(sources)
}

fn collect(folder: &Path, below: &Path, depth: usize, sources: &mut Vec<Source>) {
    let folders = folders_in(folder);
    let runs: Vec<(u32, PathBuf)> = folders
        .iter()
        .filter_map(|(name, path)| Some((run_number(name)?, path.clone())))
        .filter(|(_, path)| !logs_in(path).is_empty())
        .collect();
    if !runs.is_empty() {
        sources.extend(together(folder, below, runs));
    } else if !logs_in(folder).is_empty() {
        let number = folder.file_name().and_then(|name| run_number(name.to_str()?));
        sources.push(Source {
            folder: number.and(folder.parent()).unwrap_or(folder).to_owned(),
            below: below.to_owned(),
            runs: vec![(number.unwrap_or(1), folder.to_owned())],
            attempts: attempts_in(folder),
        });
    } else if depth > 0 {
        for (name, path) in folders {
            collect(&path, &below.join(name), depth - 1, sources);
        }
    }
}

/// Attempts that end with the first right one are no epochs: such runs stand alone, and all of them were allowed as many.
fn together(folder: &Path, below: &Path, mut runs: Vec<(u32, PathBuf)>) -> Vec<Source> {
    runs.sort();
    let attempts = runs.iter().map(|(_, run)| attempts_in(run)).max().unwrap_or(1);
    if attempts > 1 && runs.len() > 1 {
        let alone = |(number, run): (u32, PathBuf)| Source {
            folder: folder.to_owned(),
            below: below.join(format!("run_{number}")),
            attempts,
            runs: vec![(number, run)],
        };
        return runs.into_iter().map(alone).collect();
    }
    vec![Source { folder: folder.to_owned(), below: below.to_owned(), runs, attempts }]
}

/// Folders in a folder, hidden ones aside, by name.
fn folders_in(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<(String, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .filter(|(name, path)| !name.starts_with('.') && path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn run_number(name: &str) -> Option<u32> {
    name.strip_prefix("run_")?.parse().ok().filter(|number| *number > 0)
}

/// The task logs in the folder of a run.
pub(super) fn logs_in(run: &Path) -> Vec<(LogName, PathBuf)> {
    let entries = std::fs::read_dir(run).into_iter().flatten().flatten();
    let mut logs: Vec<(LogName, PathBuf)> =
        entries.filter_map(|entry| Some((log_name(entry.file_name().to_str()?)?, entry.path()))).collect();
    logs.sort();
    logs
}

/// Attempts that a task had at most: those that have logs, or that were allowed, which the name of the file with the
/// run's accuracy says.
fn attempts_in(run: &Path) -> u32 {
    let tried = logs_in(run).iter().map(|(name, _)| name.attempt).max();
    let entries = std::fs::read_dir(run).into_iter().flatten().flatten();
    let allowed = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let (_, allowed) = name.strip_suffix("_accuracy.txt")?.rsplit_once("_pass_at_")?;
        allowed.parse::<u32>().ok()
    });
    allowed.chain(tried).max().unwrap_or(1)
}

/// A log by what its name says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogName {
    pub(super) task: String,
    pub(super) attempt: u32,
    /// When the log was begun, as the name has it; empty where it says nothing.
    pub(super) time: String,
    pub(super) retry: u32,
}

/// `task_ID_attempt-K_format-retry-R_TIME.json`, of old `task_ID_attempt_K….json` or `task_ID_TIME.json`, and
/// `ID_attempt_K.json` or `task_ID_attempt_K_retry_R.json` in the other of its two programs.
fn log_name(file: &str) -> Option<LogName> {
    let name = file.strip_suffix(".json")?;
    let prefixed = name.strip_prefix("task_");
    let name = prefixed.unwrap_or(name);
    let cut = name.rsplit_once("_attempt-").or_else(|| name.rsplit_once("_attempt_"));
    let Some((task, rest)) = cut else {
        let (task, time) = name.rsplit_once('_').filter(|(_, time)| is_time(time))?;
        return prefixed.map(|_| LogName {
            task: task.to_owned(),
            attempt: 1,
            time: time.to_owned(),
            retry: 0,
        });
    };
    let (attempt, rest) = rest.split_once('_').unwrap_or((rest, ""));
    let (retry, time) = match rest.strip_prefix("format-retry-").or_else(|| rest.strip_prefix("retry_")) {
        Some(rest) => rest.split_once('_').unwrap_or((rest, "")),
        None => ("0", rest),
    };
    let is_log = !task.is_empty() && (prefixed.is_some() || rest.is_empty());
    let attempt = attempt.parse().ok().filter(|attempt| is_log && *attempt > 0)?;
    Some(LogName { task: task.to_owned(), attempt, time: time.to_owned(), retry: retry.parse().ok()? })
}

/// `2025-08-13-10-13-20`.
fn is_time(text: &str) -> bool {
    text.len() == 19
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 | 10 | 13 | 16 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_logs() {
        let name = |task: &str, attempt, retry, time: &str| {
            Some(LogName { task: task.into(), attempt, retry, time: time.into() })
        };
        for (file, expected) in [
            (
                "task_a_b_attempt-2_format-retry-1_2026-01-02-03-04-05.json",
                name("a_b", 2, 1, "2026-01-02-03-04-05"),
            ),
            ("task_x_attempt-1_2026.json", name("x", 1, 0, "2026")),
            ("task_x_attempt_3.json", name("x", 3, 0, "")),
            ("task_x_2026-01-02-03-04-05.json", name("x", 1, 0, "2026-01-02-03-04-05")),
            ("task_a_b_attempt_2_retry_3.json", name("a_b", 2, 3, "")),
            ("a_b_attempt_2.json", name("a_b", 2, 0, "")),
            ("task_root_attempt_0_retry_0.json", None),
            ("task_x_attempt_one.json", None),
            ("task_x_attempt-1_format-retry-0_2026.json.tmp", None),
            ("_attempt_1.json", None),
            ("task_no_attempt.json", None),
            ("notes_2026-01-02-03-04-05.json", None),
            ("summary_time_cost.json", None),
            ("log_root.json", None),
        ] {
            assert_eq!(log_name(file), expected, "{file}");
        }
    }

    #[test]
    fn names_of_suites() {
        for (folder, expected) in [
            ("/logs/gaia-validation/qwen_model_single", vec!["gaia-validation", "qwen_model_single"]),
            ("/logs/gaia-validation/0813/qwen_model_single", vec!["gaia-validation", "qwen_model_single"]),
            ("/smoke", vec!["smoke"]),
            ("/", vec![]),
        ] {
            let source =
                Source { folder: folder.into(), below: PathBuf::new(), runs: Vec::new(), attempts: 1 };
            assert_eq!(source.suite_names(), expected, "{folder}");
        }
    }
}
