//! Which local files a tool may touch.
//!
//! Decides whether a path that a model wrote lies inside directories or is among files that were
//! allowed, links resolved.

use std::path::{Path, PathBuf};

/// The file that is meant, resolved; relative paths are tried in each allowed directory, then from the working
/// directory. No roots: the working directory.
pub(super) fn confine(path: &Path, roots: &[PathBuf]) -> Result<PathBuf, String> {
    let here = [PathBuf::from(".")];
    let roots = if roots.is_empty() { &here } else { roots };
    let mut missing = true;
    for root in roots {
        let Ok(root) = root.canonicalize() else { continue };
        let directory = if root.is_file() { root.parent().unwrap_or(&root) } else { &root };
        let Ok(resolved) = directory.join(path).canonicalize() else { continue };
        missing = false;
        if resolved.starts_with(&root) {
            return Ok(resolved);
        }
    }
    if let Ok(resolved) = path.canonicalize()
        && roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| resolved.starts_with(root))
    {
        return Ok(resolved);
    }
    let problem = if missing && !path.is_absolute() {
        "does not exist"
    } else {
        "is not among the files that may be used"
    };
    let names: Vec<String> = roots.iter().take(5).map(|root| format!("`{}`", root.display())).collect();
    Err(format!(
        "`{}` {problem}. Files may be taken from: {} (--docs and tools.reading.allowed_roots add folders)",
        path.display(),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_allowed_is_found() {
        let base = tempfile::tempdir().expect("a directory");
        let base = base.path().canonicalize().expect("a path");
        for path in ["in/a", "in/d/b", "out/c", "single"] {
            std::fs::create_dir_all(base.join(path).parent().expect("a parent")).expect("a directory");
            std::fs::write(base.join(path), path).expect("a file");
        }
        std::os::unix::fs::symlink(base.join("out/c"), base.join("in/link")).expect("a link");
        std::os::unix::fs::symlink("d/b", base.join("in/inner")).expect("a link");
        let roots = [base.join("missing"), base.join("in"), base.join("single")];
        let check = |path: &str, expected: Option<&str>| {
            let found = confine(Path::new(&path.replace("BASE", &base.display().to_string())), &roots);
            assert_eq!(found.ok(), expected.map(|path| base.join(path)), "{path}");
        };
        check("a", Some("in/a"));
        check("BASE/in/a", Some("in/a"));
        check("d/../d/b", Some("in/d/b"));
        check("inner", Some("in/d/b"));
        check("single", Some("single"));
        check("BASE/single", Some("single"));
        for bad in ["link", "../out/c", "BASE/out/c", "BASE/in/../out/c", "BASE/inx", "nothing", ""] {
            if !bad.is_empty() {
                check(bad, None);
            }
        }
    }
}
