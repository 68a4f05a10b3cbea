//! One live interpreter in its sandbox.
//!
//! Decides how cells are sent to it, when it is ended, and what a cell comes to. Which sandbox a call
//! means is left to `sandboxes`.

use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use super::interpreter::Interpreter;
use super::output::Output;
use super::space::{Excess, SpaceWatch};
use crate::sandbox::{environment, proxy_environment};
use crate::spawn::{self, ChildSetup};

const DRIVER: &str = include_str!("driver.py");

/// What a cell may print in all, however little of it is shown: the rest is work for nothing.
const MOST_PRINTED: u64 = 1 << 30;
/// Bytes of an answer; a longer one was not written by the driver.
const LONGEST_ANSWER: u64 = 4096;
/// What the watchdog may take to end the tree.
const END_LIMIT: Duration = Duration::from_secs(10);

/// What is asked of the interpreter.
#[derive(Debug, Clone, Copy)]
pub(super) enum Request<'a> {
    /// Run Python code in the shared namespace.
    Code(&'a str),
    /// Run a shell command in the scratch directory.
    Command(&'a str),
}

/// How a cell ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// To its end.
    Ok,
    /// By an exception, whose traceback is in the output.
    Error,
    /// A command, with its exit code.
    Exit(i32),
    /// The time was over; the interpreter and all that it started were killed.
    Overrun(Duration),
    /// The call was withdrawn; likewise killed.
    Cancelled,
    /// It printed without end; likewise killed.
    Flood,
    /// Its files were too much; likewise killed.
    Full(Excess),
    /// The interpreter itself has gone: ended by the code, by a fault, or by a limit.
    Gone(String),
}

impl End {
    /// Whether the interpreter can take another cell.
    pub(super) fn leaves_it_alive(&self) -> bool {
        matches!(self, Self::Ok | Self::Error | Self::Exit(_))
    }
}

/// What a cell came to.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) output: String,
    pub(super) end: End,
}

#[derive(Deserialize)]
struct Answer {
    /// That of the request. Code can write answers of its own, which must not be taken for later ones.
    id: u64,
    #[serde(flatten)]
    end: Answered,
}

#[derive(Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
enum Answered {
    Ready,
    Ok,
    Error,
    Exit { code: i32 },
}

/// A running interpreter. Dropping it ends its whole tree.
#[derive(Debug)]
pub(super) struct Session {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    printed: pipe::Receiver,
    output_limit: usize,
    /// How many requests were sent.
    count: u64,
    /// What connects it to the network, which ends with it.
    #[cfg(feature = "egress")]
    proxy: Option<super::network::Proxy>,
}

impl Drop for Session {
    fn drop(&mut self) {
        spawn::stop(&self.child);
    }
}

