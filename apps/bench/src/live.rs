//! What is shown while a suite runs: a block that is drawn anew on a terminal, plain lines elsewhere.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evaluation::run::{Progress, Tally};
use tokio_util::sync::CancellationToken;

/// Between two blocks on a terminal.
const REDRAW: Duration = Duration::from_millis(500);
/// Between two lines elsewhere, where nothing has ended in the meantime.
const QUIET: Duration = Duration::from_secs(30);

/// Shows the progress of a run until it is told to stop.
pub(crate) async fn show(progress: Arc<Progress>, total: usize, before: usize, stop: CancellationToken) {
    let began = Instant::now();
    let is_terminal = std::io::stderr().is_terminal();
    let (mut drawn, mut told, mut last_line) = (0, before, Instant::now());
    loop {
        let ended = stop.is_cancelled();
        let tally = progress.tally();
        if is_terminal {
            drawn = redraw(&block(&progress, &tally, total, before, began), drawn);
        } else if tally.done() != told || last_line.elapsed() >= QUIET {
            told = tally.done();
            last_line = Instant::now();
            crate::output::note(&line(&tally, total, before, began));
        }
        if ended {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(REDRAW) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Everything in one line.
pub(crate) fn line(tally: &Tally, total: usize, before: usize, began: Instant) -> String {
    let mut text = format!("{}/{total} done", tally.done());
    if tally.judged > 0 {
        let _ = write!(text, " · {}/{} correct", tally.correct, tally.judged);
    }
    if tally.unjudged > 0 {
        let _ = write!(text, " · {} unjudged", tally.unjudged);
    }
    for state in ["no_answer", "limit", "error", "contaminated"] {
        if let Some(count) = tally.states.get(state) {
            let _ = write!(text, " · {count} {}", state.replace('_', " "));
        }
    }
    let _ = write!(text, " · {} turns · {} tokens", tally.turns, tally.tokens);
    if let Some(cost) = tally.cost_usd.filter(|cost| *cost > 0.0) {
        let _ = write!(text, " · ${cost:.4}");
    }
    if let Some(left) = eta(tally.done(), total, before, began) {
        let _ = write!(text, " · {} left", duration(left));
    }
    text
}

fn block(progress: &Progress, tally: &Tally, total: usize, before: usize, began: Instant) -> Vec<String> {
    const WIDTH: usize = 40;
    let filled = WIDTH * tally.done() / total.max(1);
    let mut lines = vec![
        format!("[{}{}]", "#".repeat(filled), ".".repeat(WIDTH.saturating_sub(filled))),
        line(tally, total, before, began),
    ];
    let running = progress.running();
    if !running.is_empty() {
        let slowest: Vec<String> = running
            .iter()
            .take(3)
            .map(|(sample, began)| {
                format!("{} e{} {}", sample.task_id, sample.epoch, duration(began.elapsed()))
            })
            .collect();
        lines.push(format!("{} running, longest: {}", running.len(), slowest.join(", ")));
    }
    lines
}

fn redraw(lines: &[String], drawn: usize) -> usize {
    let mut text = String::new();
    if drawn > 0 {
        let _ = write!(text, "\x1b[{drawn}A");
    }
    text.push_str("\x1b[J");
    for line in lines {
        let short: String = line.chars().take(100).collect();
        text.push_str(&short);
        text.push('\n');
    }
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    lines.len()
}

fn eta(done: usize, total: usize, before: usize, began: Instant) -> Option<Duration> {
    let ended_here = u32::try_from(done.checked_sub(before)?).ok().filter(|count| *count > 0)?;
    let left = u32::try_from(total.checked_sub(done)?).ok().filter(|count| *count > 0)?;
    Some(began.elapsed() / ended_here * left)
}

/// `1 h 02 min`, `3 min 20 s`, `12 s`.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
    }
}
