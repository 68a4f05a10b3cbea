//! One session of a server that runs inside this process.
//!
//! Decides how such a server is ended and how long it has for that.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::spec::InProcessServer;

/// Room of the in-memory transport in each direction, in bytes: most results in one piece.
const BUFFER: usize = 64 * 1024;
/// From the request to end until a server is dropped.
const LEAVE_TIME: Duration = Duration::from_secs(2);

/// A server that serves one session. Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct InProcessTask {
    stop: CancellationToken,
    ended: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl InProcessTask {
    /// Starts serving; the stream is the client's end.
    pub(crate) fn start(server: Arc<dyn InProcessServer>) -> (Self, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let (stopped, ending) = (stop.clone(), ended.clone().drop_guard());
        tokio::spawn(async move {
            let _ending = ending; // dropped after the server, be it by a panic
            let serving = server.serve(theirs, stopped.clone());
            tokio::pin!(serving);
            tokio::select! {
                () = &mut serving => return,
                () = stopped.cancelled() => {}
            }
            if timeout(LEAVE_TIME, serving).await.is_err() {
                tracing::warn!(
                    server = server.name(),
                    "an in-process tool server did not end and was dropped"
                );
            }
        });
        (Self { stop: stop.clone(), ended, _stop_on_drop: stop.drop_guard() }, ours)
    }

    /// Ends the server and waits until it has.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        let _ = timeout(2 * LEAVE_TIME, self.ended.cancelled()).await;
    }
}
