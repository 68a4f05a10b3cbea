//! `tool-python` in sandboxes of E2B: machines of that service in place of the local sandbox.
//!
//! Decides which sandbox a call means and when one ends. What goes over the wire is left to `client`, the tools to
//! `tools`. Written after the service's public interface descriptions; it was not tried against the service.

mod client;
mod frames;
mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use super::calls::DEFAULT_ID;
use crate::egress::Egress;
use crate::{InProcessServer, serve_handler};
use client::{Client, Machine};

/// For ending sandboxes when the server ends.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// How the service is used.
#[derive(Clone)]
pub struct E2bOptions {
    /// The key of the account.
    pub api_key: String,
    /// Where sandboxes are made. Default `https://api.e2b.app`.
    pub api_url: String,
    /// The domain below which each sandbox has hosts of its own. Default `e2b.app`; what the service says of a sandbox
    /// comes first.
    pub domain: String,
    /// One address for all sandboxes, which are then told apart by headers.
    pub sandbox_url: Option<String>,
    /// What a sandbox is made from. Default `code-interpreter-v1`, which has a Python that keeps variables.
    pub template: String,
    /// How long a sandbox lives where `create_sandbox` was not told. Default 10 min.
    pub lifetime: Duration,
    /// How long one call may take. Default 240 s.
    pub call_limit: Duration,
    /// Characters of output that a call shows. Default 20,000.
    pub output_limit: usize,
    /// Bytes of a file that goes in or out. Default 32 MiB.
    pub file_limit: u64,
    /// Directories and files that may be taken into a sandbox. Empty: the working directory.
    pub allowed_roots: Vec<PathBuf>,
    /// Where files from a sandbox are put; nothing there is overwritten. None: they cannot be taken out.
    pub downloads: Option<PathBuf>,
    /// The way out, also for files that are downloaded into a sandbox.
    pub egress: Egress,
}

impl E2bOptions {
    /// With the usual settings.
    #[must_use]
    pub fn new(api_key: impl Into<String>, egress: Egress) -> Self {
        Self {
            api_key: api_key.into(),
            api_url: "https://api.e2b.app".to_owned(),
            domain: "e2b.app".to_owned(),
            sandbox_url: None,
            template: "code-interpreter-v1".to_owned(),
            lifetime: Duration::from_secs(600),
            call_limit: Duration::from_secs(240),
            output_limit: 20_000,
            file_limit: 32 << 20,
            allowed_roots: Vec::new(),
            downloads: None,
            egress,
        }
    }
}

/// Shows no key.
impl std::fmt::Debug for E2bOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("E2bOptions")
            .field("api_url", &self.api_url)
            .field("domain", &self.domain)
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}

/// The server `tool-python` with sandboxes of E2B.
#[must_use]
pub fn server(options: E2bOptions) -> Arc<dyn InProcessServer> {
    Arc::new(Server { options })
}

struct Server {
    options: E2bOptions,
}

#[async_trait]
impl InProcessServer for Server {
    fn name(&self) -> &str {
        "tool-python"
    }

    async fn serve(&self, io: DuplexStream, stop: CancellationToken) {
        let machines = Arc::new(Machines::new(self.options.clone()));
        serve_handler(tools::E2bTools::new(Arc::clone(&machines)), io, stop).await;
        // What is not ended here ends by itself when its time is over.
        let _ = tokio::time::timeout(LEAVE_TIME, machines.end()).await;
    }

    fn confinement(&self) -> Vec<String> {
        vec![format!("code runs in sandboxes of E2B ({}), not on this machine", self.options.api_url)]
    }
}

/// The sandboxes of one server, by the ids that the model knows.
struct Machines {
    client: Client,
    known: Mutex<BTreeMap<String, Arc<Machine>>>,
    /// One default sandbox is made, however many calls want it.
    first: tokio::sync::Mutex<()>,
}

impl Machines {
    fn new(options: E2bOptions) -> Self {
        Self { client: Client::new(options), known: Mutex::default(), first: tokio::sync::Mutex::default() }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Machine>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn create(&self, lifetime: Option<Duration>) -> Result<String, String> {
        let machine = Arc::new(self.client.create(lifetime).await?);
        let id = machine.id.clone();
        self.known().insert(id.clone(), machine);
        Ok(id)
    }

    /// The sandbox of an id; none where it is unknown. The default one is always there.
    async fn get(&self, id: &str) -> Result<Option<Arc<Machine>>, String> {
        if let Some(machine) = self.known().get(id) {
            return Ok(Some(Arc::clone(machine)));
        }
        if id != DEFAULT_ID {
            return Ok(None);
        }
        let _one = self.first.lock().await;
        if let Some(machine) = self.known().get(id) {
            return Ok(Some(Arc::clone(machine)));
        }
        let machine = Arc::new(self.client.create(None).await?);
        self.known().insert(id.to_owned(), Arc::clone(&machine));
        Ok(Some(machine))
    }

    fn ids(&self) -> Vec<String> {
        self.known().keys().cloned().collect()
    }

    async fn end(&self) {
        let machines = std::mem::take(&mut *self.known());
        let ends = machines.values().map(|machine| self.client.kill(machine));
        for problem in futures_util::future::join_all(ends).await.into_iter().filter_map(Result::err) {
            tracing::warn!(problem, "a sandbox was left to end by itself");
        }
    }
}
