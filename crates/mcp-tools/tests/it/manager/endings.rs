//! No process of a server is left, however the program ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use mcp_tools::{ManagerOptions, ToolManager};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::support::{Watched, fixture, fixture_path, started, text_of};

/// How long the last process may live on: the grace that servers have, and more than a loaded machine needs.
const LIMIT: Duration = Duration::from_secs(30);

/// Processes of one server: itself, one that it started, one that left its group.
async fn processes(manager: &ToolManager) -> Vec<Watched> {
    let mut watched = Vec::new();
    for (tool, arguments) in [("pid", json!({})), ("fork", json!({})), ("fork", json!({"setsid": true}))] {
        watched.push(Watched::new(&text_of(manager, tool, arguments).await));
    }
    watched
}

fn assert_all_end(watched: &[Watched], how: &str) {
    for (place, process) in watched.iter().enumerate() {
        assert!(process.ends_within(LIMIT), "after {how}, process {place} of the server is left");
    }
}

#[tokio::test]
async fn shutdown_waits_until_all_are_gone() {
    for options in [&[][..], &["--stubborn"]] {
        let manager = started(options).await;
        let watched = processes(&manager).await;
        assert!(watched.iter().all(Watched::runs));
        tokio::time::timeout(LIMIT, manager.shutdown()).await.expect("it is bounded");
        assert!(!watched.iter().any(Watched::runs), "{options:?}");
        manager.shutdown().await; // a second time does nothing
    }
}

#[tokio::test]
async fn dropping_the_manager_ends_its_servers() {
    let manager = started(&["--stubborn"]).await;
    let watched = processes(&manager).await;
    let clone = manager.clone();
    drop(manager);
    assert!(watched.iter().all(Watched::runs), "a clone holds them");
    drop(clone);
    let ended = tokio::task::spawn_blocking(move || assert_all_end(&watched, "dropping the manager"));
    ended.await.unwrap();
}

#[test]
fn dropping_the_runtime_ends_them_too() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (manager, watched) = runtime.block_on(async {
        let manager = started(&["--stubborn"]).await;
        let watched = processes(&manager).await;
        (manager, watched)
    });
    drop(runtime);
    drop(manager);
    assert_all_end(&watched, "dropping the runtime");
}

#[tokio::test]
async fn a_server_that_failed_to_start_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let failing = [&["--mute"][..], &["--stubborn", "--no-tools"]].map(|options| async move {
        let file = folder.join(options.join(""));
        let path = file.display().to_string();
        let mut spec = fixture("s", &[options, &["--fork-at-start", &path]].concat());
        spec.start_limit = Duration::from_secs(3);
        let manager = ToolManager::start(vec![spec], ManagerOptions::default()).await;
        assert!(manager.statuses()[0].error.is_some());
        let pid = std::fs::read_to_string(&file).unwrap();
        let Some(watched) = Watched::found(&pid) else { return };
        let ended = tokio::task::spawn_blocking(move || watched.ends_within(LIMIT)).await.unwrap();
        assert!(ended, "{options:?}");
    });
    futures_util::future::join_all(failing).await;
}

/// A program of its own that holds a server open.
struct Holder {
    program: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Holder {
    fn new(options: &[&str]) -> Self {
        let path = holder_path();
        let mut program = Command::new(&path)
            .args(["python3", &fixture_path()])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{}: {error}: `cargo build -p mcp-tools --examples` makes it", path.display())
            });
        let input = program.stdin.take();
        let output = BufReader::new(program.stdout.take().unwrap());
        Self { program, input, output }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn ask(&mut self, line: &str) -> String {
        self.say(line);
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{line}: {answer:?}: {error}"))
    }

    fn processes(&mut self) -> Vec<Watched> {
        ["pid", "fork", r#"fork {"setsid": true}"#].iter().map(|line| Watched::new(&self.ask(line))).collect()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.program.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

/// Cargo builds examples with the tests, next to them.
fn holder_path() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().and_then(|folder| folder.parent()).unwrap().join("examples/hold_server")
}

#[test]
fn nothing_is_left_however_the_program_ends() {
    type End = fn(&mut Holder);
    let ways: [(&str, End); 7] = [
        ("the end of its input", |holder| drop(holder.input.take())),
        ("kill -9", |holder| holder.signal(Signal::KILL)),
        ("a termination signal", |holder| holder.signal(Signal::TERM)),
        ("Ctrl-C", |holder| holder.signal(Signal::INT)),
        ("an exit without a word", |holder| holder.say("!exit")),
        ("a panic", |holder| holder.say("!panic")),
        ("a drop after its runtime", |holder| holder.say("!drop")),
    ];
    std::thread::scope(|scope| {
        for (how, end) in ways {
            scope.spawn(move || {
                let mut holder = Holder::new(&["--stubborn"]);
                let watched = holder.processes();
                assert!(watched.iter().all(Watched::runs));
                end(&mut holder);
                holder.program.wait().unwrap();
                assert_all_end(&watched, how);
            });
        }
    });
}
