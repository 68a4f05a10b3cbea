//! The servers `tool-vqa` and `tool-vqa-os`.
//!
//! Decides what a model that sees is asked, and that one which takes no videos is shown still pictures of them.

use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::kinds::{Kind, Sort};
use super::media::MediaOptions;
use super::stills::{self, StillsError};
use super::{answer, asked, told};
use crate::{InProcessServer, Media, ModelError, ModelQuestion, ToolModel, in_process};

const SYSTEM: &str = "Answer the question about the image or video. Say first what can be seen that bears on the question: \
                      text word for word, numbers, names, colours, positions, counts. Then answer it. Where it cannot be \
                      told from what is shown, say so; do not guess.";

#[derive(Debug, Deserialize, JsonSchema)]
struct AboutMedia {
    /// The path or the http(s) address of an image or a video.
    media_path_or_url: String,
    /// What to find out about it.
    question: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct AboutImage {
    /// The path or the http(s) address of an image.
    image_path_or_url: String,
    /// What to find out about it.
    question: String,
}

/// The server of that name: with `-os` at its end it is for images and calls its argument `image_path_or_url`.
#[must_use]
pub fn server(name: &str, model: Arc<dyn ToolModel>, media: MediaOptions) -> Arc<dyn InProcessServer> {
    let eyes = Arc::new(Eyes { model, media });
    if name.ends_with("-os") {
        in_process(name, move || ImageTools { eyes: Arc::clone(&eyes) })
    } else {
        in_process(name, move || MediaTools { eyes: Arc::clone(&eyes) })
    }
}

struct Eyes {
    model: Arc<dyn ToolModel>,
    media: MediaOptions,
}

impl Eyes {
    async fn look(&self, source: &str, question: String, wanted: &[Sort]) -> Result<String, String> {
        let question = asked(question)?;
        if let Err(error) = self.model.check() {
            return told(&*self.model, Err(error));
        }
        let (data, kind) = self.media.load(source, wanted).await?;
        if kind.sort == Sort::Video {
            return self.watch(data, kind, question).await;
        }
        answer(&*self.model, shown(vec![Media { mime_type: kind.mime_type.to_owned(), data }], question))
            .await
    }

    /// Asks about a video: as it is, and where the model takes none, by pictures of it.
    async fn watch(&self, data: Vec<u8>, kind: Kind, question: String) -> Result<String, String> {
        let model = &*self.model;
        let mut refusal = None;
        if !self.media.stills_only {
            let whole = Media { mime_type: kind.mime_type.to_owned(), data: data.clone() };
            match model.ask(shown(vec![whole], question.clone())).await {
                Err(error @ ModelError::Unsupported(_)) => refusal = Some(error),
                answer => return told(model, answer),
            }
        }
        match stills::take(&data, kind, &self.media.stills).await {
            Ok(stills) => {
                let text = format!("{}\n\n{question}", stills.words());
                answer(model, shown(stills.pictures, text)).await
            }
            Err(error) => {
                let refusal = refusal.map_or_else(String::new, |refusal| format!(" ({refusal})"));
                let remedy = match error {
                    StillsError::Missing => {
                        " Install ffmpeg (`apt-get install ffmpeg`), or have a model asked that \
                                             takes videos, such as one behind vLLM (`VISION_BASE_URL`, \
                                             `VISION_MODEL_NAME`)."
                    }
                    _ => "",
                };
                Err(format!(
                    "The model {} is not asked about this video itself{refusal}, and it could not be shown still \
                     pictures of it: {error}.{remedy}",
                    model.name()
                ))
            }
        }
    }
}

fn shown(media: Vec<Media>, text: String) -> ModelQuestion {
    ModelQuestion { system: Some(SYSTEM.to_owned()), text, media, max_tokens: None }
}

#[derive(Clone)]
struct MediaTools {
    eyes: Arc<Eyes>,
}

#[tool_router]
impl MediaTools {
    #[tool(
        description = "Answers a question about an image or a video. Of a video the model may be shown still pictures \
                       without sound."
    )]
    async fn visual_question_answering(
        &self,
        Parameters(AboutMedia { media_path_or_url, question }): Parameters<AboutMedia>,
    ) -> Result<String, String> {
        self.eyes.look(&media_path_or_url, question, &[Sort::Image, Sort::Video]).await
    }
}

#[tool_handler(name = "tool-vqa")]
impl ServerHandler for MediaTools {}

#[derive(Clone)]
struct ImageTools {
    eyes: Arc<Eyes>,
}

#[tool_router]
impl ImageTools {
    #[tool(description = "Answers a question about an image.")]
    async fn visual_question_answering(
        &self,
        Parameters(AboutImage { image_path_or_url, question }): Parameters<AboutImage>,
    ) -> Result<String, String> {
        self.eyes.look(&image_path_or_url, question, &[Sort::Image]).await
    }
}

#[tool_handler(name = "tool-vqa-os")]
impl ServerHandler for ImageTools {}
