//! The tools that ask a model or a machine elsewhere, set up for a run: pictures, recordings, hard questions, E2B.
//!
//! Decides which variables name the model of each server, and what is said where none does. What is asked is
//! `mcp_tools`'.

use std::sync::Arc;

use llm_providers::{Environment, LlmConfig};
use mcp_tools::servers::models::{
    MediaOptions, Transcriber, TranscriberOptions, TranscriptionOptions, reasoning_server,
    transcription_server, vision_server,
};
use mcp_tools::servers::python::e2b::E2bOptions;
use mcp_tools::{InProcessServer, ToolModel};

use crate::config::{PythonBackend, ToolModelsConfig, VideoForm};
use crate::error::PipelineError;
use crate::servers::Wiring;
use crate::tool_models::{self, Around, Takes};

/// The key of E2B.
const E2B_KEY: &str = "E2B_API_KEY";
/// Where OpenAI's services are, unless `OPENAI_BASE_URL` says otherwise.
const OPENAI: &str = "https://api.openai.com/v1";

/// The servers, and the variables one of which each needs.
const NEEDS: [(&str, &[&str]); 6] = [
    ("tool-vqa", &["VISION_BASE_URL", "VISION_MODEL_NAME", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"]),
    ("tool-vqa-os", &["VISION_BASE_URL", "VISION_MODEL_NAME"]),
    ("tool-transcribe", &["WHISPER_BASE_URL", "OPENAI_API_KEY"]),
    ("tool-transcribe-os", &["WHISPER_BASE_URL"]),
    (
        "tool-reasoning",
        &["REASONING_BASE_URL", "REASONING_MODEL_NAME", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
    ),
    ("tool-reasoning-os", &["REASONING_BASE_URL", "REASONING_MODEL_NAME"]),
];

/// What keeps a server from being set up: the variables of which one has to be set.
#[must_use]
pub fn missing(name: &str, environment: &Environment) -> Option<String> {
    let (_, variables) = NEEDS.iter().find(|(server, _)| *server == name)?;
    let is_set = |variable: &&str| environment.get(variable).is_some_and(|value| !value.trim().is_empty());
    if variables.iter().any(is_set) {
        return None;
    }
    let words = match variables {
        [only] => format!("set `{only}`"),
        several => format!("set one of `{}`", several.join("`, `")),
    };
    Some(format!("no model is set up for it: {words} (in the environment or in .env)"))
}

impl Wiring<'_> {
    /// One of the servers whose tools ask a model; none where the name is another's.
    pub(crate) fn model_server(&self, name: &str) -> Result<Option<Arc<dyn InProcessServer>>, PipelineError> {
        if !NEEDS.iter().any(|(server, _)| *server == name) {
            return Ok(None);
        }
        if let Some(problem) = missing(name, self.environment) {
            return Ok(Some(self.unset_server(name, &problem)?));
        }
        let is_open = name.ends_with("-os");
        Ok(Some(match name.trim_end_matches("-os") {
            "tool-vqa" => {
                let model =
                    self.chosen("VISION", &["openai", "anthropic"], self.names().vision.as_deref(), is_open)?;
                vision_server(name, model, self.media()?)
            }
            "tool-reasoning" => {
                let model = self.chosen(
                    "REASONING",
                    &["anthropic", "openai"],
                    self.names().reasoning.as_deref(),
                    is_open,
                )?;
                reasoning_server(name, model)
            }
            _ => transcription_server(name, self.transcription(is_open)?),
        }))
    }

    /// The server without what its tools ask: it lists them, and answers calls with what to set. A run goes on without
    /// it; a client that has started it by name is told.
    fn unset_server(&self, name: &str, problem: &str) -> Result<Arc<dyn InProcessServer>, PipelineError> {
        let problem = format!("{problem}; `fathom doctor` shows which services are set up");
        Ok(match name.trim_end_matches("-os") {
            "tool-vqa" => vision_server(name, tool_models::unset(problem), self.media()?),
            "tool-reasoning" => reasoning_server(name, tool_models::unset(problem)),
            _ => {
                let transcriber = Transcriber::unset(problem);
                let options = TranscriptionOptions { transcriber, model: None, media: self.media()? };
                transcription_server(name, options)
            }
        })
    }

    /// The sandboxes of E2B; none where code runs on this machine.
    pub(crate) fn e2b_options(&self) -> Result<Option<E2bOptions>, PipelineError> {
        if self.config.tools.python.backend != PythonBackend::E2b {
            return Ok(None);
        }
        let config = &self.config.tools.python;
        let Some(api_key) = self.set(E2B_KEY) else {
            return Err(PipelineError::Unsupported {
                key: "tools.python.backend".to_owned(),
                problem: format!("`e2b` needs a key, and `{E2B_KEY}` is not set"),
                remedy: format!("Set {E2B_KEY}, or run code on this machine: -s tools.python.backend=local."),
            });
        };
        let egress = crate::web_tools::egress(&self.config.tools, self.environment)?;
        let mut options = E2bOptions {
            sandbox_url: self.set("E2B_SANDBOX_URL"),
            output_limit: config.output_limit,
            allowed_roots: self.readable(),
            downloads: Some(self.run_dir.join("files")),
            ..E2bOptions::new(api_key, egress)
        };
        if let Some(domain) = self.set("E2B_DOMAIN") {
            options.api_url = format!("https://api.{domain}");
            options.domain = domain;
        }
        options.api_url = self.set("E2B_API_URL").unwrap_or(options.api_url);
        if let Ok(lifetime) = std::time::Duration::try_from_secs_f64(config.lifetime) {
            options.lifetime = lifetime;
        }
        Ok(Some(options))
    }

    /// Why `tool-python` cannot be had: its service has no key.
    pub(crate) fn keyless(&self, name: &str) -> Option<String> {
        let is_asked = name == "tool-python" && self.config.tools.python.backend == PythonBackend::E2b;
        (is_asked && self.set(E2B_KEY).is_none())
            .then(|| format!("`tools.python.backend: e2b` needs `{E2B_KEY}` (in the environment or in .env)"))
    }

    fn names(&self) -> &ToolModelsConfig {
        &self.config.tools.models
    }

    fn media(&self) -> Result<MediaOptions, PipelineError> {
        let egress = crate::web_tools::egress(&self.config.tools, self.environment)?;
        let stills_only = self.names().video == VideoForm::Stills;
        Ok(MediaOptions { stills_only, ..MediaOptions::new(self.readable(), egress) })
    }

    /// Whether videos are sent as they are to the model that looks at pictures.
    fn sends_videos(&self) -> bool {
        match self.names().video {
            VideoForm::Whole => true,
            VideoForm::Stills => false,
            // OpenAI's own models take none; what others run behind this wire often does.
            VideoForm::Auto => self.set("VISION_BASE_URL").is_some_and(|url| {
                let url = url.to_ascii_lowercase();
                !["api.openai.com", ".openai.azure.com"].iter().any(|host| url.contains(host))
            }),
        }
    }

    /// Where models of tools are asked from.
    pub(crate) fn around(&self) -> Around<'_> {
        Around {
            environment: self.environment,
            limiters: self.limiters,
            concurrency: &self.config.llm.concurrency,
            clock: &self.clock,
        }
    }

    fn set(&self, variable: &str) -> Option<String> {
        self.environment.get(variable).map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// The model that the variables of a service name, else that of the first provider with a key.
    fn chosen(
        &self,
        prefix: &str,
        providers: &[&str],
        model_name: Option<&str>,
        is_open: bool,
    ) -> Result<Arc<dyn ToolModel>, PipelineError> {
        let sends_videos = self.sends_videos();
        let takes = Takes { images: true, audio: false, videos: sends_videos };
        if let Some(model) = tool_models::of_variables(prefix, takes, self.around())? {
            return Ok(model);
        }
        let with_key = providers
            .iter()
            .filter(|_| !is_open)
            .find(|provider| self.set(&format!("{}_API_KEY", provider.to_uppercase())).is_some());
        let mut config = LlmConfig {
            provider: with_key.map_or("openai", |provider| provider).to_owned(),
            model_name: model_name.unwrap_or_default().to_owned(),
            max_tokens: 8192,
            concurrency: self.config.llm.concurrency.clone(),
            ..LlmConfig::default()
        };
        config.quirks.video = sends_videos.then_some(true);
        match tool_models::of_run(&config, self.around())? {
            Some(model) => Ok(model),
            None => Err(PipelineError::Unsupported {
                key: format!("{prefix}_MODEL_NAME"),
                problem: "no model can be had for this tool".to_owned(),
                remedy: format!("Set {prefix}_BASE_URL and {prefix}_MODEL_NAME."),
            }),
        }
    }

    fn transcription(&self, is_open: bool) -> Result<TranscriptionOptions, PipelineError> {
        let media = self.media()?;
        let openai =
            (self.set("OPENAI_BASE_URL").unwrap_or_else(|| OPENAI.to_owned()), self.set("OPENAI_API_KEY"));
        let (base_url, api_key, model) = match self.set("WHISPER_BASE_URL") {
            Some(base_url) => {
                let model = self.set("WHISPER_MODEL_NAME").unwrap_or_else(|| "whisper-1".to_owned());
                (base_url, self.set("WHISPER_API_KEY"), model)
            }
            None => (openai.0.clone(), openai.1.clone(), self.names().transcription.clone()),
        };
        let options = TranscriberOptions { api_key, ..TranscriberOptions::new(base_url, model) };
        let transcriber = Transcriber::new(options, media.egress.clone());
        let hears = !is_open && openai.1.is_some();
        let model = if hears {
            let mut config = LlmConfig {
                provider: "openai".to_owned(),
                model_name: self.names().audio.clone(),
                max_tokens: 4096,
                concurrency: self.config.llm.concurrency.clone(),
                ..LlmConfig::default()
            };
            config.quirks.audio = Some(true);
            tool_models::of_run(&config, self.around())?
        } else {
            None
        };
        Ok(TranscriptionOptions { transcriber, model, media })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said to be missing for a server with these variables set.
    fn check(name: &str, variables: &[(&str, &str)], expected: Option<&str>) {
        let environment: Environment =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let found = missing(name, &environment);
        match expected {
            None => assert_eq!(found, None, "{name}"),
            Some(part) => assert!(found.as_deref().unwrap_or_default().contains(part), "{name}: {found:?}"),
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        check("tool-vqa-os", &[], Some("`VISION_BASE_URL`, `VISION_MODEL_NAME`"));
        check("tool-vqa-os", &[("OPENAI_API_KEY", "k")], Some("VISION_BASE_URL"));
        check("tool-vqa", &[("OPENAI_API_KEY", "k")], None);
        check("tool-vqa", &[("VISION_BASE_URL", "http://127.0.0.1:1/v1")], None);
        check("tool-transcribe-os", &[("WHISPER_BASE_URL", " ")], Some("set `WHISPER_BASE_URL`"));
        check("tool-reasoning", &[("ANTHROPIC_API_KEY", "k")], None);
        check("tool-reading", &[], None);
    }
}
