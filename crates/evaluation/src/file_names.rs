//! Ids of tasks, which can be any text, in names of files. Decides what stands for what no file name can hold.

use sha2::{Digest as _, Sha256};

/// An id as a part of a file's name, which is never too long for one; two ids never give the same. `stand_in` takes the
/// place of every character that is no ASCII letter, digit, hyphen or underscore.
pub(crate) fn file_name_of(id: &str, stand_in: char) -> String {
    const LONGEST: usize = 80;
    let shortened: String = id.chars().take(LONGEST).collect();
    let name = plain(&shortened, stand_in);
    if name == id {
        return name;
    }
    let digest = hex::encode(Sha256::digest(id.as_bytes()));
    format!("{name}-{}", digest.get(..8).unwrap_or_default())
}

/// A text with `stand_in` for what no file name should hold.
pub(crate) fn plain(text: &str, stand_in: char) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.chars().map(|c| if kept(c) { c } else { stand_in }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_as_parts_of_file_names() {
        assert_eq!(file_name_of("level-1_a", '-'), "level-1_a");
        let long = "x".repeat(300);
        let names =
            [long.clone(), long + "y", "a/b".to_owned(), "a b".to_owned()].map(|id| file_name_of(&id, '-'));
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
        assert!(names.iter().all(|name| name.len() < 100 && plain(name, '-') == *name), "{names:?}");
    }
}
