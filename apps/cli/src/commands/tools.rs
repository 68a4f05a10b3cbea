//! `fathom tools list|call`: what the agent can use, and one call by hand.

use std::process::ExitCode;

use anyhow::Context as _;
use core_protocol::{ContentBlock, MediaSource, ToolDefinition};
use pipeline::log::BLOBS_NAME;
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
    let (manager, statuses) = pipeline.start_server(server, &context.common.docs, scratch.path()).await?;
    if let Some(error) = statuses.iter().find_map(|status| status.error.as_ref()) {
        output::note(&style.paint(Look::Warning, &format!("{server}: {error}")));
    }
    let outcome = manager.call(server, tool, arguments, &CancellationToken::new()).await;
    if context.common.output == Output::Text {
        output::line(&output::harmless(&told(&outcome.result.content)));
    } else {
        output::result(&json!({
            "result": outcome.result,
            "error_kind": outcome.failure.map(mcp_tools::ToolFailure::kind),
        }));
    }
    manager.shutdown().await;
    keep_blobs(scratch);
    Ok(if outcome.failure.is_none() { Exit::Done } else { Exit::Failed }.into())
}

/// The texts of a result; what is no text is named in its place.
fn told(content: &[ContentBlock]) -> String {
    let named = |what: &str, source: &MediaSource| match source {
        MediaSource::Base64 { media_type, data } => {
            format!("[{what}: {media_type}, {} bytes; --output json has it]", data.len() / 4 * 3)
        }
        MediaSource::Url { url } => format!("[{what}: {url}]"),
    };
    let told = |block: &ContentBlock| match block {
        ContentBlock::Text { text } => Some(text.clone()),
        ContentBlock::Image { source } => Some(named("image", source)),
        ContentBlock::Audio { source } => Some(named("audio", source)),
        ContentBlock::File { uri, .. } => Some(format!("[file: {uri}]")),
        _ => None,
    };
    content.iter().filter_map(told).collect::<Vec<_>>().join("\n")
}

/// A result that was cut names the file that holds the whole of it: that one stays.
fn keep_blobs(scratch: tempfile::TempDir) {
    if !scratch.path().join(BLOBS_NAME).is_dir() {
        return;
    }
    let folder = scratch.keep();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name() != BLOBS_NAME {
            let _ = std::fs::remove_dir_all(entry.path()).or_else(|_| std::fs::remove_file(entry.path()));
        }
    }
}
