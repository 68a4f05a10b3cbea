//! The servers that search the web and read its pages: `search_and_scrape_webpage`, `tool-google-search`,
//! `tool-sogou-search` and `jina_scrape_llm_summary`.
//!
//! Decides which service answers what, by which of them is set up. How each is asked is in `search` and `scrape`;
//! what may be fetched at all is the egress policy's.

mod request;
mod scrape;
mod search;
mod services;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use crate::egress::Egress;
use crate::servers::library::{LazyLibrary, LibraryError, LibraryOptions};
use crate::{InProcessServer, ToolModel, in_process};

use tools::WebTools;

pub use services::{ServiceReport, Services};

/// Names of the servers.
pub const SERVERS: &[&str] =
    &["search_and_scrape_webpage", "jina_scrape_llm_summary", "tool-google-search", "tool-sogou-search"];

/// What the servers work with.
pub struct WebOptions {
    /// The way out.
    pub egress: Egress,
    /// Services and their keys.
    pub services: Services,
    /// What is searched where no search service is set up, and what `library://` links are read from.
    pub library: Option<LibraryOptions>,
    /// What reads a page for an answer; none: the page itself is the answer.
    pub model: Option<Arc<dyn ToolModel>>,
    /// Before the second try of a request; it doubles. Default 1 s.
    pub pause: Duration,
}

impl std::fmt::Debug for WebOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("WebOptions")
            .field("egress", &self.egress)
            .field("services", &self.services)
            .field("library", &self.library.is_some())
            .field("model", &self.model.as_ref().map(|model| model.name()))
            .field("pause", &self.pause)
            .finish()
    }
}

impl WebOptions {
    /// No services, no library, no model: pages are fetched directly and shown as they are.
    #[must_use]
    pub fn new(egress: Egress) -> Self {
        Self {
            egress,
            services: Services::default(),
            library: None,
            model: None,
            pause: Duration::from_secs(1),
        }
    }
}

/// What the tools of one server share.
struct Web {
    egress: Egress,
    services: Services,
    library: Option<LazyLibrary>,
    model: Option<Arc<dyn ToolModel>>,
    pause: Duration,
}

/// One of [`SERVERS`] by its name; none for another name. Connects to nothing.
///
/// # Errors
///
/// A library that cannot be set up.
pub fn server(name: &str, options: WebOptions) -> Result<Option<Arc<dyn InProcessServer>>, LibraryError> {
    let WebOptions { egress, services, library, model, pause } = options;
    let library = library.map(LazyLibrary::new).transpose()?;
    let web = Arc::new(Web { egress, services, library, model, pause });
    Ok(WebTools::of(name, web).map(|tools| in_process(name, move || tools.clone())))
}
