//! Programs of others that are handed a stranger's file: LibreOffice, ffmpeg.
//!
//! Decides how they are run: found on the search path, each call in a folder of its own, with few variables, within
//! limits of time, memory and size, and ended with everything that they have started, also where this process is
//! killed. Where the machine can confine model-written code, they are confined like it, as far as they work then: a
//! file that takes such a program over gets no network, and no files but those of its folder. What they are asked to
//! do is left to the caller.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::spawn::{self, ChildSetup};

/// Bytes that a program may answer on its standard output; more is dropped.
const ANSWER_LIMIT: usize = 4 << 20;
/// Bytes of what it complains about: the last ones.
const WORDS_LIMIT: usize = 400;
/// What the end of a tree may take.
const END_LIMIT: Duration = Duration::from_secs(10);

/// What one program may use up.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// From its start to its end.
    pub(crate) time: Duration,
    /// Address space of each of its processes, bytes.
    pub(crate) memory: u64,
    /// The largest file, bytes.
    pub(crate) file_size: u64,
    /// Which layers of the sandbox it works in.
    pub(crate) layers: Layers,
}

/// What confines a program, where the machine has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "models", feature = "reading")),
    allow(dead_code, reason = "each is for a program of one of the servers")
)]
pub(crate) enum Layers {
    /// All that confines model-written code.
    All,
    /// A user and namespaces of its own, without any network, and limits; for programs that make sockets in the
    /// folder for temporary files.
    Outer,
}

/// Why a program did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// Its folder could not be made, filled or read.
    #[error("its folder cannot be used: {0}")]
    Folder(io::Error),
    /// It was not started.
    #[error("it cannot be started: {0}")]
    Start(io::Error),
    /// It took too long and was ended.
    #[error("it took longer than {} s", .0.as_secs())]
    Overrun(Duration),
    /// It ended badly.
    #[error("it ended with {status}{}", complaint(words))]
    Failed { status: String, words: String },
}

fn complaint(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

/// The first of these programs on the search path; `None`: that of this process.
pub(crate) fn find(names: &[&str], search_path: Option<&OsStr>) -> Option<PathBuf> {
    let own = std::env::var_os("PATH");
    let folders: Vec<PathBuf> = std::env::split_paths(search_path.or(own.as_deref())?).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_absolute() && file.is_file())
}

/// A folder for one call of such programs. It goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Workshop {
    /// The folder that programs write to.
    room: PathBuf,
    confinement: confinement::Confinement,
    _folder: tempfile::TempDir,
}

impl Workshop {
    /// For that program.
    pub(crate) fn open(program: &Path, limits: Limits) -> Result<Self, ProgramError> {
        let folder =
            tempfile::Builder::new().prefix("fathom-program-").tempdir().map_err(ProgramError::Folder)?;
        let room = folder.path().join("room");
        let confinement = confinement::Confinement::new(program, folder.path(), &room, limits)?;
        Ok(Self { room, confinement, _folder: folder })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.room
    }

