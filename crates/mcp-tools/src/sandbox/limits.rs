//! Resource limits of one sandboxed process.
//!
//! Decides the numbers. They hold for each process; what holds for all of a sandbox together is in
//! `totals`, and where that cannot be had the number of processes bounds the tree.

use serde::{Deserialize, Serialize};

/// What a sandbox may use up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxLimits {
    /// Address space of a process, bytes. Default 4 GiB: libraries for numbers reserve far more than
    /// they use.
    pub memory: u64,
    /// Memory in use by all processes of a sandbox together, bytes, where control groups can be made.
    /// Default 4 GiB.
    pub total_memory: u64,
    /// Processes and threads at a time. Default 64.
    pub processes: u64,
    /// Largest file, bytes. Default 1 GiB.
    pub file_size: u64,
    /// What all files of a sandbox take on disk, bytes; each counts for 4 KiB at least. It is watched, so that a
    /// moment's work may pass it before it is seen. Default 4 GiB.
    pub disk: u64,
    /// Processor time of a process, seconds. Default 3600; the limit of a call is shorter and apart.
    pub processor_seconds: u64,
    /// Open files of a process. Default 512.
    pub open_files: u64,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            memory: 4 << 30,
            total_memory: 4 << 30,
            processes: 64,
            file_size: 1 << 30,
            disk: 4 << 30,
            processor_seconds: 3600,
            open_files: 512,
        }
    }
}

impl SandboxLimits {
    /// As pairs for the kernel. Without a user of its own, the number of processes counts on top of
    /// those that this user runs already.
    #[cfg(target_os = "linux")]
    #[allow(clippy::unnecessary_cast, reason = "the type of these constants differs between C libraries")]
    pub(super) fn resources(&self, own_user: bool) -> Vec<(u32, u64)> {
        let running = if own_user { 0 } else { threads_of_this_user() };
        vec![
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_AS, self.memory),
            (libc::RLIMIT_NPROC, running.saturating_add(self.processes)),
            (libc::RLIMIT_FSIZE, self.file_size),
            (libc::RLIMIT_CPU, self.processor_seconds),
            (libc::RLIMIT_NOFILE, self.open_files),
            (libc::RLIMIT_MEMLOCK, 64 << 10),
            (libc::RLIMIT_MSGQUEUE, 0),
            (libc::RLIMIT_SIGPENDING, 1024),
        ]
        .into_iter()
        .map(|(resource, value)| (resource as u32, value))
        .collect()
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn resources(&self, _own_user: bool) -> Vec<(u32, u64)> {
        Vec::new()
    }
}

/// How many threads this user runs now, as far as `/proc` shows them.
#[cfg(target_os = "linux")]
fn threads_of_this_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::getuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let threads = |entry: std::fs::DirEntry| -> Option<u64> {
        let name = entry.file_name();
        if !name.as_encoded_bytes().iter().all(u8::is_ascii_digit) || entry.metadata().ok()?.uid() != user {
            return None;
        }
        // One link for each thread, and two of the directory itself.
        Some(std::fs::metadata(entry.path().join("task")).ok()?.nlink().saturating_sub(2).max(1))
    };
    entries.flatten().filter_map(threads).sum()
}
