//! The models that tools ask, over `llm_providers`.
//!
//! Decides which model answers: one that variables name (`SUMMARY_LLM_BASE_URL`, …), else the run's own. What is
//! asked is decided by the tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use core_protocol::{
    ContentBlock, DialectName, FinishReason, MediaSource, Message, ParseOptions, Role, SegmentKind,
    parse_reply,
};
use llm_providers::{
    CallEvent, ChatRequest, ConcurrencyConfig, Environment, Limiters, LlmClient, LlmConfig, LlmError,
    Registry, RetryConfig, Secret,
};
use mcp_tools::{Media, ModelAnswer, ModelError, ModelQuestion, ToolModel};
use orchestrator::RunClock;

/// Tries of one question: a tool's call has less time than a turn of the agent.
const MOST_TRIES: u32 = 4;
/// Seconds that all tries of one question may take, below the usual limit of a tool's call (300 s).
const LONGEST: f64 = 240.0;

/// A model behind the port of the tools.
#[derive(Debug)]
struct ToolClient {
    client: LlmClient,
    starts_in_thinking: bool,
    /// Of the run whose tools ask.
    clock: RunClock,
    /// Whether it is not sent videos, because it has refused one.
    refuses_videos: AtomicBool,
}

/// Where models are asked from.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// Variables, `.env` included.
    pub environment: &'a Environment,
    /// What requests wait for, shared with everybody who asks the same server with the same key.
    pub limiters: &'a Limiters,
    /// By which rules, where nobody has asked that server before.
    pub concurrency: &'a ConcurrencyConfig,
    /// The clock of the run whose tools ask, which is told what they wait for.
    pub clock: &'a RunClock,
}

/// What a service takes beside text, where its variables do not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Takes {
    /// Pictures.
    pub images: bool,
    /// Recordings.
    pub audio: bool,
    /// Videos.
    pub videos: bool,
}

/// The run's own model; none where that is the embedded reader, which answers nothing but the run's question, or was
/// not chosen yet.
///
/// # Errors
///
/// Settings that no client can be made of.
pub fn of_run(config: &LlmConfig, around: Around<'_>) -> Result<Option<Arc<dyn ToolModel>>, LlmError> {
    if matches!(config.provider.as_str(), "auto" | "reader") {
        return Ok(None);
    }
    Ok(Some(model(config.clone(), around)?))
}

/// The model that `{prefix}_BASE_URL`, `{prefix}_MODEL_NAME` and `{prefix}_API_KEY` name, over OpenAI's wire; none
/// where neither an address nor a model is set. An address may end in `/chat/completions`.
///
/// # Errors
///
/// Settings that no client can be made of.
pub fn of_variables(
    prefix: &str,
    takes: Takes,
    around: Around<'_>,
) -> Result<Option<Arc<dyn ToolModel>>, LlmError> {
    let value = |name: &str| around.environment.get(&format!("{prefix}_{name}")).map(str::to_owned);
    let (base_url, model_name) = (value("BASE_URL"), value("MODEL_NAME"));
    if base_url.is_none() && model_name.is_none() {
        return Ok(None);
    }
    let mut config = LlmConfig {
        provider: if base_url.is_some() { "openai_compatible" } else { "openai" }.to_owned(),
        model_name: model_name.unwrap_or_default(),
        base_url,
        api_key: value("API_KEY").map(Secret::new),
        max_tokens: 8192,
        concurrency: around.concurrency.clone(),
        ..LlmConfig::default()
    };
    config.quirks.images = takes.images.then_some(true);
    config.quirks.audio = takes.audio.then_some(true);
    config.quirks.video = takes.videos.then_some(true);
    model(config, around).map(Some)
}

fn model(mut config: LlmConfig, around: Around<'_>) -> Result<Arc<dyn ToolModel>, LlmError> {
    shorten(&mut config.retries);
    let starts_in_thinking = config.starts_in_thinking;
    let client = Registry::builtin().client_sharing(&config, around.environment, around.limiters)?;
    let clock = around.clock.clone();
    Ok(Arc::new(ToolClient { client, starts_in_thinking, clock, refuses_videos: AtomicBool::new(false) }))
}

/// A model that there is none of: it answers with what to set.
struct Unset(String);

/// In place of a model: every question is answered with these words.
#[must_use]
pub fn unset(problem: String) -> Arc<dyn ToolModel> {
    Arc::new(Unset(problem))
}

#[async_trait]
impl ToolModel for Unset {
    async fn ask(&self, _: ModelQuestion) -> Result<ModelAnswer, ModelError> {
        Err(ModelError::NotSetUp(self.0.clone()))
    }

    fn check(&self) -> Result<(), ModelError> {
        Err(ModelError::NotSetUp(self.0.clone()))
    }

    fn name(&self) -> &str {
        "(none)"
    }
}

/// A question that fails must fail while the tool's call can still tell of it.
fn shorten(retries: &mut RetryConfig) {
    retries.max_tries = retries.max_tries.min(MOST_TRIES);
    for seconds in [
        &mut retries.first_event_timeout,
        &mut retries.idle_timeout,
        &mut retries.try_timeout,
        &mut retries.total_timeout,
    ] {
        // 0 is no limit.
        *seconds = if *seconds > 0.0 { seconds.min(LONGEST) } else { LONGEST };
    }
}

