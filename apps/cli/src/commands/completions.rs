//! `fathom completions SHELL`: a script that the shell reads.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn print(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "fathom", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Done.into())
}
