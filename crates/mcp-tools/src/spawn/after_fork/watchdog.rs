//! The watchdog: the process between this one and the program, which ends the program's whole tree.
//!
//! Decides when and how the tree is ended. It is a fork that never execs, so it runs on raw system
//! calls and its own stack only. Four ways to reach every process of the tree, the first that can be
//! had: with the first process of their own namespace; all at one blow inside its own landlock scope; all of the user that the program was changed
//! to; else child by child, orphans falling to it as their subreaper.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use libc::{c_int, c_long};

use super::namespaces::{self, Plan};
use super::{MOST_DESCRIPTORS, Prepared, address, call, death_signal, exit, no_new_privileges, restrict};

/// Forks. Returns the parent's id in the process that goes on to exec; the other becomes the watchdog
/// and does not return.
pub(super) fn split(prepared: &Prepared, grace: Duration) -> io::Result<libc::pid_t> {
    let setup = &prepared.setup;
    // The child may end before the watchdog looks: with all signals blocked nothing is lost.
    let previous = block_signals()?;
    if let Some(plan) = &prepared.namespaces {
        plan.enter(prepared.landlock.as_ref())?;
    }
    // After the change of user namespace, which may clear it; and before landlock, which forbids mounting.
    death_signal(libc::SIGTERM, prepared.parent)?;
    call(libc::SYS_prctl, [libc::PR_SET_CHILD_SUBREAPER.into(), 1, 0, 0, 0])?;
    let children = open_children();
    let scoped = setup.landlock_scopes_signals && prepared.landlock.is_some();
    if let (true, Some(ruleset)) = (scoped, &prepared.landlock) {
        // The program is put under the same rules once more, in a scope inside this one: it cannot
        // signal outwards, the watchdog can signal inwards.
        no_new_privileges()?;
        restrict(ruleset.as_raw_fd())?;
    }
    let own = call(libc::SYS_getpid, [0; 5])?;
    match fork_into(prepared.namespaces.as_ref().map_or(0, Plan::flags))? {
        0 => {
            // Neither the subreaper attribute nor the death signal is inherited; the mask is.
            let parent = match &prepared.namespaces {
                Some(_) => namespaces::split_first()?,
                None => own,
            };
            set_signals(previous)?;
            Ok(libc::pid_t::try_from(parent).unwrap_or(0))
        }
        program => {
            let tree = Tree {
                program,
                own,
                children: keep_only(children),
                scoped,
                user: setup.drop_to.map(|(user, _)| user),
            };
            call(libc::SYS_prctl, [libc::PR_SET_NAME.into(), address(c"tool-watchdog".as_ptr()), 0, 0, 0])?;
            release_memory();
            tree.watch(grace)
        }
    }
}

struct Tree {
    /// The program, or the first process of its namespace, with which all others of it end.
    program: c_long,
    own: c_long,
    /// The list of own children, on descriptor 0; false where the kernel has none.
    children: bool,
    scoped: bool,
    user: Option<u32>,
}

impl Tree {
    fn watch(&self, grace: Duration) -> ! {
        loop {
            match wait_signal(None) {
                libc::SIGCHLD => {
                    if let Some(status) = self.reap() {
                        self.end(status);
                    }
                }
                // The parent has gone, or asks for the end.
                libc::SIGTERM | libc::SIGINT | libc::SIGHUP => break,
                _ => {}
            }
        }
        if !grace.is_zero() {
            // To the group but not to this process, which has the signal blocked and takes it off again.
            let _ = call(libc::SYS_kill, [-self.own, libc::SIGTERM.into(), 0, 0, 0]);
            let _ = wait_signal(Some(Duration::ZERO));
            // Ten looks, so that a tree that is quick to end is not waited for.
            for _ in 0..10 {
                match wait_signal(Some(grace / 10)) {
                    libc::SIGCHLD => {
                        if let Some(status) = self.reap() {
                            self.end(status);
                        }
                    }
                    libc::SIGTERM | libc::SIGINT | libc::SIGHUP => break,
                    _ => {}
                }
            }
        }
        self.end(128 + libc::SIGKILL)
    }

