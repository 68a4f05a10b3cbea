//! Run directories of the reference as runs of ours: which folders and logs count.

mod afterwards;
mod logs;

use std::path::{Path, PathBuf};

use evaluation::import::{ImportError, Imported, SuiteOfRun, find, import as take_over};
use evaluation::report::Report;
use evaluation::run::{Store, read_run};
use evaluation::sample::{Judged, Row};
use serde_json::{Value, json};

use crate::made;

/// A log of a task that went well, as MiroThinker writes it; what is given wins.
fn log(id: &str, change: &Value) -> Value {
    let step = |name: &str, message: &str| {
        json!({"step_name": name, "message": message, "timestamp": "2025-08-13 10:13:21", "info_level": "info",
               "metadata": {}})
    };
    let mut log = json!({
        "status": "success", "start_time": "2025-08-13 10:13:20", "end_time": "2025-08-13 10:20:00",
        "task_id": id, "input": {"task_description": format!("Q of {id}"), "task_file_name": null},
        "ground_truth": "42", "final_boxed_answer": "forty-two", "final_judge_result": "CORRECT",
        "judge_type": "gaia_validation_text_103_judge", "eval_details": null, "error": "",
        "current_main_turn_id": 0, "current_sub_agent_turn_id": 0, "sub_agent_counter": 0,
        "current_sub_agent_session_id": null,
        "env_info": {"llm_provider": "qwen", "llm_model_name": "model-30b"}, "log_dir": "logs",
        "main_agent_message_history": {"system_prompt": "s", "message_history": [{"role": "user", "content": "Q"}]},
        "sub_agent_message_history_sessions": {},
        "step_logs": [
            step("👑 Main Agent | Turn: 1 | LLM Call", "completed successfully"),
            step("▶️ ToolManager | Tool Call Start", "Connecting to server 'a' to call tool 'b'"),
            step("🔧 Main Agent | Turn: 1 | Tool Call", "Tool b completed in 12ms"),
            step("👑 Main Agent | Main Loop Completed", "Main loop completed after 3 turns"),
            step("👑 Main Agent | Usage Calculation",
                 "Usage log: [model-30b] Total Input: 1000, Cache Input: 400, Output: 50"),
        ],
        "trace_data": {},
    });
    log.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    log
}

/// A run directory of the reference that is being written.
struct Made(tempfile::TempDir);

