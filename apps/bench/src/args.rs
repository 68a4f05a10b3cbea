//! What can be typed. Decides nothing about what it does.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Benchmark suites for Fathom: run them, judge the answers, report figures that can be trusted.
///
/// A run keeps everything in one folder and can be stopped at any time: the same command, or `resume`, goes on.
#[derive(Debug, Parser)]
#[command(
    name = "fathom-bench",
    version,
    disable_help_subcommand = true,
    after_help = "Try it offline:\n  fathom-bench run smoke --llm reader\n  fathom-bench report runs/bench/smoke-reader"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the suites and whether their tasks are here
    Ls(Around),
    /// Make a suite's tasks from the published original
    Prepare(PrepareArgs),
    /// Run a suite; the same command run again goes on
    Run(Box<RunArgs>),
    /// Go on with an interrupted run
    Resume(ResumeArgs),
    /// Say how far a run has come
    Status(StatusArgs),
    /// Judge again without running again
    Score(ScoreArgs),
    /// Print the figures of finished runs
    Report(ReportArgs),
    /// Compare two runs over the same suite, task by task
    Compare(CompareArgs),
    /// Take the answer that most epochs give; for futurex, write the submission file
    Vote(VoteArgs),
    /// Write samples as training data, or as task logs of the reference
    Export(ExportArgs),
    /// Take over a run directory of the reference
    Import(ImportArgs),
}

/// Where configuration comes from.
#[derive(Debug, Default, Args, Clone)]
pub(crate) struct Around {
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

#[derive(Debug, Args)]
pub(crate) struct PrepareArgs {
    /// The suite
    pub(crate) suite: String,
    /// The published original: .jsonl, .json, .csv, .tsv or .parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) from: PathBuf,
    /// Take only the tasks whose ids this file has, one a line, or as records with a `task_id` or `id`
    #[arg(long, value_name = "FILE")]
    pub(crate) ids: Option<PathBuf>,
    /// Where the tasks go; by default where the suite looks for them
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Take configuration files from this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A suite, or a file of tasks (.jsonl, .json, .csv, .tsv, .parquet)
    #[arg(value_name = "SUITE|FILE")]
    pub(crate) suite: String,
    /// Where everything goes; by default runs/bench/SUITE-MODEL
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Runs of every task; by default as the suite says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) epochs: Option<u32>,
    /// Only the first N tasks of the file, also where their order is drawn
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) limit: Option<usize>,
    /// Only this task (repeatable)
    #[arg(long = "task", value_name = "TASK_ID")]
    pub(crate) tasks: Vec<String>,
    /// Draw the order of tasks from the seed
    #[arg(long)]
    pub(crate) shuffle: bool,
    /// What the order is drawn from
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Samples at a time; by default as configured
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_concurrent: Option<u32>,
    /// End a task with its first right epoch, after at most K; only "right in any of K" can be reported then
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "epochs")]
    pub(crate) stop_on_pass: Option<u32>,
    /// Who judges: `mock` (offline), or a model, conf/llm/NAME.yaml; by default as the suite says
    #[arg(long, value_name = "mock|NAME")]
    pub(crate) judge: Option<String>,
    /// Leave out records that are no tasks, and selected tasks whose files are not there, and say how many
    #[arg(long)]
    pub(crate) skip_bad_lines: bool,
    /// Give figures although samples are unjudged; those are left out
    #[arg(long)]
    pub(crate) allow_unjudged: bool,
    #[command(flatten)]
    pub(crate) around: Around,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The folder of the run
    pub(crate) dir: PathBuf,
    /// Samples at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_concurrent: Option<u32>,
    /// Who judges, as for run; by default who was to judge when the run was begun
    #[arg(long, value_name = "suite|mock|NAME")]
    pub(crate) judge: Option<String>,
    /// Set one key: a secret, or where the model is served now
    #[arg(short = 's', long = "set", value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Give figures although samples are unjudged; those are left out
    #[arg(long)]
    pub(crate) allow_unjudged: bool,
    /// Take configuration files from this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
    /// Tool servers beside the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The folder of the run
    pub(crate) dir: PathBuf,
    /// Show it until the run is done, or nobody works on it any more
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    /// The folder of the run
    pub(crate) dir: PathBuf,
    /// Who judges: `suite` (as the suite says), `mock` (offline), or a model, conf/llm/NAME.yaml; by default who was to
    /// judge when the run was begun
    #[arg(long, value_name = "suite|mock|NAME")]
    pub(crate) judge: Option<String>,
    /// Judge every sample again, not only those that are unjudged
    #[arg(long)]
    pub(crate) all: bool,
    /// Answers judged at a time
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) max_concurrent: usize,
    /// Take configuration files from this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
    /// Set one key, such as benchmark.judge.votes=3
    #[arg(short = 's', long = "set", value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
}

/// How figures are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned text
    Table,
    /// One JSON object a run
    Json,
    /// Markdown
    Markdown,
    /// One HTML file with charts
    Html,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Folders of runs
    #[arg(required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// How figures are printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Write into this file instead of printing
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Give figures although samples are unjudged; those are left out
    #[arg(long)]
    pub(crate) allow_unjudged: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The folder of the first run
    pub(crate) first: PathBuf,
    /// The folder of the second run
    pub(crate) second: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What votes are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VoteForm {
    /// A line a task with the answer, its votes and what it is tied with
    Votes,
    /// A line a task, `{"id": …, "prediction": …}`, as FutureX takes it
    Submission,
}

#[derive(Debug, Args)]
pub(crate) struct VoteArgs {
    /// The folder of the run
    pub(crate) dir: PathBuf,
    /// What votes are written as; by default a submission where nobody judges the suite
    #[arg(long, value_enum)]
    pub(crate) to: Option<VoteForm>,
    /// Write into this file; by default a submission goes to SUITE_submission.jsonl in the folder, votes are printed
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// What samples are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Chat records, exactly as the model was sent them
    Chatml,
    /// The same as conversations of human and gpt
    Sharegpt,
    /// Pairs of a task's right and wrong epochs
    Dpo,
    /// A task log of the reference each
    Mirothinker,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The folder of the run
    pub(crate) dir: PathBuf,
    /// What samples are written as
    #[arg(long, value_enum)]
    pub(crate) to: Target,
    /// The file (a folder for mirothinker); by default standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Samples that are not correct too
    #[arg(long)]
    pub(crate) all: bool,
    /// Contaminated samples too; as they never count as correct, chat records need --all as well
    #[arg(long)]
    pub(crate) contaminated: bool,
    /// Only samples of at most so many turns
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
    /// Only samples of at most so many tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// A folder of the reference: that of a model's runs, logs/SUITE/PROVIDER_MODEL_AGENT with run_1, run_2… in it, one
    /// of the runs, or that of a suite; runs of several models go into folders of their own
    pub(crate) from: PathBuf,
    /// The folder that is made; report, compare and score take it
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// The suite, which says how answers are judged; by default that of the folder's name
    #[arg(long, value_name = "NAME")]
    pub(crate) suite: Option<String>,
    /// The tasks that were run, for questions, right answers and levels; by default those of the suite where they are
    /// here, else what the logs say
    #[arg(long, value_name = "FILE")]
    pub(crate) dataset: Option<PathBuf>,
    /// Take configuration files from this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
}
