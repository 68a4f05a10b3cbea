//! What a value of the right type may be.
//!
//! Decides the ranges of numbers and which values contradict each other. Types and names are checked before.

mod agents;

use llm_providers::{LlmConfig, ToolProtocol};
use orchestrator::config::ToolCallsPerTurn;
use orchestrator::{AgentConfig, AgentRole};

use super::node::Step;
use super::tools::{LONGEST_CALL_LIMIT, ServerLimits};
use super::{BenchmarkConfig, FathomConfig, ToolsConfig};

/// Findings about a whole configuration.
#[derive(Default)]
pub(crate) struct Findings {
    /// Values that cannot be worked with: path, and what is expected.
    pub(crate) broken: Vec<(Vec<Step>, String)>,
    /// Values that have no effect, or not the one that was probably meant.
    pub(crate) doubtful: Vec<(Vec<Step>, String)>,
}

/// Checks every value that has a range.
pub(crate) fn check(config: &FathomConfig) -> Findings {
    let mut findings = Findings::default();
    llm(&config.llm, &["llm"], &mut findings);
    stop_after_call(config, &mut findings);
    agent(&config.agent, &mut findings);
    benchmark(&config.benchmark, &mut findings);
    tools(&config.tools, &mut findings);
    findings
}

impl Findings {
    fn need(&mut self, holds: bool, path: &[&str], expected: &str) {
        if !holds {
            self.broken.push((steps(path), expected.to_owned()));
        }
    }

    fn within(&mut self, value: Option<f64>, least: f64, most: f64, path: &[&str]) {
        let holds = value.is_none_or(|value| (least..=most).contains(&value));
        let expected = if most == f64::INFINITY {
            format!("a number, {least} or more")
        } else {
            format!("a number from {least} to {most}")
        };
        self.need(holds, path, &expected);
    }
}

fn steps(path: &[&str]) -> Vec<Step> {
    path.iter().map(|key| Step::Key((*key).to_owned())).collect()
}

fn joined<'a>(path: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    path.iter().chain(more).copied().collect()
}

const AT_LEAST_ONE: &str = "a whole number, 1 or more";
const MORE_THAN_ZERO: &str = "a number above 0";

fn llm(config: &LlmConfig, path: &[&str], findings: &mut Findings) {
    let at = |key: &'static str| joined(path, &[key]);
    findings.within(config.temperature, 0.0, 2.0, &at("temperature"));
    findings.within(config.top_p, 0.0, 1.0, &at("top_p"));
    findings.within(config.min_p, 0.0, 1.0, &at("min_p"));
    findings.within(config.repetition_penalty, 0.0, 10.0, &at("repetition_penalty"));
    findings.need(config.top_k.is_none_or(|k| k >= -1), &at("top_k"), "a whole number, -1 (off) or more");
    findings.need(config.max_tokens >= 1, &at("max_tokens"), AT_LEAST_ONE);
    findings.need(
        !config.provider.trim().is_empty(),
        &at("provider"),
        "`auto`, `reader` or the name of a provider",
    );
    let window = config.max_context_length;
    findings.need(
        window.is_none_or(|window| window > config.max_tokens),
        &at("max_context_length"),
        &format!("a whole number above llm.max_tokens ({}), as prompt and reply share it", config.max_tokens),
    );
    let base_url = config.base_url.as_deref().filter(|url| !url.trim().is_empty());
    findings.need(
        base_url.is_none_or(is_address),
        &at("base_url"),
        "an address that begins with http:// or https://",
    );
    let retries = &config.retries;
    findings.need(retries.max_tries >= 1, &joined(path, &["retries", "max_tries"]), AT_LEAST_ONE);
    for (key, seconds) in [
        ("base_wait", retries.base_wait),
        ("max_wait", retries.max_wait),
        ("retry_after_max", retries.retry_after_max),
        ("connect_timeout", retries.connect_timeout),
        ("first_event_timeout", retries.first_event_timeout),
        ("idle_timeout", retries.idle_timeout),
        ("try_timeout", retries.try_timeout),
        ("total_timeout", retries.total_timeout),
    ] {
        findings.within(Some(seconds), 0.0, f64::INFINITY, &joined(path, &["retries", key]));
    }
    let concurrency = &config.concurrency;
    for (key, value) in
        [("start", concurrency.start), ("floor", concurrency.floor), ("ceiling", concurrency.ceiling)]
    {
        findings.need(value >= 1, &joined(path, &["concurrency", key]), AT_LEAST_ONE);
    }
    findings.need(
        concurrency.ceiling >= concurrency.floor,
        &joined(path, &["concurrency", "ceiling"]),
        &format!("a whole number, {} (floor) or more", concurrency.floor),
    );
    findings.need(concurrency.step > 0.0, &joined(path, &["concurrency", "step"]), MORE_THAN_ZERO);
    findings.within(Some(concurrency.factor), 0.1, 0.99, &joined(path, &["concurrency", "factor"]));
    if let Some(price) = &config.price {
        for (key, dollars) in [
            ("input", Some(price.input)),
            ("output", Some(price.output)),
            ("cache_read", price.cache_read),
            ("cache_write", price.cache_write),
        ] {
            findings.within(dollars, 0.0, f64::INFINITY, &joined(path, &["price", key]));
        }
    }
}

