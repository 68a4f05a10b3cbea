//! Zip archives: those that are documents, and those that hold some.
//!
//! Decides how much an archive may unpack to, so that a small file cannot become a large one in memory.

use std::io::{Cursor, Read as _};

use zip::ZipArchive;

use super::Problem;
use super::xml::{self, Element};

/// Files of an archive.
const MOST_FILES: usize = 20_000;
/// Bytes that one file of an archive may unpack to.
const FILE_LIMIT: u64 = 128 << 20;
/// Bytes that all that is read of an archive may unpack to.
const TOTAL_LIMIT: u64 = 512 << 20;

/// An open archive.
pub(super) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    file_limit: u64,
    left: u64,
}

impl<'a> Package<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, Problem> {
        Self::within(bytes, FILE_LIMIT, TOTAL_LIMIT)
    }

    fn within(bytes: &'a [u8], file_limit: u64, total: u64) -> Result<Self, Problem> {
        let archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| Problem::Broken(format!("its archive cannot be opened: {error}")))?;
        if archive.len() > MOST_FILES {
            return Err(Problem::TooLarge(format!("it has more than {MOST_FILES} files in it")));
        }
        Ok(Self { archive, file_limit, left: total })
    }

    /// The names of its files, in their order.
    pub(super) fn names(&self) -> Vec<String> {
        self.archive
            .file_names()
            .filter_map(|name| Some(name.ok()?.into_owned()))
            .filter(|name| !name.ends_with('/'))
            .collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(name).is_some()
    }

    /// The bytes of a file; none where there is no such file.
    pub(super) fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Problem> {
        let name = name.trim_start_matches('/');
        let Some(index) = self.archive.index_for_name(name) else { return Ok(None) };
        let broken = |problem: String| Problem::Broken(format!("`{name}` in it cannot be read: {problem}"));
        let limit = self.file_limit.min(self.left);
        let entry = self.archive.by_index(index).map_err(|error| match error.to_string() {
            text if text.to_ascii_lowercase().contains("password") => Problem::Encrypted,
            text => broken(text),
        })?;
        let too_large = || Problem::TooLarge(format!("`{name}` in it unpacks to more than {limit} bytes"));
        // What it says of itself may be a lie, and is not asked again.
        if entry.size() > limit {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        entry.take(limit + 1).read_to_end(&mut bytes).map_err(|error| broken(error.to_string()))?;
        if bytes.len() as u64 > limit {
            return Err(too_large());
        }
        self.left = self.left.saturating_sub(bytes.len() as u64);
        Ok(Some(bytes))
    }

    /// A file as XML; none where there is no such file.
    pub(super) fn xml(&mut self, name: &str) -> Result<Option<Element>, Problem> {
        let Some(bytes) = self.read(name)? else { return Ok(None) };
        xml::parse(&bytes).map(Some).map_err(|problem| Problem::Broken(format!("`{name}`: {problem}")))
    }
}

/// A path relative to a folder of the archive, `..` and `.` resolved.
pub(super) fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    if !target.starts_with('/') {
        parts.extend(folder.split('/').filter(|part| !part.is_empty()));
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of files of zeros.
    fn archive(sizes: &[usize]) -> Vec<u8> {
        use std::io::Write as _;

        let mut bytes = Cursor::new(Vec::new());
        let mut writer = zip::ZipWriter::new(&mut bytes);
        for (number, size) in sizes.iter().enumerate() {
            writer.start_file(number.to_string(), zip::write::SimpleFileOptions::default()).expect("a file");
            writer.write_all(&vec![0; *size]).expect("bytes");
        }
        writer.finish().expect("an archive");
        bytes.into_inner()
    }

    #[test]
    fn small_archives_stay_small() {
        let bytes = archive(&[1000, 2000, 900]);
        assert!(bytes.len() < 1000);
        let mut package = Package::within(&bytes, 1500, 1800).expect("an archive");
        assert_eq!(package.read("0").map(|found| found.map(|bytes| bytes.len())), Ok(Some(1000)));
        assert!(matches!(package.read("1"), Err(Problem::TooLarge(_))), "more than one file may have");
        assert!(matches!(package.read("2"), Err(Problem::TooLarge(_))), "more than is left for all");
        assert_eq!(package.read("3"), Ok(None));
    }

    #[test]
    fn a_file_that_lies_about_its_size_is_cut_off() {
        let mut bytes = archive(&[5000]);
        // The size unpacked, in the file's own head and in the archive's list.
        for place in bytes
            .windows(4)
            .enumerate()
            .filter(|(_, four)| *four == 5000u32.to_le_bytes())
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
        {
            bytes[place..place + 4].copy_from_slice(&10u32.to_le_bytes());
        }
        let mut package = Package::within(&bytes, 1500, 1800).expect("an archive");
        assert!(package.read("0").is_err());
    }

    #[test]
    fn targets_are_paths_in_the_archive() {
        let check =
            |folder: &str, target: &str, expected: &str| assert_eq!(resolve(folder, target), expected);
        check("ppt/slides", "../notes/n1.xml", "ppt/notes/n1.xml");
        check("ppt", "/word/a.xml", "word/a.xml");
        check("", "./a/../../b", "b");
    }
}
