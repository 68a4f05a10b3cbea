//! The tools that reach the network, set up for a run: the way out, the services, the model that reads pages.
//!
//! Decides where each setting comes from; what the tools do with them is `mcp_tools`'.

use std::sync::Arc;

use llm_providers::Environment;
use mcp_tools::egress::{Egress, EgressError};
use mcp_tools::servers::web::{self, Services, WebOptions};
use mcp_tools::{InProcessServer, ToolModel};

use crate::config::ToolsConfig;
use crate::error::PipelineError;
use crate::servers::Wiring;
use crate::tool_models::{self, Takes};

/// Variables of the model that reads pages for `scrape_and_extract_info` begin with this.
pub const SUMMARY_MODEL: &str = "SUMMARY_LLM";

/// The server whose tool has pages read by a model: that of [`SUMMARY_MODEL`], else the run's own.
pub const READS_PAGES: &str = "jina_scrape_llm_summary";

/// The way out of a configuration.
///
/// # Errors
///
/// An entry of a list that means nothing.
pub fn egress(config: &ToolsConfig, environment: &Environment) -> Result<Egress, PipelineError> {
    let lookup = |name: &str| environment.get(name).map(str::to_owned);
    Egress::new(config.egress.options(&lookup)).map_err(|error| {
        let key = match &error {
            EgressError::Configuration { setting, .. } => format!("tools.egress.{setting}"),
            _ => "tools.egress".to_owned(),
        };
        let remedy = "`fathom config check` lists everything that is wrong.".to_owned();
        PipelineError::Unsupported { key, problem: error.to_string(), remedy }
    })
}

/// The services that variables set up.
#[must_use]
pub fn services(environment: &Environment) -> Services {
    Services::from_environment(&|name| environment.get(name).map(str::to_owned))
}

impl Wiring<'_> {
    /// The model of a run. Where it cannot be had there is no run either, and pages are shown as they are.
    fn main_model(&self) -> Option<Arc<dyn ToolModel>> {
        let model = tool_models::of_run(&self.config.llm, self.around());
        model.unwrap_or_else(|error| {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            tracing::warn!("no model reads pages: {error}{hint}");
            None
        })
    }

    /// One of the servers that search and read the web.
    pub(crate) fn web_server(&self, name: &str) -> Result<Option<Arc<dyn InProcessServer>>, PipelineError> {
        let environment = self.environment;
        let model = match tool_models::of_variables(SUMMARY_MODEL, Takes::default(), self.around())? {
            Some(model) => Some(model),
            None => self.main_model(),
        };
        let services = services(environment);
        let library = match services.search_service() {
            None => Some(self.library_options()?),
            Some(_) => None,
        };
        let options = WebOptions {
            services,
            library,
            model,
            ..WebOptions::new(egress(&self.config.tools, environment)?)
        };
        Ok(web::server(name, options)?)
    }
}
