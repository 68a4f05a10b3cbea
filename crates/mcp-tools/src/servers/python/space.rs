//! The space that the files of one sandbox may take.
//!
//! Decides when it is looked at and when it is too much. The kernel has no limit for a folder, so it is watched: often
//! while a call runs, now and then while processes are left running between calls, and never for more than a tenth of
//! the time. Killing is left to whoever runs the code.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::scratch;
use crate::sandbox::{Space, measure};

/// Between two looks while a call runs.
const BUSY: Duration = Duration::from_millis(50);
/// Between two looks while none does.
const IDLE: Duration = Duration::from_millis(500);
/// After a look, so often its time is let pass.
const SHARE: u32 = 10;

/// How the files of a sandbox are over what they may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// They take more than so many bytes.
    Bytes { most: u64 },
    /// Folders are so deep inside one another that nobody can look.
    Hidden,
}

/// What watches one sandbox. It stops when it is dropped.
#[derive(Debug)]
pub(super) struct SpaceWatch {
    shared: Arc<Shared>,
    watcher: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    scratch: PathBuf,
    /// Bytes that the files may take.
    most: u64,
    /// Bytes that they may take now: where it was too much, what was left then, less as they are removed.
    ceiling: AtomicU64,
    /// The process whose tree may hold files without a name; 0: none.
    process: AtomicU32,
    is_busy: AtomicBool,
    wake: Notify,
    excess: watch::Sender<Option<Excess>>,
}

impl SpaceWatch {
    pub(super) fn start(scratch: &Path, most: u64) -> Self {
        let shared = Arc::new(Shared {
            scratch: scratch.to_owned(),
            most,
            ceiling: AtomicU64::new(most),
            process: AtomicU32::new(0),
            is_busy: AtomicBool::new(false),
            wake: Notify::new(),
            excess: watch::Sender::new(None),
        });
        let watcher = tokio::spawn(Arc::clone(&shared).watch());
        Self { shared, watcher }
    }

    /// From now on that process and what it starts belong to the sandbox.
    pub(super) fn include(&self, process: Option<u32>) {
        self.shared.process.store(process.unwrap_or(0), Ordering::Relaxed);
    }

    /// A call runs until the value is dropped.
    pub(super) fn busy(&self) -> Busy {
        self.shared.is_busy.store(true, Ordering::Relaxed);
        self.shared.wake.notify_one();
        Busy(Arc::clone(&self.shared))
    }

    /// Waits until it is too much. Ends with the watch, too.
    pub(super) fn exceeded(&self) -> impl Future<Output = Option<Excess>> + Send + use<> {
        let mut excess = self.shared.excess.subscribe();
        async move { excess.wait_for(Option::is_some).await.ok().and_then(|excess| *excess) }
    }

    /// Whether it is too much now, and nobody has settled that yet.
    pub(super) fn excess(&self) -> Option<Excess> {
        *self.shared.excess.borrow()
    }

    /// Whether there is still more than there may be, so that nothing may be added.
    pub(super) fn is_full(&self) -> bool {
        self.shared.ceiling.load(Ordering::Relaxed) > self.shared.most
    }

    /// To be called when the processes that made it too much have been killed: what is left may stay, and be removed.
    /// Where nobody can look, it is removed.
    pub(super) async fn settle(&self) {
        let shared = Arc::clone(&self.shared);
        let settled = tokio::task::spawn_blocking(move || {
            shared.process.store(0, Ordering::Relaxed);
            let mut left = shared.measure(u64::MAX);
            if left == Space::Hidden {
                for entry in std::fs::read_dir(&shared.scratch).into_iter().flatten().flatten() {
                    scratch::remove(&entry.path());
                }
                left = shared.measure(u64::MAX);
            }
            if let Space::Used(bytes) = left {
                shared.ceiling.store(bytes.max(shared.most), Ordering::Relaxed);
            }
            shared.excess.send_replace(None);
            shared.wake.notify_one();
        });
        let _ = settled.await;
    }

    /// Whether a file of that size may be added from outside; else what the model is told. Looks for itself.
    pub(super) fn room_for(&self, size: u64) -> Result<(), String> {
        let most = self.shared.most;
        let fits = match self.shared.measure(most) {
            Space::Used(used) => used.saturating_add(size) <= most,
            Space::Hidden => false,
        };
        if fits {
            return Ok(());
        }
        Err(format!(
            "{size} bytes are more than there is room for: the files of the sandbox may take {} MiB. Remove some \
             with run_command, or use another sandbox",
            most >> 20
        ))
    }
}

impl Drop for SpaceWatch {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// A call that runs.
pub(super) struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.is_busy.store(false, Ordering::Relaxed);
    }
}

impl Shared {
    fn measure(&self, most: u64) -> Space {
        let process = Some(self.process.load(Ordering::Relaxed)).filter(|process| *process != 0);
        measure(&self.scratch, process, most).unwrap_or_else(|error| {
            tracing::debug!(scratch = %self.scratch.display(), %error, "a sandbox's files could not be counted");
            Space::Used(0)
        })
    }

    async fn watch(self: Arc<Self>) {
        let mut rest = Duration::ZERO;
        loop {
            let is_busy = self.is_busy.load(Ordering::Relaxed);
            let pause = if is_busy { BUSY } else { IDLE };
            tokio::select! {
                () = tokio::time::sleep(pause.max(rest)) => {}
                // A call begins: the first look comes soon, however long the pause was to be.
                () = self.wake.notified(), if !is_busy => tokio::time::sleep(BUSY.max(rest)).await,
            }
            if self.excess.borrow().is_some() {
                continue;
            }
            let shared = Arc::clone(&self);
            let began = Instant::now();
            let ceiling = self.ceiling.load(Ordering::Relaxed);
            let looked = tokio::task::spawn_blocking(move || shared.measure(ceiling)).await;
            rest = began.elapsed() * SHARE;
            match looked {
                Ok(Space::Used(used)) if used > ceiling => {
                    self.excess.send_replace(Some(Excess::Bytes { most: self.most }));
                }
                Ok(Space::Used(used)) => self.ceiling.store(used.max(self.most), Ordering::Relaxed),
                Ok(Space::Hidden) => {
                    self.excess.send_replace(Some(Excess::Hidden));
                }
                Err(_) => {}
            }
        }
    }
}
