//! Comparisons of runs, votes, canaries and what is exported of rows without runs.

use evaluation::canary::Canaries;
use evaluation::compare::compare;
use evaluation::export::{Exported, Filter, Target, export};
use evaluation::run::{Header, Store};
use evaluation::sample::Row;
use evaluation::vote::{Vote, submissions, vote};
use serde_json::json;

use crate::made::{by_judge, header, row, unjudged};

/// Rows of tasks by what became of their epochs: `+`, `-`, `?` unjudged, `x` error, `.` without truth.
fn rows(tasks: &[(&str, &str)]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (id, epochs) in tasks {
        for (index, outcome) in epochs.chars().enumerate() {
            let change = match outcome {
                '+' => json!({"judgement": by_judge("correct")}),
                '-' => json!({"judgement": by_judge("incorrect")}),
                '?' => json!({"judgement": unjudged()}),
                'x' => {
                    json!({"state": "error", "kind": "llm", "answer": null, "judgement": {"judged": "no_answer"}})
                }
                _ => json!({"ground_truth": null}),
            };
            rows.push(row(id, u32::try_from(index + 1).unwrap(), &change));
        }
    }
    rows
}

#[test]
fn two_runs_task_by_task() {
    let header = header(&["a", "b", "c", "d", "e"], 2, &json!({}));
    let first = rows(&[("a", "++"), ("b", "+-"), ("c", "--"), ("d", "++"), ("e", "xx")]);
    let second = rows(&[("a", "--"), ("b", "--"), ("c", "--"), ("d", "+-"), ("f", "++"), ("g", "??")]);
    let compared = compare((&header, &first), (&header, &second));
    let paired = compared.paired.unwrap();
    // Differences 1, 1/2, 0, 1/2 over a … d.
    assert_eq!((paired.tasks, paired.wins, paired.losses, paired.ties), (4, 3, 0, 1));
    assert!((paired.difference - 0.5).abs() < 1e-12 && (paired.first - 0.625).abs() < 1e-12);
    assert!((paired.standard_error.unwrap() - (0.5_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
    assert_eq!((compared.only_first, compared.only_second), (1, 1));
    let wins: Vec<&str> = compared.wins.iter().map(|task| task.task_id.as_str()).collect();
    assert_eq!((wins, compared.losses.len()), (vec!["a", "b", "d"], 0));
    assert_eq!(compared.warnings, ["2 samples of the second run are unjudged and left out"]);
    assert_eq!(compared.runs[0].judge, "equivalence gpt-4.1-2025-04-14");

    let back = compare((&header, &second), (&header, &first));
    let losses: Vec<&str> = back.losses.iter().map(|task| task.task_id.as_str()).collect();
    assert_eq!((losses, back.wins.len(), back.paired.unwrap().difference), (vec!["a", "b", "d"], 0, -0.5));

    let nothing = compare((&header, &first), (&header, &rows(&[("z", "+"), ("y", "."), ("a", "?")])));
    assert_eq!((nothing.paired, nothing.only_first, nothing.only_second), (None, 5, 1));
    let same = compare((&header, &first), (&header, &first));
    assert_eq!((same.paired.unwrap().difference, same.wins.len(), same.warnings.len()), (0.0, 0, 0));
}

#[test]
fn what_makes_a_comparison_doubtful_is_said() {
    let plain = header(&["a"], 1, &json!({}));
    let rows = rows(&[("a", "+")]);
    for (change, part) in [
        (json!({"suite": "other"}), "the suites differ: made-up and other"),
        (json!({"dataset": {"sha256": "ff"}}), "the datasets differ"),
        (json!({"epochs": 3}), "the epochs differ: 1 and 3"),
        (json!({"task_ids": ["a", "b"]}), "different tasks of the dataset were selected"),
        (json!({"config": {"agent": {"keep_tool_result": 2}}}), "agent.keep_tool_result ("),
        (json!({"judge": {"model": "other"}}), "the judges differ"),
        (json!({"judge": {"votes": 3}}), "equivalence gpt-4.1-2025-04-14 (3 votes)"),
        (json!({"judge": {"prompt_sha256": "ff"}}), "the judges differ"),
        (json!({"stop_on_pass": 2}), "its means are too high"),
    ] {
        let other = header(&["a"], 1, &change);
        for compared in [compare((&plain, &rows), (&other, &rows)), compare((&other, &rows), (&plain, &rows))]
        {
            assert_eq!(compared.warnings.len(), 1, "{change}: {:?}", compared.warnings);
            let words = ["made-up", "other"];
            let said = &compared.warnings[0];
            // The other way round, the two values change places.
            let swapped = part.replace("1 and 3", "3 and 1");
            let is_told = said.contains(part) || said.contains(&swapped);
            assert!(is_told || words.iter().all(|word| said.contains(word)), "{said}");
        }
    }
}

#[test]
fn votes() {
    let answers = |answers: &[Option<&str>]| -> Vec<Row> {
        let made = answers.iter().zip(1..).map(|(answer, epoch)| {
            let state = if answer.is_some() { "answered" } else { "no_answer" };
            row("t", epoch, &json!({"state": state, "answer": answer}))
        });
        let mut rows: Vec<Row> = made.collect();
        // The order of rows does not matter, that of epochs does.
        rows.reverse();
        rows
    };
    for (given, answer, votes, answered, tied) in [
        (vec![Some("Inn"), Some("Po"), Some("inn.")], Some("Inn"), 2, 3, vec![]),
        (vec![Some("Po"), Some("Inn")], Some("Po"), 1, 2, vec!["Inn"]),
        (vec![Some("Po"), Some("Inn"), Some("the Inn"), Some("Po")], Some("Po"), 2, 4, vec!["Inn"]),
        (vec![Some("Po"), Some("Inn"), Some("Inn")], Some("Inn"), 2, 3, vec![]),
        (vec![Some("1,000"), Some("2"), Some("1000.0")], Some("1,000"), 2, 3, vec![]),
        (vec![Some("-3"), Some("3"), Some("3")], Some("3"), 2, 3, vec![]),
        (vec![None, Some("Inn"), None], Some("Inn"), 1, 1, vec![]),
        (vec![None, None], None, 0, 0, vec![]),
        (vec![Some("?!"), Some("?!")], Some("?!"), 2, 2, vec![]),
    ] {
        let wanted = Vote {
            task_id: "t".to_owned(),
            answer: answer.map(str::to_owned),
            votes,
            tied_with: tied.iter().map(|answer| (*answer).to_owned()).collect(),
            answered,
            epochs: given.len(),
        };
        assert_eq!(vote(&answers(&given)), [wanted], "{given:?}");
    }
    let rows = [
        row("b", 1, &json!({})),
        row("a", 1, &json!({})),
        row("b", 2, &json!({"state": "contaminated", "found": "x"})),
    ];
    let told: Vec<(String, usize, usize)> =
        vote(&rows).into_iter().map(|vote| (vote.task_id, vote.answered, vote.epochs)).collect();
    assert_eq!(told, [("a".to_owned(), 1, 1), ("b".to_owned(), 1, 2)]);
    assert!(vote(&[]).is_empty());
    // A line a task that has an answer, in the form that FutureX takes.
    let rows = [
        row("q2", 1, &json!({"answer": " yes "})),
        row("q10", 1, &json!({"answer": "12.5"})),
        row("q3", 1, &json!({"state": "no_answer", "answer": null})),
    ];
    let lines: Vec<String> =
        submissions(&vote(&rows)).iter().map(|line| serde_json::to_string(line).unwrap()).collect();
    assert_eq!(lines, [r#"{"id":"q10","prediction":"12.5"}"#, r#"{"id":"q2","prediction":"yes"}"#]);
}

#[test]
fn canaries_that_are_no_texts() {
    let task = |metadata: serde_json::Value| -> evaluation::dataset::Task {
        serde_json::from_value(
            json!({"task_id": "a", "question": "Q", "ground_truth": null, "metadata": metadata}),
        )
        .unwrap()
    };
    let tasks = [
        task(json!({"canary": 12345678901234567890_u64})),
        task(json!({"canary": null, "metadata": "canary"})),
        task(json!({"canary": "                    "})),
        task(json!({"canary": "  BENCHMARK DATA a1b2c3 \n"})),
    ];
    assert!(Canaries::new(&tasks[..3], &["too short".to_owned(), String::new()]).is_empty());
    let canaries = Canaries::new(&tasks, &[]);
    assert_eq!(canaries.in_text("xBENCHMARK DATA a1b2c3x"), Some("BENCHMARK DATA a1b2c3"));
    assert_eq!(canaries.in_text("BENCHMARK DATA a1b2c"), None);
    assert_eq!(canaries.in_text(""), None);
    let folder = tempfile::tempdir().unwrap();
    // A folder without a log holds nothing.
    assert_eq!(canaries.found_in(folder.path()), None);
}

#[test]
fn rows_without_runs_are_left_out_of_exports() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run");
    let mut store = Store::open(&target, header(&["a", "b"], 2, &json!({}))).unwrap();
    for row in rows(&[("a", "+-"), ("b", "x?")]) {
        store.add(row).unwrap();
    }
    drop(store);
    for kind in [Target::Chatml, Target::Sharegpt, Target::Dpo, Target::Mirothinker] {
        let exported = export(&target, kind, &Filter { incorrect: true, ..Filter::default() }).unwrap();
        assert_eq!(exported, Exported { records: Vec::new(), left_out: 4 }, "{kind:?}");
    }
    let error =
        export(&folder.path().join("none"), Target::Chatml, &Filter::default()).unwrap_err().to_string();
    assert!(error.contains("is no folder of a benchmark run"), "{error}");
}

#[test]
fn other_tool_servers_are_other_settings() {
    let rows = rows(&[("a", "+")]);
    // Whatever a server is called, it is compared.
    let with = |argument: &str| {
        let servers = json!({"secret-notes": {"command": "notes", "args": [argument]}});
        header(&["a"], 1, &json!({"servers": servers}))
    };
    let warnings = |a: &Header, b: &Header| compare((a, &rows), (b, &rows)).warnings;
    assert_eq!(
        warnings(&with("1f"), &with("2e")),
        ["the configurations differ: servers.secret-notes.args ([\"1f\"] and [\"2e\"])"]
    );
    let of_before = header(&["a"], 1, &json!({}));
    for same in [[&with("1f"), &with("1f")], [&with("1f"), &of_before], [&of_before, &with("1f")]] {
        assert_eq!(warnings(same[0], same[1]), Vec::<String>::new());
    }
}
