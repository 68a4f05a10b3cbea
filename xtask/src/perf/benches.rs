//! Figures from the benchmarks, examples and simulations of the crates. Decides which of them are shown and beside
//! which aims; what they measure is theirs.

use std::process::Command;

use anyhow::{Context as _, bail};

use super::built::Built;
use super::table::{Beside, figure, section};
use crate::shell;

/// A benchmark's figure: what it is, the benchmark with its argument, how it is shown.
struct Figure(&'static str, &'static str, Option<&'static str>, Shown);

/// How a figure is shown.
enum Shown {
    /// Microseconds.
    Micros(Beside),
    /// Milliseconds.
    Millis(Beside),
    /// Megabytes a second.
    Rate(Beside),
}

use Beside::{AtLeast, AtMost};
use Shown::{Micros, Millis, Rate};

/// The benchmarks that one section shows.
struct Group {
    title: &'static str,
    benches: &'static [&'static str],
    figures: &'static [Figure],
}

const GROUPS: &[Group] = &[
    Group {
        title: "Tools",
        benches: &["calls", "sandbox"],
        figures: &[
            Figure(
                "a call in-process, on an open session",
                "call_in_process",
                Some("10"),
                Micros(AtMost(150.0)),
            ),
            Figure(
                "a call over stdio, on an open session",
                "call_over_stdio",
                Some("10"),
                Micros(AtMost(300.0)),
            ),
            // The reference starts a Python process a call: 380 ms.
            Figure(
                "a server of ours started for one call, as the reference does",
                "start_call_and_end_over_stdio",
                None,
                Micros(Beside::ReferenceTakes(380_000.0)),
            ),
            Figure("a sandbox: start, one call, end", "start_run_and_end", None, Millis(AtMost(100.0))),
            Figure(
                "a call into a live interpreter",
                "call_into_a_live_interpreter",
                None,
                Millis(AtMost(5.0)),
            ),
        ],
    },
    Group {
        title: "Parser",
        benches: &["throughput"],
        figures: &[
            Figure(
                "calls found in 1 MB of prose, mcp_xml",
                "whole::prose_1mb",
                Some("McpXml"),
                Rate(AtLeast(5_000.0)),
            ),
            Figure(
                "calls found in 1 MB of prose, auto",
                "whole::prose_1mb",
                Some("Auto"),
                Rate(AtLeast(1_000.0)),
            ),
            Figure(
                "half of it thinking, mcp_xml",
                "whole::half_thinking_1mb",
                Some("McpXml"),
                Rate(AtLeast(1_000.0)),
            ),
            Figure(
                "100 KB with one call at the end",
                "whole::call_at_the_end_of_100kb",
                None,
                Micros(AtMost(25.0)),
            ),
            Figure(
                "20,000 openers without end",
                "hostile::unclosed_openers",
                Some("20000"),
                Millis(AtMost(5.0)),
            ),
            Figure(
                "8 KB of calls without end",
                "hostile::calls_without_closer",
                Some("8000"),
                Millis(AtMost(5.0)),
            ),
            Figure(
                "a call without end and 100 KB of blanks",
                "hostile::unclosed_call_and_blanks",
                Some("100000"),
                Millis(AtMost(5.0)),
            ),
            Figure(
                "streamed prose in pieces of 4 bytes",
                "streamed::prose_100kb",
                Some("4"),
                Rate(AtLeast(100.0)),
            ),
            Figure(
                "streamed prose in pieces of 4 KB",
                "streamed::prose_100kb",
                Some("4096"),
                Rate(Beside::None),
            ),
            Figure(
                "a large call in pieces of 4 bytes",
                "streamed::one_large_call_100kb",
                Some("4"),
                Rate(AtLeast(100.0)),
            ),
            Figure("repair of records", "arguments::repair_records", None, Rate(AtLeast(150.0))),
            Figure("repair of a long text", "arguments::repair_long_string", None, Rate(AtLeast(150.0))),
            Figure("the last box of 100 KB", "boxed::last_of_100kb", None, Micros(AtMost(50.0))),
        ],
    },
    Group {
        title: "Wire and token counts",
        benches: &["wire", "counting"],
        figures: &[
            Figure(
                "an event stream of 1 MB, socket to observer",
                "event_stream_1mb",
                Some("Chat"),
                Rate(AtLeast(200.0)),
            ),
            Figure("a request of 400 messages", "body_of_400_messages", Some("Chat"), Millis(Beside::None)),
            Figure(
                "8 KB counted that join a history of 10 turns",
                "message_added_to_a_history_of_turns",
                Some("10"),
                Micros(Beside::None),
            ),
            Figure(
                "8 KB counted that join a history of 200 turns",
                "message_added_to_a_history_of_turns",
                Some("200"),
                Micros(Beside::None),
            ),
        ],
    },
];

/// Every section of benchmarks.
pub fn run(built: &Built) -> anyhow::Result<()> {
    for group in GROUPS {
        let table = table_of(built, group)?;
        section(group.title);
        for Figure(what, bench, argument, shown) in group.figures {
            let read =
                read(&table, bench, *argument).with_context(|| format!("{bench} printed no median"))?;
            let rate = || read.megabytes.with_context(|| format!("{bench} printed no rate"));
            match shown {
                Micros(beside) => figure(what, read.seconds * 1e6, "µs", *beside),
                Millis(beside) => figure(what, read.seconds * 1e3, "ms", *beside),
                Rate(beside) => figure(what, rate()?, "MB/s", *beside),
            }
        }
    }
    Ok(())
}

