//! Files given with a question: what the model is shown of each. Decides the heading, the length limit and what is
//! said about a file that cannot be shown; reading formats is left to `mcp_tools::servers::reading`.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use core_protocol::{ContentBlock, MediaSource};
use mcp_tools::servers::reading::to_markdown;

use crate::error::PipelineError;

/// Characters of one file that the first message shows.
pub const FILE_CHARACTERS: usize = 60_000;

/// Larger files are not read at all.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Pictures that models take, by file extension.
const PICTURES: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

/// What the first message holds of the files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attachments {
    /// Text that follows the question; empty without files.
    pub text: String,
    /// Pictures, where the model takes them.
    pub media: Vec<ContentBlock>,
    /// The files, as absolute paths.
    pub paths: Vec<PathBuf>,
}

/// Whether a file can be given with a question, without reading it; its absolute path.
///
/// # Errors
///
/// A file that is missing, no file, may not be opened or is too large.
pub fn check(file: &Path) -> Result<PathBuf, PipelineError> {
    let failed = |problem: String| PipelineError::File { path: file.display().to_string(), problem };
    let path = std::path::absolute(file).map_err(|error| failed(error.to_string()))?;
    let facts = std::fs::metadata(&path).map_err(|error| {
        failed(if error.kind() == std::io::ErrorKind::NotFound {
            "there is no such file".to_owned()
        } else {
            error.to_string()
        })
    })?;
    if !facts.is_file() {
        return Err(failed("it is not a file".to_owned()));
    }
    if facts.len() > FILE_BYTES {
        return Err(failed(format!("it has {} bytes; at most {FILE_BYTES} are read", facts.len())));
    }
    std::fs::File::open(&path).map_err(|error| failed(error.to_string()))?;
    Ok(path)
}

/// Reads the files given with a question.
///
/// # Errors
///
/// As for [`check`], and a file that cannot be read. One whose format cannot be shown is no error: the
/// model is told so, it may have a tool that reads it.
pub fn read(files: &[PathBuf], pictures_shown: bool) -> Result<Attachments, PipelineError> {
    let mut attachments = Attachments::default();
    if files.is_empty() {
        return Ok(attachments);
    }
    attachments.text.push_str("\n\n# Files given with the task\n");
    for file in files {
        attach(&mut attachments, file, pictures_shown)?;
    }
    Ok(attachments)
}

fn attach(attachments: &mut Attachments, file: &Path, pictures_shown: bool) -> Result<(), PipelineError> {
    let path = check(file)?;
    let failed = |problem: String| PipelineError::File { path: file.display().to_string(), problem };
    let bytes = std::fs::read(&path).map_err(|error| failed(error.to_string()))?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    attachments.text.push_str(&format!("\n## {name}\n\nPath: {}\n\n", path.display()));
    attachments.text.push_str(&shown(&mut attachments.media, &bytes, &name, pictures_shown));
    attachments.paths.push(path);
    Ok(())
}

/// What is said of one file; a picture goes into `media`.
fn shown(media: &mut Vec<ContentBlock>, bytes: &[u8], name: &str, pictures_shown: bool) -> String {
    let extension = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    if let Some((_, media_type)) = PICTURES.iter().find(|(known, _)| *known == extension) {
        if !pictures_shown {
            return "(A picture. The model in use does not take pictures.)\n".to_owned();
        }
        let source =
            MediaSource::Base64 { media_type: (*media_type).to_owned(), data: STANDARD.encode(bytes) };
        media.push(ContentBlock::Image { source });
        return "(A picture, shown with this message.)\n".to_owned();
    }
    match to_markdown(bytes, name) {
        Ok(document) => cut(&document.markdown),
        Err(error) => format!("(This file cannot be shown here: {error})\n"),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(FILE_CHARACTERS) {
        None => format!("{}\n", text.trim_end()),
        Some((end, _)) => format!(
            "(The first {FILE_CHARACTERS} of {} characters; read the rest with a tool.)\n\n{}\n",
            text.chars().count(),
            &text[..end]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_markdown_and_pictures() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("notes.md"), "# Notes\n\nThe bridge opened in 1883.\n").unwrap();
        std::fs::write(path("long.txt"), "é".repeat(FILE_CHARACTERS + 10)).unwrap();
        std::fs::write(path("dot.png"), [1, 2, 3, 4]).unwrap();
        let files = ["notes.md", "long.txt", "dot.png"].map(path);
        let seen = read(&files, true).unwrap();
        assert!(seen.text.contains("## notes.md") && seen.text.contains("1883"));
        assert!(seen.text.contains(&format!("of {} characters", FILE_CHARACTERS + 10)));
        assert_eq!(seen.media.len(), 1);
        assert!(read(&files, false).unwrap().media.is_empty());
        assert_eq!(read(&[], true).unwrap(), Attachments::default());
    }

    #[test]
    fn what_is_wrong_with_a_file() {
        let dir = tempfile::tempdir().unwrap();
        for (path, expected) in
            [(dir.path().join("absent.txt"), "no such file"), (dir.path().to_path_buf(), "not a file")]
        {
            let error = read(std::slice::from_ref(&path), true).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(check(&path).unwrap_err().to_string(), error.to_string());
        }
    }
}
