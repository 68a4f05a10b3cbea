//! `status`: how far a run has come, from its folder alone, so that it can be watched from anywhere.

use std::time::{Duration, SystemTime};

use console::Term;
use evaluation::report::Report;
use evaluation::run::{is_at_work, read_run, run_folder, running_samples};
use evaluation::sample::{Row, SampleId};

use super::import::refuse_imported;
use crate::Exit;
use crate::args::StatusArgs;
use crate::live::{Picture, Running, Screen};
use crate::output::{self, note};

/// Between two looks at the folder.
const LOOK: Duration = Duration::from_secs(1);

/// Shows how far a run has come; with `--watch` until it is done, or nobody works on it any more.
pub(crate) async fn status(arguments: &StatusArgs) -> anyhow::Result<Exit> {
    let mut screen = Screen::stdout();
    loop {
        // Looked at first: whoever ends its work has written its rows before.
        let at_work = is_at_work(&arguments.dir);
        let (header, rows) = read_run(&arguments.dir)?;
        let report = Report::new(header, &rows, true);
        let picture = picture(arguments, &report, &rows, at_work);
        if !arguments.watch && !Term::stdout().is_term() {
            output::result(&format!("{}\n", picture.line()), None)?;
        } else {
            screen.show(&picture);
        }
        let is_left = !report.complete && !at_work;
        if is_left && refuse_imported(&report.header, &arguments.dir).is_ok() {
            note(&format!(
                "nobody is at work in {dir}; go on with: fathom-bench resume {dir}",
                dir = arguments.dir.display()
            ));
        }
        if arguments.watch && is_left {
            return Ok(Exit::Interrupted);
        }
        if !arguments.watch || report.complete {
            return Ok(Exit::Done);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn picture(arguments: &StatusArgs, report: &Report, rows: &[Row], at_work: bool) -> Picture {
    let header = &report.header;
    let mut picture = Picture {
        title: format!("{} · {} ({}) · judge {}", header.suite, header.model, header.provider, header.judge),
        total: report.selected,
        any_of: header.stop_on_pass.and_then(|epochs| usize::try_from(epochs).ok()),
        ..Picture::default()
    };
    rows.iter().for_each(|row| picture.tally.add(row));
    // What nobody works on is not under way, however far it got.
    if !at_work || report.complete {
        return picture;
    }
    let now = SystemTime::now();
    let running = running_samples(&arguments.dir, rows).into_iter().map(|(folder, began)| {
        let since = began.and_then(|began| now.duration_since(began).ok());
        Running { name: sample_in(&folder, &header.task_ids).unwrap_or(folder), since }
    });
    picture.running = running.collect();
    picture.running.sort_by_key(|running| std::cmp::Reverse(running.since));
    picture.pace = pace(rows, picture.running.len());
    picture
}

/// The sample whose run is kept in a folder, as it is called elsewhere.
fn sample_in(folder: &str, task_ids: &[String]) -> Option<String> {
    let epoch: u32 = folder.rsplit_once("-e")?.1.parse().ok()?;
    let task_id = task_ids.iter().find(|task_id| {
        let sample = SampleId { task_id: (*task_id).clone(), epoch };
        run_folder(&sample) == folder
    })?;
    Some(format!("{task_id} e{epoch}"))
}

/// From the end of one sample to the end of the next: what the latest ones took, shared by those under way. Their times
/// of day say nothing where a run was interrupted, or where the first ones ended together.
fn pace(rows: &[Row], running: usize) -> Option<Duration> {
    const LATEST: usize = 50;
    let mut latest: Vec<&Row> = rows.iter().collect();
    latest.sort_by_key(|row| std::cmp::Reverse(evaluation::run::time_of(&row.ended)));
    latest.truncate(LATEST);
    let count = u32::try_from(latest.len()).ok().filter(|count| *count > 0)?;
    let took: u64 = latest.iter().map(|row| row.wall_ms).sum();
    Some(Duration::from_millis(took) / count / u32::try_from(running.max(1)).ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(epoch: u32, wall_ms: u64) -> Row {
        let row = json!({
            "task_id": "a", "epoch": epoch, "state": "answered", "correct": true, "answer": "1", "ground_truth": "1",
            "judgement": {"judged": "exact", "tier": "equal"}, "stop_reason": "completed", "capped": false,
            "passes": 1, "turns": 1, "rollbacks": 0, "tool_calls": 0,
            "usage": {"input": 1, "output": 1, "cache_read": 0, "cache_write": 0}, "cost_usd": null,
            "wall_ms": wall_ms, "working_ms": wall_ms, "run_id": "r", "run_dir": "runs/r",
            "ended": "2026-01-01T00:00:00Z",
        });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn samples_by_their_folders() {
        let task_ids = ["a", "日本 1"].map(str::to_owned);
        for (task_id, epoch) in [("a", 1), ("日本 1", 12)] {
            let sample = SampleId { task_id: task_id.to_owned(), epoch };
            assert_eq!(sample_in(&run_folder(&sample), &task_ids), Some(format!("{task_id} e{epoch}")));
        }
        assert_eq!(sample_in("b-e1", &task_ids), None);
    }

    #[test]
    fn the_pace_of_samples_that_ended_together() {
        let rows: Vec<Row> = (1..=4).map(|epoch| row(epoch, 8_000)).collect();
        assert_eq!(pace(&rows, 4), Some(Duration::from_secs(2)));
        assert_eq!(pace(&rows, 0), Some(Duration::from_secs(8)));
        assert_eq!(pace(&[], 4), None);
    }
}
