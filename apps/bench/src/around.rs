//! What the program finds around it: environment, folders, configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use evaluation::suite::JudgeWish;
use pipeline::config::Resolved;
use pipeline::{Options, PipelineError, Surroundings};

use crate::args::Around;

/// The surroundings of a run of `benchmark` that keeps everything in `out`.
pub(crate) fn surroundings(
    around: &Around,
    benchmark: Option<&str>,
    out: &Path,
) -> anyhow::Result<Surroundings> {
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let options = Options {
        conf_dir: around.conf_dir.clone(),
        llm: around.llm.clone(),
        agent: around.agent.clone(),
        benchmark: benchmark.map(str::to_owned),
        sets: around.set.clone(),
        mcp_config: around.mcp_config.clone(),
        runs_dir: out.join("runs"),
        ..Options::default()
    };
    Ok(Surroundings::new(variables, here()?, &std::env::temp_dir(), options))
}

/// The configuration of a suite, with nothing chosen but where it comes from.
pub(crate) fn resolved(conf_dir: Option<&Path>, suite: &str) -> anyhow::Result<Resolved> {
    let around = Around { conf_dir: conf_dir.map(Path::to_owned), ..Around::default() };
    surroundings(&around, Some(suite), Path::new("."))?.resolve().map_err(shown)
}

pub(crate) fn here() -> anyhow::Result<PathBuf> {
    std::env::current_dir().context("the current folder cannot be read")
}

/// Who is to judge, as typed: a preset of `conf/llm/` is resolved like the model of a run.
pub(crate) fn judge_wish(judge: Option<&str>, around: &Around) -> anyhow::Result<JudgeWish> {
    match judge {
        None | Some("suite") => Ok(JudgeWish::Configured),
        Some("mock") => Ok(JudgeWish::Mock),
        Some(name) => {
            // What is set for the model that runs is not meant for the one that judges.
            let around = Around { llm: Some(name.to_owned()), set: Vec::new(), ..around.clone() };
            let resolved = surroundings(&around, None, Path::new("."))?.resolve().map_err(|error| {
                // It is resolved as a model is, and was asked for as a judge.
                anyhow::anyhow!(format!("{:#}", shown(error)).replace("--llm:", "--judge:"))
            })?;
            Ok(JudgeWish::Model(Box::new(resolved.config.llm)))
        }
    }
}

/// A pipeline's error with what to do about it.
pub(crate) fn shown(error: PipelineError) -> anyhow::Error {
    match error.hint() {
        Some(hint) if !error.to_string().contains(&hint) => anyhow::anyhow!("{error}\nhint: {hint}"),
        _ => anyhow::Error::new(error),
    }
}
