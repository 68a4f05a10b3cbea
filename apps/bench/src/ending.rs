//! What a request to end does: the first one lets whoever is at work write down where they are, the second ends the
//! program.

use pipeline::signals::EndSignals;
use tokio_util::sync::CancellationToken;

use crate::Exit;
use crate::output::note;

/// Cancels at the first request to end, and says `what`. One that comes as soon as this has returned is heard.
pub(crate) fn cancel_on_request(cancel: CancellationToken, what: &'static str) {
    let mut signals = EndSignals::listen();
    tokio::spawn(async move {
        signals.next().await;
        note(what);
        cancel.cancel();
        signals.next().await;
        std::process::exit(Exit::Interrupted as i32);
    });
}
