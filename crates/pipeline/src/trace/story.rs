//! A run as a person reads it: passes, turns, tools, what was dropped, what it cost.

use core_protocol::event::{Event, EventBody, LlmPurpose, RunStatus};
use core_protocol::{ToolResult, Usage};

use super::{MAIN, cost, millis, seconds, start};
use crate::log::RunRecord;

/// Characters of a text that are shown of it.
const SHOWN: usize = 160;

/// The run as text, a line for each thing that happened. Texts of models and tools are on one line each, without
/// control characters.
#[must_use]
pub fn story(record: &RunRecord) -> String {
    let mut out = String::new();
    let Some(start) = start(record) else { return out };
    let model = &start.config["llm"]["model_name"];
    let provider = &start.config["llm"]["provider"];
    let line = |out: &mut String, text: String| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(&mut out, format!("run {}", record.run_id));
    line(&mut out, format!("question: {}", one_line(start.question, SHOWN * 4)));
    for file in start.files {
        line(&mut out, format!("file: {file}"));
    }
    line(
        &mut out,
        format!(
            "model: {} ({}) · began {} · version {}",
            model.as_str().unwrap_or("?"),
            provider.as_str().unwrap_or("?"),
            start.event.ts,
            start.version
        ),
    );
    let began = millis(start.event);
    let mut pass = 0;
    let mut totals = Usage::default();
    for event in record.valid_events() {
        if event.agent == MAIN && event.pass != pass && event.pass > 0 {
            pass = event.pass;
            line(&mut out, format!("\npass {pass}"));
        }
        if let EventBody::LlmResponse { usage, discarded, .. } = &event.body {
            totals += usage.unwrap_or_default();
            totals += discarded.unwrap_or_default();
        }
        if let Some(text) = told(event, &|usage| cost(start.setup, usage)) {
            let after = u64::try_from(millis(event) - began).unwrap_or(0);
            let agent = if event.agent == MAIN { String::new() } else { format!("{}: ", event.agent) };
            line(&mut out, format!("  {:>9}  turn {:<3} {agent}{text}", seconds(after), event.turn));
        }
    }
    line(&mut out, String::new());
    match record.summary() {
        Some(summary) => {
            let status = match summary.status {
                RunStatus::Answered if summary.capped => "answered, cut short by a limit",
                RunStatus::Answered => "answered",
                RunStatus::NoAnswer => "no answer",
                RunStatus::Failed => "failed",
                RunStatus::Cancelled => "interrupted",
            };
            let money =
                summary.cost_usd.map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost:.4}"));
            line(
                &mut out,
                format!(
                    "{status} · {} passes · {} turns · {} tool calls ({} failed) · {} rollbacks · {} sub-agents",
                    summary.passes.len(),
                    summary.turns,
                    summary.tool_calls.total,
                    summary.tool_calls.failed,
                    summary.rollbacks.total,
                    summary.sub_agents
                ),
            );
            line(
                &mut out,
                format!(
                    "{} tokens in ({} from a cache), {} out · {money} · {} in all: model {}, tools {}, own {}",
                    summary.usage.input,
                    summary.usage.cache_read,
                    summary.usage.output,
                    seconds(summary.wall_ms),
                    seconds(summary.llm_ms),
                    seconds(summary.tool_ms),
                    seconds(summary.overhead_ms)
                ),
            );
            if let Some(error) = &summary.error {
                line(&mut out, format!("error: {}", one_line(&error.message, SHOWN * 4)));
            }
            if let Some(answer) = &summary.answer {
                line(&mut out, format!("answer: {}", one_line(answer, SHOWN * 4)));
            }
        }
        None => {
            line(
                &mut out,
                format!(
                    "not finished · {} tokens in, {} out so far · go on with: fathom resume {}",
                    totals.input,
                    totals.output,
                    record.dir.display()
                ),
            );
        }
    }
    if record.torn_bytes > 0 {
        line(&mut out, format!("the last line of the log was cut off ({} bytes)", record.torn_bytes));
    }
    out
}

