//! The tool of `stateless_python`.
//!
//! Decides its name and argument. How code runs is left to `sandboxes`, what is said of it to `words`.

use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::sandboxes::Sandboxes;
use super::session::Request;
use super::words::{failure, render};

#[derive(Debug, Deserialize, JsonSchema)]
struct Code {
    /// The Python code. The value of its last expression is shown, and all that it prints.
    code: String,
}

#[derive(Debug, Clone)]
pub(super) struct StatelessTools {
    sandboxes: Arc<Sandboxes>,
}

#[tool_router]
impl StatelessTools {
    pub(super) fn new(sandboxes: Arc<Sandboxes>) -> Self {
        Self { sandboxes }
    }

    #[tool(
        description = "Runs Python code in a fresh, isolated interpreter and returns what it prints and the value of \
                       its last expression. Nothing is kept between calls: import and define everything that the code \
                       needs. There is no network, or only the proxy that HTTP_PROXY names, and files last only as long as the call."
    )]
    async fn python(
        &self,
        Parameters(Code { code }): Parameters<Code>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        let outcome = self.sandboxes.run_once(Request::Code(&code), &context.ct).await.map_err(failure)?;
        render(outcome, false, &[])
    }
}

#[tool_handler(name = "stateless_python")]
impl ServerHandler for StatelessTools {}
