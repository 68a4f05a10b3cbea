//! Tool servers without a run: for a look at them, or for one call by hand. Decides which are started then, and that
//! nothing secret is told of those that did not start.

use std::path::{Path, PathBuf};

use core_protocol::event::ServerStatus;
use mcp_tools::{ManagerOptions, ToolManager};
use orchestrator::RunClock;

use super::Pipeline;
use crate::error::PipelineError;
use crate::servers::{Servers, Wiring};

impl Pipeline {
    /// The servers that a run would use, started for a look. The caller shuts them down.
    ///
    /// # Errors
    ///
    /// As for a run.
    pub async fn start_tools(
        &self,
        docs: &[PathBuf],
        scratch: &Path,
    ) -> Result<(ToolManager, Vec<ServerStatus>), PipelineError> {
        Ok(self.started(self.wiring(docs, scratch, &[]).servers()?, scratch).await)
    }

    /// One server alone, configured or built-in, whether the agent uses it or not; it may read what is below the current
    /// folder. The caller shuts it down.
    ///
    /// # Errors
    ///
    /// As for a run; a name that nobody knows.
    pub async fn start_server(
        &self,
        name: &str,
        docs: &[PathBuf],
        scratch: &Path,
    ) -> Result<(ToolManager, Vec<ServerStatus>), PipelineError> {
        let here = std::slice::from_ref(&self.places.here);
        Ok(self.started(self.wiring(docs, scratch, here).only(name)?, scratch).await)
    }

    async fn started(&self, servers: Servers, scratch: &Path) -> (ToolManager, Vec<ServerStatus>) {
        let Servers { specs, missing, .. } = servers;
        let blacklist = self.resolved.config.agent.main_agent.tool_blacklist.clone();
        let options = ManagerOptions { blacklist, ..self.manager_options(scratch) };
        let manager = ToolManager::start(specs, options).await;
        let mut statuses = manager.statuses();
        statuses.extend(missing);
        // What a server said before it died may hold what it was given.
        let scrubber = self.scrubber();
        for status in &mut statuses {
            status.error = status.error.take().map(|error| scrubber.scrub(error));
        }
        (manager, statuses)
    }

    /// What servers are made from, for a look; a run puts in its clock.
    #[must_use]
    pub fn wiring<'a>(&'a self, docs: &'a [PathBuf], run_dir: &'a Path, files: &'a [PathBuf]) -> Wiring<'a> {
        Wiring {
            config: &self.resolved.config,
            limiters: &self.limiters,
            clock: RunClock::default(),
            environment: &self.resolved.environment,
            conf: &self.resolved.conf,
            places: &self.places,
            configured: self.configured.as_slice(),
            configured_in: self.configured_in.as_str(),
            docs,
            run_dir,
            files,
        }
    }
}
