//! Folders: what is indexed, what is skipped, and how an index follows its folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mcp_tools::servers::library::{
    Collection, Document, Drift, FolderLimits, Freshness, Library, LibraryError, LibraryKind, LibraryOptions,
    Registry, Skip,
};
use tempfile::tempdir;

use super::{document, folder_options, ids, open_folder};

fn write(folder: &Path, files: &[(&str, &[u8])]) {
    for (name, content) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// How many entries an opening had to look into.
fn looked_into(options: &LibraryOptions) -> (Library, usize) {
    let most = AtomicUsize::new(0);
    let progress = |_, total| {
        most.fetch_max(total, Ordering::Relaxed);
    };
    let library = Library::open_watched(options, &progress, &AtomicBool::new(false)).unwrap();
    (library, most.into_inner())
}

#[test]
fn files_become_documents_and_the_rest_is_counted() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    write(
        folder.path(),
        &[
            ("physics/curie.md", b"# Marie Curie\n\nShe discovered polonium and radium."),
            ("page.html", b"<html><title>Radio</title><body><p>Waves carry sound.</p></body></html>"),
            ("data.csv", b"element,symbol\npolonium,Po\n"),
            (".git/config", b"polonium hidden"),
            (".secret.md", b"polonium hidden"),
            ("image.bin", b"\x00\x01\x02polonium"),
            ("large.txt", &[b'x'; 5000]),
        ],
    );
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link.txt")).unwrap();
    let mut options = folder_options(folder.path(), cache.path());
    options.limits = FolderLimits { max_file_bytes: 4096, ..FolderLimits::default() };
    let library = Library::open(&options).unwrap();
    let report = &library.reports()[0];
    assert_eq!(report.documents, 3);
    assert_eq!(
        report.skipped,
        BTreeMap::from([(Skip::Hidden, 2), (Skip::Link, 1), (Skip::TooLarge, 1), (Skip::Unsupported, 1)])
    );
    let mut found = ids(&library, "polonium");
    found.sort();
    assert_eq!(found, ["notes/data.csv", "notes/physics/curie.md"]);
    let page = library.read("notes/physics/curie.md", 0).unwrap();
    assert_eq!(
        (page.title.as_str(), page.text.as_str()),
        ("Marie Curie", "She discovered polonium and radium.")
    );
    assert!(page.source.ends_with("physics/curie.md"));
    assert_eq!(library.read("notes/page.html", 0).unwrap().title, "Radio");
}

#[test]
fn too_many_files_are_counted() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    write(folder.path(), &[("a.md", b"alpha"), ("b.md", b"beta"), ("c.md", b"gamma")]);
    let mut options = folder_options(folder.path(), cache.path());
    options.limits = FolderLimits { max_files: 2, ..FolderLimits::default() };
    let report = Library::open(&options).unwrap().reports().remove(0);
    assert_eq!((report.documents, report.skipped), (2, BTreeMap::from([(Skip::TooMany, 1)])));
}

#[test]
fn an_index_follows_its_folder() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    let path = folder.path();
    write(path, &[("a.md", b"alpha"), ("b.md", b"beta"), ("c.md", b"gamma")]);
    let library = open_folder(path, cache.path());
    assert_eq!(ids(&library, "beta"), ["notes/b.md"]);

    // The same length, so that only content tells them apart.
    write(path, &[("b.md", b"zeta"), ("d.md", b"delta")]);
    fs::remove_file(path.join("c.md")).unwrap();
    let changed = open_folder(path, cache.path());
    for (word, expected) in [
        ("alpha", &["notes/a.md"][..]),
        ("beta", &[]),
        ("zeta", &["notes/b.md"]),
        ("gamma", &[]),
        ("delta", &["notes/d.md"]),
    ] {
        assert_eq!(ids(&changed, word), expected, "{word}");
    }
    // A library that is open goes on with what it was opened with.
    assert_eq!(ids(&library, "beta"), ["notes/b.md"]);
    assert_eq!(library.read("notes/c.md", 0).unwrap().text, "gamma");
    assert!(matches!(changed.read("notes/c.md", 0), Err(LibraryError::UnknownDocument { .. })));
    assert_eq!(changed.reports()[0].passages, 3);

    fs::remove_dir_all(path).unwrap();
    fs::create_dir(path).unwrap();
    assert_eq!(open_folder(path, cache.path()).reports()[0].documents, 0);
}

