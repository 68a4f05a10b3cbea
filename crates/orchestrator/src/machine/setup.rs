//! What a machine is made of and does not change during a run: its agent, its tools, what its model can do.

use std::sync::Arc;

use core_protocol::{Dialect, ToolDefinition};
use llm_providers::ToolProtocol;
use serde_json::{Map, Value};

use crate::config::{AgentConfig, AgentRole};
use crate::ports::Prompts;

/// What does not change during a run.
#[derive(Clone)]
pub struct Setup {
    /// The `agent` section.
    pub config: Arc<AgentConfig>,
    /// The agent that runs.
    pub role: AgentRole,
    /// Its texts.
    pub prompts: Arc<dyn Prompts>,
    /// Which agent of the run it is.
    pub agent: Agent,
    /// Its tools. Those of the loop itself and the sub-agents are added to them.
    pub tools: Arc<[ToolDefinition]>,
    /// Sub-agents that it can call, by name.
    pub sub_agents: Arc<[String]>,
    /// How calls are spelled.
    pub protocol: ToolProtocol,
    /// The dialect of calls in text.
    pub dialect: &'static dyn Dialect,
    /// Whether the model's chat template opens the thinking, so that a reply begins inside it.
    pub starts_in_thinking: bool,
    /// What the model takes and how much of it.
    pub model: ModelFacts,
    /// Model and sampling parameters, for the log.
    pub params: Map<String, Value>,
}

/// Which agent of a run a machine is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Agent {
    /// The one that was asked.
    #[default]
    Main,
    /// One that works on a subtask, by its id in the run: its name and a number, `agent-browsing-1`. It ends in a
    /// report for the agent that called it.
    Sub(String),
}

impl Agent {
    /// The name in events.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Main => "main",
            Self::Sub(id) => id,
        }
    }

    /// An id of this agent's own as one that is unique in the run.
    pub(super) fn qualified(&self, id: &str) -> String {
        match self {
            Self::Main => id.to_owned(),
            Self::Sub(agent) => format!("{agent}.{id}"),
        }
    }
}

/// What the loop must know about the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFacts {
    /// Goes on from a last message of role assistant.
    pub assistant_prefix: bool,
    /// Takes pictures.
    pub images: bool,
    /// Takes recordings.
    pub audio: bool,
    /// Tokens of its window.
    pub max_context_length: u64,
    /// Tokens of its longest reply.
    pub max_tokens: u64,
}
