//! Standard output for results, standard error for everything else.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;

/// A line on standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A result: into a file where one is named, else on standard output. A reader that has gone away is no error.
pub(crate) fn result(text: &str, file: Option<&Path>) -> anyhow::Result<()> {
    match file {
        Some(file) => {
            std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))?;
            note(&format!("written: {}", file.display()));
        }
        None => {
            let mut out = std::io::stdout().lock();
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    return Err(error).context("standard output cannot be written");
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// An error with its causes, each said once: many errors name their cause themselves.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    text
}