/// Sets the times of a file to the past, so that it counts as settled.
fn settle(path: &Path) {
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::options().write(true).open(path).unwrap().set_modified(past).unwrap();
}

#[test]
fn scores_after_updates_are_those_of_a_new_index() {
    let (folder, cache, fresh) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let path = folder.path();
    for round in 0..4 {
        for file in 0..6 {
            let text = format!("alpha {} round {round} file {file}", "beta ".repeat(file * round));
            write(path, &[(&format!("{file}.md"), text.as_bytes())]);
        }
        open_folder(path, cache.path());
    }
    let (updated, new) = (open_folder(path, cache.path()), open_folder(path, fresh.path()));
    for query in ["alpha beta", "round 3", "file 5 beta"] {
        let scores = |library: &Library| {
            let answer = library.search(query, 10).unwrap();
            let mut scores: Vec<_> =
                answer.results.into_iter().map(|result| (result.id, result.score)).collect();
            scores.sort_by(|a, b| a.0.cmp(&b.0));
            scores
        };
        assert_eq!(scores(&updated), scores(&new), "{query}");
    }
}

#[test]
fn what_is_on_disk_is_used_again() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    write(folder.path(), &[("a.md", b"alpha"), ("b.md", b"beta")]);
    let options = folder_options(folder.path(), cache.path());
    let (first, looked) = looked_into(&options);
    assert_eq!(looked, 2);
    let index_dir = first.reports()[0].index_dir.clone().unwrap();
    assert!(index_dir.starts_with(cache.path()));
    let engine_files = |directory: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(directory.join("index")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = engine_files(&index_dir);
    // Nothing changed: whatever is looked into is the same, and the index is not written.
    settle(&folder.path().join("a.md"));
    let (again, _) = looked_into(&options);
    assert_eq!(ids(&again, "alpha beta").len(), 2);
    assert_eq!(engine_files(&index_dir), before);
}

#[test]
fn documents_in_memory_are_indexed_once() {
    let cache = tempdir().unwrap();
    let documents = |changed: &str| {
        let text = |number: usize| format!("needle{number} {changed} {}", "hay ".repeat(500));
        (0..60).map(|number| document(&number.to_string(), "Hay", &text(number))).collect::<Vec<_>>()
    };
    let open = |documents: Vec<Document>| {
        let collection = Collection::documents("hay", documents).unwrap();
        looked_into(&LibraryOptions::new(vec![collection], Some(cache.path().to_owned())))
    };
    let mut some = documents("one");
    assert_eq!(open(some.clone()).1, 60);
    assert_eq!(open(some.clone()).1, 0, "nothing changed");
    some[7].license = Some("CC0".to_owned());
    some.pop();
    let (library, looked) = open(some);
    assert_eq!(looked, 1, "one document changed");
    assert_eq!(library.read("hay/7", 0).unwrap().license.as_deref(), Some("CC0"));
    assert_eq!((ids(&library, "needle58").len(), ids(&library, "needle59").len()), (1, 0));
    assert_eq!(open(documents("two")).1, 60);
}

