//! Runs of the reference as runs of ours, and what may be done with them.

use std::path::{Path, PathBuf};

use anyhow::bail;
use evaluation::import::{
    DatasetOfRun, IMPORTED, ImportError, Imported, Source, SuiteOfRun, TASKS, find, import as take_over,
};
use evaluation::run::Header;
use evaluation::suite::{Selection, Suite, SuiteError};
use pipeline::nearest_name;

use super::run::{NO_SUITE, found_today, selection_of};
use crate::Exit;
use crate::args::ImportArgs;
use crate::around::{here, resolved};
use crate::output::{self, note};

/// Takes over what is in a folder of the reference.
pub(crate) fn import(arguments: &ImportArgs) -> anyhow::Result<Exit> {
    let sources = find(&arguments.from)?;
    let out_of = |source: &Source| match sources.len() {
        1 => arguments.out.clone(),
        _ => arguments.out.join(source.below()),
    };
    // All of them or none.
    for source in &sources {
        let out = out_of(source);
        if std::fs::read_dir(&out).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!(
                "{} is not empty, and an import never adds to what is there; choose another folder with --out, or \
                 delete that one first",
                out.display()
            );
        }
    }
    let mut exit = Exit::Done;
    for source in &sources {
        let (out, suite) = (out_of(source), suite_of(source, arguments)?);
        match take_over(source, &suite, &out) {
            Ok(imported) => tell(&imported, &suite, &out)?,
            // The runs of another model may have ended.
            Err(error @ ImportError::NothingEnded { .. }) if sources.len() > 1 => {
                note(&format!("left out: {error}"));
                exit = Exit::Failed;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(exit)
}

/// The suite by its name, or by what folders are called; its tasks where they are here.
fn suite_of(source: &Source, arguments: &ImportArgs) -> anyhow::Result<SuiteOfRun> {
    let resolve = |preset: &str| resolved(arguments.conf_dir.as_deref(), preset);
    let presets = resolve(NO_SUITE)?.conf.presets("benchmark");
    let names = arguments.suite.clone().map_or_else(|| source.suite_names(), |name| vec![name]);
    let is_preset = |name: &&String| name.as_str() != NO_SUITE && presets.contains(name);
    let preset = names.iter().find(is_preset).cloned();
    let name = preset.clone().or_else(|| names.first().cloned()).unwrap_or_else(|| IMPORTED.to_owned());
    if preset.is_none() {
        let nearest =
            nearest_name(&name, presets.iter().map(String::as_str).filter(|name| *name != NO_SUITE));
        let nearest = nearest.map_or_else(String::new, |name| format!("; did you mean --suite {name}?"));
        note(&format!(
            "no suite is called {name} here, so nobody knows how its answers are judged, and score takes the judge \
             of any suite{nearest} (fathom-bench ls lists them)"
        ));
    }
    let selection =
        Selection { file: arguments.dataset.clone(), limit: Some(usize::MAX), ..Selection::default() };
    let dataset = if preset.is_some() || arguments.dataset.is_some() {
        match Suite::load(&resolve(preset.as_deref().unwrap_or(NO_SUITE))?, &here()?, &selection) {
            Ok(Suite { facts, tasks, .. }) => {
                Some(DatasetOfRun { file: arguments.dataset.clone(), facts, tasks })
            }
            Err(SuiteError::NoTasks { .. }) => None,
            Err(error) if arguments.dataset.is_some() => return Err(error.into()),
            Err(error) => {
                note(&format!("the tasks of {name} here are not used: {error}"));
                None
            }
        }
    } else {
        None
    };
    Ok(SuiteOfRun { name, preset, conf_dir: arguments.conf_dir.clone(), dataset })
}

fn tell(imported: &Imported, suite: &SuiteOfRun, out: &Path) -> anyhow::Result<()> {
    let dir = out.display();
    let how = if imported.of_k {
        format!("at most {} attempts each, which end with the first right one", imported.epochs)
    } else {
        counted(usize::try_from(imported.epochs).unwrap_or(usize::MAX), "run")
    };
    let line = format!(
        "{dir}: {} of {}: {}, {how}; {} left out\n",
        counted(imported.samples, "sample"),
        suite.name,
        counted(imported.tasks, "task"),
        counted(imported.unreadable.len(), "file"),
    );
    output::result(&line, None)?;
    for (file, problem) in &imported.unreadable {
        note(&format!("left out: {file}: {problem}"));
    }
    if imported.unfinished > 0 {
        note(&format!("had not ended, and pending: {}", counted(imported.unfinished, "sample")));
    }
    if imported.not_in_dataset > 0 {
        note(&format!(
            "not among the tasks of {1} that are here: {0} of the logs; so these tasks are not used, and --dataset names \
             the file that was run",
            counted(imported.not_in_dataset, "task"),
            suite.name
        ));
    }
    if imported.without_question > 0 {
        note(&format!(
            "the logs have no question of {}, whose answers cannot be judged again; --dataset FILE has them",
            counted(imported.without_question, "task")
        ));
    }
    if imported.unjudged > 0 {
        note(&format!(
            "answered and without a verdict: {}; judge with: fathom-bench score {dir}",
            counted(imported.unjudged, "sample")
        ));
    }
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What of its suite a run has answers to, for judging them.
pub(super) fn judged_selection(header: &Header, dir: &Path) -> anyhow::Result<Selection> {
    let mut selection = selection_of(header);
    if header.provider != IMPORTED {
        return found_today(selection);
    }
    let own = dir.join(TASKS);
    let is_own = |file: &PathBuf| file.file_name().is_some_and(|name| name == TASKS);
    match &selection.file {
        // They go where the folder goes, and those without a question are not among them.
        Some(file) if is_own(file) && own.is_file() => {
            selection.file = Some(own);
            selection.task_ids.clear();
        }
        None if header.invocation.suite == NO_SUITE => bail!(
            "{} was imported from logs that have no questions, so its answers cannot be judged; import the logs again \
             with --suite NAME and --dataset FILE",
            dir.display()
        ),
        _ => {}
    }
    found_today(selection)
}

/// A run that was taken over was made by another program.
pub(super) fn refuse_imported(header: &Header, dir: &Path) -> anyhow::Result<()> {
    if header.provider == IMPORTED {
        bail!(
            "{0} was imported, and only what made it can go on with it; judge its answers with: fathom-bench score {0}",
            dir.display()
        );
    }
    Ok(())
}
