//! Runs other programs and says which.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};

/// The top of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs cargo at the top of the repository.
pub fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    eprintln!("$ cargo {}", arguments.join(" "));
    let mut command = Command::new(env!("CARGO"));
    // What cargo said to this program about itself would make the build scripts of others run again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    let status = command.args(arguments).current_dir(root()).status().context("cargo does not start")?;
    if !status.success() {
        bail!("cargo {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}

/// Builds one of the programs in release mode and gives its path.
pub fn release_program(package: &str) -> anyhow::Result<PathBuf> {
    cargo(&["build", "--release", "--locked", "--package", package])?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let program = target.join("release").join(package);
    if !program.is_file() {
        bail!("{} is not there after the build", program.display());
    }
    Ok(program)
}
