//! Searches a folder of documents: `search_library FOLDER QUERY…`.
//!
//! Opens the folder as a library (the first time it is indexed, later only what changed), prints the
//! results of the query and the beginning of the best document. `search_library --starter QUERY…`
//! searches the starter library instead and fetches it first where it is not there.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use mcp_tools::servers::library::starter::StarterOptions;
use mcp_tools::servers::library::{Collection, Library, LibraryError, LibraryOptions, Registry};

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(place), query) = (arguments.next(), arguments.collect::<Vec<_>>().join(" ")) else {
        eprintln!("usage: search_library FOLDER|--starter QUERY…");
        return ExitCode::from(2);
    };
    let home = std::env::temp_dir().join("fathom-library-example");
    match run(&place, &query, &home).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(place: &str, query: &str, home: &Path) -> Result<(), LibraryError> {
    let cache_dir: Option<PathBuf> = Some(home.join("cache"));
    let collections = if place == "--starter" {
        let registry = Registry::new(&home.join("data"), cache_dir.clone());
        if registry.list()?.is_empty() {
            let started = Instant::now();
            let installed =
                registry.add_starter(&StarterOptions::default(), &|step| eprintln!("{step:?}")).await?;
            eprintln!("{} documents installed in {:.1?}", installed.documents, started.elapsed());
        }
        registry.collections()?
    } else {
        vec![Collection::folder_by_its_name(place)]
    };
    let started = Instant::now();
    let library = Library::open(&LibraryOptions::new(collections, cache_dir))?;
    eprintln!("open after {:.1?}: {:#?}", started.elapsed(), library.reports());
    let started = Instant::now();
    let answer = library.search(query, 5)?;
    eprintln!("searched in {:.1?}", started.elapsed());
    for result in &answer.results {
        println!("{:6.2}  {}  [{}]\n        {}", result.score, result.title, result.id, result.snippet);
    }
    if let Some(note) = &answer.note {
        println!("{note}");
    }
    if let Some(best) = answer.results.first() {
        let page = library.read(&best.id, 0)?.to_markdown();
        println!("\n{}", page.chars().take(800).collect::<String>());
    }
    Ok(())
}
