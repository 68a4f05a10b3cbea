//! Reads the sample documents and prints how much of what markitdown found in them is found here, and in what time.
//!
//! `cargo run --release -p mcp-tools --example reading_eval [FOLDER]`, a folder like `tests/samples`.

#![allow(clippy::print_stdout, missing_docs, reason = "an example prints")]

#[path = "../tests/support/similarity.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests")]
mod similarity;

use std::path::PathBuf;
use std::time::Instant;

use mcp_tools::servers::reading::to_markdown;

fn main() -> std::io::Result<()> {
    let samples = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples")), PathBuf::from);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(samples.join("documents"))?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    println!("{:<24} {:>8} {:>8} {:>10} {:>10}", "document", "recall", "precis.", "bytes", "ms");
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let bytes = std::fs::read(&path)?;
        let began = Instant::now();
        let read = to_markdown(&bytes, &name);
        let took = began.elapsed().as_secs_f64() * 1e3;
        let expected = std::fs::read_to_string(samples.join("markitdown").join(format!("{name}.md")));
        match (read, expected) {
            (Ok(document), Ok(expected)) => {
                let (recall, precision) = similarity::similarity(&expected, &document.markdown);
                println!("{name:<24} {recall:>8.3} {precision:>8.3} {:>10} {took:>10.2}", bytes.len());
            }
            (Ok(_), Err(_)) => println!("{name:<24} {:>8} {:>8} {:>10} {took:>10.2}", "-", "-", bytes.len()),
            (Err(error), _) => println!("{name:<24} {error}"),
        }
    }
    Ok(())
}
