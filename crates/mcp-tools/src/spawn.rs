//! Starts children, with what they get between fork and exec.
//!
//! Decides how a child is tied to this process (session, death signal, watchdog) and puts limits that
//! were prepared by the caller in force. Which limits a child gets is left to the caller. This is the
//! only file of the crate with unsafe code: everything that runs after the fork uses system calls and
//! memory of its own stack, never the allocator, a lock, or the runtime.

#![expect(
    unsafe_code,
    reason = "limits are put in force between fork and exec, where only raw system calls may run"
)]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::oneshot;

#[cfg(target_os = "linux")]
mod after_fork;

/// What a child gets before exec, in the order in which it is put in force.
///
/// Without a watchdog, [`Child`] is the program. With one, it is the watchdog, the leader of the
/// session and process group that the program runs in: stop it with [`stop`], never with
/// [`Child::kill`], which would leave behind what the program has started. The watchdog ends with the
/// program's exit code, or 128 plus the number of the signal that ended it.
#[derive(Debug, Default)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "put in force on Linux only"))]
pub(crate) struct ChildSetup {
    /// The child is killed when this process ends, kill -9 included.
    pub(crate) parent_death_signal: bool,
    /// A session and process group of its own; group signals go to `-pid`.
    pub(crate) new_session: bool,
    /// A process between this one and the program that outlives neither: when the program ends, when
    /// it is asked to [`stop`] and when this process vanishes, it ends the whole tree of the program,
    /// those that left the group with `setsid` included. The time is the grace between TERM and KILL
    /// (zero: KILL at once). Implies `parent_death_signal` and `new_session`.
    pub(crate) watchdog: Option<Duration>,
    /// Resource limits, soft and hard: (`RLIMIT_*`, value).
    pub(crate) rlimits: Vec<(u32, u64)>,
    /// User and group to change to; supplementary groups are dropped.
    pub(crate) drop_to: Option<(u32, u32)>,
    /// A landlock ruleset that the child is put under. Implies that no exec gains privileges.
    pub(crate) landlock: Option<OwnedFd>,
    /// The ruleset keeps signals inside (landlock ABI 6): the watchdog ends all processes in it at one
    /// blow and none of them can reach the watchdog.
    pub(crate) landlock_scopes_signals: bool,
    /// Seccomp programs, installed in this order. Implies that no exec gains privileges.
    pub(crate) seccomp: Vec<Vec<libc::sock_filter>>,
    /// Namespaces of its own, with a watchdog only: the program and all that it starts see no other
    /// process, and the kernel ends them together, whatever group or session they are in.
    pub(crate) namespaces: Option<Namespaces>,
    /// For a network of its own: a port of its loopback to listen on, and the socket through which the listener is
    /// sent to this process.
    pub(crate) listens: Option<(u16, OwnedFd)>,
    /// Descriptors through which the program joins control groups: their `cgroup.procs`, open to write.
    pub(crate) joins: Vec<OwnedFd>,
    /// The first to be ended when the machine runs out of memory.
    pub(crate) first_to_die: bool,
}

/// Which namespaces a child gets beside those of processes, of System V IPC and of mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "exist on Linux only"))]
pub(crate) struct Namespaces {
    /// A user namespace around them, which those need who are not root.
    pub(crate) user: bool,
    /// A network without any device.
    pub(crate) network: bool,
    /// What landlock lets the child do with shared memory (`LANDLOCK_ACCESS_FS_…`), which is its own:
    /// semaphores between processes live there. 0: nothing.
    pub(crate) shared_memory: u64,
}

impl ChildSetup {
    /// For a trusted program that must not outlive this process: a watchdog with two seconds of grace.
    pub(crate) fn tied_to_parent() -> Self {
        Self { watchdog: Some(Duration::from_secs(2)), ..Self::default() }
    }
}

struct Job {
    command: Command,
    setup: ChildSetup,
    runtime: tokio::runtime::Handle,
    reply: oneshot::Sender<Handover>,
}

