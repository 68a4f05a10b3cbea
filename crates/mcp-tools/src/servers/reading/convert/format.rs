//! What a document is.
//!
//! Decides the format from the first bytes, which tell the truth where they tell anything, and else
//! from the ending of the name. Archives and compound files are told apart by what is in them.

use super::cfb::CompoundFile;
use super::package::Package;

/// A format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Markdown,
    /// With the name of the language for a fence.
    Code(&'static str),
    Html,
    Json,
    /// With its delimiter; none: found out.
    Table(Option<u8>),
    Pdf,
    Docx,
    Pptx,
    Xlsx,
    Xls,
    OpenDocument,
    Epub,
    Zip,
    /// What LibreOffice makes a newer format of, and the ending of that.
    Old(OldFormat),
}

/// A format that another program has to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OldFormat {
    Doc,
    Ppt,
    Xls95,
    Rtf,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Readable(Format),
    /// What it is, with an article.
    Unsupported(&'static str),
    /// An Office document that needs a password.
    Encrypted,
    Binary,
}

/// First bytes of what is not read yet.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"\x89PNG", "an image"),
    (b"GIF8", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"BM", "an image"),
    (b"II*\0", "an image"),
    (b"MM\0*", "an image"),
    (b"RIFF", "an image, a sound or a film"),
    (b"ID3", "a sound"),
    (b"OggS", "a sound or a film"),
    (b"fLaC", "a sound"),
    (b"\x1a\x45\xdf\xa3", "a film"),
    (b"\x1f\x8b", "a compressed file"),
    (b"BZh", "a compressed file"),
    (b"\xfd7zXZ", "a compressed file"),
    (b"\x28\xb5\x2f\xfd", "a compressed file"),
    (b"7z\xbc\xaf", "an archive"),
    (b"Rar!", "an archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "a database"),
    (b"PAR1", "a Parquet table"),
];

/// Languages by ending; the ending itself is the name of the fence where they are the same.
#[rustfmt::skip]
const LANGUAGES: &[(&str, &str)] = &[
    ("py", "python"), ("pyi", "python"), ("rs", "rust"), ("js", "javascript"), ("mjs", "javascript"), ("cjs", "javascript"),
    ("jsx", "jsx"), ("ts", "typescript"), ("tsx", "tsx"), ("java", "java"), ("kt", "kotlin"), ("c", "c"), ("h", "c"),
    ("cc", "cpp"), ("cpp", "cpp"), ("cxx", "cpp"), ("hpp", "cpp"), ("cs", "csharp"), ("go", "go"), ("rb", "ruby"),
    ("php", "php"), ("swift", "swift"), ("scala", "scala"), ("r", "r"), ("jl", "julia"), ("lua", "lua"), ("pl", "perl"),
    ("sh", "sh"), ("bash", "bash"), ("zsh", "zsh"), ("fish", "fish"), ("ps1", "powershell"), ("sql", "sql"),
    ("toml", "toml"), ("yaml", "yaml"), ("yml", "yaml"), ("ini", "ini"), ("css", "css"), ("scss", "scss"),
    ("xml", "xml"), ("svg", "xml"), ("rss", "xml"), ("atom", "xml"), ("kml", "xml"), ("tex", "latex"), ("bib", "bibtex"),
    ("hs", "haskell"), ("ml", "ocaml"), ("ex", "elixir"), ("exs", "elixir"), ("erl", "erlang"), ("clj", "clojure"),
    ("dart", "dart"), ("zig", "zig"), ("vue", "vue"), ("proto", "protobuf"), ("graphql", "graphql"), ("tf", "hcl"),
    ("diff", "diff"), ("patch", "diff"), ("jsonl", "json"), ("ndjson", "json"),
];

pub(super) fn of(bytes: &[u8], name: &str) -> Found {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return archive(bytes);
    }
    if bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
        return compound(bytes);
    }
    if bytes.starts_with(b"{\\rtf") {
        return Found::Readable(Format::Old(OldFormat::Rtf));
    }
    // Some writers put a few bytes before the head.
    if memchr::memmem::find(&bytes[..bytes.len().min(1024)], b"%PDF-")
        .is_some_and(|at| at == 0 || !is_text(bytes))
    {
        return Found::Readable(Format::Pdf);
    }
    let text = is_text(bytes);
    // Short signatures are letters that a text may begin with.
    if let Some((_, what)) = SIGNATURES
        .iter()
        .find(|(signature, _)| bytes.starts_with(signature) && (signature.len() > 4 || !text))
    {
        return Found::Unsupported(what);
    }
    if !text {
        return Found::Binary;
    }
    Found::Readable(match ending.as_str() {
        "md" | "markdown" | "mdown" | "mkd" => Format::Markdown,
        "html" | "htm" | "xhtml" | "shtml" => Format::Html,
        "json" | "geojson" | "jsonld" | "ipynb" | "json5" => Format::Json,
        "csv" => Format::Table(None),
        "tsv" | "tab" => Format::Table(Some(b'\t')),
        ending => match LANGUAGES.iter().find(|(known, _)| *known == ending) {
            Some((_, language)) => Format::Code(language),
            None if looks_like_html(bytes) => Format::Html,
            None => Format::Text,
        },
    })
}

