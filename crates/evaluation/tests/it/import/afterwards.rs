//! What can be done with a run that was taken over: comparing it with ours, judging it, and ours there and back.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use evaluation::canary::Canaries;
use evaluation::compare::compare;
use evaluation::dataset::Task;
use evaluation::exact::ExactTier;
use evaluation::export::{Filter, Target, export};
use evaluation::import::{DatasetOfRun, SuiteOfRun, TASKS, find, import as take_over};
use evaluation::judge::Judge;
use evaluation::run::{
    InProcessQueue, Invocation, PipelineRunner, Plan, Progress, Schedule, Store, read_run, samples_in_order,
};
use evaluation::sample::{Judged, Row};
use evaluation::suite::{Selection, Suite};
use pipeline::config::JudgeId;
use pipeline::{Options, Surroundings};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Made, TIME, said};
use crate::made;

fn task(id: &str, truth: &str) -> Task {
    Task {
        task_id: id.to_owned(),
        question: format!("The question of {id}"),
        ground_truth: Some(truth.to_owned()),
        aliases: Vec::new(),
        files: Vec::new(),
        metadata: json!({"Level": "2"}).as_object().unwrap().clone(),
    }
}

#[test]
fn with_the_dataset_that_was_run() {
    let made = Made::new();
    made.log("run_1", "b", (1, 0, TIME), &json!({}));
    made.log("run_1", "a", (1, 0, TIME), &json!({"ground_truth": null, "final_judge_result": ""}));
    let ours = made::header(&["b", "a"], 1, &json!({"suite": "gaia-validation"}));
    let dataset = |file: Option<PathBuf>, ids: [&str; 3]| DatasetOfRun {
        file,
        facts: ours.dataset.clone(),
        tasks: ids.map(|id| task(id, "42")).to_vec(),
    };
    let suite = |dataset: DatasetOfRun| SuiteOfRun {
        name: "gaia-validation".to_owned(),
        preset: Some("gaia-validation".to_owned()),
        conf_dir: None,
        dataset: Some(dataset),
    };
    let imported = made.import_as("", &suite(dataset(None, ["b", "c", "a"])), "out").unwrap();
    assert_eq!((imported.unjudged, imported.without_question, imported.not_in_dataset), (1, 0, 0));
    let (header, rows) = read_run(&made.path("out")).unwrap();
    // In its order, with its right answers and levels; the suite finds its tasks by itself.
    assert_eq!(header.task_ids, ["b", "a"]);
    assert_eq!((header.invocation.suite.as_str(), &header.invocation.file), ("gaia-validation", &None));
    assert_eq!(rows[0].ground_truth.as_deref(), Some("42"));
    assert_eq!(rows[0].group, Some(("level".to_owned(), "2".to_owned())));
    assert!(!made.path("out").join(TASKS).exists());
    // A run of ours over the same tasks is compared task by task, and nothing but the judges and settings differs.
    let by_judge = json!({"judgement": made::by_judge("incorrect")});
    let own: Vec<Row> = ["a", "b"].iter().map(|id| made::row(id, 1, &by_judge)).collect();
    let comparison = compare((&header, &rows), (&ours, &own));
    let paired = comparison.paired.unwrap();
    assert_eq!((paired.tasks, paired.wins), (1, 1));
    let of_data = comparison.warnings.iter().filter(|warning| warning.contains("dataset"));
    assert_eq!(of_data.count(), 0, "{:?}", comparison.warnings);

    // Tasks of another dataset: one that is named is an error, one that lies here is not used.
    let other = |file| suite(dataset(file, ["b", "c", "d"]));
    let error = made.import_as("", &other(Some("tasks.csv".into())), "named").unwrap_err().to_string();
    assert!(error.starts_with("1 of 2 tasks of the logs are not in tasks.csv, such as a"), "{error}");
    assert!(!made.path("named").exists());
    let imported = made.import_as("", &other(None), "here").unwrap();
    assert_eq!(imported.not_in_dataset, 1);
    assert!(made.path("here").join(TASKS).is_file());
}

