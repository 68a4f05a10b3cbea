//! The servers `tool-transcribe` and `tool-transcribe-os`.
//!
//! Decides what becomes of a recording: its words, or, where a model hears, the answer to a question about it.

use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::kinds::Sort;
use super::media::MediaOptions;
use super::transcriber::Transcriber;
use super::{answer, failure, not_set_up};
use crate::servers::schema;
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
    let ears = Arc::new(options);
    if name.ends_with("-os") {
        in_process(name, move || TranscriptionTools { ears: Arc::clone(&ears) })
    } else {
        in_process(name, move || AudioTools { ears: Arc::clone(&ears) })
    }
}

impl TranscriptionOptions {
    async fn transcribe(&self, source: &str) -> CallToolResult {
        match self.words(source).await {
            Ok(words) => CallToolResult::success(vec![ContentBlock::text(words)]),
            Err(problem) => failure(problem),
        }
    }

    async fn words(&self, source: &str) -> Result<String, String> {
        if let Some(problem) = self.transcriber.problem() {
            return Err(not_set_up("tool", problem));
        }
        let (bytes, kind) = self.media.load(source, HEARD).await?;
        let words = self.transcriber.transcribe(&bytes, kind).await?;
        Ok(if words.trim().is_empty() { "(No words can be heard.)".to_owned() } else { words })
    }

    async fn answer(&self, source: &str, question: String) -> CallToolResult {
        if question.trim().is_empty() {
            return failure("Nothing was asked: `question` is empty.".into());
        }
        let Some(model) = &self.model else {
            return match self.words(source).await {
                Ok(words) => CallToolResult::success(vec![ContentBlock::text(format!(
                    "[No model that hears is set up here; these are the words of the recording.]\n\n{words}"
                ))]),
                Err(problem) => failure(problem),
            };
        };
        let (data, kind) = match self.media.load(source, &[Sort::Audio]).await {
            Ok(loaded) => loaded,
            Err(problem) => return failure(problem),
        };
        let media = vec![Media { mime_type: kind.mime_type.to_owned(), data }];
        let question =
            ModelQuestion { system: Some(SYSTEM.to_owned()), text: question, media, max_tokens: None };
        answer(&**model, question).await
    }
}

#[derive(Clone)]
struct AudioTools {
    ears: Arc<TranscriptionOptions>,
}

#[tool_router]
impl AudioTools {
    #[tool(
        description = "Writes down what is said in a recording.",
        input_schema = schema::arguments::<Transcription>()
    )]
    async fn audio_transcription(
        &self,
        Parameters(Transcription { audio_path_or_url }): Parameters<Transcription>,
    ) -> CallToolResult {
        self.ears.transcribe(&audio_path_or_url).await
    }

    #[tool(
        description = "Answers a question about a recording: what is said, by whom, how, and what else can be heard.",
        input_schema = schema::arguments::<AboutAudio>()
    )]
    async fn audio_question_answering(
        &self,
        Parameters(AboutAudio { audio_path_or_url, question }): Parameters<AboutAudio>,
    ) -> CallToolResult {
        self.ears.answer(&audio_path_or_url, question).await
    }
}

#[tool_handler(name = "tool-transcribe")]
impl ServerHandler for AudioTools {}

#[derive(Clone)]
struct TranscriptionTools {
    ears: Arc<TranscriptionOptions>,
}

#[tool_router]
impl TranscriptionTools {
    #[tool(
        description = "Writes down what is said in a recording.",
        input_schema = schema::arguments::<Transcription>()
    )]
    async fn audio_transcription(
        &self,
        Parameters(Transcription { audio_path_or_url }): Parameters<Transcription>,
    ) -> CallToolResult {
        self.ears.transcribe(&audio_path_or_url).await
    }
}

#[tool_handler(name = "tool-transcribe-os")]
impl ServerHandler for TranscriptionTools {}