#[test]
fn a_file_of_json_lines_is_followed() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    let path = folder.path().join("documents.jsonl");
    let put = |documents: &[Document]| {
        let lines: String = documents.iter().map(|one| serde_json::to_string(one).unwrap() + "\n").collect();
        fs::write(&path, lines).unwrap();
    };
    let open = || {
        let collection = Collection::json_lines("lines", &path).unwrap();
        Library::open(&LibraryOptions::new(vec![collection], Some(cache.path().to_owned())))
    };
    put(&[document("a", "A", "alpha"), document("b", "B", "beta")]);
    assert_eq!(ids(&open().unwrap(), "alpha"), ["lines/a"]);
    put(&[document("b", "B", "beta alpha")]);
    let library = open().unwrap();
    assert_eq!(ids(&library, "alpha"), ["lines/b"]);
    assert_eq!((library.reports()[0].documents, library.reports()[0].passages), (1, 1));
    put(&[document("b", "B", "beta"), document("b", "B", "again")]);
    assert_eq!(open().unwrap_err().kind(), "damaged");
    fs::write(&path, "{}").unwrap();
    assert!(open().unwrap_err().to_string().contains("line 1"));
}

/// Does something to the directory of an index.
type Damage = fn(&Path);

#[test]
fn damaged_indexes_are_built_anew() {
    let damages: &[(&str, Damage)] = &[
        ("meta file of garbage", |index| fs::write(index.join("index/meta.json"), b"{garbage").unwrap()),
        ("no meta file", |index| fs::remove_file(index.join("index/meta.json")).unwrap()),
        ("no engine directory", |index| fs::remove_dir_all(index.join("index")).unwrap()),
        ("a cut segment file", |index| {
            let path = segment_file(index, "store");
            let length = fs::metadata(&path).unwrap().len();
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length / 2).unwrap();
        }),
        ("an empty segment file", |index| fs::write(segment_file(index, "idx"), b"").unwrap()),
        ("a missing segment file", |index| fs::remove_file(segment_file(index, "term")).unwrap()),
        ("a manifest of garbage", |index| fs::write(manifest(index), b"[]").unwrap()),
        ("no manifest", |index| fs::remove_file(manifest(index)).unwrap()),
    ];
    for (damage, inflict) in damages {
        let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
        write(folder.path(), &[("a.md", b"alpha"), ("b.md", b"beta")]);
        let index_dir = open_folder(folder.path(), cache.path()).reports()[0].index_dir.clone().unwrap();
        inflict(&index_dir);
        let library = open_folder(folder.path(), cache.path());
        assert_eq!(ids(&library, "beta"), ["notes/b.md"], "{damage}");
        assert!(library.reports()[0].index_dir.is_some(), "{damage}: not kept on disk");
        assert!(is_complete(&index_dir), "{damage}: not healed on disk");
    }
}

/// Whether engine and manifest are there.
fn is_complete(index: &Path) -> bool {
    index.join("index/meta.json").is_file() && manifest(index).is_file()
}

fn segment_file(index: &Path, extension: &str) -> PathBuf {
    let mut files = fs::read_dir(index.join("index")).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|found| found == extension)).unwrap()
}

fn manifest(index: &Path) -> PathBuf {
    let mut files = fs::read_dir(index).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.file_name().unwrap().to_string_lossy().starts_with("manifest-")).unwrap()
}

#[test]
fn garbled_data_is_noticed_and_discarded() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    let text = "alpha beta gamma delta ".repeat(200);
    write(folder.path(), &[("a.md", text.as_bytes())]);
    let library = open_folder(folder.path(), cache.path());
    assert!(!library.discard_damaged(), "an intact index is not damaged");
    let index_dir = library.reports()[0].index_dir.clone().unwrap();
    let store = segment_file(&index_dir, "store");
    let mut bytes = fs::read(&store).unwrap();
    for byte in &mut bytes[..64] {
        *byte ^= 0xA5;
    }
    fs::write(&store, bytes).unwrap();
    assert!(library.discard_damaged());
    assert_eq!(ids(&open_folder(folder.path(), cache.path()), "gamma"), ["notes/a.md"]);
}

