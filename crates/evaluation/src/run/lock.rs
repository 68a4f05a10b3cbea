//! One program at a time in a folder. Decides by a lock of the system, which a dead program cannot leave behind.

use std::fs::{File, TryLockError};
use std::path::Path;

/// Holds the folder for as long as it lives; none where another program holds it.
///
/// # Errors
///
/// Where the lock's file cannot be made.
pub(super) fn hold(folder: &Path) -> std::io::Result<Option<File>> {
    let file = File::options().create(true).append(true).open(folder.join(".lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
