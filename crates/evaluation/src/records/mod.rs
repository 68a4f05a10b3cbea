//! Files of records, whatever their format: JSON lines, JSON, CSV, TSV, Parquet. Decides how a record is read and
//! where it stands; what its fields mean is left to [`crate::dataset`] and [`crate::prepare`].

mod json;
#[cfg(feature = "parquet")]
mod parquet;
mod separated;

use std::path::Path;

use serde_json::{Map, Value};

/// A record with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Line of the file, or number of the record where the format has no lines; from 1.
    pub line: usize,
    /// Its fields in the order of the file.
    pub fields: Map<String, Value>,
}

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct BadRecord {
    /// The file.
    pub file: String,
    /// Its line or number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// A file that cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// It cannot be opened or read.
    #[error("{file} cannot be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// Its name ends in nothing that is known.
    #[error("{file} is no .jsonl, .json, .csv, .tsv or .parquet file")]
    UnknownFormat {
        /// The file.
        file: String,
    },
    /// Its content is not of its format.
    #[error("{file}: {problem}")]
    Broken {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Reads all records of a file; those that cannot be read are in their places as errors.
///
/// # Errors
///
/// A file that cannot be read at all.
pub fn read_records(file: &Path) -> Result<Vec<Result<Record, BadRecord>>, RecordsError> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).map_err(|source| RecordsError::Read { file: name.clone(), source })?;
    records_of(&name, bytes)
}

/// Reads the records of a file's content; its name tells the format and stands in errors.
///
/// # Errors
///
/// Content that cannot be read at all.
pub fn records_of(name: &str, bytes: Vec<u8>) -> Result<Vec<Result<Record, BadRecord>>, RecordsError> {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("jsonl" | "ndjson") => Ok(json::lines(name, &bytes)),
        Some("json") => json::whole(name, &bytes),
        Some("csv") => separated::records(name, &bytes, b','),
        Some("tsv") => separated::records(name, &bytes, b'\t'),
        #[cfg(feature = "parquet")]
        Some("parquet") => parquet::records(name, bytes),
        #[cfg(not(feature = "parquet"))]
        Some("parquet") => Err(RecordsError::Broken {
            file: name.to_owned(),
            problem: "this program was built without the feature `parquet`; convert the file to .jsonl"
                .to_owned(),
        }),
        _ => Err(RecordsError::UnknownFormat { file: name.to_owned() }),
    }
}

/// Whether a file is named like one of records.
#[must_use]
pub fn is_named_so(file: &Path) -> bool {
    const EXTENSIONS: [&str; 6] = ["jsonl", "ndjson", "json", "csv", "tsv", "parquet"];
    file.extension().and_then(|extension| extension.to_str()).is_some_and(|e| EXTENSIONS.contains(&e))
}

/// A text or number as text; none for anything else, empty texts too.
#[must_use]
pub fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
