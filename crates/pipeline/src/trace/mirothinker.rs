//! A run as the task log of MiroThinker, so that the programs that read its logs read this one.
//!
//! Decides how our events map onto its fields. Its times are local to UTC+8, its sub-agent sessions are named
//! `NAME_1`, `NAME_2`… over all sub-agents, and its histories are whole: nothing is omitted in them.

use std::collections::HashMap;
use std::fmt::Write as _;

use core_protocol::event::{Event, EventBody, RunStatus, RunSummary};
use core_protocol::native::function_name;
use core_protocol::{Message, ToolDefinition};
use serde_json::{Map, Value, json};

use super::chat::role_name;
use super::story::one_line;
use super::{MAIN, millis, start};
use crate::log::RunRecord;

/// Hours that its times are ahead of UTC.
const HOURS_AHEAD: i64 = 8;

/// What a benchmark knows about a run beside its log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// The task's id; the run's id where it is empty.
    pub task_id: String,
    /// The right answer.
    pub ground_truth: String,
    /// What the judge said: `CORRECT`, `INCORRECT`…
    pub result: String,
    /// Which judge.
    pub judge: String,
    /// What it said in detail.
    pub details: Option<Value>,
}

/// The task log as JSON. `judgement` fills in what only a benchmark knows.
#[must_use]
pub fn mirothinker(record: &RunRecord, judgement: &Judgement) -> Value {
    let Some(start) = start(record) else { return Value::Null };
    let sessions = Sessions::of(record);
    let summary = record.summary();
    let last = record.events.last().unwrap_or(start.event);
    let turn_of = |agent_is_main: bool| {
        let turns = record.valid_events().filter(|event| (event.agent == MAIN) == agent_is_main);
        turns.map(|event| event.turn).max().unwrap_or(0)
    };
    let histories = histories(record);
    let history_of = |agent: &str| histories.get(agent).cloned().unwrap_or_else(|| json!({}));
    let session_histories: Map<String, Value> =
        sessions.named.iter().map(|(id, session)| (session.clone(), history_of(id))).collect();
    json!({
        "status": match summary.map(|summary| summary.status) {
            Some(RunStatus::Answered | RunStatus::NoAnswer) => "success",
            Some(RunStatus::Failed) => "failed",
            Some(RunStatus::Cancelled) => "interrupted",
            None => "running",
        },
        "start_time": local_time(start.event),
        "end_time": if summary.is_some() { local_time(last) } else { String::new() },
        "task_id": if judgement.task_id.is_empty() { &record.run_id } else { &judgement.task_id },
        "input": {
            "task_description": start.question,
            "task_file_name": start.files.first().map_or("", String::as_str),
        },
        "ground_truth": judgement.ground_truth,
        "final_boxed_answer": summary.and_then(|summary| summary.answer.as_deref()).unwrap_or(""),
        "final_judge_result": judgement.result,
        "judge_type": judgement.judge,
        "eval_details": judgement.details,
        "error": summary.and_then(|summary| summary.error.as_ref()).map_or("", |error| error.message.as_str()),
        "current_main_turn_id": turn_of(true),
        "current_sub_agent_turn_id": turn_of(false),
        "sub_agent_counter": sessions.named.len(),
        "current_sub_agent_session_id": Value::Null,
        "env_info": env_info(start.config),
        "log_dir": record.dir.display().to_string(),
        "main_agent_message_history": history_of(MAIN),
        "sub_agent_message_history_sessions": session_histories,
        "step_logs": steps(record, &sessions),
        "trace_data": trace_data(summary),
    })
}

/// Names of sub-agents' sessions by their ids, in the order in which they began.
struct Sessions {
    named: Vec<(String, String)>,
}

impl Sessions {
    fn of(record: &RunRecord) -> Self {
        let begun = record.valid_events().filter_map(|event| match &event.body {
            EventBody::SubAgentStarted { id, name, .. } => Some((id, name)),
            _ => None,
        });
        let named =
            begun.enumerate().map(|(index, (id, name))| (id.clone(), format!("{name}_{}", index + 1)));
        Self { named: named.collect() }
    }

    fn name(&self, id: &str) -> String {
        let known = self.named.iter().find(|(known, _)| known == id);
        known.map_or_else(|| "main".to_owned(), |(_, session)| session.clone())
    }
}

