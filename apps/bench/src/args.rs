//! What can be typed. Decides nothing about what it does.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Runs a file of questions through Fathom and scores the answers.
#[derive(Debug, Parser)]
#[command(name = "fathom-bench", version, about, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask every question of a JSONL file; called again, it goes on with those that are not done
    Run(RunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A JSON object a line: task_id, task_question, ground_truth (null: not scored), file_path; aliases are accepted
    /// as further right answers
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where results and runs go; results.jsonl there tells what is done
    #[arg(long, value_name = "DIR", default_value = "runs/bench")]
    pub(crate) out: PathBuf,
    /// Ask only the first N
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Runs at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) max_concurrent: usize,
    /// Take configuration files from this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
    /// The model: conf/llm/NAME.yaml
    #[arg(long, value_name = "NAME")]
    pub(crate) llm: Option<String>,
    /// The agent: conf/agent/NAME.yaml
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Set one key, such as agent.main_agent.max_turns=20
    #[arg(short = 's', long = "set", value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Tool servers beside the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Option<PathBuf>,
}
