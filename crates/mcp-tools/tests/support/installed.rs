//! Programs of others that tests run against, installed once below `target/` in the versions that the tests were
//! written for. Where that is not possible a test says so and ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Two tests must not install into one folder at a time.
static INSTALLING: Mutex<()> = Mutex::new(());

/// The folder with these npm packages, `target/npm-servers/NAME`.
pub(crate) fn npm(name: &str, packages: &[&str]) -> Option<PathBuf> {
    told(once(&target()?.join("npm-servers").join(name), packages, |folder| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"]).arg(folder).args(packages);
        run(&mut npm)
    }))
}

/// The Python of an environment with these packages, `target/python-servers/NAME`. Made from the system's Python
/// where there is one, because every user may read that, those of sandboxes included.
#[allow(dead_code, reason = "not every program of tests needs it")]
pub(crate) fn python(name: &str, packages: &[&str]) -> Option<PathBuf> {
    let folder = told(once(&target()?.join("python-servers").join(name), packages, |folder| {
        let system = Path::new("/usr/bin/python3");
        let base = if system.is_file() { system } else { Path::new("python3") };
        run(Command::new(base).args(["-m", "venv", "--without-pip"]).arg(folder))?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "--python"]).arg(folder.join("bin/python"));
        run(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages))
    }))?;
    Some(folder.join("bin/python"))
}

/// A Node.js of at least this major version: the system's, or npm's own in that folder.
#[allow(dead_code, reason = "not every program of tests needs it")]
pub(crate) fn node(folder: &Path, least: u32) -> PathBuf {
    let version = Command::new("node").arg("--version").output().ok();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let major = version
        .as_deref()
        .and_then(|version| version.trim().strip_prefix('v')?.split('.').next()?.parse().ok());
    if major.is_some_and(|major: u32| major >= least) {
        return PathBuf::from("node");
    }
    folder.join("node_modules/node/bin/node")
}

fn target() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    own.ancestors().nth(3).map(Path::to_owned)
}

#[allow(clippy::print_stderr, reason = "a test that cannot run says why")]
fn told(installed: Result<PathBuf, String>) -> Option<PathBuf> {
    installed.inspect_err(|reason| eprintln!("skipped: {reason}")).ok()
}

fn once(
    folder: &Path,
    packages: &[&str],
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let _alone = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let (mark, wanted) = (folder.join("installed"), packages.join("\n"));
    if std::fs::read_to_string(&mark).ok().as_deref() != Some(&wanted) {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        install(folder)?;
        std::fs::write(&mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))?;
    }
    Ok(folder.to_owned())
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{program} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} could not install: {}", said.trim()))
}
