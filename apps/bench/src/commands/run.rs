//! `run` and `resume`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use evaluation::canary::Canaries;
use evaluation::judge::Judge;
use evaluation::records::is_named_so;
use evaluation::report::{Report, to_html, to_markdown, to_table};
use evaluation::run::{
    GitFacts, Header, InProcessQueue, Invocation, PipelineRunner, Plan, Progress, Schedule, Store, read_run,
};
use evaluation::sample::Row;
use evaluation::score::{Again, judge_again};
use evaluation::suite::{Selection, Suite, judge_of};
use pipeline::Pipeline;
use pipeline::config::{Resolved, is_secret_name, key_of_set};
use tokio_util::sync::CancellationToken;

use super::import::refuse_imported;
use crate::Exit;
use crate::args::{Around, ResumeArgs, RunArgs};
use crate::around::{here, judge_wish, shown, surroundings};
use crate::asked_judge::AskedJudge;
use crate::ending::cancel_on_request;
use crate::output::{self, note};
use crate::{judging, live};

/// The preset that leaves everything at its default, for files of tasks.
pub(super) const NO_SUITE: &str = "default";

/// Answers of an earlier call that are judged at a time.
const JUDGED_AT_A_TIME: usize = 8;

/// Runs a suite, or goes on with it.
pub(crate) async fn run(arguments: RunArgs) -> anyhow::Result<Exit> {
    let mut around = arguments.around.clone();
    let file = file_of(&arguments.suite);
    if let Some(file) = &file {
        // A file of tasks is a suite of its own.
        let name =
            file.file_stem().map_or_else(|| "tasks".to_owned(), |stem| stem.to_string_lossy().into_owned());
        around.set.insert(0, format!("benchmark.name={}", serde_json::to_string(&name)?));
    }
    if let Some(most) = arguments.max_concurrent {
        around.set.push(format!("benchmark.execution.max_concurrent={most}"));
    }
    let preset = if file.is_some() { NO_SUITE } else { arguments.suite.as_str() };
    // The default folder is named for the model, which is known only when the configuration is.
    let place = surroundings(&around, Some(preset), Path::new("."))?;
    let pipeline = place.pipeline().await.map_err(shown)?;
    let mut invocation = invocation(preset, file.clone(), &around, pipeline.resolved());
    invocation.judge.clone_from(&arguments.judge);
    // One that was found here is not found from everywhere.
    invocation.mcp_config = pipeline.mcp_file().map(|file| absolute(&file.to_owned()));
    let out = arguments.out.clone().unwrap_or_else(|| default_folder(&pipeline));
    let selection = Selection {
        file,
        recorded: None,
        task_ids: arguments.tasks,
        limit: arguments.limit,
        epochs: arguments.epochs,
        seed: arguments.seed,
        shuffle: arguments.shuffle,
        stop_on_pass: arguments.stop_on_pass,
        skip_bad: arguments.skip_bad_lines,
    };
    let mut suite = Suite::load(pipeline.resolved(), &here()?, &selection)?;
    for warning in &suite.warnings {
        note(&format!("warning: {warning}"));
    }
    for record in &suite.bad {
        note(&format!("left out: {record}"));
    }
    // What is wrong with a folder that is there is said when it is opened.
    let ended = read_run(&out).map(|(_, rows)| rows).unwrap_or_default();
    if arguments.skip_bad_lines {
        for file in suite.leave_out_bad_files(&ended)? {
            note(&format!("left out: {file}"));
        }
    } else {
        suite.check_files(&ended, false)?;
    }
    if pipeline.config().agent.limits.cost.is_some() && pipeline.client().config().price.is_none() {
        bail!(
            "agent.limits.cost can end no sample: no price is known of {}\nSet llm.price={{input: …, output: …}} in \
             dollars for a million tokens, or leave the limit out",
            pipeline.client().model()
        );
    }
    let wish = judge_wish(arguments.judge.as_deref(), &arguments.around)?;
    let judge = judge_of(pipeline.resolved(), &wish, &place.limiters).await?;
    let pipeline = pipeline.keeping_runs_in(out.join("runs"));
    let header = suite.header(&pipeline, &judge, git_facts(), invocation);
    let store = Store::open(&out, header)?;
    carry_on(suite, pipeline, judge, store, arguments.allow_unjudged).await
}

