//! What logs say, those of all generations and broken ones too.

use evaluation::figures::SetScore;
use evaluation::import::TASKS;
use evaluation::report::to_table;
use evaluation::run::read_run;
use evaluation::sample::{Figure, Judged};
use serde_json::{Value, json};

use super::{LATER, Made, TIME, log, said, told};

#[test]
fn what_is_a_verdict() {
    let made = Made::new();
    for (id, change) in [
        ("away-hle", json!({"final_judge_result": "NOT_ATTEMPTED", "judge_type": "hle_judge"})),
        ("away-x", json!({"final_judge_result": "NOT_ATTEMPTED", "judge_type": "xbench_deepsearch_judge"})),
        ("away-retry", json!({"final_judge_result": "NOT_ATTEMPTED", "judge_type": "retry_wrapper"})),
        ("away-error", json!({"final_judge_result": "ERROR", "judge_type": "error"})),
        ("equal", json!({"judge_type": "exact_match"})),
        ("gaia", json!({"judge_type": "gaia_scorer"})),
        ("gaia-miss", json!({"judge_type": "gaia_scorer", "final_judge_result": "INCORRECT"})),
        ("open", json!({"final_judge_result": "NOT_ATTEMPTED", "judge_type": "simpleqa_judge"})),
        (
            "sets",
            json!({"final_judge_result": "INCORRECT", "judge_type": "deepsearchqa_judge", "eval_details": {
                "correctness_details": {"x": true, "y": false}, "excessive_answers": ["z"], "explanation": "…",
                "num_correct": 1, "num_expected": 2, "num_excessive": 1,
            }}),
        ),
        ("test-set", json!({"ground_truth": null, "final_judge_result": "", "judge_type": ""})),
    ] {
        made.log("run_1", id, (1, 0, TIME), &change);
    }
    let imported = made.import("", "out").unwrap();
    assert_eq!(imported.unjudged, 4);
    let (header, rows) = read_run(&made.path("out")).unwrap();
    let said: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.sample.task_id, said(row))).collect();
    assert_eq!(
        said,
        [
            "away-error: unjudged None",
            "away-hle: unjudged None",
            "away-retry: unjudged None",
            "away-x: unjudged None",
            "equal: true Equal",
            "gaia: true Gaia",
            "gaia-miss: false by gaia_scorer",
            "open: false by simpleqa_judge",
            "sets: false by deepsearchqa_judge",
            "test-set: None not scored",
        ]
    );
    assert_eq!(header.judge.judge, "deepsearchqa_judge, gaia_scorer, simpleqa_judge");
    let Judged::ByJudge { judgement, .. } = &rows[8].judgement else { panic!("{:?}", rows[8]) };
    assert_eq!(judgement.parts, Some(SetScore { found: 1, expected: 2, excess: 1 }));
}

#[test]
fn unknown_is_no_zero() {
    let made = Made::new();
    made.log("run_1", "a", (1, 0, TIME), &json!({}));
    made.import("", "full").unwrap();
    let row = read_run(&made.path("full")).unwrap().1.remove(0);
    assert_eq!((row.turns, row.tool_calls, row.rollbacks, row.passes), (3, 1, 0, 1));
    assert_eq!((row.usage.input, row.usage.output, row.usage.cache_read), (1000, 50, 400));
    assert_eq!((row.wall_ms, row.cost_usd), (400_000, None));
    assert_eq!(row.unknown, [Figure::WorkingTime]);
    // A second try, whose effort is added.
    let format_error = json!({"final_boxed_answer": "No \\boxed{} content found in the final answer."});
    made.log("run_2", "a", (1, 0, TIME), &format_error);
    made.log("run_2", "a", (1, 1, LATER), &json!({}));
    // A log that says nothing, one whose first try is lost, and one that was ended by a bound.
    let nothing = json!({"step_logs": [], "end_time": "", "env_info": {}});
    made.log("run_3", "a", (1, 0, TIME), &nothing);
    made.log("run_4", "a", (1, 1, TIME), &json!({}));
    let ended = json!({"final_boxed_answer": "", "step_logs": [
        {"step_name": "Main Agent | Turn: 7 | LLM Call", "message": ""},
        {"step_name": "Main Agent | Max Turns Reached / Context Limit Reached", "message": ""},
    ]});
    made.log("run_5", "a", (1, 0, TIME), &ended);
    for run in ["run_1", "run_2", "run_3", "run_4", "run_5"] {
        let out = format!("out-{run}");
        made.import(run, &out).unwrap();
    }
    let row = |run: &str| read_run(&made.path(&format!("out-{run}"))).unwrap().1.remove(0);
    let second = row("run_2");
    assert_eq!((second.passes, second.turns, second.tool_calls, second.usage.input), (2, 6, 2, 2000));
    assert_eq!((second.wall_ms, second.correct), (800_000, Some(true)));
    let all = [
        Figure::Turns,
        Figure::Rollbacks,
        Figure::ToolCalls,
        Figure::Tokens,
        Figure::WallTime,
        Figure::WorkingTime,
    ];
    assert_eq!(row("run_3").unknown, all);
    assert_eq!((row("run_4").unknown, row("run_4").passes), (all.to_vec(), 2));
    let ended = row("run_5");
    assert_eq!((ended.state.name(), ended.turns, ended.capped), ("limit", 7, true));
    // What is known of some samples is the mean over those; what is known of none is unknown, and sums need all.
    let report = made.report("out-run_3", false);
    let effort = report.effort;
    assert_eq!(
        (effort.turns, effort.tool_calls, effort.tokens, effort.wall_seconds),
        (None, None, None, None)
    );
    assert_eq!((effort.input_tokens, effort.cost_usd), (None, None));
    let table = to_table(&report);
    for name in ["turns a sample", "tool calls a sample", "seconds a sample", "cost of the runs"] {
        let line = table.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        assert!(line.trim_end().ends_with("unknown"), "{line}");
    }
    made.import("", "together").unwrap();
    let effort = made.report("together", false).effort;
    assert_eq!((effort.tool_calls, effort.input_tokens), (Some(1.0), None));
}

