//! What every file must be and must not hold.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Longer Rust files are said to be long; past the second number they are refused.
const LONG: usize = 500;
const TOO_LONG: usize = 800;

/// Folders that hold nothing of ours.
const SKIPPED: &[&str] = &[".git", "target", "runs", "node_modules"];

/// Text that must not be left behind, with why. Split, so that this file does not hold it.
const LEFTOVERS: &[(&str, &str, &str)] = &[
    ("FIX", "ME", "finish it, or write down the limit in plain words"),
    ("X", "XX", "finish it, or write down the limit in plain words"),
    ("todo", "!(", "finish it"),
    ("unimplemented", "!(", "finish it"),
    ("db", "g!(", "a leftover of debugging"),
    ("<<<<", "<<<", "a merge conflict"),
];

/// What other programs made, and what is compared with it to the byte.
const MADE_BY_OTHERS: &[&str] =
    &["crates/mcp-tools/tests/samples/documents/", "crates/mcp-tools/tests/samples/markitdown/"];

pub fn check() -> anyhow::Result<Vec<String>> {
    let root = crate::shell::root();
    let mut problems = Vec::new();
    for path in files(&root)? {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        if MADE_BY_OTHERS.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        check_file(&name, &text, &mut problems);
    }
    Ok(problems)
}

fn check_file(name: &str, text: &str, problems: &mut Vec<String>) {
    let extension = name.rsplit('.').next().unwrap_or_default();
    if !["rs", "md", "toml", "yaml", "yml", "py", "sh", "txt"].contains(&extension) {
        return;
    }
    if extension == "rs" {
        let head = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        if !head.starts_with("//!") && !head.starts_with("#![doc") {
            problems.push(format!("{name}: does not begin with //! that says what the file decides"));
        }
        let lines = text.lines().count();
        if lines > TOO_LONG {
            problems.push(format!("{name}: {lines} lines; one idea a file, {TOO_LONG} at most"));
        } else if lines > LONG {
            eprintln!("tidy: note: {name} has {lines} lines; {LONG} is the aim");
        }
        for (number, line) in text.lines().enumerate() {
            if line.trim_start() == concat!("#[ign", "ore]") {
                problems.push(format!("{name}:{}: an ignored test without its reason", number + 1));
            }
        }
    }
    for (number, line) in text.lines().enumerate() {
        if line.ends_with([' ', '\t']) && extension != "md" {
            problems.push(format!("{name}:{}: white space at the end of the line", number + 1));
        }
        if matches!(extension, "rs" | "py") {
            for (start, end, why) in LEFTOVERS {
                if line.contains(&format!("{start}{end}")) {
                    problems.push(format!("{name}:{}: {start}{end} is left: {why}", number + 1));
                }
            }
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        problems.push(format!("{name}: no newline at the end of the file"));
    }
}

/// All files of ours, in a stable order.
fn files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("{} cannot be listed", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                if !SKIPPED.contains(&name) {
                    waiting.push(path);
                }
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expected: &[&str]) {
        let mut problems = Vec::new();
        check_file(name, text, &mut problems);
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, part) in problems.iter().zip(expected) {
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn files_are_judged() {
        check("a.rs", "//! Says.\nfn f() {}\n", &[]);
        check("a.rs", "fn f() {}\n", &["does not begin"]);
        check("a.rs", "//! Says.\nfn f() {} \n", &["a.rs:2: white space"]);
        check("a.rs", "//! Says.", &["no newline"]);
        check("a.rs", &format!("//! Says.\n{}", "\n".repeat(TOO_LONG)), &["lines"]);
        check("a.rs", concat!("//! Says.\n// FIX", "ME\n"), &["is left"]);
        check("a.rs", concat!("//! Says.\n#[ign", "ore]\n"), &["without its reason"]);
        check("a.png", "\u{0}", &[]);
        check("a.md", "two  \nlines\n", &[]);
    }
}
