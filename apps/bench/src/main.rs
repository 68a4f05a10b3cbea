//! `fathom-bench`: benchmark suites at the terminal. Decides what is printed where and how the program ends; what it
//! does is `evaluation`'s.

mod args;
mod around;
mod asked_judge;
mod commands;
mod ending;
mod judging;
mod live;
mod output;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;

use args::{Cli, Command};
use output::note;
use pipeline::{ReaderProcess, read_apart};

/// The argument with which this program is started to read one document in a process of its own.
const READ_APART: &str = "__read-document";

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done.
    Done = 0,
    /// Samples failed, or are unjudged.
    Failed = 1,
    /// What was typed or configured cannot be done.
    Usage = 2,
    /// Interrupted; the same command goes on.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == READ_APART) {
        return if read_apart() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    // A suite of hundreds of questions outlives a document that takes its reader along.
    if let Ok(program) = std::env::current_exe() {
        ReaderProcess { program, arguments: vec![READ_APART.into()] }.install();
    }
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("FATHOM_LOG").unwrap_or_else(|_| "warn".into()),
        )
        .with_writer(|| pipeline::own_log::WithoutSecrets(std::io::stderr()))
        .with_target(false)
        .without_time()
        .init();
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the async runtime does not start")
        .and_then(|runtime| runtime.block_on(carry_out(cli.command)));
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            note(&format!("error: {}", output::told(&error)));
            Exit::Usage.into()
        }
    }
}

async fn carry_out(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Ls(around) => commands::ls(&around),
        Command::Prepare(arguments) => commands::prepare(&arguments),
        Command::Run(arguments) => commands::run(*arguments).await,
        Command::Resume(arguments) => commands::resume(arguments).await,
        Command::Status(arguments) => commands::status(&arguments).await,
        Command::Score(arguments) => commands::score(arguments).await,
        Command::Report(arguments) => commands::report(&arguments),
        Command::Compare(arguments) => commands::compare(&arguments),
        Command::Vote(arguments) => commands::vote(&arguments),
        Command::Export(arguments) => commands::export(&arguments),
        Command::Import(arguments) => commands::import(&arguments),
    }
}