#[test]
fn broken_logs() {
    let made = Made::new();
    let cut = log("x", &json!({})).to_string();
    made.log("run_1", "good", (1, 0, TIME), &json!({}));
    made.put(&format!("run_1/task_cut_attempt-1_format-retry-0_{TIME}.json"), &cut[..cut.len() / 2]);
    made.put(&format!("run_1/task_list_attempt-1_format-retry-0_{TIME}.json"), "[]");
    made.put(&format!("run_1/task_empty_attempt-1_format-retry-0_{TIME}.json"), "");
    // The last try is cut: what an older one says is not what became of the task.
    made.log("run_1", "lost", (1, 0, TIME), &json!({"final_judge_result": "INCORRECT"}));
    made.put(&format!("run_1/task_lost_attempt-1_format-retry-0_{LATER}.json"), &cut[..100]);
    // Nothing but a name; nulls; fields of other types; a copy under another name.
    made.put(&format!("run_1/task_bare_attempt-1_format-retry-0_{TIME}.json"), "{}");
    made.log(
        "run_1",
        "nulls",
        (1, 0, TIME),
        &json!({"status": null, "judge_type": null, "error": null, "end_time": null, "step_logs": null,
                "current_main_turn_id": null, "env_info": null, "trace_data": null, "final_judge_result": null}),
    );
    made.log(
        "run_1",
        "types",
        (1, 0, TIME),
        &json!({"final_boxed_answer": 42, "ground_truth": 42, "step_logs": "many", "current_main_turn_id": -3,
                "env_info": [], "trace_data": 7, "error": {}, "start_time": 5, "eval_details": "none"}),
    );
    made.put(
        &format!("run_1/task_good-2_attempt-1_format-retry-0_{TIME}.json"),
        &log("good_attempt-1_format-retry-0", &json!({})).to_string(),
    );
    let imported = made.import("", "out").unwrap();
    let mut left_out: Vec<&str> = imported
        .unreadable
        .iter()
        .map(|(file, _)| file.rsplit('/').next().unwrap().split("_attempt").next().unwrap())
        .collect();
    left_out.sort_unstable();
    assert_eq!(left_out, ["task_cut", "task_empty", "task_good-2", "task_list", "task_lost"]);
    assert_eq!((imported.samples, imported.unfinished, imported.without_question), (4, 4, 1));
    let (_, rows) = read_run(&made.path("out")).unwrap();
    assert_eq!(
        told(&rows),
        [
            "bare 1 error false no answer",
            "good 1 answered true by gaia_validation_text_103_judge",
            "nulls 1 answered unjudged None",
            "types 1 answered true by gaia_validation_text_103_judge",
        ]
    );
    assert_eq!(rows[3].ground_truth.as_deref(), Some("42"));
    // Nothing that ended is nothing to take over, and leaves nothing behind.
    let none = Made::new();
    none.put(&format!("run_1/task_cut_attempt-1_format-retry-0_{TIME}.json"), &cut[..50]);
    let error = none.import("", "out").unwrap_err();
    assert!(error.to_string().contains("none of them is that of a task that ended"), "{error}");
    assert!(!none.path("out").exists());
}

