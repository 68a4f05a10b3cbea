//! Files of tasks in every format, whole and broken.

use std::path::Path;

use evaluation::dataset::{Dataset, DatasetError, Reading, load, load_bytes};
use evaluation::records::records_of;
use pipeline::config::FieldMapping;

fn read(name: &str, bytes: &[u8], skip_bad: bool) -> Result<Dataset, DatasetError> {
    let fields = FieldMapping::default();
    load_bytes(name, bytes.to_vec(), Some(Path::new("folder")), Reading { fields: &fields, skip_bad })
}

fn ids(dataset: &Dataset) -> Vec<&str> {
    dataset.tasks.iter().map(|task| task.task_id.as_str()).collect()
}

#[test]
fn formats_hold_the_same_tasks() {
    let jsonl = "{\"task_id\":\"a\",\"task_question\":\"Q, one\",\"ground_truth\":\"1\"}\n{\"task_id\":\"b\",\"task_question\":\"Q\\ttwo\",\"ground_truth\":null}\n";
    let list = format!("[{}]", jsonl.trim().replace('\n', ","));
    let csv = "task_id,task_question,ground_truth\na,\"Q, one\",1\nb,Q\ttwo,\n";
    let wanted = read("x.jsonl", jsonl.as_bytes(), false).unwrap();
    assert_eq!(ids(&wanted), ["a", "b"]);
    assert_eq!(
        (wanted.tasks[0].ground_truth.as_deref(), wanted.tasks[1].ground_truth.as_deref()),
        (Some("1"), None)
    );
    let with_bom = |text: &str| [b"\xef\xbb\xbf", text.as_bytes()].concat();
    for (name, bytes) in [
        ("x.ndjson", jsonl.as_bytes().to_vec()),
        ("X.JSONL", jsonl.as_bytes().to_vec()),
        ("x.jsonl", jsonl.replace('\n', "\r\n").into_bytes()),
        ("x.jsonl", jsonl.replace('\n', "\n\n \r\n").into_bytes()),
        ("x.jsonl", jsonl.trim_end().as_bytes().to_vec()),
        ("x.jsonl", with_bom(jsonl)),
        ("x.json", list.clone().into_bytes()),
        ("x.json", format!("{{\"version\": 1, \"data\": {list}}}").into_bytes()),
        ("x.json", with_bom(&list)),
        ("x.csv", csv.as_bytes().to_vec()),
        ("x.csv", csv.replace('\n', "\r\n").into_bytes()),
        ("x.csv", csv.replace('\n', "\n\n").into_bytes()),
        ("x.csv", with_bom(csv)),
        ("x.tsv", b"task_id\ttask_question\tground_truth\na\tQ, one\t1\nb\t\"Q\ttwo\"\t\n".to_vec()),
    ] {
        let given = read(name, &bytes, false).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(given.tasks, wanted.tasks, "{name} {}", String::from_utf8_lossy(&bytes));
    }
    assert_eq!(wanted.sha256.len(), 64);
    assert_ne!(wanted.sha256, read("x.jsonl", with_bom(jsonl).as_slice(), false).unwrap().sha256);
}

#[test]
fn bad_records_are_told_with_their_lines() {
    for (name, content, wanted) in [
        ("x.jsonl", "{\"task_id\":\"a\",\"task_question\":\"Q\"}\n\nnonsense\n", "x.jsonl:3: no JSON"),
        (
            "x.jsonl",
            "{\"task_id\":\"a\",\"task_question\":\"Q\"}\r\n{\"task_id\":\"b\"\r\n",
            "x.jsonl:2: no JSON",
        ),
        ("x.jsonl", "[1, 2]\n", "x.jsonl:1: not a JSON object"),
        ("x.jsonl", "{\"task_question\":\"Q\"}\n", "x.jsonl:1: `task_id` is missing"),
        ("x.jsonl", "{\"task_id\":\"a\"}\n", "x.jsonl:1: `task_question` is missing"),
        ("x.jsonl", "{\"task_id\":\" \",\"task_question\":\"Q\"}\n", "`task_id` is empty"),
        ("x.jsonl", "{\"task_id\":\"a\",\"task_question\":\"\"}\n", "`task_question` is empty"),
        ("x.jsonl", "{\"task_id\":[1],\"task_question\":\"Q\"}\n", "`task_id` is neither text nor number"),
        (
            "x.jsonl",
            "{\"task_id\":\"a\",\"task_question\":{}}\n",
            "`task_question` is neither text nor number",
        ),
        (
            "x.jsonl",
            "{\"task_id\":\"a\",\"task_question\":\"Q\"}\n{\"task_id\":\"a\",\"task_question\":\"R\"}\n",
            "x.jsonl:2: the task_id \"a\" stands twice",
        ),
        (
            "x.jsonl",
            "{\"task_id\":\"1\",\"task_question\":\"Q\"}\n{\"task_id\":1,\"task_question\":\"R\"}\n",
            "x.jsonl:2: the task_id \"1\" stands twice",
        ),
        ("x.json", "[{\"task_id\":\"a\",\"task_question\":\"Q\"}, 3]", "x.json:2: not a JSON object"),
        ("x.csv", "task_id,task_question\na,Q\nb,Q,more\n", "x.csv:3: 3 fields, the header has 2"),
        ("x.csv", "task_id,task_question\na,\"two\nlines\"\nb\n", "x.csv:4: 1 fields, the header has 2"),
        ("x.csv", "task_id,task_question\n\n\na,Q\nb\n", "x.csv:5: 1 fields, the header has 2"),
        ("x.csv", "task_id,task_question\r\na,Q\r\nb\r\n", "x.csv:3: 1 fields, the header has 2"),
        ("x.csv", "task_id,task_question\na,\n", "x.csv:2: `task_question` is missing"),
        ("x.csv", "id,question\na,Q\n", "x.csv:2: `task_id` is missing"),
    ] {
        let error = read(name, content.as_bytes(), false).unwrap_err();
        assert!(matches!(error, DatasetError::Bad(_)), "{content}: {error}");
        assert!(error.to_string().contains(wanted), "{content}\n{error}\nshould say {wanted}");
    }
}

