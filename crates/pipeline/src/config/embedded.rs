//! The `conf/` tree: the copy inside the binary, and a directory that may lie over it.
//!
//! Decides where a configuration file, prompt or article comes from: the directory's own file where it has one, else
//! the built-in file of the same name. What is in the files is left to others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fs, io};

use include_dir::{Dir, File, include_dir};

static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../conf");

/// Folders whose presence makes a directory a configuration directory.
const GROUP_FOLDERS: [&str; 5] = ["agent", "llm", "benchmark", "prompts", "library"];

/// The built-in `conf/` tree.
#[must_use]
pub fn embedded() -> &'static Dir<'static> {
    &EMBEDDED
}

/// A file of the built-in tree. Every run reads its prompts, and the tree itself compares a path with each of its
/// entries.
fn built_in(relative: &str) -> Option<&'static File<'static>> {
    static FILES: LazyLock<HashMap<&'static Path, &'static File<'static>>> = LazyLock::new(|| {
        let mut files = HashMap::new();
        let mut folders = vec![&EMBEDDED];
        while let Some(folder) = folders.pop() {
            files.extend(folder.files().map(|file| (file.path(), file)));
            folders.extend(folder.dirs());
        }
        files
    });
    FILES.get(Path::new(relative)).copied()
}

/// A `conf` directory of the user's own below `here`, where there is one: a folder `conf` with a `config.yaml` or
/// one of the group folders in it.
#[must_use]
pub fn find_conf_dir(here: &Path) -> Option<PathBuf> {
    let dir = here.join("conf");
    let is_ours =
        dir.join("config.yaml").is_file() || GROUP_FOLDERS.iter().any(|group| dir.join(group).is_dir());
    is_ours.then_some(dir)
}

/// The built-in tree with a directory of the user's own over it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfTree {
    dir: Option<PathBuf>,
}

/// One file of a [`ConfTree`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfFile {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its path; for a built-in file `conf/…`.
    pub path: String,
    /// Whether it is the copy inside the binary.
    pub built_in: bool,
}

impl ConfFile {
    /// The bytes as text, where they are UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }
}

/// A name in a folder of a [`ConfTree`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfEntry {
    /// The file's name, with its extension.
    pub name: String,
    /// Whether the binary has a copy.
    pub built_in: bool,
    /// Whether the directory has one, which then is the one that is used.
    pub own: bool,
}

impl ConfEntry {
    /// Whether the user's own file takes the place of a built-in one.
    #[must_use]
    pub fn overridden(&self) -> bool {
        self.built_in && self.own
    }
}

impl ConfTree {
    /// A tree with `dir` over the built-in files; without one, the built-in files alone.
    #[must_use]
    pub fn new(dir: Option<PathBuf>) -> Self {
        Self { dir }
    }

    /// The user's own directory.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// A file by its folder (`agent`, `prompts`; empty for the top) and its name with extension; none where neither
    /// the directory nor the binary has it.
    ///
    /// # Errors
    /// Where the user's own file is there and cannot be read. A name that leads out of the folder is not found.
    pub fn read(&self, group: &str, name: &str) -> io::Result<Option<ConfFile>> {
        let relative = if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
        if !stays_inside(&relative) {
            return Ok(None);
        }
        if let Some(dir) = &self.dir {
            let path = dir.join(&relative);
            match fs::read(&path) {
                Ok(bytes) => {
                    return Ok(Some(ConfFile { bytes, path: path.display().to_string(), built_in: false }));
                }
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(built_in(&relative).map(|file| ConfFile {
            bytes: file.contents().to_vec(),
            path: format!("conf/{relative}"),
            built_in: true,
        }))
    }

    /// The files below a folder, by name (`tool_use/auto.md` for one in a folder of it). What cannot be listed is
    /// left out.
    #[must_use]
    pub fn list(&self, group: &str) -> Vec<ConfEntry> {
        let mut names = std::collections::BTreeMap::<String, (bool, bool)>::new();
        let folder = if group.is_empty() { Some(&EMBEDDED) } else { EMBEDDED.get_dir(group) };
        for name in folder.into_iter().flat_map(|folder| built_in_names(folder, folder.path())) {
            names.entry(name).or_default().0 = true;
        }
        if let Some(dir) = self.dir.as_ref().filter(|_| group.is_empty() || stays_inside(group)) {
            let mut own = Vec::new();
            own_names(&dir.join(group), "", 0, &mut own);
            for name in own {
                names.entry(name).or_default().1 = true;
            }
        }
        names.into_iter().map(|(name, (built_in, own))| ConfEntry { name, built_in, own }).collect()
    }

    /// The names that `--agent`, `--llm` and `--benchmark` can be given: the files `NAME.yaml` of a folder.
    #[must_use]
    pub fn presets(&self, group: &str) -> Vec<String> {
        let entries = self.list(group);
        let names = entries.iter().filter_map(|entry| entry.name.strip_suffix(".yaml"));
        names.filter(|name| !group.is_empty() || !name.contains('/')).map(str::to_owned).collect()
    }

    /// Where a relative path of a configuration value may lie, best first: from the configuration directory, from
    /// the folder that holds it (where programs that own such a directory are started), from `here`.
    #[must_use]
    pub fn places(&self, here: &Path, relative: &Path) -> Vec<PathBuf> {
        if relative.is_absolute() {
            return vec![relative.to_owned()];
        }
        let above = self.dir.as_deref().map(|dir| dir.join(".."));
        [self.dir.as_deref(), above.as_deref(), Some(here)]
            .into_iter()
            .flatten()
            .map(|base| base.join(relative))
            .collect()
    }
}

/// Folders within folders that are listed.
const MAX_DEPTH: usize = 4;

fn built_in_names(folder: &'static Dir<'static>, base: &Path) -> Vec<String> {
    let mut names: Vec<String> = folder
        .files()
        .filter_map(|file| file.path().strip_prefix(base).ok()?.to_str().map(str::to_owned))
        .collect();
    names.extend(folder.dirs().flat_map(|inner| built_in_names(inner, base)));
    names
}

fn own_names(dir: &Path, prefix: &str, depth: usize, names: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else { continue };
        if path.is_file() {
            names.push(name);
        } else if path.is_dir() && depth < MAX_DEPTH {
            own_names(&path, &format!("{name}/"), depth + 1, names);
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a relative path is made of plain names only.
fn stays_inside(relative: &str) -> bool {
    !relative.is_empty()
        && !relative.contains(['\\', '\0'])
        && relative.split('/').all(|part| !matches!(part, "" | "." | ".."))
}
