//! Formats that LibreOffice turns into newer ones: DOC, PPT, RTF, Excel 95.
//!
//! Decides what the program is asked: each call with a profile of its own, which is thrown away and in which macros and
//! links to elsewhere are switched off, within a time limit, and only so many at a time. How it is run and ended is
//! left to `programs`.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::docx::Docx;
use super::format::OldFormat;
use super::pptx::Pptx;
use super::xlsx::Xlsx;
use super::{Converted, Converter, Problem, Source};
use crate::servers::programs::{self, Layers, Limits, ProgramError, Workshop};

/// For one document. The first start on a machine takes several seconds.
const LIMIT: Duration = Duration::from_secs(120);
/// Bytes of address space; it reserves far more than it uses.
const MEMORY: u64 = 4 << 30;
/// Bytes of what it writes.
const RESULT_LIMIT: u64 = 512 << 20;
/// At a time: each takes a few hundred megabytes.
const MOST: usize = 2;

/// Settings of a profile: no macros, no links followed, nothing asked, nothing looked up.
const PROFILE: &str = include_str!("office.xcu");

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
        let bytes = newer(source.bytes, self.ending, self.newer)?;
        self.reader.convert(&Source { bytes: &bytes, depth: source.depth })
    }
}

/// The document in its newer format.
fn newer(bytes: &[u8], ending: &str, newer: &str) -> Result<Vec<u8>, Problem> {
    let program = programs::find(&["soffice", "libreoffice"], None).ok_or(Problem::NoOffice)?;
    let broken = |error: ProgramError| Problem::Broken(format!("LibreOffice could not convert it: {error}"));
    let limits = Limits { time: LIMIT, memory: MEMORY, file_size: RESULT_LIMIT, layers: Layers::Outer };
    let _turn = Turn::take();
    let workshop = Workshop::open(&program, limits).map_err(broken)?;
    let given = workshop.put(&format!("document.{ending}"), bytes).map_err(broken)?;
    workshop.put("profile/user/registrymodifications.xcu", PROFILE.as_bytes()).map_err(broken)?;
    let profile = format!("-env:UserInstallation=file://{}", workshop.path().join("profile").display());
    let arguments =
        [profile.as_ref(), "--headless".as_ref(), "--norestore".as_ref(), "--nolockcheck".as_ref()];
    let task = ["--convert-to".as_ref(), newer.as_ref(), "--outdir".as_ref()];
    let arguments: Vec<&std::ffi::OsStr> =
        arguments.into_iter().chain(task).chain([workshop.path().as_os_str(), given.as_os_str()]).collect();
    // Readers work on threads of their own, which belong to no runtime.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| broken(ProgramError::Start(error)))?;
    match runtime.block_on(workshop.run(&program, arguments)) {
        Ok(_) => {}
        Err(ProgramError::Overrun(limit)) => {
            return Err(Problem::TooLarge(format!("LibreOffice took longer than {} s", limit.as_secs())));
        }
        Err(error) => return Err(broken(error)),
    }
    let made = workshop.take(&format!("document.{newer}"), RESULT_LIMIT);
    made.map_err(|_| Problem::Broken("LibreOffice made nothing of it".into()))
}

/// One of [`MOST`] turns, given back when it is dropped.
struct Turn;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

impl Turn {
    fn take() -> Self {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let running = ENDED.wait_while(running, |running| *running >= MOST);
        *running.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}
