//! The system calls that a sandbox may make, as seccomp programs.
//!
//! Decides the allow-list; everything else fails with `EPERM`. Files are landlock's; what landlock does
//! not see is settled here: sockets, signals on old kernels, changes of mode, owner and times by path.

use std::collections::BTreeMap;

use libc::{c_int, c_long, sock_filter};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// What the other layers see to.
pub(super) struct Situation {
    /// The sandbox has a user of its own, who owns nothing outside.
    pub(super) own_user: bool,
    /// Signals cannot reach processes outside.
    pub(super) signals_stay_inside: bool,
    /// It has a network of its own, in which nothing but a proxy is.
    pub(super) has_proxy: bool,
    /// Files outside cannot be shortened by path.
    pub(super) truncation_is_confined: bool,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Whether filters can be installed here.
pub(super) fn available() -> Result<(), String> {
    if TargetArch::try_from(std::env::consts::ARCH).is_err() {
        return Err(format!("there is no list of system calls for {} processors", std::env::consts::ARCH));
    }
    match std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail") {
        Ok(actions) if actions.split_ascii_whitespace().any(|action| action == "errno") => Ok(()),
        // Without /proc one finds out by trying: a filter that cannot be installed keeps the child from starting.
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Ok(()),
        _ => Err("this kernel has no seccomp filters".into()),
    }
}

/// The programs, in the order in which they are installed: the allow-list last, because it does not
/// allow to install more. The kernel runs all of them and the strictest answer wins, so what the first
/// ones answer with an error must be on the list.
pub(super) fn programs(situation: &Situation) -> Result<Vec<Vec<sock_filter>>, String> {
    let errno = |number: c_int| SeccompAction::Errno(number.unsigned_abs());
    let mut programs = Vec::new();
    // The flags of clone3 are in memory, where a filter cannot look. "No such call" makes the C library
    // fall back to clone.
    let unknown = Rules::from([(libc::SYS_clone3, vec![])]);
    programs.push(compile(unknown, SeccompAction::Allow, errno(libc::ENOSYS))?);
    // It takes any amount of space in no time, faster than anybody can watch. The C library writes instead.
    let at_once = Rules::from([(libc::SYS_fallocate, vec![])]);
    programs.push(compile(at_once, SeccompAction::Allow, errno(libc::EOPNOTSUPP))?);
    if !situation.own_user {
        programs.push(compile(pretended()?, SeccompAction::Allow, errno(0))?);
    }
    programs.push(compile(allow_list(situation)?, errno(libc::EPERM), SeccompAction::Allow)?);
    Ok(programs)
}

