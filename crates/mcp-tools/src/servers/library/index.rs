//! The full-text index of one collection: opened, brought up to date, built anew.
//!
//! Decides where an index is kept and when it can be trusted. On disk an index has a lock file, a
//! manifest and a directory of the search engine; only the holder of the lock writes. A commit
//! names the manifest that belongs to it, so that a program killed at any moment leaves the last
//! complete state behind, and what is not complete is built anew. Where nothing can be written the
//! index is kept in memory.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tantivy::directory::{MmapDirectory, RamDirectory};
use tantivy::indexer::NoMergePolicy;
use tantivy::{
    Index, IndexSettings, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, TantivyError, Term,
};

use super::analysis;
use super::collection::{Collection, Source};
use super::error::LibraryError;
use super::folder::FolderLimits;
use super::inventory::{Inventory, count_skipped};
use super::manifest::{FORMAT, Manifest, Skip, now, sha256_hex};
use super::schema::{Fields, schema};

/// Bytes that the writer may hold before it writes a segment, least and most. The engine wants no
/// less; what it sets aside at once grows with them.
const WRITER_MEMORY: (u64, u64) = (16 << 20, 192 << 20);
/// How much of a long update may be lost when the program is killed.
const CHECKPOINT: Duration = Duration::from_secs(20);
/// Documents in memory below this many bytes are not worth a file: indexing them takes less than a
/// disk needs to confirm that it has them.
const KEEP_IN_MEMORY: u64 = 64 << 10;
/// Passages up to which every update ends in one segment without deleted passages, so that scores
/// are those of an index built anew.
const MERGE_LIMIT: u64 = 400_000;

/// How long a writer is waited for that has ended and whose lock has not.
const PATIENCE: Duration = Duration::from_secs(5);

const ENGINE_DIR: &str = "index";
const LOCK_FILE: &str = "lock";

/// How an update is watched and stopped.
pub(super) struct Observer<'a> {
    /// Called with entries done and entries to do.
    pub(super) progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Once true, the update ends with [`LibraryError::Stopped`].
    pub(super) stop: &'a AtomicBool,
}

/// An index that holds what its collection held when it was opened.
pub(super) struct CollectionIndex {
    pub(super) name: String,
    pub(super) searcher: Searcher,
    pub(super) fields: Fields,
    pub(super) manifest: Manifest,
    /// Files that gave no document, by reason.
    pub(super) skipped: BTreeMap<Skip, u64>,
    /// Where it is kept; none: in memory.
    pub(super) directory: Option<PathBuf>,
}

/// What a commit says of itself.
#[derive(Serialize, Deserialize)]
struct Payload {
    format: String,
    manifest: String,
}

/// Why there is no index on disk.
enum Failure {
    /// The collection itself cannot be read, or the update was stopped.
    Collection(LibraryError),
    /// The directory or what is in it.
    Directory(String),
}

