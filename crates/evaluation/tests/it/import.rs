//! Run directories of the reference as runs of ours.

use std::path::Path;

use evaluation::import::{ImportError, import};
use evaluation::report::Report;
use evaluation::run::{Store, read_run};
use evaluation::sample::{Judged, Row};
use serde_json::{Value, json};

/// A log of a task that went well; what is given wins.
fn log(task_id: &str, change: &Value) -> Value {
    let mut log = json!({
        "status": "success", "task_id": task_id, "input": {"task_description": "Q"}, "ground_truth": "42",
        "final_boxed_answer": "42", "final_judge_result": "CORRECT", "judge_type": "gaia_validation_text_103",
        "error": "", "start_time": "2025-05-01 10:00:00", "end_time": "2025-05-01 10:10:00",
        "current_main_turn_id": 9, "env_info": {"llm_model_name": "model-30b", "llm_provider": "openai"},
        "main_agent_message_history": {"system_prompt": "", "message_history": []},
    });
    log.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    log
}

fn put(folder: &Path, run: u32, name: &str, content: &str) {
    let run = folder.join(format!("run_{run}"));
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join(name), content).unwrap();
}

fn said(row: &Row) -> String {
    match &row.judgement {
        Judged::ByJudge { transcript, .. } => format!("{:?} by {}", row.correct, transcript.judge),
        Judged::Unjudged { .. } => "unjudged".to_owned(),
        other => format!("{:?} {other:?}", row.correct),
    }
}

#[test]
fn a_tree_of_logs() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("gaia-validation/openai_model-30b_single_agent");
    let name = |task: &str, attempt: u32, retry: u32| {
        format!("task_{task}_attempt-{attempt}_format-retry-{retry}_2025-05-01-10-00-00.json")
    };
    let wrong = json!({"final_boxed_answer": "41", "final_judge_result": "INCORRECT"});
    // Run 1: `a` right; `b_c` wrong, then right at the second retry of its second attempt; `d` had no judge.
    put(&from, 1, &name("a", 1, 0), &log("a", &json!({})).to_string());
    put(&from, 1, &name("b_c", 1, 0), &log("b_c", &wrong).to_string());
    put(&from, 1, &name("b_c", 2, 0), &log("b_c", &wrong).to_string());
    put(&from, 1, &name("b_c", 2, 10), &log("b_c", &json!({})).to_string());
    put(&from, 1, &name("b_c", 2, 9), &log("b_c", &wrong).to_string());
    put(&from, 1, &name("d", 1, 0), &log("d", &json!({"final_judge_result": "ERROR"})).to_string());
    put(&from, 1, "summary.json", "{}");
    put(&from, 1, "task_no_attempt.json", "{}");
    // Run 2: no answer, a failure, nulls, no ground truth.
    put(
        &from,
        2,
        &name("a", 1, 0),
        &log("a", &json!({"final_boxed_answer": "", "final_judge_result": "INCORRECT"})).to_string(),
    );
    put(&from, 2, &name("b_c", 1, 0), &log("b_c", &json!({"status": "failed", "final_boxed_answer": null, "final_judge_result": null, "error": "out of memory"})).to_string());
    put(&from, 2, &name("d", 1, 0), &log("d", &json!({"status": null, "judge_type": null, "error": null, "end_time": null, "current_main_turn_id": null, "env_info": null, "ground_truth": null, "final_judge_result": null})).to_string());
    // Runs are counted, not named: 10 comes after 2. Broken logs are told.
    put(
        &from,
        10,
        &name("a", 1, 0),
        &log("a", &json!({"final_judge_result": "NOT_ATTEMPTED", "ground_truth": 42})).to_string(),
    );
    put(&from, 10, &name("b_c", 1, 0), "{\"task_id\": \"b_c\", \"status\": ");
    put(&from, 10, &name("d", 1, 0), &log("", &json!({})).to_string());
    put(&from, 10, &name("copy", 1, 0), &log("a", &json!({})).to_string());

    let out = folder.path().join("out");
    let imported = import(&from, None, &out).unwrap();
    assert_eq!((imported.samples, imported.tasks, imported.epochs), (7, 3, 3));
    let mut unreadable: Vec<&str> =
        imported.unreadable.iter().map(|(file, _)| file.rsplit('/').next().unwrap()).collect();
    unreadable.sort_unstable();
    assert_eq!(unreadable, [name("b_c", 1, 0), name("copy", 1, 0), name("d", 1, 0)]);

    let (header, rows) = read_run(&out).unwrap();
    assert_eq!((header.suite.as_str(), header.model.as_str()), ("gaia-validation", "model-30b"));
    assert_eq!((header.epochs, header.task_ids.join(" ")), (3, "a b_c d".to_owned()));
    assert_eq!(header.judge.judge, "gaia_validation_text_103");
    let rows: Vec<(String, u32, &str, String)> = rows
        .iter()
        .map(|row| (row.sample.task_id.clone(), row.sample.epoch, row.state.name(), said(row)))
        .collect();
    let judge = "gaia_validation_text_103";
    let wanted = [
        ("a", 1, "answered", format!("Some(true) by {judge}")),
        ("a", 2, "no_answer", "Some(false) NoAnswer".to_owned()),
        ("a", 3, "answered", format!("Some(false) by {judge}")),
        ("b_c", 1, "answered", format!("Some(true) by {judge}")),
        ("b_c", 2, "error", "Some(false) NoAnswer".to_owned()),
        ("d", 1, "answered", "unjudged".to_owned()),
        ("d", 2, "answered", "None NotScored".to_owned()),
    ]
    .map(|(id, epoch, state, said)| (id.to_owned(), epoch, state, said));
    assert_eq!(rows, wanted);

    let (header, rows) = read_run(&out).unwrap();
    assert!(Report::new(header.clone(), &rows, false).accuracy.is_none());
    let accuracy = Report::new(header, &rows, true).accuracy.unwrap();
    assert_eq!((accuracy.mean, accuracy.samples), (0.4, 5));
}

