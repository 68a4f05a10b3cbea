//! What the program costs before and between requests: start-up, a whole question, the turns of one long run.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::model::{Model, SEARCH};
use super::process;
use super::table::{Beside, figure, section};
/// Times a figure is taken; the median is printed.
const ROUNDS: usize = 15;

/// Turns of the run that measures the cost of one turn.
const TURNS: usize = 200;

/// What the reference takes for one turn with a tool call and a model that answers at once, in milliseconds: it starts
/// a process for every call.
const REFERENCE_TURN: f64 = 380.0;
/// What it takes of that without its tool processes, in a run of 200 turns.
const TURN: Beside = Beside::ReferenceTakes(52.0);
/// What it holds for one agent, in megabytes.
const REFERENCE_MEMORY: f64 = 272.0;

pub fn run(program: &Path) -> anyhow::Result<()> {
    section("The program");
    let bytes = std::fs::metadata(program)?.len();
    figure("size of the program", bytes as f64 / 1e6, "MB", Beside::None);
    let version = median(|| version_time(program))?;
    figure("fathom --version", version, "ms", Beside::AtMost(10.0));
    let first = median(|| first_request_time(program))?;
    figure("start to first request, in-process tools", first, "ms", Beside::AtMost(100.0));
    let reader = median(|| reader_time(program))?;
    figure("a whole question with the embedded reader", reader, "ms", Beside::AtMost(1_000.0));
    long_run(program)
}

/// The median in milliseconds, after one run that warms the caches.
fn median(measure: impl Fn() -> anyhow::Result<Duration>) -> anyhow::Result<f64> {
    measure()?;
    let mut times = (0..ROUNDS).map(|_| measure()).collect::<anyhow::Result<Vec<_>>>()?;
    times.sort_unstable();
    times.get(ROUNDS / 2).map(|time| time.as_secs_f64() * 1e3).context("nothing was measured")
}

fn version_time(program: &Path) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let status = Command::new(program).arg("--version").stdout(Stdio::null()).status()?;
    if !status.success() {
        bail!("fathom --version failed ({status})");
    }
    Ok(began.elapsed())
}

/// From the start of the program to its first request, in a folder with no configuration.
fn first_request_time(program: &Path) -> anyhow::Result<Duration> {
    let home = tempfile::tempdir()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let began = Instant::now();
    let mut child = ask(program, &base_url, home.path()).stdout(Stdio::null()).spawn()?;
    // The program looks first whether anything listens; that connection carries nothing.
    let mut first_byte = [0; 1];
    while listener.accept()?.0.read(&mut first_byte)? == 0 {}
    let took = began.elapsed();
    child.kill()?;
    child.wait()?;
    Ok(took)
}

fn reader_time(program: &Path) -> anyhow::Result<Duration> {
    let home = tempfile::tempdir()?;
    let began = Instant::now();
    let status = Command::new(program)
        .args(["ask", "--llm", "reader", "-q", "--runs-dir"])
        .arg(home.path())
        .arg("In which year was Johannes Kepler born?")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let took = began.elapsed();
    if status.code().is_none_or(|code| code != 0 && code != 3) {
        bail!("the reader did not come to an end ({status})");
    }
    Ok(took)
}

/// One run of many turns. Its own time is what it says itself: wall time less waiting for the model and for tools.
fn long_run(program: &Path) -> anyhow::Result<()> {
    let model = Model::start(TURNS, SEARCH)?;
    let home = tempfile::tempdir()?;
    let most_turns = format!("agent.main_agent.max_turns={}", TURNS + 5);
    let said = std::fs::File::create(home.path().join("said"))?;
    let ran = process::run(
        ask(program, &model.base_url(), home.path())
            .args(["-s", &most_turns, "-s", "agent.keep_tool_result=5", "--output", "json"])
            .stdout(said),
    )?;
    let result: Value = serde_json::from_slice(&std::fs::read(home.path().join("said"))?)
        .with_context(|| format!("the run printed no JSON ({})", ran.status))?;
    let turns = result["turns"].as_f64().filter(|turns| *turns > 0.0);
    let turns = turns.with_context(|| format!("the run made no turn: {result}"))?;
    let own = result["overhead_ms"].as_f64().context("the run does not say its own time")? / turns;
    let wall = ran.wall.as_secs_f64() * 1e3 / turns;
    figure(&format!("a run of {turns} turns with searches: own time of a turn"), own, "ms", TURN);
    figure("  the whole time of it", wall, "ms", Beside::ReferenceTakes(REFERENCE_TURN));
    let memory = ran.peak_memory as f64 / 1e6;
    figure("  most memory of that run", memory, "MB", Beside::ReferenceTakes(REFERENCE_MEMORY));
    let run = result["run_dir"].as_str().context("the run does not say where it is")?;
    let log = std::fs::read_to_string(home.path().join(run).join("events.jsonl"))?;
    figure("  its log", log.len() as f64 / 1e6, "MB", Beside::None);
    figure("  bytes of the log for a byte of content", bytes_for_content(&log)?, "", Beside::AtMost(1.3));
    Ok(())
}

/// How much longer a log is than what it was written for: every text that the model was sent or said, or that a tool
/// returned, once and as JSON.
fn bytes_for_content(log: &str) -> anyhow::Result<f64> {
    let mut texts = BTreeSet::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line)?;
        for content in [&event["message"]["content"], &event["result"]["content"]] {
            let blocks = content.as_array().into_iter().flatten();
            texts.extend(blocks.map(|block| block["text"].to_string()));
        }
        if event["type"] == "system_prompt" {
            texts.insert(event["text"].to_string());
        }
    }
    let content: usize = texts.iter().map(String::len).sum();
    Ok(log.len() as f64 / content as f64)
}

fn ask(program: &Path, base_url: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["ask", "-q", "-s", "llm.provider=openai_compatible", "-s", "llm.model_name=scripted"])
        .args(["-s", "llm.api_key=none", "-s", &format!("llm.base_url={base_url}")])
        .args(["--runs-dir", "runs", "What is asked here?"])
        .current_dir(home)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}
