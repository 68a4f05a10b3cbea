//! What contradicts itself about sub-agents, the choice of tools, findings and summaries.

use orchestrator::AgentConfig;
use orchestrator::config::{AnswerFormat, ToolSelectionRule};
use orchestrator::{findings as store, sub_agents};

use super::{AT_LEAST_ONE, Findings, joined, role, steps};
use crate::config::node::Step;

/// Tokens below which a summary and the newest round have no room.
const LEAST_TOKEN_LIMIT: u64 = 1_000;

pub(super) fn check(config: &AgentConfig, findings: &mut Findings) {
    names_in_tools(config, &config.main_agent.tools, &["agent", "main_agent"], findings);
    for (name, sub_agent) in &config.sub_agents {
        let path = ["agent", "sub_agents", name.as_str()];
        role(sub_agent, &path, findings);
        findings.need(
            name.len() > sub_agents::NAME_PREFIX.len() && name.starts_with(sub_agents::NAME_PREFIX),
            &path,
            "a name that begins with `agent-`, as only calls to such names go to agents",
        );
        findings.need(
            !sub_agent.tools.is_empty(),
            &joined(&path, &["tools"]),
            "the name of at least one tool server, as an agent without tools finds nothing",
        );
        names_in_tools(config, &sub_agent.tools, &path, findings);
    }
    for (index, rule) in config.tool_selection.iter().enumerate() {
        let mut path = steps(&["agent", "tool_selection"]);
        path.push(Step::Index(index));
        selection(config, rule, &path, findings);
    }
    if config.summarize_every > 0 {
        findings.need(
            config.token_limit >= LEAST_TOKEN_LIMIT,
            &["agent", "token_limit"],
            "a whole number, 1000 or more, as the newest round and a summary need some room",
        );
    }
    if config.answer_format == AnswerFormat::Report && config.skip_final_call {
        let message = "a report is always asked for; `skip_final_call` is about boxed answers".to_owned();
        findings.doubtful.push((steps(&["agent", "skip_final_call"]), message));
    }
}

/// Agents and the loop's own server cannot be named as tool servers.
fn names_in_tools(config: &AgentConfig, tools: &[String], path: &[&str], findings: &mut Findings) {
    let own_name = path.last().copied().unwrap_or_default();
    for (index, server) in tools.iter().enumerate() {
        let expected = if server == own_name {
            "other servers than the agent itself: it would hand its subtasks to itself for ever"
        } else if config.sub_agents.contains_key(server) && path.len() > 2 {
            "no other agent: sub-agents do not call agents. Name the tools that this one needs itself"
        } else if config.sub_agents.contains_key(server) {
            "no sub-agent: every agent under `sub_agents` is offered to the main agent as it is"
        } else if config.findings && server == store::SERVER {
            "another name in mcp.json for this server: `findings` is the loop's own while agent.findings is on"
        } else {
            continue;
        };
        let mut place = steps(&joined(path, &["tools"]));
        place.push(Step::Index(index));
        findings.broken.push((place, expected.to_owned()));
    }
}

fn selection(config: &AgentConfig, rule: &ToolSelectionRule, path: &[Step], findings: &mut Findings) {
    let mut need = |holds: bool, expected: &str| {
        if !holds {
            findings.broken.push((path.to_vec(), expected.to_owned()));
        }
    };
    need(
        rule.server.is_some() || rule.search.is_some(),
        "`server` (whose tools are shown in some turns only) or `search` (how many tools are shown)",
    );
    need(rule.search != Some(0), &format!("`search`: {AT_LEAST_ONE}"));
    need(rule.from_turn != Some(0) && rule.to_turn != Some(0), "turns from 1");
    need(
        rule.from_turn.zip(rule.to_turn).is_none_or(|(from, to)| from <= to),
        "`from_turn` not above `to_turn`",
    );
    need(rule.tools.is_empty() || rule.server.is_some(), "the `server` that the `tools` belong to");
    need(
        rule.always.is_empty() || rule.search.is_some(),
        "`search`, beside which the tools of `always` are shown",
    );
    let used = |server: &String| {
        config.main_agent.tools.contains(server)
            || config.sub_agents.values().any(|agent| agent.tools.contains(server))
            || config.sub_agents.contains_key(server)
            || (config.findings && server == store::SERVER)
    };
    if let Some(server) = rule.server.as_ref().filter(|server| !used(server)) {
        let message = format!("no agent uses the server `{server}` that this rule is about");
        findings.doubtful.push((path.to_vec(), message));
    }
}