impl From<tantivy::TantivyError> for Failure {
    fn from(error: tantivy::TantivyError) -> Self {
        Self::Directory(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Directory(error.to_string())
    }
}

/// The directory of a collection's index; none where it is kept in memory.
pub(super) fn directory(collection: &Collection, cache_dir: Option<&Path>) -> Option<PathBuf> {
    if let Some(directory) = &collection.index_dir {
        return Some(directory.clone());
    }
    let place = match &collection.source {
        Source::Folder(path) | Source::JsonLines(path) => {
            path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string()
        }
        Source::Documents(documents) => {
            let bytes: u64 = documents.iter().map(|document| document.body.len() as u64).sum();
            if bytes < KEEP_IN_MEMORY {
                return None;
            }
            String::new()
        }
    };
    let hash = sha256_hex(place.as_bytes());
    Some(cache_dir?.join(format!("{}-{}", collection.name, &hash[..12])))
}

/// The manifest of an index on disk, if there is a usable one.
pub(super) fn saved_manifest(directory: &Path) -> Option<Manifest> {
    Saved::open(directory).ok().map(|saved| saved.manifest)
}

/// Opens the index of a collection and brings it up to date.
///
/// # Errors
///
/// Where the collection cannot be read, the update was stopped, or the engine fails in memory too.
pub(super) fn open(
    collection: &Collection,
    cache_dir: Option<&Path>,
    limits: FolderLimits,
    observer: &Observer<'_>,
) -> Result<CollectionIndex, LibraryError> {
    let inventory = Inventory::of(collection, limits)?;
    if let Some(directory) = directory(collection, cache_dir) {
        match open_on_disk(&collection.name, &directory, &inventory, observer) {
            Ok(index) => return Ok(index),
            Err(Failure::Collection(error)) => return Err(error),
            Err(Failure::Directory(problem)) => tracing::warn!(
                library = collection.name,
                directory = %directory.display(),
                problem,
                "the index cannot be kept on disk and is built in memory"
            ),
        }
    }
    match build_in_memory(&collection.name, &inventory, observer) {
        Ok(index) => Ok(index),
        Err(Failure::Collection(error)) => Err(error),
        Err(Failure::Directory(problem)) => Err(LibraryError::index(&collection.name, problem)),
    }
}

/// Removes what is damaged, so that the next [`open`] builds it anew. Says whether anything was.
pub(super) fn discard_if_damaged(directory: &Path) -> bool {
    let intact = catch_unwind(|| {
        let Ok(saved) = Saved::open(directory) else { return false };
        saved.index.validate_checksum().is_ok_and(|damaged| damaged.is_empty())
    });
    if intact.unwrap_or(false) {
        return false;
    }
    if let Ok(_lock) = lock(directory) {
        clear(directory).ok();
    }
    true
}

fn open_on_disk(
    name: &str,
    directory: &Path,
    inventory: &Inventory,
    observer: &Observer<'_>,
) -> Result<CollectionIndex, Failure> {
    if let Ok(saved) = Saved::open(directory)
        && inventory.changes(&saved.manifest).is_empty()
    {
        return saved.into_index(name, inventory, directory);
    }
    fs::create_dir_all(directory)?;
    let _lock = lock(directory)?;
    // Another process may have been at work until now.
    let saved = match Saved::open(directory) {
        Ok(saved) => saved,
        Err(problem) => {
            if directory.join(ENGINE_DIR).exists() {
                tracing::warn!(library = name, problem, "the index on disk is not usable and is built anew");
            }
            clear(directory)?;
            Saved::create(directory)?
        }
    };
    let updated = update(name, saved, inventory, Some(directory), observer);
    match updated {
        Err(Failure::Directory(problem)) => {
            tracing::warn!(library = name, problem, "the index cannot be updated and is built anew");
            clear(directory)?;
            update(name, Saved::create(directory)?, inventory, Some(directory), observer)
        }
        other => other,
    }?
    .into_index(name, inventory, directory)
}

fn build_in_memory(
    name: &str,
    inventory: &Inventory,
    observer: &Observer<'_>,
) -> Result<CollectionIndex, Failure> {
    let (schema, fields) = schema();
    let index = Index::create(RamDirectory::create(), schema, IndexSettings::default())?;
    let saved = Saved::new(index, fields, Manifest::default());
    let saved = update(name, saved, inventory, None, observer)?;
    let searcher = saved.searcher()?;
    Ok(CollectionIndex {
        name: name.to_owned(),
        searcher,
        fields,
        skipped: count_skipped(&inventory.skipped, &saved.manifest),
        manifest: saved.manifest,
        directory: None,
    })
}

/// An index with its manifest.
struct Saved {
    index: Index,
    fields: Fields,
    manifest: Manifest,
    /// The manifest's file name; empty before the first commit.
    manifest_file: String,
}

impl Saved {
    fn new(mut index: Index, fields: Fields, manifest: Manifest) -> Self {
        index.set_tokenizers(analysis::tokenizers());
        Self { index, fields, manifest, manifest_file: String::new() }
    }

    /// Opens what is on disk. The engine is not trusted to meet damaged files without a panic.
    fn open(directory: &Path) -> Result<Self, String> {
        catch_unwind(|| Self::try_open(directory)).unwrap_or_else(|_| Err("its files are damaged".to_owned()))
    }

