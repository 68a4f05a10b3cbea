//! `cargo xtask`: everything about this repository that is typed twice. Needs cargo and nothing else.

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
        Command::ReaderEval { sets, misses } => reader_eval::run(&sets, misses),
    }
}

/// Cheapest first, so that a slip is found early.
fn ci() -> anyhow::Result<()> {
    shell::cargo(&["fmt", "--all", "--check"])?;
    tidy::run()?;
    shell::cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    shell::cargo(&["test", "--workspace", "--locked"])
}
