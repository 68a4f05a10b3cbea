//! Formats that LibreOffice turns into newer ones: DOC, PPT, RTF, Excel 95.
//!
//! Decides how the program is run: found on the search path, with a profile of its own that is thrown away, within a
//! time limit, one at a time, and ended with all that it has started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::docx::Docx;
use super::format::OldFormat;
use super::pptx::Pptx;
use super::xlsx::Xlsx;
use super::{Converted, Converter, Problem, Source};

/// For one document. The first start on a machine takes several seconds.
const LIMIT: Duration = Duration::from_secs(120);
/// Between two looks at whether it has ended.
const PAUSE: Duration = Duration::from_millis(20);
/// Bytes of what it writes.
const RESULT_LIMIT: u64 = 512 << 20;

/// Several at a time would take turns in memory.
static RUNNING: Mutex<()> = Mutex::new(());

struct Old {
    name: &'static str,
    ending: &'static str,
    /// What it is turned into, and who reads that.
    newer: &'static str,
    reader: &'static dyn Converter,
}

static DOC: Old = Old { name: "an old Word document (DOC)", ending: "doc", newer: "docx", reader: &Docx };
static PPT: Old =
    Old { name: "an old PowerPoint presentation (PPT)", ending: "ppt", newer: "pptx", reader: &Pptx };
static XLS: Old =
    Old { name: "an Excel workbook of 1995 or before (XLS)", ending: "xls", newer: "xlsx", reader: &Xlsx };
static RTF: Old = Old { name: "an RTF document", ending: "rtf", newer: "docx", reader: &Docx };

pub(super) fn converter(format: OldFormat) -> (&'static dyn Converter, &'static str) {
    match format {
        OldFormat::Doc => (&DOC, "DOC"),
        OldFormat::Ppt => (&PPT, "PPT"),
        OldFormat::Xls95 => (&XLS, "XLS"),
        OldFormat::Rtf => (&RTF, "RTF"),
    }
}

impl Converter for Old {
    fn name(&self) -> &'static str {
        self.name
    }

    fn convert(&self, source: &Source<'_>) -> Result<Converted, Problem> {
        let program = find().ok_or(Problem::NoOffice)?;
        let broken =
            |problem: std::io::Error| Problem::Broken(format!("LibreOffice could not be used: {problem}"));
        let folder = tempfile::Builder::new().prefix("fathom-office-").tempdir().map_err(broken)?;
        let given = folder.path().join(format!("document.{}", self.ending));
        std::fs::write(&given, source.bytes).map_err(broken)?;
        let _one = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        run(&program, folder.path(), &given, self.newer)?;
        let made = folder.path().join(format!("document.{}", self.newer));
        let size = std::fs::metadata(&made)
            .map_err(|_| Problem::Broken("LibreOffice made nothing of it".into()))?
            .len();
        if size > RESULT_LIMIT {
            return Err(Problem::TooLarge(format!("LibreOffice made {size} bytes of it")));
        }
        let bytes = std::fs::read(&made).map_err(broken)?;
        self.reader.convert(&Source { bytes: &bytes, depth: source.depth })
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let names = ["soffice", "libreoffice"];
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

fn run(program: &Path, folder: &Path, given: &Path, newer: &str) -> Result<(), Problem> {
    let broken = |problem: String| Problem::Broken(format!("LibreOffice could not convert it: {problem}"));
    let mut command = Command::new(program);
    command
        .arg(format!("-env:UserInstallation=file://{}", folder.join("profile").display()))
        .args(["--headless", "--norestore", "--nolockcheck", "--convert-to", newer, "--outdir"])
        .arg(folder)
        .arg(given)
        .env_clear()
        .env("HOME", folder)
        .env("LANG", "C.UTF-8")
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| broken(error.to_string()))?;
    let began = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if began.elapsed() < LIMIT => std::thread::sleep(PAUSE),
            Ok(None) => break Err(format!("it took longer than {} s", LIMIT.as_secs())),
            Err(error) => break Err(error.to_string()),
        }
    };
    end_group(child.id());
    // Whatever was the reason, nothing is left waiting to be collected.
    let _ = child.kill();
    let _ = child.wait();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(broken(status.to_string())),
        Err(problem) => Err(broken(problem)),
    }
}

#[cfg(unix)]
fn end_group(id: u32) {
    let group = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // There is none any more where all have ended.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn end_group(_: u32) {}
