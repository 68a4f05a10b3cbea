//! What tools cost, from the benchmarks of `mcp-tools`: a call on an open session beside a server that is started for
//! every call, and a sandbox. Prints ratios to the aims, never a verdict.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::shell;

/// A figure of a benchmark: what it is, the benchmark with its argument, and the aim.
const FIGURES: &[(&str, &str, Option<&str>, Duration)] = &[
    ("a call in-process, on an open session", "call_in_process", Some("10"), Duration::from_micros(150)),
    ("a call over stdio, on an open session", "call_over_stdio", Some("10"), Duration::from_micros(300)),
    // What the reference takes for this with a bare Python server.
    ("a server started for one call", "start_call_and_end_over_stdio", None, Duration::from_millis(380)),
    ("a sandbox: start, one call, end", "start_run_and_end", None, Duration::from_millis(100)),
    ("a call into a live interpreter", "call_into_a_live_interpreter", None, Duration::from_millis(5)),
];

pub fn run(print: impl Fn(&str, Duration, Duration)) -> anyhow::Result<()> {
    let output = Command::new(env!("CARGO"))
        .args(["bench", "--locked", "--package", "mcp-tools", "--bench", "calls", "--bench", "sandbox"])
        .current_dir(shell::root())
        .output()
        .context("cargo does not start")?;
    if !output.status.success() {
        bail!("cargo bench failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let table = String::from_utf8_lossy(&output.stdout);
    for (what, bench, argument, aim) in FIGURES {
        let took = median(&table, bench, *argument).with_context(|| format!("{bench} printed no median"))?;
        print(what, took, *aim);
    }
    Ok(())
}

/// The median of a benchmark in the table that `divan` prints: the third of its columns.
fn median(table: &str, bench: &str, argument: Option<&str>) -> Option<Duration> {
    let name = |line: &str| {
        line.trim_start_matches(['├', '╰', '─', '│', ' ']).split_whitespace().next().map(str::to_owned)
    };
    let mut lines = table.lines().skip_while(|line| name(line).as_deref() != Some(bench));
    let line = match argument {
        None => lines.next()?,
        Some(argument) => lines.find(|line| name(line).as_deref() == Some(argument))?,
    };
    let column = line.rsplit('│').nth(3)?;
    let mut words = column.split_whitespace();
    let (number, unit): (f64, &str) = (words.next()?.parse().ok()?, words.next()?);
    let seconds = match unit {
        "ns" => 1e-9,
        "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * seconds).ok()
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
                     ╰─ start_one     7.2 ms        │ 9.264 ms      │ 8 ms          │ 8.06 ms       │ 20      │ 20\n";
        for (bench, argument, expected) in [
            ("call_in_process", Some("10"), Some(Duration::from_nanos(71_310))),
            ("call_in_process", Some("10000"), Some(Duration::from_nanos(91_310))),
            ("start_one", None, Some(Duration::from_millis(8))),
            ("absent", None, None),
        ] {
            assert_eq!(median(table, bench, argument), expected, "{bench}");
        }
    }
}
