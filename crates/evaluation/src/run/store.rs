//! The folder of a run: `header.json`, `results.jsonl`, `runs/`. Decides what is on disk when, so that a kill at any
//! moment loses no finished sample and no verdict, and doubles none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pipeline::lock::{FolderLock, LockError};

use super::header::{HEADER_SCHEMA, Header, Invocation, Mismatch};
use super::runner::run_folder;
use crate::judge::Identity;
use crate::sample::{Row, SampleId};

const HEADER: &str = "header.json";
const PART_OF_HEADER: &str = "header.part";
const RESULTS: &str = "results.jsonl";
const LOCK: &str = ".lock";
/// Rows that were judged again and are not in their place yet.
const JUDGED: &str = "judged.part.jsonl";

/// What is wrong with a run's folder.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Something cannot be read.
    #[error("{file} cannot be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// Something cannot be written.
    #[error("{file} cannot be written: {source}")]
    Write {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the run is not what it should be.
    #[error("{file}{}: {problem}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
    Damaged {
        /// The file.
        file: String,
        /// Its line, from 1, where it has lines.
        line: Option<usize>,
        /// What is wrong.
        problem: String,
    },
    /// The folder is no run's.
    #[error("{folder} is no folder of a benchmark run: it has no {HEADER}")]
    NoRun {
        /// The folder.
        folder: String,
    },
    /// The folder holds a run of another configuration.
    #[error(
        "{folder} holds a run of another configuration:\n{}\nChoose another folder with --out, or go on with the run \
         as it was: fathom-bench resume {folder}{}",
        .mismatches.iter().map(|mismatch| format!("  {mismatch}")).collect::<Vec<_>>().join("\n"),
        if .mismatches.iter().any(|mismatch| mismatch.what.starts_with("servers")) {
            " --mcp-config FILE, with the file of then"
        } else {
            ""
        }
    )]
    OtherRun {
        /// The folder.
        folder: String,
        /// What differs.
        mismatches: Vec<Mismatch>,
    },
    /// The folder holds verdicts of another judge.
    #[error(
        "{folder} was judged by {there}, and {asked} was asked for; figures of one run come from one judge:\n  {}\nGo \
         on with the judge of before, or let the other one judge every answer again: fathom-bench score {folder} \
         --judge …",
        differences(.there, .asked)
    )]
    OtherJudge {
        /// The folder.
        folder: String,
        /// Who judged.
        there: Box<Identity>,
        /// Who was asked for.
        asked: Box<Identity>,
    },
    /// The folder holds something else.
    #[error("{folder} holds something that is no benchmark run; choose an empty folder with --out")]
    NotEmpty {
        /// The folder.
        folder: String,
    },
    /// Another program is at work there.
    #[error("another fathom-bench is at work in {folder}; wait for it, or stop it first")]
    Busy {
        /// The folder.
        folder: String,
    },
}

/// The folder of a run, held by this program.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    header: Header,
    rows: BTreeMap<SampleId, Row>,
    results: File,
    _lock: FolderLock,
}

impl Store {
    /// Opens the folder for a run: a new one, or the one that is there if it is of the same configuration.
    ///
    /// # Errors
    ///
    /// A folder that is in use, holds something else, is damaged or cannot be written. Nothing is changed then.
    pub fn open(folder: &Path, header: Header) -> Result<Self, StoreError> {
        let file = folder.join(HEADER);
        if file.exists() {
            let there = read_header(folder)?;
            let mismatches = there.mismatches(&header);
            if !mismatches.is_empty() {
                return Err(StoreError::OtherRun { folder: folder.display().to_string(), mismatches });
            }
            let mut store = Self::reopen(folder)?;
            if there.judge != header.judge {
                if store.rows().any(|row| row.verdict_of().is_some()) {
                    return Err(StoreError::OtherJudge {
                        folder: folder.display().to_string(),
                        there: Box::new(there.judge),
                        asked: Box::new(header.judge),
                    });
                }
                store.set_judge(header.judge, header.invocation)?;
            }
            return Ok(store);
        }
        // A header that was being written when the program was killed is no header.
        let is_ours = |name: &str| name.starts_with('.') || name == PART_OF_HEADER;
        let in_use = std::fs::read_dir(folder).is_ok_and(|entries| {
            entries.flatten().any(|entry| !is_ours(&entry.file_name().to_string_lossy()))
        });
        if in_use {
            return Err(StoreError::NotEmpty { folder: folder.display().to_string() });
        }
        std::fs::create_dir_all(folder).map_err(|source| write_error(folder, source))?;
        let lock = held(folder)?;
        write_header(folder, &header)?;
        Self::with(folder, header, lock)
    }

    /// Opens the folder of a run that is there.
    ///
    /// # Errors
    ///
    /// As for [`Store::open`].
    pub fn reopen(folder: &Path) -> Result<Self, StoreError> {
        let header = read_header(folder)?;
        let lock = held(folder)?;
        Self::with(folder, header, lock)
    }

