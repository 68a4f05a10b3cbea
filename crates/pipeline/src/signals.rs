//! When a program is asked to end in order. Decides which signals mean that: Ctrl-C, a request to terminate, a terminal
//! that was closed.

#[cfg(unix)]
use std::task::Poll;

/// Hears what asks the program to end, from the moment it is made; nothing that comes in between is lost.
///
/// Of what was ignored when the program began, as `nohup` makes it ignore the end of its terminal, nothing is heard.
#[derive(Debug)]
pub struct EndSignals {
    #[cfg(unix)]
    heard: Vec<tokio::signal::unix::Signal>,
}

impl EndSignals {
    /// Begins to listen; for what the system does not let it listen to, things stay as they are. Belongs inside a
    /// runtime.
    #[cfg(unix)]
    #[must_use]
    pub fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = (!hangups_are_ignored()).then(SignalKind::hangup);
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(hangup);
        Self { heard: kinds.filter_map(|kind| signal(kind).ok()).collect() }
    }

    /// Begins to listen.
    #[cfg(not(unix))]
    #[must_use]
    pub fn listen() -> Self {
        Self {}
    }

    /// Waits for the next request to end.
    #[cfg(unix)]
    pub async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let asked =
                self.heard.iter_mut().any(|signal| signal.poll_recv(context) == Poll::Ready(Some(())));
            if asked { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Waits for the next request to end.
    #[cfg(not(unix))]
    pub async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Looked at once: to listen for a signal changes what the system says of it.
#[cfg(unix)]
fn hangups_are_ignored() -> bool {
    static IGNORED: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
        std::fs::read_to_string("/proc/self/status").is_ok_and(|status| has_first_signal(&status))
    });
    *IGNORED
}

/// Whether the mask of ignored signals holds the first one, which is the hangup.
#[cfg(unix)]
fn has_first_signal(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::has_first_signal;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = |mask: &str| format!("Name:\tfathom\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
        assert!(has_first_signal(&status("0000000000001001")));
        assert!(!has_first_signal(&status("0000000000001000")));
        assert!(!has_first_signal("SigIgn:\tno number") && !has_first_signal(""));
    }
}
