//! The only place that reads the process's environment.

use std::collections::BTreeMap;

use anyhow::Context as _;
use pipeline::own_log::WithoutSecrets;
use pipeline::{CassetteChoice, Options, Surroundings};
use tracing_subscriber::EnvFilter;

use crate::args::Common;
use crate::exit::Failure;
use crate::output::Style;

/// What every command works with.
pub(crate) struct Context {
    /// The common options.
    pub(crate) common: Common,
    /// What was found around the program.
    pub(crate) around: Surroundings,
}

impl Context {
    pub(crate) fn read(common: Common) -> Result<Self, Failure> {
        // Variables that are not text cannot be anything that is asked for here.
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let here = std::env::current_dir().context("the current folder cannot be read")?;
        let options = Options {
            benchmark: None,
            conf_dir: common.conf_dir.clone(),
            llm: common.llm.clone(),
            agent: common.agent.clone(),
            sets: common.set.clone(),
            mcp_config: common.mcp_config.clone(),
            runs_dir: common.runs_dir.clone(),
            cassette: match (&common.record, &common.replay) {
                (Some(path), _) => Some(CassetteChoice::Record(path.clone())),
                (None, Some(path)) => Some(CassetteChoice::Replay(path.clone())),
                (None, None) => None,
            },
        };
        let around = Surroundings::new(variables, here, &std::env::temp_dir(), options);
        Ok(Self { common, around })
    }
}

/// The program's own log, on stderr: errors, with -v warnings, with -vv more; FATHOM_LOG says exactly what.
pub(crate) fn start_log(style: Style) {
    let level = match style.verbose {
        // Other people's crates have their say only when they are asked.
        0 => "off,fathom=error,pipeline=error,orchestrator=error,llm_providers=error,mcp_tools=error",
        1 => "off,fathom=warn,pipeline=warn,orchestrator=warn,llm_providers=warn,mcp_tools=warn",
        _ => "fathom=debug,pipeline=debug,orchestrator=debug,llm_providers=debug,mcp_tools=debug,warn",
    };
    let filter = EnvFilter::try_from_env("FATHOM_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| WithoutSecrets(std::io::stderr()))
        .with_ansi(style.colored)
        .with_target(false)
        .try_init();
}