    /// Puts a file there for programs to read.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, ProgramError> {
        let path = self.room.join(name);
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above).map_err(ProgramError::Folder)?;
        }
        std::fs::write(&path, bytes).map_err(ProgramError::Folder)?;
        self.confinement.hand_over(&self.room, &path).map_err(ProgramError::Folder)?;
        Ok(path)
    }

    /// Takes a file that a program has made, once it has ended. Nothing but a file is opened.
    pub(crate) fn take(&self, name: &str, most: u64) -> Result<Vec<u8>, ProgramError> {
        let path = self.room.join(name);
        let wrong = |words: String| ProgramError::Folder(io::Error::new(io::ErrorKind::InvalidData, words));
        let about = std::fs::symlink_metadata(&path).map_err(ProgramError::Folder)?;
        if !about.is_file() {
            return Err(wrong(format!("`{name}` is not a file")));
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&path).map_err(ProgramError::Folder)?;
        file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(ProgramError::Folder)?;
        if bytes.len() as u64 > most {
            return Err(wrong(format!("`{name}` has more than {most} bytes")));
        }
        Ok(bytes)
    }

    /// Runs a program to its end and returns what it writes to its standard output.
    pub(crate) async fn run<I, S>(&self, program: &Path, arguments: I) -> Result<Vec<u8>, ProgramError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs([("HOME", self.room.as_os_str()), ("TMPDIR", self.room.as_os_str())])
            .env("LANG", "C.UTF-8")
            .env("PATH", search_path(program))
            .current_dir(&self.room)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let setup = self.confinement.setup(&self.room)?;
        let mut running = Running(spawn::spawn(command, setup).await.map_err(ProgramError::Start)?);
        let (stdout, stderr) = (running.0.stdout.take(), running.0.stderr.take());
        let limit = self.confinement.limits().time;
        let all = async {
            let (answer, words, status) =
                tokio::join!(first(stdout, ANSWER_LIMIT), last(stderr, WORDS_LIMIT), running.0.wait());
            status.map(|status| (answer, words, status))
        };
        let ended = tokio::time::timeout(limit, all).await;
        let Ok(ended) = ended else {
            running.end().await;
            return Err(ProgramError::Overrun(limit));
        };
        let (answer, words, status) = ended.map_err(ProgramError::Start)?;
        if status.success() {
            return Ok(answer);
        }
        // The watchdog ends with 128 plus the signal's number.
        let status = match status.code() {
            Some(code @ 129..) => format!("signal {}", code - 128),
            _ => status.to_string(),
        };
        Err(ProgramError::Failed { status, words })
    }
}

/// Where a program finds others: beside itself, and in the usual places.
fn search_path(program: &Path) -> OsString {
    let mut path = OsString::from("/usr/local/bin:/usr/bin:/bin");
    if let Some(folder) = program.parent() {
        path.push(":");
        path.push(folder);
    }
    path
}

/// A program with all that it has started. Dropping it ends them.
struct Running(Child);

impl Running {
    async fn end(&mut self) {
        spawn::stop(&self.0);
        if tokio::time::timeout(END_LIMIT, self.0.wait()).await.is_err() {
            tracing::warn!("a program could not be ended within {} s", END_LIMIT.as_secs());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        spawn::stop(&self.0);
    }
}

/// The first bytes; the rest is read and dropped.
async fn first(from: Option<impl AsyncRead + Unpin>, most: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    each(from, |piece| kept.extend_from_slice(&piece[..piece.len().min(most - kept.len())])).await;
    kept
}

/// The last bytes, in one line.
async fn last(from: Option<impl AsyncRead + Unpin>, most: usize) -> String {
    let mut kept: Vec<u8> = Vec::new();
    each(from, |piece| {
        kept.extend_from_slice(&piece[piece.len().saturating_sub(most)..]);
        kept.drain(..kept.len().saturating_sub(most));
    })
    .await;
    let words = String::from_utf8_lossy(&kept).split_whitespace().collect::<Vec<_>>().join(" ");
    words.trim_end_matches('.').to_owned()
}

async fn each(from: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        take(&buffer[..count]);
    }
}

/// The layers of the sandbox for model-written code, where they are built in.
#[cfg(feature = "python")]
mod confinement {
    use std::os::unix::fs::PermissionsExt as _;

    use super::{ChildSetup, Layers, Limits, Path, PathBuf, ProgramError, io};
    use crate::sandbox::{Sandbox, SandboxLimits, SandboxMode, Totals, is_passable};

    #[derive(Debug)]
    pub(super) struct Confinement {
        limits: Limits,
        sandbox: Sandbox,
        user: Option<(u32, u32)>,
        totals: Option<Totals>,
        readable: Vec<PathBuf>,
    }

