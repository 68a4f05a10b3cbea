//! Confinement of code that a model wrote.
//!
//! Decides which layers confine a child on this machine, what they let through, and what is said about
//! it. Starting the child, talking to it and ending it is left to the servers that use it.
//!
//! The layers: landlock (files, TCP ports, signals and abstract sockets), seccomp (an allow-list of
//! system calls), resource limits, and, each where this process may: a user of its own for each sandbox,
//! namespaces of processes and network, control groups that limit it as a whole. The first two are needed;
//! without them nothing is started unless the mode is [`SandboxMode::None`].

use std::borrow::Cow;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::spawn::{ChildSetup, Namespaces};

mod disk;
mod files;
mod limits;
mod system_calls;
mod totals;
mod users;

pub(crate) use disk::{Space, measure};
pub use limits::SandboxLimits;
pub(crate) use totals::Totals;
pub(crate) use users::is_passable;

/// Whether model-written code is confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// By what this machine offers; where that is too little, code is not run.
    #[default]
    Auto,
    /// Not at all: the code may do what this process may do. For machines that are confined themselves.
    None,
}

/// One thing that confines, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxLayer {
    /// What it is called: `landlock`, `seccomp`, `limits`, `namespaces`, `user`, `totals`, `space`.
    pub name: &'static str,
    /// What it keeps in or out.
    pub protects: Cow<'static, str>,
    /// Why it is not in force, wholly or in part; none where it is.
    pub missing: Option<String>,
}

/// What confines model-written code on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxReport {
    /// Every layer, with why it is missing where it is.
    pub layers: Vec<SandboxLayer>,
    /// Why code is not run at all, and what to do; none where it is run.
    pub refusal: Option<String>,
    /// What runs the code, where that was tried.
    pub interpreter: Option<String>,
}

impl SandboxReport {
    /// One line a layer, for a log or a terminal.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let layer = |layer: &SandboxLayer| match &layer.missing {
            None => format!("{}: in force ({})", layer.name, layer.protects),
            Some(why) => format!("{}: missing ({}): {why}", layer.name, layer.protects),
        };
        self.layers
            .iter()
            .map(layer)
            .chain(self.refusal.iter().map(|why| format!("refused: {why}")))
            .collect()
    }
}

/// Why a child cannot be confined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SandboxError {
    /// Too little can be enforced here.
    #[error("{0}")]
    Refused(String),
    /// A prepared layer failed.
    #[error("the sandbox's {layer} could not be prepared: {problem}")]
    Layer { layer: &'static str, problem: String },
    /// The scratch directory.
    #[error("the sandbox's scratch directory {} could not be made: {source}", path.display())]
    Scratch { path: PathBuf, source: io::Error },
}

/// The confinement of this machine, examined once and applied to many children.
#[derive(Debug)]
pub(crate) struct Sandbox {
    mode: SandboxMode,
    limits: SandboxLimits,
    /// Landlock's version, 0 where there is none.
    landlock: i32,
    seccomp: Result<(), String>,
    users: Result<users::Users, String>,
    namespaces: Result<Namespaces, String>,
    totals: Result<totals::Hierarchy, String>,
}

/// Where the proxy listens in the network of a sandbox.
pub(crate) const PROXY_PORT: u16 = 3128;
/// Landlock's version from which signals do not leave the sandbox.
const SCOPES_SIGNALS: i32 = 6;

impl Sandbox {
    /// Looks at what this machine offers: reads a few files, makes a control group and namespaces and lets
    /// them go.
    pub(crate) fn examine(mode: SandboxMode, limits: SandboxLimits) -> Self {
        Self {
            mode,
            limits,
            landlock: files::version(),
            seccomp: system_calls::available(),
            users: users::Users::examine(),
            namespaces: namespaces(),
            totals: totals::Hierarchy::find(),
        }
    }

