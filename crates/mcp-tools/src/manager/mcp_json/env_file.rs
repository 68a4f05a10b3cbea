//! A file of variables beside the server's own: `NAME=value` lines, as editors let people write them.
//!
//! Decides nothing about which of them win; the caller puts its own above these.

use std::collections::BTreeMap;

/// The variables of a file.
///
/// # Errors
/// Why it cannot be read, with the file's name.
pub(super) fn read(path: &str) -> Result<BTreeMap<String, String>, String> {
    let wrong = |problem: dotenvy::Error| {
        let problem = match problem {
            // The error itself repeats the line, which may hold a key.
            dotenvy::Error::LineParse(_, column) => format!("a line is wrong at its character {column}"),
            other => other.to_string(),
        };
        format!("the file `{path}` cannot be read: {problem}")
    };
    dotenvy::from_path_iter(path).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_and_faults_show_no_values() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = folder.path().join(".env");
            std::fs::write(&path, text).unwrap();
            read(&path.display().to_string())
        };
        let found = read("# keys\nA=1\nexport B='two words'\n").unwrap();
        assert_eq!(found, BTreeMap::from([("A".into(), "1".into()), ("B".into(), "two words".into())]));
        let problem = read("KEY='s3cr3t").unwrap_err();
        assert!(problem.contains(".env` cannot be read") && !problem.contains("s3cr3t"), "{problem}");
        assert!(super::read("/no/such/file").unwrap_err().contains("/no/such/file"));
    }
}
