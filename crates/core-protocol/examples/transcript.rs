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

use core_protocol::{
    DialectName, ParseOptions, ParsedReply, StreamParser, boxed_answer, parse_arguments, parse_reply,
};
use serde_json::json;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

#[derive(Clone, Copy)]
enum Task {
    Calls,
    Boxed,
    Repair,
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
    let mut given = std::env::args().skip(1);
    while let Some(option) = given.next() {
        match option.as_str() {
            "--boxed" => read.task = Task::Boxed,
            "--repair" => read.task = Task::Repair,
            "--starts-in-thinking" => read.starts_in_thinking = true,
            "--accept-unclosed" => read.accept_unclosed = true,
            "--dialect" => {
                let name = given.next().ok_or("--dialect needs a name")?;
                read.dialect = DialectName::from_name(&name)
                    .ok_or_else(|| format!("no dialect `{name}`: use mcp_xml, hermes, qwen_xml or auto"))?;
            }
            "--stream" => {
                let size = given.next().and_then(|size| size.parse().ok()).filter(|size| *size > 0);
                read.piece = Some(size.ok_or("--stream needs a number of bytes above 0")?);
            }
            other => {
                return Err(format!(
                    "no option `{other}`: use --dialect NAME, --stream N, --boxed, --repair, \
                     --starts-in-thinking, --accept-unclosed"
                ));
            }
        }
    }
    Ok(read)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| format!("cannot read the reply: {error}"))?;
    let output = match arguments.task {
        Task::Calls => calls(arguments, &bytes)?,
        Task::Boxed => boxed_answer(text_of(&bytes)?).map(|answer| answer + "\n").unwrap_or_default(),
        Task::Repair => repair(text_of(&bytes)?),
    };
    io::stdout().lock().write_all(output.as_bytes()).map_err(|error| format!("cannot write: {error}"))
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
    for block in &reply.malformed {
        let _ = writeln!(
            io::stderr(),
            "line {}, byte {}: {}\n    {:?}",
            block.line,
            block.offset,
            block.problem,
            block.excerpt
        );
    }
    Ok(reply
        .calls
        .iter()
        .map(|call| {
            let line = json!({
                "server_name": call.server,
                "tool_name": call.tool,
                "arguments": call.arguments,
                "id": call.id,
                "repaired": call.repaired,
            });
            format!("{line}\n")
        })
        .collect())
}

fn repair(text: &str) -> String {
    text.lines()
        .map(|line| match parse_arguments(line) {
            Ok(read) => format!("{}\n", json!(read.arguments)),
            Err(_) => "null\n".to_owned(),
        })
        .collect()
}
