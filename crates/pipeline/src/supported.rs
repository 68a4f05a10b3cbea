//! Settings that are read and not carried out yet. A run with one of them set would not be what was asked for, so it
//! does not begin.

use orchestrator::AgentConfig;
use orchestrator::config::AnswerFormat;

use crate::error::PipelineError;

/// Refuses a configuration that asks for more than this version does.
///
/// # Errors
///
/// [`PipelineError::Unsupported`] with the first such key.
pub fn check(agent: &AgentConfig) -> Result<(), PipelineError> {
    let asked: [(&str, bool, &str); 5] = [
        (
            "agent.sub_agents",
            !agent.sub_agents.is_empty(),
            "-s 'agent.sub_agents={}' or --agent single_agent",
        ),
        ("agent.tool_selection", !agent.tool_selection.is_empty(), "-s 'agent.tool_selection=[]'"),
        ("agent.findings", agent.findings, "-s agent.findings=false"),
        ("agent.summarize_every", agent.summarize_every > 0, "-s agent.summarize_every=0"),
        ("agent.answer_format", agent.answer_format == AnswerFormat::Report, "-s agent.answer_format=boxed"),
    ];
    match asked.into_iter().find(|(_, is_set, _)| *is_set) {
        None => Ok(()),
        Some((key, _, remedy)) => Err(PipelineError::Unsupported {
            key: key.to_owned(),
            problem: "this version reads the setting and does not carry it out yet".to_owned(),
            remedy: format!("Run without it: {remedy}."),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestrator::config::AgentRole;

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        assert!(check(&AgentConfig::default()).is_ok());
        let mut agent = AgentConfig::default();
        agent.sub_agents.insert("agent-browsing".into(), AgentRole::default());
        let error = check(&agent).unwrap_err();
        assert!(error.to_string().starts_with("agent.sub_agents"));
        let agent = AgentConfig { findings: true, ..AgentConfig::default() };
        assert!(check(&agent).unwrap_err().hint().unwrap().contains("agent.findings=false"));
    }
}
