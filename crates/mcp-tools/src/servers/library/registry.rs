//! The libraries that a user has added, and their list.
//!
//! Decides what lies where below the data directory: `libraries/registry.json` names the libraries,
//! `libraries/starter/` holds the starter library. Indexes of folders lie in the cache directory.
//! Every change is made under a lock and by replacing the list as a whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::collection::{Collection, Source, check_name};
use super::error::LibraryError;
use super::folder::FolderLimits;
use super::index::{self, lock, replace_file};
use super::inventory::{Drift, Inventory};
use super::library::{CollectionReport, Library, LibraryOptions};
use super::starter::{self, Installed, STARTER_NAME, StarterOptions, StarterProgress};

const LIST_FILE: &str = "registry.json";
const VERSION: u32 = 1;

/// The libraries below a data directory.
#[derive(Debug, Clone)]
pub struct Registry {
    libraries: PathBuf,
    cache_dir: Option<PathBuf>,
}

/// What a library is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LibraryKind {
    /// A folder of the user's.
    Folder {
        /// Absolute.
        path: PathBuf,
    },
    /// The starter library.
    Starter,
}

/// How well the index of a library agrees with its documents.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Freshness {
    /// As far as sizes and times of the files tell, it holds what there is.
    UpToDate,
    /// Files were added, changed or removed; the next search will catch up.
    Behind(Drift),
    /// There is no index yet; the next search will build it.
    NotIndexed,
    /// The documents cannot be read.
    Unreadable(String),
}

/// A library, for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryInfo {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: LibraryKind,
    /// Documents in the index.
    pub documents: u64,
    /// Characters of their texts.
    pub characters: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// When the index changed last, seconds since 1970.
    pub indexed: Option<u64>,
    /// Whether it is up to date.
    pub freshness: Freshness,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    version: u32,
    libraries: Vec<Added>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Added {
    name: String,
    #[serde(flatten)]
    kind: LibraryKind,
}

impl Registry {
    /// The libraries below `data_dir`, with the indexes of folders below `cache_dir`.
    #[must_use]
    pub fn new(data_dir: &Path, cache_dir: Option<PathBuf>) -> Self {
        Self { libraries: data_dir.join("libraries"), cache_dir }
    }

