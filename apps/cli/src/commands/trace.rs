//! `fathom trace`: reads a run again, in the forms that people and other programs want.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use core_protocol::event::Event;
use pipeline::log::{LOG_NAME, RunRecord};
use pipeline::{Interrupted, trace};

use crate::args::{ExportForm, Output, TraceCommand};
use crate::environment::Context;
use crate::exit::{Exit, Failure};
use crate::output::{self, Look, Style};

pub(crate) async fn run(context: &Context, command: TraceCommand, style: Style) -> Result<ExitCode, Failure> {
    match command {
        TraceCommand::Show { run } => {
            let record = read(context, &run)?;
            match context.common.output {
                Output::Text => output::text(&trace::story(&record)),
                Output::Json => output::result(&summary(&record)),
                Output::Events => record.events.iter().for_each(event_line),
            }
            Ok(Exit::Done.into())
        }
        TraceCommand::Export { run, to, out, endpoint } => {
            let record = read(context, &run)?;
            export(&record, to, out.as_deref(), endpoint.as_deref(), style).await
        }
        TraceCommand::Replay { run } => {
            let record = read(context, &run)?;
            let events = record.events.clone();
            let again = Interrupted::again(record)?;
            let pipeline = context.around.pipeline_of(&again).await?;
            let replayed = pipeline.replay(again).await?;
            match context.common.output {
                Output::Events => events.iter().for_each(event_line),
                Output::Json => output::result(&serde_json::json!({
                    "events": replayed.events,
                    "finished": replayed.finished,
                })),
                Output::Text => {
                    let end = if replayed.finished { "to its end" } else { "to where its log ends" };
                    output::line(&format!(
                        "The run was driven again {end} without network: {} events, each as the log has it.",
                        replayed.events
                    ));
                }
            }
            Ok(Exit::Done.into())
        }
    }
}

/// A run by its directory, or by its id below the folder of runs.
fn read(context: &Context, run: &Path) -> Result<RunRecord, Failure> {
    let below = context.common.runs_dir.join(run);
    let dir = match run.file_name() {
        Some(name) if name == LOG_NAME => run.parent().map_or_else(PathBuf::new, Path::to_owned),
        _ if !run.join(LOG_NAME).is_file() && below.join(LOG_NAME).is_file() => below,
        _ => run.to_owned(),
    };
    Ok(RunRecord::read(&dir).map_err(pipeline::PipelineError::from)?)
}

fn summary(record: &RunRecord) -> serde_json::Value {
    pipeline::report_of(record).and_then(|report| serde_json::to_value(report).ok()).unwrap_or_else(|| {
        serde_json::json!({
            "run_id": record.run_id,
            "run_dir": record.dir,
            "status": serde_json::Value::Null,
            "events": record.events.len(),
        })
    })
}

fn event_line(event: &Event) {
    if let Ok(line) = serde_json::to_string(event) {
        output::line(&line);
    }
}

async fn export(
    record: &RunRecord,
    to: ExportForm,
    file: Option<&Path>,
    endpoint: Option<&str>,
    style: Style,
) -> Result<ExitCode, Failure> {
    if endpoint.is_some() && to != ExportForm::Otlp {
        return Err(Failure::usage(
            "usage",
            "--endpoint belongs to --to otlp",
            "Leave it out, or export to otlp.",
        ));
    }
    let pretty = |value: &serde_json::Value| format!("{value:#}\n");
    let text = match to {
        ExportForm::Mirothinker => pretty(&trace::mirothinker(record, &trace::Judgement::default())),
        ExportForm::Chatml => trace::chatml(record),
        ExportForm::Sharegpt => trace::sharegpt(record),
        ExportForm::Markdown => trace::markdown(record),
        ExportForm::Otlp => {
            let spans = trace::otlp(record);
            if let Some(endpoint) = endpoint {
                send(endpoint, &spans).await?;
                output::note(&style.paint(Look::Good, &format!("The run's spans were sent to {endpoint}.")));
                if file.is_none() {
                    return Ok(Exit::Done.into());
                }
            }
            pretty(&spans)
        }
    };
    match file {
        Some(file) => {
            std::fs::write(file, &text).with_context(|| format!("{} cannot be written", file.display()))?;
        }
        None => output::text(&text),
    }
    Ok(Exit::Done.into())
}

/// Sends spans to a collector. An address without a path gets the standard one.
async fn send(endpoint: &str, spans: &serde_json::Value) -> Result<(), Failure> {
    let refused = |problem: String| {
        Failure::usage(
            "otlp",
            format!("the spans could not be sent to {endpoint}: {problem}"),
            "Give the address of a collector that takes OTLP over HTTP with JSON, such as http://127.0.0.1:4318.",
        )
    };
    pipeline::telemetry::send(endpoint, spans).await.map_err(refused)
}
