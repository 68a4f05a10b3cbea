//! What a model is told of a cell that was run, and of one that was not.
//!
//! Decides the words for cells in a local sandbox.

use std::borrow::Cow;

use super::PythonError;
use super::session::{End, Outcome};
use super::space::Excess;

/// What the model is told of an outcome, notes first. Whether the sandbox is there for the next call.
pub(super) fn render(outcome: Outcome, kept: bool, notes: &[&str]) -> Result<String, String> {
    let Outcome { output, end } = outcome;
    let lost = match kept {
        true => "All its processes were killed; variables are gone, files are still there.",
        false => "All its processes were killed and its files removed.",
    };
    let (last, failed): (Option<Cow<'_, str>>, bool) = match end {
        End::Ok | End::Error | End::Exit(0) => (None, false),
        End::Exit(code) => (Some(format!("[exit code {code}]").into()), false),
        End::Overrun(limit) => {
            let seconds = limit.as_secs_f64();
            (
                Some(
                    format!(
                        "[The call took longer than {seconds} s and was stopped. {lost} Do less at a time.]"
                    )
                    .into(),
                ),
                true,
            )
        }
        End::Full(excess) => {
            let why = too_much(excess);
            let (lost, advice) = match (kept, excess) {
                (true, Excess::Bytes { .. }) => (lost, "Remove files, which is possible, before adding any."),
                (true, Excess::Hidden) => {
                    ("All its processes were killed; variables are gone, and all files.", "")
                }
                (false, _) => (lost, "Keep less in files."),
            };
            let words = format!("[The call was stopped: {why}. {lost} {advice}");
            (Some(format!("{}]", words.trim_end()).into()), true)
        }
        End::Flood => (Some(format!("[The call printed without end and was stopped. {lost}]").into()), true),
        End::Cancelled => (Some(format!("[The call was cancelled. {lost}]").into()), true),
        End::Gone(how) => {
            (Some(format!("[The interpreter ended before the code did ({how}). {lost}]").into()), true)
        }
    };
    let output = output.trim_end_matches('\n');
    let body = if output.is_empty() && last.is_none() { "(no output)" } else { output };
    let parts = notes.iter().copied().chain((!body.is_empty()).then_some(body)).chain(last.as_deref());
    let whole = parts.collect::<Vec<_>>().join("\n");
    if failed { Err(whole) } else { Ok(whole) }
}

/// Told with every result of a sandbox in which too much is left.
pub(super) const FULL: &str = "[The files of the sandbox take more space than they may: remove some. A call that adds to them is stopped.]";

/// What is wrong with the files of a sandbox.
pub(super) fn too_much(excess: Excess) -> String {
    match excess {
        Excess::Bytes { most } => {
            format!(
                "the files of the sandbox took more than {} MiB, which is the most that they may",
                most >> 20
            )
        }
        Excess::Hidden => "folders were too deep inside one another to be looked into".to_owned(),
    }
}

/// Said of a call that could not be made.
pub(super) fn failure(problem: PythonError) -> String {
    format!("Nothing was done: {problem}.")
}
