//! `fathom tools list|call`: what the agent can use, and one call by hand.

use std::process::ExitCode;

use anyhow::Context as _;
use core_protocol::ToolDefinition;
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
                output::line(&format!("  {}", one_line(&signature(tool), 160)));
                output::line(&format!("      {}", one_line(&tool.description, 100)));
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

/// `name(needed, optional?)`.
fn signature(tool: &ToolDefinition) -> String {
    let schema = &tool.input_schema;
    let is_required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|required| required.iter().any(|known| known == name))
    };
    let names = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
    let arguments: Vec<String> =
        names.map(|name| if is_required(name) { name.clone() } else { format!("{name}?") }).collect();
    format!("{}({})", tool.name, arguments.join(", "))
}

/// The arguments as they were typed, or as they come on standard input.
fn arguments_of(typed: &str) -> Result<Map<String, Value>, Failure> {
    let piped;
    let text = if typed == "-" {
        piped = std::io::read_to_string(std::io::stdin()).context("standard input cannot be read")?;
        &piped
    } else {
        typed
    };
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(
            "usage",
            format!("the arguments are not a JSON object: {error}"),
            "Write them as one, in single quotes: fathom tools call library search_library '{\"q\": \"Kepler\"}'",
        )
    })
}

async fn call(
    context: &Context,
    server: &str,
    tool: &str,
    arguments: &str,
    style: Style,
) -> Result<ExitCode, Failure> {
    let arguments = arguments_of(arguments)?;
    let pipeline = context.around.pipeline().await?;
    let scratch = super::scratch_dir()?;
    let (manager, statuses) =
        pipeline.start_tools_with(Some(server), &context.common.docs, scratch.path()).await?;
    if let Some(error) =
        statuses.iter().find(|status| status.name == server).and_then(|status| status.error.as_ref())
    {
        output::note(&style.paint(Look::Warning, &format!("{server}: {error}")));
    }
    if !statuses.iter().any(|status| status.name == server) && pipeline::AVAILABLE.contains(&server) {
        let hint = format!(
            "`{server}` is built in; -s 'agent.main_agent.tools=[{server}]' makes it one of the agent's."
        );
        output::note(&style.paint(Look::Warning, &hint));
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
