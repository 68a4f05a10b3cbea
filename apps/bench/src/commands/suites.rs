//! The suites: which there are, and how their tasks come here.

use std::path::Path;

use anyhow::{Context as _, bail};
use evaluation::prepare::prepare as prepare_suite;

use crate::Exit;
use crate::args::{Around, PrepareArgs};
use crate::around::{here, resolved, shown, surroundings};
use crate::output;

/// The suites, and whether their tasks are here.
pub(crate) fn ls(around: &Around) -> anyhow::Result<Exit> {
    let resolved = surroundings(around, None, Path::new("."))?.resolve().map_err(shown)?;
    let mut rows = vec![["SUITE", "TASKS", "EPOCHS", "JUDGE", "DATA"].map(str::to_owned)];
    for name in resolved.conf.presets("benchmark").into_iter().filter(|name| name != "default") {
        let suite = surroundings(around, Some(&name), Path::new("."))?.resolve().map_err(shown)?;
        let benchmark = &suite.config.benchmark;
        let judge = benchmark.judge.id.map_or_else(String::new, |id| {
            evaluation::judge::procedure(id).map_or("none", |procedure| procedure.name).to_owned()
        });
        rows.push([
            name,
            benchmark.tasks.map_or_else(|| "–".to_owned(), |tasks| tasks.to_string()),
            benchmark.epochs.unwrap_or(1).to_string(),
            if benchmark.judge.mock { format!("{judge} (offline)") } else { judge },
            match evaluation::suite::data_file(&suite, &here()?) {
                Some(file) => file,
                None => "not here (fathom-bench prepare)".to_owned(),
            },
        ]);
    }
    output::result(&evaluation::report::aligned_columns(&rows), None)?;
    Ok(Exit::Done)
}

/// A suite's tasks from the published original.
pub(crate) fn prepare(arguments: &PrepareArgs) -> anyhow::Result<Exit> {
    let resolved = resolved(arguments.conf_dir.as_deref(), &arguments.suite)?;
    let folder = match (&arguments.out, &resolved.config.benchmark.data.data_dir) {
        (Some(out), _) => out.clone(),
        (None, Some(folder)) => here()?.join(folder),
        (None, None) => bail!("the suite {} names no data_dir; choose a folder with --out", arguments.suite),
    };
    let prepared = prepare_suite(&arguments.suite, &arguments.from, &folder, arguments.ids.as_deref())
        .with_context(|| format!("{} was not prepared", arguments.suite))?;
    output::result(
        &format!(
            "{}: {} tasks, {} with a right answer, {} with files{}\n",
            prepared.file.display(),
            prepared.tasks,
            prepared.judged,
            prepared.with_files,
            if prepared.not_selected > 0 {
                format!(", {} left out because they are not in the suite", prepared.not_selected)
            } else {
                String::new()
            }
        ),
        None,
    )?;
    if prepared.files_missing > 0 {
        output::note(&format!(
            "warning: tasks whose file is neither beside {} nor in {folder}: {}; put them into {folder}, or leave these \
             tasks out when they are run (--skip-bad-lines)",
            arguments.from.display(),
            prepared.files_missing,
            folder = folder.display()
        ));
    }
    if let Some(expected) = resolved.config.benchmark.tasks
        && usize::try_from(expected).ok() != Some(prepared.tasks)
    {
        output::note(&format!("warning: {} has {expected} tasks", arguments.suite));
    }
    Ok(Exit::Done)
}