    /// What is in force.
    pub(crate) fn report(&self) -> SandboxReport {
        let off = || (self.mode == SandboxMode::None).then(|| "switched off by `sandbox: none`".to_owned());
        let landlock = match self.landlock {
            0 => Some(
                "the kernel has no landlock, or it is not among the modules of `lsm=` (Linux 5.13 or later)"
                    .into(),
            ),
            version if version < SCOPES_SIGNALS && self.users.is_err() => Some(format!(
                "version {version} confines files only; signals are kept in by refusing them (all of it from Linux 6.12)"
            )),
            _ => None,
        };
        let layers = vec![
            SandboxLayer {
                name: "landlock",
                protects: "files outside the scratch directory, TCP, signals to other processes".into(),
                missing: off().or(landlock),
            },
            SandboxLayer {
                name: "seccomp",
                protects: "sockets, tracing, mounts, namespaces, key rings and other system calls off its list".into(),
                missing: off().or_else(|| self.seccomp.clone().err()),
            },
            SandboxLayer {
                name: "limits",
                protects: "memory of a process, number of processes, file size, processor time".into(),
                missing: off()
                    .or_else(|| (!cfg!(target_os = "linux")).then(|| "applied on Linux only".into())),
            },
            SandboxLayer {
                name: "user",
                protects: "files and processes of this user, by a user of its own for each sandbox".into(),
                missing: off().or_else(|| self.users.as_ref().err().cloned()),
            },
            SandboxLayer {
                name: "namespaces",
                protects: "all processes of a sandbox end with it, setsid or not, and see no others; a network without any device; shared memory of its own".into(),
                missing: off().or_else(|| self.namespaces.as_ref().err().cloned()),
            },
            SandboxLayer {
                name: "totals",
                protects: "memory and number of processes of a whole sandbox".into(),
                missing: off().or_else(|| {
                    let why = self.totals.as_ref().err()?;
                    let most = self.limits.memory.saturating_mul(self.limits.processes) >> 30;
                    Some(format!("{why}; each process has its limit, all together may use {most} GiB"))
                }),
            },
            // Without any confinement it is watched all the same, in the scratch directory.
            SandboxLayer {
                name: "space",
                protects: format!(
                    "{} MiB on disk for all files of a sandbox: it is watched, and a call that passes it is ended",
                    self.limits.disk >> 20
                )
                .into(),
                missing: None,
            },
        ];
        SandboxReport { layers, refusal: self.refusal(), interpreter: None }
    }

    fn refusal(&self) -> Option<String> {
        if self.mode == SandboxMode::None {
            return None;
        }
        let why = match (self.landlock, &self.seccomp) {
            (0, _) => "this kernel has no landlock, so files could not be protected",
            (_, Err(why)) => why,
            (_, Ok(())) => return None,
        };
        Some(format!(
            "Python code is not run, because it could not be confined: {why}. Use a kernel with landlock and seccomp, \
             or, where the whole machine may be given to the code, set `sandbox: none`."
        ))
    }

    /// A user for a new sandbox, where users can be changed.
    pub(crate) fn new_user(&self) -> Option<(u32, u32)> {
        match (&self.users, self.mode) {
            (Ok(users), SandboxMode::Auto) => Some(users.pick()),
            _ => None,
        }
    }

    /// Whether children run as users of their own.
    pub(crate) fn changes_user(&self) -> bool {
        self.mode == SandboxMode::Auto && self.users.is_ok()
    }

    /// What a child gets that may write `scratch` only and read the system and `readable`.
    pub(crate) fn child(
        &self,
        scratch: &Path,
        readable: &[PathBuf],
        user: Option<(u32, u32)>,
        totals: Option<&Totals>,
    ) -> Result<ChildSetup, SandboxError> {
        self.child_with(scratch, readable, user, totals, None)
    }

    /// Why a sandbox cannot have a network with nothing but a proxy in it; none where it can.
    #[cfg(feature = "egress")]
    pub(crate) fn no_proxy(&self) -> Option<String> {
        match (&self.namespaces, self.mode) {
            (_, SandboxMode::None) => {
                Some("without a sandbox the code has the network of this machine".to_owned())
            }
            (Ok(namespaces), _) if namespaces.network => None,
            (Ok(_), _) => Some("the kernel lets this process make no networks of their own".to_owned()),
            (Err(why), _) => Some(why.clone()),
        }
    }

