//! The servers `tool-reasoning` and `tool-reasoning-os`.
//!
//! Decides what a model that thinks is asked.

use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{answer, asked};
use crate::{InProcessServer, ModelQuestion, ToolModel, in_process};

const SYSTEM: &str = "Work the problem out step by step from what it says; nothing else can be looked up. Check the result \
                      against every condition of the problem. End with the answer in one sentence, and with what it rests \
                      on where the problem leaves something open.";

#[derive(Debug, Deserialize, JsonSchema)]
struct Reasoning {
    /// The problem with all that is needed to solve it: the model that is asked knows nothing of this conversation.
    question: String,
}

/// The server of that name.
#[must_use]
pub fn server(name: &str, model: Arc<dyn ToolModel>) -> Arc<dyn InProcessServer> {
    in_process(name, move || ReasoningTools { model: Arc::clone(&model) })
}

#[derive(Clone)]
struct ReasoningTools {
    model: Arc<dyn ToolModel>,
}

#[tool_router]
impl ReasoningTools {
    #[tool(
        description = "Has a model that is strong at thinking solve a hard problem: mathematics, logic, puzzles, code, \
                       weighing of evidence. It has no tools and cannot look anything up."
    )]
    async fn reasoning(
        &self,
        Parameters(Reasoning { question }): Parameters<Reasoning>,
    ) -> Result<String, String> {
        let text = asked(question)?;
        let question = ModelQuestion { system: Some(SYSTEM.to_owned()), text, ..ModelQuestion::default() };
        answer(&*self.model, question).await
    }
}

#[tool_handler(name = "tool-reasoning")]
impl ServerHandler for ReasoningTools {}
