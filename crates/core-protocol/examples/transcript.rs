//! Reads one reply on standard input and prints what is in it.
//!
//! By default its calls as JSON lines, one object a call with `server_name`, `tool_name`, `arguments`,
//! `id` and `repaired` (`null`, `"json5"` or `"repaired"`); blocks that cannot be read go to standard
//! error. With `--boxed` the boxed answer, or nothing. With `--repair` every input line is read as the
//! arguments of a call, and printed as strict JSON, or as `null`.
//!
//! `--dialect NAME` chooses the spelling of calls (`mcp_xml`, `hermes`, `qwen_xml`, `auto`);
//! `--stream N` feeds the reply in pieces of N bytes; `--starts-in-thinking` and `--accept-unclosed`
//! set the options of those names.
//!
//! It ends with 0 whatever the reply holds, and with 1 where an option is wrong, the reply is not UTF-8
//! (no call of such a reply is printed), or input or output fail.

use core_protocol::{
    DialectName, MalformedBlock, ParseOptions, ParsedReply, StreamParser, ToolCall, boxed_answer,
    parse_arguments, parse_reply,
};
use serde_json::json;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

const USAGE: &str = "\
Reads one reply on standard input and prints its calls as JSON lines.

  --dialect NAME         mcp_xml (default), hermes, qwen_xml or auto
  --stream N             feed the reply in pieces of N bytes
  --starts-in-thinking   the chat template has opened thinking already
  --accept-unclosed      take a last call without its closing tags
  --boxed                print the boxed answer instead, nothing if there is none
  --repair               repair one JSON object per input line instead, null where it cannot be
  --help                 print this
";

#[derive(Clone, Copy)]
enum Task {
    Calls,
    Boxed,
    Repair,
    Help,
}

struct Arguments {
    task: Task,
    dialect: DialectName,
    piece: Option<usize>,
    starts_in_thinking: bool,
    accept_unclosed: bool,
}

fn main() -> ExitCode {
    match arguments().and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "transcript: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let mut read = Arguments {
        task: Task::Calls,
        dialect: DialectName::McpXml,
        piece: None,
        starts_in_thinking: false,
        accept_unclosed: false,
    };
    let mut given = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = given.next() {
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        match option {
            "--boxed" => read.task = Task::Boxed,
            "--repair" => read.task = Task::Repair,
            "--help" | "-h" => read.task = Task::Help,
            "--starts-in-thinking" => read.starts_in_thinking = true,
            "--accept-unclosed" => read.accept_unclosed = true,
            "--dialect" => {
                let name = value.or_else(|| given.next()).ok_or("--dialect needs a name")?;
                read.dialect = DialectName::from_name(&name)
                    .ok_or_else(|| format!("no dialect `{name}`: use mcp_xml, hermes, qwen_xml or auto"))?;
            }
            "--stream" => {
                let size = value.or_else(|| given.next()).and_then(|size| size.parse().ok());
                let size = size.filter(|size| *size > 0);
                read.piece = Some(size.ok_or("--stream needs a number of bytes above 0")?);
            }
            _ => return Err(format!("no option `{argument}`\n{USAGE}")),
        }
    }
    Ok(read)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let mut bytes = Vec::new();
    if !matches!(arguments.task, Task::Help) {
        let read = io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|error| format!("cannot read the reply: {error}"))?;
    }
    let output = match arguments.task {
        Task::Calls => calls(arguments, &bytes)?,
        Task::Boxed => boxed_answer(text_of(&bytes)?).map(|answer| answer + "\n").unwrap_or_default(),
        Task::Repair => repair(&bytes),
        Task::Help => USAGE.to_owned(),
    };
    match io::stdout().lock().write_all(output.as_bytes()) {
        // Who reads the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| format!("cannot write: {error}")),
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| format!("the input is not UTF-8: {error}"))
}

fn calls(arguments: &Arguments, bytes: &[u8]) -> Result<String, String> {
    let options = ParseOptions {
        starts_in_thinking: arguments.starts_in_thinking,
        accept_unclosed_at_end: arguments.accept_unclosed,
        ..ParseOptions::new(arguments.dialect.dialect())
    };
    let reply: ParsedReply = match arguments.piece {
        None => parse_reply(text_of(bytes)?, &options),
        Some(size) => {
            let mut parser = StreamParser::new(options);
            for piece in bytes.chunks(size) {
                parser.push(piece, |_| {});
            }
            parser.finish(|_| {}).map_err(|error| error.to_string())?.reply
        }
    };
    let problem = |block: &MalformedBlock| {
        let MalformedBlock { line, offset, problem, excerpt, .. } = block;
        format!("line {line}, byte {offset}: {problem}\n    {excerpt:?}\n")
    };
    let problems: String = reply.malformed.iter().map(problem).collect();
    let _ = io::stderr().write_all(problems.as_bytes());
    let line = |call: &ToolCall| {
        let line = json!({
            "server_name": call.server,
            "tool_name": call.tool,
            "arguments": call.arguments,
            "id": call.id,
            "repaired": call.repaired,
        });
        format!("{line}\n")
    };
    Ok(reply.calls.iter().map(line).collect())
}

/// Each line on its own, so that one that cannot be read spoils no other.
fn repair(bytes: &[u8]) -> String {
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return String::new();
    }
    let read = |line: &[u8]| std::str::from_utf8(line).ok().and_then(|line| parse_arguments(line).ok());
    lines
        .split(|byte| *byte == b'\n')
        .map(|line| match read(line) {
            Some(read) => format!("{}\n", json!(read.arguments)),
            None => "null\n".to_owned(),
        })
        .collect()
}