fn table_of(built: &Built, group: &Group) -> anyhow::Result<String> {
    let mut names: Vec<&str> = group.figures.iter().map(|Figure(_, bench, ..)| *bench).collect();
    names.dedup();
    let mut tables = String::new();
    for bench in group.benches {
        // Only what is shown, and none of it for long.
        let mut command = Command::new(built.program(bench)?);
        tables.push_str(&output(command.args(["--bench", "--max-time", "1"]).args(&names))?);
    }
    Ok(tables)
}

/// The figures that an example prints.
pub fn example(built: &Built, title: &str, example: &str) -> anyhow::Result<()> {
    let said = output(&mut Command::new(built.program(example)?))?;
    section(title);
    lines(&said);
    Ok(())
}

/// What the loop itself costs as a run grows longer, and a thousand agents in one process. A shell raises the limit on
/// open files: each agent has a connection at both ends.
pub fn agents(built: &Built) -> anyhow::Result<()> {
    let bench = built.program("agents")?;
    let said = output(Command::new("sh").args(["-c", "ulimit -n 8192; exec \"$0\" --bench"]).arg(bench))?;
    section("The loop alone, model and tools not counted");
    lines(&said);
    Ok(())
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = shell::quietly(command)?;
    if !output.status.success() {
        bail!("{command:?} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Lines that are figures by themselves: `what <tab> value <tab> unit`, and `at most` or `at least` with an aim after
/// another tab. Other lines are left out.
fn lines(said: &str) {
    for line in said.lines() {
        let mut parts = line.split('\t');
        let (Some(what), Some(value), Some(unit)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Ok(value) = value.parse() else { continue };
        let aim = parts.next().and_then(|aim| {
            let (kind, aim) = aim.rsplit_once(' ')?;
            let aim = aim.parse().ok()?;
            match kind {
                "at most" => Some(AtMost(aim)),
                "at least" => Some(AtLeast(aim)),
                "reference" => Some(Beside::ReferenceTakes(aim)),
                _ => None,
            }
        });
        figure(what, value, unit, aim.unwrap_or(Beside::None));
    }
}

/// The median of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Median {
    seconds: f64,
    /// Millions of bytes a second, where the benchmark counts bytes.
    megabytes: Option<f64>,
}

/// A benchmark's median in the table that `divan` prints: the third of its columns. Modules are parts of its name.
fn read(table: &str, bench: &str, argument: Option<&str>) -> Option<Median> {
    let mut lines = table.lines().peekable();
    for part in bench.split("::").chain(argument) {
        loop {
            if name(lines.peek()?) == Some(part) {
                break;
            }
            lines.next();
        }
    }
    let seconds = quantity(column(lines.next()?)?)?;
    let megabytes = lines.next().filter(|line| is_counter(line)).and_then(column).and_then(quantity);
    Some(Median { seconds, megabytes })
}

/// The first word of a line behind the branches of the tree.
fn name(line: &str) -> Option<&str> {
    line.trim_start_matches(['├', '╰', '─', '│', ' ']).split_whitespace().next()
}

/// Whether a line says what the line before it comes to in bytes a second.
fn is_counter(line: &str) -> bool {
    column(line).is_some_and(|column| column.ends_with("B/s"))
}

fn column(line: &str) -> Option<&str> {
    line.rsplit('│').nth(3).map(str::trim)
}

/// Seconds, or millions of bytes a second.
fn quantity(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let (number, unit): (f64, &str) = (words.next()?.parse().ok()?, words.next()?);
    let scale = match unit {
        "ns" => 1e-9,
        "µs" | "B/s" => 1e-6,
        "ms" | "KB/s" => 1e-3,
        "s" | "MB/s" => 1.0,
        "GB/s" => 1e3,
        _ => return None,
    };
    Some(number * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_found_in_the_table() {
        let table = "calls                fastest       │ slowest       │ median        │ mean          │ samples │ iters\n\
                     ├─ call_in_process                │               │               │               │         │\n\
                     │  ├─ 10         61.2 µs       │ 1.264 ms      │ 71.31 µs      │ 84.06 µs      │ 100     │ 100\n\
                     │  ╰─ 10000      71.2 µs       │ 1.264 ms      │ 91.31 µs      │ 84.06 µs      │ 100     │ 100\n\
                     ├─ whole                       │               │               │               │         │\n\
                     │  ╰─ prose                    │               │               │               │         │\n\
                     │     ├─ McpXml  150.1 µs      │ 297.2 µs      │ 200 µs        │ 170.2 µs      │ 100     │ 100\n\
                     │     │          6.661 GB/s    │ 3.365 GB/s    │ 5 GB/s        │ 5.875 GB/s    │         │\n\
                     │     ╰─ Auto    150.1 µs      │ 297.2 µs      │ 400 µs        │ 170.2 µs      │ 100     │ 100\n\
                     │                661.1 MB/s    │ 3.365 GB/s    │ 700.5 MB/s    │ 5.875 GB/s    │         │\n\
                     ╰─ start_one     7.2 ms        │ 9.264 ms      │ 8 ms          │ 8.06 ms       │ 20      │ 20\n";
        for (bench, argument, expected) in [
            ("call_in_process", Some("10"), Some((71.31e-6, None))),
            ("call_in_process", Some("10000"), Some((91.31e-6, None))),
            ("whole::prose", Some("McpXml"), Some((200e-6, Some(5_000.0)))),
            ("whole::prose", Some("Auto"), Some((400e-6, Some(700.5)))),
            ("start_one", None, Some((8e-3, None))),
            ("absent", None, None),
        ] {
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
            let found = read(table, bench, argument);
            match (found, expected) {
                (None, None) => {}
                (Some(found), Some((seconds, megabytes))) => {
                    assert!(near(found.seconds, seconds), "{bench}: {found:?}");
                    assert_eq!(found.megabytes.map(f64::round), megabytes.map(f64::round), "{bench}");
                }
                other => panic!("{bench}: {other:?}"),
            }
        }
    }
}
