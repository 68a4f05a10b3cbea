//! Bounds the text of a result and keeps the whole elsewhere.
//!
//! Decides where text is cut and what the note says. Nobody else in the program cuts tool output.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use core_protocol::ContentBlock;
use sha2::{Digest as _, Sha256};

/// The blocks with no more than `limit` characters of text in all. Where something was cut off, the
/// first line says so, and the whole text is kept in `blob_dir` under its sha256.
pub(crate) async fn cut(
    blocks: Vec<ContentBlock>,
    limit: usize,
    blob_dir: Option<&Path>,
) -> Vec<ContentBlock> {
    let texts = || {
        blocks.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        })
    };
    if texts().map(str::len).sum::<usize>() <= limit {
        return blocks;
    }
    let characters: usize = texts().map(|text| text.chars().count()).sum();
    if characters <= limit {
        return blocks;
    }
    let kept = match blob_dir {
        None => "The rest was not kept.".to_owned(),
        Some(folder) => {
            let whole = texts().collect::<Vec<_>>().join("\n");
            let folder = folder.to_owned();
            match tokio::task::spawn_blocking(move || keep(&folder, whole.as_bytes())).await {
                Ok(Ok(path)) => format!("The whole is kept in {}.", path.display()),
                Ok(Err(error)) => format!("The whole could not be kept: {error}."),
                Err(_) => "The whole could not be kept.".to_owned(),
            }
        }
    };
    let note =
        format!("[Output cut: it has {characters} characters, of which the first {limit} follow. {kept}]\n");
    cut_blocks(blocks, limit, &note)
}

fn cut_blocks(blocks: Vec<ContentBlock>, limit: usize, note: &str) -> Vec<ContentBlock> {
    let mut room = limit;
    let mut note = Some(note);
    let mut bounded = Vec::with_capacity(blocks.len());
    for block in blocks {
        let ContentBlock::Text { mut text } = block else {
            bounded.push(block);
            continue;
        };
        match text.char_indices().nth(room) {
            Some((end, _)) => {
                text.truncate(end);
                room = 0;
            }
            None => room -= text.chars().count(),
        }
        if let Some(note) = note.take() {
            text.insert_str(0, note);
        }
        if !text.is_empty() {
            bounded.push(ContentBlock::Text { text });
        }
    }
    bounded
}

/// Writes a blob under its sha256, whole or not at all.
fn keep(folder: &Path, whole: &[u8]) -> std::io::Result<PathBuf> {
    let name = hex::encode(Sha256::digest(whole));
    let path = folder.join(&name);
    if path.exists() {
        return Ok(path);
    }
    std::fs::create_dir_all(folder)?;
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let partial = folder.join(format!(".{name}.{}.{serial}", std::process::id()));
    let written = std::fs::File::create(&partial)
        .and_then(|mut file| file.write_all(whole))
        .and_then(|()| std::fs::rename(&partial, &path));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&partial);
        return Err(error);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_protocol::MediaSource;

    fn texts(blocks: &[ContentBlock]) -> Vec<&str> {
        blocks
            .iter()
            .map(|block| match block {
                ContentBlock::Text { text } => text.as_str(),
                _ => "(media)",
            })
            .collect()
    }

    #[tokio::test]
    async fn the_limit_is_in_characters_over_all_blocks() {
        let image = ContentBlock::Image { source: MediaSource::Url { url: "x:y".into() } };
        let blocks =
            vec![ContentBlock::text("äöü"), image, ContentBlock::text("漢字かな"), ContentBlock::text("z")];
        for (limit, expected) in [
            (8, vec!["äöü", "(media)", "漢字かな", "z"]),
            (5, vec!["NOTE5 äöü", "(media)", "漢字"]),
            (3, vec!["NOTE3 äöü", "(media)"]),
            (0, vec!["NOTE0 ", "(media)"]),
        ] {
            let bounded = cut(blocks.clone(), limit, None).await;
            let note = format!(
                "[Output cut: it has 8 characters, of which the first {limit} follow. The rest was not kept.]\n"
            );
            let shown: Vec<String> = texts(&bounded)
                .into_iter()
                .map(|text| text.replace(&note, &format!("NOTE{limit} ")))
                .collect();
            assert_eq!(shown, expected, "limit {limit}");
        }
    }

    #[tokio::test]
    async fn the_whole_is_kept_under_its_hash() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = folder.path().join("blobs");
        let whole = "word ".repeat(1000);
        for _ in 0..2 {
            let bounded = cut(vec![ContentBlock::text(whole.clone())], 10, Some(&blobs)).await;
            let shown = texts(&bounded).join("");
            let (note, rest) = shown.split_once('\n').unwrap();
            assert_eq!(rest, "word word ");
            let entries: Vec<_> =
                std::fs::read_dir(&blobs).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert_eq!(entries.len(), 1);
            assert!(note.contains(&entries[0].display().to_string()), "{note}");
            assert_eq!(std::fs::read_to_string(&entries[0]).unwrap(), whole);
        }
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_written_is_said() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bounded = cut(vec![ContentBlock::text("abc")], 1, Some(file.path())).await;
        assert!(texts(&bounded)[0].contains("could not be kept"), "{bounded:?}");
    }
}
