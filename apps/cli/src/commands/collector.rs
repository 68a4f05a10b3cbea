//! Spans of a run for a collector that the environment names. Decides when they are sent: once, when the run has ended
//! and its log is whole; a collector that cannot be reached changes nothing about the run.

use pipeline::log::RunRecord;
use pipeline::{Pipeline, RunReport, trace};

use crate::output::{self, Look, Style};

/// The variables of OpenTelemetry that name a collector, the more special one first.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Sends the run's spans where a collector is named; nothing where none is.
pub(super) async fn tell(pipeline: &Pipeline, report: &RunReport, style: Style) {
    let environment = &pipeline.resolved().environment;
    let Some(endpoint) = ENDPOINTS.iter().find_map(|name| environment.get(name)) else { return };
    let sent = match RunRecord::read(&report.run_dir) {
        Ok(record) => pipeline::telemetry::send(endpoint, &trace::otlp(&record)).await,
        Err(error) => Err(error.to_string()),
    };
    if let Err(problem) = sent {
        let text = format!("The run's spans could not be sent to {endpoint}: {problem}");
        output::note(&style.paint(Look::Warning, &text));
    }
}
