//! The tools of `tool-python`, carried out by E2B.
//!
//! Decides how each is carried out there. Names, arguments and most words are those of the local sandbox.

use std::path::Path;
use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Machines;
use super::client::Machine;
use crate::servers::paths;
use crate::servers::python::calls::{
    self, DownloadFile, DownloadFromInternet, RunCommand, RunPythonCode, UploadFile, within,
};
use crate::servers::python::download;

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
    ) -> Result<String, String> {
        let id = self.machines.create(calls::lifetime(timeout)).await?;
        Ok(format!("Sandbox created with sandbox_id: {id}"))
    }

    #[tool(description = calls::RUN_PYTHON_CODE)]
    async fn run_python_code(
        &self,
        Parameters(RunPythonCode { code_block, sandbox_id }): Parameters<RunPythonCode>,
    ) -> Result<String, String> {
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
    ) -> Result<String, String> {
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

    #[tool(description = calls::UPLOAD_FILE)]
    async fn upload_file_from_local_to_sandbox(
        &self,
        Parameters(UploadFile { sandbox_id, local_file_path, sandbox_file_path }): Parameters<UploadFile>,
    ) -> Result<String, String> {
        let options = &self.machines.client.options;
        let given = calls::local_path(&local_file_path);
        let machine = self.known(sandbox_id.as_deref()).await?;
        let local = paths::confine(given, &options.allowed_roots)?;
        let shown = |problem: std::io::Error| format!("`{}` could not be copied: {problem}", given.display());
        within(tokio::fs::metadata(&local).await.map_err(shown)?.len(), options.file_limit)?;
        let bytes = tokio::fs::read(&local).await.map_err(shown)?;
        let name = local.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let target = sandbox_file_path.unwrap_or(name);
        self.machines.client.upload(&machine, &target, &bytes).await?;
        Ok(format!("Copied to `{target}` in the sandbox ({} bytes).", bytes.len()))
    }

    #[tool(description = calls::DOWNLOAD_FROM_INTERNET)]
    async fn download_file_from_internet_to_sandbox(
        &self,
        Parameters(DownloadFromInternet { sandbox_id, url, sandbox_file_path }): Parameters<
            DownloadFromInternet,
        >,
    ) -> Result<String, String> {
        let options = &self.machines.client.options;
        let machine = self.known(sandbox_id.as_deref()).await?;
        let (bytes, name) = download::from(&options.egress, &url, options.file_limit).await?;
        let target = sandbox_file_path.unwrap_or(name);
        self.machines.client.upload(&machine, &target, &bytes).await?;
        Ok(format!("Downloaded to `{target}` in the sandbox ({} bytes).", bytes.len()))
    }

    #[tool(description = calls::DOWNLOAD_FILE)]
    async fn download_file_from_sandbox_to_local(
        &self,
        Parameters(DownloadFile { sandbox_id, sandbox_file_path, local_filename }): Parameters<DownloadFile>,
    ) -> Result<String, String> {
        let options = &self.machines.client.options;
        let machine = self.known(sandbox_id.as_deref()).await?;
        let downloads = options.downloads.as_ref().ok_or(calls::NO_DOWNLOADS)?;
        let name = calls::local_name(local_filename.as_deref(), Path::new(&sandbox_file_path))?;
        let bytes = self.machines.client.download(&machine, &sandbox_file_path).await?;
        within(bytes.len() as u64, options.file_limit)?;
        let target = downloads.join(name);
        let shown = |problem: std::io::Error| match problem.kind() {
            std::io::ErrorKind::AlreadyExists => calls::taken(&target),
            _ => format!("`{}` could not be written: {problem}", target.display()),
        };
        tokio::fs::create_dir_all(downloads).await.map_err(shown)?;
        let mut file = tokio::fs::File::create_new(&target).await.map_err(shown)?;
        tokio::io::AsyncWriteExt::write_all(&mut file, &bytes).await.map_err(shown)?;
        tokio::io::AsyncWriteExt::flush(&mut file).await.map_err(shown)?;
        Ok(format!("Copied to {} ({} bytes).", target.display(), bytes.len()))
    }

    /// Runs something where the call says, or in a sandbox of its own where the id is unknown.
    async fn run(
        &self,
        id: Option<&str>,
        work: impl AsyncFnOnce(&Machine) -> Result<String, String>,
    ) -> Result<String, String> {
        let id = calls::meant(id);
        let (output, note) = match self.machines.get(id).await? {
            Some(machine) => (work(&machine).await?, None),
            None => {
                let machine = self.machines.client.create(None).await?;
                let output = work(&machine).await;
                if let Err(problem) = self.machines.client.kill(&machine).await {
                    tracing::warn!(problem, "a sandbox was left to end by itself");
                }
                (output?, Some(self.unknown(id, "ran in a fresh sandbox and nothing of it is kept")))
            }
        };
        let most = self.machines.client.options.output_limit;
        let output = if output.is_empty() { "(no output)".to_owned() } else { output };
        let shown = match output.char_indices().nth(most) {
            Some((at, _)) => format!("{}\n[cut here, after {most} characters]", &output[..at]),
            None => output,
        };
        Ok(note.into_iter().chain([shown]).collect::<Vec<_>>().join("\n"))
    }

    async fn known(&self, id: Option<&str>) -> Result<Arc<Machine>, String> {
        let id = calls::meant(id);
        self.machines.get(id).await?.ok_or_else(|| self.unknown(id, "did nothing"))
    }

    fn unknown(&self, id: &str, consequence: &str) -> String {
        calls::unknown(id, &self.machines.ids(), consequence)
    }
}

#[tool_handler(name = "tool-python")]
impl ServerHandler for E2bTools {}