    fn try_open(directory: &Path) -> Result<Self, String> {
        let index = Index::open_in_dir(directory.join(ENGINE_DIR)).map_err(|error| error.to_string())?;
        let (schema, fields) = schema();
        let metas = index.load_metas().map_err(|error| error.to_string())?;
        let payload = metas.payload.ok_or("it was never completed")?;
        let payload: Payload = serde_json::from_str(&payload).map_err(|error| error.to_string())?;
        if payload.format != FORMAT || metas.schema != schema {
            return Err(format!("it has format {}, this program uses {FORMAT}", payload.format));
        }
        let bytes = fs::read(directory.join(&payload.manifest)).map_err(|error| error.to_string())?;
        let manifest = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        let mut saved = Self::new(index, fields, manifest);
        saved.manifest_file = payload.manifest;
        // Opens all segments, so that missing and cut files show now.
        saved.searcher().map_err(|error| error.to_string())?;
        Ok(saved)
    }

    fn create(directory: &Path) -> Result<Self, Failure> {
        let engine_dir = directory.join(ENGINE_DIR);
        fs::create_dir_all(&engine_dir)?;
        let engine =
            MmapDirectory::open(&engine_dir).map_err(|error| Failure::Directory(error.to_string()))?;
        let (schema, fields) = schema();
        let index = Index::create(engine, schema, IndexSettings::default())?;
        Ok(Self::new(index, fields, Manifest::default()))
    }

    fn searcher(&self) -> tantivy::Result<Searcher> {
        let reader = self.index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(reader.searcher())
    }

    fn into_index(
        self,
        name: &str,
        inventory: &Inventory,
        directory: &Path,
    ) -> Result<CollectionIndex, Failure> {
        Ok(CollectionIndex {
            name: name.to_owned(),
            searcher: self.searcher()?,
            fields: self.fields,
            skipped: count_skipped(&inventory.skipped, &self.manifest),
            manifest: self.manifest,
            directory: Some(directory.to_owned()),
        })
    }
}

/// Brings an index up to date; the caller holds the lock.
fn update(
    name: &str,
    mut saved: Saved,
    inventory: &Inventory,
    directory: Option<&Path>,
    observer: &Observer<'_>,
) -> Result<Saved, Failure> {
    let changes = inventory.changes(&saved.manifest);
    let total: usize = changes.suspects.iter().map(Vec::len).sum();
    let fields = saved.fields;
    let memory = (inventory.bytes() * 4).clamp(WRITER_MEMORY.0, WRITER_MEMORY.1) as usize;
    let mut writer: Option<IndexWriter> = None;
    let mut restamped = false;
    let mut done = 0;
    let mut last_commit = Instant::now();
    for key in changes.removed {
        let writer = writing(&mut writer, &saved.index, memory)?;
        writer.delete_term(Term::from_field_text(fields.entry, &key));
        saved.manifest.entries.remove(&key);
    }
    for batch in &changes.suspects {
        for read in inventory.read(batch, &saved.manifest).map_err(Failure::Collection)? {
            if observer.stop.load(Ordering::Relaxed) {
                return Err(Failure::Collection(LibraryError::Stopped { library: name.to_owned() }));
            }
            if let Some(documents) = read.documents {
                let writer = writing(&mut writer, &saved.index, memory)?;
                if saved.manifest.entries.contains_key(&read.key) {
                    writer.delete_term(Term::from_field_text(fields.entry, &read.key));
                }
                for document in &documents {
                    for passage in fields.index_entries(&read.key, document) {
                        add(writer, passage)?;
                    }
                }
            }
            let was = saved.manifest.entries.insert(read.key, read.entry.clone());
            restamped |= was != Some(read.entry);
            done += 1;
            (observer.progress)(done, total);
        }
        if let (Some(writer), Some(directory)) = (&mut writer, directory)
            && last_commit.elapsed() > CHECKPOINT
        {
            commit(writer, &mut saved.manifest, &mut saved.manifest_file, Some(directory))?;
            last_commit = Instant::now();
        }
    }
    if let Some(mut writer) = writer {
        commit(&mut writer, &mut saved.manifest, &mut saved.manifest_file, directory)?;
        merge(&saved.index, &mut writer)?;
        writer.wait_merging_threads()?;
    } else if let Some(directory) = directory {
        if saved.manifest_file.is_empty() {
            // An empty collection has an index too.
            let mut writer = None;
            let writer = writing(&mut writer, &saved.index, memory)?;
            commit(writer, &mut saved.manifest, &mut saved.manifest_file, Some(directory))?;
        } else if restamped {
            write_manifest(directory, &saved.manifest_file, &saved.manifest)?;
        }
    }
    Ok(saved)
}

fn writing<'a>(
    writer: &'a mut Option<IndexWriter>,
    index: &Index,
    memory: usize,
) -> tantivy::Result<&'a mut IndexWriter> {
    let open = match writer.take() {
        Some(open) => open,
        None => {
            let open = new_writer(index, memory)?;
            open.set_merge_policy(Box::new(NoMergePolicy));
            open
        }
    };
    Ok(writer.insert(open))
}

