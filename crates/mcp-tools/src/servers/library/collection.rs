//! Named collections of documents: what is searched.
//!
//! Decides where documents come from and what a document is. Reading a folder is left to `folder`,
//! the index to `index`.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::LibraryError;

/// The longest name of a collection, in bytes.
const NAME_LIMIT: usize = 64;

/// One document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Unique in its collection. Models see it as `<collection>/<id>`.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// Its text, Markdown.
    pub body: String,
    /// Where it comes from: an address, a path, the name of a publication.
    pub source: String,
    /// The terms under which its text may be used, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// The part of a collection that it belongs to. The results of a search are spread over the
    /// groups; none is a group of the whole collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// Where the documents of a collection are.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Source {
    /// In memory, for instance in the binary.
    Documents(Arc<[Document]>),
    /// In a folder and the folders below it, as files.
    Folder(PathBuf),
    /// In a file of JSON objects, one [`Document`] a line.
    JsonLines(PathBuf),
}

/// A named set of documents.
#[derive(Debug, Clone)]
pub struct Collection {
    /// The first part of the ids of its documents.
    pub name: String,
    /// Where its documents are.
    pub source: Source,
    /// Where its index is kept, if not in the cache directory.
    pub index_dir: Option<PathBuf>,
}

impl Collection {
    /// Documents in memory. Of two with the same id the later one counts.
    ///
    /// # Errors
    ///
    /// [`LibraryError::InvalidName`].
    pub fn documents(
        name: impl Into<String>,
        documents: impl Into<Arc<[Document]>>,
    ) -> Result<Self, LibraryError> {
        Self::new(name.into(), Source::Documents(documents.into()))
    }

    /// The files of a folder.
    ///
    /// # Errors
    ///
    /// [`LibraryError::InvalidName`].
    pub fn folder(name: impl Into<String>, path: impl Into<PathBuf>) -> Result<Self, LibraryError> {
        Self::new(name.into(), Source::Folder(path.into()))
    }

    /// The files of a folder, under the folder's own name (or what a library may be called that is
    /// nearest to it).
    #[must_use]
    pub fn folder_by_its_name(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let absolute = path.canonicalize().unwrap_or_else(|_| path.clone());
        let name = absolute.file_name().map(|name| usable_name(&name.to_string_lossy())).unwrap_or_default();
        let name = if name.is_empty() { "documents".to_owned() } else { name };
        Self { name, source: Source::Folder(path), index_dir: None }
    }

    /// The documents of a file of JSON lines.
    ///
    /// # Errors
    ///
    /// [`LibraryError::InvalidName`].
    pub fn json_lines(name: impl Into<String>, path: impl Into<PathBuf>) -> Result<Self, LibraryError> {
        Self::new(name.into(), Source::JsonLines(path.into()))
    }

    /// The same collection with its index kept in `directory`.
    #[must_use]
    pub fn with_index_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.index_dir = Some(directory.into());
        self
    }

    fn new(name: String, source: Source) -> Result<Self, LibraryError> {
        check_name(&name)?;
        Ok(Self { name, source, index_dir: None })
    }

    /// What the collection is, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.source {
            Source::Documents(documents) => format!("{} built-in documents", documents.len()),
            Source::Folder(path) => format!("folder {}", path.display()),
            Source::JsonLines(path) => format!("file {}", path.display()),
        }
    }
}

/// Whether a collection may have this name.
///
/// # Errors
///
/// [`LibraryError::InvalidName`].
pub(super) fn check_name(name: &str) -> Result<(), LibraryError> {
    let usable = !name.is_empty()
        && name.len() <= NAME_LIMIT
        && !name.starts_with('.')
        && name.bytes().all(is_name_byte);
    if usable { Ok(()) } else { Err(LibraryError::InvalidName { name: name.to_owned() }) }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// A name with every run of unusable characters made one `-`; empty where nothing is left.
pub(super) fn usable_name(raw: &str) -> String {
    let mut name = String::new();
    for character in raw.chars() {
        let usable = character.is_ascii() && is_name_byte(character as u8);
        if usable {
            name.push(character);
        } else if !name.ends_with('-') {
            name.push('-');
        }
        if name.len() >= NAME_LIMIT {
            break;
        }
    }
    name.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_ids_and_files() {
        for (name, usable) in [
            ("notes", true),
            ("my-notes_2.0", true),
            ("", false),
            (".hidden", false),
            ("a/b", false),
            ("a b", false),
            ("größe", false),
            (&"x".repeat(64), true),
            (&"x".repeat(65), false),
        ] {
            assert_eq!(check_name(name).is_ok(), usable, "{name}");
        }
    }

    #[test]
    fn any_folder_gives_a_usable_name_or_none() {
        for (raw, expected) in [
            ("notes", "notes"),
            ("My Notes (old)", "My-Notes-old"),
            (".config", "config"),
            ("文書", ""),
            ("Größe", "Gr-e"),
            ("..", ""),
        ] {
            let name = usable_name(raw);
            assert_eq!(name, expected);
            assert!(name.is_empty() || check_name(&name).is_ok());
        }
    }
}