/// A reply that ends at its first call can hold no second one.
fn stop_after_call(config: &FathomConfig, findings: &mut Findings) {
    findings.need(
        !config.llm.stop_after_call || config.agent.tool_calls_per_turn == ToolCallsPerTurn::First,
        &["llm", "stop_after_call"],
        "false, or agent.tool_calls_per_turn: first, as a reply that is stopped after its first call has no others",
    );
    findings.need(
        !config.llm.stop_after_call || config.llm.tool_protocol == ToolProtocol::Text,
        &["llm", "stop_after_call"],
        "false, or llm.tool_protocol: text, as native calls have no closing tag to stop at",
    );
}

fn is_address(url: &str) -> bool {
    let rest = url.trim().strip_prefix("http://").or_else(|| url.trim().strip_prefix("https://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !host.contains(char::is_whitespace)
    })
}

fn agent(config: &AgentConfig, findings: &mut Findings) {
    findings.need(
        config.keep_tool_result >= -1,
        &["agent", "keep_tool_result"],
        "a whole number, -1 (all) or more",
    );
    findings.need(
        config.max_consecutive_rollbacks >= 1,
        &["agent", "max_consecutive_rollbacks"],
        AT_LEAST_ONE,
    );
    findings.need(config.max_llm_failures >= 1, &["agent", "max_llm_failures"], AT_LEAST_ONE);
    findings.within(Some(config.llm_retry_pause), 0.0, f64::INFINITY, &["agent", "llm_retry_pause"]);
    findings.need(
        config.scrape_result_limit.is_none_or(|limit| limit >= 1),
        &["agent", "scrape_result_limit"],
        AT_LEAST_ONE,
    );
    let limits = &config.limits;
    for (key, holds) in [
        ("wall", limits.wall.is_none_or(|seconds| seconds > 0.0)),
        ("working_time", limits.working_time.is_none_or(|seconds| seconds > 0.0)),
        ("tokens", limits.tokens.is_none_or(|tokens| tokens > 0)),
        ("cost", limits.cost.is_none_or(|dollars| dollars > 0.0)),
    ] {
        findings.need(holds, &["agent", "limits", key], MORE_THAN_ZERO);
    }
    role(&config.main_agent, &["agent", "main_agent"], findings);
    agents::check(config, findings);
}