    fn with(folder: &Path, header: Header, lock: FolderLock) -> Result<Self, StoreError> {
        let file = folder.join(RESULTS);
        let rows = read_rows(folder)?;
        // A torn line is a sample that had not ended: it goes, and whatever follows begins on a line of its own.
        let torn = std::fs::read(&file).is_ok_and(|bytes| bytes.last().is_some_and(|byte| *byte != b'\n'));
        let judged = folder.join(JUDGED);
        if torn || judged.exists() {
            replace(&file, lines(rows.iter()).as_bytes())?;
            remove(&judged)?;
        }
        let results = File::options()
            .create(true)
            .append(true)
            .open(&file)
            .map_err(|source| write_error(&file, source))?;
        let rows = rows.into_iter().map(|row| (row.sample.clone(), row)).collect();
        Ok(Self { folder: folder.to_owned(), header, rows, results, _lock: lock })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the run is made of.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The rows in the order of tasks and epochs.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// The row of a sample that has ended.
    #[must_use]
    pub fn row(&self, sample: &SampleId) -> Option<&Row> {
        self.rows.get(sample)
    }

    /// Keeps the row of a sample that has ended; it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// A full or read-only disk.
    pub fn add(&mut self, row: Row) -> Result<(), StoreError> {
        let file = self.folder.join(RESULTS);
        let line = lines(std::iter::once(&row));
        self.results
            .write_all(line.as_bytes())
            .and_then(|()| self.results.sync_data())
            .map_err(|source| write_error(&file, source))?;
        self.rows.insert(row.sample.clone(), row);
        Ok(())
    }

    /// Says that another judge judges this run; `invocation` has how it was asked for.
    ///
    /// # Errors
    ///
    /// A full or read-only disk; the old header stays then.
    pub fn set_judge(&mut self, judge: Identity, invocation: Invocation) -> Result<(), StoreError> {
        let header = Header { judge, invocation, ..self.header.clone() };
        write_header(&self.folder, &header)?;
        self.header = header;
        Ok(())
    }

    /// Keeps a row that was judged again; it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// A full or read-only disk.
    pub fn put(&mut self, row: Row) -> Result<(), StoreError> {
        let file = self.folder.join(JUDGED);
        File::options()
            .create(true)
            .append(true)
            .open(&file)
            .and_then(|mut judged| {
                judged.write_all(lines(std::iter::once(&row)).as_bytes())?;
                judged.sync_data()
            })
            .map_err(|source| write_error(&file, source))?;
        self.rows.insert(row.sample.clone(), row);
        Ok(())
    }

    /// Puts the rows that were judged again into their places.
    ///
    /// # Errors
    ///
    /// As for [`Store::rewrite`]; nothing is lost then.
    pub fn settle(&mut self) -> Result<(), StoreError> {
        let judged = self.folder.join(JUDGED);
        if judged.exists() {
            let rows = self.rows.values().cloned().collect();
            self.rewrite(rows)?;
            remove(&judged)?;
        }
        Ok(())
    }

    /// Keeps the rows as they are now in a file of their own, which is named for their judge. What another file of that
    /// name has, such as the verdicts with another number of votes, is never lost.
    ///
    /// # Errors
    ///
    /// A full or read-only disk.
    pub(crate) fn keep_rows(&self) -> Result<PathBuf, StoreError> {
        let judge = &self.header.judge;
        let name: String = [judge.judge.as_str(), judge.model.as_str()]
            .join(" ")
            .trim()
            .chars()
            .map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
            .collect();
        let rows = lines(self.rows());
        let mut file = self.folder.join(format!("results.by-{name}.jsonl"));
        let mut number = 1;
        while file.exists() {
            if std::fs::read(&file).is_ok_and(|kept| kept == rows.as_bytes()) {
                return Ok(file);
            }
            number += 1;
            file = self.folder.join(format!("results.by-{name}-{number}.jsonl"));
        }
        replace(&file, rows.as_bytes())?;
        Ok(file)
    }

    /// Replaces rows, all of them or none: after judging again, or before samples are run again.
    ///
    /// # Errors
    ///
    /// A full or read-only disk; the old rows stay then.
    pub fn rewrite(&mut self, rows: Vec<Row>) -> Result<(), StoreError> {
        let file = self.folder.join(RESULTS);
        replace(&file, lines(rows.iter()).as_bytes())?;
        self.results =
            File::options().append(true).open(&file).map_err(|source| write_error(&file, source))?;
        self.rows = rows.into_iter().map(|row| (row.sample.clone(), row)).collect();
        Ok(())
    }
}

fn write_header(folder: &Path, header: &Header) -> Result<(), StoreError> {
    let text = serde_json::to_string_pretty(header).unwrap_or_default();
    replace(&folder.join(HEADER), format!("{text}\n").as_bytes())
}

fn held(folder: &Path) -> Result<FolderLock, StoreError> {
    let file = folder.join(LOCK);
    FolderLock::take(&file).map_err(|error| match error {
        LockError::Held(_) => StoreError::Busy { folder: folder.display().to_string() },
        LockError::Io(source) => write_error(&file, source),
    })
}

fn lines<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    rows.map(|row| serde_json::to_string(row).unwrap_or_default() + "\n").collect()
}

