//! `cargo xtask tidy`: the rules of the house, as code. Each rule says what it found and why that matters.

mod layers;
mod texts;

use anyhow::bail;

pub fn run() -> anyhow::Result<()> {
    let mut problems = layers::check()?;
    problems.extend(texts::check()?);
    if problems.is_empty() {
        eprintln!("tidy: nothing to say");
        return Ok(());
    }
    for problem in &problems {
        eprintln!("tidy: {problem}");
    }
    bail!("tidy: {} problems", problems.len())
}