    impl Confinement {
        pub(super) fn new(
            program: &Path,
            folder: &Path,
            room: &Path,
            limits: Limits,
        ) -> Result<Self, ProgramError> {
            let program = program.canonicalize().map_err(ProgramError::Start)?;
            let examine = |mode| {
                let limits = SandboxLimits {
                    memory: limits.memory,
                    total_memory: limits.memory,
                    processes: 256,
                    file_size: limits.file_size,
                    processor_seconds: limits.time.as_secs().max(1).saturating_mul(8),
                    ..SandboxLimits::default()
                };
                Sandbox::examine(mode, limits)
            };
            let other = |error: crate::sandbox::SandboxError| ProgramError::Folder(io::Error::other(error));
            let mut sandbox = examine(SandboxMode::Auto);
            if sandbox.changes_user() {
                let passable = std::fs::Permissions::from_mode(0o711);
                std::fs::set_permissions(folder, passable).map_err(ProgramError::Folder)?;
            }
            // These are the user's own programs: where nothing can confine them they are run all the same.
            let is_out_of_reach = sandbox.changes_user() && !(is_passable(room) && is_passable(&program));
            if is_out_of_reach || sandbox.report().refusal.is_some() {
                sandbox = examine(SandboxMode::None);
            }
            let user = sandbox.new_user();
            sandbox.make_scratch(room, user).map_err(other)?;
            let totals = sandbox.new_totals().map_err(other)?;
            Ok(Self { limits, sandbox, user, totals, readable: home_of(&program).into_iter().collect() })
        }

        pub(super) fn limits(&self) -> &Limits {
            &self.limits
        }

        pub(super) fn setup(&self, room: &Path) -> Result<ChildSetup, ProgramError> {
            let setup = self.sandbox.child(room, &self.readable, self.user, self.totals.as_ref());
            let setup = setup.map_err(|error| ProgramError::Start(io::Error::other(error)))?;
            Ok(match self.limits.layers {
                Layers::All => setup,
                Layers::Outer => ChildSetup {
                    landlock: None,
                    landlock_scopes_signals: false,
                    seccomp: Vec::new(),
                    ..setup
                },
            })
        }

        /// Gives what was put there to the user that programs run as.
        pub(super) fn hand_over(&self, room: &Path, path: &Path) -> io::Result<()> {
            let Some((user, group)) = self.user else { return Ok(()) };
            path.ancestors()
                .take_while(|path| *path != room)
                .try_for_each(|path| std::os::unix::fs::chown(path, Some(user), Some(group)))
        }
    }

    /// The folder that a program outside the system's has its files in; LibreOffice has a folder around that of its
    /// programs.
    fn home_of(program: &Path) -> Option<PathBuf> {
        let folder = program.parent().filter(|folder| !folder.starts_with("/usr"))?;
        let whole = folder.parent().filter(|_| folder.ends_with("program"));
        Some(whole.unwrap_or(folder).to_owned())
    }
}

#[cfg(not(feature = "python"))]
mod confinement {
    use super::{ChildSetup, Duration, Limits, Path, ProgramError, io};

    #[derive(Debug)]
    pub(super) struct Confinement {
        limits: Limits,
    }

    impl Confinement {
        pub(super) fn new(_: &Path, _: &Path, room: &Path, limits: Limits) -> Result<Self, ProgramError> {
            std::fs::create_dir(room).map_err(ProgramError::Folder)?;
            Ok(Self { limits })
        }

        pub(super) fn limits(&self) -> &Limits {
            &self.limits
        }

        pub(super) fn setup(&self, _: &Path) -> Result<ChildSetup, ProgramError> {
            Ok(ChildSetup {
                watchdog: Some(Duration::ZERO),
                rlimits: self.rlimits(),
                ..ChildSetup::default()
            })
        }

        #[cfg(target_os = "linux")]
        #[allow(clippy::unnecessary_cast, reason = "the type of these constants differs between C libraries")]
        fn rlimits(&self) -> Vec<(u32, u64)> {
            vec![
                (libc::RLIMIT_CORE as u32, 0),
                (libc::RLIMIT_AS as u32, self.limits.memory),
                (libc::RLIMIT_FSIZE as u32, self.limits.file_size),
            ]
        }

        #[cfg(not(target_os = "linux"))]
        fn rlimits(&self) -> Vec<(u32, u64)> {
            Vec::new()
        }

