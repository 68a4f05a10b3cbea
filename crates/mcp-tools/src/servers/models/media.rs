//! Where a tool's pictures and recordings come from.
//!
//! Decides which files and addresses may be named, how large what they give may be, and whether it is what the tool
//! is for.

use std::path::PathBuf;

use super::kinds::{self, Kind, Sort};
use super::stills::StillOptions;
use crate::egress::Egress;
use crate::servers::files;

/// What the tools of a server may open.
#[derive(Debug, Clone)]
pub struct MediaOptions {
    /// Directories and files that may be read, such as those given with the task. Empty: the working directory.
    pub allowed_roots: Vec<PathBuf>,
    /// The way to addresses on the network.
    pub egress: Egress,
    /// Largest picture, bytes. Default 20 MiB, which is what most services take.
    pub image_limit: u64,
    /// Largest recording, bytes. Default 25 MiB.
    pub audio_limit: u64,
    /// Largest film, bytes. Default 50 MiB.
    pub video_limit: u64,
    /// How a film is shown to a model that takes none.
    pub stills: StillOptions,
    /// Whether models are shown such pictures even where they might take the film itself.
    pub stills_only: bool,
}

impl MediaOptions {
    /// With the usual limits.
    #[must_use]
    pub fn new(allowed_roots: Vec<PathBuf>, egress: Egress) -> Self {
        Self {
            allowed_roots,
            egress,
            image_limit: 20 << 20,
            audio_limit: 25 << 20,
            video_limit: 50 << 20,
            stills: StillOptions::default(),
            stills_only: false,
        }
    }

    fn limit(&self, sort: Sort) -> u64 {
        match sort {
            Sort::Image => self.image_limit,
            Sort::Audio => self.audio_limit,
            Sort::Video => self.video_limit,
        }
    }

    /// The bytes of a path, a `file:` address or one on the network, and what they are.
    pub(super) async fn load(&self, source: &str, wanted: &[Sort]) -> Result<(Vec<u8>, Kind), String> {
        let source = source.trim();
        if source.is_empty() {
            return Err("No file was named: give a path or an address.".into());
        }
        let most = wanted.iter().map(|sort| self.limit(*sort)).max().unwrap_or(0);
        let scheme = source.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let bytes = match scheme.as_deref() {
            Some("http" | "https") => files::fetch(&self.egress, source, most).await?.body,
            Some("file") | None => self.read(source, most).await?,
            Some(other) => {
                return Err(format!(
                    "`{source}` was not opened: `{other}` is no kind of address that is read; give a path or an http(s) address."
                ));
            }
        };
        let names = wanted.iter().map(|sort| plural(*sort)).collect::<Vec<_>>().join(" and ");
        let Some(kind) = kinds::of(&bytes) else {
            let seen =
                if looks_like_page(&bytes) { " It looks like a web page: name the file itself." } else { "" };
            return Err(format!(
                "`{source}` is not a file of a format that is known here. This tool is for {names}.{seen}"
            ));
        };
        if !wanted.contains(&kind.sort) {
            return Err(format!("`{source}` is {}; this tool is for {names}.", kind.mime_type));
        }
        let limit = self.limit(kind.sort);
        if bytes.len() as u64 > limit {
            return Err(format!(
                "`{source}` has {} bytes; the most for {} is {limit}.",
                bytes.len(),
                plural(kind.sort)
            ));
        }
        Ok((bytes, kind))
    }

    async fn read(&self, source: &str, most: u64) -> Result<Vec<u8>, String> {
        let path = PathBuf::from(source.strip_prefix("file://").unwrap_or(source));
        let roots = self.allowed_roots.clone();
        let read = tokio::task::spawn_blocking(move || files::read(&path, &roots, most));
        let read = read.await.map_err(|_| "The file could not be read: its reader failed.".to_owned());
        read.flatten().map(|(bytes, _)| bytes)
    }
}

fn plural(sort: Sort) -> &'static str {
    match sort {
        Sort::Image => "images",
        Sort::Video => "videos",
        Sort::Audio => "recordings",
    }
}

fn looks_like_page(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]).to_ascii_lowercase();
    start.contains("<!doctype html") || start.contains("<html")
}
