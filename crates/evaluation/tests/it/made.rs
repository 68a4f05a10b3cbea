//! Rows and headers made by hand.

use evaluation::run::Header;
use evaluation::sample::Row;
use serde_json::{Value, json};

/// A header over these tasks, everything else told.
pub(crate) fn header(task_ids: &[&str], epochs: u32, change: &Value) -> Header {
    let mut header = json!({
        "schema": 1,
        "suite": "made-up",
        "task_ids": task_ids,
        "dataset": {
            "file": "data/made-up/standardized_data.jsonl",
            "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "tasks": 12,
            "bad_records": 1,
        },
        "epochs": epochs,
        "seed": 7,
        "shuffle": true,
        "stop_on_pass": null,
        "provider": "vllm",
        "model": "model-30b",
        "config": {"agent": {"main_agent": {"max_turns": 40, "tools": ["search", "read"]}, "keep_tool_result": 5}},
        "judge": {
            "judge": "equivalence", "provider": "openai", "model": "gpt-4.1-2025-04-14",
            "prompt_sha256": "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210", "votes": 1,
        },
        "prices": {},
        "git": {"revision": "abc1234", "dirty": true},
        "invocation": {
            "suite": "made-up", "file": null, "llm": null, "agent": null, "sets": [], "conf_dir": null,
            "mcp_config": null,
        },
        "versions": {"fathom": "0.1.0"},
        "created": "2026-01-02T03:04:05.000Z",
    });
    merge(&mut header, change);
    serde_json::from_value(header).unwrap()
}

/// A row of 4 turns, 6 tool calls, 1,000 + 100 tokens, 2 cents, 10 s; what is given wins.
pub(crate) fn row(task_id: &str, epoch: u32, change: &Value) -> Row {
    let mut row = json!({
        "task_id": task_id,
        "epoch": epoch,
        "state": "answered",
        "correct": null,
        "answer": "42",
        "ground_truth": "42",
        "judgement": {"judged": "not_scored"},
        "stop_reason": null,
        "capped": false,
        "passes": 1,
        "turns": 4,
        "rollbacks": 0,
        "tool_calls": 6,
        "usage": {"input": 1000, "output": 100, "cache_read": 0, "cache_write": 0},
        "cost_usd": 0.02,
        "wall_ms": 10_000,
        "working_ms": 8_000,
        "run_id": null,
        "run_dir": null,
        "ended": "2026-01-02T03:14:05.000Z",
    });
    merge(&mut row, change);
    let mut row: Row = serde_json::from_value(row).unwrap();
    let judgement = row.judgement.clone();
    row.judge(judgement);
    row
}

/// A verdict of a judge for one dollar cent.
pub(crate) fn by_judge(verdict: &str) -> Value {
    json!({"judged": "by_judge", "verdict": verdict, "transcript": {
        "judge": "equivalence", "provider": "openai", "model": "gpt-4.1-2025-04-14", "prompt_sha256": "fe",
        "replies": [verdict], "usage": {"input": 50, "output": 1, "cache_read": 0, "cache_write": 0},
        "cost_usd": 0.01,
    }})
}

/// Nobody has said anything.
pub(crate) fn unjudged() -> Value {
    json!({"judged": "unjudged", "reason": "the judge did not reply"})
}

fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (name, value) in change {
                // A judgement is replaced whole.
                match into.get_mut(name).filter(|_| name != "judgement") {
                    Some(there) => merge(there, value),
                    None => drop(into.insert(name.clone(), value.clone())),
                }
            }
        }
        (into, change) => *into = change.clone(),
    }
}
