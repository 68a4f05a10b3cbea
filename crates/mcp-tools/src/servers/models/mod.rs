//! Servers whose tools ask a model: `tool-vqa`, `tool-transcribe`, `tool-reasoning`, each with a variant `-os`.
//!
//! Decides what the tools of these servers are called and what is sent to a model. Which model answers is decided by
//! whoever hands one in; the variants differ in names and arguments only.

mod kinds;
mod media;
mod reasoning;
mod stills;
mod transcriber;
mod transcription;
mod vision;

pub use media::MediaOptions;
pub use reasoning::server as reasoning_server;
pub use stills::StillOptions;
pub use transcriber::{Transcriber, TranscriberOptions};
pub use transcription::{TranscriptionOptions, server as transcription_server};
pub use vision::server as vision_server;

use crate::{ModelAnswer, ModelError, ModelQuestion, ToolModel};

/// What a model said, for the model that has asked for it.
async fn answer(model: &dyn ToolModel, question: ModelQuestion) -> Result<String, String> {
    told(model, model.ask(question).await)
}

/// The same of an answer that is there already.
fn told(model: &dyn ToolModel, answer: Result<ModelAnswer, ModelError>) -> Result<String, String> {
    match answer {
        Ok(ModelAnswer { text, .. }) if text.trim().is_empty() => Err(format!(
            "The model {} gave no answer. Put the question in other words, or go on without it.",
            model.name()
        )),
        Ok(ModelAnswer { text, cut: false, .. }) => Ok(text),
        Ok(ModelAnswer { text, cut: true, .. }) => {
            Ok(format!("{text}\n\n[The answer was cut here: it was longer than the model may write.]"))
        }
        Err(error @ ModelError::TooLong(_)) => Err(format!("{error}. Ask something shorter.")),
        Err(error @ ModelError::Unsupported(_)) => {
            Err(format!("The model {} cannot be asked this: {error}.", model.name()))
        }
        Err(ModelError::NotSetUp(problem)) => Err(not_set_up("tool", &problem)),
        Err(ModelError::Failed(problem)) => {
            Err(format!("The model {} gave no answer: {problem}", model.name()))
        }
    }
}

/// What a call is answered with where there is nothing to ask.
fn not_set_up(what: &str, problem: &str) -> String {
    format!("This {what} cannot be used here: {problem}.")
}

/// What was asked.
///
/// # Errors
/// That nothing was.
fn asked(question: String) -> Result<String, String> {
    if question.trim().is_empty() {
        return Err("Nothing was asked: `question` is empty.".into());
    }
    Ok(question)
}
