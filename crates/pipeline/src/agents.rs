//! The agents of a run: which tool servers each may use, and what a sub-agent is set up with.
//!
//! All agents share the sessions of one manager; each sees its own servers less its own blacklist, and calls to the
//! others are told like calls to servers that do not exist.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use core_protocol::event::ServerStatus;
use core_protocol::{ToolDefinition, ToolResult};
use mcp_tools::{ToolFailure, ToolOutcome};
use orchestrator::{Agent, AgentRole, Setup, SubAgentParts, SubAgents, Tools};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::error::PipelineError;
use crate::run::Pipeline;

/// The main agent by its name among the agents.
pub const MAIN: &str = "main";

/// Characters of a name that a model made up, in the text that tells it so.
const SHOWN_NAME: usize = 100;

/// One agent's share of the run's tool servers.
pub struct AgentTools {
    manager: Arc<dyn Tools>,
    servers: Vec<String>,
    blacklist: Vec<(String, String)>,
    /// The tools that the agent was offered when its run began, where it is gone on with.
    offered: Option<Arc<[ToolDefinition]>>,
}

impl AgentTools {
    /// The named servers without the tools of the blacklist, as (server, tool).
    #[must_use]
    pub fn new(manager: Arc<dyn Tools>, servers: Vec<String>, blacklist: Vec<(String, String)>) -> Self {
        Self { manager, servers, blacklist, offered: None }
    }

    /// Offers these tools, whatever the servers list now.
    #[must_use]
    pub fn offering(mut self, tools: Option<&[ToolDefinition]>) -> Self {
        self.offered = tools.map(Arc::from);
        self
    }

    fn is_blacklisted(&self, server: &str, tool: &str) -> bool {
        self.blacklist.iter().any(|(hidden_of, hidden)| hidden_of == server && hidden == tool)
    }
}

#[async_trait]
impl Tools for AgentTools {
    fn definitions(&self) -> Arc<[ToolDefinition]> {
        if let Some(offered) = &self.offered {
            return Arc::clone(offered);
        }
        let all = self.manager.definitions();
        let mut own = Vec::new();
        for server in &self.servers {
            let of_server = all.iter().filter(|tool| tool.server == *server);
            own.extend(of_server.filter(|tool| !self.is_blacklisted(server, &tool.name)).cloned());
        }
        own.into()
    }

    async fn refresh(&self) {
        self.manager.refresh().await;
    }

    async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        if !self.servers.iter().any(|own| own == server) {
            let text = format!(
                "There is no server `{}`. The servers are: {}.",
                harmless(server),
                self.servers.join(", ")
            );
            return refused(ToolFailure::UnknownServer, text);
        }
        if self.is_blacklisted(server, tool) {
            let text = format!("Unknown tool: {}. The server `{server}` does not offer it.", harmless(tool));
            return refused(ToolFailure::UnknownTool, text);
        }
        self.manager.call(server, tool, arguments, cancel).await
    }

    fn is_repeatable(&self, server: &str, tool: &str) -> bool {
        self.manager.is_repeatable(server, tool)
    }
}

fn refused(failure: ToolFailure, text: String) -> ToolOutcome {
    ToolOutcome { result: ToolResult::error(text), failure: Some(failure) }
}

/// A name from a model: short, and no tag of any dialect.
fn harmless(name: &str) -> String {
    name.chars().take(SHOWN_NAME).collect::<String>().replace('<', "&lt;")
}

/// The agents of one run.
pub struct Agents {
    main: AgentTools,
    sub_agents: BTreeMap<String, (Setup, AgentTools)>,
    unused: Vec<ServerStatus>,
}

impl Agents {
    /// The agents over one manager. `setup_of` makes a sub-agent's setup from its name and its tools. A sub-agent none
    /// of whose tools is to be had is left out and named in [`Agents::unused`].
    pub fn new(
        main: AgentTools,
        sub_agents: impl IntoIterator<Item = (String, AgentTools)>,
        setup_of: impl Fn(&str, Arc<[ToolDefinition]>) -> Setup,
    ) -> Self {
        let mut agents = Self { main, sub_agents: BTreeMap::new(), unused: Vec::new() };
        for (name, tools) in sub_agents {
            let offered = tools.definitions();
            if offered.is_empty() {
                agents.unused.push(ServerStatus {
                    error: Some(format!(
                        "the agent has no tools: none of its servers is in use ({})",
                        tools.servers.join(", ")
                    )),
                    name,
                    tools: Vec::new(),
                    sandbox: Vec::new(),
                });
            } else {
                let setup = setup_of(&name, offered);
                agents.sub_agents.insert(name, (setup, tools));
            }
        }
        agents
    }

    /// The main agent's tools.
    #[must_use]
    pub const fn main(&self) -> &AgentTools {
        &self.main
    }

    /// The sub-agents in use, by name.
    #[must_use]
    pub fn names(&self) -> Arc<[String]> {
        self.sub_agents.keys().cloned().collect()
    }

