//! The servers `tool-python` and `stateless_python`: code of a model, run in the local sandbox.
//!
//! Decides options, errors and how the servers start and end. The tools are in `tools`, the sandboxes
//! that they work on in `sandboxes`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use crate::sandbox::{Sandbox, SandboxError};
use crate::{InProcessServer, serve_handler};

pub use crate::sandbox::{SandboxLayer, SandboxLimits, SandboxMode, SandboxReport};

mod calls;
mod download;
#[cfg(feature = "e2b")]
pub mod e2b;
mod interpreter;
#[cfg(feature = "egress")]
mod network;
mod output;
mod sandboxes;
mod scratch;
mod session;
mod space;
mod stateless;
mod tools;
mod words;

use sandboxes::Sandboxes;

/// How model-written code is run.
#[derive(Debug, Clone)]
pub struct PythonOptions {
    /// Where the scratch directories of sandboxes are made. Where sandboxes have users of their own
    /// (this process is root) and could not get there, the directory for temporary files is used.
    pub scratch_root: PathBuf,
    /// Whether code is confined.
    pub sandbox: SandboxMode,
    /// What a process in a sandbox may use up.
    pub limits: SandboxLimits,
    /// The interpreter; none looks through `PATH` and the usual places.
    pub python: Option<PathBuf>,
    /// How long a start may take. Default 20 s.
    pub start_limit: Duration,
    /// How long one call may take. Default 240 s: shorter than the usual limit of a tool call, so that
    /// the model is told why it ended.
    pub call_limit: Duration,
    /// After how long without a call a sandbox ends, where `create_sandbox` was not told. Default 30 min.
    pub lifetime: Duration,
    /// The longest that `create_sandbox` may ask for. Default 24 h.
    pub longest_lifetime: Duration,
    /// Sandboxes at a time. Default 16.
    pub most_sandboxes: usize,
    /// Characters of output that a call shows. Default 20,000.
    pub output_limit: usize,
    /// Bytes of a file that goes in or out. Default 256 MiB.
    pub file_limit: u64,
    /// Directories and files that may be taken into a sandbox. Empty: the working directory.
    pub allowed_roots: Vec<PathBuf>,
    /// The way out by which files are downloaded into a sandbox; none: they cannot be.
    #[cfg(feature = "egress")]
    pub egress: Option<crate::egress::Egress>,
    /// The way out for code in sandboxes, through a proxy; none: no network. Where this machine cannot keep code to
    /// the proxy, there is no network either.
    #[cfg(feature = "egress")]
    pub network: Option<crate::egress::Egress>,
    /// Where files from a sandbox are put; nothing there is overwritten. None: they cannot be taken out.
    pub downloads: Option<PathBuf>,
}

impl Default for PythonOptions {
    fn default() -> Self {
        Self {
            scratch_root: std::env::temp_dir(),
            sandbox: SandboxMode::Auto,
            limits: SandboxLimits::default(),
            python: None,
            start_limit: Duration::from_secs(20),
            call_limit: Duration::from_secs(240),
            lifetime: Duration::from_secs(30 * 60),
            longest_lifetime: Duration::from_secs(24 * 3600),
            most_sandboxes: 16,
            output_limit: 20_000,
            file_limit: 256 << 20,
            allowed_roots: Vec::new(),
            #[cfg(feature = "egress")]
            egress: None,
            #[cfg(feature = "egress")]
            network: None,
            downloads: None,
        }
    }
}

/// Why code could not be run. Each message says what to do.
#[derive(Debug, Clone, thiserror::Error)]
enum PythonError {
    #[error("{0}")]
    Refused(String),
    #[error(
        "no Python was found that could run the code. Install Python 3.8 or newer where every user may read it \
         (`apt install python3`), or name one in the configuration. Tried: {}",
        if tried.is_empty() { "nothing, there is no `python3` on the search path".to_owned() } else { tried.join("; ") }
    )]
    NoInterpreter { tried: Vec<String> },
    #[error("no sandbox could be made in {}: {problem}. Free space there or choose another directory", path.display())]
    Scratch { path: PathBuf, problem: String },
    #[error("{0}")]
    Sandbox(String),
    #[error("{0}")]
    Start(String),
    #[error("there are {} sandboxes already, which is the most; use one of {}", ids.len(), ids.join(", "))]
    TooMany { ids: Vec<String> },
    #[error("the call was cancelled")]
    Cancelled,
}

impl From<SandboxError> for PythonError {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Refused(why) => Self::Refused(why),
            other => Self::Sandbox(other.to_string()),
        }
    }
}

/// The server `tool-python`: sandboxes that keep a live interpreter between calls.
#[must_use]
pub fn server(options: PythonOptions) -> Arc<dyn InProcessServer> {
    Arc::new(Server { name: "tool-python", keeps: true, options })
}

/// The server `stateless_python`: every call in a sandbox of its own.
#[must_use]
pub fn stateless_server(options: PythonOptions) -> Arc<dyn InProcessServer> {
    Arc::new(Server { name: "stateless_python", keeps: false, options })
}

struct Server {
    name: &'static str,
    keeps: bool,
    options: PythonOptions,
}

#[async_trait]
impl InProcessServer for Server {
    fn name(&self) -> &str {
        self.name
    }

    async fn serve(&self, io: DuplexStream, stop: CancellationToken) {
        let sandboxes = Arc::new(Sandboxes::new(self.options.clone()));
        if self.keeps {
            serve_handler(tools::PythonTools::new(Arc::clone(&sandboxes)), io, stop).await;
        } else {
            serve_handler(stateless::StatelessTools::new(Arc::clone(&sandboxes)), io, stop).await;
        }
        sandboxes.end().await;
    }

    fn confinement(&self) -> Vec<String> {
        let sandbox = Sandbox::examine(self.options.sandbox, self.options.limits.clone());
        #[cfg_attr(
            not(feature = "egress"),
            expect(unused_mut, reason = "nothing is added without a way out")
        )]
        let mut lines = sandbox.report().lines();
        #[cfg(feature = "egress")]
        lines.push(network::report(&self.options, &sandbox));
        lines
    }
}

/// Tries the sandbox out on this machine with the default options: which layers are in force and what
/// is missing. A sandbox that does not start is a refusal.
pub async fn probe() -> SandboxReport {
    let options = PythonOptions::default();
    let mut report = Sandbox::examine(options.sandbox, options.limits.clone()).report();
    let sandboxes = Arc::new(Sandboxes::new(options));
    match sandboxes.interpreter().await {
        Ok(interpreter) => {
            report.interpreter =
                Some(format!("Python {} at {}", interpreter.version, interpreter.program.display()))
        }
        Err(error) => report.refusal = report.refusal.or(Some(error.to_string())),
    }
    report
}