#[test]
fn one_run_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("run_1");
    put(
        folder.path(),
        1,
        "task_x_attempt-1_2025.json",
        &log("x", &json!({"final_judge_result": "PASS_AT_K_SUCCESS"})).to_string(),
    );
    let out = folder.path().join("out");
    let imported = import(&from, Some("my-suite"), &out).unwrap();
    assert_eq!((imported.samples, imported.epochs), (1, 1));
    let (header, rows) = read_run(&out).unwrap();
    assert_eq!((header.suite.as_str(), rows[0].correct, rows[0].turns), ("my-suite", Some(true), 9));

    for empty in [folder.path().join("none"), out.clone()] {
        let error = import(&empty, None, &folder.path().join("other")).unwrap_err();
        assert!(matches!(error, ImportError::NoLogs { .. }), "{error}");
        assert!(error.to_string().contains("has no task logs"), "{error}");
        assert!(!folder.path().join("other").exists());
    }
}

#[test]
fn what_is_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), 1, "task_x_attempt-1_format-retry-0_2025.json", &log("x", &json!({})).to_string());
    let used = folder.path().join("used");
    std::fs::create_dir(&used).unwrap();
    std::fs::write(used.join("notes.txt"), "mine").unwrap();
    let error = import(folder.path(), None, &used).unwrap_err().to_string();
    assert!(error.contains("holds something that is no benchmark run"), "{error}");
    assert_eq!(std::fs::read_dir(&used).unwrap().count(), 1);
    // Another run of ours.
    let ours = folder.path().join("ours");
    drop(Store::open(&ours, crate::made::header(&["a"], 1, &json!({}))).unwrap());
    let error = import(folder.path(), None, &ours).unwrap_err().to_string();
    assert!(error.contains("holds a run of another configuration"), "{error}");
}