/// Goes on with a run as its header says.
pub(crate) async fn resume(arguments: ResumeArgs) -> anyhow::Result<Exit> {
    let (header, ended) = read_run(&arguments.dir)?;
    refuse_imported(&header, &arguments.dir)?;
    let asked = AskedJudge::new(&header.invocation, arguments.judge, &arguments.set);
    let began = asked.beginning(&header.invocation);
    let mut around = around_of(&began, arguments.conf_dir, arguments.mcp_config);
    around.set.extend(arguments.set);
    let judging = around.clone();
    if let Some(most) = arguments.max_concurrent {
        around.set.push(format!("benchmark.execution.max_concurrent={most}"));
    }
    let around = surroundings(&around, Some(&began.suite), &arguments.dir)?;
    let pipeline = around.pipeline().await.map_err(shown)?;
    let suite = Suite::load(pipeline.resolved(), &here()?, &found_today(selection_of(&header))?)?;
    suite.check_files(&ended, true)?;
    let wish = judge_wish(asked.name.as_deref(), &judging)?;
    let judge = judge_of(pipeline.resolved(), &wish, &around.limiters).await?;
    let invocation = asked.kept_in(began, pipeline.resolved());
    let asked = suite.header(&pipeline, &judge, git_facts(), invocation);
    let store = Store::open(&arguments.dir, asked)?;
    carry_on(suite, pipeline, judge, store, arguments.allow_unjudged).await
}

/// What was typed, less secrets.
fn invocation(suite: &str, file: Option<PathBuf>, around: &Around, resolved: &Resolved) -> Invocation {
    Invocation {
        suite: suite.to_owned(),
        file: file.as_ref().map(absolute),
        llm: around.llm.clone(),
        agent: around.agent.clone(),
        sets: without_secrets(&around.set, resolved),
        conf_dir: around.conf_dir.as_ref().map(absolute),
        mcp_config: around.mcp_config.as_ref().map(absolute),
        judge: None,
    }
}

/// The settings that hold no secret.
pub(crate) fn without_secrets(sets: &[String], resolved: &Resolved) -> Vec<String> {
    let holds_secret = |set: &str| {
        is_secret_name(key_of_set(set).rsplit('.').next().unwrap_or_default())
            || resolved.redacted(set) != set
    };
    sets.iter().filter(|set| !holds_secret(set)).cloned().collect()
}

/// From wherever the run is gone on with.
fn absolute(path: &PathBuf) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.clone())
}

/// The surroundings that a run began with, with what is given today in its place.
pub(super) fn around_of(
    began: &Invocation,
    conf_dir: Option<PathBuf>,
    mcp_config: Option<PathBuf>,
) -> Around {
    Around {
        conf_dir: conf_dir.or_else(|| began.conf_dir.clone()),
        llm: began.llm.clone(),
        agent: began.agent.clone(),
        set: began.sets.clone(),
        mcp_config: mcp_config.or_else(|| began.mcp_config.clone()),
    }
}

/// What a run took of its suite.
pub(super) fn selection_of(header: &Header) -> Selection {
    Selection {
        file: header.invocation.file.clone(),
        recorded: Some(PathBuf::from(&header.dataset.file)),
        task_ids: header.task_ids.clone(),
        limit: Some(usize::MAX),
        epochs: Some(header.epochs),
        seed: Some(header.seed),
        shuffle: header.shuffle,
        stop_on_pass: header.stop_on_pass,
        skip_bad: header.dataset.bad_records > 0,
    }
}

/// The same with the file of tasks where it is today: where it was, or in this folder under its name. That it is the
/// right one is seen from its content.
pub(super) fn found_today(mut selection: Selection) -> anyhow::Result<Selection> {
    if let Some(gone) = selection.file.as_ref().filter(|file| !file.is_file()) {
        let here = here()?;
        let moved = gone.file_name().map(|name| here.join(name)).filter(|file| file.is_file());
        selection.file = Some(moved.with_context(|| {
            format!(
                "the tasks of this run are no longer in {}; put the file there, or go where a file of that name is",
                gone.display()
            )
        })?);
    }
    Ok(selection)
}