#[test]
fn files_that_are_none() {
    for (name, content, wanted) in [
        ("x.json", "{\"a\": 1}", "neither a list of records nor an object with one such list"),
        ("x.json", "{\"a\": [], \"b\": []}", "neither a list"),
        ("x.json", "3", "neither a list"),
        ("x.json", "[", "no JSON"),
        ("x.json", "[]", "holds no tasks"),
        ("x.jsonl", "", "holds no tasks"),
        ("x.jsonl", "\n \n", "holds no tasks"),
        ("x.csv", "task_id,task_question\n", "holds no tasks"),
        ("x.csv", "", "holds no tasks"),
        ("x.txt", "a", "no .jsonl, .json, .csv, .tsv or .parquet file"),
        ("tasks", "a", "no .jsonl"),
        ("x.parquet", "PAR1 but not really", "x.parquet: "),
        ("x.parquet", "", "x.parquet: "),
    ] {
        let error = read(name, content.as_bytes(), true).unwrap_err().to_string();
        assert!(error.contains(wanted), "{name} {content:?}\n{error}\nshould say {wanted}");
    }
    let fields = FieldMapping::default();
    let error =
        load(Path::new("/no/such/tasks.jsonl"), Reading { fields: &fields, skip_bad: true }).unwrap_err();
    assert!(error.to_string().contains("/no/such/tasks.jsonl cannot be read"), "{error}");
}

#[test]
fn bad_records_are_left_out_where_that_is_asked_for() {
    let lines = b"{\"task_id\":\"a\",\"task_question\":\"Q\"}\n\xff\xfe\n{\"task_id\":\"a\",\"task_question\":\"Q\"}\n{\"task_id\":\"b\",\"task_question\":\"Q\"}\n{}\n";
    let dataset = read("x.jsonl", lines, true).unwrap();
    assert_eq!(ids(&dataset), ["a", "b"]);
    assert_eq!(dataset.bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [2, 3, 5]);
    let dataset = read("x.csv", b"task_id,task_question\na,Q\nb,\xff\nc,Q\n", true).unwrap();
    assert_eq!((ids(&dataset), dataset.bad.len(), dataset.bad[0].line), (vec!["a", "c"], 1, 3));
    let many: String = (0..30).map(|_| "bad\n").collect();
    let error = read("x.jsonl", many.as_bytes(), false).unwrap_err().to_string();
    assert!(error.starts_with("30 of the records") && error.contains("and 20 more"), "{error}");
}

#[test]
fn truths_of_every_kind() {
    for (truth, wanted) in [
        ("null", None),
        ("\"\"", None),
        ("\"  \"", None),
        ("\"x\"", Some("x")),
        ("\" x \"", Some(" x ")),
        ("\"null\"", Some("null")),
        ("7", Some("7")),
        ("7.5", Some("7.5")),
        ("-0.25", Some("-0.25")),
        ("12345678901234567890", Some("12345678901234567890")),
        ("0", Some("0")),
        ("true", Some("true")),
        ("[\"a\",\"b\"]", Some("[\"a\",\"b\"]")),
        ("{\"a\":1}", Some("{\"a\":1}")),
    ] {
        let line = format!("{{\"task_id\":1,\"task_question\":\"Q\",\"ground_truth\":{truth}}}");
        let dataset = read("x.jsonl", line.as_bytes(), false).unwrap();
        assert_eq!(dataset.tasks[0].ground_truth.as_deref(), wanted, "{truth}");
        assert_eq!(dataset.tasks[0].accepted().next(), wanted, "{truth}");
    }
    let without = read("x.jsonl", b"{\"task_id\":1,\"task_question\":\"Q\"}", false).unwrap();
    assert_eq!((ids(&without), without.tasks[0].ground_truth.as_deref()), (vec!["1"], None));
    let aliases = |aliases: &str, truth: &str| -> Vec<String> {
        let line = format!(
            "{{\"task_id\":1,\"task_question\":\"Q\",\"ground_truth\":{truth},\"aliases\":{aliases}}}"
        );
        read("x.jsonl", line.as_bytes(), false).unwrap().tasks[0].accepted().map(str::to_owned).collect()
    };
    assert_eq!(aliases("[\"y\", 3, null, \"\"]", "\"x\""), ["x", "y", "3"]);
    assert_eq!(aliases("\"y\"", "\"x\""), ["x", "y"]);
    assert_eq!(aliases("[\"y\"]", "null"), Vec::<String>::new());
}

