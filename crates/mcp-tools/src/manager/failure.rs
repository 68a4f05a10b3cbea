//! Why a server could not be started, in words for a person.
//!
//! Decides what a person is told: what happened, what the server printed last, and what to do.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// Programs that often start servers, and how to get them.
const INSTALL_HINTS: &[(&[&str], &str)] = &[
    (&["npx", "npm", "node"], "install Node.js (https://nodejs.org)"),
    (&["uvx", "uv"], "install uv (https://docs.astral.sh/uv)"),
    (&["python", "python3", "pip", "pip3"], "install Python 3 (https://www.python.org)"),
    (&["pipx"], "install pipx (https://pipx.pypa.io)"),
    (&["docker"], "install Docker (https://docs.docker.com/get-docker)"),
    (&["bun", "bunx"], "install Bun (https://bun.sh)"),
    (&["deno"], "install Deno (https://deno.com)"),
    (&["java"], "install a Java runtime"),
    (&["dotnet"], "install .NET (https://dotnet.microsoft.com)"),
];

/// Why a server is not in use.
#[derive(Debug)]
pub(crate) enum StartFailure {
    /// The description cannot be used.
    BadSpec(String),
    /// The program does not exist.
    ProgramMissing { program: String },
    /// The program could not be started for another reason.
    Spawn { program: String, error: io::Error },
    /// The directory that it shall start in does not exist.
    DirectoryMissing { directory: String },
    /// The program ended before it was ready.
    Exited { status: Option<ExitStatus>, output: Option<String> },
    /// It runs but did not answer in time.
    TooSlow { waited_for: Step, limit: Duration, output: Option<String> },
    /// It answered with something that is no handshake.
    Protocol { step: Step, problem: String, output: Option<String> },
    /// It answered with an error.
    Refused { step: Step, code: i32, said: String, output: Option<String> },
    /// The endpoint answered with something that is no session.
    #[cfg(feature = "http")]
    Http { url: String, problem: String },
}

/// What a server is asked at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// `initialize`.
    Handshake,
    /// `tools/list`.
    Tools,
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Handshake => "the handshake",
            Self::Tools => "the list of tools",
        })
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadSpec(problem) => formatter.write_str(problem),
            Self::ProgramMissing { program } => {
                write!(formatter, "the program `{program}` was not found: {}", install_hint(program))
            }
            Self::Spawn { program, error } if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(
                    formatter,
                    "the program `{program}` may not be run: check that it is an executable file"
                )
            }
            Self::Spawn { program, error } => {
                write!(formatter, "the program `{program}` could not be started: {error}")
            }
            Self::DirectoryMissing { directory } => {
                write!(formatter, "its working directory `{directory}` does not exist: change `cwd`")
            }
            Self::Exited { status, output } => {
                write!(formatter, "the program ended {} before it was ready", status_words(*status))?;
                write_output(formatter, output.as_deref())
            }
            Self::TooSlow { waited_for, limit, output } => {
                write!(
                    formatter,
                    "no answer to {waited_for} within {} s: raise `start_limit` of this server if it needs longer",
                    seconds(*limit)
                )?;
                write_output(formatter, output.as_deref())
            }
            Self::Protocol { step, problem, output } => {
                write!(formatter, "{step} failed: {problem}: is this an MCP server?")?;
                write_output(formatter, output.as_deref())
            }
            Self::Refused { step, code, said, output } => {
                write!(formatter, "it refused {step} (JSON-RPC error {code}): {said}")?;
                output.as_deref().map_or(Ok(()), |output| write_output(formatter, Some(output)))
            }
            #[cfg(feature = "http")]
            Self::Http { url, problem } => write!(formatter, "{url}: {problem}"),
        }
    }
}

fn write_output(formatter: &mut fmt::Formatter<'_>, output: Option<&str>) -> fmt::Result {
    match output {
        Some(output) => write!(formatter, "; the last that it printed:\n{output}"),
        None => formatter.write_str("; it printed nothing"),
    }
}

fn install_hint(program: &str) -> String {
    if program.contains('/') {
        return "check the path".to_owned();
    }
    let hint = INSTALL_HINTS.iter().find(|(names, _)| names.contains(&program));
    match hint {
        Some((_, hint)) => format!("{hint}, or give its full path"),
        None => "install it, or give its full path".to_owned(),
    }
}

/// How a program ended, to follow "the program ended".
pub(crate) fn status_words(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), signal_of(status))) {
        // A watchdog passes on the signal that ended the program as 128 plus its number.
        Some((Some(code @ 129..=192), _)) => format!("by signal {}", code - 128),
        Some((Some(code), _)) => format!("with status {code}"),
        Some((None, Some(signal))) => format!("by signal {signal}"),
        Some((None, None)) | None => "without a status".to_owned(),
    }
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}

/// A duration as people write it in configuration.
pub(crate) fn seconds(limit: Duration) -> f64 {
    (limit.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Why a program could not be started.
pub(crate) fn of_spawn(program: &str, cwd: Option<&Path>, error: io::Error) -> StartFailure {
    if let Some(directory) = cwd.filter(|directory| !directory.is_dir()) {
        return StartFailure::DirectoryMissing { directory: directory.display().to_string() };
    }
    if error.kind() == io::ErrorKind::NotFound {
        return StartFailure::ProgramMissing { program: program.to_owned() };
    }
    StartFailure::Spawn { program: program.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_say_what_to_do() {
        let missing = |program: &str| of_spawn(program, None, io::ErrorKind::NotFound.into()).to_string();
        for (text, expected) in [
            (
                missing("npx"),
                "the program `npx` was not found: install Node.js (https://nodejs.org), or give its full path",
            ),
            (
                missing("own-server"),
                "the program `own-server` was not found: install it, or give its full path",
            ),
            (missing("/opt/x"), "the program `/opt/x` was not found: check the path"),
            (
                of_spawn("x", Some(Path::new("/does/not/exist")), io::ErrorKind::NotFound.into()).to_string(),
                "its working directory `/does/not/exist` does not exist: change `cwd`",
            ),
            (
                of_spawn("x", None, io::ErrorKind::PermissionDenied.into()).to_string(),
                "the program `x` may not be run: check that it is an executable file",
            ),
            (
                StartFailure::TooSlow {
                    waited_for: Step::Handshake,
                    limit: Duration::from_millis(1500),
                    output: None,
                }
                .to_string(),
                "no answer to the handshake within 1.5 s: raise `start_limit` of this server if it needs longer; it printed nothing",
            ),
        ] {
            assert_eq!(text, expected);
        }
    }

    #[cfg(unix)]
    #[test]
    fn endings_are_named() {
        use std::os::unix::process::ExitStatusExt as _;
        for (raw, expected) in
            [(3 << 8, "with status 3"), (9, "by signal 9"), (137 << 8, "by signal 9"), (0, "with status 0")]
        {
            assert_eq!(status_words(Some(ExitStatus::from_raw(raw))), expected);
        }
    }
}
