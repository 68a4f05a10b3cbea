//! Files that belong to tasks are missed before anything runs, and only where they are needed.

use serde_json::{Value, json};

use crate::support::{Home, counting_model};

/// Four tasks: the file of the first is there, those of the next two are not, the last has none.
fn tasks(home: &Home) -> String {
    let file = home.tasks(4);
    let text = std::fs::read_to_string(&file).unwrap();
    let names = [json!("there.txt"), json!("gone.txt"), json!("far/gone.csv"), Value::Null];
    let lines = text.lines().zip(names).map(|(line, name)| {
        let mut task: Value = serde_json::from_str(line).unwrap();
        task["file_name"] = name;
        format!("{task}\n")
    });
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    std::fs::write(home.path("there.txt"), "Zero.\n").unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn missing_files_stop_a_run_before_it_begins() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = tasks(&home);
    let run = ["run", &tasks, "--judge", "mock", "--out", "out"];
    let said = home.run(&run).await.expect(2);
    for part in [
        "files of tasks that cannot be used: 2 (4 tasks are selected)",
        "task 1: the file ",
        "/gone.txt cannot be read: there is no such file",
        "task 2: the file ",
        "--skip-bad-lines",
    ] {
        assert!(said.stderr.contains(part), "{part:?} is not in {}", said.stderr);
    }
    assert!(!said.stderr.contains("task 0") && !said.stderr.contains("task 3"), "{}", said.stderr);
    assert!(server.requests().is_empty() && !home.path("out").exists());
    // Where none is left, leaving out is no way out.
    let said = home.run(&[&run[..], &["--task", "2", "--skip-bad-lines"]].concat()).await.expect(2);
    assert!(
        said.stderr.contains("files of tasks that cannot be used: 1 (1 tasks are selected)"),
        "{}",
        said.stderr
    );
    // What is not selected is not missed.
    home.run(&[&run[..], &["--task", "0", "--task", "3"]].concat()).await.expect(0);
    assert_eq!(home.rows("out").len(), 2);
}

#[tokio::test]
async fn tasks_without_their_files_are_left_out_and_counted() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = tasks(&home);
    let run = ["run", &tasks, "--judge", "mock", "--skip-bad-lines", "--out", "out"];
    let said = home.run(&run).await.expect(0);
    assert!(said.stderr.contains("left out: task 1: the file "), "{}", said.stderr);
    assert!(said.stdout.contains("tasks without their files     2: left out"), "{}", said.stdout);
    let report = home.report("out");
    assert_eq!((&report["selected"], &report["header"]["dataset"]["without_files"]), (&json!(2), &json!(2)));

    // Nothing that has ended needs its files.
    std::fs::remove_file(home.path("there.txt")).unwrap();
    let asked = server.requests().len();
    home.run(&run).await.expect(0);
    home.run(&["resume", "out"]).await.expect(0);
    home.run(&["score", "out", "--all"]).await.expect(0);
    assert_eq!(server.requests().len(), asked);

    // What has not ended does.
    let results = home.path("out/results.jsonl");
    let ended = std::fs::read_to_string(&results).unwrap();
    let kept: String = ended
        .lines()
        .filter(|row| !row.contains("\"task_id\":\"0\""))
        .map(|row| format!("{row}\n"))
        .collect();
    assert_eq!(kept.lines().count(), 1);
    std::fs::write(&results, &kept).unwrap();
    let said = home.run(&["resume", "out"]).await.expect(2);
    assert!(
        said.stderr.contains("files of tasks that cannot be used: 1 (2 tasks are selected)"),
        "{}",
        said.stderr
    );
    assert!(!said.stderr.contains("--skip-bad-lines"), "{}", said.stderr);
    assert!(said.stderr.contains("task 0: the file "), "{}", said.stderr);
    assert_eq!(std::fs::read_to_string(&results).unwrap(), kept);
    std::fs::write(home.path("there.txt"), "Zero.\n").unwrap();
    home.run(&["resume", "out"]).await.expect(0);
    assert_eq!(home.rows("out").len(), 2);
}