async fn carry_on(
    suite: Suite,
    pipeline: Pipeline,
    judge: Judge,
    mut store: Store,
    allow_unjudged: bool,
) -> anyhow::Result<Exit> {
    let judge = Arc::new(judge);
    let execution = pipeline.config().benchmark.execution.clone();
    let tasks: BTreeMap<String, _> =
        suite.tasks.iter().map(|task| (task.task_id.clone(), task.clone())).collect();
    let cancel = CancellationToken::new();
    cancel_on_request(cancel.clone(), "stopping; samples under way can be gone on with");
    judge_what_is_unjudged(&mut store, &tasks, &judge, &cancel).await?;
    let kept: Vec<Row> = store.rows().filter(|row| !row.has_failed()).cloned().collect();
    let failed = store.rows().count() - kept.len();
    if failed > 0 {
        note(&format!("{failed} samples had failed and are run again"));
        store.rewrite(kept)?;
    }
    let waiting = suite.samples_to_run(store.rows());
    let before = store.rows().count();
    let client = pipeline.client();
    note(&format!(
        "{}: {} tasks, {} epochs, {} samples ({before} done before) · {} ({}) · judge {} · {}",
        pipeline.config().benchmark.name,
        suite.tasks.len(),
        suite.epochs,
        suite.samples().len(),
        client.model(),
        client.provider_name(),
        judge.identity(),
        store.folder().display(),
    ));
    let stops = suite.stop_on_pass.is_some();
    let progress = Arc::new(Progress::of(store.rows()));
    let (shown, end_of_show) = (Arc::clone(&progress), CancellationToken::new());
    let frame = live::Frame {
        title: format!(
            "{} · {} · judge {}",
            pipeline.config().benchmark.name,
            client.model(),
            judge.identity()
        ),
        total: suite.samples().len(),
        before,
        any_of: suite.stop_on_pass.and_then(|epochs| usize::try_from(epochs).ok()),
    };
    let live = tokio::spawn(live::show(shown, frame, end_of_show.clone()));
    let schedule = Schedule {
        plan: Plan {
            tasks,
            max_concurrent: usize::try_from(execution.max_concurrent).unwrap_or(1),
            stop_on_pass: stops,
        },
        judge,
        runner: Arc::new(PipelineRunner {
            canaries: Canaries::new(&suite.tasks, &execution.canaries),
            pipeline: Arc::new(pipeline),
        }),
        queue: Arc::new(InProcessQueue::new(waiting, stops)),
        progress,
        cancel: cancel.clone(),
    };
    let ended = schedule.run(&mut store).await;
    end_of_show.cancel();
    let _ = live.await;
    ended?;
    let rows: Vec<Row> = store.rows().cloned().collect();
    let report = Report::new(store.header().clone(), &rows, allow_unjudged);
    keep_reports(store.folder(), &report)?;
    // Whose terminal was closed has no standard output either, and can still read the log.
    let told = output::result(&to_table(&report), None);
    if cancel.is_cancelled() {
        note(&format!("interrupted; go on with: fathom-bench resume {}", store.folder().display()));
        return Ok(Exit::Interrupted);
    }
    told?;
    let failed = rows.iter().any(Row::has_failed);
    let open = report.unjudged > 0 && !allow_unjudged;
    Ok(if failed || open { Exit::Failed } else { Exit::Done })
}

async fn judge_what_is_unjudged(
    store: &mut Store,
    tasks: &BTreeMap<String, evaluation::dataset::Task>,
    judge: &Judge,
    cancel: &CancellationToken,
) -> anyhow::Result<()> {
    if !store.rows().any(Row::is_unjudged) {
        return Ok(());
    }
    let how = (Again::Open, JUDGED_AT_A_TIME);
    let scored = judge_again(store, tasks, judge, how, cancel, &judging::shown()).await?;
    let why = scored.reason.map_or_else(String::new, |reason| format!(": {reason}"));
    note(&format!(
        "{} samples that were unjudged are judged now, {} are left{why}",
        scored.judged, scored.unjudged
    ));
    Ok(())
}

/// The report in every form, beside the rows it is made of.
pub(super) fn keep_reports(folder: &Path, report: &Report) -> anyhow::Result<()> {
    let forms = [
        ("report.json", serde_json::to_string_pretty(report)? + "\n"),
        ("report.md", to_markdown(report)),
        ("report.html", to_html(std::slice::from_ref(report))),
    ];
    for (name, text) in forms {
        let file = folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("{} cannot be written", file.display()))?;
    }
    Ok(())
}

/// A file of tasks is told from a suite by its extension, or by being there.
fn file_of(suite: &str) -> Option<PathBuf> {
    let path = Path::new(suite);
    (is_named_so(path) || (suite.contains('/') && path.is_file())).then(|| path.to_owned())
}

fn default_folder(pipeline: &Pipeline) -> PathBuf {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
            .collect()
    };
    let name = format!("{}-{}", pipeline.config().benchmark.name, pipeline.client().model());
    PathBuf::from("runs/bench").join(plain(&name))
}

/// The revision of the sources that the program was built from, where it was built in a checkout.
fn git_facts() -> Option<GitFacts> {
    let revision = option_env!("FATHOM_REVISION")?;
    Some(GitFacts { revision: revision.to_owned(), dirty: option_env!("FATHOM_DIRTY") == Some("yes") })
}
