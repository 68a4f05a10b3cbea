//! `fathom ask`: one question, one answer. Decides where the question comes from and what is said of the model.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

use pipeline::Question;

use super::attend::attended;
use crate::environment::Context;
use crate::exit::Failure;
use crate::output::{self, Look, Style};

pub(crate) async fn run(
    context: &Context,
    question: Option<String>,
    files: Vec<PathBuf>,
    style: Style,
) -> Result<ExitCode, Failure> {
    // A replay knows its question.
    let waits = context.common.replay.is_none() || question.is_some();
    let text = if waits { question_text(question)? } else { String::new() };
    let form = context.common.output;
    let pipeline = context.around.pipeline().await?;
    let text = if waits { text } else { pipeline.recorded_question().unwrap_or_default().to_owned() };
    if pipeline.client().provider_name() == "reader" {
        output::note(&style.paint(Look::Dim, llm_providers::reader::BANNER.trim_end()));
    } else if !style.quiet {
        let client = pipeline.client();
        let line = format!("{} · {} ({})", client.provider_name(), client.model(), pipeline.model_choice());
        output::note(&style.paint(Look::Dim, &line));
    }
    let question = Question { text, files, docs: context.common.docs.clone(), run_id: None };
    attended(&pipeline, form, style, |cancel, observer| pipeline.ask(question, cancel, Some(observer))).await
}

fn question_text(question: Option<String>) -> Result<String, Failure> {
    match question {
        Some(text) if text != "-" => Ok(text),
        given => {
            let mut stdin = std::io::stdin();
            if given.is_none() && stdin.is_terminal() {
                return Err(Failure::usage(
                    "empty_question",
                    "there is no question",
                    "Give it as an argument: fathom ask \"Who …?\"; or pipe it in: echo \"Who …?\" | fathom ask -",
                ));
            }
            let mut bytes = Vec::new();
            stdin
                .read_to_end(&mut bytes)
                .map_err(|error| anyhow::Error::new(error).context("standard input cannot be read"))?;
            let text = String::from_utf8(bytes).map_err(|_| {
                Failure::usage(
                    "usage",
                    "standard input is not UTF-8 text",
                    "Convert it first, with iconv for example.",
                )
            })?;
            Ok(text.trim().to_owned())
        }
    }
}
