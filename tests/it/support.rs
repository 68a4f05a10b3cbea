//! A home of its own for the program, with its tool server and settings, and what runs leave behind there.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::process::Command;

use crate::program::{KEY, program, settings_of};
pub(crate) use crate::program::{Said, wait_until};
use crate::scripted_server::ScriptedServer;

/// A folder with nothing in it that a run could find by accident.
pub(crate) struct Home {
    dir: tempfile::TempDir,
    /// Options of every call.
    options: Vec<String>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), options: Vec::new() }
    }

    /// A home whose model is the scripted server.
    pub(crate) fn with_model(server: &ScriptedServer) -> Self {
        settings_of(server).iter().fold(Self::new(), |home, setting| home.set(setting))
    }

    /// Adds the research server over stdio as the only tool server.
    pub(crate) fn with_research(self) -> Self {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/research_server.py");
        let file = self.write(
            "mcp.json",
            &serde_json::json!({"mcpServers": {"research": {
                "command": "python3",
                "args": [fixture, "--log", self.path("calls.log")],
            }}})
            .to_string(),
        );
        assert!(file.is_file());
        self.set("agent.main_agent.tools=[research]")
    }

    pub(crate) fn set(mut self, setting: &str) -> Self {
        self.options.extend(["-s".to_owned(), setting.to_owned()]);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The calls that the research server got, a line each.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("calls.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(env!("CARGO_BIN_EXE_fathom"), self.dir.path());
        command.args(arguments).args(&self.options);
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Said {
        Said::from(self.command(arguments).output().await.unwrap())
    }

    /// Without the settings of this home: for runs that know theirs. The model's key is in the environment.
    pub(crate) async fn run_as_is(&self, arguments: &[&str]) -> Said {
        let mut command = program(env!("CARGO_BIN_EXE_fathom"), self.dir.path());
        command.args(arguments).env("OPENAI_API_KEY", KEY);
        Said::from(command.output().await.unwrap())
    }

    /// `fathom ask --output json QUESTION`.
    pub(crate) async fn ask(&self, question: &str) -> (Said, Value) {
        let said = self.run(&["ask", "--output", "json", question]).await;
        let value = said.json();
        (said, value)
    }

    /// The stored events of the only run.
    pub(crate) fn events(&self) -> Vec<Value> {
        let mut runs = std::fs::read_dir(self.path("runs")).unwrap();
        let run = runs.next().unwrap().unwrap().path();
        assert!(runs.next().is_none(), "more than one run");
        let text = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The stored events of the only run while it goes on: those that are whole; none before it has begun.
    pub(crate) fn events_so_far(&self) -> Vec<Value> {
        let runs = std::fs::read_dir(self.path("runs")).into_iter().flatten().flatten();
        let log = runs.map(|run| run.path().join("events.jsonl")).find(|path| path.is_file());
        let text = log.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The types of the stored events that are about decisions, in order.
    pub(crate) fn decisions(&self) -> Vec<String> {
        let told = |event: &Value| match event["type"].as_str().unwrap() {
            "rollback" => Some(format!("rollback {}", event["reason"].as_str().unwrap())),
            "pass_finished" => Some(format!("stop {}", event["summary"]["stop_reason"].as_str().unwrap())),
            "tool_call_finished" => Some(
                event["error_kind"].as_str().map_or_else(|| "call".to_owned(), |kind| format!("call {kind}")),
            ),
            name @ ("recovered" | "duplicate_allowed" | "failure_summary" | "limit_reached") => {
                Some(name.to_owned())
            }
            "llm_request" => Some(format!("ask {}", event["purpose"].as_str().unwrap())),
            _ => None,
        };
        self.events().iter().filter_map(told).collect()
    }
}

/// A call in the dialect `mcp_xml`.
pub(crate) fn call(tool: &str, arguments: &Value) -> String {
    format!(
        "<use_mcp_tool>\n<server_name>research</server_name>\n<tool_name>{tool}</tool_name>\n<arguments>\n{arguments}\n</arguments>\n</use_mcp_tool>"
    )
}

pub(crate) fn search(query: &str) -> String {
    call("google_search", &serde_json::json!({ "q": query }))
}

/// Whether a process is there and not a zombie.
pub(crate) fn is_running(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

/// Processes whose command line holds the text.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
        })
        .filter(|pid| is_running(pid))
        .collect()
}
