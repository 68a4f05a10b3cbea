//! `status`: how far a run has come, from its folder alone, so that it can be watched from anywhere.

use std::time::{Duration, SystemTime};

use console::Term;
use evaluation::report::Report;
use evaluation::run::{is_at_work, read_run, running_samples};
use evaluation::sample::Row;

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
        let picture = picture(arguments, &report, &rows);
        if !arguments.watch && !Term::stdout().is_term() {
            output::result(&format!("{}\n", picture.line()), None)?;
        } else {
            screen.show(&picture);
        }
        if arguments.watch && !report.complete && !at_work {
            note(&format!(
                "nobody is at work in {dir}; go on with: fathom-bench resume {dir}",
                dir = arguments.dir.display()
            ));
            return Ok(Exit::Interrupted);
        }
        if !arguments.watch || report.complete {
            return Ok(Exit::Done);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn picture(arguments: &StatusArgs, report: &Report, rows: &[Row]) -> Picture {
    let header = &report.header;
    let mut picture = Picture {
        title: format!("{} · {} ({}) · judge {}", header.suite, header.model, header.provider, header.judge),
        total: report.selected,
        any_of: header.stop_on_pass.and_then(|epochs| usize::try_from(epochs).ok()),
        pace: pace(rows),
        ..Picture::default()
    };
    rows.iter().for_each(|row| picture.tally.add(row));
    let now = SystemTime::now();
    let running = running_samples(&arguments.dir, rows).into_iter().map(|(name, began)| {
        let since = began.and_then(|began| now.duration_since(began).ok());
        Running { name, since }
    });
    picture.running = running.collect();
    picture.running.sort_by_key(|running| std::cmp::Reverse(running.since));
    picture
}

/// From the end of one sample to the end of the next, of the latest ones.
fn pace(rows: &[Row]) -> Option<Duration> {
    const LATEST: usize = 50;
    let mut ends: Vec<SystemTime> =
        rows.iter().filter_map(|row| evaluation::run::time_of(&row.ended)).collect();
    ends.sort_unstable();
    let latest = ends.get(ends.len().saturating_sub(LATEST)..)?;
    let (first, last) = (latest.first()?, latest.last()?);
    let gaps = u32::try_from(latest.len() - 1).ok().filter(|gaps| *gaps > 0)?;
    Some(last.duration_since(*first).ok()? / gaps)
}
