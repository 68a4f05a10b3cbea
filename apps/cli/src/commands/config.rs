//! `fathom config show|check`: the resolved configuration, and everything that is wrong with it.

use std::process::ExitCode;

use pipeline::config::{self, ConfigErrors};

use crate::args::{ConfigCommand, Output};
use crate::environment::Context;
use crate::exit::{Exit, Failure};
use crate::output::{self, Look, Style};

pub(crate) fn run(context: &Context, command: &ConfigCommand, style: Style) -> Result<ExitCode, Failure> {
    match command {
        ConfigCommand::Show => show(context),
        ConfigCommand::Check => check(context, style),
    }
}

fn show(context: &Context) -> Result<ExitCode, Failure> {
    let resolved = context.around.resolve()?;
    if context.common.output == Output::Text {
        output::line(resolved.show_yaml().trim_end());
    } else {
        output::result(&resolved.show_json());
    }
    Ok(Exit::Done.into())
}

fn check(context: &Context, style: Style) -> Result<ExitCode, Failure> {
    let sources = context.around.sources();
    let first = config::check(&sources, &[]);
    // Names of servers are only known to be wrong once mcp.json is read, which needs the environment.
    let report = match &first.resolved {
        None => first,
        Some(resolved) => {
            let configured = context.around.configured(resolved)?;
            let mut report = config::check(&sources, &configured.names());
            report.warnings.extend(configured.warnings());
            configured.check(&resolved.config.agent.main_agent.tools)?;
            report
        }
    };
    let broken: Vec<_> = report.own_presets.iter().filter(|preset| !preset.errors.is_empty()).collect();
    if context.common.output == Output::Text {
        for file in &report.files {
            let origin = if file.built_in { " (built in)" } else { "" };
            output::line(&format!("read      {}{origin}", file.path));
        }
        for prompt in &report.overridden_prompts {
            output::line(&format!("replaced  prompts/{prompt}"));
        }
        for prompt in &report.unknown_prompts {
            output::line(&format!("unused    prompts/{prompt}: no prompt of that name is asked for"));
        }
        for key in &report.accepted_unused {
            output::line(&format!("accepted  {} without effect: {}", key.key, key.why));
        }
        for warning in &report.warnings {
            output::line(&format!("warning   {warning}"));
        }
        for preset in &broken {
            for error in &preset.errors {
                output::line(&format!("broken    {error}"));
            }
        }
        if report.is_good() {
            output::line(&style.paint(Look::Good, "the configuration is good"));
        }
    } else {
        let errors: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
        let presets: Vec<String> =
            broken.iter().flat_map(|preset| preset.errors.iter().map(ToString::to_string)).collect();
        output::result(&serde_json::json!({
            "good": report.is_good(),
            "errors": errors,
            "broken_presets": presets,
            "warnings": report.warnings,
            "accepted_unused": report.accepted_unused,
            "overridden_prompts": report.overridden_prompts,
            "unknown_prompts": report.unknown_prompts,
            "files": report.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
        }));
        if !report.errors.is_empty() {
            return Ok(Exit::Usage.into());
        }
    }
    if !report.errors.is_empty() {
        return Err(ConfigErrors(report.errors).into());
    }
    Ok(if broken.is_empty() { Exit::Done } else { Exit::Usage }.into())
}
