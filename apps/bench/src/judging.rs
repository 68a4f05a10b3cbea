//! What is shown while answers are judged again: a line now and then.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use evaluation::score::Scored;

use crate::output::note;

/// Says how far judging has come, every few seconds to somebody who watches and rarely to a file.
pub(crate) fn shown() -> impl Fn(&Scored) + Sync {
    let pause = Duration::from_secs(if std::io::stderr().is_terminal() { 2 } else { 20 });
    let last = Mutex::new(Instant::now());
    move |scored| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < pause {
            return;
        }
        *last = Instant::now();
        let failed = if scored.failed > 0 { format!(", {} failed", scored.failed) } else { String::new() };
        note(&format!("{}/{} judged{failed}", scored.judged, scored.wanted));
    }
}
