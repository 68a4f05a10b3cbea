//! What a whole benchmark costs: `fathom-bench` itself over many samples of many turns, against a model server that
//! answers at once. The server runs in this program, so that the kernel counts its processor time apart.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::model::{Model, PLAN};
use super::process::{self, Ran};
use super::table::{Beside, figure, section};

/// Tool calls of a sample, one a turn.
const TURNS: usize = 20;

/// Samples of the large run, and how many of them at once.
const SAMPLES: usize = 2_000;
const AT_ONCE: usize = 16;

/// What the reference was measured with: tasks of 20 turns, each in a process of its own, all at once.
const REFERENCE_SAMPLES: usize = 8;
/// How long it took, in seconds.
const REFERENCE_WALL: f64 = 39.0;
/// Turns a second.
const REFERENCE_TURNS: f64 = 4.1;
/// Samples a second.
const REFERENCE_RATE: f64 = REFERENCE_SAMPLES as f64 / REFERENCE_WALL;
/// Memory of all eight processes, in megabytes.
const REFERENCE_MEMORY: f64 = 2_400.0;

/// The figures of one run.
struct Outcome {
    ran: Ran,
    samples: usize,
    turns: u64,
    requests: u64,
    bytes: u64,
}

pub fn run(program: &Path) -> anyhow::Result<()> {
    section("Whole suites, a tool call a turn, model at once");
    let few = measure(program, REFERENCE_SAMPLES, REFERENCE_SAMPLES)?;
    few.print(REFERENCE_SAMPLES, Beside::ReferenceTakes(REFERENCE_WALL));
    let many = measure(program, SAMPLES, AT_ONCE)?;
    many.print(AT_ONCE, Beside::None);
    Ok(())
}

impl Outcome {
    fn print(&self, at_once: usize, wall_beside: Beside) {
        let Self { ran, samples, turns, requests, bytes } = self;
        let (samples, turns, bytes) = (*samples as f64, *turns as f64, *bytes as f64);
        let (wall, memory) = (ran.wall.as_secs_f64(), ran.peak_memory as f64 / 1e6);
        println!("{samples} samples of {TURNS} calls, {at_once} at once");
        figure("  wall time", wall, "s", wall_beside);
        figure("  turns a second", turns / wall, "", Beside::ReferenceDoes(REFERENCE_TURNS));
        figure("  samples a second", samples / wall, "", Beside::ReferenceDoes(REFERENCE_RATE));
        figure("  most memory", memory, "MB", Beside::ReferenceTakes(REFERENCE_MEMORY));
        figure("  own processor time", ran.cpu, "s", Beside::None);
        figure("  own processor time of a turn", ran.cpu * 1e3 / turns, "ms", Beside::None);
        let server = 100.0 * ran.our_cpu / (ran.our_cpu + ran.cpu);
        figure("  share of all processor time that the model server took", server, "%", Beside::None);
        figure("  requests of a sample", *requests as f64 / samples, "", Beside::None);
        figure("  written for a turn, logs and results", bytes / 1e3 / turns, "kB", Beside::None);
    }
}

/// Runs so many samples; every one of them has to be answered right.
fn measure(program: &Path, samples: usize, at_once: usize) -> anyhow::Result<Outcome> {
    let model = Model::start(TURNS, PLAN)?;
    let home = tempfile::tempdir()?;
    let tasks = home.path().join("tasks.jsonl");
    let lines: String = (0..samples)
        .map(|number| {
            let question = format!("Which number is number<{number}>?");
            let task = json!({"task_id": number.to_string(), "task_question": question, "ground_truth": number.to_string()});
            format!("{task}\n")
        })
        .collect();
    std::fs::write(&tasks, lines)?;
    let said = std::fs::File::create(home.path().join("said"))?;
    let mut command = Command::new(program);
    command
        .args(["run", "tasks.jsonl", "--judge", "mock", "--out", "out", "--max-concurrent"])
        .arg(at_once.to_string());
    for set in [
        "llm.provider=openai_compatible",
        "llm.model_name=scripted",
        "llm.api_key=none",
        &format!("llm.base_url={}", model.base_url()),
        "llm.max_context_length=100000",
        "agent.main_agent.tools=[task_planner]",
        "agent.keep_tool_result=5",
    ] {
        command.args(["-s", set]);
    }
    command
        .current_dir(home.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said);
    let ran = process::run(&mut command)?;
    if !ran.status.success() {
        let said = std::fs::read_to_string(home.path().join("said")).unwrap_or_default();
        bail!("the suite failed ({}): {said}", ran.status);
    }
    let out = home.path().join("out");
    let rows = std::fs::read_to_string(out.join("results.jsonl")).context("the suite left no results")?;
    let mut turns = 0;
    let mut count = 0;
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row)?;
        if row["correct"] != true {
            bail!("a sample went wrong: {row}");
        }
        turns += row["turns"].as_u64().unwrap_or(0);
        count += 1;
    }
    if count != samples {
        bail!("{count} of {samples} samples have results");
    }
    Ok(Outcome { ran, samples, turns, requests: model.requests(), bytes: bytes_below(&out)? })
}

/// Bytes of all files below a folder.
fn bytes_below(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_below(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