/// By agent, the last history that a request showed, whole, with the reply to it.
fn histories(record: &RunRecord) -> HashMap<&str, Value> {
    let mut messages: HashMap<(&str, &str), &Message> = HashMap::new();
    let mut systems: HashMap<&str, &str> = HashMap::new();
    let mut shown: HashMap<&str, Vec<&str>> = HashMap::new();
    for event in record.valid_events() {
        let agent = event.agent.as_str();
        match &event.body {
            EventBody::SystemPrompt { text } => {
                systems.insert(agent, text);
            }
            EventBody::Message { id, message } => {
                messages.insert((agent, id), message);
            }
            EventBody::LlmRequest { view, .. } => {
                shown.insert(agent, view.iter().map(String::as_str).collect());
            }
            EventBody::LlmResponse { message_id, .. } => {
                shown.entry(agent).or_default().push(message_id);
            }
            _ => {}
        }
    }
    let history = |agent: &str, ids: &[&str]| {
        let history: Vec<Value> =
            ids.iter().filter_map(|id| messages.get(&(agent, *id))).map(|message| wire(message)).collect();
        json!({ "system_prompt": systems.get(agent).copied().unwrap_or(""), "message_history": history })
    };
    shown.iter().map(|(agent, ids)| (*agent, history(agent, ids))).collect()
}

fn wire(message: &Message) -> Value {
    let text = message.joined_text();
    let mut wire = json!({
        "role": role_name(message.role),
        "content": [{ "type": "text", "text": text }],
    });
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            json!({
                "id": call.id,
                "type": "function",
                "function": {
                    "name": function_name(&call.server, &call.tool),
                    "arguments": Value::Object(call.arguments.clone()).to_string(),
                },
            })
        });
        wire["tool_calls"] = calls.collect();
    }
    if let Some(id) = &message.tool_call_id {
        wire["tool_call_id"] = json!(id);
        wire["content"] = json!(text);
    }
    wire
}

fn env_info(config: &Value) -> Value {
    let mut info = Map::new();
    for name in [
        "provider",
        "base_url",
        "model_name",
        "temperature",
        "top_p",
        "min_p",
        "top_k",
        "max_tokens",
        "repetition_penalty",
        "async_client",
    ] {
        info.insert(format!("llm_{name}"), config["llm"][name].clone());
    }
    let agent = &config["agent"];
    info.insert("keep_tool_result".to_owned(), agent["keep_tool_result"].clone());
    info.insert("main_agent_max_turns".to_owned(), agent["main_agent"]["max_turns"].clone());
    for (name, role) in agent["sub_agents"].as_object().into_iter().flatten() {
        info.insert(format!("sub_{name}_max_turns"), role["max_turns"].clone());
    }
    Value::Object(info)
}

fn trace_data(summary: Option<&RunSummary>) -> Value {
    let Some(summary) = summary else { return json!({}) };
    let seconds = |ms: u64| {
        #[expect(clippy::cast_precision_loss, reason = "a run takes less than 2^52 milliseconds")]
        let ms = ms as f64;
        ms / 1000.0
    };
    json!({
        "performance_summary": {
            "total_wall_time": seconds(summary.wall_ms),
            "primary_breakdown": { "main_agent": {}, "browsing_agent": {} },
            "cross_cutting_breakdown": {
                "total_llm_time": seconds(summary.llm_ms),
                "total_tool_time": seconds(summary.tool_ms),
                "total_overhead_time": seconds(summary.overhead_ms),
            },
        },
        "tool_workload_breakdown": {},
        "failure_experience_summary": summary.failure_summaries.last(),
        "usage": summary.usage,
        "cost_usd": summary.cost_usd,
    })
}

/// What happened, step by step.
fn steps(record: &RunRecord, sessions: &Sessions) -> Vec<Value> {
    let mut steps = Vec::new();
    if let Some(start) = start(record) {
        for (agent, tools) in &start.setup.tools {
            let name = if agent == MAIN {
                "get_main_tool_definitions".to_owned()
            } else {
                format!("get_sub_{agent}_tool_definitions")
            };
            steps.push(step(start.event, "info", &name, &python(&by_server(tools)), json!({})));
        }
    }
    steps.extend(record.valid_events().filter_map(|event| step_of(event, sessions)));
    steps
}

