//! One program at a time in a folder. Decides by a lock of the system, which a dead program cannot leave behind.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

const NAME: &str = ".lock";

/// Whoever only looks whether the folder is held holds it for a moment: that is waited for.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Holds the folder for as long as it lives; none where another program holds it.
///
/// # Errors
///
/// Where the lock's file cannot be made.
pub(super) fn hold(folder: &Path) -> std::io::Result<Option<File>> {
    let file = File::options().create(true).append(true).open(folder.join(NAME))?;
    for look in 1..=LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if look < LOOKS => std::thread::sleep(BETWEEN_LOOKS),
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// Whether a program holds the folder.
pub(super) fn is_held(folder: &Path) -> bool {
    let Ok(file) = File::open(folder.join(NAME)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