    /// The same with a listener on [`PROXY_PORT`] of its own network, which is sent through `channel`; only where
    /// [`Sandbox::no_proxy`] has nothing against it.
    pub(crate) fn child_with(
        &self,
        scratch: &Path,
        readable: &[PathBuf],
        user: Option<(u32, u32)>,
        totals: Option<&Totals>,
        channel: Option<OwnedFd>,
    ) -> Result<ChildSetup, SandboxError> {
        let tied = ChildSetup { watchdog: Some(Duration::ZERO), ..ChildSetup::default() };
        if self.mode == SandboxMode::None {
            return Ok(tied);
        }
        if let Some(refusal) = self.refusal() {
            return Err(SandboxError::Refused(refusal));
        }
        let seccomp = system_calls::programs(&system_calls::Situation {
            own_user: user.is_some(),
            signals_stay_inside: user.is_some() || self.landlock >= SCOPES_SIGNALS,
            has_proxy: channel.is_some(),
            truncation_is_confined: user.is_some() || self.landlock >= files::CONFINES_TRUNCATION,
        })
        .map_err(|problem| SandboxError::Layer { layer: "list of system calls", problem })?;
        let landlock = files::ruleset(scratch, readable, channel.as_ref().map(|_| PROXY_PORT))
            .map_err(|problem| SandboxError::Layer { layer: "list of files", problem })?;
        Ok(ChildSetup {
            rlimits: self.limits.resources(user.is_some()),
            drop_to: user,
            landlock: Some(landlock),
            landlock_scopes_signals: self.landlock >= SCOPES_SIGNALS,
            seccomp,
            namespaces: self.namespaces.clone().ok().map(|namespaces| Namespaces {
                shared_memory: files::shared_memory(self.landlock),
                ..namespaces
            }),
            joins: totals.map(Totals::doors).transpose().map_err(grouped)?.unwrap_or_default(),
            listens: channel.map(|channel| (PROXY_PORT, channel)),
            first_to_die: true,
            ..tied
        })
    }

    /// Limits on a new sandbox as a whole, where they can be had.
    pub(crate) fn new_totals(&self) -> Result<Option<Totals>, SandboxError> {
        match (&self.totals, self.mode) {
            (Ok(hierarchy), SandboxMode::Auto) => hierarchy.make(&self.limits).map(Some).map_err(grouped),
            _ => Ok(None),
        }
    }

    /// Makes the directory `path`, which only `user` and this process can enter.
    pub(crate) fn make_scratch(&self, path: &Path, user: Option<(u32, u32)>) -> Result<(), SandboxError> {
        use std::os::unix::fs::DirBuilderExt;
        let wrong = |source| SandboxError::Scratch { path: path.to_owned(), source };
        std::fs::DirBuilder::new().mode(0o700).create(path).map_err(wrong)?;
        if let Some((user, group)) = user {
            std::os::unix::fs::chown(path, Some(user), Some(group)).map_err(wrong)?;
        }
        Ok(())
    }
}

fn grouped(error: io::Error) -> SandboxError {
    SandboxError::Layer { layer: "control group", problem: error.to_string() }
}

#[cfg(target_os = "linux")]
fn namespaces() -> Result<Namespaces, String> {
    crate::spawn::namespaces()
}

#[cfg(not(target_os = "linux"))]
fn namespaces() -> Result<Namespaces, String> {
    Err("they exist on Linux only".into())
}

/// The variables that a confined child gets, and no others.
pub(crate) fn environment(scratch: &Path, program: &Path) -> Vec<(&'static str, String)> {
    let home = scratch.display().to_string();
    let mut path = "/usr/local/bin:/usr/bin:/bin".to_owned();
    if let Some(directory) = program.parent().map(|directory| directory.display().to_string())
        && !path.split(':').any(|entry| entry == directory)
    {
        path = format!("{directory}:{path}");
    }
    vec![
        ("PATH", path),
        ("HOME", home.clone()),
        ("TMPDIR", home.clone()),
        // Without an entry in a list of users, programs ask here who they are.
        ("USER", "sandbox".to_owned()),
        ("LOGNAME", "sandbox".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ("PYTHONIOENCODING", "utf-8:backslashreplace".to_owned()),
        ("MPLBACKEND", "Agg".to_owned()),
        ("MPLCONFIGDIR", home),
        // A thread's stack counts against the limit of memory, and threads against that of processes.
        ("OMP_NUM_THREADS", "4".to_owned()),
        ("OPENBLAS_NUM_THREADS", "4".to_owned()),
    ]
}

/// What tells programs of the proxy in the network of their sandbox.
pub(crate) fn proxy_environment() -> impl Iterator<Item = (&'static str, String)> {
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
        .into_iter()
        .map(|name| (name, format!("http://127.0.0.1:{PROXY_PORT}")))
}

#[cfg(test)]
mod tests;