impl Session {
    /// Starts an interpreter with `scratch` as its directory and waits until it is ready.
    pub(super) async fn start(
        interpreter: &Interpreter,
        scratch: &Path,
        setup: ChildSetup,
        output_limit: usize,
        limit: Duration,
    ) -> Result<Self, String> {
        let mut command = Command::new(&interpreter.program);
        command
            .args(["-I", "-c", DRIVER])
            .env_clear()
            .envs(environment(scratch, &interpreter.program))
            .envs(setup.listens.iter().flat_map(|_| proxy_environment()))
            .current_dir(scratch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = spawn::spawn(command, setup)
            .await
            .map_err(|error| format!("{} could not be started: {error}", interpreter.program.display()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(requests), Some(answers), Some(printed)) = pipes else {
            spawn::stop(&child);
            return Err("the interpreter was started without its pipes".into());
        };
        let printed = printed.into_owned_fd().and_then(pipe::Receiver::from_owned_fd).map_err(|error| {
            spawn::stop(&child);
            format!("the interpreter's output cannot be read: {error}")
        })?;
        let mut session = Self {
            child,
            requests,
            answers: BufReader::new(answers),
            printed,
            output_limit,
            count: 0,
            #[cfg(feature = "egress")]
            proxy: None,
        };
        match session.follow(limit, &CancellationToken::new(), None).await {
            (_, Ok(Answered::Ready)) => Ok(session),
            (output, Ok(_)) => Err(format!("the interpreter did not start as it should: {output}")),
            (output, Err(end)) => Err(format!("the interpreter did not start ({end:?}): {output}")),
        }
    }

    /// The process that all processes of the sandbox come from.
    pub(super) fn process(&self) -> Option<u32> {
        self.child.id()
    }

    /// Keeps a proxy as long as the interpreter lives.
    #[cfg(feature = "egress")]
    pub(super) fn keep(&mut self, proxy: super::network::Proxy) {
        self.proxy = Some(proxy);
    }

    /// Runs one cell. Where [`End::leaves_it_alive`] does not hold, all processes have been killed.
    pub(super) async fn run(
        &mut self,
        request: Request<'_>,
        limit: Duration,
        cancel: &CancellationToken,
        space: &SpaceWatch,
    ) -> Outcome {
        self.count += 1;
        let line = match request {
            Request::Code(code) => serde_json::json!({ "id": self.count, "code": code }),
            Request::Command(command) => serde_json::json!({ "id": self.count, "command": command }),
        };
        // A write can only wait for an interpreter that does not read, which `follow` finds out.
        let line = format!("{line}\n");
        let written = tokio::time::timeout(limit, self.requests.write_all(line.as_bytes())).await;
        if !matches!(written, Ok(Ok(()))) {
            let status = self.end().await;
            return Outcome { output: String::new(), end: End::Gone(status) };
        }
        let (output, answer) = self.follow(limit, cancel, Some(space)).await;
        let end = match answer {
            Ok(Answered::Ok | Answered::Ready) => End::Ok,
            Ok(Answered::Error) => End::Error,
            Ok(Answered::Exit { code }) => End::Exit(code),
            Err(end) => end,
        };
        Outcome { output, end }
    }

    /// Collects output until there is an answer, or a reason to kill.
    async fn follow(
        &mut self,
        limit: Duration,
        cancel: &CancellationToken,
        space: Option<&SpaceWatch>,
    ) -> (String, Result<Answered, End>) {
        let mut output = Output::new(self.output_limit);
        let mut buffer = vec![0; 64 << 10];
        let mut line = Vec::new();
        let mut open = true;
        let over = tokio::time::sleep(limit);
        let _busy = space.map(SpaceWatch::busy);
        let full = async {
            let excess = match space {
                Some(space) => space.exceeded().await,
                None => None,
            };
            match excess {
                Some(excess) => excess,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over, full);
        let end = loop {
            let mut answers = (&mut self.answers).take(LONGEST_ANSWER);
            tokio::select! {
                biased;
                () = cancel.cancelled() => break Err(End::Cancelled),
                () = &mut over => break Err(End::Overrun(limit)),
                excess = &mut full => break Err(End::Full(excess)),
                read = answers.read_until(b'\n', &mut line) => match (read, serde_json::from_slice::<Answer>(&line)) {
                    (Ok(1..), Ok(answer)) if answer.id == self.count => break Ok(answer.end),
                    (Ok(1..), Ok(_)) => line.clear(),
                    _ => break Err(End::Gone(String::new())),
                },
                read = self.printed.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => output.push(&buffer[..count]),
                },
            }
            if output.total() > MOST_PRINTED || line.len() as u64 > LONGEST_ANSWER {
                break Err(End::Flood);
            }
        };
        let end = match end {
            Err(why) => {
                let status = self.end().await;
                Err(if matches!(why, End::Gone(_)) { End::Gone(status) } else { why })
            }
            answer => answer,
        };
        // The answer was written after the output, so all of that is in the pipe.
        drain(self.printed.as_fd(), &mut buffer, &mut output);
        (output.into_text(), end)
    }

    /// Kills the tree and waits for it. Says how the interpreter had ended.
    pub(super) async fn end(&mut self) -> String {
        // Where it has ended by itself, its watchdog is about to say how.
        let grace = Duration::from_millis(if self.is_gone() { 200 } else { 0 });
        let status = match tokio::time::timeout(grace, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                spawn::stop(&self.child);
                match tokio::time::timeout(END_LIMIT, self.child.wait()).await {
                    Ok(status) => status,
                    Err(_) => {
                        tracing::warn!("a sandbox could not be ended within {} s", END_LIMIT.as_secs());
                        return "it could not be ended".into();
                    }
                }
            }
        };
        match status.map(|status| status.code()) {
            Ok(Some(code @ 129..)) => format!("signal {}", code - 128),
            Ok(Some(code)) => format!("exit code {code}"),
            _ => "killed".into(),
        }
    }

    /// Whether the interpreter has closed its answers: only an interpreter that ends does.
    fn is_gone(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut descriptor = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut descriptor, Some(&now)), Ok(1..))
            && descriptor[0].revents().contains(PollFlags::HUP)
    }
}

/// Reads what is there, without waiting.
fn drain(from: impl AsFd, buffer: &mut [u8], output: &mut Output) {
    while output.total() <= MOST_PRINTED {
        match rustix::io::read(&from, &mut *buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => output.push(&buffer[..count]),
        }
    }
}
