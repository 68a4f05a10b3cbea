//! One process at a time goes on with a run. Decides how a second one is kept out.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of the lock in a run's directory.
pub const LOCK_NAME: &str = "lock";

/// How long a lock is waited for whose process is gone: what it started may hold it a little longer.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that is held; it ends with the process or with this value.
#[derive(Debug)]
pub(crate) struct RunLock {
    _file: File,
}

/// Why a run is not to be had.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process has it: its id, where it said.
    Held(Option<u32>),
    /// The file system said no.
    Io(io::Error),
}

impl RunLock {
    /// Takes the lock of a run's directory.
    pub(crate) fn take(run_dir: &Path) -> Result<Self, LockError> {
        let path = run_dir.join(LOCK_NAME);
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(LockError::Io)?;
        let since = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
                Err(TryLockError::WouldBlock) => {
                    let holder = holder(&mut file);
                    let gone = holder.is_some_and(|pid| pid != std::process::id() && !is_running(pid));
                    if !gone || since.elapsed() > PATIENCE {
                        return Err(LockError::Held(holder));
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
        // Only the message for a second process is poorer without it.
        if let Err(error) = written {
            tracing::debug!(%error, "the lock does not say whose it is");
        }
        Ok(Self { _file: file })
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(target_os = "linux")]
fn is_running(pid: u32) -> bool {
    // A process that was killed and not yet waited for has nothing open any more.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X']))
}

#[cfg(not(target_os = "linux"))]
fn is_running(_pid: u32) -> bool {
    true
}
