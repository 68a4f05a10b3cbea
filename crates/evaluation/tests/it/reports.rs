//! Reports over rows made by hand, whose figures are known.

use evaluation::report::{Report, to_markdown, to_table};
use evaluation::run::Header;
use evaluation::sample::Row;
use serde_json::{Value, json};

use crate::made::{by_judge, header, row, unjudged};

fn level(value: &str) -> Value {
    json!(["level", value])
}

/// Four tasks in two epochs: every state, two levels, a restart.
///
/// | task | level | 1 | 2 |
/// |---|---|---|---|
/// | a | 1 | equal | judge says correct, after a restart |
/// | b | 1 | judge says incorrect | GAIA's scorer |
/// | c | 2 | no answer | limit |
/// | d | 2 | error | contaminated |
pub(crate) fn run() -> (Header, Vec<Row>) {
    let none = json!({"judged": "no_answer"});
    let rows = vec![
        row("a", 1, &json!({"group": level("1"), "judgement": {"judged": "exact", "tier": "equal"}})),
        row(
            "a",
            2,
            &json!({"group": level("1"), "judgement": by_judge("correct"), "passes": 2, "turns": 12}),
        ),
        row("b", 1, &json!({"group": level("1"), "judgement": by_judge("incorrect"), "answer": "41"})),
        row("b", 2, &json!({"group": level("1"), "judgement": {"judged": "exact", "tier": "gaia"}})),
        row("c", 1, &json!({"group": level("2"), "state": "no_answer", "answer": null, "judgement": none})),
        row(
            "c",
            2,
            &json!({"group": level("2"), "state": "limit", "limit": "max_turns", "answer": null, "judgement": none}),
        ),
        row(
            "d",
            1,
            &json!({"group": level("2"), "state": "error", "kind": "llm", "answer": null, "judgement": none, "turns": 0}),
        ),
        row(
            "d",
            2,
            &json!({"group": level("2"), "state": "contaminated", "found": "canary", "judgement": none}),
        ),
    ];
    (header(&["a", "b", "c", "d"], 2, &json!({})), rows)
}

fn json_of(report: &Report) -> Value {
    serde_json::to_value(report).unwrap()
}

#[track_caller]
fn close(given: &Value, wanted: f64) {
    let given = given.as_f64().unwrap_or_else(|| panic!("{given}"));
    assert!((given - wanted).abs() < 1e-9, "{given} is not {wanted}");
}

