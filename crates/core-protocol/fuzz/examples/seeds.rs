//! Writes a corpus to begin with: every input of the case tables, for the targets that it suits.
//!
//! `cargo run --example seeds`, from the folder `fuzz`.

use core_protocol::{DialectName, ToolCall, render_call};
use serde_json::json;
use std::{fs, io, path::Path};

const REPLIES: [&str; 5] = [
    include_str!("../../tests/it/cases/shared.cases"),
    include_str!("../../tests/it/cases/mcp_xml.cases"),
    include_str!("../../tests/it/cases/hermes.cases"),
    include_str!("../../tests/it/cases/qwen_xml.cases"),
    include_str!("../../tests/it/cases/auto.cases"),
];
const ARGUMENTS: &str = include_str!("../../tests/it/cases/arguments.cases");
const BOXED: &str = include_str!("../../tests/it/cases/boxed.cases");

/// Longest seed, in bytes.
const LONGEST: usize = 2_000;

/// The inputs of a table: what stands between a line `== name` and a line `--`.
fn inputs(table: &str) -> impl Iterator<Item = String> {
    table.split("\n== ").skip(1).filter_map(|case| {
        let (_, rest) = case.split_once('\n')?;
        let end = rest.find("\n--\n").or_else(|| rest.starts_with("--\n").then_some(0))?;
        Some(rest[..end].to_owned()).filter(|input| input.len() <= LONGEST)
    })
}

/// A case that stands for several dialects, written in one.
fn expand(input: &str, dialect: DialectName) -> String {
    let arguments = json!({"q": "</arguments> <think>", "n": 2});
    let call = ToolCall::new("srv", "t1", arguments.as_object().cloned().unwrap_or_default());
    let written = render_call(dialect.dialect(), &call);
    let cut = &written[..written.find("<think").unwrap_or(0)];
    let opener = dialect.dialect().openers()[0];
    let unclosed = written.strip_suffix(opener.closer).unwrap_or(&written);
    let mut expanded = input
        .replace("{open}", opener.literal)
        .replace("{close}", opener.closer)
        .replace("{unclosed}", unclosed)
        .replace("{cut}", cut);
    for name in ["{1}", "{2}", "{3}"] {
        expanded = expanded.replace(name, &written);
    }
    expanded
}

fn write(target: &str, number: usize, head: &[u8], input: &str) -> io::Result<()> {
    let folder = Path::new("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("seed-{number:04}")), [head, input.as_bytes()].concat())
}

fn main() -> io::Result<()> {
    let mut number = 0;
    for (choice, dialect) in (0u8..).zip(DialectName::ALL) {
        for input in REPLIES.iter().flat_map(|table| inputs(table)) {
            let input = expand(&input, dialect);
            // Known tools for every second one, and every tenth for the time it takes.
            let bits = if number % 10 == 9 { 0xE0 } else { (number % 2) as u8 * 16 };
            write("whole_text", number, &[choice | bits], &input)?;
            write("streaming", number, &[choice | bits, 6, 1, 2, 3, 5, 8, 13], &input)?;
            number += 1;
        }
    }
    for (target, table) in [("arguments", ARGUMENTS), ("boxed", BOXED)] {
        for (number, input) in inputs(table).enumerate() {
            write(target, number, &[if number % 10 == 9 { 0xE0 } else { 0 }], &input)?;
        }
    }
    Ok(())
}
