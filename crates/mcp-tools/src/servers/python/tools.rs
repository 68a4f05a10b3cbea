//! The tools of `tool-python`.
//!
//! Decides their names, arguments and words, and what a model is told of an outcome. Sandboxes are left
//! to `sandboxes`, files to `scratch`.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::PythonError;
use super::arguments::{DownloadFile, DownloadFromInternet, RunCommand, RunPythonCode, UploadFile};
use super::download;
use super::sandboxes::{DEFAULT_ID, Place, Sandboxes};
use super::scratch;
use super::session::{End, Outcome, Request};
use super::space::Excess;
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
    ) -> CallToolResult {
        let lifetime = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(1.0)).ok());
        match self.sandboxes.create(lifetime).await {
            Ok(id) => text(format!("Sandbox created with sandbox_id: {id}")),
            Err(error) => failure(error),
        }
    }

    #[tool(
        description = "Runs Python code in a sandbox and returns what it prints, the value of its last expression and \
                       the traceback of an error. Variables, imports and files are kept for the next call with the \
                       same sandbox_id."
    )]
    async fn run_python_code(
        &self,
        Parameters(RunPythonCode { code_block, sandbox_id }): Parameters<RunPythonCode>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
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
    ) -> CallToolResult {
        self.run(sandbox_id.as_deref(), Request::Command(&command), &context.ct).await
    }

    #[tool(description = "Copies a local file, such as one given with the task, into a sandbox.")]
    async fn upload_file_from_local_to_sandbox(
        &self,
        Parameters(UploadFile { sandbox_id, local_file_path, sandbox_file_path }): Parameters<UploadFile>,
    ) -> CallToolResult {
        let place = match self.known(sandbox_id.as_deref()).await {
            Ok(place) => place,
            Err(result) => return result,
        };
        let options = self.sandboxes.options();
        let (roots, most) = (options.allowed_roots.clone(), options.file_limit);
        let copied = blocking(move || {
            let given = local_file_path.strip_prefix("file://").unwrap_or(&local_file_path);
            let local = paths::confine(Path::new(given), &roots)?;
            let name = local.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let target = scratch::relative(sandbox_file_path.as_deref().unwrap_or(&name), &place.scratch)?;
            let shown = |problem: std::io::Error| format!("`{given}` could not be copied: {problem}");
            let file = std::fs::File::open(&local).map_err(shown)?;
            let size = file.metadata().map_err(shown)?.len();
            within(size, most)?;
            place.space.room_for(size)?;
            // A file that grows meanwhile stays within the limit too.
            let size = scratch::write(&place.scratch, &target, file.take(most), place.user).map_err(shown)?;
            Ok(format!(
                "Copied to {} ({size} bytes), which is `{}` for code.",
                place.scratch.join(&target).display(),
                target.display()
            ))
        });
        copied.await.map_or_else(error, text)
    }

    #[tool(description = "Downloads a file from the internet into a sandbox.")]
    async fn download_file_from_internet_to_sandbox(
        &self,
        Parameters(DownloadFromInternet { sandbox_id, url, sandbox_file_path }): Parameters<
            DownloadFromInternet,
        >,
    ) -> CallToolResult {
        let place = match self.known(sandbox_id.as_deref()).await {
            Ok(place) => place,
            Err(result) => return result,
        };
        let (bytes, name) = match download::fetch(self.sandboxes.options(), &url).await {
            Ok(downloaded) => downloaded,
            Err(problem) => return error(problem),
        };
        let copied = blocking(move || {
            let target = scratch::relative(sandbox_file_path.as_deref().unwrap_or(&name), &place.scratch)?;
            let shown = |problem: std::io::Error| format!("`{url}` could not be written: {problem}");
            place.space.room_for(bytes.len() as u64)?;
            let size = scratch::write(&place.scratch, &target, &*bytes, place.user).map_err(shown)?;
            Ok(format!(
                "Downloaded to {} ({size} bytes), which is `{}` for code.",
                place.scratch.join(&target).display(),
                target.display()
            ))
        });
        copied.await.map_or_else(error, text)
    }

    #[tool(
        description = "Copies a file out of a sandbox, so that other tools and the user can open it. Returns its local path."
    )]
    async fn download_file_from_sandbox_to_local(
        &self,
        Parameters(DownloadFile { sandbox_id, sandbox_file_path, local_filename }): Parameters<DownloadFile>,
    ) -> CallToolResult {
        let place = match self.known(sandbox_id.as_deref()).await {
            Ok(place) => place,
            Err(result) => return result,
        };
        let options = self.sandboxes.options();
        let Some(downloads) = options.downloads.clone() else {
            return error(
                "Files cannot be taken out of sandboxes in this run. Print what you need instead.".into(),
            );
        };
        let most = options.file_limit;
        let copied = blocking(move || {
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
            let name = local_filename.as_deref().map_or(source.as_path(), Path::new).file_name();
            let Some(name) = name else {
                return Err("the local name must be the name of a file, like `table.csv`".to_owned());
            };
            std::fs::create_dir_all(&downloads).map_err(shown)?;
            let target = downloads.join(name);
            let mut copy = std::fs::File::create_new(&target).map_err(|problem| match problem.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    format!(
                        "`{}` exists already and is not overwritten; choose another local_filename",
                        target.display()
                    )
                }
                _ => shown(problem),
            })?;
            let size = std::io::copy(&mut file.take(most), &mut copy).map_err(shown)?;
            Ok(format!("Copied to {} ({size} bytes).", target.display()))
        });
        copied.await.map_or_else(error, text)
    }

    /// Runs one cell where the call says, or by itself where the id is unknown.
    async fn run(
        &self,
        id: Option<&str>,
        request: Request<'_>,
        cancel: &CancellationToken,
    ) -> CallToolResult {
        let id = meant(id);
        let ran = match self.sandboxes.get(id).await {
            Ok(Some(place)) => self.sandboxes.run(&place, request, cancel).await,
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        match ran {
            Ok(Some(ran)) => {
                let overflowed = ran.overflowed.map(|excess| {
                    let kept = if excess == Excess::Hidden { "and its files" } else { "and not its files" };
                    let why = too_much(excess);
                    format!("[Between the calls {why}, so all processes of the sandbox were killed, {kept} removed.]")
                });
                let fresh = "[The interpreter was started anew: variables of earlier calls are gone, files are still there.]";
                let mut notes: Vec<&str> = overflowed.as_deref().into_iter().collect();
                if ran.fresh {
                    notes.push(fresh);
                }
                if ran.is_full {
                    notes.push(FULL);
                }
                render(ran.outcome, true, &notes)
            }
            Ok(None) => match self.sandboxes.run_once(request, cancel).await {
                Ok(outcome) => render(
                    outcome,
                    false,
                    &[&self.unknown(id, "ran in a fresh interpreter and nothing of it is kept")],
                ),
                Err(error) => failure(error),
            },
            Err(error) => failure(error),
        }
    }

    async fn known(&self, id: Option<&str>) -> Result<Arc<Place>, CallToolResult> {
        let id = meant(id);
        match self.sandboxes.get(id).await {
            Ok(Some(place)) => Ok(place),
            Ok(None) => Err(error(self.unknown(id, "did nothing"))),
            Err(error) => Err(failure(error)),
        }
    }

    fn unknown(&self, id: &str, consequence: &str) -> String {
        let ids = self.sandboxes.ids();
        let ids = if ids.is_empty() { "none yet, call create_sandbox".to_owned() } else { ids.join(", ") };
        format!("[There is no sandbox `{id}`, so this call {consequence}. Sandboxes: {ids}.]")
    }
}

