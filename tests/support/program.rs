//! A program of ours as a child process that finds nothing of the machine it runs on but a folder of its own, and what
//! it said. Both programs' tests use it; what the folder holds is theirs.
#![allow(dead_code, reason = "no test binary uses all of it")]

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::{Child, Command};

use crate::scripted_server::ScriptedServer;

/// The key of the scripted server.
pub(crate) const KEY: &str = "test-key-0123456789";

/// What one call of a program came to.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The one JSON object on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// The program in a folder that is its home too.
pub(crate) fn program(path: &str, home: &Path) -> Command {
    let mut command = Command::new(path);
    command
        .current_dir(home)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("FATHOM_LOCAL_SERVERS", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Settings that make the scripted server the model.
pub(crate) fn settings_of(server: &ScriptedServer) -> Vec<String> {
    vec![
        "llm.provider=openai_compatible".to_owned(),
        "llm.model_name=scripted".to_owned(),
        format!("llm.api_key={KEY}"),
        format!("llm.base_url={}", server.base_url()),
        "llm.max_context_length=100000".to_owned(),
        "llm.retries.base_wait=0.01".to_owned(),
        "agent.llm_retry_pause=0".to_owned(),
    ]
}

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);
/// How long anything is waited for.
const LONGEST: Duration = Duration::from_secs(60);

/// Looks again and again until something holds; the test fails when it never does.
pub(crate) async fn wait_until(holds: impl Fn() -> bool) {
    let waited = tokio::time::timeout(LONGEST, async {
        while !holds() {
            tokio::time::sleep(PAUSE).await;
        }
    });
    waited.await.expect("it never came to be");
}

/// Looks again and again until something holds that a program is to bring about; the test fails when it ends before.
pub(crate) async fn wait_for(program: &mut Child, holds: impl Fn() -> bool) {
    let waited = tokio::time::timeout(LONGEST, async {
        while !holds() {
            assert!(program.try_wait().unwrap().is_none() || holds(), "the program ended too soon");
            tokio::time::sleep(PAUSE).await;
        }
    });
    waited.await.expect("it never came to be");
}
