//! A server over this process's standard input and output.
//!
//! Decides that the end of the input ends the session, and `stop` too, without waiting for a client that
//! holds its end open.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncWriteExt as _, copy};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::InProcessServer;

/// Bytes that may wait between the client and the server.
const BUFFER: usize = 256 * 1024;
/// From `stop` until the server is dropped.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// Serves one session over standard input and output, and returns when it is over: the client has closed
/// its end, or `stop` was cancelled.
pub fn serve_stdio(server: Arc<dyn InProcessServer>, stop: CancellationToken) -> BoxFuture<'static, ()> {
    Box::pin(serve(server, stop))
}

async fn serve(server: Arc<dyn InProcessServer>, stop: CancellationToken) {
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let ended = CancellationToken::new();
    let serving = {
        let (stop, ended) = (stop.clone(), ended.clone().drop_guard());
        async move {
            let _ended = ended;
            server.serve(theirs, stop).await;
        }
    };
    let (mut from_server, mut to_server) = tokio::io::split(ours);
    let (mut input, mut output) = stdio_pipes();
    let incoming = async {
        tokio::select! {
            // At the end of its input the client is gone: the server is told so and finishes what it is doing.
            _ = copy(&mut input, &mut to_server) => {}
            () = ended.cancelled() => {}
        }
        let _ = to_server.shutdown().await;
    };
    let outgoing = async {
        let _ = copy(&mut from_server, &mut output).await;
        let _ = output.flush().await;
        stop.cancel();
    };
    let served = async {
        tokio::join!(serving, incoming, outgoing);
    };
    tokio::pin!(served);
    tokio::select! {
        () = &mut served => return,
        () = stop.cancelled() => {}
    }
    if timeout(LEAVE_TIME, served).await.is_err() {
        tracing::warn!("the server did not end and was dropped");
    }
}
