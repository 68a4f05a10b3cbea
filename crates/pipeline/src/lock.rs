//! One process at a time works in a folder. Decides how a second one is kept out, by a lock of the system that a dead
//! process cannot leave behind.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a lock is waited for whose process is gone: what it started may hold it a little longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long any lock is waited for: who only looks whether it is held holds it for a moment.
const LOOK: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(10);

/// A lock that is held; it ends with the process or with this value.
#[derive(Debug)]
pub struct FolderLock(File);

/// Why a folder is not to be had.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it: its id, where it said.
    Held(Option<u32>),
    /// The file system said no.
    Io(io::Error),
}

impl FolderLock {
    /// Takes a lock, whose file is made where there is none.
    ///
    /// # Errors
    ///
    /// Where it is held, or its file cannot be opened.
    pub fn take(file: &Path) -> Result<Self, LockError> {
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(file)
            .map_err(LockError::Io)?;
        let since = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
                Err(TryLockError::WouldBlock) => {
                    let holder = holder(&mut file);
                    let gone = holder.is_some_and(|pid| pid != std::process::id() && !is_running(pid));
                    if since.elapsed() > if gone { PATIENCE } else { LOOK } {
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
        Ok(Self(file))
    }

    /// Whether a process holds a lock.
    #[must_use]
    pub fn is_held(file: &Path) -> bool {
        let Ok(file) = File::open(file) else { return false };
        match file.try_lock_shared() {
            Ok(()) => {
                release(&file);
                false
            }
            Err(error) => matches!(error, TryLockError::WouldBlock),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        release(&self.0);
    }
}

/// To close the file is not enough: a child that another thread is about to start has it open too until it has become
/// its program.
fn release(file: &File) {
    if let Err(error) = file.unlock() {
        tracing::debug!(%error, "a lock ends with its file");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_though_a_child_still_has_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lock");
        let lock = FolderLock::take(&file).unwrap();
        // What a fork leaves in a child until it has become its program.
        let _in_a_child = lock.0.try_clone().unwrap();
        assert!(FolderLock::is_held(&file));
        let refused = FolderLock::take(&file).unwrap_err();
        assert!(matches!(refused, LockError::Held(Some(pid)) if pid == std::process::id()), "{refused:?}");
        drop(lock);
        assert!(!FolderLock::is_held(&file));
        FolderLock::take(&file).unwrap();
    }

    #[test]
    fn a_lock_of_a_dead_process_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lock");
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let lock = FolderLock::take(&file).unwrap();
        std::fs::write(&file, gone.id().to_string()).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(LOOK * 4);
                drop(lock);
            });
            FolderLock::take(&file).unwrap();
        });
    }
}
