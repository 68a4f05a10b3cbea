//! Documents made by other programs, against what another reader found in them.

use std::io::Read as _;
use std::path::PathBuf;

use mcp_tools::servers::reading::{Document, ReadingError, to_markdown};

#[path = "../support/similarity.rs"]
#[allow(unreachable_pub, reason = "shared with an example")]
mod similarity;

use similarity::{headings, rows, similarity};

fn samples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(samples().join("documents").join(name)).expect("a sample")
}

fn read(name: &str) -> Result<Document, ReadingError> {
    to_markdown(&bytes(name), name)
}

/// What the other reader found, by the document's name.
fn expected() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(samples().join("markitdown")).expect("a folder").flatten() {
        let name = entry.file_name().into_string().expect("a name");
        let text = std::fs::read_to_string(entry.path()).expect("a text");
        found.push((name.trim_end_matches(".md").to_owned(), text));
    }
    found.sort();
    assert!(found.len() > 15, "{found:?}");
    found
}

#[test]
fn text_is_kept() {
    for (name, expected) in expected() {
        let document = read(&name).unwrap_or_else(|error| panic!("{error}"));
        let (recall, _) = similarity(&expected, &document.markdown);
        let least = if name.ends_with(".pdf") { 0.85 } else { 0.95 };
        assert!(recall >= least, "{name}: {recall:.3} of the words in fours\n{}", document.markdown);
    }
}

#[test]
fn headings_are_kept() {
    for (name, expected) in expected() {
        let found = headings(&read(&name).expect("a document").markdown);
        for heading in headings(&expected) {
            // The other reader gives charts and comments of code headings of its own making.
            let same = found.iter().any(|found| *found == heading || found.ends_with(&format!(" {heading}")));
            assert!(same || name.ends_with(".py"), "{name}: `{heading}` is not in {found:?}");
        }
    }
}

#[test]
fn tables_are_kept_cell_by_cell() {
    for (name, expected) in expected() {
        let found = rows(&read(&name).expect("a document").markdown);
        for row in rows(&expected) {
            let row = without_gaps(&row);
            let same = found.iter().any(|found| without_gaps(found) == row);
            // See the README beside the samples: a `|` in a cell, and cells of one row on several lines.
            let is_known = row.iter().any(|cell| cell == "spring" || cell == "tide") || row.len() < 2;
            assert!(same || is_known, "{name}: {row:?} is not in {found:?}");
        }
    }
}

/// Cells with text. Places are compared by the table that all formats have.
fn without_gaps(row: &[String]) -> Vec<String> {
    row.iter().filter(|cell| !cell.is_empty()).cloned().collect()
}

#[test]
fn the_same_table_is_in_every_format() {
    let csv = rows(&read("mills.csv").expect("a table").markdown);
    let table = &csv[..5];
    for name in [
        "python-docx.docx",
        "libreoffice.docx",
        "libreoffice.odt",
        "odfpy.odt",
        "python-pptx.pptx",
        "libreoffice.pptx",
        "libreoffice.odp",
        "openpyxl.xlsx",
        "libreoffice.xlsx",
        "libreoffice.ods",
        "libreoffice.xls",
        "xlwt.xls",
        "reportlab.pdf",
        "ebooklib.epub",
        "page.html",
        "archive.zip",
    ] {
        let found = rows(&read(name).expect("a document").markdown);
        let at = found.iter().position(|row| *row == table[0]).unwrap_or_else(|| panic!("{name}: {found:?}"));
        // The line under the head has no words.
        assert_eq!(&found[at..at + 5], table, "{name}");
    }
}

#[test]
fn structure_is_kept() {
    for (name, parts) in [
        (
            "python-docx.docx",
            &[
                "- The gate and its hinge\n",
                "    - A second level",
                "2. Wait until",
                "**In short:**",
                "| tall side | cell 4 |",
                "[the survey of tide mills](https://example.org/tide-mills)",
            ][..],
        ),
        ("libreoffice.odt", &["- The gate and its hinge\n", "2. Wait until", "### A day of work"]),
        ("odfpy.odt", &["[^1]: Counted by the parish clerk.", "**In short:** Tide"]),
        (
            "python-pptx.pptx",
            &[
                "<!-- Slide 2 -->\n\n# The parts of a mill\n\n- The pond",
                "    - French burr",
                "### Notes\n\nA pond",
                "| 1870 | 260 | 31 |",
            ],
        ),
        ("libreoffice.odp", &["### Notes\n\nA pond", "# The parts of a mill\n\n- The pond"]),
        (
            "openpyxl.xlsx",
            &["| 2024-02-29 | 2024-03-02 06:30:00 | 37.5% | FALSE |", "## Empty", "far away |"],
        ),
        ("libreoffice.ods", &["| 2024-02-28 | 2024-03-01 06:30:00 | 25.0% |"]),
        ("xlwt.xls", &["Line 59 of the ledger: A pond", "| 2024-02-29 | FALSE |"]),
        (
            "reportlab.pdf",
            &[
                "# Mills of the tide\n\nIn short:",
                "\n\n# History\n\n",
                "- The gate and its hinge\n",
                "2. Wait until",
            ],
        ),
        ("libreoffice.pdf", &["### A day of work\n\n1. Close", "- The gate and its hinge\n", "## Decline"]),
        ("reportlab-columns.pdf", &["# Two columns\n\nTide mills grind", "one kilogram.\n\nTide mills"]),
        ("ebooklib.epub", &["# Mills of the tide", "Author: The authors", "## Decline"]),
        ("archive.zip", &["## File: folder/notes.txt", "## The parts of a mill"]),
        ("owner-locked.pdf", &["Tide mills grind grain"]),
    ] {
        let text = read(name).expect("a document").markdown;
        for part in parts {
            assert!(text.contains(part), "{name}: {part:?} is not in\n{text}");
        }
    }
}