/// Reads a run without holding its folder.
///
/// # Errors
///
/// No run, or a damaged one.
pub fn read_run(folder: &Path) -> Result<(Header, Vec<Row>), StoreError> {
    Ok((read_header(folder)?, read_rows(folder)?))
}

/// Folders of runs that have begun and have no row, under way or interrupted, and when each began where that is known.
#[must_use]
pub fn running_samples(folder: &Path, rows: &[Row]) -> Vec<(String, Option<SystemTime>)> {
    let ended: BTreeSet<String> = rows.iter().map(|row| run_folder(&row.sample)).collect();
    let entries = std::fs::read_dir(folder.join("runs")).into_iter().flatten().flatten();
    let runs = entries.filter_map(|entry| {
        let began = entry.metadata().ok().and_then(|facts| facts.created().ok());
        Some((entry.file_name().into_string().ok()?, began))
    });
    runs.filter(|(name, _)| !ended.contains(name)).collect()
}

/// Whether a program is at work in the folder.
#[must_use]
pub fn is_at_work(folder: &Path) -> bool {
    FolderLock::is_held(&folder.join(LOCK))
}

/// The time of a row or header; none where it is no RFC 3339.
#[must_use]
pub fn time_of(text: &str) -> Option<SystemTime> {
    text.parse::<jiff::Timestamp>().ok().map(SystemTime::from)
}

fn read_header(folder: &Path) -> Result<Header, StoreError> {
    let file = folder.join(HEADER);
    let text = std::fs::read_to_string(&file).map_err(|source| {
        if source.kind() == std::io::ErrorKind::NotFound {
            StoreError::NoRun { folder: folder.display().to_string() }
        } else {
            StoreError::Read { file: file.display().to_string(), source }
        }
    })?;
    let damaged =
        |problem: String| StoreError::Damaged { file: file.display().to_string(), line: None, problem };
    let version = serde_json::from_str::<Version>(&text).map_err(|error| damaged(error.to_string()))?;
    if version.schema > HEADER_SCHEMA {
        return Err(damaged(format!(
            "it is of a later fathom-bench (version {} of this file; this program knows {HEADER_SCHEMA}): take that one",
            version.schema
        )));
    }
    serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))
}

/// The part of a header that every version has.
#[derive(serde::Deserialize)]
struct Version {
    schema: u32,
}

/// The rows with their latest verdicts. A torn last line is no row; a broken line before it is damage.
///
/// # Errors
///
/// A file that cannot be read, or is damaged.
fn read_rows(folder: &Path) -> Result<Vec<Row>, StoreError> {
    let mut rows: BTreeMap<SampleId, Row> = BTreeMap::new();
    let file = folder.join(RESULTS);
    for (line, row) in rows_of(&file)? {
        if rows.contains_key(&row.sample) {
            return Err(StoreError::Damaged {
                file: file.display().to_string(),
                line: Some(line),
                problem: format!("task {} has epoch {} twice", row.sample.task_id, row.sample.epoch),
            });
        }
        rows.insert(row.sample.clone(), row);
    }
    for (_, judged) in rows_of(&folder.join(JUDGED))? {
        if let Some(row) = rows.get_mut(&judged.sample) {
            *row = judged;
        }
    }
    Ok(rows.into_values().collect())
}

/// The rows of a file that need not be there, with their line numbers from 1.
fn rows_of(file: &Path) -> Result<Vec<(usize, Row)>, StoreError> {
    let text = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(StoreError::Read { file: file.display().to_string(), source }),
    };
    let mut rows = Vec::new();
    let mut lines = text.split(|byte| *byte == b'\n').zip(1..).peekable();
    while let Some((line, number)) = lines.next() {
        if line.is_empty() || lines.peek().is_none() {
            continue;
        }
        let row = serde_json::from_slice(line).map_err(|error| StoreError::Damaged {
            file: file.display().to_string(),
            line: Some(number),
            problem: error.to_string(),
        })?;
        rows.push((number, row));
    }
    Ok(rows)
}

/// Writes a file whole or not at all.
fn replace(file: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let part = file.with_extension("part");
    File::create(&part)
        .and_then(|mut out| out.write_all(bytes).and_then(|()| out.sync_all()))
        .and_then(|()| std::fs::rename(&part, file))
        .map_err(|source| write_error(file, source))
}

fn remove(file: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(write_error(file, error)),
        _ => Ok(()),
    }
}

fn differences(there: &Identity, asked: &Identity) -> String {
    there.differences(asked).join("\n  ")
}

fn write_error(file: &Path, source: std::io::Error) -> StoreError {
    StoreError::Write { file: file.display().to_string(), source }
}
