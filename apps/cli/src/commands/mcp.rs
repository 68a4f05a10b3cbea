//! `fathom mcp serve NAME`: a built-in tool server for any MCP client, over standard input and output.

use std::process::ExitCode;

use tokio::io::{AsyncWriteExt as _, copy};
use tokio_util::sync::CancellationToken;

use crate::args::McpCommand;
use crate::environment::Context;
use crate::exit::{Exit, Failure};

/// Bytes that may wait between the client and the server.
const BUFFER: usize = 256 * 1024;

pub(crate) async fn run(context: &Context, command: McpCommand) -> Result<ExitCode, Failure> {
    let McpCommand::Serve { name } = command;
    let resolved = context.around.resolve()?;
    let scratch = super::scratch_dir()?;
    let wiring = pipeline::Wiring {
        config: &resolved.config,
        conf: &resolved.conf,
        places: &context.around.places,
        configured: &[],
        configured_in: "mcp.json",
        docs: &context.common.docs,
        run_dir: scratch.path(),
        files: &[],
    };
    let server = wiring.built_in(&name)?;
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let stop = CancellationToken::new();
    let serving = server.serve(theirs, stop.clone());
    let (mut from_server, mut to_server) = tokio::io::split(ours);
    let incoming = async {
        // At the end of its input the client is gone: the server is told so and finishes what it is doing.
        let _ = copy(&mut tokio::io::stdin(), &mut to_server).await;
        let _ = to_server.shutdown().await;
    };
    let outgoing = async {
        let _ = copy(&mut from_server, &mut tokio::io::stdout()).await;
        stop.cancel();
    };
    tokio::join!(serving, incoming, outgoing);
    Ok(Exit::Done.into())
}