        pub(super) fn hand_over(&self, _: &Path, _: &Path) -> io::Result<()> {
            let _ = self.limits.layers;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(layers: Layers, time: Duration) -> (PathBuf, Workshop) {
        let shell = PathBuf::from("/bin/sh");
        let limits = Limits { time, memory: 1 << 30, file_size: 1 << 20, layers };
        let workshop = Workshop::open(&shell, limits).expect("a workshop");
        (shell, workshop)
    }

    async fn run(layers: Layers, script: &str) -> Result<String, ProgramError> {
        let (shell, workshop) = shell(layers, Duration::from_secs(20));
        let answer = workshop.run(&shell, ["-c", script]).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Whether any process was started with this argument.
    #[cfg(target_os = "linux")]
    fn is_running(argument: &str) -> bool {
        let processes = std::fs::read_dir("/proc").expect("processes").flatten();
        let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        lines
            .map(|line| String::from_utf8_lossy(&line).into_owned())
            .any(|line| line.split('\0').any(|part| part == argument))
    }

    /// One that hangs, ignores requests to end and leaves others behind, in sessions of their own.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_program_that_hangs_is_ended_with_all_that_it_started() {
        for layers in [Layers::All, Layers::Outer] {
            let time = format!("10{}.5", std::process::id());
            let (shell, workshop) = shell(layers, Duration::from_millis(2500));
            let script = format!("trap '' TERM HUP; setsid sleep {time} & touch started; sleep {time}");
            let error = workshop.run(&shell, ["-c", &script]).await.expect_err("too long");
            assert!(matches!(error, ProgramError::Overrun(_)), "{error}");
            assert!(workshop.path().join("started").exists());
            assert!(!is_running(&time), "{layers:?}");
        }
    }

    #[tokio::test]
    async fn what_a_program_comes_to_is_told() {
        for layers in [Layers::All, Layers::Outer] {
            let said = run(layers, "echo here; echo there >&2").await;
            assert_eq!(said.expect("an answer"), "here\n");
            let failed = run(layers, "echo 'no  such\nthing' >&2; exit 3").await.expect_err("a failure");
            assert!(failed.to_string().ends_with("3: no such thing"), "{failed}");
            let crashed = run(layers, "kill -SEGV $$").await.expect_err("a crash");
            assert_eq!(crashed.to_string(), "it ended with signal 11");
            // Its own variables and no others.
            let variables = run(layers, "env | cut -d= -f1 | sort | tr '\n' ' '").await.expect("variables");
            assert_eq!(variables, "HOME LANG PATH PWD TMPDIR ");
        }
        let missing = Workshop::open(Path::new("/nowhere/soffice"), shell_limits()).expect_err("no program");
        assert!(missing.to_string().starts_with("it cannot be started"), "{missing}");
    }

    fn shell_limits() -> Limits {
        Limits { time: Duration::from_secs(1), memory: 1 << 30, file_size: 1 << 20, layers: Layers::All }
    }

    #[tokio::test]
    async fn only_files_are_taken() {
        let (shell, workshop) = shell(Layers::Outer, Duration::from_secs(20));
        workshop.put("given/in", b"12345").expect("put");
        let script = "cp given/in out; ln -s /etc/passwd link; mkfifo pipe";
        workshop.run(&shell, ["-c", script]).await.expect("done");
        assert_eq!(workshop.take("out", 5).expect("a file"), b"12345");
        for (name, part) in
            [("link", "not a file"), ("pipe", "not a file"), ("out", "more than 4"), ("no", "No such")]
        {
            let error = workshop.take(name, 4).expect_err("nothing to take");
            assert!(error.to_string().contains(part), "{name}: {error}");
        }
    }

    /// A program that was taken over sees as little as model-written code.
    #[cfg(all(target_os = "linux", feature = "python"))]
    #[tokio::test]
    async fn a_confined_program_reads_no_files_of_the_machine() {
        use crate::sandbox::{Sandbox, SandboxLimits, SandboxMode};
        if let Some(refusal) = Sandbox::examine(SandboxMode::Auto, SandboxLimits::default()).report().refusal
        {
            println!("skipped: {refusal}");
            return;
        }
        let folder = tempfile::tempdir().expect("a directory");
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "a secret").expect("a file");
        let script = format!("cat {} /etc/passwd; echo end", secret.display());
        assert_eq!(run(Layers::All, &script).await.expect("an answer"), "end\n");
    }
}
