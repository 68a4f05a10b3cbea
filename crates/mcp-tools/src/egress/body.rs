//! Bodies with an end.
//!
//! Decides how much of an answer is read. Packed bodies are unpacked while they come, so that neither a long one nor
//! a short one that unpacks to much takes more memory than its limit.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Why a body was not read to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge,
    Broken(String),
}

/// A body as it comes in.
pub(super) enum Body {
    Plain(Limited),
    Gzip(Box<MultiGzDecoder<Limited>>),
    /// By the standard with a header; some servers leave it out, which the first byte tells.
    Deflate(Limited),
    Zlib(Box<ZlibDecoder<Limited>>),
    Raw(Box<DeflateDecoder<Limited>>),
}

impl Body {
    /// A body of at most `limit` bytes, packed as `Content-Encoding` says.
    pub(super) fn new(encoding: Option<&str>, limit: u64) -> Result<Self, BodyError> {
        let out =
            Limited { bytes: Vec::new(), limit: usize::try_from(limit).unwrap_or(usize::MAX), full: false };
        let encoding = encoding.map(|name| name.trim().to_ascii_lowercase());
        match encoding.as_deref() {
            None | Some("" | "identity") => Ok(Self::Plain(out)),
            Some("gzip" | "x-gzip") => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(out)))),
            Some("deflate") => Ok(Self::Deflate(out)),
            Some(other) => {
                let other: String = other.chars().take(40).collect();
                Err(BodyError::Broken(format!(
                    "its answer is packed with `{other}`, which was not asked for"
                )))
            }
        }
    }

    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), BodyError> {
        if let (Self::Deflate(out), Some(first)) = (&mut *self, piece.first()) {
            let out = out.take();
            *self = match first & 0x0f {
                8 => Self::Zlib(Box::new(ZlibDecoder::new(out))),
                _ => Self::Raw(Box::new(DeflateDecoder::new(out))),
            };
        }
        let written = match self {
            Self::Plain(out) | Self::Deflate(out) => out.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
            Self::Zlib(decoder) => decoder.write_all(piece),
            Self::Raw(decoder) => decoder.write_all(piece),
        };
        written.map_err(|error| self.error(&error))
    }

    pub(super) fn finish(mut self) -> Result<Vec<u8>, BodyError> {
        let done = match &mut self {
            Self::Plain(_) | Self::Deflate(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Zlib(decoder) => decoder.try_finish(),
            Self::Raw(decoder) => decoder.try_finish(),
        };
        match done {
            Ok(()) => Ok(self.out().take().bytes),
            Err(error) => Err(self.error(&error)),
        }
    }

    fn out(&mut self) -> &mut Limited {
        match self {
            Self::Plain(out) | Self::Deflate(out) => out,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
            Self::Raw(decoder) => decoder.get_mut(),
        }
    }

    fn error(&mut self, error: &io::Error) -> BodyError {
        if self.out().full {
            BodyError::TooLarge
        } else {
            BodyError::Broken(format!("its answer cannot be unpacked ({error})"))
        }
    }
}

/// Takes bytes up to a limit.
#[derive(Default)]
pub(super) struct Limited {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Limited {
    fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

impl Write for Limited {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if piece.len() > self.limit - self.bytes.len() {
            self.full = true;
            return Err(io::Error::other("the limit is reached"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn read(encoding: Option<&str>, packed: &[u8], limit: u64) -> Result<Vec<u8>, BodyError> {
        let mut body = Body::new(encoding, limit)?;
        for piece in packed.chunks(7) {
            body.push(piece)?;
        }
        body.finish()
    }

    fn packed(encoding: &str, text: &[u8]) -> Vec<u8> {
        let level = Compression::best();
        macro_rules! pack {
            ($encoder:ident) => {{
                let mut encoder = $encoder::new(Vec::new(), level);
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }};
        }
        match encoding {
            "gzip" => pack!(GzEncoder),
            "zlib" => pack!(ZlibEncoder),
            _ => pack!(DeflateEncoder),
        }
    }

    #[test]
    fn bodies_are_unpacked() {
        let text = b"a page, a page, a page".repeat(10);
        let limit = text.len() as u64;
        for (encoding, bytes) in [
            (None, text.clone()),
            (Some("identity"), text.clone()),
            (Some(" GZIP "), packed("gzip", &text)),
            (Some("x-gzip"), [packed("gzip", &text[..50]), packed("gzip", &text[50..])].concat()),
            (Some("deflate"), packed("zlib", &text)),
            (Some("deflate"), packed("raw", &text)),
        ] {
            assert_eq!(read(encoding, &bytes, limit), Ok(text.clone()), "{encoding:?}");
            assert_eq!(read(encoding, &bytes, limit - 1), Err(BodyError::TooLarge), "{encoding:?}");
        }
        assert_eq!(read(Some("deflate"), b"", 9), Ok(Vec::new()));
    }

    #[test]
    fn a_bomb_is_stopped_at_the_limit() {
        let bomb = packed("gzip", &vec![0u8; 4 << 20]);
        assert!(bomb.len() < 10_000);
        assert_eq!(read(Some("gzip"), &bomb, 1 << 16), Err(BodyError::TooLarge));
    }

    #[test]
    fn what_cannot_be_unpacked_says_so() {
        for (encoding, bytes) in [
            ("gzip", &b"no gzip at all"[..]),
            ("deflate", &b"xxxxxxxxx"[..]),
            ("br", b"x"),
            ("gzip, br", b"x"),
        ] {
            assert!(matches!(read(Some(encoding), bytes, 100), Err(BodyError::Broken(_))), "{encoding}");
        }
    }
}
