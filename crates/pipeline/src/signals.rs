//! When a program is asked to end in order. Decides which signals mean that: Ctrl-C, a request to terminate, a terminal
//! that was closed.

#[cfg(unix)]
use std::task::Poll;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears what asks the program to end, from the moment it is made; nothing that comes in between is lost.
///
/// A hangup that was ignored when the program began, as `nohup` has it, is not heard, where the system tells.
#[derive(Debug)]
pub struct EndSignals {
    #[cfg(unix)]
    heard: Vec<Signal>,
    /// Heard once: a terminal that closes may say so twice, by its shell and by the system when the shell ends.
    #[cfg(unix)]
    hangup: Option<Signal>,
}

#[cfg(unix)]
impl EndSignals {
    /// Begins to listen; for what the system does not let it listen to, things stay as they are. Belongs inside a
    /// runtime.
    #[must_use]
    pub fn listen() -> Self {
        let listen = |kind| signal(kind).ok();
        let hangup = (!hangups_are_ignored()).then(SignalKind::hangup);
        Self {
            heard: [SignalKind::interrupt(), SignalKind::terminate()]
                .into_iter()
                .filter_map(listen)
                .collect(),
            hangup: hangup.and_then(listen),
        }
    }

    /// Waits for the next request to end.
    pub async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let mut is_heard = |signal: &mut Signal| signal.poll_recv(context) == Poll::Ready(Some(()));
            if self.hangup.as_mut().is_some_and(&mut is_heard) {
                self.hangup = None;
                return Poll::Ready(());
            }
            if self.heard.iter_mut().any(is_heard) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[cfg(not(unix))]
impl EndSignals {
    /// Nothing is listened to before it is waited for.
    #[must_use]
    pub const fn listen() -> Self {
        Self {}
    }

    /// Waits for the next request to end.
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
