//! Published originals into tasks: every format and cipher, with questions of our own making.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evaluation::dataset::{Dataset, Reading, load};
use evaluation::prepare::{PrepareError, Prepared, prepare};
use pipeline::config::FieldMapping;
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// An original in one folder, prepared into another.
struct Place {
    from: tempfile::TempDir,
    to: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { from: tempfile::tempdir().unwrap(), to: tempfile::tempdir().unwrap() }
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.from.path().join(name);
        std::fs::write(&file, content).unwrap();
        file
    }

    fn prepare(&self, suite: &str, original: &Path) -> Result<Prepared, PrepareError> {
        prepare(suite, original, self.to.path(), None)
    }

    fn prepared(&self, suite: &str, name: &str, content: impl AsRef<[u8]>) -> (Prepared, Dataset) {
        let original = self.put(name, content);
        let prepared = self.prepare(suite, &original).unwrap_or_else(|error| panic!("{suite}: {error}"));
        (prepared, self.load())
    }

    fn load(&self) -> Dataset {
        let fields = FieldMapping::default();
        let file = self.to.path().join("standardized_data.jsonl");
        load(&file, Reading { fields: &fields, skip_bad: false }).unwrap()
    }

    fn error(&self, suite: &str, name: &str, content: impl AsRef<[u8]>) -> String {
        let original = self.put(name, content);
        let error = self.prepare(suite, &original).unwrap_err();
        assert!(!self.to.path().join("standardized_data.jsonl").exists(), "{error}");
        error.to_string()
    }
}

fn told(prepared: &Prepared) -> [usize; 4] {
    [prepared.tasks, prepared.judged, prepared.with_files, prepared.not_selected]
}

/// Tasks as id, question and truth.
fn tasks(dataset: &Dataset) -> Vec<(&str, &str, Option<&str>)> {
    dataset
        .tasks
        .iter()
        .map(|task| (task.task_id.as_str(), task.question.as_str(), task.ground_truth.as_deref()))
        .collect()
}

fn xor(text: &str, key: &[u8]) -> String {
    STANDARD.encode(text.bytes().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect::<Vec<_>>())
}

