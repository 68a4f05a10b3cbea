//! A run that somebody waits for. Decides what is shown of it in each form of output, while it goes on and at its
//! end, and what a signal does to it.

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use core_protocol::event::{Event, RunStatus};
use pipeline::signals::EndSignals;
use pipeline::{CassetteReport, Pipeline, PipelineError, RunReport, log::Observer};
use tokio_util::sync::CancellationToken;

use super::collector;
use crate::args::Output;
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Look, Style};
use crate::progress::Progress;

/// Starts a run with what shows it and what stops it, and tells how it ended.
pub(super) async fn attended<R>(
    pipeline: &Pipeline,
    form: Output,
    style: Style,
    run: impl FnOnce(CancellationToken, Box<Observer>) -> R,
) -> Result<ExitCode, Failure>
where
    R: Future<Output = Result<RunReport, PipelineError>>,
{
    let progress = Arc::new(Progress::new(style, pipeline.config().agent.main_agent.max_turns));
    let shown = Arc::clone(&progress);
    let observer = Box::new(move |event: &Event, line: &str| {
        shown.show(event);
        if form == Output::Events {
            output::line(line);
        }
    });
    let cancel = CancellationToken::new();
    stop_on_signal(cancel.clone());
    let result = run(cancel, observer).await;
    progress.finish();
    let report = result?;
    tell(&report, form, style);
    collector::tell(pipeline, &report, style).await;
    Ok(exit::of_run(&report.summary).into())
}

/// The first Ctrl-C, or whatever else asks for it, ends the run in order; a second one ends the program.
fn stop_on_signal(cancel: CancellationToken) {
    let mut signals = EndSignals::listen();
    tokio::spawn(async move {
        signals.next().await;
        cancel.cancel();
        signals.next().await;
        std::process::exit(Exit::Interrupted as i32);
    });
}

pub(super) fn tell(report: &RunReport, form: Output, style: Style) {
    let summary = &report.summary;
    if form == Output::Json {
        match serde_json::to_value(report) {
            Ok(value) => output::result(&value),
            Err(error) => output::note(&format!("the result cannot be written as JSON: {error}")),
        }
    }
    if let Some(error) = &summary.error {
        output::error(style, error);
    }
    if form == Output::Text {
        // A report is the answer itself.
        if summary.status == RunStatus::Answered
            && summary.citations.is_none()
            && !style.quiet
            && let Some(text) = &summary.final_text
        {
            output::note(&format!("\n{}\n", output::harmless(text.trim())));
        }
        if let Some(answer) = &summary.answer {
            output::line(&output::harmless(answer));
        }
    }
    if let Some(citations) = summary.citations.as_ref().filter(|citations| !citations.unknown.is_empty()) {
        output::note(&style.paint(
            Look::Warning,
            &format!(
                "{} of {} citations name sources that the run never saw; they are marked in the report.",
                citations.total.saturating_sub(citations.verified),
                citations.total
            ),
        ));
    }
    if let Some(cassette) = &report.cassette {
        tell_cassette(cassette, style);
    }
    match summary.status {
        RunStatus::Answered if summary.capped => {
            output::note(&style.paint(
                Look::Warning,
                "The run was cut short by a limit; the answer is a guess from what it had found.",
            ));
        }
        RunStatus::NoAnswer => output::note(&style.paint(Look::Warning, "The run ended without an answer.")),
        RunStatus::Cancelled => {
            output::note(&format!("Interrupted. Go on with: fathom resume {}", report.run_dir.display()));
        }
        RunStatus::Answered | RunStatus::Failed => {}
    }
    if !style.quiet && summary.status != RunStatus::Cancelled {
        output::note(&style.paint(Look::Dim, &format!("log: {}/events.jsonl", report.run_dir.display())));
    }
}

fn tell_cassette(cassette: &CassetteReport, style: Style) {
    let path = cassette.path.display();
    if !cassette.unused.is_empty() {
        const SHOWN: usize = 10;
        let some = cassette.unused.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("\n  ");
        let more = match cassette.unused.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("\n  and {more} more"),
        };
        let line = format!("Recorded in {path} and not asked for by the replay:\n  {some}{more}");
        output::note(&style.paint(Look::Warning, &output::harmless(&line)));
    }
    if cassette.mode == "record" && !style.quiet {
        output::note(&style.paint(Look::Dim, &format!("recorded: {path}")));
    }
}
