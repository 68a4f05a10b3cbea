//! What a file of sound or pictures is.
//!
//! Decides by the first bytes, never by a name: what a service is told about a file must be true.

/// What a file shows or sounds like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Image,
    Video,
    Audio,
}

/// A format: its sort, its MIME type, the usual ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) sort: Sort,
    pub(super) mime_type: &'static str,
    pub(super) ending: &'static str,
}

const fn kind(sort: Sort, mime_type: &'static str, ending: &'static str) -> Kind {
    Kind { sort, mime_type, ending }
}

/// The bytes that a format begins with, and where. The first that fits.
#[rustfmt::skip]
const SIGNATURES: &[(usize, &[u8], Kind)] = &[
    (0, b"\x89PNG\r\n\x1a\n", kind(Sort::Image, "image/png", "png")),
    (0, b"\xff\xd8\xff", kind(Sort::Image, "image/jpeg", "jpg")),
    (0, b"GIF87a", kind(Sort::Image, "image/gif", "gif")),
    (0, b"GIF89a", kind(Sort::Image, "image/gif", "gif")),
    (8, b"WEBP", kind(Sort::Image, "image/webp", "webp")),
    (8, b"AVI ", kind(Sort::Video, "video/x-msvideo", "avi")),
    (8, b"WAVE", kind(Sort::Audio, "audio/wav", "wav")),
    (4, b"ftypM4A", kind(Sort::Audio, "audio/mp4", "m4a")),
    (4, b"ftypM4B", kind(Sort::Audio, "audio/mp4", "m4a")),
    (4, b"ftypqt", kind(Sort::Video, "video/quicktime", "mov")),
    (4, b"ftypavif", kind(Sort::Image, "image/avif", "avif")),
    (4, b"ftyphei", kind(Sort::Image, "image/heic", "heic")),
    (4, b"ftyp", kind(Sort::Video, "video/mp4", "mp4")),
    (0, b"ID3", kind(Sort::Audio, "audio/mpeg", "mp3")),
    (0, b"OggS", kind(Sort::Audio, "audio/ogg", "ogg")),
    (0, b"fLaC", kind(Sort::Audio, "audio/flac", "flac")),
    (0, b"#!AMR", kind(Sort::Audio, "audio/amr", "amr")),
    (0, b"II*\0", kind(Sort::Image, "image/tiff", "tiff")),
    (0, b"MM\0*", kind(Sort::Image, "image/tiff", "tiff")),
];

/// The format of a file; none where it is none of sound or pictures.
pub(super) fn of(bytes: &[u8]) -> Option<Kind> {
    let at =
        |from: usize, signature: &[u8]| bytes.get(from..).is_some_and(|rest| rest.starts_with(signature));
    if let Some((_, _, kind)) = SIGNATURES.iter().find(|(from, signature, _)| at(*from, signature)) {
        // WEBP, AVI and WAVE stand in one container.
        let in_riff = matches!(kind.ending, "webp" | "avi" | "wav");
        return (!in_riff || at(0, b"RIFF")).then_some(*kind);
    }
    if at(0, b"\x1a\x45\xdf\xa3") {
        let head = &bytes[..bytes.len().min(4096)];
        let has = |word: &[u8]| head.windows(word.len()).any(|window| window == word);
        // A film has a track of pictures, whose coding stands near the start.
        let is_film = has(b"V_");
        return Some(match (is_film, has(b"webm")) {
            (true, true) => kind(Sort::Video, "video/webm", "webm"),
            (true, false) => kind(Sort::Video, "video/x-matroska", "mkv"),
            (false, _) => kind(Sort::Audio, "audio/webm", "webm"),
        });
    }
    match bytes {
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Some(kind(Sort::Image, "image/bmp", "bmp")),
        [0xff, second, ..] if second & 0xf6 == 0xf0 => Some(kind(Sort::Audio, "audio/aac", "aac")),
        [0xff, second, ..] if second & 0xe0 == 0xe0 && second & 0x06 != 0 => {
            Some(kind(Sort::Audio, "audio/mpeg", "mp3"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_tell() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"RIFF\0\0\0\0WEBP", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVEfmt ", Some("audio/wav")),
            (b"RIFX\0\0\0\0WAVEfmt ", None),
            (b"\0\0\0\x18ftypM4A ", Some("audio/mp4")),
            (b"\0\0\0\x18ftypisom", Some("video/mp4")),
            (b"\xff\xfb\x90", Some("audio/mpeg")),
            (b"\xff\xf1\x50", Some("audio/aac")),
            (b"\x1a\x45\xdf\xa3..webm..V_VP9", Some("video/webm")),
            (b"\x1a\x45\xdf\xa3..webm..A_OPUS", Some("audio/webm")),
            (b"BM\x10\0\0\0\0\0\0\0", Some("image/bmp")),
            (b"BMW is a maker", None),
            (b"<svg>", None),
            (b"", None),
        ] {
            assert_eq!(of(bytes).map(|kind| kind.mime_type), expected, "{bytes:?}");
        }
    }
}