fn lines(records: &[serde_json::Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn gaia() -> String {
    lines(&[
        json!({"task_id": "g-1", "Question": "How many arches are in the picture?", "Level": 1, "Final answer": "9", "file_name": "bridge.png", "Annotator Metadata": {"Steps": "Count."}}),
        json!({"task_id": "g-2", "Question": "When was the ferry sold?", "Level": 2, "Final answer": "1931", "file_name": ""}),
        json!({"task_id": "g-3", "Question": "Who drew the map?", "Level": 3, "Final answer": "?", "file_name": ""}),
    ])
}

#[test]
fn gaia_with_files() {
    let place = Place::new();
    place.put("bridge.png", b"\x89PNG picture");
    let (prepared, dataset) = place.prepared("gaia-validation", "metadata.jsonl", gaia());
    assert_eq!((told(&prepared), prepared.files_missing), ([3, 2, 1, 0], 0));
    assert_eq!(
        tasks(&dataset),
        [
            ("g-1", "How many arches are in the picture?", Some("9")),
            ("g-2", "When was the ferry sold?", Some("1931")),
            ("g-3", "Who drew the map?", None),
        ]
    );
    assert_eq!(dataset.tasks[0].group(), Some(("level".to_owned(), "1".to_owned())));
    assert_eq!(dataset.tasks[0].metadata["Annotator Metadata"]["Steps"], "Count.");
    // The file is where the task says, although the original lies elsewhere.
    assert_eq!(std::fs::read(&dataset.tasks[0].files[0]).unwrap(), b"\x89PNG picture");
    assert!(dataset.tasks[1].files.is_empty());
}

#[test]
fn gaia_without_files_and_from_parquet() {
    let place = Place::new();
    // The whole split, of which the suite takes 103 by their ids.
    let ids = include_str!("../../data/gaia-validation-text-103.ids");
    let ids: Vec<&str> = ids.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!((ids.len(), ids.iter().collect::<std::collections::BTreeSet<_>>().len()), (103, 103));
    let record =
        |id: &str| json!({"task_id": id, "Question": "Q?", "Level": 1, "Final answer": "A", "file_name": ""});
    let whole: Vec<_> = ["g-1"].iter().chain(&ids).chain(&["g-2"]).map(|id| record(id)).collect();
    let (prepared, dataset) = place.prepared("gaia-validation-text-103", "metadata.jsonl", lines(&whole));
    assert_eq!((told(&prepared), dataset.tasks[0].task_id.as_str()), ([103, 103, 0, 2], ids[0]));
    let error = Place::new().error("gaia-validation-text-103", "metadata.jsonl", lines(&whole[..102]));
    assert!(error.contains("lacks 2 of the 103 tasks") && error.contains(ids[102]), "{error}");
    let place = Place::new();
    let (prepared, dataset) =
        place.prepared("gaia-validation", "metadata.parquet", include_bytes!("cases/gaia.parquet"));
    assert_eq!((told(&prepared), prepared.files_missing), ([2, 2, 1, 0], 1));
    assert_eq!(tasks(&dataset)[1], ("g-2", "In which year was the ferry sold?", Some("1931")));
    // A file that the user does not have is kept by its name, so that the run can say what is missing.
    assert_eq!(dataset.tasks[0].files, [place.to.path().join("bridge.png")]);
    assert_eq!(dataset.tasks[0].group(), Some(("level".to_owned(), "1".to_owned())));
}

#[test]
fn enciphered_suites() {
    for (suite, name, question, answer) in [
        ("browsecomp", "problem", "Which lighthouse keeper wrote the almanac?", "Ada Brandt"),
        ("browsecomp_zh", "Question", "哪座桥建于1903年？", "北河桥"),
        ("xbench_deepsearch", "prompt", "这家书店在哪条街上？", "槐树街"),
    ] {
        let canary = format!("{suite}:canary-0123456789");
        let key = if suite == "xbench_deepsearch" {
            canary.clone().into_bytes()
        } else {
            Sha256::digest(&canary).to_vec()
        };
        let answers = if suite == "browsecomp_zh" { "Answer" } else { "answer" };
        let record =
            json!({"id": 5, name: xor(question, &key), answers: xor(answer, &key), "canary": canary});
        let place = Place::new();
        let (prepared, dataset) =
            place.prepared(suite, "original.jsonl", lines(std::slice::from_ref(&record)));
        assert_eq!(told(&prepared), [1, 1, 0, 0], "{suite}");
        assert_eq!(tasks(&dataset), [("5", question, Some(answer))]);
        assert_eq!(dataset.tasks[0].metadata["canary"], canary.as_str());

        let csv =
            format!("{name},{answers},canary\n{},{},{canary}\n", xor(question, &key), xor(answer, &key));
        let place = Place::new();
        let (_, dataset) = place.prepared(suite, "original.csv", csv);
        assert_eq!(tasks(&dataset), [(format!("{suite}-0001").as_str(), question, Some(answer))]);

        for (change, wanted) in [
            (json!({"canary": null}), "no `canary`"),
            (json!({"canary": "another canary 0123456789"}), "no UTF-8"),
            (json!({name: "Not enciphered at all?"}), "no base64"),
            (json!({name: ""}), "the question is empty"),
        ] {
            let mut record = record.clone();
            record.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let error = Place::new().error(suite, "original.jsonl", lines(&[record]));
            assert!(error.contains("original.jsonl:1: ") && error.contains(wanted), "{suite}: {error}");
        }
    }
}

#[test]
fn hle_with_pictures() {
    let png = b"\x89PNG\r\n\x1a\n0123";
    let uri = format!("data:image/png;base64,{}", STANDARD.encode(png));
    let original = lines(&[
        json!({"id": "h/1", "question": "Which valve is open?", "answer": "B", "image": uri, "image_preview": "x", "answer_type": "multipleChoice", "rationale_image": "y"}),
        json!({"id": "h_1", "question": "And here?", "answer": "C", "image": format!("data:image/png;base64,{}", STANDARD.encode(b"\x89PNG other"))}),
        json!({"id": "h-2", "question": "What is 6 × 7?", "answer": "42", "image": ""}),
        json!({"id": "h-3", "question": "A photograph.", "answer": "D", "image": STANDARD.encode(b"\xff\xd8\xff\xe0jpeg")}),
    ]);
    let place = Place::new();
    let (prepared, dataset) = place.prepared("hle", "hle.jsonl", &original);
    assert_eq!(told(&prepared), [4, 4, 3, 0]);
    // Two ids that are the same as file names have a picture each.
    assert_eq!(std::fs::read(&dataset.tasks[0].files[0]).unwrap(), png);
    assert_eq!(std::fs::read(&dataset.tasks[1].files[0]).unwrap(), b"\x89PNG other");
    assert!(dataset.tasks[3].files[0].ends_with("images/h-3.jpg"));
    assert!(!dataset.tasks[0].metadata.contains_key("image_preview"));
    assert!(!dataset.tasks[0].metadata.contains_key("rationale_image"));
    assert_eq!(dataset.tasks[0].group(), Some(("answer_type".to_owned(), "multipleChoice".to_owned())));
    let (prepared, dataset) = Place::new().prepared("hle-text-2158", "hle.jsonl", &original);
    assert_eq!((told(&prepared), dataset.tasks[0].task_id.as_str()), ([1, 1, 0, 3], "h-2"));
    for (picture, wanted) in
        [("data:image/png,plain", "a data URI without base64"), ("data:image/png;base64,%%%", "no base64")]
    {
        let record = json!({"id": 1, "question": "Q", "answer": "A", "image": picture});
        let error = Place::new().error("hle", "hle.jsonl", lines(&[record]));
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_selection_by_ids() {
    let original: Vec<_> = (0..501)
        .map(|number| json!({"id": format!("h-{number}"), "question": "Q?", "answer": "A"}))
        .collect();
    // Which 500 of the questions it takes has to be said, unless there are no more than these.
    let error = Place::new().error("hle-text-500", "hle.jsonl", lines(&original));
    assert!(error.contains("a selection of 500 of the 501") && error.contains("--ids FILE"), "{error}");
    assert_eq!(
        told(&Place::new().prepared("hle-text-500", "hle.jsonl", lines(&original[1..])).0),
        [500, 500, 0, 0]
    );
    for (name, content, wanted) in [
        ("ids.txt", "# two of them\nh-7\n\nh-500 # the last\n", Ok(2)),
        ("ids.csv", "task_id\nh-1\n", Ok(1)),
        ("ids.json", r#"[{"id": "h-1"}, {"id": "h-2"}, {"id": "h-3"}]"#, Ok(3)),
        ("ids.txt", "h-1\nh-9000\n", Err("lacks 1 of the 2 tasks")),
        ("ids.txt", "# none\n", Err("it holds no ids")),
        ("ids.jsonl", "{\"name\": \"h-1\"}\n", Err("neither `task_id` nor `id`")),
    ] {
        let place = Place::new();
        let (original, ids) = (place.put("hle.jsonl", lines(&original)), place.put(name, content));
        let prepared = prepare("hle-text-500", &original, place.to.path(), Some(&ids));
        match (prepared, wanted) {
            (Ok(prepared), Ok(wanted)) => {
                assert_eq!((prepared.tasks, place.load().tasks.len()), (wanted, wanted))
            }
            (Err(error), Err(wanted)) => assert!(error.to_string().contains(wanted), "{error}"),
            (prepared, wanted) => panic!("{name}: {prepared:?}, {wanted:?}"),
        }
    }
}

#[test]
fn other_enciphered_fields() {
    let canary = "canary-of-this-edition";
    for (suite, key, name, field) in [
        ("browsecomp", Sha256::digest(canary).to_vec(), "problem", "problem_topic"),
        ("browsecomp_zh", Sha256::digest(canary).to_vec(), "Question", "Topic"),
        ("xbench_deepsearch", canary.as_bytes().to_vec(), "prompt", "reference_steps"),
    ] {
        let answer = if suite == "browsecomp_zh" { "Answer" } else { "answer" };
        let record = |value: &str| json!({"id": 1, name: xor("Which?", &key), answer: xor("This", &key), "canary": canary, field: value});
        // Some editions have it in plain text.
        for (given, wanted) in [
            (xor("历史 & maps\nstep 2", &key), "历史 & maps\nstep 2"),
            ("Politics".to_owned(), "Politics"),
            ("TV shows & movies".to_owned(), "TV shows & movies"),
        ] {
            let (_, dataset) = Place::new().prepared(suite, "original.jsonl", lines(&[record(&given)]));
            assert_eq!(dataset.tasks[0].metadata[field], wanted, "{suite}");
        }
    }
}

#[test]
fn plain_suites() {
    for (suite, name, content, wanted) in [
        (
            "frames",
            "test.tsv",
            "\tPrompt\tAnswer\treasoning_types\n0\tHow much older is the mill?\t12 years\tNumerical\n1\t\"Which of \"\"two\"\"?\"\tThe first\tTabular\n",
            vec![("0", "How much older is the mill?", "12 years"), ("1", "Which of \"two\"?", "The first")],
        ),
        ("frames", "test.csv", "Unnamed: 0,Prompt,Answer\n7,Which?,This\n", vec![("7", "Which?", "This")]),
        (
            "webwalkerqa",
            "main.jsonl",
            "{\"question\": \"Who opens the fair?\", \"answer\": \"The mayor\", \"root_url\": \"https://fair.example/\", \"info\": {\"lang\": \"en\"}}\n",
            vec![("webwalkerqa-0001", "Who opens the fair?", "The mayor")],
        ),
        (
            "simpleqa",
            "simple_qa.csv",
            "metadata,problem,answer\n\"{'topic': 'Art'}\",\"Who painted\nthe ceiling?\",Ida Holm\n",
            vec![("simpleqa-0001", "Who painted\nthe ceiling?", "Ida Holm")],
        ),
        (
            "aime2025",
            "aime.json",
            "[{\"id\": 1, \"problem\": \"1 + 1?\", \"answer\": 2}]",
            vec![("1", "1 + 1?", "2")],
        ),
        (
            "seal-0",
            "seal.jsonl",
            "{\"question\": \"Q\", \"answer\": \"A\"}\n",
            vec![("seal-0-0001", "Q", "A")],
        ),
        (
            "deepsearchqa",
            "dsqa.jsonl",
            "{\"problem\": \"Which two?\", \"answer\": [\"a\", \"b\"], \"answer_type\": \"Set Answer\"}\n",
            vec![("deepsearchqa-0001", "Which two?", "[\"a\",\"b\"]")],
        ),
    ] {
        let (prepared, dataset) = Place::new().prepared(suite, name, content);
        let wanted: Vec<_> =
            wanted.into_iter().map(|(id, question, truth)| (id, question, Some(truth))).collect();
        assert_eq!(tasks(&dataset), wanted, "{suite}");
        assert_eq!(told(&prepared), [wanted.len(), wanted.len(), 0, 0], "{suite}");
    }
    let (prepared, dataset) =
        Place::new().prepared("futurex", "f.jsonl", "{\"id\": \"f\", \"prompt\": \"Who will win?\"}\n");
    assert_eq!((told(&prepared), tasks(&dataset)), ([1, 0, 0, 0], vec![("f", "Who will win?", None)]));
}

#[test]
fn fields_of_the_original_do_not_pass_for_those_of_a_task() {
    let record = json!({"id": "right", "question": "Q", "answer": "A", "task_id": "wrong", "task_question": "wrong", "ground_truth": "wrong"});
    let (_, dataset) = Place::new().prepared("seal-0", "x.jsonl", lines(&[record]));
    assert_eq!(tasks(&dataset), [("right", "Q", Some("A"))]);
}

#[test]
fn originals_of_something_else() {
    for (suite, name, content, wanted) in [
        (
            "gaia-validation",
            "x.jsonl",
            "{\"question\": \"Q\", \"answer\": \"A\"}\n",
            "no original of gaia-validation",
        ),
        ("simpleqa", "x.csv", "a,b\n1,2\n", "it has a, b"),
        ("simpleqa", "x.csv", "problem,topic\nQ,art\n", "none of the fields answer"),
        ("webwalkerqa", "x.jsonl", "{\"question\": \"Q\"}\n", "none of the fields answer"),
        ("simpleqa", "x.csv", "problem,answer\n", "none of its records"),
        ("simpleqa", "x.jsonl", "", "none of its records"),
        (
            "gaia-validation-text-103",
            "x.jsonl",
            "{\"task_id\":\"a\",\"Question\":\"Q\",\"Final answer\":\"A\",\"file_name\":\"f\"}\n",
            "none of its records",
        ),
        ("simpleqa", "x.jsonl", "{\"problem\": \"Q\", \"answer\": \"A\"}\nnonsense\n", "x.jsonl:2: no JSON"),
        ("simpleqa", "x.csv", "problem,answer\nQ,A,more\n", "x.csv:2: 3 fields"),
        ("simpleqa", "x.jsonl", "{\"problem\": null, \"answer\": \"A\"}\n", "the question is empty"),
        ("simpleqa", "x.xlsx", "x", "no .jsonl"),
        ("simpleqa", "x.parquet", "x", "x.parquet: "),
        ("no-such-suite", "x.jsonl", "{}", "there is no recipe for no-such-suite; there are gaia-validation"),
        (
            "gaia-validation",
            "x.jsonl",
            "{\"task_id\":\"a\",\"Question\":\"Q\",\"Final answer\":\"A\",\"file_name\":\"../../etc/passwd\"}\n",
            "no name of a file beside the original",
        ),
    ] {
        let error = Place::new().error(suite, name, content);
        assert!(error.contains(wanted), "{suite} {content:?}\n{error}\nshould say {wanted}");
    }
    let error = Place::new().prepare("simpleqa", Path::new("/no/such/file.csv")).unwrap_err().to_string();
    assert!(error.contains("/no/such/file.csv cannot be read"), "{error}");
}

#[test]
fn what_is_there_is_never_overwritten() {
    let place = Place::new();
    let file = place.to.path().join("standardized_data.jsonl");
    std::fs::write(&file, "mine\n").unwrap();
    let original = place.put("x.csv", "problem,answer\nQ,A\n");
    let error = place.prepare("simpleqa", &original).unwrap_err();
    assert!(
        matches!(error, PrepareError::Exists { .. }) && error.to_string().contains("is there already"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n");

    let place = Place::new();
    std::fs::write(place.to.path().join("bridge.png"), "mine").unwrap();
    place.put("bridge.png", "theirs");
    place.prepared("gaia-validation", "metadata.jsonl", gaia());
    assert_eq!(std::fs::read_to_string(place.to.path().join("bridge.png")).unwrap(), "mine");
    let left: Vec<_> =
        std::fs::read_dir(place.to.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
