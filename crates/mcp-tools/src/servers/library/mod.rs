//! The built-in server `library`: a full-text index over documents of the user's own and reference
//! works, searched and read without a network.
//!
//! A [`Collection`] names documents in memory, a folder, or a file of JSON lines. [`Library`] opens
//! collections, brings their indexes up to date by content hash and searches them as one;
//! [`server`] offers that to a model as `search_library` and `read_document`. [`Registry`] keeps the
//! list of what a user has added; [`starter`] fetches a first library of reference works.
//!
//! ```
//! use mcp_tools::servers::library::{Collection, Document, Library, LibraryOptions};
//!
//! let document = Document {
//!     id: "curie".into(),
//!     title: "Marie Curie".into(),
//!     body: "Marie Curie shared the Nobel Prize in Physics of 1903.".into(),
//!     source: "an example".into(),
//!     license: None,
//!     group: None,
//! };
//! let notes = Collection::documents("notes", vec![document])?;
//! let library = Library::open(&LibraryOptions::new(vec![notes], None))?;
//! let found = library.search("Who won the Nobel prize in 1903?", 5)?;
//! assert_eq!(found.results[0].id, "notes/curie");
//! assert!(library.read("notes/curie", 0)?.text.starts_with("Marie Curie shared"));
//! # Ok::<(), mcp_tools::servers::library::LibraryError>(())
//! ```

mod analysis;
mod collection;
mod error;
mod folder;
mod index;
mod inventory;
#[expect(clippy::module_inception, reason = "the type that the module is about")]
mod library;
mod manifest;
mod passages;
mod plain;
mod query;
mod read;
mod registry;
mod schema;
mod search;
mod server;
mod snippet;
pub mod starter;

pub use collection::{Collection, Document, Source};
pub use error::LibraryError;
pub use folder::FolderLimits;
pub use inventory::Drift;
pub use library::{CollectionReport, Library, LibraryOptions};
pub use manifest::Skip;
pub use read::{PAGE_CHARACTERS, Page};
pub use registry::{Freshness, LibraryInfo, LibraryKind, Registry};
pub use search::{MAX_RESULTS, SearchAnswer, SearchResult};
#[cfg(feature = "web")]
pub(crate) use server::LazyLibrary;
pub use server::{SERVER_NAME, server};
