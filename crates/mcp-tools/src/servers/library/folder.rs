//! The files of a folder as documents.
//!
//! Decides which files are looked at, what a document made of one is called, and what is left out
//! and counted. Getting text out of the formats is left to the reading server's converter.

use std::collections::BTreeMap;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use super::collection::Document;
use super::error::LibraryError;
use super::manifest::{Skip, Stamp};
use crate::servers::reading::{ReadingError, to_markdown};

/// Folders in folders that are gone down into.
const DEPTH_LIMIT: usize = 64;
/// Characters of a title.
const TITLE_LIMIT: usize = 200;

/// What a folder may hold at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderLimits {
    /// Bytes of one file; larger ones are skipped and counted.
    pub max_file_bytes: u64,
    /// Files; those after them, in the order of their paths, are skipped and counted.
    pub max_files: usize,
}

impl Default for FolderLimits {
    fn default() -> Self {
        Self { max_file_bytes: 32 << 20, max_files: 200_000 }
    }
}

/// One file that may give a document.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// Bytes.
    pub(super) size: u64,
    pub(super) stamp: Option<Stamp>,
}

/// What a folder holds, unread.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// By the path below the folder, with `/` between its parts.
    pub(super) files: BTreeMap<String, File>,
    /// Files that are left out at sight. A hidden folder counts as one.
    pub(super) skipped: BTreeMap<Skip, u64>,
}

impl Listing {
    fn skip(&mut self, reason: Skip) {
        *self.skipped.entry(reason).or_default() += 1;
    }
}

/// Lists a folder and all below it. Folders that cannot be listed are counted as unreadable.
///
/// # Errors
///
/// Where the folder itself is none or cannot be listed.
pub(super) fn list(folder: &Path, limits: FolderLimits) -> Result<Listing, LibraryError> {
    let root = folder.canonicalize().map_err(|error| LibraryError::io("open folder", folder, error))?;
    if !root.is_dir() {
        return Err(LibraryError::NotAFolder { path: folder.to_owned() });
    }
    let mut listing = Listing::default();
    fs::read_dir(&root).map_err(|error| LibraryError::io("list folder", folder, error))?;
    let mut stack = vec![(root, String::new(), 0)];
    while let Some((directory, prefix, depth)) = stack.pop() {
        let Ok(entries) = fs::read_dir(directory) else {
            listing.skip(Skip::Unreadable);
            continue;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                listing.skip(Skip::Unreadable);
                continue;
            };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') {
                listing.skip(Skip::Hidden);
                continue;
            }
            let key = format!("{prefix}{name}");
            // Of the entry itself, not of what a link leads to.
            let Ok(metadata) = entry.metadata() else {
                listing.skip(Skip::Unreadable);
                continue;
            };
            let kind = metadata.file_type();
            if kind.is_symlink() {
                listing.skip(Skip::Link);
            } else if kind.is_dir() {
                if depth < DEPTH_LIMIT {
                    stack.push((entry.path(), format!("{key}/"), depth + 1));
                } else {
                    listing.skip(Skip::Unreadable);
                }
            } else if !kind.is_file() {
                listing.skip(Skip::Unsupported);
            } else if metadata.len() > limits.max_file_bytes {
                listing.skip(Skip::TooLarge);
            } else {
                let file = File { path: entry.path(), size: metadata.len(), stamp: Stamp::of(&metadata) };
                // Two names that are not UTF-8 may read the same.
                if listing.files.insert(key, file).is_some() {
                    listing.skip(Skip::Unreadable);
                }
            }
        }
    }
    while listing.files.len() > limits.max_files {
        listing.files.pop_last();
        listing.skip(Skip::TooMany);
    }
    Ok(listing)
}

/// The document of a file's bytes.
pub(super) fn document(key: &str, path: &Path, bytes: &[u8]) -> Result<Document, Skip> {
    let name = key.rsplit('/').next().unwrap_or(key);
    // Parsers of foreign formats have been seen to panic; one file must not end the whole folder.
    let read = match catch_unwind(|| to_markdown(bytes, name)) {
        Ok(Ok(read)) => read,
        Ok(Err(ReadingError::Unsupported { .. } | ReadingError::Binary { .. })) => {
            return Err(Skip::Unsupported);
        }
        Ok(Err(_)) | Err(_) => return Err(Skip::Unreadable),
    };
    let text = read.markdown;
    let (title, body) = match (read.title.filter(|title| !title.trim().is_empty()), leading_heading(&text)) {
        (Some(title), Some((heading, rest))) if heading == title.trim() => (title, rest.to_owned()),
        (Some(title), _) => (title, text),
        (None, Some((heading, rest))) => (heading.to_owned(), rest.to_owned()),
        (None, None) => (file_title(name), text),
    };
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_LIMIT).collect();
    Ok(Document {
        id: key.to_owned(),
        title,
        body,
        source: path.display().to_string(),
        license: None,
        group: None,
    })
}

/// The first-level heading that a text starts with, and the text after it.
fn leading_heading(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let line_end = text.find('\n').unwrap_or(text.len());
    let heading = text[..line_end].strip_prefix("# ")?.trim();
    let usable = !heading.is_empty() && heading.len() <= TITLE_LIMIT;
    usable.then(|| (heading, text[line_end..].trim_start_matches(['\n', '\r'])))
}

/// A file's name without its extension.
fn file_title(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles() {
        for (key, text, title, body) in [
            ("a/b.md", "# Real title\n\nText", "Real title", "Text"),
            ("a/notes.v2.txt", "No heading", "notes.v2", "No heading"),
            ("README", "## Second level", "README", "## Second level"),
            (
                "page.html",
                "<title>Page</title><h1>Page</h1><p>Words of a page.</p>",
                "Page",
                "Words of a page.",
            ),
            ("x.md", "\n\n#   Spaced   out  \nText", "Spaced out", "Text"),
            ("x.md", "# \nText", "x", "# \nText"),
        ] {
            let document = document(key, Path::new(key), text.as_bytes()).unwrap();
            assert_eq!((document.title.as_str(), document.body.trim()), (title, body));
            assert_eq!(document.id, key);
        }
    }

    #[test]
    fn binary_files_are_no_documents() {
        let found = document("x.bin", Path::new("x.bin"), b"\x00\x01\x02");
        assert_eq!(found, Err(Skip::Unsupported));
    }
}
