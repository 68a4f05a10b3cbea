//! What a collection holds at this moment, and what of it an index lacks.
//!
//! Decides which entries changed. Reading is put off until an entry is known to need it; many files
//! are read and converted at once, and come back in their order.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use sha2::{Digest as _, Sha256};

use super::collection::{Collection, Document, Source};
use super::error::LibraryError;
use super::folder::{self, File, FolderLimits};
use super::manifest::{Entry, Manifest, Skip, Stamp, sha256_hex};

/// Bytes of a document id.
const ID_LIMIT: usize = 4096;
/// Files that are read at once.
const BATCH_FILES: usize = 256;
/// Bytes that are read at once.
const BATCH_BYTES: u64 = 64 << 20;

/// The entries of a collection, unread.
pub(super) struct Inventory {
    items: BTreeMap<String, Item>,
    /// Files that are left out at sight.
    pub(super) skipped: BTreeMap<Skip, u64>,
}

enum Item {
    File(File),
    JsonLines(File),
    Memory(Arc<[Document]>, usize),
}

/// What must be done to an index so that it holds the inventory.
pub(super) struct Changes {
    /// Entries that are no more.
    pub(super) removed: Vec<String>,
    /// Entries that are new, or whose stamps do not tell that they are the same, in batches.
    pub(super) suspects: Vec<Vec<String>>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.suspects.is_empty()
    }
}

/// An entry that was read.
pub(super) struct Read {
    pub(super) key: String,
    pub(super) entry: Entry,
    /// None: the index has them already.
    pub(super) documents: Option<Vec<Document>>,
}

impl Inventory {
    /// Takes stock.
    ///
    /// # Errors
    ///
    /// Where the folder or file of the collection is not there.
    pub(super) fn of(collection: &Collection, limits: FolderLimits) -> Result<Self, LibraryError> {
        let mut items = BTreeMap::new();
        let mut skipped = BTreeMap::new();
        match &collection.source {
            Source::Folder(path) => {
                let listing = folder::list(path, limits)?;
                skipped = listing.skipped;
                items.extend(listing.files.into_iter().map(|(key, file)| (key, Item::File(file))));
            }
            Source::JsonLines(path) => {
                let metadata = fs::metadata(path).map_err(|error| LibraryError::io("read", path, error))?;
                let stamp = Stamp::of(&metadata);
                let file = File { path: path.clone(), size: metadata.len(), stamp };
                items.insert("documents".to_owned(), Item::JsonLines(file));
            }
            Source::Documents(documents) => {
                for (number, document) in documents.iter().enumerate() {
                    items.insert(document.id.clone(), Item::Memory(documents.clone(), number));
                }
            }
        }
        Ok(Self { items, skipped })
    }

    /// Bytes of all entries.
    pub(super) fn bytes(&self) -> u64 {
        self.items.values().map(Item::size).sum()
    }

    /// Compares with what an index holds, without reading.
    pub(super) fn changes(&self, manifest: &Manifest) -> Changes {
        let removed = manifest.entries.keys().filter(|key| !self.items.contains_key(*key)).cloned().collect();
        let mut suspects: Vec<Vec<String>> = Vec::new();
        let mut bytes = BATCH_BYTES;
        for (key, item) in &self.items {
            let known = manifest.entries.get(key);
            let same = match (known, item) {
                (Some(known), Item::Memory(documents, number)) => {
                    known.sha256 == content_hash(&documents[*number])
                }
                (Some(Entry { stamp: Some(then), .. }), item) => item.stamp() == Some(*then),
                _ => false,
            };
            if same {
                continue;
            }
            bytes += item.size();
            match suspects.last_mut() {
                Some(batch) if bytes <= BATCH_BYTES && batch.len() < BATCH_FILES => batch.push(key.clone()),
                _ => {
                    bytes = item.size();
                    suspects.push(vec![key.clone()]);
                }
            }
        }
        Changes { removed, suspects }
    }

    /// Reads a batch of entries. Files that vanished meanwhile are left out.
    ///
    /// # Errors
    ///
    /// Where a file of JSON lines is not one.
    pub(super) fn read(&self, batch: &[String], manifest: &Manifest) -> Result<Vec<Read>, LibraryError> {
        let read_one = |key: &String| match self.items.get(key) {
            Some(item) => item.read(key, manifest.entries.get(key)),
            None => Ok(None),
        };
        let workers = thread::available_parallelism().map_or(1, usize::from).min(8);
        let has_files = batch.iter().any(|key| matches!(self.items.get(key), Some(Item::File(_))));
        if !has_files || batch.len() < 2 || workers < 2 {
            return batch.iter().filter_map(|key| read_one(key).transpose()).collect();
        }
        let share = batch.len().div_ceil(workers).min(16);
        let shares: Vec<&[String]> = batch.chunks(share).collect();
        let next = std::sync::atomic::AtomicUsize::new(0);
        let mut done: Vec<(usize, Result<Vec<Read>, LibraryError>)> = thread::scope(|scope| {
            let handles: Vec<_> = (0..workers)
                .map(|_| {
                    scope.spawn(|| {
                        let mut mine = Vec::new();
                        loop {
                            let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                            let Some(share) = shares.get(number) else { return mine };
                            let read = share.iter().filter_map(|key| read_one(key).transpose()).collect();
                            mine.push((number, read));
                        }
                    })
                })
                .collect();
            handles.into_iter().flat_map(|handle| handle.join().unwrap_or_default()).collect()
        });
        done.sort_by_key(|(number, _)| *number);
        let mut all = Vec::with_capacity(batch.len());
        for (_, read) in done {
            all.extend(read?);
        }
        Ok(all)
    }
}

