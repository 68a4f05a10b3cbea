//! Everything that is measured, built by one command: what the members of the workspace share is compiled once, with
//! the features that all of them want together.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use cargo_metadata::Message;

use crate::shell;

/// What is measured, and what cargo calls its kind.
const WANTED: &[(&str, &str)] = &[
    ("--bin", "fathom"),
    ("--bin", "fathom-bench"),
    ("--bench", "agents"),
    ("--bench", "calls"),
    ("--bench", "sandbox"),
    ("--bench", "throughput"),
    ("--bench", "wire"),
    ("--bench", "counting"),
    ("--example", "library_perf"),
    ("--example", "limiter_simulation"),
];

/// Programs by their names.
pub struct Built(BTreeMap<String, PathBuf>);

impl Built {
    /// Builds them in release mode.
    pub fn new() -> anyhow::Result<Self> {
        let mut arguments = vec!["build", "--release", "--locked", "--workspace"];
        for (kind, name) in WANTED {
            arguments.extend([kind, name]);
        }
        arguments.extend(["--message-format", "json-render-diagnostics"]);
        eprintln!("$ cargo {}", arguments.join(" "));
        let mut command = Command::new(env!("CARGO"));
        let output = shell::quietly(command.args(arguments).stderr(Stdio::inherit()))?;
        if !output.status.success() {
            bail!("the build failed ({})", output.status);
        }
        let mut programs = BTreeMap::new();
        for message in Message::parse_stream(output.stdout.as_slice()) {
            if let Message::CompilerArtifact(artifact) = message?
                && let Some(program) = artifact.executable
            {
                programs.insert(artifact.target.name, program.into());
            }
        }
        Ok(Self(programs))
    }

    /// Where one of them is.
    pub fn program(&self, name: &str) -> anyhow::Result<&PathBuf> {
        self.0.get(name).with_context(|| format!("the build gave no {name}"))
    }
}
