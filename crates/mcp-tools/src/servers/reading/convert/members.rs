//! Zip archives of documents.
//!
//! Decides how many of an archive's files are read and how deep archives in archives go. A file that cannot be read
//! is named with the reason; it does not keep the others from being read.

use super::layout::Blocks;
use super::package::Package;
use super::{Converted, Converter, Problem, Source, convert};

pub(super) struct Zip;

/// Files that are read; the others are only named.
const MOST_MEMBERS: usize = 200;
/// Bytes of Markdown after which files are only named.
const MOST_TEXT: usize = 8 << 20;
/// Archives in archives.
const DEEPEST: usize = 3;

impl Converter for Zip {
    fn name(&self) -> &'static str {
        "a ZIP archive"
    }

    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem> {
        if source.depth >= DEEPEST {
            return Err(Problem::TooLarge(format!("archives are opened {DEEPEST} deep")));
        }
        let mut package = Package::open(source.bytes)?;
        let mut names = package.names();
        names.sort_unstable();
        let mut blocks = Blocks::default();
        blocks.push(&format!("The archive has {} files.", names.len()));
        let mut unread = Vec::new();
        for (number, name) in names.iter().enumerate() {
            if number >= MOST_MEMBERS || blocks.len() > MOST_TEXT {
                unread.push(format!("`{name}`"));
                continue;
            }
            blocks.heading(2, &format!("File: {name}"));
            let read = match package.read(name) {
                Ok(Some(bytes)) => convert(&bytes, name, source.depth + 1).map_err(|error| error.to_string()),
                Ok(None) => Err("it cannot be found".to_owned()),
                Err(problem) => Err(problem.to_string()),
            };
            match read {
                Ok(document) if document.markdown.trim().is_empty() => blocks.push("(empty)"),
                Ok(document) => blocks.push(&document.markdown),
                Err(problem) => blocks.push(&format!("(not read: {problem})")),
            }
        }
        if !unread.is_empty() {
            unread.truncate(1000);
            blocks.push(&format!("Not read, there being too much: {}", unread.join(", ")));
        }
        Ok(Converted { markdown: blocks.finish(), title: None })
    }
}
