//! `fathom doctor`: what works here. Each miss comes with its remedy; a miss is no failure of the command.

use std::process::ExitCode;
use std::time::Duration;

use llm_providers::{Environment, Limiters, detect, inspect, probe_local_servers};
use mcp_tools::servers::{library::Registry, python};
use pipeline::config::FathomConfig;
use pipeline::tool_models::{self, Around, Takes};
use pipeline::web_tools;
use serde_json::{Value, json};

use crate::args::Output;
use crate::environment::Context;
use crate::exit::{Exit, Failure};
use crate::output::{self, Look, Style};

/// Variables that hold keys, and what each one switches on.
const KEYS: &[(&str, &str)] = &[
    ("OPENAI_API_KEY", "models of OpenAI and of any compatible server (--llm openai)"),
    ("ANTHROPIC_API_KEY", "models of Anthropic (--llm anthropic)"),
    ("OPENROUTER_API_KEY", "models behind OpenRouter (--llm openrouter)"),
    ("E2B_API_KEY", "code in sandboxes of E2B (-s tools.python.backend=e2b)"),
    ("VISION_BASE_URL", "tool-vqa-os: questions about pictures"),
    ("WHISPER_BASE_URL", "tool-transcribe-os: the words of recordings"),
    ("REASONING_BASE_URL", "tool-reasoning-os: a model that is asked hard questions"),
];

/// How long the model's server may take to list its models.
const ENDPOINT_LIMIT: Duration = Duration::from_secs(5);

/// Programs that tool servers are often started with.
const PROGRAMS: &[(&str, &str)] = &[
    ("python3", "starts Python tool servers"),
    ("npx", "starts tool servers from npm"),
    ("uvx", "starts tool servers from PyPI"),
    ("soffice", "helps tool-reading with DOC, PPT and RTF"),
    ("ffmpeg", "takes pictures of videos for models that take no videos (tool-vqa)"),
];

struct Finding {
    area: &'static str,
    name: String,
    good: bool,
    text: String,
}

pub(crate) async fn run(context: &Context, style: Style) -> Result<ExitCode, Failure> {
    let mut findings = Vec::new();
    let resolved = match context.around.resolve() {
        Ok(resolved) => {
            findings.push(good("configuration", "conf", "resolved without a problem".to_owned()));
            resolved
        }
        Err(error) => {
            output::note("The configuration has to be mended first:");
            return Err(error.into());
        }
    };
    for (name, use_for) in KEYS {
        findings.push(match resolved.environment.get(name) {
            Some(_) => good("key", name, format!("set: {use_for}")),
            None => miss(
                "key",
                name,
                format!("not set; `export {name}=…` or a line in .env switches on {use_for}"),
            ),
        });
    }
    model(&resolved.config.llm, &resolved.environment, &mut findings).await;
    web(&resolved.config, &resolved.environment, &mut findings);
    sandbox(&mut findings).await;
    for (program, use_for) in PROGRAMS {
        findings.push(match find_program(program, &resolved.environment) {
            Some(path) => good("program", program, format!("{path}: {use_for}")),
            None => miss("program", program, format!("not on the search path; it {use_for}")),
        });
    }
    libraries(context, &mut findings);
    servers(context, &mut findings).await;
    tell(context.common.output, style, &findings);
    Ok(Exit::Done.into())
}

async fn model(llm: &llm_providers::LlmConfig, environment: &Environment, findings: &mut Vec<Finding>) {
    for server in probe_local_servers(environment).await {
        findings.push(good(
            "model server",
            &server.provider,
            format!("{} with {}", server.base_url, server.models.join(", ")),
        ));
    }
    if llm.provider == "auto" {
        let detected = detect(environment, llm).await;
        let text =
            format!("{} {} ({})", detected.config.provider, detected.config.model_name, detected.reason);
        let is_model = detected.config.provider != "reader";
        findings.push(Finding { area: "model", name: "auto".to_owned(), good: is_model, text });
        if is_model {
            findings.push(endpoint(&detected.config, environment).await);
        }
    } else {
        findings.push(good("model", &llm.provider, llm.model_name.clone()));
        findings.push(endpoint(llm, environment).await);
    }
}

/// Whether the chosen model's server answers, takes the key and has the model.
async fn endpoint(llm: &llm_providers::LlmConfig, environment: &Environment) -> Finding {
    const AREA: &str = "model endpoint";
    let name = &llm.provider;
    match tokio::time::timeout(ENDPOINT_LIMIT, inspect(llm, environment)).await {
        Err(_) => miss(AREA, name, format!("no answer within {} s", ENDPOINT_LIMIT.as_secs())),
        Ok(Ok(None)) => good(AREA, name, "needs no server".to_owned()),
        Ok(Ok(Some(found))) if found.has_model || found.models.is_empty() => good(
            AREA,
            name,
            format!("{} answers, {} models, `{}`", found.url, found.models.len(), found.model),
        ),
        Ok(Ok(Some(found))) => {
            let some: Vec<&str> = found.models.iter().take(5).map(String::as_str).collect();
            let text = format!(
                "{} answers and does not list `{}` (llm.model_name); it lists {}…",
                found.url,
                found.model,
                some.join(", ")
            );
            miss(AREA, name, text)
        }
        Ok(Err(error)) => {
            let remedy = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            miss(AREA, name, format!("{error}{remedy}"))
        }
    }
}

