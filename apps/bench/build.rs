//! Tells the program which revision it is built from, where git knows: it goes into the header of every run.

use std::process::Command;

fn main() {
    for path in ["../../.git/HEAD", "../../.git/logs/HEAD", "../../crates", "../../apps", "../../Cargo.lock"]
    {
        println!("cargo:rerun-if-changed={path}");
    }
    if let Some(revision) = git(&["rev-parse", "HEAD"]) {
        println!("cargo:rustc-env=FATHOM_REVISION={revision}");
        let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
        let dirty = if changes.is_none_or(|changes| changes.is_empty()) { "no" } else { "yes" };
        println!("cargo:rustc-env=FATHOM_DIRTY={dirty}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
