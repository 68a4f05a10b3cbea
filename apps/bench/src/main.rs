//! `fathom-bench`: a file of questions through the pipeline, scored by exact match. Decides how tasks are spread over
//! time and what is printed; a run is `pipeline`'s.

mod args;
mod dataset;
mod results;
mod score;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use clap::Parser as _;
use core_protocol::event::RunStatus;
use futures_util::stream::{self, StreamExt as _};
use pipeline::{Options, Pipeline, Question, Surroundings};
use tokio_util::sync::CancellationToken;

use args::{Cli, Command, RunArgs};
use dataset::Task;
use results::{Results, Row};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let Command::Run(arguments) = cli.command;
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the async runtime does not start")
        .and_then(|runtime| runtime.block_on(run(arguments)));
    match outcome {
        Ok(code) => code,
        Err(error) => {
            results::note(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

async fn run(arguments: RunArgs) -> anyhow::Result<ExitCode> {
    let tasks = dataset::load(&arguments.file)?;
    let tasks: Vec<Task> = tasks.into_iter().take(arguments.limit.unwrap_or(usize::MAX)).collect();
    let pipeline = pipeline(&arguments).await?;
    let mut results = Results::open(&arguments.out)?;
    let waiting: Vec<&Task> = tasks.iter().filter(|task| !results.has(&task.task_id)).collect();
    let client = pipeline.client();
    results::note(&format!(
        "{} tasks ({} done before) · {} · {} ({})",
        tasks.len(),
        tasks.len() - waiting.len(),
        client.provider_name(),
        client.model(),
        pipeline.model_choice()
    ));
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    let began = Instant::now();
    let mut running = stream::iter(waiting)
        .take_while(|_| std::future::ready(!cancel.is_cancelled()))
        .map(|task| one(&pipeline, task, cancel.clone()))
        .buffer_unordered(arguments.max_concurrent.max(1));
    while let Some(row) = running.next().await {
        // A task that was interrupted is not done: the next call asks it again.
        if row.state != "cancelled" {
            results.add(row)?;
            results.progress(tasks.len());
        }
    }
    drop(running);
    results.report(&tasks, began.elapsed());
    let failed = cancel.is_cancelled() || results.rows().any(|row| row.state == "failed");
    Ok(ExitCode::from(u8::from(failed)))
}

async fn pipeline(arguments: &RunArgs) -> anyhow::Result<Pipeline> {
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let options = Options {
        conf_dir: arguments.conf_dir.clone(),
        llm: arguments.llm.clone(),
        agent: arguments.agent.clone(),
        sets: arguments.set.clone(),
        mcp_config: arguments.mcp_config.clone(),
        runs_dir: arguments.out.join("runs"),
    };
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    let around = Surroundings::new(variables, here, &std::env::temp_dir(), options);
    around.pipeline().await.map_err(|error| match error.hint() {
        Some(hint) => anyhow::anyhow!("{error}\nhint: {hint}"),
        None => anyhow::Error::new(error),
    })
}

/// One task. What keeps a run from beginning is a failed sample, not the end of the others.
async fn one(pipeline: &Pipeline, task: &Task, cancel: CancellationToken) -> Row {
    let began = Instant::now();
    let question = Question { text: task.task_question.clone(), files: task.files.clone(), docs: Vec::new() };
    let outcome = pipeline.ask(question, cancel, None).await;
    let wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    match outcome {
        Ok(report) => {
            let summary = report.summary;
            Row {
                task_id: task.task_id.clone(),
                state: match summary.status {
                    RunStatus::Answered => "answered",
                    RunStatus::NoAnswer => "no_answer",
                    RunStatus::Failed => "failed",
                    RunStatus::Cancelled => "cancelled",
                }
                .to_owned(),
                correct: task.accepted().map(|accepted| {
                    summary.answer.as_deref().is_some_and(|answer| score::is_match(answer, &accepted))
                }),
                answer: summary.answer,
                run_id: Some(report.run_id),
                turns: summary.turns,
                tool_calls: summary.tool_calls.total,
                tokens: summary.usage.input + summary.usage.output,
                cost_usd: summary.cost_usd,
                wall_ms,
                error: summary.error.map(|error| error.message),
            }
        }
        Err(error) => Row {
            task_id: task.task_id.clone(),
            state: "failed".to_owned(),
            wall_ms,
            error: Some(error.to_string()),
            ..Row::default()
        },
    }
}