#[tokio::test]
async fn open_answers_can_be_judged() {
    let made = Made::new();
    let retried = "Q of a\n\n=== Previous Attempts Analysis ===\n[Attempt 1]\nno\n";
    made.log(
        "run_1",
        "a",
        (1, 1, TIME),
        &json!({"final_boxed_answer": "42", "final_judge_result": "", "input": {"task_description": retried}}),
    );
    made.log("run_1", "b", (1, 0, TIME), &json!({}));
    made.import("", "out").unwrap();
    let (header, rows) = read_run(&made.path("out")).unwrap();
    let file = header.invocation.file.clone().unwrap();
    let fields = pipeline::config::FieldMapping::default();
    let reading = evaluation::dataset::Reading { fields: &fields, skip_bad: false };
    let dataset = evaluation::dataset::load(&file, reading).unwrap();
    // The dataset is the one that the header names, with the questions as they were asked first.
    assert_eq!(dataset.sha256, header.dataset.sha256);
    let questions: Vec<&str> = dataset.tasks.iter().map(|task| task.question.as_str()).collect();
    assert_eq!(questions, ["Q of a", "Q of b"]);
    let judge = Judge::mock("made-up", JudgeId::Equivalence);
    let judged = judge.judge(&dataset.tasks[0], rows[0].answer.as_deref()).await;
    assert_eq!(judged, Judged::Exact { tier: ExactTier::Equal });
}

#[tokio::test]
async fn what_is_exported_comes_back() {
    let made = Made::new();
    // A run of ours, with a model that needs no server.
    let options = Options {
        llm: Some("reader".to_owned()),
        benchmark: Some("smoke".to_owned()),
        runs_dir: made.path("own/runs"),
        ..Options::default()
    };
    let place = Surroundings::new(BTreeMap::new(), made.path(""), &std::env::temp_dir(), options);
    let pipeline = place.pipeline().await.unwrap();
    let selection = Selection {
        task_ids: ["smoke-single-01", "smoke-single-07", "smoke-unanswerable-01"].map(str::to_owned).to_vec(),
        epochs: Some(2),
        ..Selection::default()
    };
    let suite_of_ours = Suite::load(pipeline.resolved(), &made.path(""), &selection).unwrap();
    let judge = Judge::mock("smoke", JudgeId::Equivalence);
    let header = suite_of_ours.header(&pipeline, &judge, None, Invocation::default());
    let mut store = Store::open(&made.path("own"), header).unwrap();
    let schedule = Schedule {
        plan: Plan {
            tasks: suite_of_ours.tasks.iter().map(|task| (task.task_id.clone(), task.clone())).collect(),
            max_concurrent: 2,
            stop_on_pass: false,
        },
        judge: Arc::new(judge),
        queue: Arc::new(InProcessQueue::new(samples_in_order(&selection.task_ids, 2, None), false)),
        runner: Arc::new(PipelineRunner {
            canaries: Canaries::new(&suite_of_ours.tasks, &[]),
            pipeline: Arc::new(pipeline),
        }),
        progress: Arc::new(Progress::default()),
        cancel: CancellationToken::new(),
    };
    schedule.run(&mut store).await.unwrap();
    drop(store);
    let (ours, before) = read_run(&made.path("own")).unwrap();
    assert_eq!(before.len(), 6);
    assert!(before.iter().any(|row| row.tool_calls > 0 && row.correct == Some(true)));

    let exported = export(&made.path("own"), Target::Mirothinker, &Filter::default()).unwrap();
    for (file, log) in &exported.records {
        made.put(&format!("logs/{file}"), &log.to_string());
    }
    let sources = find(&made.path("logs")).unwrap();
    assert_eq!(sources[0].suite_names(), ["logs", "smoke"]);
    let known = SuiteOfRun {
        name: "smoke".to_owned(),
        preset: Some("smoke".to_owned()),
        conf_dir: None,
        dataset: Some(DatasetOfRun { file: None, facts: suite_of_ours.facts, tasks: suite_of_ours.tasks }),
    };
    take_over(&sources[0], &known, &made.path("back")).unwrap();
    let (header, after) = read_run(&made.path("back")).unwrap();
    assert_eq!((&header.task_ids, header.epochs, &header.dataset), (&ours.task_ids, 2, &ours.dataset));
    let facts = |row: &Row| {
        json!({
            "sample": row.sample, "state": row.state, "correct": row.correct, "answer": row.answer,
            "truth": row.ground_truth, "group": row.group, "said": said(row), "turns": row.turns,
            "rollbacks": row.rollbacks, "tool_calls": row.tool_calls, "usage": row.usage, "cost": row.cost_usd,
            "wall_ms": row.wall_ms, "passes": row.passes, "capped": row.capped,
        })
    };
    let (before, after): (Vec<_>, Vec<_>) =
        (before.iter().map(facts).collect(), after.iter().map(facts).collect());
    assert_eq!(before, after);
}
