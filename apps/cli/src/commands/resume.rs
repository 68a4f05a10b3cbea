//! `fathom resume`: goes on with an interrupted run; a finished one shows its result again.

use std::path::Path;
use std::process::ExitCode;

use core_protocol::event::RunStatus;
use pipeline::{Opened, RunReport, log::RunRecord};

use super::attend::{attended, tell};
use crate::args::Output;
use crate::environment::Context;
use crate::exit::{self, Failure};
use crate::output::{self, Look, Style};

pub(crate) async fn run(
    context: &Context,
    run_dir: &Path,
    retry_failed: bool,
    style: Style,
) -> Result<ExitCode, Failure> {
    let form = context.common.output;
    let interrupted = match Opened::open(run_dir, retry_failed)? {
        Opened::Finished(report) => return finished(&report, form, style),
        Opened::Interrupted(interrupted) => interrupted,
    };
    let pipeline = context.around.pipeline_of(&interrupted).await?;
    if !style.quiet {
        let line = format!(
            "Going on with {} after {} turns · {} · {}",
            interrupted.run_id(),
            interrupted.turns_done(),
            pipeline.client().provider_name(),
            pipeline.client().model()
        );
        output::note(&style.paint(Look::Dim, &line));
    }
    attended(&pipeline, form, style, |cancel, observer| pipeline.resume(*interrupted, cancel, Some(observer)))
        .await
}

/// The result of a run that is over, and the exit code that it had.
fn finished(report: &RunReport, form: Output, style: Style) -> Result<ExitCode, Failure> {
    output::note(&style.paint(Look::Dim, "This run is finished; this is its result."));
    if form == Output::Events
        && let Some(last) =
            RunRecord::read(&report.run_dir).ok().and_then(|record| record.events.last().cloned())
        && let Ok(line) = serde_json::to_string(&last)
    {
        output::line(&line);
    }
    tell(report, form, style);
    if report.summary.status == RunStatus::Failed {
        output::note(&format!(
            "When the cause is removed: fathom resume --retry-failed {}",
            report.run_dir.display()
        ));
    }
    Ok(exit::of_run(&report.summary).into())
}