    /// Waits for whatever has ended; the program's exit code where it is among them.
    fn reap(&self) -> Option<c_int> {
        let mut code = None;
        loop {
            let mut status: c_int = 0;
            let any: c_long = -1;
            let wait = call(libc::SYS_wait4, [any, address(&raw mut status), libc::WNOHANG.into(), 0, 0]);
            match wait {
                Ok(pid) if pid > 0 => {
                    if pid == self.program {
                        code = Some(exit_code(status));
                    }
                }
                _ => return code,
            }
        }
    }

    /// Kills what is left and exits.
    fn end(&self, code: c_int) -> ! {
        // A tree that forks as fast as it is killed: one blow at a scope or a user is final, child by
        // child needs rounds. The bound is for children in uninterruptible sleep.
        for _ in 0..20_000 {
            let _ = call(libc::SYS_kill, [self.program, libc::SIGKILL.into(), 0, 0, 0]);
            if self.scoped {
                let _ = call(libc::SYS_kill, [-1, libc::SIGKILL.into(), 0, 0, 0]);
            } else if let Some(user) = self.user {
                self.kill_user(user);
            }
            self.kill_children();
            let _ = self.reap();
            if self.childless() {
                break;
            }
            let _ = wait_signal(Some(Duration::from_millis(1)));
        }
        exit(code)
    }

    /// From a process of that user, because −1 reaches whatever the sender may signal.
    fn kill_user(&self, user: u32) {
        if let Ok(0) = fork() {
            let user = c_long::from(user);
            if call(libc::SYS_setresuid, [user, user, user, 0, 0]).is_ok() {
                let _ = call(libc::SYS_kill, [-1, libc::SIGKILL.into(), 0, 0, 0]);
            }
            exit(0);
        }
    }

    fn kill_children(&self) {
        if !self.children {
            return;
        }
        let mut text = [0u8; 4096];
        let read = call(libc::SYS_pread64, [0, address(&raw mut text), 4096, 0, 0]).unwrap_or(0);
        let read = usize::try_from(read).unwrap_or(0);
        let mut pid: c_long = 0;
        for byte in text.iter().take(read) {
            if byte.is_ascii_digit() {
                pid = pid.saturating_mul(10).saturating_add(c_long::from(byte - b'0'));
            } else {
                if pid > 1 {
                    let _ = call(libc::SYS_kill, [pid, libc::SIGKILL.into(), 0, 0, 0]);
                }
                pid = 0;
            }
        }
    }

    fn childless(&self) -> bool {
        let all = c_long::from(libc::P_ALL);
        let options = c_long::from(libc::WEXITED | libc::WNOHANG | libc::WNOWAIT);
        call(libc::SYS_waitid, [all, 0, 0, options, 0]).is_err()
    }
}

pub(super) fn exit_code(status: c_int) -> c_int {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) }
}

pub(super) fn fork() -> io::Result<c_long> {
    fork_into(0)
}

/// Forks into new namespaces, `CLONE_NEW…`.
pub(super) fn fork_into(flags: c_int) -> io::Result<c_long> {
    call(libc::SYS_clone, [(libc::SIGCHLD | flags).into(), 0, 0, 0, 0])
}

/// The kernel's set of signals, one bit each.
type SignalSet = u64;
const SET_BYTES: c_long = 8;

fn block_signals() -> io::Result<SignalSet> {
    let (all, mut previous): (SignalSet, SignalSet) = (SignalSet::MAX, 0);
    let how = c_long::from(libc::SIG_SETMASK);
    call(libc::SYS_rt_sigprocmask, [how, address(&raw const all), address(&raw mut previous), SET_BYTES, 0])?;
    Ok(previous)
}

fn set_signals(mask: SignalSet) -> io::Result<()> {
    let how = c_long::from(libc::SIG_SETMASK);
    call(libc::SYS_rt_sigprocmask, [how, address(&raw const mask), 0, SET_BYTES, 0]).map(drop)
}

/// The next signal, or 0 when the time is over.
fn wait_signal(limit: Option<Duration>) -> c_int {
    let bit = |signal: c_int| 1u64 << (signal - 1);
    let set = bit(libc::SIGCHLD) | bit(libc::SIGTERM) | bit(libc::SIGINT) | bit(libc::SIGHUP);
    let time = limit.map(|limit| [limit.as_secs(), u64::from(limit.subsec_nanos())]); // struct timespec
    let time = time.as_ref().map_or(0, |time| address(&raw const *time));
    let signal = call(libc::SYS_rt_sigtimedwait, [address(&raw const set), 0, time, SET_BYTES, 0]);
    signal.ok().and_then(|signal| c_int::try_from(signal).ok()).unwrap_or(0)
}

