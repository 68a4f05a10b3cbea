//! Reading a document in a process of its own.
//!
//! Decides how much memory and time the reader of a format may take whose files can ask for any amount of both. The
//! process is this program, called in a way that its author has set aside for that; where none was named, the reader
//! works in this process.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::Duration;

use super::pdf::Pdf;
use super::{Converted, Converter, Problem, Source, on_large_stack};

/// Bytes of memory.
const MEMORY: u64 = 2 << 30;
/// From the start to the last byte.
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes of an answer.
const ANSWER_LIMIT: u64 = 256 << 20;

static PROCESS: OnceLock<ReaderProcess> = OnceLock::new();

/// A program that calls [`read_apart`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderProcess {
    /// The program.
    pub program: PathBuf,
    /// What makes it call [`read_apart`] and nothing else.
    pub arguments: Vec<OsString>,
}

impl ReaderProcess {
    /// Has documents that can ask for any amount of memory and time (PDF) read by that program, in 2 GiB and 60 s.
    /// The first call counts.
    pub fn install(self) {
        let _ = PROCESS.set(self);
    }
}

/// The other side: reads a PDF from the standard input and writes what it says to the standard output, for the
/// program that has started this one. Returns whether that could be done.
#[must_use]
pub fn read_apart() -> bool {
    let mut bytes = Vec::new();
    if std::io::stdin().lock().read_to_end(&mut bytes).is_err() {
        return false;
    }
    let answer = on_large_stack(&Pdf, &Source { bytes: &bytes, depth: 0 });
    let Ok(answer) = serde_json::to_vec(&answer) else { return false };
    let mut out = std::io::stdout().lock();
    out.write_all(&answer).and_then(|()| out.flush()).is_ok()
}

/// A reader that works in a process of its own where one was named.
pub(super) struct Apart(pub(super) Pdf);

impl Converter for Apart {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem> {
        match PROCESS.get() {
            Some(process) => ask(process, source.bytes),
            None => self.0.convert(source),
        }
    }
}

fn ask(process: &ReaderProcess, bytes: &[u8]) -> Result<Converted, Problem> {
    let broken = |problem: String| Problem::Broken(format!("its reader could not be used: {problem}"));
    let mut child = Command::new(&process.program)
        .args(&process.arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| broken(format!("`{}`: {error}", process.program.display())))?;
    limit(&child);
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(broken("it has no standard streams".into()));
    };
    let (sender, receiver) = mpsc::channel();
    let answer = std::thread::scope(|scope| {
        scope.spawn(move || {
            // It may end before it has read all.
            let _ = stdin.write_all(bytes);
        });
        scope.spawn(move || {
            let mut answer = Vec::new();
            let read = stdout.take(ANSWER_LIMIT + 1).read_to_end(&mut answer);
            let _ = sender.send(read.map(|_| answer));
        });
        let answer = receiver.recv_timeout(LIMIT);
        // Both threads end with the process.
        let _ = child.kill();
        answer
    });
    let status = child.wait().map_err(|error| broken(error.to_string()))?;
    let answer = match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(broken(error.to_string())),
        Err(_) => {
            return Err(Problem::TooLarge(format!("reading it took longer than {} s", LIMIT.as_secs())));
        }
    };
    if answer.len() as u64 > ANSWER_LIMIT {
        return Err(Problem::TooLarge(format!("it has more than {ANSWER_LIMIT} bytes of text")));
    }
    serde_json::from_slice::<Result<Converted, Problem>>(&answer).unwrap_or_else(|_| {
        tracing::debug!(%status, "a reader process ended without an answer");
        Err(Problem::TooLarge(format!(
            "reading it took more than {MEMORY} bytes of memory, or broke its reader"
        )))
    })
}

/// Before it is sent anything, and so before it can need much.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn limit(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let seconds = LIMIT.as_secs();
    for (resource, most) in [(Resource::As, MEMORY), (Resource::Cpu, seconds), (Resource::Core, 0)] {
        if let Err(error) =
            prlimit(Some(process), resource, Rlimit { current: Some(most), maximum: Some(most) })
        {
            tracing::debug!(%error, "a reader process could not be limited");
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn limit(_: &Child) {}