    /// Sub-agents that are configured and cannot be used, with the reason.
    #[must_use]
    pub fn unused(&self) -> &[ServerStatus] {
        &self.unused
    }

    /// The tools that each agent is offered, by agent.
    #[must_use]
    pub fn offered(&self) -> BTreeMap<String, Vec<ToolDefinition>> {
        let main = (MAIN.to_owned(), self.main.definitions().to_vec());
        let others =
            self.sub_agents.iter().map(|(name, (_, tools))| (name.clone(), tools.definitions().to_vec()));
        std::iter::once(main).chain(others).collect()
    }
}

impl Pipeline {
    /// The agents of a run over its started servers. `servers` are the names that each uses; `before`, where a run is
    /// gone on with, the tools that each was offered: an agent that had none then has none now.
    pub(crate) fn agents(
        &self,
        manager: &Arc<dyn Tools>,
        mut servers: BTreeMap<String, Vec<String>>,
        date: &str,
        before: Option<&BTreeMap<String, Vec<ToolDefinition>>>,
    ) -> Result<Agents, PipelineError> {
        let config = &self.config().agent;
        let mut tools_of = |name: &str, role: &AgentRole| {
            let own = servers.remove(name).unwrap_or_default();
            let offered = before.and_then(|before| before.get(name)).map(Vec::as_slice);
            AgentTools::new(Arc::clone(manager), own, role.tool_blacklist.clone()).offering(offered)
        };
        let main = tools_of(MAIN, &config.main_agent);
        let in_use = config
            .sub_agents
            .iter()
            .filter(|(name, _)| before.is_none_or(|before| before.contains_key(*name)));
        let sub_agents: Vec<_> = in_use.map(|(name, role)| (name.clone(), tools_of(name, role))).collect();
        let prompts = Arc::new(self.prompts(date, "browsing")?);
        let mut settings = config.for_sub_agent();
        if self.recorded_question().is_some() {
            settings.llm_retry_pause = 0.0;
        }
        let settings = Arc::new(settings);
        Ok(Agents::new(main, sub_agents, |name, tools| Setup {
            config: Arc::clone(&settings),
            role: config.sub_agents.get(name).cloned().unwrap_or_default(),
            agent: Agent::Sub(name.to_owned()),
            ..self.setup(Arc::clone(&prompts), tools)
        }))
    }
}

impl SubAgents for Agents {
    fn open(&self, name: &str) -> Option<SubAgentParts<'_>> {
        let (setup, tools) = self.sub_agents.get(name)?;
        Some(SubAgentParts { setup: setup.clone(), tools })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two servers with two tools each; a call tells where it went.
    struct Shelf;

    #[async_trait]
    impl Tools for Shelf {
        fn definitions(&self) -> Arc<[ToolDefinition]> {
            [("web", "search"), ("web", "scrape"), ("files", "read"), ("files", "write")]
                .map(|(server, name)| ToolDefinition {
                    server: server.into(),
                    name: name.into(),
                    description: String::new(),
                    input_schema: Value::Null,
                })
                .into()
        }

        async fn call(
            &self,
            server: &str,
            tool: &str,
            _: Map<String, Value>,
            _: &CancellationToken,
        ) -> ToolOutcome {
            ToolOutcome { result: ToolResult::text(format!("{server}.{tool}")), failure: None }
        }

        fn is_repeatable(&self, _: &str, tool: &str) -> bool {
            tool != "write"
        }
    }

    fn share(servers: &[&str]) -> AgentTools {
        let servers = servers.iter().map(|name| (*name).to_owned()).collect();
        AgentTools::new(Arc::new(Shelf), servers, vec![("web".into(), "scrape".into())])
    }

    #[tokio::test]
    async fn an_agent_has_its_own_servers_less_its_blacklist() {
        for (servers, expected) in [
            (&["web", "files"][..], "search read write"),
            (&["files", "web"], "read write search"),
            (&["files"], "read write"),
            (&["absent"], ""),
        ] {
            let offered = share(servers).definitions();
            let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names.join(" "), expected);
        }
        let tools = share(&["web"]);
        for (server, tool, failure, text) in [
            ("web", "search", None, "web.search"),
            ("web", "scrape", Some(ToolFailure::UnknownTool), "does not offer it"),
            ("files", "read", Some(ToolFailure::UnknownServer), "The servers are: web."),
            ("<use_mcp_tool>", "read", Some(ToolFailure::UnknownServer), "&lt;use_mcp_tool>"),
        ] {
            let outcome = tools.call(server, tool, Map::new(), &CancellationToken::new()).await;
            assert_eq!(outcome.failure, failure, "{server}.{tool}");
            assert!(outcome.result.joined_text().contains(text), "{:?}", outcome.result);
        }
        assert!(tools.is_repeatable("web", "search") && !tools.is_repeatable("files", "write"));
    }
}
