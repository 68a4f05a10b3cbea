//! Users that sandboxes are given where this process may change users.
//!
//! Decides which ids: high ones that no account has, a new one for each sandbox, so that processes are
//! counted, signalled and owned apart.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ids to choose from.
#[derive(Debug)]
pub(super) struct Users {
    first: u32,
    count: u32,
    /// Where this process begins.
    offset: u32,
}

/// How many ids this process has given out: counted once for all servers, so that no two sandboxes share one.
static GIVEN: AtomicU32 = AtomicU32::new(0);

/// Above all accounts and above the ranges that distributions hand out to containers.
const HIGH: (u32, u32) = (0x7000_0000, 0x00ff_ffff);
/// Where ids end at 65,535: those that systemd gives to services for a short time.
const LOW: (u32, u32) = (61_184, 65_519 - 61_184);

impl Users {
    pub(super) fn examine() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("this process is not root, so sandboxes run as its own user".into());
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).map(str::trim);
        let effective = effective.and_then(|bits| u64::from_str_radix(bits, 16).ok()).unwrap_or(0);
        // CAP_CHOWN, CAP_SETGID, CAP_SETUID; CAP_KILL so that what it started can be ended.
        const NEEDED: u64 = 1 << 0 | 1 << 5 | 1 << 6 | 1 << 7;
        if effective & NEEDED != NEEDED {
            return Err("this process is root without the capabilities to change users".into());
        }
        let mapped = |path: &str, (first, count): (u32, u32)| {
            let map = std::fs::read_to_string(path).unwrap_or_default();
            map.lines().any(|line| {
                let mut fields = line.split_ascii_whitespace().map(|field| field.parse::<u64>().unwrap_or(0));
                let start = fields.next().unwrap_or(0);
                let length = fields.nth(1).unwrap_or(0);
                start <= first.into() && u64::from(first) + u64::from(count) <= start.saturating_add(length)
            })
        };
        let both = |range| mapped("/proc/self/uid_map", range) && mapped("/proc/self/gid_map", range);
        let Some((first, count)) = [HIGH, LOW].into_iter().find(|&range| both(range)) else {
            return Err("the user namespace has no spare user ids".into());
        };
        // Not the same ones in two processes at a time.
        let offset = std::process::id().wrapping_mul(2_654_435_761) % count;
        Ok(Self { first, count, offset })
    }

    /// User and group for one more sandbox.
    pub(super) fn pick(&self) -> (u32, u32) {
        let given = GIVEN.fetch_add(1, Ordering::Relaxed) % self.count;
        let id = self.first + (self.offset + given) % self.count;
        (id, id)
    }
}

/// Whether any user can get to `path`: every directory above it may be passed through.
pub(crate) fn is_passable(path: &Path) -> bool {
    path.ancestors().skip(1).all(|directory| {
        directory.as_os_str().is_empty()
            || std::fs::metadata(directory).is_ok_and(|directory| directory.permissions().mode() & 0o001 != 0)
    })
}
