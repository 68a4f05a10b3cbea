//! What runs in the child between fork and exec.
//!
//! Decides the order in which limits are put in force, with raw system calls only. The watchdog, which
//! never execs, is in its own file.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use libc::{c_int, c_long, c_ulong};

use super::ChildSetup;

mod listener;
mod namespaces;
mod watchdog;

#[cfg(feature = "python")]
pub(super) use namespaces::try_out;

/// A [`ChildSetup`] with all memory that the child needs already allocated.
pub(super) struct Prepared {
    setup: ChildSetup,
    landlock: Option<OwnedFd>,
    namespaces: Option<namespaces::Plan>,
    parent: libc::pid_t,
}

impl Prepared {
    pub(super) fn new(mut setup: ChildSetup) -> Self {
        let landlock = setup.landlock.take();
        let parent = libc::pid_t::try_from(std::process::id()).unwrap_or(0);
        let namespaces = setup.namespaces.map(namespaces::Plan::new);
        Self { setup, landlock, namespaces, parent }
    }

    /// Puts everything in force. Runs in the forked child; in its watchdog, where there is one, it does
    /// not return.
    pub(super) fn apply(&self) -> io::Result<()> {
        let setup = &self.setup;
        let mut parent = self.parent;
        if setup.new_session || setup.watchdog.is_some() {
            call(libc::SYS_setsid, [0; 5])?;
        }
        if setup.first_to_die {
            watchdog::write_file(c"/proc/self/oom_score_adj", b"1000");
        }
        if let Some(grace) = setup.watchdog {
            parent = watchdog::split(self, grace)?;
        }
        if let Some((port, channel)) = &setup.listens {
            listener::offer(channel.as_raw_fd(), *port)?;
        }
        for group in &setup.joins {
            // 0 is whoever writes it.
            call(libc::SYS_write, [group.as_raw_fd().into(), address(c"0".as_ptr()), 1, 0, 0])?;
        }
        for &(resource, value) in &setup.rlimits {
            let limit = [value, value]; // struct rlimit64: soft, hard
            call(libc::SYS_prlimit64, [0, c_long::from(resource), address(&raw const limit), 0, 0])?;
        }
        if let Some((user, group)) = setup.drop_to {
            call(libc::SYS_setgroups, [0; 5])?;
            let (user, group) = (c_long::from(user), c_long::from(group));
            call(libc::SYS_setresgid, [group, group, group, 0, 0])?;
            call(libc::SYS_setresuid, [user, user, user, 0, 0])?;
        }
        // After the change of user, which clears it.
        if setup.parent_death_signal || setup.watchdog.is_some() {
            death_signal(libc::SIGKILL, parent)?;
        }
        if self.landlock.is_some() || !setup.seccomp.is_empty() {
            no_new_privileges()?;
        }
        if let Some(ruleset) = &self.landlock {
            restrict(ruleset.as_raw_fd())?;
        }
        // All inherited descriptors are closed by exec; not before, because the descriptor through which
        // a failure to exec is told must last until then.
        close_on_exec();
        for program in &setup.seccomp {
            install(program)?;
        }
        Ok(())
    }
}

/// One raw system call; `errno` becomes the error.
fn call(number: c_long, arguments: [c_long; 5]) -> io::Result<c_long> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: every caller passes a number with arguments that are valid for it; pointers among them
    // point at live memory of the caller.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, 0 as c_long) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A pointer as an argument. Exposed, so that the compiler knows that the kernel may read and write there.
fn address<T>(pointer: *const T) -> c_long {
    pointer.expose_provenance().cast_signed() as c_long
}

/// Asks for a signal when the parent dies, and dies at once where that has happened already.
fn death_signal(signal: c_int, parent: libc::pid_t) -> io::Result<()> {
    call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG.into(), signal.into(), 0, 0, 0])?;
    if call(libc::SYS_getppid, [0; 5])? != c_long::from(parent) {
        exit(128 + libc::SIGKILL);
    }
    Ok(())
}

fn no_new_privileges() -> io::Result<()> {
    call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS.into(), 1, 0, 0, 0]).map(drop)
}

fn restrict(ruleset: RawFd) -> io::Result<()> {
    call(libc::SYS_landlock_restrict_self, [ruleset.into(), 0, 0, 0, 0]).map(drop)
}

fn install(program: &[libc::sock_filter]) -> io::Result<()> {
    let Ok(len) = u16::try_from(program.len()) else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    const SET_MODE_FILTER: c_long = 1;
    call(libc::SYS_seccomp, [SET_MODE_FILTER, 0, address(&raw const program), 0, 0]).map(drop)
}

/// Marks all descriptors above 2 close-on-exec.
fn close_on_exec() {
    const CLOEXEC: c_long = 1 << 2;
    if call(libc::SYS_close_range, [3, c_ulong::from(u32::MAX) as c_long, CLOEXEC, 0, 0]).is_ok() {
        return;
    }
    // Before Linux 5.11.
    for descriptor in 3..MOST_DESCRIPTORS {
        let _ = call(libc::SYS_fcntl, [descriptor, libc::F_SETFD.into(), libc::FD_CLOEXEC.into(), 0, 0]);
    }
}

/// How far descriptors are closed one by one where the kernel cannot close a range.
const MOST_DESCRIPTORS: c_long = 65_536;

fn exit(code: c_int) -> ! {
    loop {
        let _ = call(libc::SYS_exit_group, [code.into(), 0, 0, 0, 0]);
    }
}
