//! What each request sent, rebuilt from the log.

use std::collections::HashMap;
use std::sync::Arc;

use core_protocol::event::{Event, EventBody, LlmPurpose};
use core_protocol::{Message, ToolDefinition, Usage};
use orchestrator::{findings, retention, sub_agents};

use super::{MAIN, start};
use crate::log::RunRecord;

/// One request as it was sent, and the reply to it.
#[derive(Debug, Clone, PartialEq)]
pub struct SentView {
    /// `main`, or a sub-agent's id.
    pub agent: String,
    /// The request's id; unique for the agent.
    pub call: u64,
    /// The pass, from 1.
    pub pass: u32,
    /// The turn, from 1.
    pub turn: u32,
    /// What it was for.
    pub purpose: LlmPurpose,
    /// The system prompt.
    pub system: Arc<str>,
    /// The messages after it: omitted results as the notice that was sent in their place, hints and prefixes
    /// included.
    pub messages: Vec<Arc<Message>>,
    /// Whether the last message is the beginning of the reply.
    pub continue_final_message: bool,
    /// The tools that it showed, in text protocols as part of the system prompt.
    pub tools: Arc<[ToolDefinition]>,
    /// The reply; none where there was none.
    pub reply: Option<Arc<Message>>,
    /// Tokens of the reply, where told.
    pub usage: Option<Usage>,
    /// The number of the request's event.
    pub seq: u64,
}

/// All requests of a run in the order of the log.
#[must_use]
pub fn views(record: &RunRecord) -> Vec<SentView> {
    let mut state = State::new(record);
    for event in record.valid_events() {
        state.take(event);
    }
    state.views
}

#[derive(Default)]
struct State<'a> {
    messages: HashMap<(&'a str, &'a str), Arc<Message>>,
    systems: HashMap<&'a str, Arc<str>>,
    /// Tools by agent id.
    tools: HashMap<&'a str, Arc<[ToolDefinition]>>,
    by_role: HashMap<&'a str, Arc<[ToolDefinition]>>,
    with_findings: bool,
    sub_agents: Vec<&'a str>,
    open: HashMap<(&'a str, u64), usize>,
    views: Vec<SentView>,
}

impl<'a> State<'a> {
    fn new(record: &'a RunRecord) -> Self {
        let mut state = Self::default();
        let Some(start) = start(record) else { return state };
        let agent = &start.config["agent"];
        state.with_findings = agent["findings"].as_bool().unwrap_or(false);
        state.sub_agents =
            agent["sub_agents"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        for (role, tools) in &start.setup.tools {
            state.by_role.insert(role, state.offered(role, tools));
        }
        if let Some(tools) = state.by_role.get(MAIN) {
            state.tools.insert(MAIN, Arc::clone(tools));
        }
        state
    }

    /// What an agent is offered beside its servers' tools: sub-agents, and a place for findings.
    fn offered(&self, role: &str, tools: &[ToolDefinition]) -> Arc<[ToolDefinition]> {
        let mut offered = tools.to_vec();
        if role == MAIN {
            offered.extend(self.sub_agents.iter().map(|name| sub_agents::definition(name)));
        }
        if self.with_findings {
            offered.extend(findings::definitions());
        }
        offered.into()
    }

    fn take(&mut self, event: &'a Event) {
        let agent = event.agent.as_str();
        match &event.body {
            EventBody::SystemPrompt { text } => {
                self.systems.insert(agent, text.as_str().into());
            }
            EventBody::SubAgentStarted { id, name, .. } => {
                let tools = self.by_role.get(name.as_str()).cloned().unwrap_or_default();
                self.tools.insert(id, tools);
            }
            EventBody::ToolsChanged { tools } => {
                let offered = self.offered(agent, tools);
                self.tools.insert(agent, offered);
            }
            EventBody::Message { id, message } => {
                self.messages.insert((agent, id), Arc::new(message.clone()));
            }
            EventBody::LlmRequest { call, purpose, view, omitted, transient, hidden, .. } => {
                let messages = view.iter().filter_map(|id| {
                    let message = self.messages.get(&(agent, id.as_str()))?;
                    Some(if omitted.contains(id) { retention::omitted(message) } else { Arc::clone(message) })
                });
                let mut messages: Vec<Arc<Message>> = messages.collect();
                let is_prefix = *purpose == LlmPurpose::FailureSummary;
                match transient {
                    Some(prefix) if is_prefix => messages.push(Arc::new(Message::assistant(prefix.clone()))),
                    Some(hint) => retention::append_hint(&mut messages, hint),
                    None => {}
                }
                let tools = self.tools.get(agent).cloned().unwrap_or_default();
                let shown = if hidden.is_empty() {
                    tools
                } else {
                    let is_shown =
                        |tool: &&ToolDefinition| !hidden.contains(&format!("{}.{}", tool.server, tool.name));
                    tools.iter().filter(is_shown).cloned().collect()
                };
                self.open.insert((agent, *call), self.views.len());
                self.views.push(SentView {
                    agent: agent.to_owned(),
                    call: *call,
                    pass: event.pass,
                    turn: event.turn,
                    purpose: *purpose,
                    system: self.systems.get(agent).cloned().unwrap_or_else(|| "".into()),
                    messages,
                    continue_final_message: is_prefix && transient.is_some(),
                    tools: shown,
                    reply: None,
                    usage: None,
                    seq: event.seq,
                });
            }
            EventBody::LlmResponse { call, message_id, usage, .. } => {
                let asked = self.open.get(&(agent, *call)).and_then(|index| self.views.get_mut(*index));
                if let Some(view) = asked {
                    view.reply = self.messages.get(&(agent, message_id.as_str())).cloned();
                    view.usage = *usage;
                }
            }
            _ => {}
        }
    }
}
