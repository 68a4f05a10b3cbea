//! The tools of `tool-python`.
//!
//! Decides where and how each is carried out. Sandboxes are left to `sandboxes`, files to `scratch`, words to `calls`
//! and `words`.

use std::io::Read;
use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::calls::{self, DownloadFile, DownloadFromInternet, RunCommand, RunPythonCode, UploadFile, within};
use super::sandboxes::{Place, Sandboxes};
use super::session::Request;
use super::space::Excess;
use super::words::{FULL, failure, render, too_much};
use super::{download, scratch};
use crate::servers::paths;

#[derive(Debug, Deserialize, JsonSchema)]
struct CreateSandbox {
    /// Seconds without a call after which the sandbox ends. May be left out.
    timeout: Option<f64>,
}

#[derive(Debug, Clone)]
pub(super) struct PythonTools {
    sandboxes: Arc<Sandboxes>,
}

#[tool_router]
impl PythonTools {
    pub(super) fn new(sandboxes: Arc<Sandboxes>) -> Self {
        Self { sandboxes }
    }

    #[tool(
        description = "Creates an isolated Linux sandbox with Python and returns its sandbox_id. Variables and files in \
                       it are kept between calls that use this id. There is no network inside, or only the proxy that \
                       HTTP_PROXY names."
    )]
    async fn create_sandbox(
        &self,
        Parameters(CreateSandbox { timeout }): Parameters<CreateSandbox>,
    ) -> Result<String, String> {
        let id = self.sandboxes.create(calls::lifetime(timeout)).await.map_err(failure)?;
        Ok(format!("Sandbox created with sandbox_id: {id}"))
    }

    #[tool(description = calls::RUN_PYTHON_CODE)]
    async fn run_python_code(
        &self,
        Parameters(RunPythonCode { code_block, sandbox_id }): Parameters<RunPythonCode>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        self.run(sandbox_id.as_deref(), Request::Code(&code_block), &context.ct).await
    }

    #[tool(
        description = "Runs a shell command in a sandbox, in the directory of its files, and returns its output and \
                       exit code. Standard input is empty."
    )]
    async fn run_command(
        &self,
        Parameters(RunCommand { command, sandbox_id }): Parameters<RunCommand>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        self.run(sandbox_id.as_deref(), Request::Command(&command), &context.ct).await
    }

    #[tool(description = calls::UPLOAD_FILE)]
    async fn upload_file_from_local_to_sandbox(
        &self,
        Parameters(UploadFile { sandbox_id, local_file_path, sandbox_file_path }): Parameters<UploadFile>,
    ) -> Result<String, String> {
        let place = self.known(sandbox_id.as_deref()).await?;
        let options = self.sandboxes.options();
        let (roots, most) = (options.allowed_roots.clone(), options.file_limit);
        blocking(move || {
            let given = calls::local_path(&local_file_path);
            let local = paths::confine(given, &roots)?;
            let name = local.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let target = scratch::relative(sandbox_file_path.as_deref().unwrap_or(&name), &place.scratch)?;
            let shown =
                |problem: std::io::Error| format!("`{}` could not be copied: {problem}", given.display());
            let file = std::fs::File::open(&local).map_err(shown)?;
            let size = file.metadata().map_err(shown)?.len();
            within(size, most)?;
            place.space.room_for(size)?;
            // A file that grows meanwhile stays within the limit too.
            let size = scratch::write(&place.scratch, &target, file.take(most), place.user).map_err(shown)?;
            Ok(format!("Copied to {}", place.shown(&target, size)))
        })
        .await
    }

    #[tool(description = calls::DOWNLOAD_FROM_INTERNET)]
    async fn download_file_from_internet_to_sandbox(
        &self,
        Parameters(DownloadFromInternet { sandbox_id, url, sandbox_file_path }): Parameters<
            DownloadFromInternet,
        >,
    ) -> Result<String, String> {
        let place = self.known(sandbox_id.as_deref()).await?;
        let (bytes, name) = download::fetch(self.sandboxes.options(), &url).await?;
        blocking(move || {
            let target = scratch::relative(sandbox_file_path.as_deref().unwrap_or(&name), &place.scratch)?;
            let shown = |problem: std::io::Error| format!("`{url}` could not be written: {problem}");
            place.space.room_for(bytes.len() as u64)?;
            let size = scratch::write(&place.scratch, &target, &*bytes, place.user).map_err(shown)?;
            Ok(format!("Downloaded to {}", place.shown(&target, size)))
        })
        .await
    }

    #[tool(description = calls::DOWNLOAD_FILE)]
    async fn download_file_from_sandbox_to_local(
        &self,
        Parameters(DownloadFile { sandbox_id, sandbox_file_path, local_filename }): Parameters<DownloadFile>,
    ) -> Result<String, String> {
        let place = self.known(sandbox_id.as_deref()).await?;
        let options = self.sandboxes.options();
        let downloads = options.downloads.clone().ok_or(calls::NO_DOWNLOADS)?;
        let most = options.file_limit;
        blocking(move || {
            let source = scratch::relative(&sandbox_file_path, &place.scratch)?;
            let shown = |problem: std::io::Error| match problem.raw_os_error() {
                // What the kernel says of a link that leads out, and of one where none may be followed.
                Some(libc::EXDEV | libc::ELOOP) => format!(
                    "`{sandbox_file_path}` could not be copied: it is a link to a place outside the sandbox"
                ),
                _ => format!("`{sandbox_file_path}` could not be copied: {problem}"),
            };
            let (file, size) = scratch::read(&place.scratch, &source).map_err(shown)?;
            within(size, most)?;
            let name = calls::local_name(local_filename.as_deref(), &source)?;
            std::fs::create_dir_all(&downloads).map_err(shown)?;
            let target = downloads.join(name);
            let mut copy = std::fs::File::create_new(&target).map_err(|problem| match problem.kind() {
                std::io::ErrorKind::AlreadyExists => calls::taken(&target),
                _ => shown(problem),
            })?;
            let size = std::io::copy(&mut file.take(most), &mut copy).map_err(shown)?;
            Ok(format!("Copied to {} ({size} bytes).", target.display()))
        })
        .await
    }

    /// Runs one cell where the call says, or by itself where the id is unknown.
    async fn run(
        &self,
        id: Option<&str>,
        request: Request<'_>,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let id = calls::meant(id);
        let ran = match self.sandboxes.get(id).await.map_err(failure)? {
            Some(place) => self.sandboxes.run(&place, request, cancel).await.map_err(failure)?,
            None => None,
        };
        let Some(ran) = ran else {
            let outcome = self.sandboxes.run_once(request, cancel).await.map_err(failure)?;
            let note = self.unknown(id, "ran in a fresh interpreter and nothing of it is kept");
            return render(outcome, false, &[&note]);
        };
        let overflowed = ran.overflowed.map(|excess| {
            let kept = if excess == Excess::Hidden { "and its files" } else { "and not its files" };
            let why = too_much(excess);
            format!("[Between the calls {why}, so all processes of the sandbox were killed, {kept} removed.]")
        });
        let mut notes: Vec<&str> = overflowed.as_deref().into_iter().collect();
        if ran.fresh {
            notes.push(
                "[The interpreter was started anew: variables of earlier calls are gone, files are still there.]",
            );
        }
        if ran.is_full {
            notes.push(FULL);
        }
        render(ran.outcome, true, &notes)
    }

    async fn known(&self, id: Option<&str>) -> Result<Arc<Place>, String> {
        let id = calls::meant(id);
        let place = self.sandboxes.get(id).await.map_err(failure)?;
        place.ok_or_else(|| self.unknown(id, "did nothing"))
    }

    fn unknown(&self, id: &str, consequence: &str) -> String {
        calls::unknown(id, &self.sandboxes.ids(), consequence)
    }
}

#[tool_handler(name = "tool-python")]
impl ServerHandler for PythonTools {}

/// File work off the asynchronous threads.
async fn blocking(work: impl FnOnce() -> Result<String, String> + Send + 'static) -> Result<String, String> {
    tokio::task::spawn_blocking(work).await.map_err(|_| "the copy did not finish".to_owned())?
}