fn step_of(event: &Event, sessions: &Sessions) -> Option<Value> {
    let who = if event.agent == MAIN { "Main Agent".to_owned() } else { sessions.name(&event.agent) };
    let at = format!("{who} | Turn: {}", event.turn);
    let (level, name, message, metadata) = match &event.body {
        EventBody::RunStarted { question, .. } => {
            ("info", "Main | Task Start".to_owned(), one_line(question, 400), json!({}))
        }
        EventBody::LlmRequest { call, view, omitted, .. } => (
            "info",
            format!("{at} | LLM Call Start"),
            format!("{} messages, {} omitted", view.len(), omitted.len()),
            json!({ "call": call }),
        ),
        EventBody::LlmResponse { call, usage, model, ms, .. } => {
            let usage = usage.unwrap_or_default();
            let metadata = json!({
                "call": call,
                "model": model,
                "input_tokens": usage.input,
                "output_tokens": usage.output,
                "cache_creation_tokens": usage.cache_write,
                "cache_read_tokens": usage.cache_read,
                "call_time": ms,
            });
            ("info", format!("{at} | LLM Call Success"), format!("after {ms} ms"), metadata)
        }
        EventBody::LlmRetry { kind, message, .. } => {
            ("warning", format!("{at} | LLM Retry"), message.clone(), json!({ "kind": kind }))
        }
        EventBody::LlmFailed { kind, message, .. } => {
            ("error", format!("{at} | LLM Call Error"), message.clone(), json!({ "kind": kind }))
        }
        EventBody::ToolCallStarted { call_id, server, tool, arguments, .. } => (
            "info",
            format!("{at} | Tool Call Start"),
            format!("{server}.{tool}"),
            json!({ "call_id": call_id, "server_name": server, "tool_name": tool, "arguments": arguments }),
        ),
        EventBody::ToolCallFinished { call_id, error_kind: None, ms, .. } => (
            "info",
            format!("{at} | Tool Call Success"),
            format!("after {ms} ms"),
            json!({ "call_id": call_id, "call_time": ms }),
        ),
        EventBody::ToolCallFinished { call_id, result, error_kind: Some(kind), ms, .. } => (
            "error",
            format!("{at} | Tool Call Error"),
            one_line(&result.joined_text(), 400),
            json!({ "call_id": call_id, "error": kind, "call_time": ms }),
        ),
        EventBody::Rollback { reason, detail, .. } => {
            ("warning", format!("{at} | Rollback"), detail.clone(), json!({ "reason": reason.as_str() }))
        }
        EventBody::SubAgentStarted { id, .. } => {
            let session = sessions.name(id);
            ("info", format!("{session} | Session Start"), session.clone(), json!({ "session_id": session }))
        }
        EventBody::SubAgentFinished { id, .. } => {
            let session = sessions.name(id);
            ("info", format!("{session} | Session End"), session.clone(), json!({ "session_id": session }))
        }
        EventBody::LimitReached { limit, .. } => {
            ("warning", format!("{at} | Limit"), format!("the limit on {limit} was reached"), json!({}))
        }
        EventBody::FinalAnswer { answer, .. } => {
            ("info", format!("{who} | Final Answer"), answer.clone().unwrap_or_default(), json!({}))
        }
        EventBody::RunFinished(summary) => (
            "info",
            "task_execution_finished".to_owned(),
            format!("{} turns, {} tool calls", summary.turns, summary.tool_calls.total),
            json!({}),
        ),
        _ => return None,
    };
    Some(step(event, level, &name, &message, metadata))
}

fn step(event: &Event, level: &str, name: &str, message: &str, metadata: Value) -> Value {
    json!({
        "step_name": name,
        "message": message,
        "timestamp": local_time(event),
        "info_level": level,
        "metadata": metadata,
    })
}

/// Definitions as its readers expect them: by server.
fn by_server(tools: &[ToolDefinition]) -> Value {
    let mut servers: Vec<(&str, Vec<Value>)> = Vec::new();
    for tool in tools {
        let entry =
            json!({ "name": tool.name, "description": tool.description, "schema": tool.input_schema });
        match servers.iter_mut().find(|(name, _)| *name == tool.server) {
            Some((_, listed)) => listed.push(entry),
            None => servers.push((&tool.server, vec![entry])),
        }
    }
    servers.into_iter().map(|(name, tools)| json!({ "name": name, "tools": tools })).collect()
}

/// JSON as a literal of Python.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let mut out = String::from("{");
            for (index, (name, value)) in fields.iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                let _ = write!(out, "{comma}{}: {}", Value::from(name.as_str()), python(value));
            }
            out.push('}');
            out
        }
    }
}

/// The time of an event as its logs write it.
fn local_time(event: &Event) -> String {
    let ms = millis(event) + HOURS_AHEAD * 3_600_000;
    jiff::Timestamp::from_millisecond(ms)
        .map_or_else(|_| String::new(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_python() {
        let value = json!([{"name": "a\"b\n", "tools": [null, true, false, 1.5, {}]}]);
        assert_eq!(python(&value), r#"[{"name": "a\"b\n", "tools": [None, True, False, 1.5, {}]}]"#);
    }
}
