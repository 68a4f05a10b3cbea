//! Pictures that stand inside a record, as `data:` URIs or base64, into files beside the tasks.

use std::path::Path;

use base64::Engine as _;

/// Writes the picture and gives the file's name.
///
/// # Errors
///
/// In words: no picture that can be read, or a file that cannot be written.
pub(super) fn write(picture: &str, task_id: &str, folder: &Path) -> Result<String, String> {
    let encoded = match picture.strip_prefix("data:") {
        Some(uri) => uri.split_once("base64,").ok_or("the picture is a data URI without base64")?.1,
        None => picture,
    };
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(encoded.trim())
        .map_err(|error| format!("the picture is no base64: {error}"))?;
    std::fs::create_dir_all(folder.join("images"))
        .map_err(|error| format!("{} cannot be made: {error}", folder.join("images").display()))?;
    let (stem, extension) = (file_name(task_id), extension(&bytes));
    // Two ids may be the same as file names; a picture never replaces another one.
    let mut number = 1_u32;
    loop {
        let name = match number {
            1 => format!("images/{stem}.{extension}"),
            _ => format!("images/{stem}-{number}.{extension}"),
        };
        let path = folder.join(&name);
        match std::fs::read(&path) {
            Ok(there) if there == bytes => return Ok(name),
            Ok(_) => number += 1,
            Err(_) => {
                return std::fs::write(&path, bytes)
                    .map(|()| name)
                    .map_err(|error| format!("{} cannot be written: {error}", path.display()));
            }
        }
    }
}

/// An id as a file name.
fn file_name(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect()
}

/// By what the bytes begin with.
fn extension(bytes: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 5] =
        [(b"\x89PNG", "png"), (b"\xff\xd8\xff", "jpg"), (b"GIF8", "gif"), (b"RIFF", "webp"), (b"BM", "bmp")];
    KINDS.iter().find(|(magic, _)| bytes.starts_with(magic)).map_or("bin", |(_, extension)| extension)
}
