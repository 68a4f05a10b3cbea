//! `fathom tools list|call`: what the agent can use, and one call by hand.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{Output, ToolsCommand};
use crate::environment::Context;
use crate::exit::{Exit, Failure};
use crate::output::{self, Look, Style, one_line};

pub(crate) async fn run(context: &Context, command: ToolsCommand, style: Style) -> Result<ExitCode, Failure> {
    match command {
        ToolsCommand::List => list(context, style).await,
        ToolsCommand::Call { server, tool, arguments } => {
            call(context, &server, &tool, &arguments, style).await
        }
    }
}

async fn list(context: &Context, style: Style) -> Result<ExitCode, Failure> {
    let pipeline = context.around.pipeline().await?;
    let scratch = super::scratch_dir()?;
    let (manager, statuses) = pipeline.start_tools(&context.common.docs, scratch.path()).await?;
    let definitions = manager.definitions();
    if context.common.output == Output::Text {
        for status in &statuses {
            match &status.error {
                None => output::line(&style.paint(Look::Bold, &status.name)),
                Some(error) => output::line(&format!("{} — not available: {error}", status.name)),
            }
            for tool in definitions.iter().filter(|tool| tool.server == status.name) {
                output::line(&format!("  {:<28} {}", tool.name, one_line(&tool.description, 100)));
            }
        }
    } else {
        let servers: Vec<Value> = statuses
            .iter()
            .map(|status| {
                let tools: Vec<Value> = definitions
                    .iter()
                    .filter(|tool| tool.server == status.name)
                    .map(|tool| {
                        json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
                    })
                    .collect();
                json!({"name": status.name, "tools": tools, "error": status.error, "sandbox": status.sandbox})
            })
            .collect();
        output::result(&json!({ "servers": servers }));
    }
    manager.shutdown().await;
    Ok(Exit::Done.into())
}

async fn call(
    context: &Context,
    server: &str,
    tool: &str,
    arguments: &str,
    style: Style,
) -> Result<ExitCode, Failure> {
    let arguments: Map<String, Value> = serde_json::from_str(arguments).map_err(|error| {
        Failure::usage(
            "usage",
            format!("the arguments are not a JSON object: {error}"),
            "Write them as one, in single quotes: fathom tools call library search_library '{\"q\": \"Kepler\"}'",
        )
    })?;
    let pipeline = context.around.pipeline().await?;
    let scratch = super::scratch_dir()?;
    let (manager, statuses) = pipeline.start_tools(&context.common.docs, scratch.path()).await?;
    if let Some(error) =
        statuses.iter().find(|status| status.name == server).and_then(|status| status.error.as_ref())
    {
        output::note(&style.paint(Look::Warning, &format!("{server}: {error}")));
    }
    let outcome = manager.call(server, tool, arguments, &CancellationToken::new()).await;
    if context.common.output == Output::Text {
        output::line(&output::harmless(&outcome.result.joined_text()));
    } else {
        output::result(&json!({
            "result": outcome.result,
            "error_kind": outcome.failure.map(mcp_tools::ToolFailure::kind),
        }));
    }
    manager.shutdown().await;
    Ok(if outcome.failure.is_none() { Exit::Done } else { Exit::Failed }.into())
}
