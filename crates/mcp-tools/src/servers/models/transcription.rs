//! The servers `tool-transcribe` and `tool-transcribe-os`.
//!
//! Decides what becomes of a recording: its words, or, where a model hears, the answer to a question about it.

use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::ServerConfig;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::kinds::Sort;
use super::media::MediaOptions;
use super::transcriber::Transcriber;
use super::{answer, asked, not_set_up};
use crate::servers::info;
use crate::{InProcessServer, Media, ModelQuestion, ToolModel, in_process};

const SYSTEM: &str = "Answer the question about the recording. Say what is heard that bears on it: words as they were \
                      spoken, speakers, sounds, music. Where it cannot be told from the recording, say so; do not guess.";

/// What is heard: recordings, and the sound of films.
const HEARD: &[Sort] = &[Sort::Audio, Sort::Video];

#[derive(Debug, Deserialize, JsonSchema)]
struct Transcription {
    /// The path or the http(s) address of a recording.
    audio_path_or_url: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct AboutAudio {
    /// The path or the http(s) address of a recording.
    audio_path_or_url: String,
    /// What to find out about it.
    question: String,
}

/// What the tools work with.
#[derive(Clone)]
pub struct TranscriptionOptions {
    /// Writes down what is said.
    pub transcriber: Transcriber,
    /// Hears recordings; where none does, questions are answered with the words that were said.
    pub model: Option<Arc<dyn ToolModel>>,
    /// What may be opened.
    pub media: MediaOptions,
}

/// The server of that name: with `-os` at its end it has `audio_transcription` only.
#[must_use]
pub fn server(name: &str, options: TranscriptionOptions) -> Arc<dyn InProcessServer> {
    let (own_name, tools) = match name.ends_with("-os") {
        true => ("tool-transcribe-os", AudioTools::words()),
        false => ("tool-transcribe", AudioTools::words() + AudioTools::answers()),
    };
    let tools = AudioTools { name: own_name, tools, ears: Arc::new(options) };
    in_process(name, move || tools.clone())
}

impl TranscriptionOptions {
    async fn words(&self, source: &str) -> Result<String, String> {
        if let Some(problem) = self.transcriber.problem() {
            return Err(not_set_up("tool", problem));
        }
        let (bytes, kind) = self.media.load(source, HEARD).await?;
        let words = self.transcriber.transcribe(&bytes, kind).await?;
        Ok(if words.trim().is_empty() { "(No words can be heard.)".to_owned() } else { words })
    }

    async fn answer(&self, source: &str, question: String) -> Result<String, String> {
        let text = asked(question)?;
        let Some(model) = &self.model else {
            let words = self.words(source).await?;
            return Ok(format!(
                "[No model that hears is set up here; these are the words of the recording.]\n\n{words}"
            ));
        };
        let (data, kind) = self.media.load(source, &[Sort::Audio]).await?;
        let media = vec![Media { mime_type: kind.mime_type.to_owned(), data }];
        let question = ModelQuestion { system: Some(SYSTEM.to_owned()), text, media, max_tokens: None };
        answer(&**model, question).await
    }
}

#[derive(Clone)]
struct AudioTools {
    name: &'static str,
    tools: ToolRouter<Self>,
    ears: Arc<TranscriptionOptions>,
}

#[tool_router(router = words)]
impl AudioTools {
    #[tool(description = "Writes down what is said in a recording.")]
    async fn audio_transcription(
        &self,
        Parameters(Transcription { audio_path_or_url }): Parameters<Transcription>,
    ) -> Result<String, String> {
        self.ears.words(&audio_path_or_url).await
    }
}

#[tool_router(router = answers)]
impl AudioTools {
    #[tool(
        description = "Answers a question about a recording: what is said, by whom, how, and what else can be heard."
    )]
    async fn audio_question_answering(
        &self,
        Parameters(AboutAudio { audio_path_or_url, question }): Parameters<AboutAudio>,
    ) -> Result<String, String> {
        self.ears.answer(&audio_path_or_url, question).await
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for AudioTools {
    fn get_info(&self) -> ServerConfig {
        info(self.name)
    }
}
