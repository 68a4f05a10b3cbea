//! A library: the collections of one server, opened and searched together. All of it blocks; the
//! server runs it off the asynchronous threads.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::collection::{Collection, Source, check_name};
use super::error::LibraryError;
use super::folder::FolderLimits;
use super::index::{self, CollectionIndex, Observer};
use super::manifest::Skip;
use super::read::{self, Page};
use super::search::{self, SearchAnswer};

/// What a library is made of.
#[derive(Debug, Clone, Default)]
pub struct LibraryOptions {
    /// What is searched. Names must differ.
    pub collections: Vec<Collection>,
    /// Where indexes are kept, each in a directory of its own; none keeps them in memory.
    pub cache_dir: Option<PathBuf>,
    /// What folders may hold.
    pub limits: FolderLimits,
}

impl LibraryOptions {
    /// These collections, with indexes under `cache_dir` and the default limits.
    #[must_use]
    pub fn new(collections: Vec<Collection>, cache_dir: Option<PathBuf>) -> Self {
        Self { collections, cache_dir, limits: FolderLimits::default() }
    }

    /// Finds what is wrong before anything is indexed.
    pub(super) fn check(&self) -> Result<(), LibraryError> {
        let mut seen: HashMap<&str, &Collection> = HashMap::new();
        for collection in &self.collections {
            check_name(&collection.name)?;
            if let Some(earlier) = seen.insert(&collection.name, collection) {
                let (name, existing) = (collection.name.clone(), earlier.describe());
                return Err(LibraryError::DuplicateName { name, existing });
            }
            if let Source::Folder(path) = &collection.source
                && !path.is_dir()
            {
                return Err(LibraryError::NotAFolder { path: path.clone() });
            }
        }
        Ok(())
    }
}

/// What one collection came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionReport {
    /// Its name.
    pub name: String,
    /// Documents that can be found.
    pub documents: u64,
    /// Passages that they are searched by.
    pub passages: u64,
    /// Characters of all documents.
    pub characters: u64,
    /// Files that are left out, by reason.
    pub skipped: BTreeMap<Skip, u64>,
    /// Where the index is kept; none: in memory.
    pub index_dir: Option<PathBuf>,
}

/// Collections that are open and up to date as of their opening.
pub struct Library {
    indexes: Vec<CollectionIndex>,
    /// Collections that could not be opened.
    failures: Vec<(String, LibraryError)>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Library").field("reports", &self.reports()).finish()
    }
}

impl Library {
    /// Opens all collections and brings their indexes up to date. Blocks, for minutes where a large
    /// folder is new.
    ///
    /// # Errors
    ///
    /// Names that cannot be used or are used twice, folders and files that cannot be read, and an
    /// index that cannot be built.
    pub fn open(options: &LibraryOptions) -> Result<Self, LibraryError> {
        Self::open_watched(options, &|_, _| {}, &AtomicBool::new(false))
    }

    /// The same; `progress` is told how many entries (files, documents in memory) of how many of
    /// the collection at hand are done, and the work ends with [`LibraryError::Stopped`] soon after
    /// `stop` is true.
    ///
    /// # Errors
    ///
    /// As [`Library::open`].
    pub fn open_watched(
        options: &LibraryOptions,
        progress: &(dyn Fn(usize, usize) + Sync),
        stop: &AtomicBool,
    ) -> Result<Self, LibraryError> {
        options.check()?;
        let mut library = Self::open_available(options, progress, stop);
        match library.failures.is_empty() {
            true => Ok(library),
            false => Err(library.failures.remove(0).1),
        }
    }

    /// Opens what can be opened; the rest is named in the notes of searches.
    pub(super) fn open_available(
        options: &LibraryOptions,
        progress: &(dyn Fn(usize, usize) + Sync),
        stop: &AtomicBool,
    ) -> Self {
        let observer = Observer { progress, stop };
        let mut library = Self { indexes: Vec::new(), failures: Vec::new() };
        for collection in &options.collections {
            match index::open(collection, options.cache_dir.as_deref(), options.limits, &observer) {
                Ok(index) => library.indexes.push(index),
                Err(error) => {
                    tracing::warn!(library = collection.name, %error, "a library cannot be opened");
                    library.failures.push((collection.name.clone(), error));
                }
            }
        }
        library
    }

    /// The first failure, where nothing could be opened.
    pub(super) fn failure(&self) -> Option<&LibraryError> {
        self.failures.first().map(|(_, error)| error).filter(|_| self.indexes.is_empty())
    }

    /// Searches all collections. Any text is a valid query: words, and phrases in quotation marks.
    ///
    /// # Errors
    ///
    /// [`LibraryError::EmptyQuery`] for white space, [`LibraryError::Index`] for a damaged index.
    pub fn search(&self, query: &str, num: usize) -> Result<SearchAnswer, LibraryError> {
        let mut answer = search::search(&self.indexes, query, num)?;
        for (name, error) in &self.failures {
            let note = answer.note.get_or_insert_default();
            if !note.is_empty() {
                note.push(' ');
            }
            note.push_str(&format!("The library `{name}` was not searched: {error}."));
        }
        Ok(answer)
    }

    /// Reads a page of a document from `offset` characters on.
    ///
    /// # Errors
    ///
    /// [`LibraryError::UnknownDocument`] with the nearest ids, [`LibraryError::OffsetPastEnd`],
    /// [`LibraryError::Index`] for a damaged index.
    pub fn read(&self, id: &str, offset: u64) -> Result<Page, LibraryError> {
        read::read(&self.indexes, id, offset)
    }

    /// What each collection came to.
    #[must_use]
    pub fn reports(&self) -> Vec<CollectionReport> {
        self.indexes.iter().map(CollectionIndex::report).collect()
    }

    /// Removes those indexes on disk that turn out to be damaged, so that the next opening builds
    /// them anew. Says whether there were any.
    pub fn discard_damaged(&self) -> bool {
        let directories = self.indexes.iter().filter_map(|index| index.directory.as_deref());
        directories.filter(|directory| index::discard_if_damaged(directory)).count() > 0
    }
}

impl CollectionIndex {
    /// Documents that can be found.
    pub(super) fn documents(&self) -> u64 {
        self.manifest.entries.values().map(|entry| entry.documents).sum()
    }

    fn report(&self) -> CollectionReport {
        CollectionReport {
            name: self.name.clone(),
            documents: self.documents(),
            passages: self.searcher.num_docs(),
            characters: self.manifest.entries.values().map(|entry| entry.characters).sum(),
            skipped: self.skipped.clone(),
            index_dir: self.directory.clone(),
        }
    }
}
