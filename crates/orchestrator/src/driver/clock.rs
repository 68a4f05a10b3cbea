//! The clock of a run: what it has spent, and waiting that ends when its time is used up or somebody cancels.

use std::time::Duration;

use super::Driver;
use crate::ledger::Ledger;
use crate::limits::{self, Spent};

/// How long it takes at least until a clock that stood still is looked at again.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);

/// Why waiting ended early.
pub(super) enum Interruption {
    Cancelled,
    Time,
}

impl Driver<'_> {
    /// Waits for `work`, at most until somebody cancels or the time of the run is used up.
    pub(super) async fn unless_interrupted<T>(
        &self,
        bounded: bool,
        ledger: &Ledger,
        work: impl Future<Output = T>,
    ) -> Result<T, Interruption> {
        let out_of_time = async {
            // Working time stands still now and then, so the clock is looked at again when it could have run out.
            while let Some(left) = limits::time_left(&self.limits, self.spent(ledger)).filter(|_| bounded) {
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.max(SHORTEST_LOOK)).await;
            }
            std::future::pending().await
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Interruption::Cancelled),
            result = work => Ok(result),
            () = out_of_time => Err(Interruption::Time),
        }
    }

    /// How long the run has taken, its earlier parts included.
    pub(super) fn elapsed(&self) -> Duration {
        self.journal.elapsed() + self.started.elapsed()
    }

    pub(super) fn spent(&self, ledger: &Ledger) -> Spent {
        let wall = self.elapsed();
        let working = wall.saturating_sub(self.clock.times().limiter);
        Spent { wall, working, tokens: ledger.tokens(), cost: ledger.cost() }
    }
}