/// What is told of an event; none for those that say nothing to a person.
fn told(event: &Event, price: &dyn Fn(&Usage) -> Option<f64>) -> Option<String> {
    Some(match &event.body {
        EventBody::RunResumed { void, versions } => {
            format!(
                "gone on with by version {}; {} events before it do not count",
                versions.fathom,
                void.len()
            )
        }
        EventBody::LlmRequest { purpose, view, omitted, .. } => {
            let what = match purpose {
                LlmPurpose::Turn => "ask",
                LlmPurpose::FinalAnswer => "ask for the final answer",
                LlmPurpose::FailureSummary => "ask what went wrong",
                LlmPurpose::Compression => "ask for a summary of the history",
            };
            format!("{what} · {} messages, {} omitted", view.len(), omitted.len())
        }
        EventBody::LlmResponse { usage, ms, retries, finish_reason, .. } => {
            let tokens = usage.as_ref().map_or_else(
                || "tokens unknown".to_owned(),
                |usage| format!("{} in, {} out", usage.input, usage.output),
            );
            let money = usage
                .as_ref()
                .and_then(price)
                .filter(|cost| *cost > 0.0)
                .map_or_else(String::new, |cost| format!(" · ${cost:.4}"));
            let tried = if *retries > 0 { format!(" · {retries} tries before") } else { String::new() };
            let cut = match finish_reason {
                core_protocol::FinishReason::Length => " · cut off",
                _ => "",
            };
            format!("reply after {} · {tokens}{money}{tried}{cut}", seconds(*ms))
        }
        EventBody::LlmRetry { attempt, message, .. } => {
            format!("try {attempt} failed: {}", one_line(message, SHOWN))
        }
        EventBody::LlmWaited { ms, .. } => format!("waited {} for a limiter", seconds(*ms)),
        EventBody::ToolsWaited { ms } => format!("tools waited {} for a limiter", seconds(*ms)),
        EventBody::LlmFailed { message, .. } => format!("no usable reply: {}", one_line(message, SHOWN)),
        EventBody::Message { message, .. } if message.role == core_protocol::Role::Assistant => {
            format!("“{}”", one_line(&message.joined_text(), SHOWN))
        }
        EventBody::ToolCallStarted { server, tool, arguments, repairs, .. } => {
            let arguments: Vec<String> =
                arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let mended =
                if repairs.is_empty() { String::new() } else { format!(" ({})", repairs.join("; ")) };
            format!("→ {server}.{tool} {}{mended}", one_line(&arguments.join(" "), SHOWN))
        }
        EventBody::ToolCallFinished { result, error_kind, ms, .. } => {
            let kind = error_kind.as_ref().map_or_else(String::new, |kind| format!(" · {kind}"));
            format!("← {}{kind} · {}", seconds(*ms), one_line(&shown(result), SHOWN))
        }
        EventBody::Rollback { reason, detail, consecutive, .. } => {
            format!("dropped, {} ({consecutive} in a row): {}", reason.as_str(), one_line(detail, SHOWN))
        }
        EventBody::DuplicateAllowed { query, .. } => {
            format!("repeated query, no rollback left: {}", one_line(query, SHOWN))
        }
        EventBody::Recovered { after } => format!("kept after {after} dropped replies"),
        EventBody::ContextChecked { estimated, limit, over: true, .. } => {
            format!("the context is full: about {estimated} of {limit} tokens")
        }
        EventBody::Compressed { before, after, replaced, .. } => {
            format!("{} messages summed up: {before} tokens are now {after}", replaced.len())
        }
        EventBody::SubAgentStarted { id, .. } => format!("{id} begins"),
        EventBody::SubAgentFinished { id, summary, usage } => format!(
            "{id} ended, {} · {} turns · {} tokens",
            summary.stop_reason.as_str(),
            summary.turns,
            usage.input + usage.output
        ),
        EventBody::Finding { name, .. } => format!("noted: {}", one_line(name, SHOWN)),
        EventBody::ToolsChanged { tools } => format!("other tools are offered now: {}", tools.len()),
        EventBody::IntermediateAnswer { answer, .. } => format!("boxed: {}", one_line(answer, SHOWN)),
        EventBody::FailureSummary { text, .. } => format!("failure summary: {}", one_line(text, SHOWN * 2)),
        EventBody::LimitReached { limit, spent, max } => {
            format!("the limit on {limit} is reached: {spent:.1} of {max:.1}")
        }
        EventBody::PassFinished { summary } => format!(
            "pass ended: {} · {} turns, {} replies, {} dropped",
            summary.stop_reason.as_str(),
            summary.turns,
            summary.call_attempts,
            summary.rollbacks
        ),
        EventBody::FinalAnswer { answer, source, .. } => {
            let from = match source {
                core_protocol::event::AnswerSource::FinalReply => "from the final reply",
                core_protocol::event::AnswerSource::Intermediate => "noted before",
                core_protocol::event::AnswerSource::None => "none",
            };
            format!("answer ({from}): {}", one_line(answer.as_deref().unwrap_or("–"), SHOWN))
        }
        _ => return None,
    })
}

fn shown(result: &ToolResult) -> String {
    let text = result.joined_text();
    if text.is_empty() { format!("{} blocks without text", result.content.len()) } else { text }
}

/// Text on one line, without control characters, at most so many characters.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for (count, word) in text.split_whitespace().enumerate() {
        if count > 0 {
            line.push(' ');
        }
        line.extend(word.chars().filter(|character| !character.is_control()));
        if line.len() > limit * 4 {
            break;
        }
    }
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
