//! What the commands do, one file each.

mod ask;
mod attend;
mod collector;
pub(crate) mod completions;
mod config;
mod doctor;
mod library;
mod mcp;
mod resume;
mod tools;
mod trace;

use std::process::ExitCode;

use anyhow::Context as _;

use crate::args::{Command, Common};
use crate::environment::Context;
use crate::exit::Failure;
use crate::output::Style;

/// Carries out a command that needs the async runtime.
pub(crate) async fn run(command: Command, common: Common, style: Style) -> Result<ExitCode, Failure> {
    crate::environment::start_log(style);
    let context = Context::read(common)?;
    let has_cassette = context.common.record.is_some() || context.common.replay.is_some();
    if has_cassette && !matches!(command, Command::Ask { .. }) {
        return Err(Failure::usage(
            "usage",
            "--record and --replay belong to `fathom ask`",
            "Leave them out here: only whole runs are recorded and replayed.",
        ));
    }
    match command {
        Command::Ask { question, files } => ask::run(&context, question, files, style).await,
        Command::Resume { run_dir, retry_failed } => {
            resume::run(&context, &run_dir, retry_failed, style).await
        }
        Command::Trace { command } => trace::run(&context, command, style).await,
        Command::Library { command } => library::run(&context, command, style).await,
        Command::Tools { command } => tools::run(&context, command, style).await,
        Command::Mcp { command } => mcp::run(&context, command).await,
        Command::Config { command } => config::run(&context, &command, style),
        Command::Doctor => doctor::run(&context, style).await,
        Command::Completions { shell } => completions::print(shell),
    }
}

/// A folder for what servers need while somebody takes a look; it goes with the command.
pub(crate) fn scratch_dir() -> Result<tempfile::TempDir, Failure> {
    Ok(tempfile::tempdir().context("no temporary folder can be made")?)
}
