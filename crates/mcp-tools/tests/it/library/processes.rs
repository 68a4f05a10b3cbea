//! Several processes on one index. The other processes are this test binary again.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

use mcp_tools::servers::library::Library;
use tempfile::tempdir;

use super::{folder_options, ids, open_folder};

const FOLDER: &str = "LIBRARY_TEST_FOLDER";
const CACHE: &str = "LIBRARY_TEST_CACHE";
const FILES: usize = 300;

#[test]
#[ignore = "the part of another process: run by the tests below"]
fn other_process() {
    let (Some(folder), Some(cache)) = (std::env::var_os(FOLDER), std::env::var_os(CACHE)) else { return };
    let options = folder_options(Path::new(&folder), Path::new(&cache));
    let progress = |done, _| {
        if done == 1 {
            println!("indexing");
        }
    };
    let library = Library::open_watched(&options, &progress, &AtomicBool::new(false)).unwrap();
    let on_disk = library.reports()[0].index_dir.is_some();
    println!("found {} {} {on_disk}", library.reports()[0].documents, ids(&library, "needle7").join(" "));
}

fn start(folder: &Path, cache: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "library::processes::other_process",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, folder)
        .env(CACHE, cache)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn fill(folder: &Path) {
    for number in 0..FILES {
        fs::write(folder.join(format!("{number}.md")), format!("needle{number} in a haystack")).unwrap();
    }
}

#[test]
fn processes_that_start_at_once_all_find_everything() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    fill(folder.path());
    let children: Vec<Child> = (0..4).map(|_| start(folder.path(), cache.path())).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(&format!("found {FILES} notes/7.md true")), "{said}");
    }
}

#[test]
fn a_killed_process_leaves_nothing_that_harms() {
    let (folder, cache) = (tempdir().unwrap(), tempdir().unwrap());
    fill(folder.path());
    let mut child = start(folder.path(), cache.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("indexing")));
    child.kill().unwrap();
    child.wait().unwrap();
    let library = open_folder(folder.path(), cache.path());
    assert_eq!(library.reports()[0].documents, FILES as u64);
    assert!(library.reports()[0].index_dir.is_some());
    assert_eq!(ids(&library, "needle7"), ["notes/7.md"]);
}
