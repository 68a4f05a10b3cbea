//! The HTML report: well-formed, whole, and harmless whatever stands in the rows.

use evaluation::report::{Report, to_html};
use serde_json::json;

use crate::made::{header, unjudged};
use crate::reports::run;

/// Checks that tags nest and attributes are quoted, and gives all texts outside `<style>`.
fn texts(html: &str) -> Vec<String> {
    const VOID: [&str; 2] = ["meta", "!doctype"];
    let (mut open, mut texts, mut rest) = (Vec::new(), Vec::new(), html);
    while let Some(begin) = rest.find('<') {
        let text = &rest[..begin];
        assert!(!text.contains('>') || open.last() == Some(&"style"), "a stray > in {text:?}");
        if open.last() != Some(&"style") && !text.trim().is_empty() {
            texts.push(text.trim().to_owned());
        }
        let end = begin + rest[begin..].find('>').expect("a tag ends");
        let tag = &rest[begin + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes of <{tag}>");
        assert!(!tag.contains('<'), "<{tag}>");
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "before {}", &rest[..end.min(200)]);
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
    texts
}

#[test]
fn everything_that_a_reader_needs_is_there() {
    let (header, rows) = run();
    let html = to_html(&[Report::new(header, &rows, false)]);
    let texts = texts(&html).join("\n");
    for part in [
        "made-up: accuracy 37.5 %",
        "8 samples of 4 tasks",
        "8 samples selected",
        "standard error (clustered by task)",
        "gpt-4.1-2025-04-14",
        "fedcba987654",
        "0123456789ab",
        "model-30b (vllm)",
        "max_turns 40",
        "abc1234 with changes",
        "contaminated",
        "no_answer",
        "limit",
        "pass@k",
        "level 1",
        "with restarts",
        "$0.1600",
        "correct by equality",
        "correct by the GAIA scorer",
        "correct by the judge",
    ] {
        assert!(texts.contains(part), "{part} is not in\n{texts}");
    }
    assert_eq!((html.matches("<svg").count(), html.matches("<figure>").count()), (1, 3));
    // What is measured and over how many samples stands beside each figure.
    assert!(html.contains("37.5 % [0.0, 84.4] n = 8"), "{html}");
    assert!(html.contains("default-src 'none'"), "{html}");
    // One file: nothing is loaded, nothing runs.
    for part in ["http:", "https:", "<script", "<link", "<img", "@import", "url(", "NaN", "inf%"] {
        assert!(!html.contains(part), "{part}");
    }
}

#[test]
fn hostile_names_are_text() {
    let hostile = "\"><script>alert(1)</script><img src=x onerror='x'>&amp;\u{0}\u{1b}";
    let (_, mut rows) = run();
    for row in &mut rows {
        row.sample.task_id = format!("{}{hostile}", row.sample.task_id);
        row.group = row.group.take().map(|(_, value)| (format!("by {hostile}"), format!("{value}{hostile}")));
    }
    let ids = ["a", "b", "c", "d"].map(|id| format!("{id}{hostile}"));
    let header = header(
        &ids.each_ref().map(String::as_str),
        2,
        &json!({
            "suite": hostile, "model": hostile, "provider": hostile, "judge": {"judge": hostile, "model": hostile},
            "dataset": {"file": hostile}, "versions": {hostile: hostile}, "git": {"revision": hostile},
            "config": {"agent": {"main_agent": {"tools": [hostile]}}}, "created": hostile,
        }),
    );
    let html = to_html(&[Report::new(header, &rows, false)]);
    texts(&html);
    for part in ["<script", "<img", "\u{0}", "\u{1b}"] {
        assert!(!html.contains(part), "{part:?}");
    }
    assert!(html.contains("&lt;script&gt;") && html.contains("&amp;amp;"));
}

#[test]
fn reports_of_every_condition_are_well_formed() {
    let (header, rows) = run();
    let mut open = rows.clone();
    open[0].judge(serde_json::from_value(unjudged()).unwrap());
    let stopping = crate::made::header(&["a", "b", "c", "d"], 2, &json!({"stop_on_pass": 2}));
    let reports = [
        Report::new(header.clone(), &rows, false),
        Report::new(header.clone(), &rows[..3], false),
        Report::new(header.clone(), &[], false),
        Report::new(header.clone(), &open, false),
        Report::new(header, &open, true),
        Report::new(stopping, &rows, false),
    ];
    let all = texts(&to_html(&reports)).join("\n");
    for part in [
        "accuracy so far",
        "pending",
        "nothing is scored",
        "no figure, 1 of 8",
        "left out of every denominator",
        "right in any of at most 2",
    ] {
        assert!(all.contains(part), "{part}");
    }
    texts(&to_html(&[]));
}
