//! The servers `tool-reading` and `tool-reader`: documents to Markdown.
//!
//! Decides what a server may open. How each format is turned into text is left to `convert`, which does that for
//! anyone, and where a document comes from to `tool`.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{InProcessServer, in_process};

mod convert;
mod tool;

pub use convert::{Document, ReaderProcess, ReadingError, read_apart, to_markdown};

/// What a reading server may open.
#[derive(Debug, Clone)]
pub struct ReadingOptions {
    /// Directories and files that may be read, such as those given with the task. Empty: the working
    /// directory.
    pub allowed_roots: Vec<PathBuf>,
    /// Largest document, bytes. Default 64 MiB.
    pub file_limit: u64,
    /// Characters of a document that one call shows. Default 80,000: less than what results of tools
    /// are cut to.
    pub page: usize,
    /// The way to documents on the network. None: local ones only.
    #[cfg(feature = "egress")]
    pub egress: Option<crate::egress::Egress>,
}

impl Default for ReadingOptions {
    fn default() -> Self {
        Self {
            allowed_roots: Vec::new(),
            file_limit: 64 << 20,
            page: 80_000,
            #[cfg(feature = "egress")]
            egress: None,
        }
    }
}

/// The server `tool-reading`.
#[must_use]
pub fn server(options: ReadingOptions) -> Arc<dyn InProcessServer> {
    named_server("tool-reading", options)
}

/// The same server under another name: `tool-reader`.
#[must_use]
pub fn named_server(name: &str, options: ReadingOptions) -> Arc<dyn InProcessServer> {
    let options = Arc::new(options);
    in_process(name, move || tool::ReadingTools::new(Arc::clone(&options)))
}