#[test]
fn logs_of_other_generations() {
    let made = Made::new();
    // The first of MiroFlow: bare ids, times of the machine, the judge nameless.
    let old = |change: &Value| {
        let mut log = json!({
            "status": "completed", "task_id": "a_1", "task_name": "a_1", "task_file_name": null,
            "ground_truth": "42", "input": {"task_description": "Q?"}, "log_path": "a_1_attempt_1.json",
            "env_info": {"llm_model_name": "claude"}, "start_time": "2025-08-06T10:00:00.000001",
            "end_time": "2025-08-06T10:00:30.500001", "final_boxed_answer": "42",
            "llm_as_judge_result": "CORRECT", "error": "", "current_main_turn_id": 0,
            "step_logs": [
                {"step_name": "main_loop_completed", "message": "Main loop completed after 4 turns",
                 "timestamp": "2025-08-06T10:00:20", "status": "info", "metadata": {}},
                {"step_name": "usage_calculation", "timestamp": "2025-08-06T10:00:20", "status": "info",
                 "message": "Usage log: [OpenRouter/m] Total Input: 900, Cache Input: 0, Output: 100, Cost: $0.2500 USD"},
            ],
            "trace_data": {"spans": [{"name": "generation_span"}, {"name": "tool-a.b"}]},
        });
        log.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        log.to_string()
    };
    made.put("first/a_1_attempt_1.json", &old(&json!({})));
    made.put(
        "first/b_attempt_1.json",
        &old(&json!({"task_id": "b", "llm_as_judge_result": "NOT_ATTEMPTED"})),
    );
    let interrupted = json!({"task_id": "c", "status": "interrupted", "final_boxed_answer": ""});
    made.put("first/c_attempt_1.json", &old(&interrupted));
    let imported = made.import("first", "out-first").unwrap();
    assert_eq!((imported.epochs, imported.unfinished), (1, 1));
    let (header, rows) = read_run(&made.path("out-first")).unwrap();
    assert_eq!(told(&rows), ["a_1 1 answered true by ", "b 1 answered unjudged None"]);
    assert_eq!((header.model.as_str(), header.judge.judge.as_str()), ("claude", ""));
    let row = &rows[0];
    assert_eq!((row.turns, row.tool_calls, row.wall_ms, row.cost_usd), (4, 1, 30_500, Some(0.25)));
    assert_eq!(row.unknown, [Figure::Rollbacks, Figure::WorkingTime]);

    // The newest: what became of the task in a part of its own, a file for each retry, times in UTC.
    let new = |retry: u32, change: &Value| {
        let mut meta = json!({
            "task_id": "a", "attempt_id": 1, "retry_id": retry, "task_description": "Q?", "task_file_name": "",
            "status": "completed", "start_time": format!("2026-01-15T03:0{retry}:00.000Z"),
            "end_time": format!("2026-01-15T03:0{retry}:20.250Z"), "final_boxed_answer": "42",
            "judge_result": "CORRECT", "error": null, "ground_truth": "42", "is_valid_box": true,
        });
        meta.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        json!({"task_meta": meta, "current_span": null, "agent_states": {}, "step_logs": [
            {"type": "span_start", "span_id": "sp_1", "path": "Agent.run", "ts": "2026-01-15T03:00:00.000Z", "seq": 1},
        ]})
        .to_string()
    };
    let none = json!({"final_boxed_answer": "No \\boxed{} content found.", "judge_result": "INCORRECT"});
    made.put("new/run_1/task_a_attempt_1_retry_0.json", &new(0, &none));
    made.put("new/run_1/task_a_attempt_1_retry_1.json", &new(1, &json!({})));
    made.put("new/run_1/task_root_attempt_0_retry_0.json", &new(0, &json!({"task_id": "root"})));
    // Run again: what is left of the retries of before is older.
    let right = json!({"start_time": "2026-01-15T09:00:00.000Z", "end_time": "2026-01-15T09:00:01.000Z"});
    made.put("new/run_2/task_a_attempt_1_retry_0.json", &new(0, &right));
    made.put("new/run_2/task_a_attempt_1_retry_1.json", &new(1, &json!({"judge_result": "INCORRECT"})));
    made.import("new", "out-new").unwrap();
    let (header, rows) = read_run(&made.path("out-new")).unwrap();
    assert_eq!(told(&rows), ["a 1 answered true by ", "a 2 answered true by "]);
    assert_eq!((rows[0].passes, rows[0].wall_ms, rows[1].passes, rows[1].wall_ms), (2, 40_500, 1, 1000));
    assert_eq!((rows[0].ended.as_str(), header.model.as_str()), ("2026-01-15T03:01:20.250Z", "new"));

    // One between them has no place for the right answer; its verdicts count all the same.
    let bare = |id: &str, answer: &str, said: &str| {
        json!({"task_meta": {"task_id": id, "run_id": 1, "status": "completed", "final_boxed_answer": answer,
               "judge_result": said}, "step_logs": []})
        .to_string()
    };
    made.put("bare/task_a_attempt_1.json", &bare("a", "42", "CORRECT"));
    made.put("bare/task_b_attempt_1.json", &bare("b", "", ""));
    made.put("bare/task_c_attempt_1.json", &bare("c", "7", "ERROR"));
    let imported = made.import("bare", "out-bare").unwrap();
    assert_eq!((imported.without_question, imported.unjudged), (3, 1));
    let (_, rows) = read_run(&made.path("out-bare")).unwrap();
    assert_eq!(
        told(&rows),
        ["a 1 answered true by ", "b 1 no_answer false no answer", "c 1 answered unjudged None"]
    );
    assert!(!made.path("out-bare").join(TASKS).exists());
}