/// Which services search and read the web, and who reads a page for an answer.
fn web(config: &FathomConfig, environment: &Environment, findings: &mut Vec<Finding>) {
    for service in web_tools::services(environment).report() {
        findings.push(Finding {
            area: "web",
            name: service.tool.to_owned(),
            good: service.is_set_up,
            text: service.text,
        });
    }
    let prefix = web_tools::SUMMARY_MODEL;
    let around = Around {
        environment,
        limiters: &Limiters::new(),
        concurrency: &config.llm.concurrency,
        clock: &pipeline::RunClock::default(),
    };
    findings.push(match tool_models::of_variables(prefix, Takes::default(), around) {
        Ok(Some(model)) => good("web", "extraction", format!("by {} ({prefix}_MODEL_NAME)", model.name())),
        Ok(None) if config.llm.provider == "reader" => {
            miss("web", "extraction", format!("no model reads pages; set up by {prefix}_BASE_URL or --llm"))
        }
        Ok(None) => good(
            "web",
            "extraction",
            format!("by the run's own model, unless that is the reader; {prefix}_BASE_URL sets one up"),
        ),
        Err(error) => miss("web", "extraction", error.to_string()),
    });
    if let Err(error) = web_tools::egress(&config.tools, environment) {
        findings.push(miss("web", "egress", error.to_string()));
    }
}

async fn sandbox(findings: &mut Vec<Finding>) {
    let report = python::probe().await;
    for layer in &report.layers {
        findings.push(match &layer.missing {
            None => good("sandbox", layer.name, format!("in force: {}", layer.protects)),
            Some(why) => miss("sandbox", layer.name, format!("not in force: {why}")),
        });
    }
    // Which of several it is shows only where one is started confined.
    if let Some(interpreter) = &report.interpreter {
        findings.push(good("sandbox", "interpreter", format!("tool-python runs code in {interpreter}")));
    }
    if let Some(refusal) = &report.refusal {
        findings.push(miss("sandbox", "tool-python", refusal.clone()));
    }
    findings.push(match mcp_tools::ends_with_server() {
        Ok(what) => good("processes", "tool servers", what.to_owned()),
        Err(why) => miss("processes", "tool servers", why.to_owned()),
    });
}

fn libraries(context: &Context, findings: &mut Vec<Finding>) {
    let registry =
        Registry::new(&context.around.places.data, Some(context.around.places.cache.join("library")));
    match registry.list() {
        Ok(libraries) if libraries.is_empty() => findings.push(miss(
            "library",
            "starter",
            "not added; `fathom library add starter` brings about 12,900 articles".to_owned(),
        )),
        Ok(libraries) => findings.extend(
            libraries
                .iter()
                .map(|library| good("library", &library.name, format!("{} documents", library.documents))),
        ),
        Err(error) => findings.push(miss("library", "registry", error.to_string())),
    }
}

/// Starts the servers of the chosen agent, as a run would.
async fn servers(context: &Context, findings: &mut Vec<Finding>) {
    let started = async {
        let pipeline = context.around.pipeline().await?;
        let scratch = super::scratch_dir()?;
        let (manager, statuses) = pipeline.start_tools(&context.common.docs, scratch.path()).await?;
        manager.shutdown().await;
        Ok::<_, Failure>(statuses)
    };
    match started.await {
        Ok(statuses) => findings.extend(statuses.into_iter().map(|status| match status.error {
            None => good("tool server", &status.name, format!("{} tools", status.tools.len())),
            Some(error) => miss("tool server", &status.name, error),
        })),
        Err(failure) => findings.push(miss("tool server", "all", failure.text())),
    }
}

fn find_program(name: &str, environment: &Environment) -> Option<String> {
    let path = environment.get("PATH")?;
    std::env::split_paths(path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .map(|program| program.display().to_string())
}

fn good(area: &'static str, name: &str, text: String) -> Finding {
    Finding { area, name: name.to_owned(), good: true, text }
}

fn miss(area: &'static str, name: &str, text: String) -> Finding {
    Finding { area, name: name.to_owned(), good: false, text }
}

fn tell(form: Output, style: Style, findings: &[Finding]) {
    if form != Output::Text {
        let all: Vec<Value> = findings
            .iter()
            .map(|finding| json!({"area": finding.area, "name": finding.name, "good": finding.good, "text": finding.text}))
            .collect();
        output::result(&json!({ "findings": all }));
        return;
    }
    let mut area = "";
    for finding in findings {
        if finding.area != area {
            area = finding.area;
            output::line(&style.paint(Look::Bold, area));
        }
        let mark =
            if finding.good { style.paint(Look::Good, "✓") } else { style.paint(Look::Warning, "–") };
        output::line(&format!("  {mark} {:<22} {}", finding.name, output::harmless(&finding.text)));
    }
}