impl Made {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, file: &str, content: &str) {
        let file = self.path(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    /// A log as the benchmark names it, with the attempt and the retry in the id.
    fn log(&self, run: &str, task: &str, (attempt, retry, time): (u32, u32, &str), change: &Value) {
        let id = format!("{task}_attempt-{attempt}_format-retry-{retry}");
        let mut log = log(&id, change);
        if change["input"].is_null() {
            log["input"]["task_description"] = json!(format!("Q of {task}"));
        }
        self.put(&format!("{run}/task_{id}_{time}.json"), &log.to_string());
    }

    fn import(&self, from: &str, out: &str) -> Result<Imported, ImportError> {
        self.import_as(from, &suite("made-up"), out)
    }

    fn import_as(&self, from: &str, suite: &SuiteOfRun, out: &str) -> Result<Imported, ImportError> {
        let sources = find(&self.path(from))?;
        assert_eq!(sources.len(), 1, "{sources:?}");
        take_over(&sources[0], suite, &self.path(out))
    }

    fn report(&self, out: &str, allow_unjudged: bool) -> Report {
        let (header, rows) = read_run(&self.path(out)).unwrap();
        Report::new(header, &rows, allow_unjudged)
    }
}

const TIME: &str = "2025-08-13-10-13-20";
const LATER: &str = "2025-08-13-12-00-00";
const MODEL: &str = "logs/gaia-validation/0813/qwen_model-30b_single_agent";

fn suite(name: &str) -> SuiteOfRun {
    SuiteOfRun { name: name.to_owned(), ..SuiteOfRun::default() }
}

fn said(row: &Row) -> String {
    match &row.judgement {
        Judged::ByJudge { transcript, .. } => format!("{:?} by {}", row.correct.unwrap(), transcript.judge),
        Judged::Exact { tier } => format!("{:?} {tier:?}", row.correct.unwrap()),
        Judged::Unjudged { .. } => format!("unjudged {:?}", row.correct),
        Judged::NoAnswer => format!("{:?} no answer", row.correct.unwrap()),
        Judged::NotScored => format!("{:?} not scored", row.correct),
    }
}

fn told(rows: &[Row]) -> Vec<String> {
    let told =
        |row: &Row| format!("{} {} {} {}", row.sample.task_id, row.sample.epoch, row.state.name(), said(row));
    rows.iter().map(told).collect()
}

#[test]
fn a_tree_of_runs() {
    let made = Made::new();
    let run = |number: u32| format!("{MODEL}/run_{number}");
    let wrong = json!({"final_boxed_answer": "41", "final_judge_result": "INCORRECT"});
    let format_error = json!({
        "final_boxed_answer": "No \\boxed{} content found in the final answer.", "final_judge_result": "",
        "judge_type": "",
    });
    for number in [1, 2, 10] {
        made.log(&run(number), "a", (1, 0, TIME), &json!({}));
        made.put(&format!("{}/benchmark_results.jsonl", run(number)), "{}\n");
        made.put(&format!("{}/benchmark_results_pass_at_1_accuracy.txt", run(number)), "50.00%");
        made.put(&format!("{}/summary_time_cost.json", run(number)), "{}");
        made.put(&format!("{}/.hydra/config.yaml", run(number)), "{}");
        made.put(&format!("{MODEL}/run_{number}_output.log"), "…");
    }
    // Right at the second retry; a task with an underscore and a number of two digits.
    made.log(&run(1), "b_c", (1, 0, TIME), &format_error);
    made.log(&run(1), "b_c", (1, 9, TIME), &format_error);
    made.log(&run(1), "b_c", (1, 10, TIME), &json!({}));
    // Begun again after an interruption: the later log counts, though its retries are counted from 0 again.
    made.log(&run(2), "b_c", (1, 2, TIME), &wrong);
    made.log(&run(2), "b_c", (1, 0, LATER), &json!({}));
    // Never in the form that was asked for.
    let after = "No \\boxed{} content found in the final answer. (after 3 retries)";
    made.log(
        &run(10),
        "b_c",
        (1, 3, TIME),
        &json!({"final_boxed_answer": after, "final_judge_result": "INCORRECT"}),
    );
    made.log(&run(1), "d", (1, 0, TIME), &json!({"final_judge_result": "", "judge_type": ""}));
    made.log(
        &run(2),
        "d",
        (1, 0, TIME),
        &json!({"status": "failed", "final_boxed_answer": "", "final_judge_result": "", "error": "Traceback"}),
    );
    // Still running when the run was stopped.
    made.log(
        &run(10),
        "d",
        (1, 0, TIME),
        &json!({"status": "running", "final_boxed_answer": "", "final_judge_result": "", "end_time": ""}),
    );

    let imported = made.import("logs", "out").unwrap();
    assert_eq!((imported.samples, imported.tasks, imported.epochs, imported.of_k), (8, 3, 3, false));
    assert_eq!((imported.unjudged, imported.unfinished, imported.unreadable.len()), (1, 1, 0));
    let (header, rows) = read_run(&made.path("out")).unwrap();
    let judge = "gaia_validation_text_103_judge";
    assert_eq!(
        told(&rows),
        [
            format!("a 1 answered true by {judge}"),
            format!("a 2 answered true by {judge}"),
            format!("a 10 answered true by {judge}"),
            format!("b_c 1 answered true by {judge}"),
            format!("b_c 2 answered true by {judge}"),
            "b_c 10 no_answer false no answer".to_owned(),
            "d 1 answered unjudged None".to_owned(),
            "d 2 error false no answer".to_owned(),
        ]
    );
    assert_eq!((header.epochs, header.task_ids.join(" ").as_str()), (3, "a b_c d"));
    assert_eq!((header.model.as_str(), header.judge.judge.as_str()), ("model-30b", judge));
    assert_eq!(rows[0].ended, "2025-08-13T02:20:00.000Z");
    assert_eq!(rows[7].error.as_ref().unwrap().message, "Traceback");
    let report = made.report("out", false);
    assert!(report.accuracy.is_none());
    assert_eq!(report.states["pending"], 1);
    let report = made.report("out", true);
    assert_eq!(report.accuracy.unwrap().samples, 7);
    // The numbers of runs have gaps, and every run counts.
    let complete = Made::new();
    for (run, change) in [("run_2", &json!({})), ("run_7", &wrong)] {
        complete.log(run, "a", (1, 0, TIME), change);
    }
    complete.import("", "out").unwrap();
    assert_eq!(complete.report("out", false).by_epoch, [1.0, 0.0]);
}

#[test]
fn which_folder_is_given() {
    let made = Made::new();
    made.log(&format!("{MODEL}/run_3"), "a", (1, 0, TIME), &json!({}));
    made.log(&format!("{MODEL}/run_4"), "a", (1, 0, TIME), &json!({}));
    let epochs = |out: &str| -> Vec<u32> {
        read_run(&made.path(out)).unwrap().1.iter().map(|row| row.sample.epoch).collect()
    };
    for (index, (from, expected)) in [
        (MODEL.to_owned(), vec![3, 4]),
        (format!("{MODEL}/run_4"), vec![4]),
        ("logs/gaia-validation".to_owned(), vec![3, 4]),
        ("logs".to_owned(), vec![3, 4]),
    ]
    .into_iter()
    .enumerate()
    {
        let sources = find(&made.path(&from)).unwrap();
        assert_eq!(sources[0].suite_names(), ["gaia-validation", "qwen_model-30b_single_agent"], "{from}");
        let out = format!("out-{index}");
        made.import(&from, &out).unwrap();
        assert_eq!(epochs(&out), expected, "{from}");
        assert!(made.report(&out, false).complete, "{from}");
    }
    // Runs of another model are another run.
    made.log("logs/gaia-validation/0814/openai_model-8b/run_1", "a", (1, 0, TIME), &json!({}));
    let sources = find(&made.path("logs/gaia-validation")).unwrap();
    let below: Vec<&Path> = sources.iter().map(evaluation::import::Source::below).collect();
    assert_eq!(below, [Path::new("0813/qwen_model-30b_single_agent"), Path::new("0814/openai_model-8b")]);
    for empty in ["nowhere", "out-0"] {
        let error = find(&made.path(empty)).unwrap_err();
        assert!(matches!(error, ImportError::NoLogs { .. }), "{error}");
    }
}

#[test]
fn attempts_until_one_is_right_are_no_epochs() {
    let made = Made::new();
    let wrong = json!({"final_boxed_answer": "41", "final_judge_result": "INCORRECT"});
    made.log("m/run_1", "a", (1, 0, TIME), &json!({}));
    made.log("m/run_1", "b", (1, 0, TIME), &wrong);
    made.log("m/run_1", "b", (2, 0, TIME), &json!({}));
    made.log("m/run_1", "c", (1, 0, TIME), &wrong);
    made.log("m/run_1", "c", (2, 0, TIME), &wrong);
    let imported = made.import("m", "out").unwrap();
    assert_eq!((imported.samples, imported.tasks, imported.epochs, imported.of_k), (5, 3, 2, true));
    let report = made.report("out", false);
    assert!(report.accuracy.is_none() && report.pass.is_empty() && report.by_epoch.is_empty());
    assert!(report.complete);
    let any = report.any_of.unwrap();
    assert_eq!((any.k, any.share.tasks), (2, 3));
    assert!((any.share.mean - 2.0 / 3.0).abs() < 1e-12);
    // A run in which every task was right at once is one of K all the same, and a wrong one may have been stopped.
    made.log("m/run_2", "a", (1, 0, TIME), &json!({}));
    made.put("m/run_2/benchmark_results_pass_at_3_accuracy.txt", "100.00%");
    let sources = find(&made.path("m")).unwrap();
    let below: Vec<&Path> = sources.iter().map(evaluation::import::Source::below).collect();
    assert_eq!(below, [Path::new("run_1"), Path::new("run_2")]);
    take_over(&sources[1], &suite("made-up"), &made.path("second")).unwrap();
    let any = made.report("second", false).any_of.unwrap();
    assert_eq!((any.k, any.share.mean), (3, 1.0));
}

#[test]
fn what_is_there_stays() {
    let made = Made::new();
    made.log("run_1", "x", (1, 0, TIME), &json!({}));
    made.put("used/notes.txt", "mine");
    let error = made.import("", "used").unwrap_err().to_string();
    assert!(error.contains("holds something that is no benchmark run"), "{error}");
    assert_eq!(std::fs::read_dir(made.path("used")).unwrap().count(), 1);
    // A run of ours, and what was imported before.
    drop(Store::open(&made.path("ours"), made::header(&["a"], 1, &json!({}))).unwrap());
    made.import("", "out").unwrap();
    let before = std::fs::read(made.path("out").join("results.jsonl")).unwrap();
    made.log("run_1", "y", (1, 0, TIME), &json!({}));
    for out in ["ours", "out"] {
        let error = made.import("", out).unwrap_err();
        assert!(matches!(error, ImportError::Exists { .. }), "{error}");
        assert!(error.to_string().contains("choose another folder with --out"), "{error}");
    }
    assert_eq!(std::fs::read(made.path("out").join("results.jsonl")).unwrap(), before);
}