#[async_trait]
impl ToolModel for ToolClient {
    async fn ask(&self, question: ModelQuestion) -> Result<ModelAnswer, ModelError> {
        let video = question.media.iter().map(|media| &media.mime_type).find(|kind| is_video(kind)).cloned();
        let mut content = Vec::with_capacity(question.media.len() + 1);
        for media in question.media {
            content.push(self.block(media)?);
        }
        content.push(ContentBlock::text(question.text));
        let mut request = ChatRequest::new(
            question.system.unwrap_or_default(),
            vec![Arc::new(Message::new(Role::User, content))],
        );
        request.max_tokens = question.max_tokens.map(u64::from);
        let mut held_back = None;
        let mut observer = |event: CallEvent<'_>| {
            held_back = match event {
                CallEvent::Waiting => Some(self.clock.tool_held_back()),
                CallEvent::Waited { .. } => None,
                _ => held_back.take(),
            };
        };
        let outcome =
            self.client.complete(&request, &mut observer).await.map_err(|error| match (error, video) {
                // The endpoint, or the model behind it, takes pictures only, or not so large a video.
                (
                    error @ (LlmError::InvalidRequest { .. }
                    | LlmError::ContextExceeded { .. }
                    | LlmError::ModelNotFound { .. }
                    | LlmError::Server { .. }),
                    Some(kind),
                ) => {
                    self.refuses_videos
                        .store(matches!(error, LlmError::InvalidRequest { .. }), Ordering::Relaxed);
                    ModelError::Unsupported(format!("{kind}: {error}"))
                }
                (error @ LlmError::ContextExceeded { .. }, None) => ModelError::TooLong(error.to_string()),
                (other, _) => ModelError::Failed(other.to_string()),
            })?;
        let completion = outcome.completion;
        Ok(ModelAnswer {
            text: without_thinking(&completion.message.joined_text(), self.starts_in_thinking),
            cut: completion.finish_reason == FinishReason::Length,
            model: completion.model.unwrap_or_else(|| self.client.model().to_owned()),
            tokens_used: completion.usage.map(|usage| usage.input.saturating_add(usage.output)),
        })
    }

    fn name(&self) -> &str {
        self.client.model()
    }
}

impl ToolClient {
    fn block(&self, media: Media) -> Result<ContentBlock, ModelError> {
        let able = self.client.capabilities();
        let source = |media: Media| MediaSource::Base64 {
            data: STANDARD.encode(&media.data),
            media_type: media.mime_type,
        };
        match media.mime_type.split('/').next() {
            Some("image") if able.images => Ok(ContentBlock::Image { source: source(media) }),
            Some("audio") if able.audio => Ok(ContentBlock::Audio { source: source(media) }),
            Some("video") if able.video && !self.refuses_videos.load(Ordering::Relaxed) => {
                Ok(ContentBlock::Video { source: source(media) })
            }
            _ => Err(ModelError::Unsupported(media.mime_type)),
        }
    }
}

fn is_video(mime_type: &str) -> bool {
    mime_type.starts_with("video/")
}

/// What a reply says outside its thinking. Tags of calls stay: a page may be about them.
fn without_thinking(text: &str, starts_in_thinking: bool) -> String {
    let dialect = DialectName::default().dialect();
    let options = ParseOptions { starts_in_thinking, ..ParseOptions::new(dialect) };
    let reply = parse_reply(text, &options);
    let mut said = String::with_capacity(text.len());
    for segment in reply.segments.iter().filter(|segment| segment.kind != SegmentKind::Thinking) {
        said.push_str(text.get(segment.span.start..segment.span.end).unwrap_or_default());
    }
    said.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_left_out_and_calls_are_not() {
        let call = "<use_mcp_tool><server_name>a</server_name><tool_name>b</tool_name><arguments>{}</arguments></use_mcp_tool>";
        for (text, starts_in_thinking, expected) in [
            ("<think>hm</think>\n\nIt is 7.", false, "It is 7."),
            ("hm</think>It is 7.", true, "It is 7."),
            ("It is 7.", false, "It is 7."),
            ("", false, ""),
            (call, false, call),
        ] {
            assert_eq!(without_thinking(text, starts_in_thinking), expected, "{text}");
        }
    }

    #[test]
    fn variables_name_a_model() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            let environment =
                variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let around = Around {
                environment: &environment,
                limiters: &Limiters::new(),
                concurrency: &ConcurrencyConfig::default(),
                clock: &RunClock::default(),
            };
            let model = of_variables("SUMMARY_LLM", Takes::default(), around).unwrap();
            assert_eq!(model.as_ref().map(|model| model.name()), expected, "{variables:?}");
        };
        check(&[], None);
        check(&[("SUMMARY_LLM_API_KEY", "sk-only-a-key"), ("SUMMARY_LLM_BASE_URL", " ")], None);
        check(
            &[
                ("SUMMARY_LLM_BASE_URL", "http://127.0.0.1:9/v1/chat/completions"),
                ("SUMMARY_LLM_MODEL_NAME", "small"),
            ],
            Some("small"),
        );
    }

    #[test]
    fn the_reader_is_not_asked() {
        let config = LlmConfig { provider: "reader".to_owned(), ..LlmConfig::default() };
        let around = Around {
            environment: &Environment::default(),
            limiters: &Limiters::new(),
            concurrency: &ConcurrencyConfig::default(),
            clock: &RunClock::default(),
        };
        assert!(of_run(&config, around).unwrap().is_none());
    }

    #[test]
    fn limits_are_those_of_a_call() {
        let mut retries = RetryConfig { idle_timeout: 0.0, try_timeout: 20.0, ..RetryConfig::default() };
        shorten(&mut retries);
        assert_eq!((retries.max_tries, retries.total_timeout), (MOST_TRIES, LONGEST));
        assert_eq!((retries.idle_timeout, retries.try_timeout), (LONGEST, 20.0));
    }
}
