//! The library: real folders, real indexes on disk, the server over its own transport.

mod folders;
mod processes;
mod searching;
mod server;
mod starter;

use std::path::Path;

use mcp_tools::servers::library::{Collection, Document, Library, LibraryOptions};

/// A document in memory.
fn document(id: &str, title: &str, body: &str) -> Document {
    Document {
        id: id.to_owned(),
        title: title.to_owned(),
        body: body.to_owned(),
        source: format!("source of {id}"),
        license: None,
        group: None,
    }
}

/// A library of documents in memory, under the name `notes`.
fn library_of(documents: Vec<Document>) -> Library {
    let collection = Collection::documents("notes", documents).unwrap();
    Library::open(&LibraryOptions::new(vec![collection], None)).unwrap()
}

/// A library of one folder under the name `notes`, indexed below `cache`.
fn open_folder(folder: &Path, cache: &Path) -> Library {
    Library::open(&folder_options(folder, cache)).unwrap()
}

fn folder_options(folder: &Path, cache: &Path) -> LibraryOptions {
    let collection = Collection::folder("notes", folder).unwrap();
    LibraryOptions::new(vec![collection], Some(cache.to_owned()))
}

/// The ids that a query finds, best first.
fn ids(library: &Library, query: &str) -> Vec<String> {
    library.search(query, 10).unwrap().results.into_iter().map(|result| result.id).collect()
}
