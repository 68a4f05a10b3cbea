//! A run that is killed goes on where it was: nothing is lost, nothing is doubled, nothing is done again.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Home, Said, counting_model, wait_for};

const SAMPLES: usize = 200;
const AT_ONCE: usize = 8;
const KILLS: usize = 10;

fn figures(report: &Value) -> Value {
    serde_json::json!({
        "states": report["states"],
        "accuracy": report["accuracy"],
        "by_epoch": report["by_epoch"],
        "groups": report["groups"],
        "correct_by": report["correct_by"],
        "turns": report["effort"]["turns"],
        "tokens": report["effort"]["tokens"],
    })
}

#[tokio::test]
async fn ten_kills_change_nothing() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(SAMPLES / 2);
    let tasks = tasks.to_str().unwrap();
    let at_once = AT_ONCE.to_string();
    let arguments = |out: &'static str| {
        ["run", tasks, "--epochs", "2", "--shuffle", "--seed", "7", "--judge", "mock", "--max-concurrent"]
            .into_iter()
            .chain([at_once.as_str(), "--out", out])
            .collect::<Vec<_>>()
    };
    home.run(&arguments("whole")).await.expect(0);
    let of_whole_run = server.requests().len();
    assert_eq!(of_whole_run, 3 * SAMPLES);

    for kill in 0..KILLS {
        let mut child = home.command(&arguments("killed")).spawn().unwrap();
        // Each time a little later than when the program has got as far as one more part of the samples.
        let wanted = SAMPLES * kill / (KILLS + 2);
        wait_for(&mut child, || home.rows_so_far("killed") >= wanted).await;
        tokio::time::sleep(Duration::from_millis(7 * kill as u64 % 40)).await;
        child.kill().await.unwrap();
    }
    let Said { stderr, .. } = home.run(&arguments("killed")).await.expect(0);
    assert!(stderr.contains("done before"), "{stderr}");

    let rows = home.rows("killed");
    let samples: BTreeSet<String> =
        rows.iter().map(|row| format!("{} {}", row["task_id"], row["epoch"])).collect();
    assert_eq!((rows.len(), samples.len()), (SAMPLES, SAMPLES));
    assert_eq!(figures(&home.report("killed")), figures(&home.report("whole")));
    // Of each kill, only what was in flight is asked again.
    let asked = server.requests().len() - of_whole_run;
    assert!(asked <= 3 * SAMPLES + KILLS * AT_ONCE, "{asked} requests for {SAMPLES} samples");
}

#[tokio::test]
async fn an_interrupted_run_is_resumed_by_its_folder_alone() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(30);
    let mut child = home
        .command(&[
            "run",
            tasks.to_str().unwrap(),
            "--judge",
            "mock",
            "--max-concurrent",
            "2",
            "--out",
            "out",
        ])
        .spawn()
        .unwrap();
    wait_for(&mut child, || home.rows_so_far("out") >= 5).await;
    child.kill().await.unwrap();
    home.run(&["resume", "out", "--judge", "mock"]).await.expect(0);
    assert_eq!(home.rows("out").len(), 30);
    let header = std::fs::read_to_string(home.path("out/header.json")).unwrap();
    assert!(!header.contains("test-key"), "the header holds the key");
}

#[tokio::test]
async fn a_run_and_its_tasks_can_be_moved() {
    let server = counting_model().await;
    let home = Home::with_model(&server);
    let tasks = home.tasks(3);
    home.run(&["run", tasks.to_str().unwrap(), "--judge", "mock", "--out", "out"]).await.expect(0);
    let place = home.path("elsewhere");
    std::fs::create_dir(&place).unwrap();
    std::fs::rename(home.path("out"), place.join("moved")).unwrap();
    std::fs::rename(&tasks, place.join("tasks.jsonl")).unwrap();
    for arguments in [["score", "moved", "--all"], ["resume", "moved", "--allow-unjudged"]] {
        let from_there = home.command(&arguments).current_dir(&place).output().await.unwrap();
        Said::from(from_there).expect(0);
        let with_place = [arguments[0], "elsewhere/moved", arguments[2]];
        let said = home.run(&with_place).await.expect(2);
        for part in [tasks.to_str().unwrap(), "no longer", "go where a file of that name is"] {
            assert!(said.stderr.contains(part), "{part:?} is not in {}", said.stderr);
        }
    }
    // Another file of that name is not taken for it.
    std::fs::copy(home.tasks(4), place.join("tasks.jsonl")).unwrap();
    std::fs::remove_file(&tasks).unwrap();
    let other = home.command(&["score", "moved", "--all"]).current_dir(&place).output().await.unwrap();
    assert!(Said::from(other).expect(2).stderr.contains("its content differs"));
}