/// The lock of the writer before may live on for a moment in a child that another thread is starting.
fn new_writer(index: &Index, memory: usize) -> tantivy::Result<IndexWriter> {
    let since = Instant::now();
    loop {
        match index.writer_with_num_threads(1, memory) {
            Err(TantivyError::LockFailure(..)) if since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            writer => return writer,
        }
    }
}

fn add(writer: &mut IndexWriter, passage: TantivyDocument) -> Result<(), Failure> {
    let Err(error) = writer.add_document(passage) else { return Ok(()) };
    // That the writer's thread ended is all that is said here; the commit tells why it did.
    Err(writer.prepare_commit().err().unwrap_or(error).into())
}

/// Makes what was added and removed the state of the index.
fn commit(
    writer: &mut IndexWriter,
    manifest: &mut Manifest,
    manifest_file: &mut String,
    directory: Option<&Path>,
) -> Result<(), Failure> {
    manifest.updated = now();
    let Some(directory) = directory else {
        writer.commit()?;
        return Ok(());
    };
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let next = format!("manifest-{nanoseconds:x}.json");
    write_manifest(directory, &next, manifest)?;
    let payload = Payload { format: FORMAT.to_owned(), manifest: next.clone() };
    let payload = serde_json::to_string(&payload).map_err(|error| Failure::Directory(error.to_string()))?;
    let mut prepared = writer.prepare_commit()?;
    prepared.set_payload(&payload);
    prepared.commit()?;
    if !manifest_file.is_empty() {
        fs::remove_file(directory.join(&*manifest_file)).ok();
    }
    *manifest_file = next;
    Ok(())
}

/// Makes the segments one, where that is cheap or needed.
fn merge(index: &Index, writer: &mut IndexWriter) -> Result<(), Failure> {
    let metas = index.searchable_segment_metas()?;
    let passages: u64 = metas.iter().map(|meta| u64::from(meta.max_doc())).sum();
    let deleted: u64 = metas.iter().map(|meta| u64::from(meta.num_deleted_docs())).sum();
    let untidy = metas.len() > 1 || deleted > 0;
    let needed = metas.len() > 8 || deleted > passages / 5;
    if untidy && (passages <= MERGE_LIMIT || needed) {
        let ids: Vec<_> = metas.iter().map(|meta| meta.id()).collect();
        writer.merge(&ids).wait()?;
        writer.garbage_collect_files().wait()?;
    }
    Ok(())
}

fn write_manifest(directory: &Path, name: &str, manifest: &Manifest) -> Result<(), Failure> {
    let bytes = serde_json::to_vec(manifest).map_err(|error| Failure::Directory(error.to_string()))?;
    replace_file(&directory.join(name), &bytes)?;
    Ok(())
}

/// Writes a file so that readers see the old or the new content and nothing between.
pub(super) fn replace_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Waits for the directory's lock and takes it until the file is dropped; a killed process gives it
/// up too.
pub(super) fn lock(directory: &Path) -> std::io::Result<fs::File> {
    let path = directory.join(LOCK_FILE);
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Removes index and manifests, not the lock file, which others may be waiting on.
fn clear(directory: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == ENGINE_DIR {
            fs::remove_dir_all(entry.path())?;
        } else if name.starts_with("manifest-") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Runs what reads an index; a panic over damaged files becomes an error.
pub(super) fn guarded<T>(
    name: &str,
    read: impl FnOnce() -> Result<T, tantivy::TantivyError>,
) -> Result<T, LibraryError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(LibraryError::index(name, error)),
        Err(_) => Err(LibraryError::index(name, "its files are damaged")),
    }
}
