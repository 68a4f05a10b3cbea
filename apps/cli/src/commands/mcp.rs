//! `fathom mcp serve NAME`: a built-in tool server for any MCP client, over standard input and output or over HTTP.

use std::process::ExitCode;
use std::sync::Arc;

use mcp_tools::{HttpOptions, HttpServer, InProcessServer, ServeError, parse_address, serve_stdio};
use pipeline::signals::EndSignals;
use tokio_util::sync::CancellationToken;

use crate::args::McpCommand;
use crate::environment::Context;
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) async fn run(context: &Context, command: McpCommand) -> Result<ExitCode, Failure> {
    let McpCommand::Serve { name, http, token } = command;
    let mut resolved = context.around.resolve()?;
    if name == pipeline::web_tools::READS_PAGES {
        // There is no run whose model could be asked: the one that a run would have is found here.
        pipeline::find_model(&mut resolved).await;
    }
    let token = token.or_else(|| resolved.environment.get("FATHOM_MCP_TOKEN").map(str::to_owned));
    let scratch = super::scratch_dir()?;
    let readable = context.around.places.open_to_clients(&resolved.environment);
    let wiring = pipeline::Wiring {
        config: &resolved.config,
        limiters: &context.around.limiters,
        clock: pipeline::RunClock::default(),
        environment: &resolved.environment,
        conf: &resolved.conf,
        places: &context.around.places,
        configured: &[],
        configured_in: "mcp.json",
        docs: &context.common.docs,
        run_dir: scratch.path(),
        files: &readable,
    };
    let server = wiring.built_in(&name)?;
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone());
    match http {
        None => serve_stdio(server, stop).await,
        Some(address) => serve_http(server, &address, token, stop).await?,
    }
    Ok(Exit::Done.into())
}

async fn serve_http(
    server: Arc<dyn InProcessServer>,
    address: &str,
    token: Option<String>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let name = server.name().to_owned();
    let failed = |error: ServeError| match error {
        ServeError::Listen { .. } | ServeError::Server { .. } => Failure::internal(anyhow::Error::new(error)),
        ServeError::Unprotected { .. } => Failure::usage(
            error.kind(),
            error.to_string(),
            "Put the token into FATHOM_MCP_TOKEN, so that it is not seen in the list of processes.",
        ),
        _ => Failure::usage(error.kind(), error.to_string(), "fathom mcp serve --help shows examples."),
    };
    let address = parse_address(address).map_err(failed)?;
    let server = HttpServer::bind(server, HttpOptions { address, token }).await.map_err(failed)?;
    output::note(&format!("{name} is served at {}", server.url()));
    server.run(stop).await;
    Ok(())
}

/// Ctrl-C and a request to terminate end the server, not just this process.
fn stop_on_signal(stop: CancellationToken) {
    let mut signals = EndSignals::listen();
    tokio::spawn(async move {
        signals.next().await;
        stop.cancel();
    });
}
