//! What can be set about an agent: the `agent` section of the configuration.
//!
//! Decides names, types and defaults. Where the values come from is left to whoever fills it in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The `agent` section. Names that the reference system has are the same here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// The agent that is asked.
    pub main_agent: AgentRole,
    /// Agents that the main one can hand subtasks to, by name (`agent-browsing`).
    pub sub_agents: BTreeMap<String, AgentRole>,
    /// How many of the newest tool results a request shows in full; −1 shows all.
    pub keep_tool_result: i64,
    /// How many further passes may follow a failed one; 0 switches failure summaries off.
    pub context_compress_limit: u32,
    /// Whether a failed pass is summed up for the next.
    pub retry_with_summary: bool,
    /// Rollbacks in a row stay below this number (5 allows 4).
    pub max_consecutive_rollbacks: u32,
    /// Replies beyond `max_turns` that rollbacks may use up, per pass.
    pub extra_call_attempts: u32,
    /// Seconds to wait after a call that gave no usable reply.
    pub llm_retry_pause: f64,
    /// Calls without a usable reply in a row that end the pass.
    pub max_llm_failures: u32,
    /// What is done when one reply holds several calls.
    pub tool_calls_per_turn: ToolCallsPerTurn,
    /// Whether a retry after a rollback is told, once, what was wrong.
    pub rollback_hint: bool,
    /// Which tools are shown when; empty shows all of them always.
    pub tool_selection: Vec<ToolSelectionRule>,
    /// Whether facts with their sources are kept apart from the history, with two tools to note and to list them.
    pub findings: bool,
    /// Sum up the history every so many turns, all but the newest round; 0 never does.
    pub summarize_every: u32,
    /// Tokens of a request beyond which the history is summed up at once, where that is on.
    pub token_limit: u64,
    /// What the run ends in.
    pub answer_format: AnswerFormat,
    /// Phrases that mark a reply without calls as a refusal, with either kind of apostrophe.
    pub refusal_phrases: Vec<String>,
    /// Arguments that identify a query, by tool name; for a tool of the built-in table in place of its row.
    pub duplicate_keys: BTreeMap<String, Vec<String>>,
    /// Characters that a scraping result is cut to; none leaves it whole.
    pub scrape_result_limit: Option<usize>,
    /// Whether a box in the last reply of the loop is taken without asking again.
    pub skip_final_call: bool,
    /// Which system prompt template is used.
    pub prompt_style: PromptStyle,
    /// How tool schemas are printed in the system prompt.
    pub schema_style: SchemaStyle,
    /// Bounds of the whole run.
    pub limits: RunLimits,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            main_agent: AgentRole::default(),
            sub_agents: BTreeMap::new(),
            keep_tool_result: -1,
            context_compress_limit: 0,
            retry_with_summary: true,
            max_consecutive_rollbacks: 5,
            extra_call_attempts: 200,
            llm_retry_pause: 5.0,
            max_llm_failures: 3,
            tool_calls_per_turn: ToolCallsPerTurn::All,
            rollback_hint: false,
            tool_selection: Vec::new(),
            findings: false,
            summarize_every: 0,
            token_limit: 80_000,
            answer_format: AnswerFormat::Boxed,
            refusal_phrases: ["time constraint", "I'm sorry, but I can't", "I'm sorry, I cannot solve"]
                .map(String::from)
                .to_vec(),
            duplicate_keys: BTreeMap::new(),
            scrape_result_limit: None,
            skip_final_call: false,
            prompt_style: PromptStyle::Plain,
            schema_style: SchemaStyle::Json,
            limits: RunLimits::default(),
        }
    }
}

impl AgentConfig {
    /// The settings of a sub-agent: those of the run, in one pass and without agents of its own.
    #[must_use]
    pub fn for_sub_agent(&self) -> Self {
        Self {
            sub_agents: BTreeMap::new(),
            context_compress_limit: 0,
            skip_final_call: false,
            ..self.clone()
        }
    }
}

/// One agent: what it may use and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentRole {
    /// Turns of one pass.
    pub max_turns: u32,
    /// Names of tool servers, built-in or configured.
    pub tools: Vec<String>,
    /// Tools that are not shown, as (server, tool).
    pub tool_blacklist: Vec<(String, String)>,
}

impl Default for AgentRole {
    fn default() -> Self {
        Self { max_turns: 100, tools: Vec::new(), tool_blacklist: Vec::new() }
    }
}

/// What is done when one reply holds several calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallsPerTurn {
    /// All of them, one after another.
    #[default]
    All,
    /// Only the first.
    First,
    /// All of them at once; results in call order.
    Parallel,
}

/// What a run ends in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFormat {
    /// A short answer in a box.
    #[default]
    Boxed,
    /// A sectioned report with citations.
    Report,
}

/// Which system prompt template is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptStyle {
    /// Rules only.
    #[default]
    Plain,
    /// Rules and a worked example, for small models.
    Example,
}

/// How tool schemas are printed in the system prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaStyle {
    /// As JSON.
    #[default]
    Json,
    /// As the Python literal that the reference prints.
    Python,
}

/// Which tools are shown when. Without any rule all tools are shown always. A rule without `search` shows its tools
/// in the given turns only; one with `search` shows the best of its tools for the question. A tool that no rule is
/// about is always shown. Rules choose what is shown, not what is allowed: a call to a tool that is not shown at the
/// moment is run like any other, since the model may know it from an earlier turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSelectionRule {
    /// The server that the rule is about; none, with `search` only: all servers.
    pub server: Option<String>,
    /// Names of its tools that the rule is about; empty: all of them.
    pub tools: Vec<String>,
    /// First turn, from 1; none: the first.
    pub from_turn: Option<u32>,
    /// Last turn; none: the last.
    pub to_turn: Option<u32>,
    /// How many tools are shown: those whose names and descriptions share most with the question's words.
    pub search: Option<usize>,
    /// Servers or tools that are shown beside them.
    pub always: Vec<String>,
}

/// Bounds of the whole run, passes and sub-agents included. None is no bound.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunLimits {
    /// Seconds.
    pub wall: Option<f64>,
    /// Seconds without those that were spent waiting for limiters: for a place among all who ask the same model
    /// server, or for the end of a pause that it asked for.
    pub working_time: Option<f64>,
    /// Prompt and generated tokens together.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost: Option<f64>,
}