/// The list of this process's children. Opened before landlock closes `/proc`.
fn open_children() -> Option<c_long> {
    open(c"/proc/thread-self/children", libc::O_RDONLY)
}

pub(super) fn open(path: &CStr, flags: c_int) -> Option<c_long> {
    let directory = c_long::from(libc::AT_FDCWD);
    call(libc::SYS_openat, [directory, address(path.as_ptr()), (flags | libc::O_CLOEXEC).into(), 0, 0]).ok()
}

/// Writes a short file where that is possible.
pub(super) fn write_file(path: &CStr, bytes: &[u8]) {
    let Some(file) = open(path, libc::O_WRONLY) else { return };
    let length = c_long::try_from(bytes.len()).unwrap_or(0);
    let _ = call(libc::SYS_write, [file, address(bytes.as_ptr()), length, 0, 0]);
    let _ = call(libc::SYS_close, [file, 0, 0, 0, 0]);
}

/// Closes everything, the program's pipes included, whose ends must be seen; what is kept becomes 0.
pub(super) fn keep_only(kept: Option<c_long>) -> bool {
    let kept = kept.is_some_and(|kept| kept == 0 || call(libc::SYS_dup3, [kept, 0, 0, 0, 0]).is_ok());
    let first = c_long::from(kept);
    if call(libc::SYS_close_range, [first, c_long::from(u32::MAX), 0, 0, 0]).is_err() {
        for descriptor in first..MOST_DESCRIPTORS {
            let _ = call(libc::SYS_close, [descriptor, 0, 0, 0, 0]);
        }
    }
    kept
}

/// Gives back the heap that the fork shares with this process: pages that the parent changes later
/// would otherwise be kept twice. Only large anonymous private memory goes; the stack, with the
/// thread's own data above it, stays.
pub(super) fn release_memory() {
    let Some(maps) = open(c"/proc/self/maps", libc::O_RDONLY) else { return };
    let stack = 0u8;
    let stack = (&raw const stack).addr() as u64;
    let mut line = Line::default();
    let mut text = [0u8; 1024];
    loop {
        let read = call(libc::SYS_read, [maps, address(&raw mut text), 1024, 0, 0]).unwrap_or(0);
        let read = usize::try_from(read).unwrap_or(0);
        if read == 0 {
            break;
        }
        for &byte in text.iter().take(read) {
            if byte == b'\n' {
                if let Some((start, end)) = line.releasable()
                    && !(start..end).contains(&stack)
                {
                    const DONTNEED: c_long = libc::MADV_DONTNEED as c_long;
                    let (start, length) = (start.cast_signed(), (end - start).cast_signed());
                    let _ = call(libc::SYS_madvise, [start, length, DONTNEED, 0, 0]);
                }
                line = Line::default();
            } else {
                line.push(byte);
            }
        }
    }
    let _ = call(libc::SYS_close, [maps, 0, 0, 0, 0]);
}

/// One line of `/proc/self/maps` as it is read: `start-end perms offset device inode path`.
#[derive(Default)]
struct Line {
    field: u8,
    start: u64,
    end: u64,
    private_writable: u8,
    inode: u64,
    path: u8,
}

impl Line {
    fn push(&mut self, byte: u8) {
        let hex = (byte as char).to_digit(16).map_or(0, u64::from);
        match (self.field, byte) {
            (0, b'-') | (1..=4, b' ') => self.field += 1,
            (0, _) => self.start = self.start << 4 | hex,
            (1, _) => self.end = self.end << 4 | hex,
            (2, b'w' | b'p') => self.private_writable += 1,
            (5, b'0'..=b'9') => self.inode = self.inode.saturating_mul(10).saturating_add(hex),
            // `[heap]` may go, `[stack]` may not.
            (5, b'[') => self.path = byte,
            (5, _) if self.path == b'[' => self.path = byte,
            _ => {}
        }
    }

    fn releasable(&self) -> Option<(u64, u64)> {
        const LARGE: u64 = 1 << 20;
        let anonymous = self.inode == 0 && matches!(self.path, 0 | b'h');
        let large = self.end.checked_sub(self.start).is_some_and(|length| length >= LARGE);
        (anonymous && large && self.private_writable == 2).then_some((self.start, self.end))
    }
}
