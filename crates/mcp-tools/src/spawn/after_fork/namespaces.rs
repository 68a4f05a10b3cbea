//! Namespaces of a child's own, made with raw system calls between fork and exec.
//!
//! Decides their order: the user namespace first, which lets those who are not root make the others; then
//! that of mounts, with shared memory of its own; then that of processes, whose first process does nothing
//! but collect orphans. Which a child gets is left to the caller.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{c_int, c_long};

use super::watchdog::{exit_code, fork, keep_only, open, release_memory};
use super::{address, call, exit};
use crate::spawn::Namespaces;

/// The namespaces of one child, with all text that is written on the way.
pub(super) struct Plan {
    wanted: Namespaces,
    /// `ID ID 1`: the user and the group stay who they are.
    users: String,
    groups: String,
}

impl Plan {
    pub(super) fn new(wanted: Namespaces) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        Self { wanted, users: format!("{user} {user} 1"), groups: format!("{group} {group} 1") }
    }

    /// Enters a user namespace, where one is wanted, and one of mounts with shared memory of its own, which
    /// the ruleset is told of. Only before landlock, which closes `/proc` and forbids mounting.
    pub(super) fn enter(&self, ruleset: Option<&OwnedFd>) -> io::Result<()> {
        if self.wanted.user {
            call(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0, 0, 0])?;
            write(c"/proc/self/uid_map", &self.users)?;
            write(c"/proc/self/setgroups", "deny")?;
            write(c"/proc/self/gid_map", &self.groups)?;
        }
        call(libc::SYS_unshare, [libc::CLONE_NEWNS.into(), 0, 0, 0, 0])?;
        // Nothing that is mounted from here on shows outside.
        const PRIVATE: c_long = (libc::MS_REC | libc::MS_PRIVATE) as c_long;
        mount(c"none", c"/", None, PRIVATE, None)?;
        const HARMLESS: c_long = (libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC) as c_long;
        let mounted = mount(c"tmpfs", SHARED_MEMORY, Some(c"tmpfs"), HARMLESS, Some(c"mode=1777,size=256m"));
        match (mounted, ruleset, self.wanted.shared_memory) {
            // A system without the directory has no shared memory to give.
            (Err(_), _, _) | (_, None, _) | (_, _, 0) => Ok(()),
            (Ok(()), Some(ruleset), access) => allow(ruleset, SHARED_MEMORY, access),
        }
    }

    /// What the fork makes anew.
    pub(super) fn flags(&self) -> c_int {
        let network = if self.wanted.network { libc::CLONE_NEWNET } else { 0 };
        libc::CLONE_NEWPID | libc::CLONE_NEWIPC | network
    }
}

/// Where the C library keeps semaphores and memory that processes share.
const SHARED_MEMORY: &CStr = c"/dev/shm";

fn mount(from: &CStr, to: &CStr, kind: Option<&CStr>, flags: c_long, data: Option<&CStr>) -> io::Result<()> {
    let text = |text: Option<&CStr>| text.map_or(0, |text| address(text.as_ptr()));
    call(libc::SYS_mount, [text(Some(from)), text(Some(to)), text(kind), flags, text(data)]).map(drop)
}

/// Adds a directory to a landlock ruleset.
fn allow(ruleset: &OwnedFd, directory: &CStr, access: u64) -> io::Result<()> {
    /// `struct landlock_path_beneath_attr`.
    #[repr(C, packed)]
    struct PathBeneath {
        access: u64,
        directory: i32,
    }
    const PATH_BENEATH: c_long = 1;
    let Some(opened) = open(directory, libc::O_PATH) else { return Err(io::Error::last_os_error()) };
    let rule = PathBeneath { access, directory: i32::try_from(opened).unwrap_or(-1) };
    let ruleset = c_long::from(ruleset.as_raw_fd());
    let added = call(libc::SYS_landlock_add_rule, [ruleset, PATH_BENEATH, address(&raw const rule), 0, 0]);
    let _ = call(libc::SYS_close, [opened, 0, 0, 0, 0]);
    added.map(drop)
}

/// Forks once more, in the first process of a namespace. Returns in the second, which goes on to exec, with
/// the id of its parent. The first collects orphans, and ends, with all others, when the second does.
pub(super) fn split_first() -> io::Result<c_long> {
    // Nobody but KILL can end the watchdog in the moment before this.
    call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG.into(), libc::SIGKILL.into(), 0, 0, 0])?;
    match fork()? {
        0 => Ok(1),
        program => {
            keep_only(None);
            call(libc::SYS_prctl, [libc::PR_SET_NAME.into(), address(c"tool-first".as_ptr()), 0, 0, 0])?;
            release_memory();
            collect(program)
        }
    }
}

fn collect(program: c_long) -> ! {
    loop {
        let mut status: c_int = 0;
        let any: c_long = -1;
        match call(libc::SYS_wait4, [any, address(&raw mut status), 0, 0, 0]) {
            Ok(ended) if ended == program => exit(exit_code(status)),
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => exit(128 + libc::SIGKILL),
        }
    }
}

fn write(path: &CStr, text: &str) -> io::Result<()> {
    let Some(file) = open(path, libc::O_WRONLY) else { return Err(io::Error::last_os_error()) };
    let length = c_long::try_from(text.len()).unwrap_or(0);
    let written = call(libc::SYS_write, [file, address(text.as_ptr()), length, 0, 0]);
    let _ = call(libc::SYS_close, [file, 0, 0, 0, 0]);
    written.map(drop)
}

/// Whether a child can be given these, found out with one that ends at once.
#[cfg(feature = "python")]
pub(in crate::spawn) fn try_out(wanted: Namespaces) -> io::Result<()> {
    let plan = Plan::new(wanted);
    let probe = fork()?;
    if probe == 0 {
        let made = plan.enter(None).and_then(|()| super::watchdog::fork_into(plan.flags()));
        match made {
            Ok(0) => exit(0),
            Ok(inner) => exit(wait(inner).unwrap_or(libc::EIO)),
            Err(error) => exit(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }
    match wait(probe)? {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(feature = "python")]
fn wait(child: c_long) -> io::Result<c_int> {
    let mut status: c_int = 0;
    loop {
        match call(libc::SYS_wait4, [child, address(&raw mut status), 0, 0, 0]) {
            Ok(_) => return Ok(exit_code(status)),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}
