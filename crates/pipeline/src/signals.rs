//! When a program is asked to end in order. Decides which signals mean that: Ctrl-C, a request to terminate, a terminal
//! that was closed.

/// Waits until the program is asked to end. What follows is asked of by waiting again.
///
/// Of what was ignored when the program began, as `nohup` makes it ignore the end of its terminal, nothing is heard.
#[cfg(unix)]
pub async fn asked_to_end() {
    use futures_util::future::{pending, select_all};
    use tokio::signal::unix::{SignalKind, signal};

    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let heard = kinds.into_iter().filter(|kind| *kind != SignalKind::hangup() || !hangups_are_ignored());
    let waits = heard.filter_map(|kind| signal(kind).ok()).map(|mut signal| {
        Box::pin(async move {
            if signal.recv().await.is_none() {
                pending::<()>().await;
            }
        })
    });
    let waits: Vec<_> = waits.collect();
    if waits.is_empty() {
        return pending().await;
    }
    select_all(waits).await;
}

/// Waits until the program is asked to end. What follows is asked of by waiting again.
#[cfg(not(unix))]
pub async fn asked_to_end() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
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
