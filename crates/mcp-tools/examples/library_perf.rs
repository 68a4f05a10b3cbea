//! What a library of a folder costs: `library_perf [DOCUMENTS]`, 10,000 where no number is given.
//!
//! Makes the documents (text, HTML, CSV and JSON in turn), then prints how long the first indexing takes, seeing that
//! nothing changed, a change of one file, and a search. `cargo run --release -p mcp-tools --example library_perf`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use mcp_tools::servers::library::{Collection, Library, LibraryOptions};

/// Words of the made texts.
const WORDS: &[&str] = &[
    "harbour", "tide", "mill", "gate", "ledger", "stone", "granite", "oak", "sluice", "winter", "county",
    "survey", "miller", "flour", "barley", "wheel", "pond", "storm", "iron", "parish", "lantern", "ferry",
    "quay", "salt",
];
/// Searches that are timed.
const QUERIES: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let documents: usize = std::env::args().nth(1).map_or(Ok(10_000), |number| number.parse())?;
    let home = tempfile::tempdir()?;
    let folder = home.path().join("documents");
    make(&folder, documents)?;
    let options = || {
        LibraryOptions::new(
            vec![Collection::folder_by_its_name(folder.display().to_string())],
            Some(home.path().join("cache")),
        )
    };
    let library = timed(&format!("{documents} documents indexed"), || Library::open(&options()))?;
    drop(library);
    drop(timed("an unchanged folder is seen to be so", || Library::open(&options()))?);
    std::fs::write(folder.join("0/0.txt"), "A new text about a lighthouse keeper.")?;
    let library = timed("one file of it changed", || Library::open(&options()))?;
    let mut times = Vec::with_capacity(QUERIES);
    for number in 0..QUERIES {
        let query: Vec<&str> = (0..1 + number % 4).map(|at| word(number * 7 + at * 5)).collect();
        let began = Instant::now();
        let answer = library.search(&query.join(" "), 10)?;
        times.push(began.elapsed());
        if answer.results.is_empty() {
            return Err(format!("nothing was found for {query:?}").into());
        }
    }
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    print("a search, median", at(50));
    print("a search, 99 of 100", at(99));
    Ok(())
}

fn timed<T, E>(what: &str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let began = Instant::now();
    let done = work()?;
    print(what, began.elapsed());
    Ok(done)
}

fn print(what: &str, took: Duration) {
    println!("{what:<44} {:>10.2} ms", took.as_secs_f64() * 1e3);
}

fn word(at: usize) -> &'static str {
    WORDS[at % WORDS.len()]
}

/// Files that settled a minute ago, so that their times tell that they are the same.
fn make(folder: &Path, documents: usize) -> std::io::Result<()> {
    let settled = SystemTime::now() - Duration::from_secs(60);
    for number in 0..documents {
        let directory = folder.join((number / 500).to_string());
        if number % 500 == 0 {
            std::fs::create_dir_all(&directory)?;
        }
        let text: Vec<&str> = (0..150).map(|at| word(number.wrapping_mul(31) + at * at + at / 3)).collect();
        let text = text.join(" ");
        let (ending, content) = match number % 4 {
            0 => ("txt", text),
            1 => ("html", format!("<title>Page {number}</title><h1>Page {number}</h1><p>{text}</p>")),
            2 => ("csv", text.replace(" mill ", "\n").replace(' ', ",")),
            _ => ("json", format!("{{\"text\": \"{text}\"}}")),
        };
        let path = directory.join(format!("{number}.{ending}"));
        std::fs::write(&path, content)?;
        File::options().write(true).open(&path)?.set_modified(settled)?;
    }
    // The time at which a file was changed itself cannot be set: what is younger than two seconds is read again.
    std::thread::sleep(Duration::from_secs(3));
    Ok(())
}
