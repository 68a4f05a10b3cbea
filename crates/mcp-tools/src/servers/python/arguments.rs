//! The arguments of the tools of `tool-python`, wherever the code runs. Decides their names and what a model is told of
//! them. How long a sandbox lives is each backend's own.

use schemars::JsonSchema;
use serde::Deserialize;

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