/// What an archive is, by the files in it.
fn archive(bytes: &[u8]) -> Found {
    let Ok(mut package) = Package::open(bytes) else { return Found::Unsupported("a damaged ZIP archive") };
    let kind = package.read("mimetype").ok().flatten().unwrap_or_default();
    let kind = String::from_utf8_lossy(&kind).trim().to_owned();
    Found::Readable(if kind == "application/epub+zip" || package.has("META-INF/container.xml") {
        Format::Epub
    } else if kind.starts_with("application/vnd.oasis.opendocument") && package.has("content.xml") {
        Format::OpenDocument
    } else if package.has("xl/workbook.bin") {
        return Found::Unsupported("a binary Excel workbook (XLSB)");
    } else if package.has("[Content_Types].xml") {
        let names = package.names();
        let has = |folder: &str| names.iter().any(|name| name.starts_with(folder));
        match (has("word/"), has("ppt/"), has("xl/")) {
            (true, _, _) => Format::Docx,
            (_, true, _) => Format::Pptx,
            (_, _, true) => Format::Xlsx,
            _ => Format::Zip,
        }
    } else {
        Format::Zip
    })
}

/// What a compound file is, by its streams.
fn compound(bytes: &[u8]) -> Found {
    let Some(file) = CompoundFile::open(bytes) else {
        return Found::Unsupported("a damaged Office document");
    };
    let kinds = [
        ("WordDocument", Format::Old(OldFormat::Doc)),
        ("PowerPoint Document", Format::Old(OldFormat::Ppt)),
        ("Workbook", Format::Xls),
        ("Book", Format::Old(OldFormat::Xls95)),
    ];
    match kinds.into_iter().find(|(stream, _)| file.has(stream)) {
        Some((_, format)) => Found::Readable(format),
        None if file.has("EncryptedPackage") => Found::Encrypted,
        None => Found::Unsupported("a compound file that is no document"),
    }
}

/// Whether bytes can be text in some encoding: no NUL, few control characters. A byte order mark settles
/// it, UTF-16 being full of NULs.
fn is_text(bytes: &[u8]) -> bool {
    if encoding_rs::Encoding::for_bom(bytes).is_some() {
        return true;
    }
    let sample = &bytes[..bytes.len().min(64 << 10)];
    let control = |byte: &&u8| matches!(**byte, 0x01..=0x08 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
    !sample.contains(&0) && sample.iter().filter(control).count() <= sample.len() / 100
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(1024)];
    let start =
        String::from_utf8_lossy(start).trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| start.starts_with(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_before_names() {
        let check =
            |bytes: &[u8], name: &str, expected: Found| assert_eq!(of(bytes, name), expected, "{name}");
        check(b"%PDF-1.7 x", "report.txt", Found::Readable(Format::Pdf));
        check(b"\0\n%PDF-1.7 x", "b", Found::Readable(Format::Pdf));
        check(b"How a file begins: %PDF-1.7", "a.txt", Found::Readable(Format::Text));
        check(b"PK\x03\x04..", "a/b.DOCX", Found::Unsupported("a damaged ZIP archive"));
        check(b"{\\rtf1 x}", "b.doc", Found::Readable(Format::Old(OldFormat::Rtf)));
        check(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.doc", Found::Unsupported("a damaged Office document"));
        check(b"\x00\x01\x02", "b.txt", Found::Binary);
        check(b"BM\x00\x00", "picture", Found::Unsupported("an image"));
        check(b"BMW is a maker of cars", "cars.txt", Found::Readable(Format::Text));
        check(b"", "empty", Found::Readable(Format::Text));
        check(b"  <!DOCTYPE HTML>", "page", Found::Readable(Format::Html));
        check(b"<html", "page.py", Found::Readable(Format::Code("python")));
        check(b"x", "C:\\d.d\\README", Found::Readable(Format::Text));
        check(b"x", "a.RS", Found::Readable(Format::Code("rust")));
        check(b"\xff\xfea\0b\0", "utf16.md", Found::Readable(Format::Markdown));
        check(b"a\tb", "t.tsv", Found::Readable(Format::Table(Some(b'\t'))));
    }
}
