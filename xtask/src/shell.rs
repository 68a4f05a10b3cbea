//! Runs other programs and says which.

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context as _, bail};

/// The top of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs cargo at the top of the repository.
pub fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    eprintln!("$ cargo {}", arguments.join(" "));
    let mut command = Command::new(env!("CARGO"));
    let command = at_the_top(command.args(arguments));
    let status = command.status().context("cargo does not start")?;
    if !status.success() {
        bail!("cargo {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}

/// Runs a program at the top of the repository and takes what it says.
pub fn quietly(command: &mut Command) -> anyhow::Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    at_the_top(command).output().with_context(|| format!("{program} does not start"))
}

fn at_the_top(command: &mut Command) -> &mut Command {
    // What cargo said to this program about itself would make the build scripts of others run again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command.current_dir(root())
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
