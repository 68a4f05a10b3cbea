//! The tools of `tool-python`, carried out by E2B.
//!
//! Decides what a model is told. Names and arguments are those of the local sandbox.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::arguments::{DownloadFile, DownloadFromInternet, RunCommand, RunPythonCode, UploadFile};
use super::client::Machine;
use super::{DEFAULT_ID, Machines};
use crate::egress::FetchRequest;
use crate::servers::paths;

#[derive(Debug, Deserialize, JsonSchema)]
struct CreateSandbox {
    /// Seconds after which the sandbox ends. May be left out.
    timeout: Option<f64>,
}

#[derive(Clone)]
pub(super) struct E2bTools {
    machines: Arc<Machines>,
}

#[tool_router]
impl E2bTools {
    pub(super) fn new(machines: Arc<Machines>) -> Self {
        Self { machines }
    }

    #[tool(
        description = "Creates an isolated Linux sandbox with Python and returns its sandbox_id. Variables and files in \
                       it are kept between calls that use this id."
    )]
    async fn create_sandbox(
        &self,
        Parameters(CreateSandbox { timeout }): Parameters<CreateSandbox>,
    ) -> CallToolResult {
        let lifetime = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(1.0)).ok());
        let made = self.machines.create(lifetime).await;
        told(made.map(|id| format!("Sandbox created with sandbox_id: {id}")))
    }

    #[tool(
        description = "Runs Python code in a sandbox and returns what it prints, the value of its last expression and \
                       the traceback of an error. Variables, imports and files are kept for the next call with the \
                       same sandbox_id."
    )]
    async fn run_python_code(
        &self,
        Parameters(RunPythonCode { code_block, sandbox_id }): Parameters<RunPythonCode>,
    ) -> CallToolResult {
        self.run(sandbox_id.as_deref(), async |machine| {
            Ok(self.machines.client.run_code(machine, &code_block).await?.output)
        })
        .await
    }

    #[tool(
        description = "Runs a shell command in a sandbox and returns its output and exit code. Standard input is empty."
    )]
    async fn run_command(
        &self,
        Parameters(RunCommand { command, sandbox_id }): Parameters<RunCommand>,
    ) -> CallToolResult {
        self.run(sandbox_id.as_deref(), async |machine| {
            let ran = self.machines.client.run_command(machine, &command).await?;
            let mut output = ran.output;
            let last = match (ran.problem, ran.exit_code) {
                (Some(problem), _) => format!("[The command failed: {problem}]"),
                (None, Some(0)) => String::new(),
                (None, Some(code)) => format!("[exit code {code}]"),
                (None, None) => "[Nothing was heard of the end of the command.]".to_owned(),
            };
            if !last.is_empty() && !output.is_empty() && !output.ends_with('\n') {
                output.push('\n');
            }
            output.push_str(&last);
            Ok(output)
        })
        .await
    }

    #[tool(description = "Copies a local file, such as one given with the task, into a sandbox.")]
    async fn upload_file_from_local_to_sandbox(
        &self,
        Parameters(UploadFile { sandbox_id, local_file_path, sandbox_file_path }): Parameters<UploadFile>,
    ) -> CallToolResult {
        let options = &self.machines.client.options;
        let given = local_file_path.strip_prefix("file://").unwrap_or(&local_file_path);
        let done = async {
            let machine = self.known(sandbox_id.as_deref()).await?;
            let local = paths::confine(Path::new(given), &options.allowed_roots)?;
            let shown = |problem: std::io::Error| format!("`{given}` could not be copied: {problem}");
            within(tokio::fs::metadata(&local).await.map_err(shown)?.len(), options.file_limit)?;
            let bytes = tokio::fs::read(&local).await.map_err(shown)?;
            let name = local.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let target = sandbox_file_path.unwrap_or(name);
            self.machines.client.upload(&machine, &target, &bytes).await?;
            Ok(format!("Copied to `{target}` in the sandbox ({} bytes).", bytes.len()))
        };
        told(done.await)
    }

    #[tool(description = "Downloads a file from the internet into a sandbox.")]
    async fn download_file_from_internet_to_sandbox(
        &self,
        Parameters(DownloadFromInternet { sandbox_id, url, sandbox_file_path }): Parameters<
            DownloadFromInternet,
        >,
    ) -> CallToolResult {
        let options = &self.machines.client.options;
        let done = async {
            let machine = self.known(sandbox_id.as_deref()).await?;
            let request =
                FetchRequest { size_limit: Some(options.file_limit), ..FetchRequest::new(url.as_str()) };
            let fetched = options.egress.fetch(request).await.map_err(|error| format!("{error}."))?;
            if !fetched.is_success() {
                return Err(format!(
                    "`{url}` could not be fetched: its server answered with status {}.",
                    fetched.status
                ));
            }
            let name = if fetched.name.is_empty() { "download".to_owned() } else { fetched.name };
            let target = sandbox_file_path.unwrap_or(name);
            self.machines.client.upload(&machine, &target, &fetched.body).await?;
            Ok(format!("Downloaded to `{target}` in the sandbox ({} bytes).", fetched.body.len()))
        };
        told(done.await)
    }

    #[tool(
        description = "Copies a file out of a sandbox, so that other tools and the user can open it. Returns its local path."
    )]
    async fn download_file_from_sandbox_to_local(
        &self,
        Parameters(DownloadFile { sandbox_id, sandbox_file_path, local_filename }): Parameters<DownloadFile>,
    ) -> CallToolResult {
        let options = &self.machines.client.options;
        let done = async {
            let machine = self.known(sandbox_id.as_deref()).await?;
            let Some(downloads) = &options.downloads else {
                return Err(
                    "Files cannot be taken out of sandboxes in this run. Print what you need instead."
                        .to_owned(),
                );
            };
            let name = Path::new(local_filename.as_deref().unwrap_or(&sandbox_file_path)).file_name();
            let Some(name) = name else {
                return Err("the local name must be the name of a file, like `table.csv`".to_owned());
            };
            let bytes = self.machines.client.download(&machine, &sandbox_file_path).await?;
            within(bytes.len() as u64, options.file_limit)?;
            let target = downloads.join(name);
            let shown = |problem: std::io::Error| match problem.kind() {
                std::io::ErrorKind::AlreadyExists => format!(
                    "`{}` exists already and is not overwritten; choose another local_filename",
                    target.display()
                ),
                _ => format!("`{}` could not be written: {problem}", target.display()),
            };
            tokio::fs::create_dir_all(downloads).await.map_err(shown)?;
            let mut file = tokio::fs::File::create_new(&target).await.map_err(shown)?;
            tokio::io::AsyncWriteExt::write_all(&mut file, &bytes).await.map_err(shown)?;
            tokio::io::AsyncWriteExt::flush(&mut file).await.map_err(shown)?;
            Ok(format!("Copied to {} ({} bytes).", target.display(), bytes.len()))
        };
        told(done.await)
    }

    /// Runs something where the call says, or in a sandbox of its own where the id is unknown.
    async fn run(
        &self,
        id: Option<&str>,
        work: impl AsyncFnOnce(&Machine) -> Result<String, String>,
    ) -> CallToolResult {
        let id = meant(id);
        let ran = async {
            if let Some(machine) = self.machines.get(id).await? {
                return Ok((work(&machine).await?, String::new()));
            }
            let machine = self.machines.client.create(None).await?;
            let output = work(&machine).await;
            if let Err(problem) = self.machines.client.kill(&machine).await {
                tracing::warn!(problem, "a sandbox was left to end by itself");
            }
            Ok((output?, self.unknown(id, "ran in a fresh sandbox and nothing of it is kept")))
        };
        told(ran.await.map(|(output, note): (String, String)| {
            let most = self.machines.client.options.output_limit;
            let output = if output.is_empty() { "(no output)".to_owned() } else { output };
            let shown = match output.char_indices().nth(most) {
                Some((at, _)) => format!("{}\n[cut here, after {most} characters]", &output[..at]),
                None => output,
            };
            if note.is_empty() { shown } else { format!("{note}\n{shown}") }
        }))
    }

    async fn known(&self, id: Option<&str>) -> Result<Arc<Machine>, String> {
        let id = meant(id);
        self.machines.get(id).await?.ok_or_else(|| self.unknown(id, "did nothing"))
    }

    fn unknown(&self, id: &str, consequence: &str) -> String {
        let ids = self.machines.ids();
        let ids = if ids.is_empty() { "none yet, call create_sandbox".to_owned() } else { ids.join(", ") };
        format!("[There is no sandbox `{id}`, so this call {consequence}. Sandboxes: {ids}.]")
    }
}

#[tool_handler(name = "tool-python")]
impl ServerHandler for E2bTools {}

fn meant(id: Option<&str>) -> &str {
    id.map(str::trim).filter(|id| !id.is_empty()).unwrap_or(DEFAULT_ID)
}

fn within(size: u64, most: u64) -> Result<(), String> {
    if size <= most { Ok(()) } else { Err(format!("the file has {size} bytes, the most is {most}")) }
}

fn told(done: Result<String, String>) -> CallToolResult {
    match done {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(problem) => CallToolResult::error(vec![ContentBlock::text(problem)]),
    }
}