impl Item {
    fn size(&self) -> u64 {
        match self {
            Self::File(file) | Self::JsonLines(file) => file.size,
            Self::Memory(documents, number) => documents[*number].body.len() as u64,
        }
    }

    fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::File(file) | Self::JsonLines(file) => file.stamp,
            Self::Memory(..) => None,
        }
    }

    fn read(&self, key: &str, known: Option<&Entry>) -> Result<Option<Read>, LibraryError> {
        match self {
            Self::Memory(documents, number) => {
                let document = &documents[*number];
                let sha256 = content_hash(document);
                Ok(Some(assemble(key, sha256, None, known, || check_ids(vec![document.clone()]))))
            }
            Self::File(file) => {
                let bytes = match fs::read(&file.path) {
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    Err(_) => {
                        let unreadable = || Err(Skip::Unreadable);
                        return Ok(Some(assemble(key, String::new(), None, None, unreadable)));
                    }
                };
                let make = || folder::document(key, &file.path, &bytes).and_then(|one| check_ids(vec![one]));
                Ok(Some(assemble(key, sha256_hex(&bytes), file.stamp, known, make)))
            }
            Self::JsonLines(file) => {
                let bytes =
                    fs::read(&file.path).map_err(|error| LibraryError::io("read", &file.path, error))?;
                let mut problem = None;
                let read = assemble(key, sha256_hex(&bytes), file.stamp, known, || {
                    json_lines(&file.path, &bytes).map_err(|error| {
                        problem = Some(error);
                        Skip::Unreadable
                    })
                });
                match problem {
                    Some(error) => Err(error),
                    None => Ok(Some(read)),
                }
            }
        }
    }
}

fn assemble(
    key: &str,
    sha256: String,
    stamp: Option<Stamp>,
    known: Option<&Entry>,
    make: impl FnOnce() -> Result<Vec<Document>, Skip>,
) -> Read {
    if let Some(known) = known.filter(|known| known.sha256 == sha256) {
        return Read { key: key.to_owned(), entry: Entry { stamp, ..known.clone() }, documents: None };
    }
    let (documents, skipped) = match make() {
        Ok(documents) => (documents, None),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    let entry = Entry {
        sha256,
        stamp,
        documents: documents.len() as u64,
        characters: documents.iter().map(|document| document.body.chars().count() as u64).sum(),
        skipped,
    };
    Read { key: key.to_owned(), entry, documents: Some(documents) }
}

/// Of all that is indexed and stored of a document.
fn content_hash(document: &Document) -> String {
    let Document { id, title, body, source, license, group } = document;
    let mut hasher = Sha256::new();
    for part in [
        id.as_str(),
        title,
        body,
        source,
        license.as_deref().unwrap_or_default(),
        group.as_deref().unwrap_or_default(),
    ] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part);
    }
    hex::encode(hasher.finalize())
}

/// Ids are terms of the index, which have a limit.
fn check_ids(documents: Vec<Document>) -> Result<Vec<Document>, Skip> {
    let usable = documents.iter().all(|document| !document.id.is_empty() && document.id.len() <= ID_LIMIT);
    if usable { Ok(documents) } else { Err(Skip::Unreadable) }
}

/// The documents of a file of JSON lines.
fn json_lines(path: &Path, bytes: &[u8]) -> Result<Vec<Document>, LibraryError> {
    let damaged = |problem: String| LibraryError::Damaged { path: path.to_owned(), problem };
    let mut documents = Vec::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let document: Document =
            serde_json::from_slice(line).map_err(|error| damaged(format!("line {}: {error}", number + 1)))?;
        documents.push(document);
    }
    let ids: HashSet<&str> = documents.iter().map(|document| document.id.as_str()).collect();
    if ids.len() < documents.len() {
        return Err(damaged("two documents have the same id".to_owned()));
    }
    check_ids(documents).map_err(|_| damaged(format!("a document has no id, or one over {ID_LIMIT} bytes")))
}

/// The names of the skipped, with how many of each.
pub(super) fn count_skipped(at_sight: &BTreeMap<Skip, u64>, manifest: &Manifest) -> BTreeMap<Skip, u64> {
    let mut counts = at_sight.clone();
    for reason in manifest.entries.values().filter_map(|entry| entry.skipped) {
        *counts.entry(reason).or_default() += 1;
    }
    counts
}

/// The keys of entries that differ by stamp only: new, changed, gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drift {
    /// Entries that the index lacks.
    pub new: usize,
    /// Entries whose size or times differ.
    pub changed: usize,
    /// Entries that are no more.
    pub gone: usize,
}

impl Inventory {
    /// How far an index has fallen behind, as far as can be told without reading.
    pub(super) fn drift(&self, manifest: &Manifest) -> Drift {
        let changes = self.changes(manifest);
        let suspects: BTreeSet<&String> = changes.suspects.iter().flatten().collect();
        let (mut new, mut changed) = (0, 0);
        for key in suspects {
            let stamps = manifest.entries.get(key).map(|entry| entry.stamp);
            match (stamps, self.items.get(key).and_then(Item::stamp)) {
                (None, _) => new += 1,
                (Some(Some(then)), Some(now)) if then != now => changed += 1,
                // A file that was too fresh when it was indexed: nothing tells that it changed.
                _ => {}
            }
        }
        Drift { new, changed, gone: changes.removed.len() }
    }
}