/// Spawns from one dedicated thread that lives as long as the process: the death signal of a child is
/// tied to the thread that spawned it, and a fork of a large process takes milliseconds. Descriptors
/// other than 0, 1 and 2 do not reach the program.
///
/// # Errors
/// Whatever kept the program from starting: it is missing, or a limit could not be put in force.
pub(crate) async fn spawn(command: Command, setup: ChildSetup) -> io::Result<Child> {
    let (reply, answer) = oneshot::channel();
    let job = Job { command, setup, runtime: tokio::runtime::Handle::current(), reply };
    spawner()?.send(job).map_err(|_| io::Error::other("the thread that starts child processes has ended"))?;
    let handover = answer.await;
    handover.map_err(|_| io::Error::other("the thread that starts child processes has ended"))?.accept()
}

/// A child on its way to the caller. One that never arrives, because the caller has gone away, is stopped: dropping
/// it alone would leave its tree running.
struct Handover(Option<io::Result<Child>>);

impl Handover {
    fn accept(mut self) -> io::Result<Child> {
        self.0.take().unwrap_or_else(|| Err(io::Error::other("the child process was handed over before")))
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        if let Some(Ok(child)) = &self.0 {
            stop(child);
        }
    }
}

fn spawner() -> io::Result<&'static mpsc::Sender<Job>> {
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    if let Some(sender) = SPAWNER.get() {
        return Ok(sender);
    }
    let (sender, jobs) = mpsc::channel::<Job>();
    // Two callers may both get here: the thread of the one that comes second ends at once, because its
    // sender is dropped, before it has spawned anything.
    std::thread::Builder::new().name("spawner".into()).spawn(move || {
        for job in jobs {
            let _runtime = job.runtime.enter();
            // What cannot be sent comes back and is dropped here.
            let _ = job.reply.send(Handover(Some(start(job.command, job.setup))));
        }
    })?;
    Ok(SPAWNER.get_or_init(|| sender))
}

#[cfg(target_os = "linux")]
fn start(mut command: Command, setup: ChildSetup) -> io::Result<Child> {
    let prepared = after_fork::Prepared::new(setup);
    // SAFETY: the closure runs in the forked child and keeps to what is async-signal-safe there.
    unsafe { command.pre_exec(move || prepared.apply()) };
    command.spawn()
}

#[cfg(not(target_os = "linux"))]
fn start(mut command: Command, setup: ChildSetup) -> io::Result<Child> {
    if setup.landlock.is_some() || !setup.seccomp.is_empty() || setup.drop_to.is_some() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "confinement of children exists on Linux only",
        ));
    }
    command.process_group(0).kill_on_drop(true);
    command.spawn()
}

/// Asks a child to end: TERM to its process group, which the watchdog, where there is one, follows up
/// with KILL for the whole tree. A second call ends the grace. Does nothing once the child was waited
/// for.
pub(crate) fn stop(child: &Child) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // Fails only where the group has gone already, or before the child leads one.
        if rustix::process::kill_process_group(pid, rustix::process::Signal::TERM).is_err() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }
}

/// The version of landlock that the kernel offers; 0: none.
#[cfg(all(target_os = "linux", feature = "python"))]
pub(crate) fn landlock_version() -> i32 {
    const VERSION: libc::c_ulong = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the call takes no pointer and only answers.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0usize, VERSION) };
    i32::try_from(version).unwrap_or(0).max(0)
}

/// The namespaces that this process may give to its children, tried out once with a process that ends at
/// once.
#[cfg(all(target_os = "linux", feature = "python"))]
pub(crate) fn namespaces() -> Result<Namespaces, String> {
    static FOUND: OnceLock<Result<Namespaces, String>> = OnceLock::new();
    let try_out = || {
        let mut problem = String::new();
        for user in [false, true] {
            let namespaces = Namespaces { user, network: true, shared_memory: 0 };
            match after_fork::try_out(namespaces) {
                Ok(()) => return Ok(namespaces),
                Err(error) => problem = error.to_string(),
            }
        }
        Err(format!("the kernel does not let this process make any: {problem}"))
    };
    FOUND.get_or_init(try_out).clone()
}

#[cfg(test)]
mod tests;
