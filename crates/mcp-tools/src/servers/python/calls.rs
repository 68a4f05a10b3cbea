//! What calls of `tool-python` have in common, wherever the code runs.
//!
//! Decides the arguments of its tools, what a model is told of them, and what is said of calls that come to nothing.
//! How long a sandbox lives is each backend's own.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

/// The id that calls without one mean.
pub(super) const DEFAULT_ID: &str = "default";

/// What `run_python_code` is for.
pub(super) const RUN_PYTHON_CODE: &str = "Runs Python code in a sandbox and returns what it prints, the value of its last expression and the traceback of \
     an error. Variables, imports and files are kept for the next call with the same sandbox_id.";
/// What `upload_file_from_local_to_sandbox` is for.
pub(super) const UPLOAD_FILE: &str = "Copies a local file, such as one given with the task, into a sandbox.";
/// What `download_file_from_internet_to_sandbox` is for.
pub(super) const DOWNLOAD_FROM_INTERNET: &str = "Downloads a file from the internet into a sandbox.";
/// What `download_file_from_sandbox_to_local` is for.
pub(super) const DOWNLOAD_FILE: &str =
    "Copies a file out of a sandbox, so that other tools and the user can open it. Returns its local path.";
/// Where there is no place for files from sandboxes.
pub(super) const NO_DOWNLOADS: &str =
    "Files cannot be taken out of sandboxes in this run. Print what you need instead.";

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RunPythonCode {
    /// The Python code. The value of its last expression is shown, and all that it prints.
    pub(super) code_block: String,
    /// The id that create_sandbox gave. Left out: the default sandbox.
    pub(super) sandbox_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RunCommand {
    /// The shell command.
    pub(super) command: String,
    /// The id that create_sandbox gave. Left out: the default sandbox.
    pub(super) sandbox_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct UploadFile {
    /// The id that create_sandbox gave. Left out: the default sandbox.
    pub(super) sandbox_id: Option<String>,
    /// The local file to copy.
    pub(super) local_file_path: String,
    /// Where to put it in the sandbox. Left out: under its own name.
    pub(super) sandbox_file_path: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DownloadFromInternet {
    /// The id that create_sandbox gave. Left out: the default sandbox.
    pub(super) sandbox_id: Option<String>,
    /// The address of the file.
    pub(super) url: String,
    /// Where to put it in the sandbox. Left out: under its own name.
    pub(super) sandbox_file_path: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DownloadFile {
    /// The id that create_sandbox gave. Left out: the default sandbox.
    pub(super) sandbox_id: Option<String>,
    /// The file in the sandbox.
    pub(super) sandbox_file_path: String,
    /// The name of the local copy. Left out: the same name.
    pub(super) local_filename: Option<String>,
}

/// The sandbox that a call means.
pub(super) fn meant(id: Option<&str>) -> &str {
    id.map(str::trim).filter(|id| !id.is_empty()).unwrap_or(DEFAULT_ID)
}

/// What is said of an id that is not among the ids in use.
pub(super) fn unknown(id: &str, ids: &[String], consequence: &str) -> String {
    let ids = if ids.is_empty() { "none yet, call create_sandbox".to_owned() } else { ids.join(", ") };
    format!("[There is no sandbox `{id}`, so this call {consequence}. Sandboxes: {ids}.]")
}

/// How long a sandbox is to live, from the seconds that a call names.
pub(super) fn lifetime(timeout: Option<f64>) -> Option<Duration> {
    timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(1.0)).ok())
}

/// That a file is not too large to be copied.
pub(super) fn within(size: u64, most: u64) -> Result<(), String> {
    if size <= most { Ok(()) } else { Err(format!("the file has {size} bytes, the most is {most}")) }
}

/// The path of a local file as a call names it.
pub(super) fn local_path(given: &str) -> &Path {
    Path::new(given.strip_prefix("file://").unwrap_or(given))
}

/// The name of a local copy: the one that was asked for, else that of the file.
pub(super) fn local_name<'a>(asked: Option<&'a str>, file: &'a Path) -> Result<&'a OsStr, String> {
    let name = asked.map_or(file, Path::new).file_name();
    name.ok_or_else(|| "the local name must be the name of a file, like `table.csv`".to_owned())
}

/// What is said of a local copy whose name is taken.
pub(super) fn taken(target: &Path) -> String {
    format!("`{}` exists already and is not overwritten; choose another local_filename", target.display())
}
