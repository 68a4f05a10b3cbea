//! Who judges a suite: a model, nobody, or the comparison that works offline. Whether it can is found out here, before
//! anything runs.

use llm_providers::{Limiters, LlmConfig, Registry};
use pipeline::config::{JudgeConfig, JudgeId, Resolved};

use super::SuiteError;
use crate::judge::{Judge, JudgePrompt, ModelJudge, Procedure, PromptError, procedure};

/// Who is to judge.
#[derive(Debug, Clone, Default)]
pub enum JudgeWish {
    /// As the configuration says.
    #[default]
    Configured,
    /// Offline.
    Mock,
    /// This model.
    Model(Box<LlmConfig>),
}

/// The judge of the chosen benchmark, which waits its turn among all that share the limiters. A model is asked for a
/// word, so that a wrong key is known at once.
///
/// # Errors
///
/// A judge that cannot be set up or does not take its key.
pub async fn judge_of(
    resolved: &Resolved,
    wish: &JudgeWish,
    limiters: &Limiters,
) -> Result<Judge, SuiteError> {
    let benchmark = &resolved.config.benchmark;
    let suite = &benchmark.name;
    let id = benchmark.judge.id.unwrap_or(JudgeId::Equivalence);
    let Some(procedure) = procedure(id) else { return Ok(Judge::nobody(suite)) };
    let config = match wish {
        JudgeWish::Mock => return Ok(Judge::mock(suite, id)),
        JudgeWish::Configured if benchmark.judge.mock => return Ok(Judge::mock(suite, id)),
        JudgeWish::Configured => judge_config(&benchmark.judge, &procedure),
        JudgeWish::Model(config) => (**config).clone(),
    };
    let template = resolved
        .conf
        .read("prompts", procedure.template)
        .ok()
        .flatten()
        .and_then(|file| Some((file.text()?.to_owned(), file.path)))
        .ok_or_else(|| PromptError {
            file: format!("prompts/{}", procedure.template),
            problem: "it is not there, or no text".to_owned(),
        })?;
    let prompt = JudgePrompt::new(&template.1, &template.0)?;
    let client = Registry::builtin()
        .client_sharing(&config, &resolved.environment, limiters)
        .map_err(|problem| SuiteError::JudgeModel { suite: suite.clone(), problem })?;
    let model = ModelJudge::new(client, procedure, prompt, benchmark.judge.votes);
    model.check().await.map_err(SuiteError::Judge)?;
    Ok(Judge::model(suite, id, model))
}

/// The configured model, else the procedure's reference model.
fn judge_config(judge: &JudgeConfig, procedure: &Procedure) -> LlmConfig {
    judge.llm.clone().unwrap_or_else(|| LlmConfig {
        provider: "openai".to_owned(),
        model_name: procedure.reference_model.to_owned(),
        ..LlmConfig::default()
    })
}