#[test]
fn figures_of_a_whole_run() {
    let (header, rows) = run();
    let report = json_of(&Report::new(header, &rows, false));
    assert_eq!(
        report["states"],
        json!({"answered": 4, "contaminated": 1, "error": 1, "limit": 1, "no_answer": 1})
    );
    for (name, wanted) in [("selected", 8), ("not_scored", 0), ("unjudged", 0)] {
        assert_eq!(report[name], wanted, "{name}");
    }
    assert_eq!((&report["complete"], &report["unjudged_left_out"]), (&json!(true), &json!(false)));
    assert_eq!(report["correct_by"], json!({"equal": 1, "gaia": 1, "judge": 1}));
    // 3 of 8, tasks with 2, 1, 0, 0 of 2: sqrt(4/3 · (1.25² + 0.25² + 0.75² + 0.75²)) / 8.
    let error = (4.0_f64 / 3.0 * 2.75).sqrt() / 8.0;
    let accuracy = &report["accuracy"];
    close(&accuracy["mean"], 0.375);
    close(&accuracy["standard_error"], error);
    close(&accuracy["interval"][0], 0.0);
    close(&accuracy["interval"][1], 0.375 + 1.959_963_984_540_054 * error);
    assert_eq!((&accuracy["samples"], &accuracy["tasks"]), (&json!(8), &json!(4)));
    assert_eq!(report["by_epoch"], json!([0.25, 0.5]));
    close(&report["spread_over_epochs"], (2.0 * 0.125_f64.powi(2)).sqrt());
    // pass@1 = mean of 1, 1/2, 0, 0; pass@2 = 1, 1, 0, 0; pass^2 = 1, 0, 0, 0.
    for (index, any, all) in [(0, 0.375, 0.375), (1, 0.5, 0.25)] {
        close(&report["pass"][index]["any"]["mean"], any);
        close(&report["pass"][index]["all"]["mean"], all);
    }
    assert_eq!(report["pass"].as_array().unwrap().len(), 2);
    let groups: Vec<(&str, &Value, &Value)> = report["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["value"].as_str().unwrap(), &group["correct"], &group["accuracy"]["samples"]))
        .collect();
    assert_eq!(groups, [("1", &json!(3), &json!(4)), ("2", &json!(0), &json!(4))]);
    let restarts: Vec<(&str, &Value, &Value)> = report["restarts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["value"].as_str().unwrap(), &group["correct"], &group["accuracy"]["samples"]))
        .collect();
    assert_eq!(
        restarts,
        [("with restarts", &json!(1), &json!(1)), ("without restarts", &json!(2), &json!(7))]
    );
    let effort = &report["effort"];
    for (name, wanted) in [
        ("turns", (6.0 * 4.0 + 12.0) / 8.0),
        ("tool_calls", 6.0),
        ("tokens", 1100.0),
        ("wall_seconds", 10.0),
        ("working_seconds", 8.0),
        ("restart_rate", 0.125),
        ("no_answer_rate", 0.375),
        ("input_tokens", 8000.0),
        ("output_tokens", 800.0),
        ("cost_usd", 0.16),
        ("judge_cost_usd", 0.02),
    ] {
        close(&effort[name], wanted);
    }
    for name in ["any_of", "calibration_error", "sets"] {
        assert!(report[name].is_null(), "{name}");
    }
    assert_eq!(report["header"]["judge"]["model"], "gpt-4.1-2025-04-14");
    let again: Report = serde_json::from_value(report.clone()).unwrap();
    assert_eq!(json_of(&again), report);
}

#[test]
fn groups_with_numbers_stand_in_their_order() {
    let ids: Vec<String> = (0..12).map(|number| format!("t{number}")).collect();
    let rows: Vec<Row> = ["10", "2", "other", "1", "11"]
        .iter()
        .zip(&ids)
        .map(|(group, id)| {
            row(id, 1, &json!({"group": level(group), "judgement": {"judged": "exact", "tier": "equal"}}))
        })
        .collect();
    let ids: Vec<&str> = ids.iter().take(rows.len()).map(String::as_str).collect();
    let report = Report::new(header(&ids, 1, &json!({})), &rows, false);
    let order: Vec<&str> = report.groups.iter().map(|group| group.value.as_str()).collect();
    assert_eq!(order, ["1", "2", "10", "11", "other"]);
}

#[test]
fn for_people() {
    let (header, rows) = run();
    let report = Report::new(header, &rows, false);
    insta::assert_snapshot!("table", to_table(&report));
    insta::assert_snapshot!("markdown", to_markdown(&report));
}

#[test]
fn unjudged_samples_withhold_the_figure() {
    let (header, mut rows) = run();
    rows[2].judge(serde_json::from_value(unjudged()).unwrap());
    let report = Report::new(header.clone(), &rows, false);
    let json = json_of(&report);
    assert_eq!((&json["unjudged"], &json["unjudged_left_out"]), (&json!(1), &json!(false)));
    for name in ["accuracy", "spread_over_epochs", "calibration_error", "sets", "any_of"] {
        assert!(json[name].is_null(), "{name}");
    }
    for name in ["by_epoch", "pass", "groups", "restarts"] {
        assert_eq!(json[name], json!([]), "{name}");
    }
    for text in [to_table(&report), to_markdown(&report)] {
        assert!(text.contains("no figure, 1 of 8 samples are unjudged"), "{text}");
        assert!(text.contains("--allow-unjudged"), "{text}");
        let is_figure = |line: &str| line.contains("correct") && line.contains('%');
        assert!(!text.lines().any(is_figure) && !text.contains("42.9 %"), "{text}");
    }
    let report = Report::new(header, &rows, true);
    let json = json_of(&report);
    // 3 of the 7 that somebody has judged.
    close(&json["accuracy"]["mean"], 3.0 / 7.0);
    assert_eq!((&json["accuracy"]["samples"], &json["unjudged_left_out"]), (&json!(7), &json!(true)));
    // The first epoch lacks a sample; k goes as far as every task has epochs.
    assert_eq!((&json["by_epoch"], json["pass"].as_array().unwrap().len()), (&json!([0.5]), 1));
    for text in [to_table(&report), to_markdown(&report)] {
        assert!(text.contains("1 unjudged (left out of every denominator)"), "{text}");
        assert!(text.contains("7 samples of 4 tasks"), "{text}");
    }
}

#[test]
fn samples_that_are_pending_or_have_no_truth() {
    let (header, rows) = run();
    let report = Report::new(header.clone(), &rows[..5], false);
    let json = json_of(&report);
    assert_eq!((&json["states"]["pending"], &json["complete"]), (&json!(3), &json!(false)));
    assert_eq!((&json["selected"], &json["accuracy"]["samples"]), (&json!(8), &json!(5)));
    close(&json["accuracy"]["mean"], 0.6);
    assert!(to_table(&report).starts_with("made-up: accuracy so far 60.0 %"), "{}", to_table(&report));
    // Neither epoch has ended for all tasks that are in the figures… but the first has.
    assert_eq!(json["by_epoch"].as_array().unwrap().len(), 1);

    let empty = Report::new(header.clone(), &[], false);
    assert_eq!(json_of(&empty)["states"], json!({"pending": 8}));
    assert!(to_table(&empty).starts_with("made-up: nothing is scored"));

    let mut rows = rows;
    rows.truncate(2);
    rows.push(row("b", 1, &json!({"ground_truth": null})));
    let json = json_of(&Report::new(header, &rows, false));
    assert_eq!((&json["not_scored"], &json["accuracy"]["samples"]), (&json!(1), &json!(2)));
}

#[test]
fn stopping_at_the_first_right_epoch_gives_any_of_k_alone() {
    let right = || json!({"judgement": {"judged": "exact", "tier": "equal"}});
    let wrong = || json!({"judgement": by_judge("incorrect"), "answer": "41"});
    // a: right at once; b: right at the second; c: never in three.
    let rows = vec![
        row("a", 1, &right()),
        row("b", 1, &wrong()),
        row("b", 2, &right()),
        row("c", 1, &wrong()),
        row("c", 2, &wrong()),
        row("c", 3, &wrong()),
    ];
    let header = header(&["a", "b", "c"], 3, &json!({"stop_on_pass": 3}));
    let report = Report::new(header.clone(), &rows, false);
    let json = json_of(&report);
    assert_eq!((&json["selected"], &json["complete"]), (&json!(6), &json!(true)));
    assert!(json["states"].get("pending").is_none());
    assert!(json["accuracy"].is_null());
    assert_eq!((&json["pass"], &json["by_epoch"], &json["groups"]), (&json!([]), &json!([]), &json!([])));
    close(&json["any_of"]["share"]["mean"], 2.0 / 3.0);
    assert_eq!((&json["any_of"]["k"], &json["any_of"]["share"]["tasks"]), (&json!(3), &json!(3)));
    let table = to_table(&report);
    let first = table.lines().next().unwrap();
    assert!(
        first.contains("66.7 %") && first.ends_with("of tasks right in any of at most 3 epochs"),
        "{first}"
    );
    assert!(table.contains("3 tasks"), "{table}");
    let so_far = Report::new(header.clone(), &rows[..4], false);
    assert!(!so_far.complete);
    assert!(to_table(&so_far).lines().next().unwrap().ends_with("so far"), "{}", to_table(&so_far));
    let mut open = rows;
    open[5].judge(serde_json::from_value(unjudged()).unwrap());
    assert!(Report::new(header.clone(), &open, false).any_of.is_none());
    assert!(Report::new(header, &open, true).any_of.is_some());
}

#[test]
fn confidence_and_sets() {
    let confident = |verdict: &str, confidence: f64| {
        let mut judgement = by_judge(verdict);
        judgement["confidence"] = json!(confidence);
        json!({"judgement": judgement})
    };
    let rows: Vec<Row> =
        [("a", "correct", 0.9), ("b", "incorrect", 0.7), ("c", "incorrect", 0.2), ("d", "correct", 0.6)]
            .into_iter()
            .map(|(id, verdict, confidence)| row(id, 1, &confident(verdict, confidence)))
            .collect();
    let header = header(&["a", "b", "c", "d"], 1, &json!({}));
    let report = Report::new(header.clone(), &rows, false);
    // One bin: mean confidence 0.6, half right.
    close(&json_of(&report)["calibration_error"], 0.1);
    assert!(to_table(&report).contains("calibration error (RMS)"));

    let parts = |found: usize, expected: usize, excess: usize| {
        let all = found == expected && excess == 0;
        let mut judgement = by_judge(if all { "correct" } else { "incorrect" });
        judgement["parts"] = json!({"found": found, "expected": expected, "excess": excess});
        json!({"judgement": judgement})
    };
    let rows = vec![
        row("a", 1, &parts(2, 2, 0)),
        row("b", 1, &parts(2, 2, 2)),
        row("c", 1, &parts(1, 2, 0)),
        row(
            "d",
            1,
            &json!({"state": "error", "kind": "llm", "answer": null, "judgement": {"judged": "no_answer"}}),
        ),
    ];
    let report = Report::new(header, &rows, false);
    let sets = &json_of(&report)["sets"];
    for (name, wanted) in [
        ("fully_correct", 0.25),
        ("correct_with_excess", 0.25),
        ("fully_incorrect", 0.25),
        ("f1", (1.0 + 4.0 / 6.0 + 2.0 / 3.0) / 4.0),
        ("samples", 4.0),
    ] {
        close(&sets[name], wanted);
    }
    assert!(to_markdown(&report).contains("correct with excess"));
}

#[test]
fn costs_that_are_unknown_are_no_zero() {
    let (header, mut rows) = run();
    rows[3].cost_usd = None;
    let report = Report::new(header, &rows, false);
    assert_eq!(report.effort.cost_usd, None);
    assert!(to_table(&report).contains("unknown"));
}

/// Names come from datasets: nothing of them is obeyed by a terminal or becomes Markdown of its own.
#[test]
fn hostile_names_in_text() {
    let (header, mut rows) = run();
    rows[0].group =
        Some(("level".to_owned(), "\u{1b}[2J\n\r| x | ![p](http://h.example/p) <script>".to_owned()));
    let report = Report::new(header, &rows, false);
    let table = to_table(&report);
    assert!(!table.contains(|c: char| c.is_control() && c != '\n'), "{table:?}");
    let markdown = to_markdown(&report);
    assert!(!markdown.contains(|c: char| c.is_control() && c != '\n'), "{markdown:?}");
    assert!(!markdown.contains("](http") && !markdown.contains("<script"), "{markdown}");
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let row = markdown.lines().find(|line| line.contains("h.example")).unwrap();
    assert_eq!(columns(row), 5, "{row}");
}

#[test]
fn certainty_of_answers_that_no_judge_saw() {
    let hle = |confidence: f64| {
        let mut judgement = by_judge("incorrect");
        judgement["confidence"] = json!(confidence);
        judgement
    };
    let exact = json!({"judged": "exact", "tier": "equal"});
    let rows = [
        row("a", 1, &json!({"judgement": exact, "reply": "It is 42.\nConfidence: 70%"})),
        row("b", 1, &json!({"judgement": exact})),
        row("c", 1, &json!({"judgement": hle(0.9), "answer": "41"})),
        row("d", 1, &json!({"judgement": hle(0.4), "answer": "41"})),
    ];
    let of_hle = header(&["a", "b", "c", "d"], 1, &json!({"judge": {"judge": "hle"}}));
    let report = Report::new(of_hle, &rows, false);
    // Confidences 0.7, 1, 0.9 and 0.4, half of them right: one bin.
    assert_eq!(report.calibration_samples, 4);
    assert!(
        (report.calibration_error.unwrap() - (0.75 - 0.5)).abs() < 1e-12,
        "{:?}",
        report.calibration_error
    );
    assert!(
        to_table(&report).contains("denominator              4 samples with a confidence"),
        "{}",
        to_table(&report)
    );
    // Other judges extract none.
    let rows = [row("a", 1, &json!({"judgement": exact}))];
    assert_eq!(Report::new(header(&["a"], 1, &json!({})), &rows, false).calibration_error, None);
}

#[test]
fn a_failed_epoch_of_a_task_that_is_right_is_not_waited_for() {
    let header = header(&["a", "b"], 3, &json!({"stop_on_pass": 3}));
    let right = json!({"judgement": by_judge("correct")});
    let wrong = json!({"judgement": by_judge("incorrect"), "answer": "41"});
    // The first epoch of `a` failed and was dropped; the second one was right.
    let mut rows = vec![row("a", 2, &right), row("b", 1, &wrong), row("b", 2, &wrong)];
    let report = Report::new(header.clone(), &rows, false);
    assert_eq!((report.selected, report.complete, report.states.get("pending")), (4, false, Some(&1)));
    rows.push(row("b", 3, &wrong));
    let report = Report::new(header, &rows, false);
    assert_eq!((report.selected, report.complete), (4, true));
    assert_eq!(report.any_of.unwrap().share.mean, 0.5);
}

#[test]
fn what_a_run_cost() {
    let nothing = json!({"state": "error", "kind": "invalid_request", "answer": null, "cost_usd": null,
        "usage": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}, "judgement": {"judged": "no_answer"}});
    let unpriced = json!({"cost_usd": null, "judgement": by_judge("correct")});
    let priced = json!({"judgement": by_judge("correct")});
    for (changes, expected) in [
        (vec![&priced, &nothing], Some(0.02)),
        (vec![&priced, &unpriced], None),
        (vec![&nothing], None),
        (vec![], Some(0.0)),
    ] {
        let rows: Vec<Row> = changes.iter().zip(1..).map(|(change, epoch)| row("a", epoch, change)).collect();
        assert_eq!(Report::new(header(&["a"], 2, &json!({})), &rows, true).effort.cost_usd, expected);
    }
}