fn compile(
    rules: Rules,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<Vec<sock_filter>, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let filter = SeccompFilter::new(rules, otherwise, matched, arch).map_err(|error| error.to_string())?;
    let program = BpfProgram::try_from(filter).map_err(|error| error.to_string())?;
    Ok(program.into_iter().map(|i| sock_filter { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect())
}

/// A condition on one argument, of 32 bits.
fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        .map_err(|error| error.to_string())
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

/// One rule for each value that the argument may have.
fn one_of(argument: u8, values: impl IntoIterator<Item = u64>) -> Result<Vec<SeccompRule>, String> {
    values.into_iter().map(|value| rule(vec![when(argument, SeccompCmpOp::Eq, value)?])).collect()
}

fn allow_list(situation: &Situation) -> Result<Rules, String> {
    let mut rules: Rules = ALLOWED.iter().chain(LEGACY).map(|&call| (call, vec![])).collect();
    if situation.signals_stay_inside {
        rules.extend(SIGNALS.iter().map(|&call| (call, vec![])));
    }
    if situation.truncation_is_confined {
        rules.insert(libc::SYS_truncate, vec![]);
    }
    rules.extend(BY_PATH.iter().chain(LEGACY_BY_PATH).map(|&call| (call, vec![])));

    let no_namespaces = rule(vec![when(0, SeccompCmpOp::MaskedEq(NAMESPACES), 0)?])?;
    rules.insert(libc::SYS_clone, vec![no_namespaces]);
    rules.insert(libc::SYS_clone3, vec![]);
    // A pair only, and no datagrams: those can be sent to any address.
    let pair = |kind: c_int| {
        rule(vec![
            when(0, SeccompCmpOp::Eq, libc::AF_UNIX.unsigned_abs().into())?,
            when(1, SeccompCmpOp::MaskedEq(0xf), kind.unsigned_abs().into())?,
        ])
    };
    rules.insert(libc::SYS_socketpair, vec![pair(libc::SOCK_STREAM)?, pair(libc::SOCK_SEQPACKET)?]);
    if situation.has_proxy {
        // TCP and nothing that goes on beside it: neither datagrams nor multipath.
        let tcp = |protocol: u64| {
            rule(vec![
                when(0, SeccompCmpOp::Eq, libc::AF_INET.unsigned_abs().into())?,
                when(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_STREAM.unsigned_abs().into())?,
                when(2, SeccompCmpOp::Eq, protocol)?,
            ])
        };
        rules.insert(libc::SYS_socket, vec![tcp(0)?, tcp(libc::IPPROTO_TCP.unsigned_abs().into())?]);
        rules.insert(libc::SYS_connect, vec![]);
    }
    rules.insert(libc::SYS_ioctl, one_of(1, IOCTLS.iter().copied())?);
    rules.insert(libc::SYS_prctl, one_of(0, PRCTLS.iter().map(|option| u64::from(option.unsigned_abs())))?);
    // Whose signals a descriptor sends is not for the sandbox to say.
    let not = |command: u64| when(1, SeccompCmpOp::Ne, command);
    const SETOWN_EX: u64 = 15;
    rules.insert(
        libc::SYS_fcntl,
        vec![rule(vec![not(libc::F_SETOWN.unsigned_abs().into())?, not(SETOWN_EX)?])?],
    );
    // Its own process only.
    for &call in OWN_PROCESS {
        rules.insert(call, one_of(0, [0])?);
    }
    let own_priority = rule(vec![when(0, SeccompCmpOp::Eq, 0)?, when(1, SeccompCmpOp::Eq, 0)?])?;
    rules.insert(libc::SYS_setpriority, vec![own_priority]);
    Ok(rules)
}

/// What a sandbox that runs as this user is told to have worked and has not: mode, owner and times by
/// path, which landlock does not confine. Refusing them would break copying and unpacking.
fn pretended() -> Result<Rules, String> {
    let mut rules: Rules = BY_PATH.iter().chain(LEGACY_BY_PATH).map(|&call| (call, vec![])).collect();
    let path_given = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
    let path_given = path_given.map_err(|error| error.to_string())?;
    rules.insert(libc::SYS_utimensat, vec![rule(vec![path_given])?]);
    // An interpreter of this user's own may be open to be read.
    rules.insert(libc::SYS_fchmod, vec![]);
    Ok(rules)
}

const NAMESPACES: u64 = 0x7e02_0080; // CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET

/// TCGETS, TIOCGPGRP, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, FICLONE.
const IOCTLS: &[u64] = &[0x5401, 0x540f, 0x5413, 0x541b, 0x5421, 0x5450, 0x5451, 0x4004_9409];

const PRCTLS: &[c_int] = &[
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_GET_DUMPABLE,
    libc::PR_GET_PDEATHSIG,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_GET_SECCOMP,
    libc::PR_CAPBSET_READ,
    libc::PR_GET_TIMERSLACK,
    libc::PR_GET_THP_DISABLE,
    libc::PR_SET_VMA,
];

/// First argument: a process, 0 for the caller.
const OWN_PROCESS: &[c_long] = &[libc::SYS_prlimit64, libc::SYS_sched_setaffinity];

const SIGNALS: &[c_long] = &[libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_pidfd_send_signal];

/// The same number everywhere; the library lacks it for some processors.
const FCHMODAT2: c_long = 452;

/// Mode, owner and times by path.
const BY_PATH: &[c_long] = &[libc::SYS_fchmodat, FCHMODAT2, libc::SYS_fchownat, libc::SYS_utimensat];

#[cfg(target_arch = "x86_64")]
const LEGACY_BY_PATH: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_BY_PATH: &[c_long] = &[];

/// Calls that newer processors do without.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const LEGACY: &[c_long] = &[
    libc::SYS_open, libc::SYS_creat, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink,
    libc::SYS_getdents, libc::SYS_rename, libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_link, libc::SYS_unlink,
    libc::SYS_symlink, libc::SYS_mknod, libc::SYS_pipe, libc::SYS_dup2, libc::SYS_fork, libc::SYS_vfork,
    libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_create, libc::SYS_epoll_wait, libc::SYS_eventfd,
    libc::SYS_signalfd, libc::SYS_time, libc::SYS_alarm, libc::SYS_pause, libc::SYS_getpgrp,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY: &[c_long] = &[];

/// Allowed with any arguments.
#[rustfmt::skip]
const ALLOWED: &[c_long] = &[
    // files: which ones is landlock's business
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_pread64, libc::SYS_pwrite64,
    libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_preadv2, libc::SYS_pwritev2, libc::SYS_close,
    libc::SYS_close_range, libc::SYS_lseek, libc::SYS_openat, libc::SYS_openat2, libc::SYS_dup, libc::SYS_dup3,
    libc::SYS_pipe2, libc::SYS_flock, libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_ftruncate,
    libc::SYS_fallocate, libc::SYS_fadvise64, libc::SYS_readahead, libc::SYS_sync_file_range,
    libc::SYS_copy_file_range, libc::SYS_sendfile, libc::SYS_splice, libc::SYS_tee, libc::SYS_fstat,
    libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_statfs, libc::SYS_fstatfs, libc::SYS_faccessat,
    libc::SYS_faccessat2, libc::SYS_readlinkat, libc::SYS_getdents64, libc::SYS_getcwd, libc::SYS_chdir,
    libc::SYS_fchdir, libc::SYS_umask, libc::SYS_mkdirat, libc::SYS_mknodat, libc::SYS_unlinkat,
    libc::SYS_renameat, libc::SYS_renameat2, libc::SYS_linkat, libc::SYS_symlinkat, libc::SYS_fchmod,
    libc::SYS_getxattr, libc::SYS_lgetxattr, libc::SYS_fgetxattr, libc::SYS_listxattr, libc::SYS_llistxattr,
    libc::SYS_flistxattr, libc::SYS_memfd_create,
    // memory
    libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mprotect, libc::SYS_mremap, libc::SYS_msync, libc::SYS_madvise,
    libc::SYS_mincore, libc::SYS_brk, libc::SYS_mlock, libc::SYS_mlock2, libc::SYS_munlock, libc::SYS_membarrier,
    libc::SYS_get_mempolicy,
    // processes and threads of its own
    libc::SYS_execve, libc::SYS_execveat, libc::SYS_exit, libc::SYS_exit_group, libc::SYS_wait4, libc::SYS_waitid,
    libc::SYS_getpid, libc::SYS_getppid, libc::SYS_gettid, libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid,
    libc::SYS_getegid, libc::SYS_getresuid, libc::SYS_getresgid, libc::SYS_getgroups, libc::SYS_getpgid,
    libc::SYS_getsid, libc::SYS_setpgid, libc::SYS_setsid, libc::SYS_capget, libc::SYS_pidfd_open,
    libc::SYS_set_tid_address, libc::SYS_set_robust_list, libc::SYS_get_robust_list, libc::SYS_rseq,
    libc::SYS_futex, libc::SYS_futex_waitv, libc::SYS_getrlimit, libc::SYS_setrlimit, libc::SYS_getrusage,
    libc::SYS_getpriority, libc::SYS_restart_syscall,
    // scheduling, to look at
    libc::SYS_sched_yield, libc::SYS_sched_getaffinity, libc::SYS_sched_getparam, libc::SYS_sched_getscheduler,
    libc::SYS_sched_get_priority_max, libc::SYS_sched_get_priority_min, libc::SYS_getcpu,
    // signals within a process
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend, libc::SYS_rt_sigtimedwait, libc::SYS_sigaltstack, libc::SYS_signalfd4,
    // time
    libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_clock_nanosleep, libc::SYS_nanosleep,
    libc::SYS_gettimeofday, libc::SYS_times, libc::SYS_getitimer, libc::SYS_setitimer, libc::SYS_timer_create,
    libc::SYS_timer_settime, libc::SYS_timer_gettime, libc::SYS_timer_getoverrun, libc::SYS_timer_delete,
    libc::SYS_timerfd_create, libc::SYS_timerfd_settime, libc::SYS_timerfd_gettime,
    // waiting, and pairs of sockets within the sandbox
    libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2, libc::SYS_ppoll,
    libc::SYS_pselect6, libc::SYS_eventfd2, libc::SYS_sendto, libc::SYS_recvfrom, libc::SYS_sendmsg,
    libc::SYS_recvmsg, libc::SYS_sendmmsg, libc::SYS_recvmmsg, libc::SYS_shutdown, libc::SYS_getsockopt,
    libc::SYS_setsockopt, libc::SYS_getsockname, libc::SYS_getpeername,
    // the machine
    libc::SYS_uname, libc::SYS_sysinfo, libc::SYS_getrandom,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_layers_do_not_see_to_is_refused_here() {
        for own_user in [false, true] {
            for signals_stay_inside in [false, true] {
                for truncation_is_confined in [false, true] {
                    let situation = Situation {
                        own_user,
                        signals_stay_inside,
                        has_proxy: own_user,
                        truncation_is_confined,
                    };
                    let allowed = allow_list(&situation).expect("rules");
                    assert_eq!(allowed.contains_key(&libc::SYS_socket), own_user);
                    for call in SIGNALS {
                        assert_eq!(allowed.contains_key(call), signals_stay_inside);
                    }
                    assert_eq!(allowed.contains_key(&libc::SYS_truncate), truncation_is_confined);
                    let programs = programs(&situation).expect("programs");
                    assert_eq!(programs.len(), if own_user { 3 } else { 4 });
                    // The kernel's bound on all of a process together, with its cost of four for each program.
                    let instructions: usize = programs.iter().map(|program| program.len() + 4).sum();
                    assert!(instructions < 4096, "{instructions}");
                }
            }
        }
    }

    #[test]
    fn what_is_answered_by_the_first_programs_is_on_the_list() {
        let situation = Situation {
            own_user: false,
            signals_stay_inside: true,
            has_proxy: false,
            truncation_is_confined: true,
        };
        let allowed = allow_list(&situation).expect("rules");
        assert!(pretended().expect("rules").keys().all(|call| allowed.contains_key(call)));
        assert!(allowed.contains_key(&libc::SYS_clone3));
    }
}
