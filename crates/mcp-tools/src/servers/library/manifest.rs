//! What an index holds, file by file, so that only what changed is indexed again.
//!
//! Decides when a file counts as unchanged. The manifest lies beside the index and is tied to one
//! commit of it: the commit names the manifest's file, so that the two cannot disagree.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// How the index is laid out and analysed, and by which version files were turned into text. An index
/// of another format is built anew. The number is raised for changes within a version.
pub(super) const FORMAT: &str = concat!("2/", env!("CARGO_PKG_VERSION"));

/// A file that changed this shortly before it was read may change again without a trace in its
/// times, so it is compared by content the next time.
const SETTLED: Duration = Duration::from_secs(2);

/// The files of an index. An entry is what is indexed and removed as one: a file of a folder, a
/// document in memory, a file of JSON lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) entries: BTreeMap<String, Entry>,
    /// Seconds since 1970 of the last change to the index.
    pub(super) updated: u64,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Of its bytes, hexadecimal.
    pub(super) sha256: String,
    /// None: compare by content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stamp: Option<Stamp>,
    /// How many documents it gave.
    pub(super) documents: u64,
    /// Characters of their texts.
    pub(super) characters: u64,
    /// Why it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) skipped: Option<Skip>,
}

/// Why a file of a folder is not in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// Its name, or that of a folder above it, starts with a dot.
    Hidden,
    /// A symbolic link: it may lead out of the folder.
    Link,
    /// Larger than the limit.
    TooLarge,
    /// Not a text, nor another format that can be read.
    Unsupported,
    /// Its text could not be had.
    Unreadable,
    /// More files than the limit.
    TooMany,
}

/// What tells without reading that a file is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    size: u64,
    /// Nanoseconds since 1970.
    modified: u64,
    /// Nanoseconds since 1970: when the inode changed, which a program cannot set back.
    changed: u64,
}

impl Stamp {
    /// The stamp of a file as it is now; none where its times do not tell enough.
    pub(super) fn of(metadata: &fs::Metadata) -> Option<Self> {
        let modified = metadata.modified().ok()?;
        let changed = changed(metadata).unwrap_or(modified);
        let age = SystemTime::now().duration_since(modified.max(changed)).ok()?;
        (age >= SETTLED).then(|| Self {
            size: metadata.len(),
            modified: nanoseconds(modified),
            changed: nanoseconds(changed),
        })
    }
}

#[cfg(unix)]
fn changed(metadata: &fs::Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt as _;
    let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).ok()?);
    let nanoseconds = Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).ok()?);
    UNIX_EPOCH.checked_add(seconds + nanoseconds)
}

#[cfg(not(unix))]
fn changed(_: &fs::Metadata) -> Option<SystemTime> {
    None
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default()
}

/// Hexadecimal sha256.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_hexadecimal() {
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_fresh_file_is_compared_by_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(Stamp::of(&file.as_file().metadata().unwrap()), None);
    }
}
