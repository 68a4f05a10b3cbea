//! A home of its own for the program, with tasks and a model that answers them, and what runs leave behind there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::program::{KEY, program, settings_of};
pub(crate) use crate::program::{Said, wait_for};
use crate::scripted_server::{Reply, Request, ScriptedServer};

/// A folder with nothing in it that a run could find by accident.
pub(crate) struct Home {
    dir: tempfile::TempDir,
    options: Vec<String>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), options: Vec::new() }
    }

    /// A home whose model is the scripted server and whose only tools are those of the planner.
    pub(crate) fn with_model(server: &ScriptedServer) -> Self {
        let settings = settings_of(server);
        let home = settings.iter().fold(Self::new(), |home, setting| home.set(setting));
        home.set("agent.main_agent.tools=[task_planner]")
    }

    pub(crate) fn set(mut self, setting: &str) -> Self {
        self.options.extend(["-s".to_owned(), setting.to_owned()]);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes tasks `0`, `1`… whose right answers are their numbers; the answer of every third will be wrong.
    pub(crate) fn tasks(&self, count: usize) -> PathBuf {
        let lines: String = (0..count)
            .map(|number| {
                json!({
                    "task_id": number.to_string(),
                    "task_question": format!("Which number is number<{number}>?"),
                    "ground_truth": number.to_string(),
                    "Level": 1 + number % 2,
                })
                .to_string()
                    + "\n"
            })
            .collect();
        let file = self.path("tasks.jsonl");
        std::fs::write(&file, lines).unwrap();
        file
    }

    /// The command with the settings of this home behind its arguments, where it takes settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(env!("CARGO_BIN_EXE_fathom-bench"), self.dir.path());
        // A secret is in no header: who goes on with a run has it in the environment.
        command.args(arguments).env("FATHOM_LLM__API_KEY", KEY);
        if arguments.first() == Some(&"run") {
            command.args(&self.options);
        }
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Said {
        Said::from(self.command(arguments).output().await.unwrap())
    }

    /// The rows of a run.
    pub(crate) fn rows(&self, out: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(out).join("results.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Rows of a run that goes on.
    pub(crate) fn rows_so_far(&self, out: &str) -> usize {
        let text = std::fs::read(self.path(out).join("results.jsonl")).unwrap_or_default();
        text.iter().filter(|byte| **byte == b'\n').count()
    }

    /// The report that a run left in its folder.
    pub(crate) fn report(&self, out: &str) -> Value {
        json_of(&self.path(out).join("report.json"))
    }
}

pub(crate) fn json_of(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// A model that makes one tool call, says that it knows, and answers with the number of the question; numbers that
/// can be divided by three are answered wrong.
pub(crate) async fn counting_model() -> ScriptedServer {
    ScriptedServer::start_with(reply_to).await
}

pub(crate) fn reply_to(request: &Request) -> Reply {
    let messages = request.body["messages"].as_array().unwrap();
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        parts => parts.to_string(),
    };
    let all: String = messages.iter().skip(1).map(text).collect();
    let number: usize = all.split("number<").nth(1).unwrap().split('>').next().unwrap().parse().unwrap();
    let answers = messages.iter().filter(|message| message["role"] == "assistant").count();
    let reply = match answers {
        0 => Reply::text(
            "<use_mcp_tool>\n<server_name>task_planner</server_name>\n<tool_name>add_todo</tool_name>\n<arguments>\n\
             {\"titles\": [\"look\"]}\n</arguments>\n</use_mcp_tool>",
        ),
        1 => Reply::text("I know enough."),
        _ if number.is_multiple_of(3) => Reply::text("\\boxed{wrong}"),
        _ => Reply::text(format!("\\boxed{{{number}}}")),
    };
    reply.usage(100, 10)
}
