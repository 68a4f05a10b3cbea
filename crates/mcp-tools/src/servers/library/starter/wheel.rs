//! Reading the files of a wheel, which is a zip archive, in memory and within limits.

use std::io::{Cursor, Read as _};
use std::path::Path;

use serde::de::DeserializeOwned;
use zip::ZipArchive;

use crate::servers::library::error::LibraryError;

/// Bytes that one file of a wheel may unpack to. The largest that is read has 7 MB.
const FILE_LIMIT: u64 = 64 << 20;

/// An open wheel.
pub(super) struct Wheel<'a> {
    name: &'static str,
    archive: ZipArchive<Cursor<&'a [u8]>>,
}

impl<'a> Wheel<'a> {
    /// Opens a wheel; `name` is for errors.
    pub(super) fn open(name: &'static str, bytes: &'a [u8]) -> Result<Self, LibraryError> {
        let archive =
            ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(name, "", &error.to_string()))?;
        Ok(Self { name, archive })
    }

    /// The names of the files in it, sorted.
    pub(super) fn files(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.archive.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
        names.sort_unstable();
        names
    }

    /// The bytes of one file.
    pub(super) fn read(&mut self, file: &str) -> Result<Vec<u8>, LibraryError> {
        let problem = |problem: String| damaged(self.name, file, &problem);
        let entry = self.archive.by_name(file).map_err(|error| problem(error.to_string()))?;
        let mut bytes = Vec::new();
        entry.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(|error| problem(error.to_string()))?;
        if bytes.len() as u64 > FILE_LIMIT {
            return Err(problem(format!("it unpacks to more than {FILE_LIMIT} bytes")));
        }
        Ok(bytes)
    }

    /// One file, read as JSON.
    pub(super) fn json<T: DeserializeOwned>(&mut self, file: &str) -> Result<T, LibraryError> {
        let bytes = self.read(file)?;
        serde_json::from_slice(&bytes).map_err(|error| damaged(self.name, file, &error.to_string()))
    }
}

fn damaged(wheel: &str, file: &str, problem: &str) -> LibraryError {
    LibraryError::Damaged { path: Path::new(wheel).join(file), problem: problem.to_owned() }
}
