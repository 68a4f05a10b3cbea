//! `cargo xtask perf`: what the program costs before and between requests, as ratios to its aims. Prints, never
//! judges: a machine may be busy.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::shell;

/// Times a figure is taken; the median is printed.
const ROUNDS: usize = 15;

/// Turns of the run that measures the cost of one turn.
const TURNS: u32 = 200;

/// What the reference takes for one turn with a tool call and a model that answers at once, in milliseconds.
const REFERENCE_TURN_MS: f64 = 400.0;

pub fn run(cold_build: bool) -> anyhow::Result<()> {
    if cold_build {
        let took = cold_release_build()?;
        print_figure("release build from nothing", took, Duration::from_secs(8 * 60));
    }
    let program = shell::release_program("fathom")?;
    let version = median(|| version_time(&program))?;
    print_figure("fathom --version", version, Duration::from_millis(10));
    let first = median(|| first_request_time(&program))?;
    print_figure("start to first request, in-process tools", first, Duration::from_millis(100));
    let reader = median(|| reader_time(&program))?;
    print_figure("a whole question with the embedded reader", reader, Duration::from_secs(1));
    let (turn_ms, turns) = turn_cost(&program)?;
    println!(
        "{:<46} {turn_ms:>9.3} ms   over {turns} turns; the reference takes {REFERENCE_TURN_MS} ms: {:.0} times as much",
        "one turn, model and tools not counted",
        REFERENCE_TURN_MS / turn_ms.max(0.001),
    );
    crate::perf_tools::run(print_fine_figure)?;
    agents()
}

/// What the loop itself costs as a run grows longer (aim: 0.7 ms a turn at 200 turns), and a thousand agents in one
/// process (aim: under 1 GB). A shell raises the limit on open files: each agent has a connection at both ends.
fn agents() -> anyhow::Result<()> {
    let bench = "ulimit -n 8192; exec cargo bench --quiet --package orchestrator --bench agents";
    let status = Command::new("sh").args(["-c", bench]).current_dir(shell::root()).status()?;
    if !status.success() {
        bail!("the benchmark of agents failed ({status})");
    }
    Ok(())
}

/// A figure whose aim may be far below a millisecond.
fn print_fine_figure(what: &str, took: Duration, aim: Duration) {
    println!(
        "{what:<46} {:>9.3} ms   {:.2} of its aim ({} ms)",
        took.as_secs_f64() * 1e3,
        took.as_secs_f64() / aim.as_secs_f64(),
        aim.as_secs_f64() * 1e3
    );
}

fn print_figure(what: &str, took: Duration, aim: Duration) {
    let ratio = took.as_secs_f64() / aim.as_secs_f64();
    println!(
        "{what:<46} {:>9.1} ms   {ratio:.2} of its aim ({} ms)",
        took.as_secs_f64() * 1e3,
        aim.as_millis()
    );
}

fn median(measure: impl Fn() -> anyhow::Result<Duration>) -> anyhow::Result<Duration> {
    measure()?;
    let mut times = (0..ROUNDS).map(|_| measure()).collect::<anyhow::Result<Vec<_>>>()?;
    times.sort_unstable();
    times.get(ROUNDS / 2).copied().context("nothing was measured")
}

fn version_time(program: &Path) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let status = Command::new(program).arg("--version").stdout(Stdio::null()).status()?;
    if !status.success() {
        bail!("fathom --version failed ({status})");
    }
    Ok(began.elapsed())
}

/// From the start of the program to the connection of its first request, in a folder with no configuration.
fn first_request_time(program: &Path) -> anyhow::Result<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let began = Instant::now();
    let mut child = ask(program, &base_url, &[]).spawn()?;
    let (mut connection, _) = listener.accept()?;
    let mut first_byte = [0; 1];
    connection.read_exact(&mut first_byte)?;
    let took = began.elapsed();
    child.kill()?;
    child.wait()?;
    Ok(took)
}

fn reader_time(program: &Path) -> anyhow::Result<Duration> {
    let runs = tempdir()?;
    let began = Instant::now();
    let status = Command::new(program)
        .args(["ask", "--llm", "reader", "-q", "--runs-dir"])
        .arg(&runs)
        .arg("In which year was Johannes Kepler born?")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let took = began.elapsed();
    std::fs::remove_dir_all(&runs)?;
    if status.code().is_none_or(|code| code != 0 && code != 3) {
        bail!("the reader did not come to an end ({status})");
    }
    Ok(took)
}

/// The overhead of one turn, from the run's own figures: wall time less waiting for the model and for tools.
fn turn_cost(program: &Path) -> anyhow::Result<(f64, u32)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    std::thread::spawn(move || serve_script(&listener));
    let turns = format!("agent.main_agent.max_turns={}", TURNS + 5);
    let output =
        ask(program, &base_url, &["-s", &turns, "-s", "agent.keep_tool_result=5", "--output", "json"])
            .stdout(Stdio::piped())
            .output()?;
    let result: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("the run printed no JSON")?;
    let turns = result["turns"].as_u64().unwrap_or(0);
    if turns == 0 {
        bail!("the run made no turn: {result}");
    }
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let cost = result["overhead_ms"].as_f64().unwrap_or(f64::NAN) / turns as f64;
    Ok((cost, u32::try_from(turns)?))
}

fn ask(program: &Path, base_url: &str, further: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(["ask", "-q", "-s", "llm.provider=openai_compatible", "-s", "llm.model_name=scripted"])
        .args(["-s", "llm.api_key=none", "-s", &format!("llm.base_url={base_url}")])
        .args(further)
        .arg("What is asked here?")
        .current_dir(std::env::temp_dir())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// A model server that answers at once: a library search a turn, then an answer.
fn serve_script(listener: &TcpListener) {
    let mut turn = 0;
    for connection in listener.incoming() {
        let Ok(mut connection) = connection else { continue };
        while read_request(&mut connection) {
            turn += 1;
            let text = if turn <= TURNS {
                format!(
                    "<use_mcp_tool>\n<server_name>library</server_name>\n<tool_name>search_library</tool_name>\n\
                     <arguments>\n{{\"q\": \"Kepler {turn}\"}}\n</arguments>\n</use_mcp_tool>"
                )
            } else {
                "The answer is \\boxed{42}".to_owned()
            };
            let chunk = serde_json::json!({
                "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 10}
            });
            let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            if connection.write_all(format!("{head}{body}").as_bytes()).is_err() {
                break;
            }
        }
    }
}

/// Reads one request; false at the end of the connection.
fn read_request(connection: &mut std::net::TcpStream) -> bool {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        if let Some(head_end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .and_then(|value| value.trim().parse::<usize>().ok())
                .unwrap_or(0);
            if bytes.len() >= head_end + 4 + length {
                return true;
            }
        }
        match connection.read(&mut piece) {
            Ok(0) | Err(_) => return false,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

fn cold_release_build() -> anyhow::Result<Duration> {
    let target = tempdir()?;
    let began = Instant::now();
    let target_text = target.display().to_string();
    shell::cargo(&["build", "--release", "--locked", "--package", "fathom", "--target-dir", &target_text])?;
    let took = began.elapsed();
    std::fs::remove_dir_all(&target)?;
    Ok(took)
}

fn tempdir() -> anyhow::Result<std::path::PathBuf> {
    let unique = Instant::now();
    let path = std::env::temp_dir().join(
        format!("fathom-perf-{}-{unique:?}", std::process::id()).replace([' ', '{', '}', ':', ','], ""),
    );
    std::fs::create_dir_all(&path)?;
    Ok(path)
}