fn role(role: &AgentRole, path: &[&str], findings: &mut Findings) {
    findings.need(role.max_turns >= 1, &joined(path, &["max_turns"]), AT_LEAST_ONE);
    for (index, server) in role.tools.iter().enumerate() {
        if role.tools[..index].contains(server) {
            let mut path = steps(&joined(path, &["tools"]));
            path.push(Step::Index(index));
            findings.doubtful.push((path, format!("`{server}` stands in the list before")));
        }
    }
    for (index, (server, tool)) in role.tool_blacklist.iter().enumerate() {
        if !role.tools.contains(server) {
            let mut path = steps(&joined(path, &["tool_blacklist"]));
            path.push(Step::Index(index));
            let message = format!("`{tool}` is hidden of `{server}`, which is not among this agent's tools");
            findings.doubtful.push((path, message));
        }
    }
}

fn benchmark(config: &BenchmarkConfig, findings: &mut Findings) {
    findings.need(config.epochs.is_none_or(|epochs| epochs >= 1), &["benchmark", "epochs"], AT_LEAST_ONE);
    let execution = &config.execution;
    for (key, value) in [("max_concurrent", execution.max_concurrent), ("pass_at_k", execution.pass_at_k)] {
        findings.need(value >= 1, &["benchmark", "execution", key], AT_LEAST_ONE);
    }
    findings.need(execution.max_tasks != Some(0), &["benchmark", "execution", "max_tasks"], AT_LEAST_ONE);
    findings.need(config.judge.votes >= 1, &["benchmark", "judge", "votes"], AT_LEAST_ONE);
    findings.need(!config.name.trim().is_empty(), &["benchmark", "name"], "a name");
    if let Some(judge) = &config.judge.llm {
        llm(judge, &["benchmark", "judge", "llm"], findings);
    }
}

fn tools(config: &ToolsConfig, findings: &mut Findings) {
    findings.need(config.start_limit > 0.0, &["tools", "start_limit"], MORE_THAN_ZERO);
    call_limit(config.call_limit, &["tools", "call_limit"], findings);
    findings.need(config.output_limit >= 1, &["tools", "output_limit"], AT_LEAST_ONE);
    for (key, expected) in config.egress.wrong_entries() {
        findings.need(false, &["tools", "egress", key], expected);
    }
    for (key, value) in
        [("time_limit", config.egress.time_limit), ("connect_limit", config.egress.connect_limit)]
    {
        findings.need(value > 0.0, &["tools", "egress", key], MORE_THAN_ZERO);
    }
    findings.need(config.egress.size_limit >= 1, &["tools", "egress", "size_limit"], AT_LEAST_ONE);
    let python = &config.python;
    findings.need(python.lifetime > 0.0, &["tools", "python", "lifetime"], MORE_THAN_ZERO);
    for (key, value) in [("output_limit", python.output_limit), ("most_sandboxes", python.most_sandboxes)] {
        findings.need(value >= 1, &["tools", "python", key], AT_LEAST_ONE);
    }
    for (key, value) in [
        ("memory", python.limits.memory),
        ("total_memory", python.limits.total_memory),
        ("processes", python.limits.processes),
        ("file_size", python.limits.file_size),
        ("disk", python.limits.disk),
        ("processor_seconds", python.limits.processor_seconds),
        ("open_files", python.limits.open_files),
    ] {
        findings.need(value >= 1, &["tools", "python", "limits", key], AT_LEAST_ONE);
    }
    for (name, limits) in &config.servers {
        let ServerLimits { start_limit, call_limit: limit, max_concurrency, repeatable: _ } = limits;
        let path = ["tools", "servers", name.as_str()];
        findings.need(
            start_limit.is_none_or(|limit| limit > 0.0),
            &joined(&path, &["start_limit"]),
            MORE_THAN_ZERO,
        );
        if let Some(limit) = limit {
            call_limit(*limit, &joined(&path, &["call_limit"]), findings);
        }
        findings.need(
            max_concurrency.is_none_or(|calls| calls >= 1),
            &joined(&path, &["max_concurrency"]),
            AT_LEAST_ONE,
        );
    }
}

fn call_limit(seconds: f64, path: &[&str], findings: &mut Findings) {
    let holds = seconds > 0.0 && seconds <= LONGEST_CALL_LIMIT;
    findings.need(holds, path, &format!("a number of seconds above 0, at most {LONGEST_CALL_LIMIT}"));
}