#[tool_handler(name = "tool-python")]
impl ServerHandler for PythonTools {}

fn meant(id: Option<&str>) -> &str {
    id.map(str::trim).filter(|id| !id.is_empty()).unwrap_or(DEFAULT_ID)
}

fn within(size: u64, most: u64) -> Result<(), String> {
    if size <= most { Ok(()) } else { Err(format!("the file has {size} bytes, the most is {most}")) }
}

/// File work off the asynchronous threads.
async fn blocking(work: impl FnOnce() -> Result<String, String> + Send + 'static) -> Result<String, String> {
    tokio::task::spawn_blocking(work).await.map_err(|_| "the copy did not finish".to_owned())?
}

/// What the model is told of an outcome, notes first. Whether the sandbox is there for the next call.
pub(super) fn render(outcome: Outcome, kept: bool, notes: &[&str]) -> CallToolResult {
    let Outcome { output, end } = outcome;
    let lost = match kept {
        true => "All its processes were killed; variables are gone, files are still there.",
        false => "All its processes were killed and its files removed.",
    };
    let (last, failed): (Option<Cow<'_, str>>, bool) = match end {
        End::Ok | End::Error | End::Exit(0) => (None, false),
        End::Exit(code) => (Some(format!("[exit code {code}]").into()), false),
        End::Overrun(limit) => {
            let seconds = limit.as_secs_f64();
            (
                Some(
                    format!(
                        "[The call took longer than {seconds} s and was stopped. {lost} Do less at a time.]"
                    )
                    .into(),
                ),
                true,
            )
        }
        End::Full(excess) => {
            let why = too_much(excess);
            let (lost, advice) = match (kept, excess) {
                (true, Excess::Bytes { .. }) => (lost, "Remove files, which is possible, before adding any."),
                (true, Excess::Hidden) => {
                    ("All its processes were killed; variables are gone, and all files.", "")
                }
                (false, _) => (lost, "Keep less in files."),
            };
            let words = format!("[The call was stopped: {why}. {lost} {advice}");
            (Some(format!("{}]", words.trim_end()).into()), true)
        }
        End::Flood => (Some(format!("[The call printed without end and was stopped. {lost}]").into()), true),
        End::Cancelled => (Some(format!("[The call was cancelled. {lost}]").into()), true),
        End::Gone(how) => {
            (Some(format!("[The interpreter ended before the code did ({how}). {lost}]").into()), true)
        }
    };
    let output = output.trim_end_matches('\n');
    let body = if output.is_empty() && last.is_none() { "(no output)" } else { output };
    let parts = notes.iter().copied().chain((!body.is_empty()).then_some(body)).chain(last.as_deref());
    let whole = parts.collect::<Vec<_>>().join("\n");
    if failed { error(whole) } else { text(whole) }
}

/// Told with every result of a sandbox in which too much is left.
const FULL: &str = "[The files of the sandbox take more space than they may: remove some. A call that adds to them is stopped.]";

/// What is wrong with the files of a sandbox.
fn too_much(excess: Excess) -> String {
    match excess {
        Excess::Bytes { most } => {
            format!(
                "the files of the sandbox took more than {} MiB, which is the most that they may",
                most >> 20
            )
        }
        Excess::Hidden => "folders were too deep inside one another to be looked into".to_owned(),
    }
}

pub(super) fn failure(problem: PythonError) -> CallToolResult {
    error(format!("Nothing was done: {problem}."))
}

fn text(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn error(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}