#[test]
fn without_a_writable_cache_the_index_is_in_memory() {
    let folder = tempdir().unwrap();
    write(folder.path(), &[("a.md", b"alpha")]);
    // No directory can be made below a file, whoever asks.
    let file = folder.path().join("a.md");
    let library = open_folder(folder.path(), &file.join("cache"));
    assert_eq!(ids(&library, "alpha"), ["notes/a.md"]);
    assert_eq!(library.reports()[0].index_dir, None);
}

#[test]
fn an_update_can_be_stopped_and_taken_up_again() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    write(folder.path(), &[("a.md", b"alpha"), ("b.md", b"beta")]);
    let options = folder_options(folder.path(), cache.path());
    let stopped = Library::open_watched(&options, &|_, _| {}, &AtomicBool::new(true));
    assert_eq!(stopped.unwrap_err().kind(), "stopped");
    assert_eq!(ids(&open_folder(folder.path(), cache.path()), "beta"), ["notes/b.md"]);
}

#[test]
fn options_are_checked() {
    let folder = tempdir().unwrap();
    let twice = || Collection::folder("notes", folder.path()).unwrap();
    let gone = Collection::folder("gone", folder.path().join("gone")).unwrap();
    for (collections, kind) in [(vec![twice(), twice()], "duplicate_name"), (vec![gone], "not_a_folder")] {
        let error = Library::open(&LibraryOptions::new(collections, None)).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert_eq!(Collection::folder("a/b", "x").unwrap_err().kind(), "invalid_name");
}

#[test]
fn the_registry_keeps_what_was_added() {
    let (folder, data, cache) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let docs = folder.path().join("My Docs");
    write(&docs, &[("a.md", b"alpha"), ("b.md", b"beta")]);
    let registry = Registry::new(data.path(), Some(cache.path().to_owned()));
    assert!(registry.list().unwrap().is_empty());

    let report = registry.add_folder(&docs, None, &|_, _| {}).unwrap();
    assert_eq!((report.name.as_str(), report.documents), ("My-Docs", 2));
    let again = registry.add_folder(&docs, None, &|_, _| {});
    assert!(again.is_ok(), "adding the same folder again brings it up to date");
    let taken = registry.add_folder(folder.path(), Some("My-Docs"), &|_, _| {}).unwrap_err();
    assert_eq!(taken.kind(), "duplicate_name");
    assert_eq!(registry.add_folder(&docs, Some("starter"), &|_, _| {}).unwrap_err().kind(), "duplicate_name");
    assert_eq!(registry.add_folder(&docs.join("a.md"), None, &|_, _| {}).unwrap_err().kind(), "not_a_folder");

    let info = registry.list().unwrap().remove(0);
    assert_eq!(info.kind, LibraryKind::Folder { path: docs.canonicalize().unwrap() });
    assert_eq!((info.documents, info.characters, info.freshness), (2, 9, Freshness::UpToDate));
    assert!(info.index_bytes > 0 && info.indexed.is_some());

    fs::remove_file(docs.join("a.md")).unwrap();
    write(&docs, &[("c.md", b"gamma")]);
    let info = registry.list().unwrap().remove(0);
    assert_eq!(info.freshness, Freshness::Behind(Drift { new: 1, changed: 0, gone: 1 }));

    let library =
        Library::open(&LibraryOptions::new(registry.collections().unwrap(), Some(cache.path().into())));
    assert_eq!(ids(&library.unwrap(), "gamma"), ["My-Docs/c.md"]);

    let unknown = registry.remove("nothing").unwrap_err();
    assert!(unknown.to_string().contains("My-Docs"), "{unknown}");
    registry.remove("My-Docs").unwrap();
    assert!(registry.list().unwrap().is_empty());
    assert!(docs.join("b.md").exists(), "the user's folder is left alone");
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0, "the index is removed");

    fs::write(data.path().join("libraries/registry.json"), "{").unwrap();
    assert_eq!(registry.list().unwrap_err().kind(), "damaged");
}
