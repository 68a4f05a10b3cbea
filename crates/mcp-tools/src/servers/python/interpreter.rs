//! Which Python runs the cells.
//!
//! Decides which interpreters are looked at, in which order, and what of the file system each needs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;

/// An interpreter that answered.
#[derive(Debug, Clone)]
pub(super) struct Interpreter {
    /// The program itself, links and wrappers resolved.
    pub(super) program: PathBuf,
    /// Its version, `3.12.1`.
    pub(super) version: String,
    /// Directories outside the system's that it and its packages are in.
    pub(super) readable: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Answer {
    executable: PathBuf,
    version: [u32; 3],
    prefixes: Vec<PathBuf>,
    packages: Vec<PathBuf>,
}

/// Asks an interpreter about itself. Runs unconfined, because it is the user's own program.
const QUESTION: &str = "\
import json, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({
    'executable': sys.executable,
    'version': list(sys.version_info[:3]),
    'prefixes': [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix],
    'packages': [paths[key] for key in ('stdlib', 'platstdlib', 'purelib', 'platlib')],
}))";

/// The oldest version that the driver runs on.
const OLDEST: [u32; 3] = [3, 8, 0];

/// What a broken wrapper may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The interpreters to try, best first: the one that was set, else `python3` and `python` of the search
/// path, else where systems keep it.
pub(super) fn candidates(configured: Option<&Path>, search_path: Option<&std::ffi::OsStr>) -> Vec<PathBuf> {
    if let Some(configured) = configured {
        return vec![configured.to_owned()];
    }
    let searched: Vec<PathBuf> =
        search_path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
    let usual = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    let mut found: Vec<PathBuf> = Vec::new();
    for name in ["python3", "python"] {
        for directory in searched.iter().chain(&usual).filter(|directory| directory.is_absolute()) {
            let program = directory.join(name);
            // The same file by another name is tried once.
            let Ok(real) = program.canonicalize() else { continue };
            if real.is_file() && !found.iter().any(|seen| seen.canonicalize().is_ok_and(|seen| seen == real))
            {
                found.push(program);
            }
        }
    }
    found
}

/// Asks one candidate.
pub(super) async fn ask(program: &Path) -> Result<Interpreter, String> {
    let mut command = Command::new(program);
    command.args(["-I", "-c", QUESTION]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(ANSWER_LIMIT, command.output())
        .await
        .map_err(|_| format!("no answer within {} s", ANSWER_LIMIT.as_secs()))?
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("it ended with {}", output.status));
    }
    let answer: Answer = serde_json::from_slice(&output.stdout)
        .map_err(|_| "it did not say where its files are".to_owned())?;
    let [major, minor, patch] = answer.version;
    let version = format!("{major}.{minor}.{patch}");
    if answer.version < OLDEST {
        return Err(format!("version {version} is too old, {}.{} is needed", OLDEST[0], OLDEST[1]));
    }
    // Not canonical: an environment is recognised by the path that it is started by.
    let real = answer.executable.canonicalize().map_err(|error| error.to_string())?;
    let mut readable = vec![real];
    for path in answer.prefixes.iter().chain(&answer.packages) {
        if !readable.contains(path) && !is_too_much(path) {
            readable.push(path.clone());
        }
    }
    if let Some(directory) = answer.executable.parent()
        && !is_too_much(directory)
    {
        readable.push(directory.to_owned());
    }
    readable.retain(|path| !path.starts_with("/usr"));
    Ok(Interpreter { program: answer.executable, version, readable })
}

/// Whether reading all of a directory would show more than an interpreter: the root, the parent of home
/// directories, a home directory itself, what programs keep for a user.
fn is_too_much(path: &Path) -> bool {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let parents = ["/home", "/root", "/Users", "/etc", "/var", "/opt", "/tmp", "/mnt", "/srv"];
    path.parent().is_none()
        || parents.iter().any(|parent| path == Path::new(parent))
        || path.parent() == Some(Path::new("/home"))
        || home.is_some_and(|home| home.starts_with(&path) || path == home.join(".local"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_never_readable_as_a_whole() {
        for path in ["/", "/home", "/home/someone", "/root", "/tmp"] {
            assert!(is_too_much(Path::new(path)), "{path}");
        }
        for path in ["/home/someone/.venv", "/opt/conda", "/root/.pyenv/versions/3.11.7"] {
            assert!(!is_too_much(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn only_absolute_directories_are_searched() {
        let found = candidates(None, Some(std::ffi::OsStr::new(".:relative:/usr/bin:/usr/bin")));
        assert!(found.iter().all(|program| program.is_absolute()), "{found:?}");
        let configured = candidates(Some(Path::new("/opt/p")), None);
        assert_eq!(configured, [PathBuf::from("/opt/p")]);
    }

    #[tokio::test]
    async fn what_is_no_python_says_so() {
        let error = ask(Path::new("/bin/false")).await.expect_err("not Python");
        assert!(error.contains("ended with"), "{error}");
    }
}
