//! `cargo xtask perf`: what the program costs, in one table, beside the aims and what the reference takes. Prints, never
//! judges: a machine may be busy.

mod benches;
mod built;
mod model;
mod process;
mod program;
mod suite;
mod table;

use std::time::Instant;

use table::{Beside, figure, section};

use crate::shell;

/// Seconds that a release build from nothing may take on two cores.
const COLD_BUILD: f64 = 480.0;

pub fn run(cold_build: bool) -> anyhow::Result<()> {
    if cold_build {
        let took = cold_release_build()?;
        section("From a fresh clone");
        figure("release build from nothing", took, "s", Beside::AtMost(COLD_BUILD));
    }
    let built = built::Built::new()?;
    program::run(built.program("fathom")?)?;
    suite::run(built.program("fathom-bench")?)?;
    benches::agents(&built)?;
    benches::run(&built)?;
    benches::example(&built, "The library", "library_perf")?;
    benches::example(
        &built,
        "The shared limiter in simulated time, the worst of three draws",
        "limiter_simulation",
    )
}

/// Seconds.
fn cold_release_build() -> anyhow::Result<f64> {
    let target = tempfile::tempdir()?;
    let began = Instant::now();
    let target = target.path().display().to_string();
    shell::cargo(&["build", "--release", "--locked", "--package", "fathom", "--target-dir", &target])?;
    Ok(began.elapsed().as_secs_f64())
}
