//! A run as a Markdown document: the question, every message once, results folded, the answer.

use core_protocol::event::EventBody;
use core_protocol::{Message, Role};
use serde_json::Value;

use super::{MAIN, start};
use crate::log::RunRecord;

/// The run as Markdown.
#[must_use]
pub fn markdown(record: &RunRecord) -> String {
    let mut out = String::new();
    let Some(start) = start(record) else { return out };
    out.push_str(&format!("# {}\n\n", heading(start.question)));
    out.push_str(&format!("Run `{}`, began {}.\n\n", record.run_id, start.event.ts));
    let mut place = (0, 0, "");
    for event in record.valid_events() {
        let now = (event.pass, event.turn, event.agent.as_str());
        match &event.body {
            EventBody::Message { message, .. } => {
                if now != place {
                    place = now;
                    let agent =
                        if event.agent == MAIN { String::new() } else { format!(", {}", event.agent) };
                    out.push_str(&format!("## Pass {}, turn {}{agent}\n\n", event.pass, event.turn));
                }
                out.push_str(&shown(message));
            }
            EventBody::Rollback { reason, detail, .. } => {
                out.push_str(&format!("> The reply was dropped ({}): {detail}\n\n", reason.as_str()));
            }
            EventBody::FailureSummary { .. } => out.push_str("> The pass failed and was summed up.\n\n"),
            EventBody::LimitReached { limit, spent, max } => {
                out.push_str(&format!("> The limit on {limit} was reached: {spent:.1} of {max:.1}.\n\n"));
            }
            _ => {}
        }
    }
    if let Some(summary) = record.summary() {
        out.push_str("## Result\n\n");
        match &summary.answer {
            Some(answer) => out.push_str(&format!("{}\n\n", fenced(answer))),
            None => out.push_str("No answer.\n\n"),
        }
        out.push_str(&format!(
            "{} turns, {} tool calls, {} tokens in, {} out.\n",
            summary.turns, summary.tool_calls.total, summary.usage.input, summary.usage.output
        ));
    }
    out
}

fn heading(question: &str) -> String {
    question.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shown(message: &Message) -> String {
    let text = message.joined_text();
    let mut out = match message.role {
        Role::Assistant => format!("**Model**\n\n{}\n\n", fenced(&text)),
        Role::User | Role::Tool | Role::System => {
            format!(
                "<details><summary>{} characters</summary>\n\n{}\n\n</details>\n\n",
                text.chars().count(),
                fenced(&text)
            )
        }
    };
    for call in &message.tool_calls {
        let arguments = Value::Object(call.arguments.clone());
        out.push_str(&format!(
            "Call of `{}.{}`: {}\n\n",
            call.server,
            call.tool,
            fenced(&arguments.to_string())
        ));
    }
    out
}

/// Text in a fence that is longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", text.trim_end())
}
