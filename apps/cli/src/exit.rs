//! How the program ends: exit codes, and an error as one paragraph or as one JSON object.

use std::process::ExitCode;

use core_protocol::event::{ErrorReport, RunStatus, RunSummary};
use pipeline::{ErrorClass, PipelineError, config::ConfigErrors};

use serde_json::{Value, json};

use crate::args::Output;
use crate::output::{self, Style};

/// Exit codes of `fathom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; for `ask`: answered.
    Done = 0,
    /// A provider, a tool server or the machine failed.
    Failed = 1,
    /// What was typed or configured cannot be done.
    Usage = 2,
    /// The run ended without an answer.
    NoAnswer = 3,
    /// A limit was reached; there is an answer.
    Capped = 4,
    /// Interrupted.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The code of a finished run.
pub(crate) const fn of_run(summary: &RunSummary) -> Exit {
    match summary.status {
        RunStatus::Answered if summary.capped => Exit::Capped,
        RunStatus::Answered => Exit::Done,
        RunStatus::NoAnswer => Exit::NoAnswer,
        RunStatus::Failed => Exit::Failed,
        RunStatus::Cancelled => Exit::Interrupted,
    }
}

/// An error that ends the program.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// One or more problems, each a paragraph.
    reports: Vec<ErrorReport>,
}

impl Failure {
    /// The machine failed in a way that no part of the program foresaw.
    pub(crate) fn internal(error: anyhow::Error) -> Self {
        let report = ErrorReport { kind: "io".to_owned(), message: format!("{error:#}"), hint: None };
        Self { exit: Exit::Failed, reports: vec![report] }
    }

    /// What was typed cannot be done.
    pub(crate) fn usage(kind: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let report = ErrorReport { kind: kind.to_owned(), message: message.into(), hint: Some(hint.into()) };
        Self { exit: Exit::Usage, reports: vec![report] }
    }

    /// Tells the error in the form that was asked for and gives the exit code.
    pub(crate) fn report(&self, form: Output, style: Style) -> ExitCode {
        if form == Output::Json {
            output::result(&without_run(self.joined()));
        }
        for report in &self.reports {
            output::error(style, report);
        }
        self.exit.into()
    }

    /// All messages in one line.
    pub(crate) fn text(&self) -> String {
        self.reports.iter().map(|report| report.message.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// One report for programs: the first problem's kind, all messages.
    fn joined(&self) -> Option<ErrorReport> {
        let mut reports = self.reports.iter();
        let mut joined = reports.next()?.clone();
        for report in reports {
            joined.message.push('\n');
            joined.message.push_str(&report.message);
            if joined.hint.is_none() {
                joined.hint.clone_from(&report.hint);
            }
        }
        Some(joined)
    }
}

impl From<PipelineError> for Failure {
    fn from(error: PipelineError) -> Self {
        let error = match error {
            PipelineError::Config(errors) => return errors.into(),
            other => other,
        };
        let exit = match error.class() {
            ErrorClass::Usage => Exit::Usage,
            ErrorClass::Failure => Exit::Failed,
        };
        Self { exit, reports: vec![error.report()] }
    }
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        let report = |error: &pipeline::config::ConfigError| ErrorReport {
            kind: error.kind().to_owned(),
            message: error.located(),
            hint: error.hint().map(str::to_owned),
        };
        Self { exit: Exit::Usage, reports: errors.0.iter().map(report).collect() }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::internal(error)
    }
}

/// The JSON object of `ask` for a run that never began.
fn without_run(error: Option<ErrorReport>) -> Value {
    let summary = RunSummary::never_begun(error);
    let mut object = json!({ "run_id": null, "run_dir": null });
    if let (Value::Object(object), Ok(Value::Object(fields))) = (&mut object, serde_json::to_value(summary)) {
        object.extend(fields);
    }
    object
}

/// What clap says: help and version to stdout with code 0, mistakes to stderr with code 2, or as JSON where that
/// was asked for.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return Exit::Done.into();
    }
    let asked_for_json =
        std::env::args().collect::<Vec<_>>().windows(2).any(|pair| pair == ["--output", "json"])
            || std::env::args().any(|argument| argument == "--output=json");
    if asked_for_json {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let report = ErrorReport {
            kind: "usage".to_owned(),
            message,
            hint: Some("fathom --help tells what can be typed".to_owned()),
        };
        output::result(&without_run(Some(report)));
    }
    let _ = error.print();
    Exit::Usage.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_run_ended_is_its_code() {
        for (status, capped, expected) in [
            (RunStatus::Answered, false, Exit::Done),
            (RunStatus::Answered, true, Exit::Capped),
            (RunStatus::NoAnswer, false, Exit::NoAnswer),
            (RunStatus::NoAnswer, true, Exit::NoAnswer),
            (RunStatus::Failed, false, Exit::Failed),
            (RunStatus::Failed, true, Exit::Failed),
            (RunStatus::Cancelled, false, Exit::Interrupted),
        ] {
            let summary = RunSummary { status, capped, ..RunSummary::never_begun(None) };
            assert_eq!(of_run(&summary), expected, "{status:?} {capped}");
        }
    }
}
