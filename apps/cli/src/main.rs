//! `fathom`, the program for people at a terminal and for scripts. Decides exit codes and what goes to which stream;
//! everything else is `pipeline`'s.

mod args;
mod commands;
mod environment;
mod exit;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command};
use exit::Failure;
use mcp_tools::servers::reading;

/// The argument with which this program is started to read one document in a process of its own.
const READ_APART: &str = "__read-document";

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == READ_APART) {
        return if reading::read_apart() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Ok(program) = std::env::current_exe() {
        reading::ReaderProcess { program, arguments: vec![READ_APART.into()] }.install();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    let style = output::Style::new(&cli.common);
    let result = match cli.command {
        Command::Completions { shell } => commands::completions::print(shell),
        command => with_runtime(commands::run(command, cli.common.clone(), style)),
    };
    match result {
        Ok(_) if output::is_lost() => exit::Exit::Failed.into(),
        Ok(code) => code,
        Err(failure) => failure.report(cli.common.output, style),
    }
}

/// Two worker threads are plenty: a run waits for the model and for tools.
fn with_runtime(work: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(
            |error| Failure::internal(anyhow::Error::new(error).context("the async runtime does not start")),
        )?;
    let result = runtime.block_on(work);
    // Whatever still blocks (a counter that warms up) must not keep a finished program alive.
    runtime.shutdown_background();
    result
}
