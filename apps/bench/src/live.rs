//! What is shown while a suite runs: a block that is drawn anew on a terminal, plain lines elsewhere. The same picture
//! for whoever runs the suite and for whoever watches its folder.

mod picture;

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use console::Term;
use evaluation::run::Progress;
use tokio_util::sync::CancellationToken;

pub(crate) use picture::{Picture, Running};

/// Between two blocks on a terminal.
const REDRAW: Duration = Duration::from_millis(500);
/// Between two lines elsewhere, where nothing has ended in the meantime.
const QUIET: Duration = Duration::from_secs(30);

/// Shows one picture after the other.
pub(crate) struct Screen {
    terminal: Term,
    can_redraw: bool,
    drawn: usize,
    told: Option<(String, Instant)>,
}

impl Screen {
    /// On standard error, where a run tells how it goes.
    pub(crate) fn stderr() -> Self {
        Self::on(Term::stderr())
    }

    /// On standard output, where the picture is what was asked for.
    pub(crate) fn stdout() -> Self {
        Self::on(Term::stdout())
    }

    fn on(terminal: Term) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        let can_redraw = terminal.is_term() && !is_dumb;
        Self { terminal, can_redraw, drawn: 0, told: None }
    }

    /// Draws the picture in the place of the last one; elsewhere a line, where it says something new or nothing was
    /// said for long.
    pub(crate) fn show(&mut self, picture: &Picture) {
        if self.can_redraw {
            let (height, width) = self.terminal.size();
            let lines = picture.block(usize::from(width), usize::from(height).saturating_sub(2));
            self.redraw(&lines);
            return;
        }
        let line = picture.line();
        let key = picture.news();
        let is_news = self.told.as_ref().is_none_or(|(told, at)| *told != key || at.elapsed() >= QUIET);
        if is_news {
            let _ = writeln!(&self.terminal, "{line}");
            self.told = Some((key, Instant::now()));
        }
    }

    fn redraw(&mut self, lines: &[String]) {
        let mut text = String::new();
        if self.drawn > 0 {
            text.push_str(&format!("\x1b[{}A", self.drawn));
        }
        text.push_str("\r\x1b[J");
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        let _ = (&self.terminal).write_all(text.as_bytes());
        self.drawn = lines.len();
    }
}

/// What does not change while a run goes on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    /// The suite, the model and the judge in words.
    pub(crate) title: String,
    /// Samples of the run, those included that tasks with a right epoch will not need.
    pub(crate) total: usize,
    /// Samples that had ended before this part of the run.
    pub(crate) before: usize,
    /// Epochs of a task that ends with its first right one.
    pub(crate) any_of: Option<usize>,
}

/// Shows the progress of a run until it is told to stop.
pub(crate) async fn show(progress: Arc<Progress>, frame: Frame, stop: CancellationToken) {
    let began = Instant::now();
    let mut screen = Screen::stderr();
    loop {
        let ended = stop.is_cancelled();
        let tally = progress.tally();
        let running = progress.running().into_iter().map(|(sample, began)| Running {
            name: format!("{} e{}", sample.task_id, sample.epoch),
            since: Some(began.elapsed()),
        });
        let here = tally.done().saturating_sub(frame.before);
        let mut picture = Picture {
            title: frame.title.clone(),
            total: frame.total,
            any_of: frame.any_of,
            running: running.collect(),
            pace: u32::try_from(here).ok().filter(|here| *here > 0).map(|here| began.elapsed() / here),
            tally,
        };
        if let Some(epochs) = frame.any_of {
            picture.total = picture.total.saturating_sub(picture.spared(epochs)).max(picture.tally.done());
        }
        screen.show(&picture);
        if ended {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(REDRAW) => {}
            () = stop.cancelled() => {}
        }
    }
}
