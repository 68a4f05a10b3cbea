//! What is wrong with a log is said with its place and a remedy, and nothing is changed.

use std::path::Path;

use pipeline::log::LOG_NAME;
use pipeline::{Opened, PipelineError};

use super::support::{Lab, Shown, call, cut, search};

fn script(shown: &Shown) -> String {
    match shown.replies {
        _ if shown.is_last() => "It is \\boxed{7}.".to_owned(),
        0 => call(
            "research",
            "scrape_website",
            &serde_json::json!({ "url": "https://example.org/a", "size": 90_000 }),
        ),
        1 => search("a"),
        _ => "That is all.".to_owned(),
    }
}

fn lines(dir: &Path) -> Vec<String> {
    std::fs::read_to_string(dir.join(LOG_NAME)).unwrap().lines().map(str::to_owned).collect()
}

/// Everything in a directory, to see that nothing changed.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = ["", "blobs"]
        .iter()
        .filter_map(|folder| std::fs::read_dir(dir.join(folder)).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && path.file_name().unwrap() != "lock")
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[track_caller]
fn check(dir: &Path, kind: &str, parts: &[&str]) {
    let before = contents(dir);
    let error = match Opened::open(dir, false) {
        Ok(_) => panic!("{kind}: the run was opened"),
        Err(error) => error,
    };
    let text = format!("{error} {}", error.hint().unwrap());
    assert_eq!(error.kind(), kind, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert_eq!(contents(dir), before, "{kind}: something was changed");
}

#[tokio::test]
async fn damaged_logs() {
    let lab = Lab::new(script, &[]);
    let whole = lab.ask("Who?").await;
    let log = std::fs::read(whole.run_dir.join(LOG_NAME)).unwrap();
    let kept: Vec<usize> =
        log.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    // Without its end, so that there is something to go on with.
    let fresh = |name: &str| cut(&whole.run_dir, kept[kept.len() - 3], &lab.dir.path().join(name));
    let change = |name: &str, edit: &dyn Fn(&mut Vec<String>)| {
        let dir = fresh(name);
        let mut lines = lines(&dir);
        edit(&mut lines);
        std::fs::write(dir.join(LOG_NAME), lines.join("\n") + "\n").unwrap();
        dir
    };

    let dir = change("bad line", &|lines| lines[4] = lines[4][..20].to_owned());
    check(&dir, "damaged_log", &["line 5", "not JSON", "only the first 4 lines"]);
    let dir = change("missing line", &|lines| drop(lines.remove(3)));
    check(&dir, "damaged_log", &["line 4", "missing or doubled"]);
    let dir = change("foreign line", &|lines| lines[3] = lines[3].replace(&whole.run_id, "another-run"));
    check(&dir, "damaged_log", &["line 4", "another-run"]);
    let dir = change("no event", &|lines| lines[2] = "{\"hello\": 1}".to_owned());
    check(&dir, "damaged_log", &["line 3", "no event"]);
    let dir = change("other form", &|lines| lines[0] = lines[0].replace("\"schema\":1", "\"schema\":99"));
    check(&dir, "other_log_form", &["form 99", "Use version"]);
    let dir = change("no beginning", &|lines| drop(lines.remove(0)));
    check(&dir, "damaged_log", &["line 1", "run_started"]);

    let dir = fresh("missing blob");
    let blob = std::fs::read_dir(dir.join("blobs")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&blob, "something else").unwrap();
    check(&dir, "damaged_log", &["blobs", "does not hold what its name says"]);
    std::fs::remove_file(&blob).unwrap();
    check(&dir, "damaged_log", &["blobs", "is missing", "Put the file back"]);

    let empty = lab.dir.path().join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    check(&empty, "not_a_run", &["events.jsonl", "runs/"]);
    check(&lab.dir.path().join("nowhere"), "not_a_run", &["nowhere"]);
    std::fs::write(empty.join(LOG_NAME), "{\"seq\":0,").unwrap();
    check(&empty, "empty_log", &["ask the question again"]);
}

#[tokio::test]
async fn one_process_at_a_time() {
    let lab = Lab::new(script, &[]);
    let whole = lab.ask("Who?").await;
    let log = std::fs::read(whole.run_dir.join(LOG_NAME)).unwrap();
    let dir = cut(&whole.run_dir, log.len() / 2, &lab.dir.path().join("cut"));
    let first = Opened::open(&dir, false).unwrap();
    let second = Opened::open(&dir, false).err().unwrap();
    assert!(matches!(second, PipelineError::Locked { pid: Some(_), .. }), "{second}");
    drop(first);
    assert_eq!(lab.resume(&dir).await.summary.answer.as_deref(), Some("7"));
}

#[tokio::test]
async fn a_finished_run_gives_its_result_again() {
    let lab = Lab::new(script, &[]);
    let whole = lab.ask("Who?").await;
    let before = contents(&whole.run_dir);
    let Opened::Finished(report) = Opened::open(&whole.run_dir, true).unwrap() else {
        panic!("the run is finished")
    };
    assert_eq!(report.summary, whole.summary);
    assert_eq!((report.run_id, report.run_dir), (whole.run_id, whole.run_dir.clone()));
    assert_eq!(contents(&whole.run_dir), before);
}
