//! What can go wrong with libraries, and what a program may do about it.
//!
//! Decides the wording of each failure. Files that cannot be read inside a folder are no errors:
//! they are skipped and counted.

use std::io;
use std::path::{Path, PathBuf};

/// An error of adding, opening or reading libraries.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// A name that cannot be used in document ids and file names.
    #[error(
        "`{name}` cannot name a library: use 1 to 64 letters, digits, `-`, `_` and `.`, not starting with `.`"
    )]
    InvalidName {
        /// The name as given.
        name: String,
    },
    /// Two libraries of one name.
    #[error(
        "there is already a library `{name}` ({existing}): choose another name, or remove that one first"
    )]
    DuplicateName {
        /// The name.
        name: String,
        /// What has it now.
        existing: String,
    },
    /// No library of that name.
    #[error("there is no library `{name}`; there is: {known}")]
    UnknownLibrary {
        /// The name as given.
        name: String,
        /// Those that there are, or `none`.
        known: String,
    },
    /// Something other than a folder was given as one.
    #[error("{} is not a folder: name a folder of documents", path.display())]
    NotAFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `read`, `write`…
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A data file is not what it should be.
    #[error("{} is damaged: {problem}; remove it and add the library again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The full-text index failed even after it had been built anew.
    #[error("the index of library `{library}` failed: {problem}; remove its cache directory and try again")]
    Index {
        /// The library.
        library: String,
        /// What the index says.
        problem: String,
    },
    /// A document id that no library has.
    #[error("{}", unknown_document(id, nearest))]
    UnknownDocument {
        /// The id as given.
        id: String,
        /// Ids that look like it, best first.
        nearest: Vec<String>,
    },
    /// An offset at or past the end of a document.
    #[error(
        "offset {offset} is past the end of document `{id}`, which has {total} characters: give an offset below {total}"
    )]
    OffsetPastEnd {
        /// The document.
        id: String,
        /// The offset as given, in characters.
        offset: u64,
        /// The length of the document, in characters.
        total: u64,
    },
    /// A query without a word in it.
    #[error("the query is empty: give a few words, a name or a quoted phrase to search for")]
    EmptyQuery,
    /// The update was stopped because its server ended.
    #[error("indexing of library `{library}` was stopped before it was complete")]
    Stopped {
        /// The library.
        library: String,
    },
    /// The program that fetches packages could not be used.
    #[error("cannot fetch the starter library: {problem}. {remedy}")]
    Fetch {
        /// What happened.
        problem: String,
        /// What to do.
        remedy: String,
        /// Whether the same call may work later.
        transient: bool,
    },
    /// A fetched file is not the one that was expected.
    #[error(
        "{} has sha256 {actual}, but {expected} was expected: the file is damaged or another version; \
         nothing was installed",
        path.display()
    )]
    HashMismatch {
        /// The file.
        path: PathBuf,
        /// Hexadecimal.
        expected: String,
        /// Hexadecimal.
        actual: String,
    },
    /// A folder that should hold the package files does not.
    #[error("{} holds no {missing}; fetch it with `{command}`", directory.display())]
    MissingPackage {
        /// The folder.
        directory: PathBuf,
        /// The file name that was looked for.
        missing: String,
        /// A command that fetches it.
        command: String,
    },
}

impl LibraryError {
    /// Whether the caller named something that is not there or cannot be used, rather than something failing.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::InvalidName { .. }
            | Self::DuplicateName { .. }
            | Self::UnknownLibrary { .. }
            | Self::NotAFolder { .. }
            | Self::UnknownDocument { .. }
            | Self::OffsetPastEnd { .. }
            | Self::EmptyQuery => true,
            Self::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
            Self::Damaged { .. }
            | Self::Index { .. }
            | Self::Stopped { .. }
            | Self::Fetch { .. }
            | Self::HashMismatch { .. }
            | Self::MissingPackage { .. } => false,
        }
    }

    /// A stable word for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::InvalidName { .. } => "invalid_name",
            Self::DuplicateName { .. } => "duplicate_name",
            Self::UnknownLibrary { .. } => "unknown_library",
            Self::NotAFolder { .. } => "not_a_folder",
            Self::Io { .. } => "io",
            Self::Damaged { .. } => "damaged",
            Self::Index { .. } => "index",
            Self::UnknownDocument { .. } => "unknown_document",
            Self::OffsetPastEnd { .. } => "offset_past_end",
            Self::EmptyQuery => "empty_query",
            Self::Stopped { .. } => "stopped",
            Self::Fetch { .. } => "fetch",
            Self::HashMismatch { .. } => "hash_mismatch",
            Self::MissingPackage { .. } => "missing_package",
        }
    }

    /// Whether the same call may work when it is tried again, with nothing changed.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Fetch { transient, .. } => *transient,
            Self::Stopped { .. } => true,
            Self::InvalidName { .. }
            | Self::DuplicateName { .. }
            | Self::UnknownLibrary { .. }
            | Self::NotAFolder { .. }
            | Self::Io { .. }
            | Self::Damaged { .. }
            | Self::Index { .. }
            | Self::UnknownDocument { .. }
            | Self::OffsetPastEnd { .. }
            | Self::EmptyQuery
            | Self::HashMismatch { .. }
            | Self::MissingPackage { .. } => false,
        }
    }

    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    pub(super) fn index(library: &str, problem: impl std::fmt::Display) -> Self {
        Self::Index { library: library.to_owned(), problem: problem.to_string() }
    }
}

fn unknown_document(id: &str, nearest: &[String]) -> String {
    // An id comes from a model and may be a whole page.
    let shown: String = id.chars().take(200).collect();
    if nearest.is_empty() {
        format!("no document has the id `{shown}`; take an id from the results of search_library")
    } else {
        let list = nearest.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
        format!("no document has the id `{shown}`. The nearest ids: {list}")
    }
}
