//! What a run leaves on the disk, compared with what it says.

use std::collections::HashSet;

use pipeline::log::{LOG_NAME, RunRecord};
use serde_json::{Value, json};

use super::support::{Lab, Shown, call, search};

/// Text that does not repeat itself from page to page.
fn script(shown: &Shown) -> String {
    match shown.replies {
        _ if shown.is_last() => "It is \\boxed{1}.".to_owned(),
        turn if turn < 60 => {
            let url = format!("https://example.org/{turn}");
            let thought = format!("Turn {turn}: {}", "I look at the next page and compare it. ".repeat(10));
            let page = call("research", "scrape_website", &json!({ "url": url, "size": 8_000 }));
            format!("{thought}\n{page}")
        }
        _ => "That is all.".to_owned(),
    }
}

/// Every text of the run that a model or a tool wrote, each once, as JSON.
fn content(record: &RunRecord) -> usize {
    fn texts(value: &Value, found: &mut HashSet<String>) {
        match value {
            Value::String(text) if text.len() > 64 => {
                found.insert(text.clone());
            }
            Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
            Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
            _ => {}
        }
    }
    let mut found = HashSet::new();
    for event in &record.events {
        texts(&serde_json::to_value(event).unwrap(), &mut found);
    }
    found.iter().map(|text| Value::from(text.as_str()).to_string().len()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_is_written_once() {
    let lab = Lab::new(script, &["agent.main_agent.max_turns=100", "agent.keep_tool_result=5"]);
    let whole = lab.ask("How many pages?").await;
    let record = RunRecord::read(&whole.run_dir).unwrap();
    let written: u64 = std::fs::metadata(whole.run_dir.join(LOG_NAME)).unwrap().len();
    let blobs: u64 = std::fs::read_dir(whole.run_dir.join("blobs"))
        .into_iter()
        .flatten()
        .map(|blob| blob.unwrap().metadata().unwrap().len())
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "a megabyte")]
    let ratio = (written + blobs) as f64 / content(&record) as f64;
    assert!(ratio < 1.3, "{ratio:.3}: {written} bytes and {blobs} in blobs");
}

/// Bytes of the log by turn.
fn growth(record: &RunRecord, log: &str) -> Vec<usize> {
    let mut turns = vec![0; 62];
    for (event, line) in record.events.iter().zip(log.lines()) {
        turns[event.turn as usize] += line.len();
    }
    turns
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_costs_the_same_at_the_end_as_at_the_beginning() {
    let short = |shown: &Shown| match shown.replies {
        _ if shown.is_last() => "It is \\boxed{1}.".to_owned(),
        turn if turn < 60 => search(&format!("query {}", 10 + turn)),
        _ => "That is all.".to_owned(),
    };
    let lab = Lab::new(short, &["agent.main_agent.max_turns=100", "agent.keep_tool_result=5"]);
    let whole = lab.ask("How many?").await;
    let log = std::fs::read_to_string(whole.run_dir.join(LOG_NAME)).unwrap();
    let turns = growth(&RunRecord::read(&whole.run_dir).unwrap(), &log);
    let (early, late) = (turns[5], turns[59]);
    assert!(late < early + early / 4, "turn 5 takes {early} bytes, turn 59 takes {late}");
}
