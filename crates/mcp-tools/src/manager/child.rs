//! A server program: its start, its standard error, its end.
//!
//! Decides how a program is asked to end and how long it has for that. That nothing of it outlives
//! this process is the work of the watchdog that `spawn` puts in front of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::environment;
use super::failure::{self, StartFailure};
use super::tail::Tail;
use crate::spawn::{ChildSetup, spawn, stop};

/// From the end of its input until a program is sent TERM.
const LEAVE_TIME: Duration = Duration::from_millis(800);
/// From TERM until KILL.
const TERM_TIME: Duration = Duration::from_millis(1500);
/// From KILL until nobody waits any longer.
const KILL_TIME: Duration = Duration::from_secs(1);
/// A line of standard error that is longer is logged in pieces of this size, in bytes.
const LOG_LINE: usize = 4096;

/// Which processes of a server program end with it on this machine, in words; the error says which may be
/// left, and why.
///
/// # Errors
/// Processes that leave a server's process group are not reached here.
pub fn ends_with_server() -> Result<&'static str, &'static str> {
    if !cfg!(target_os = "linux") {
        return Err(
            "on this system only a server's process group is ended; a process that leaves it may stay",
        );
    }
    if !Path::new("/proc/thread-self/children").exists() {
        return Err(
            "/proc does not list children here, so a process that leaves a server's group with setsid may stay",
        );
    }
    Ok(
        "all that a server has started ends with it, setsid or not, kill -9 of this program included: orphans fall to a watchdog",
    )
}

/// A running program. Dropping it ends the program and all that it started.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    exit: watch::Receiver<Option<ExitStatus>>,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl ChildProcess {
    /// Starts a program; what it prints on standard error goes to the log and to `tail`.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(crate) async fn start(
        server: Arc<str>,
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: Option<&Path>,
        tail: Arc<Tail>,
    ) -> Result<(Self, ChildStdout, ChildStdin), StartFailure> {
        let failed = |error| failure::of_spawn(command, cwd, error);
        let mut program = Command::new(command);
        program
            .args(args)
            .env_clear()
            .envs(environment::of_server(std::env::vars_os(), env))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(cwd) = cwd {
            program.current_dir(cwd);
        }
        // In a task of its own: a caller that goes away at the wrong moment must not leave a child that
        // nobody knows of.
        let spawning =
            tokio::spawn(async { spawn(program, ChildSetup::tied_to_parent()).await.map(Guarded) });
        let mut child = spawning.await.map_err(std::io::Error::other).flatten().map_err(failed)?;
        let pipes = (child.0.stdout.take(), child.0.stdin.take(), child.0.stderr.take());
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else {
            return Err(failed(std::io::Error::other("its pipes are missing")));
        };
        let drained = tokio::spawn(drain(server, stderr, tail, secrets(env)));
        let (exit_sender, exit) = watch::channel(None);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            let status = child.end(&stopped).await;
            // What it printed last is part of how it ended. A descendant that kept the pipe open is
            // not waited for.
            let _ = timeout(KILL_TIME, drained).await;
            exit_sender.send_replace(status);
        });
        Ok((Self { exit, stop: stop.clone(), _stop_on_drop: stop.drop_guard() }, stdout, stdin))
    }

    /// Asks the program to end; its input must have been closed.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// How the program ended, waiting for its end for at most `limit`; none where it still runs or
    /// its status is not known.
    pub(crate) async fn ended(&self, limit: Duration) -> Ended {
        let mut exit = self.exit.clone();
        match timeout(limit, exit.wait_for(Option::is_some)).await {
            Ok(Ok(status)) => Ended::Yes(*status),
            // The task that minds the child is gone, and the child with it.
            Ok(Err(_)) => Ended::Yes(None),
            Err(_) => Ended::No,
        }
    }
}

/// Whether a program has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ended {
    /// It has, with this status where that is known.
    Yes(Option<ExitStatus>),
    /// It runs.
    No,
}

/// The longest that [`ChildProcess::stop`] takes to do its work.
pub(crate) const STOP_TIME: Duration = LEAVE_TIME.saturating_add(TERM_TIME).saturating_add(KILL_TIME);

/// A child whose tree is ended when this is dropped, be it with the runtime.
#[derive(Debug)]
struct Guarded(Child);

impl Guarded {
    /// Waits until the program has ended, by itself or because it was asked to.
    async fn end(&mut self, stopped: &CancellationToken) -> Option<ExitStatus> {
        tokio::select! {
            status = self.0.wait() => return status.ok(),
            () = stopped.cancelled() => {}
        }
        for patience in [LEAVE_TIME, TERM_TIME, KILL_TIME] {
            if let Ok(status) = timeout(patience, self.0.wait()).await {
                return status.ok();
            }
            // The first is TERM, the second ends the grace.
            stop(&self.0);
        }
        tracing::warn!("a tool server could not be ended");
        None
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        stop(&self.0);
    }
}

/// What a server was given that it must not show: its variables whose names mean a secret.
fn secrets(env: &BTreeMap<String, String>) -> Vec<String> {
    // Shorter ones cannot be told from ordinary words.
    const SHORTEST: usize = 6;
    let marked =
        env.iter().filter(|(name, value)| environment::is_secret_name(name) && value.len() >= SHORTEST);
    marked.map(|(_, value)| value.clone()).collect()
}

/// Reads standard error to its end, so that the program never waits for a reader.
async fn drain(server: Arc<str>, mut stderr: impl AsyncRead + Unpin, tail: Arc<Tail>, secrets: Vec<String>) {
    let mut buffer = vec![0; 16 * 1024];
    let mut line = Vec::with_capacity(LOG_LINE);
    let log = |line: &mut Vec<u8>| {
        if !line.is_empty() {
            let mut text = super::text::clean(&String::from_utf8_lossy(line)).into_owned();
            for secret in &secrets {
                text = text.replace(secret.as_str(), "***");
            }
            tracing::debug!(%server, line = %text, "stderr");
            tail.push(text.as_bytes());
            line.clear();
        }
    };
    loop {
        let read = match stderr.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        for &byte in &buffer[..read] {
            if byte == b'\n' {
                log(&mut line);
                continue;
            }
            if line.len() == LOG_LINE {
                log(&mut line);
            }
            line.push(byte);
        }
    }
    log(&mut line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn standard_error_is_kept_in_bounded_lines() {
        let tail = Arc::new(Tail::default());
        let printed = format!("first sk-0123\n\n{}\nlast without end", "x".repeat(3 * LOG_LINE));
        let env = [("A_KEY", "sk-0123"), ("B_KEY", "short"), ("C", "last without")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        drain("s".into(), printed.as_bytes(), Arc::clone(&tail), secrets(&env)).await;
        let shown = tail.indented().unwrap();
        assert!(
            shown.starts_with("  first ***\n  xxx") && shown.ends_with("\n  last without end"),
            "{shown}"
        );
        assert_eq!(shown.lines().count(), 5);
    }
}