#[test]
fn what_has_no_text_says_why() {
    let check = |name: &str, kind: &str, part: &str| {
        let error = read(name).expect_err("no text");
        assert!(error.kind() == kind && error.to_string().contains(part), "{name}: {error}");
    };
    check("scanned.pdf", "no_text", "has 2 pages and no text");
    check("locked.pdf", "encrypted", "needs a password");
    // Cut off, it is not taken for pictures.
    let whole = bytes("scanned.pdf");
    let error = to_markdown(&whole[..whole.len() - 300], "cut.pdf").expect_err("no text");
    assert!(error.kind() == "broken" && error.to_string().contains("its end is missing"), "{error}");
}

/// Whether LibreOffice can be asked; says so where it cannot.
fn has_office() -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join("soffice").is_file());
    if !found {
        eprintln!("skipped: LibreOffice is not installed");
    }
    found
}

/// The sample that is kept packed.
fn slides() -> Vec<u8> {
    let packed = bytes("libreoffice.ppt.zip");
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(packed)).expect("an archive");
    let mut slides = Vec::new();
    archive.by_index(0).expect("a member").read_to_end(&mut slides).expect("a presentation");
    slides
}

/// Each by a call of its own, all at once: none waits for another's profile, none takes another's text.
#[test]
fn old_formats_are_read_with_the_help_of_another_program() {
    if !has_office() {
        let error = read("libreoffice.doc").expect_err("nobody reads it");
        assert_eq!(error.kind(), "missing_program");
        assert!(error.to_string().contains("apt-get install"), "{error}");
        return;
    }
    let check = |bytes: Vec<u8>, name: &str, format: &str, parts: &[&str]| {
        let document = to_markdown(&bytes, name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(document.format, format, "{name}");
        for part in parts {
            assert!(document.markdown.contains(part), "{name}: {part} is not in {}", document.markdown);
        }
    };
    let row = "| Saltgate | Westmark | 1691 | 3.1 | 4 pairs |";
    let text = &["## History", "- The gate and its hinge", row];
    let shown = &["<!-- Slide 2 -->", "# The parts of a mill", "### Notes\n\nA pond", row];
    std::thread::scope(|scope| {
        scope.spawn(|| check(bytes("libreoffice.doc"), "libreoffice.doc", "DOC", text));
        scope.spawn(|| check(bytes("libreoffice.rtf"), "libreoffice.rtf", "RTF", &["History", row]));
        scope.spawn(|| check(slides(), "libreoffice.ppt", "PPT", shown));
        scope.spawn(|| check(bytes("libreoffice.ppt.zip"), "slides.zip", "ZIP", shown));
    });
    // Nothing of it stays.
    assert_eq!(processes_with("fathom-program-"), Vec::<String>::new());
}

/// Command lines of processes that hold these words.
#[cfg(target_os = "linux")]
fn processes_with(words: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(words) && line.contains("soffice"))
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn processes_with(_: &str) -> Vec<String> {
    Vec::new()
}

/// Samples with bytes changed, cut off and doubled: whatever comes out, something does.
#[test]
fn broken_documents_break_nothing() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below.max(1) as u64).expect("a number")
    };
    for name in [
        "python-docx.docx",
        "odfpy.odt",
        "python-pptx.pptx",
        "openpyxl.xlsx",
        "xlwt.xls",
        "libreoffice.xls",
        "reportlab.pdf",
        "libreoffice.pdf",
        "owner-locked.pdf",
        "ebooklib.epub",
    ] {
        let whole = bytes(name);
        for _ in 0..12 {
            let mut broken = whole.clone();
            match random(3) {
                0 => broken.truncate(random(whole.len())),
                1 => {
                    for _ in 0..20 {
                        let at = random(broken.len());
                        broken[at] = u8::try_from(random(256)).expect("a byte");
                    }
                }
                _ => {
                    let from = random(broken.len());
                    broken.drain(from..(from + 50).min(whole.len()));
                }
            }
            let _ = to_markdown(&broken, name);
        }
    }
}
