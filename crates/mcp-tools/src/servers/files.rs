//! Files that a model names by a path or an address.
//!
//! Decides what is said of those that cannot be had. Which local files may be touched is left to `paths`, which
//! addresses to the policy of `egress`.

#[cfg(any(feature = "models", feature = "reading"))]
use std::path::{Path, PathBuf};

#[cfg(feature = "egress")]
use crate::egress::{Egress, FetchRequest, Fetched};

/// The whole of a local file below the roots, of `most` bytes at most, and its path. Blocks.
///
/// # Errors
/// Why it is not read, as a sentence for the model.
#[cfg(any(feature = "models", feature = "reading"))]
pub(super) fn read(path: &Path, roots: &[PathBuf], most: u64) -> Result<(Vec<u8>, PathBuf), String> {
    use std::io::Read as _;
    let path = super::paths::confine(path, roots).map_err(|problem| format!("{problem}."))?;
    let shown = |problem: std::io::Error| format!("`{}` could not be read: {problem}.", path.display());
    if !std::fs::metadata(&path).map_err(shown)?.is_file() {
        return Err(format!("`{}` is not a file.", path.display()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).map_err(shown)?;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(shown)?;
    if bytes.len() as u64 > most {
        return Err(format!("`{}` is larger than {most} bytes, the most that is read.", path.display()));
    }
    Ok((bytes, path))
}

/// A file from the network, of `most` bytes at most.
///
/// # Errors
/// Why it cannot be had, as a sentence for the model.
#[cfg(feature = "egress")]
pub(super) async fn fetch(egress: &Egress, url: &str, most: u64) -> Result<Fetched, String> {
    let request = FetchRequest { size_limit: Some(most), ..FetchRequest::new(url) };
    let fetched = egress.fetch(request).await.map_err(|error| format!("{error}."))?;
    if !fetched.is_success() {
        let status = fetched.status;
        return Err(format!("`{url}` could not be fetched: its server answered with status {status}."));
    }
    Ok(fetched)
}