    /// Adds a folder and indexes it; without a name it gets the folder's own. `progress` is told how
    /// many files of how many are done. Blocks.
    ///
    /// # Errors
    ///
    /// A name that cannot be used or is taken, a folder that is not there, a list that cannot be
    /// read or written.
    pub fn add_folder(
        &self,
        path: &Path,
        name: Option<&str>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<CollectionReport, LibraryError> {
        let absolute = path.canonicalize().map_err(|error| LibraryError::io("open folder", path, error))?;
        if !absolute.is_dir() {
            return Err(LibraryError::NotAFolder { path: path.to_owned() });
        }
        let collection = match name {
            Some(name) => Collection::folder(name, absolute.clone())?,
            None => Collection::folder_by_its_name(absolute.clone()),
        };
        let taken = |list: &List| {
            let existing = list.libraries.iter().find(|added| added.name == collection.name);
            match existing {
                Some(existing) if existing.kind != (LibraryKind::Folder { path: absolute.clone() }) => {
                    Err(LibraryError::DuplicateName {
                        name: collection.name.clone(),
                        existing: existing.kind.describe(),
                    })
                }
                _ => Ok(()),
            }
        };
        check_name(&collection.name)?;
        if collection.name == STARTER_NAME {
            let existing = "the name is kept for the starter library".to_owned();
            return Err(LibraryError::DuplicateName { name: collection.name, existing });
        }
        taken(&self.read()?)?;
        let options = LibraryOptions::new(vec![collection.clone()], self.cache_dir.clone());
        let library = Library::open_watched(&options, progress, &AtomicBool::new(false))?;
        self.change(|list| {
            taken(list)?;
            list.libraries.retain(|added| added.name != collection.name);
            let kind = LibraryKind::Folder { path: absolute.clone() };
            list.libraries.push(Added { name: collection.name.clone(), kind });
            Ok(())
        })?;
        let unknown = || LibraryError::UnknownLibrary { name: collection.name.clone(), known: "none".into() };
        library.reports().into_iter().next().ok_or_else(unknown)
    }

    /// Fetches and adds the starter library, in place of one that is there.
    ///
    /// # Errors
    ///
    /// [`LibraryError::Fetch`], [`LibraryError::HashMismatch`], [`LibraryError::MissingPackage`],
    /// and what can go wrong with files. Nothing is changed then.
    pub async fn add_starter(
        &self,
        options: &StarterOptions,
        progress: &(dyn Fn(StarterProgress) + Sync),
    ) -> Result<Installed, LibraryError> {
        let installed = starter::install(&self.starter_dir(), options, progress).await?;
        self.change(|list| {
            list.libraries.retain(|added| added.kind != LibraryKind::Starter);
            list.libraries.insert(0, Added { name: STARTER_NAME.to_owned(), kind: LibraryKind::Starter });
            Ok(())
        })?;
        Ok(installed)
    }

    /// Takes a library off the list and removes its index, and the starter library's texts. A folder
    /// of the user's is left alone.
    ///
    /// # Errors
    ///
    /// [`LibraryError::UnknownLibrary`], and what can go wrong with files.
    pub fn remove(&self, name: &str) -> Result<(), LibraryError> {
        let mut removed = None;
        self.change(|list| {
            let place = list.libraries.iter().position(|added| added.name == name);
            let Some(place) = place else {
                let names: Vec<_> = list.libraries.iter().map(|added| added.name.as_str()).collect();
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(LibraryError::UnknownLibrary { name: name.to_owned(), known });
            };
            removed = Some(list.libraries.remove(place));
            Ok(())
        })?;
        let directory = match removed {
            Some(Added { kind: LibraryKind::Starter, .. }) => Some(self.starter_dir()),
            Some(added) => self.collection(&added).and_then(|collection| self.index_dir(&collection)),
            None => None,
        };
        match directory.map(|directory| (fs::remove_dir_all(&directory), directory)) {
            Some((Err(error), directory)) if error.kind() != io::ErrorKind::NotFound => {
                Err(LibraryError::io("remove", &directory, error))
            }
            _ => Ok(()),
        }
    }

    /// The libraries with what is known of them. Looks at the files of folders but reads none.
    ///
    /// # Errors
    ///
    /// Where the list cannot be read.
    pub fn list(&self) -> Result<Vec<LibraryInfo>, LibraryError> {
        Ok(self.read()?.libraries.iter().map(|added| self.info(added)).collect())
    }

    /// The libraries as collections for a [`Library`] or a server. Those whose folder is gone are
    /// left out.
    ///
    /// # Errors
    ///
    /// Where the list cannot be read.
    pub fn collections(&self) -> Result<Vec<Collection>, LibraryError> {
        let there = |collection: &Collection| match &collection.source {
            Source::Folder(path) => path.is_dir(),
            _ => true,
        };
        let list = self.read()?;
        Ok(list.libraries.iter().filter_map(|added| self.collection(added)).filter(there).collect())
    }

    fn info(&self, added: &Added) -> LibraryInfo {
        let mut info = LibraryInfo {
            name: added.name.clone(),
            kind: added.kind.clone(),
            documents: 0,
            characters: 0,
            index_bytes: 0,
            indexed: None,
            freshness: Freshness::NotIndexed,
        };
        let Some(collection) = self.collection(added) else {
            info.freshness =
                Freshness::Unreadable(format!("{} holds no library", self.starter_dir().display()));
            return info;
        };
        let directory = self.index_dir(&collection);
        let manifest = directory.as_deref().and_then(index::saved_manifest);
        if let (Some(directory), Some(manifest)) = (directory, &manifest) {
            info.documents = manifest.entries.values().map(|entry| entry.documents).sum();
            info.characters = manifest.entries.values().map(|entry| entry.characters).sum();
            info.index_bytes = bytes_below(&directory);
            info.indexed = Some(manifest.updated);
        }
        info.freshness = match (Inventory::of(&collection, FolderLimits::default()), &manifest) {
            (Err(error), _) => Freshness::Unreadable(error.to_string()),
            (Ok(_), None) => Freshness::NotIndexed,
            (Ok(inventory), Some(manifest)) => match inventory.drift(manifest) {
                drift if drift == Drift::default() => Freshness::UpToDate,
                drift => Freshness::Behind(drift),
            },
        };
        info
    }

    fn collection(&self, added: &Added) -> Option<Collection> {
        match &added.kind {
            LibraryKind::Folder { path } => Collection::folder(&added.name, path).ok(),
            LibraryKind::Starter => starter::collection(&self.starter_dir()),
        }
    }

    fn index_dir(&self, collection: &Collection) -> Option<PathBuf> {
        index::directory(collection, self.cache_dir.as_deref())
    }

    fn starter_dir(&self) -> PathBuf {
        self.libraries.join(STARTER_NAME)
    }

    fn read(&self) -> Result<List, LibraryError> {
        let path = self.libraries.join(LIST_FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(List::default()),
            Err(error) => return Err(LibraryError::io("read", &path, error)),
        };
        let list: List = serde_json::from_slice(&bytes)
            .map_err(|error| LibraryError::Damaged { path: path.clone(), problem: error.to_string() })?;
        if list.version > VERSION {
            let problem = format!("it has version {}, this program knows {VERSION}", list.version);
            return Err(LibraryError::Damaged { path, problem });
        }
        Ok(list)
    }

    fn change(&self, change: impl FnOnce(&mut List) -> Result<(), LibraryError>) -> Result<(), LibraryError> {
        let problem = |action, error| LibraryError::io(action, &self.libraries, error);
        fs::create_dir_all(&self.libraries).map_err(|error| problem("create", error))?;
        let _lock = lock(&self.libraries).map_err(|error| problem("lock", error))?;
        let mut list = self.read()?;
        change(&mut list)?;
        list.version = VERSION;
        let path = self.libraries.join(LIST_FILE);
        let bytes = serde_json::to_vec_pretty(&list).unwrap_or_default();
        replace_file(&path, &bytes).map_err(|error| LibraryError::io("write", &path, error))
    }
}

impl LibraryKind {
    /// What the library is, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Folder { path } => format!("folder {}", path.display()),
            Self::Starter => "starter library".to_owned(),
        }
    }
}

fn bytes_below(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}