#[test]
fn groups_at_the_top_or_inside_metadata() {
    for (more, wanted) in [
        ("\"Level\": 2", Some(("level", "2"))),
        ("\"level\": \"hard\"", Some(("level", "hard"))),
        ("\"metadata\": {\"Level\": \"3\"}", Some(("level", "3"))),
        ("\"metadata\": {\"Level\": 1}, \"category\": \"maths\"", Some(("level", "1"))),
        ("\"Level\": \"\", \"category\": \"maths\"", Some(("category", "maths"))),
        ("\"Level\": null, \"metadata\": {\"Level\": 2}", Some(("level", "2"))),
        ("\"answer_type\": \"exactMatch\"", Some(("answer_type", "exactMatch"))),
        ("\"metadata\": {\"answer_type\": \"x\"}", Some(("answer_type", "x"))),
        ("\"metadata\": \"Level\"", None),
        ("\"Level\": [1]", None),
        ("\"other\": 1", None),
    ] {
        let line = format!("{{\"task_id\":1,\"task_question\":\"Q\",{more}}}");
        let task = &read("x.jsonl", line.as_bytes(), false).unwrap().tasks[0];
        let wanted = wanted.map(|(by, value): (&str, &str)| (by.to_owned(), value.to_owned()));
        assert_eq!(task.group(), wanted, "{more}");
    }
}

#[test]
fn fields_have_the_names_that_are_configured() {
    let fields = FieldMapping {
        task_id_field: "ID".into(),
        task_question_field: "Prompt".into(),
        ground_truth_field: "Answer".into(),
        file_name_field: "attachment".into(),
        file_path_field: "path".into(),
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("there.pdf"), "x").unwrap();
    let file = folder.path().join("tasks.jsonl");
    let lines = [
        r#"{"ID": 1, "Prompt": "Q", "Answer": "A", "task_id": "kept", "attachment": "there.pdf", "path": ""}"#,
        r#"{"ID": 2, "Prompt": "Q", "path": "elsewhere/there.pdf", "attachment": "there.pdf"}"#,
        r#"{"ID": 3, "Prompt": "Q", "path": "gone/one.pdf", "attachment": "gone.pdf"}"#,
        r#"{"ID": 4, "Prompt": "Q", "path": null, "attachment": null}"#,
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let dataset = load(&file, Reading { fields: &fields, skip_bad: false }).unwrap();
    assert_eq!(ids(&dataset), ["1", "2", "3", "4"]);
    assert_eq!(dataset.tasks[0].ground_truth.as_deref(), Some("A"));
    assert_eq!(dataset.tasks[0].metadata["task_id"], "kept");
    let there = folder.path().join("there.pdf");
    let gone = folder.path().join("gone/one.pdf");
    let files: Vec<_> = dataset.tasks.iter().map(|task| task.files.first()).collect();
    assert_eq!(files, [Some(&there), Some(&there), Some(&gone), None]);
    let error =
        load(&file, Reading { fields: &FieldMapping::default(), skip_bad: false }).unwrap_err().to_string();
    assert!(error.contains("tasks.jsonl:2: `task_id` is missing"), "{error}");
}

/// `cases/tiny.py` makes the file.
#[test]
fn parquet() {
    let bytes = include_bytes!("cases/tiny.parquet");
    let dataset = read("tiny.parquet", bytes, false).unwrap();
    assert_eq!(ids(&dataset), ["p-1", "p-2", "p-3"]);
    let [first, second, third] = &dataset.tasks[..] else { panic!() };
    assert_eq!(
        (first.question.as_str(), first.ground_truth.as_deref()),
        ("Wie heißt der Fluss?", Some("Inn"))
    );
    assert_eq!((second.ground_truth.as_deref(), third.ground_truth.as_deref()), (None, Some("7")));
    assert_eq!(first.group(), Some(("level".to_owned(), "2".to_owned())));
    assert_eq!(first.metadata["tags"], serde_json::json!(["a", "b"]));
    assert_eq!(first.metadata["score"], serde_json::json!(0.5));
    // Bytes that are no text.
    assert_eq!(first.metadata["blob"], serde_json::json!("iVBORw=="));
    for cut in [4, bytes.len() / 2, bytes.len() - 1] {
        assert!(records_of("x.parquet", bytes[..cut].to_vec()).is_err(), "{cut}");
    }
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 0x55;
        // An error or other values, no panic.
        drop(records_of("x.parquet", damaged));
    }
}
