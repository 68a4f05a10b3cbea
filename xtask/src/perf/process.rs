//! What a program took of the machine, as the kernel tells it. Linux only; elsewhere there are no figures.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// Ticks of a second in which the kernel counts processor time for programs.
const TICKS: f64 = 100.0;

/// What a program came to.
pub struct Ran {
    /// How it ended.
    pub status: ExitStatus,
    /// From its start to its end.
    pub wall: Duration,
    /// Processor time of its own and of its children, in seconds.
    pub cpu: f64,
    /// Processor time of this program meanwhile, in seconds.
    pub our_cpu: f64,
    /// The most memory that it held, in bytes; looked at every few milliseconds.
    pub peak_memory: u64,
}

/// Runs a program to its end.
pub fn run(command: &mut Command) -> anyhow::Result<Ran> {
    let (ours, children) = processor_time()?;
    let began = Instant::now();
    let mut child = command.spawn().context("the program does not start")?;
    let mut peak_memory = 0;
    let status = loop {
        peak_memory = peak_memory.max(most_memory(&child));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let wall = began.elapsed();
    let (ours_now, children_now) = processor_time()?;
    Ok(Ran { status, wall, cpu: children_now - children, our_cpu: ours_now - ours, peak_memory })
}

/// Seconds of this program, and of those of its children that have ended.
fn processor_time() -> anyhow::Result<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/self/stat").context("/proc is not there")?;
    // The name of the program is in parentheses and may hold anything; numbers follow it, the state first.
    let numbers = text.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> =
        numbers.split_whitespace().skip(11).take(4).filter_map(|n| n.parse().ok()).collect();
    match ticks[..] {
        [user, system, of_children, of_children_in_kernel] => {
            Ok(((user + system) / TICKS, (of_children + of_children_in_kernel) / TICKS))
        }
        _ => anyhow::bail!("/proc/self/stat has another form"),
    }
}

fn most_memory(child: &Child) -> u64 {
    let file = PathBuf::from(format!("/proc/{}/status", child.id()));
    let status = std::fs::read_to_string(file).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kilobytes.unwrap_or(0) * 1024
}
