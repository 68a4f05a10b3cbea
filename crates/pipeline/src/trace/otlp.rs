//! A run as OpenTelemetry spans, in the JSON of OTLP/HTTP: the run, its passes and sub-agents, calls to the model,
//! tool calls, named by the semantic conventions for generative AI.

use std::collections::HashMap;

use core_protocol::event::{Event, EventBody, RunStatus};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{MAIN, Start, cost, millis, start};
use crate::log::RunRecord;

const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const FAILED: u8 = 2;

/// The body of one export request.
#[must_use]
pub fn otlp(record: &RunRecord) -> Value {
    let Some(start) = start(record) else { return json!({ "resourceSpans": [] }) };
    let version = start.version;
    let spans = Spans::of(record, &start);
    json!({
        "resourceSpans": [{
            "resource": { "attributes": attributes(&[
                ("service.name", json!("fathom")),
                ("service.version", json!(version)),
            ]) },
            "scopeSpans": [{
                "scope": { "name": "fathom", "version": version },
                "spans": spans.done,
            }],
        }],
    })
}

/// A span that has begun.
struct Open {
    id: String,
    parent: String,
    name: String,
    kind: u8,
    began: i64,
    attributes: Vec<(&'static str, Value)>,
}

struct Spans<'a> {
    run_id: &'a str,
    trace: String,
    root: String,
    done: Vec<Value>,
    /// By agent: its pass, or the sub-agent as a whole.
    agents: HashMap<&'a str, Open>,
    calls: HashMap<(&'a str, u64), Open>,
    tools: HashMap<(&'a str, &'a str), Open>,
}

impl<'a> Spans<'a> {
    fn of(record: &'a RunRecord, start: &Start<'a>) -> Self {
        let mut spans = Self {
            run_id: &record.run_id,
            trace: digest(&record.run_id, "trace", 32),
            root: digest(&record.run_id, "run", 16),
            done: Vec::new(),
            agents: HashMap::new(),
            calls: HashMap::new(),
            tools: HashMap::new(),
        };
        let began = millis(start.event);
        let mut last = began;
        for event in record.valid_events() {
            last = millis(event).max(last);
            spans.take(event, start);
        }
        let left: Vec<Open> = spans
            .tools
            .drain()
            .map(|(_, open)| open)
            .chain(spans.calls.drain().map(|(_, open)| open))
            .chain(spans.agents.drain().map(|(_, open)| open))
            .collect();
        for open in left {
            spans.close(open, last, Some("interrupted"));
        }
        let summary = record.summary();
        let failed = summary.is_none_or(|summary| summary.status == RunStatus::Failed);
        let mut facts = vec![
            ("gen_ai.operation.name", json!("invoke_agent")),
            ("gen_ai.agent.name", json!("fathom")),
            ("gen_ai.conversation.id", json!(record.run_id)),
            ("gen_ai.provider.name", start.config["llm"]["provider"].clone()),
            ("gen_ai.request.model", start.config["llm"]["model_name"].clone()),
        ];
        if let Some(summary) = summary {
            facts.push(("gen_ai.usage.input_tokens", json!(summary.usage.input)));
            facts.push(("gen_ai.usage.output_tokens", json!(summary.usage.output)));
            facts.push(("fathom.turns", json!(summary.turns)));
            if let Some(cost) = summary.cost_usd {
                facts.push(("fathom.cost_usd", json!(cost)));
            }
        }
        let root = Open {
            id: spans.root.clone(),
            parent: String::new(),
            name: "invoke_agent fathom".to_owned(),
            kind: INTERNAL,
            began,
            attributes: facts,
        };
        let kind =
            summary.and_then(|summary| summary.error.as_ref()).map_or("interrupted", |error| &error.kind);
        spans.close(root, last, failed.then_some(kind));
        spans
    }

    fn take(&mut self, event: &'a Event, start: &Start<'_>) {
        let agent = event.agent.as_str();
        let at = millis(event);
        match &event.body {
            EventBody::SubAgentStarted { id, name, call_id } => {
                let parent = self.tools.get(&(agent, call_id.as_str())).map(|open| open.id.clone());
                let open = self.open(
                    &format!("agent {id}"),
                    parent.unwrap_or_else(|| self.root.clone()),
                    format!("invoke_agent {name}"),
                    INTERNAL,
                    at,
                    vec![
                        ("gen_ai.operation.name", json!("invoke_agent")),
                        ("gen_ai.agent.name", json!(name)),
                        ("gen_ai.agent.id", json!(id)),
                    ],
                );
                self.agents.insert(id, open);
            }
            EventBody::SubAgentFinished { id, summary, .. } => {
                if let Some(open) = self.agents.remove(id.as_str()) {
                    let failed = summary.stop_reason == core_protocol::event::StopReason::Error;
                    self.close(open, at, failed.then_some("error"));
                }
            }
            EventBody::PassFinished { summary } if agent == MAIN => {
                if let Some(mut open) = self.agents.remove(MAIN) {
                    open.attributes.push(("fathom.stop_reason", json!(summary.stop_reason.as_str())));
                    open.attributes.push(("fathom.turns", json!(summary.turns)));
                    open.attributes.push(("fathom.rollbacks", json!(summary.rollbacks)));
                    let failed = summary.stop_reason == core_protocol::event::StopReason::Error;
                    self.close(open, at, failed.then_some("error"));
                }
            }
            EventBody::LlmRequest { call, params, purpose, .. } => {
                let parent = self.parent(agent, event, at);
                let mut facts = vec![
                    ("gen_ai.operation.name", json!("chat")),
                    ("gen_ai.provider.name", params.get("provider").cloned().unwrap_or_default()),
                    ("gen_ai.request.model", params.get("model").cloned().unwrap_or_default()),
                    ("gen_ai.conversation.id", json!(self.run_id)),
                    ("fathom.purpose", serde_json::to_value(purpose).unwrap_or_default()),
                    ("fathom.turn", json!(event.turn)),
                ];
                for (ours, theirs) in [
                    ("max_tokens", "gen_ai.request.max_tokens"),
                    ("temperature", "gen_ai.request.temperature"),
                    ("top_p", "gen_ai.request.top_p"),
                    ("top_k", "gen_ai.request.top_k"),
                ] {
                    if let Some(value) = params.get(ours).filter(|value| !value.is_null()) {
                        facts.push((theirs, value.clone()));
                    }
                }
                let model = params.get("model").and_then(Value::as_str).unwrap_or_default();
                let open = self.open(
                    &format!("call {agent} {call}"),
                    parent,
                    format!("chat {model}"),
                    CLIENT,
                    at,
                    facts,
                );
                self.calls.insert((agent, *call), open);
            }
            EventBody::LlmResponse { call, usage, model, finish_reason, retries, .. } => {
                if let Some(mut open) = self.calls.remove(&(agent, *call)) {
                    if let Some(usage) = usage {
                        open.attributes.push(("gen_ai.usage.input_tokens", json!(usage.input)));
                        open.attributes.push(("gen_ai.usage.output_tokens", json!(usage.output)));
                        if let Some(cost) = cost(start.setup, usage) {
                            open.attributes.push(("fathom.cost_usd", json!(cost)));
                        }
                    }
                    if let Some(model) = model {
                        open.attributes.push(("gen_ai.response.model", json!(model)));
                    }
                    open.attributes.push(("gen_ai.response.finish_reasons", json!([finish_reason])));
                    open.attributes.push(("fathom.retries", json!(retries)));
                    self.close(open, at, None);
                }
            }
            EventBody::LlmFailed { call, kind, .. } => {
                if let Some(open) = self.calls.remove(&(agent, *call)) {
                    self.close(open, at, Some(kind));
                }
            }
            EventBody::ToolCallStarted { call_id, server, tool, .. } => {
                let parent = self.parent(agent, event, at);
                let open = self.open(
                    &format!("tool {agent} {call_id}"),
                    parent,
                    format!("execute_tool {tool}"),
                    INTERNAL,
                    at,
                    vec![
                        ("gen_ai.operation.name", json!("execute_tool")),
                        ("gen_ai.tool.name", json!(tool)),
                        ("gen_ai.tool.call.id", json!(call_id)),
                        ("gen_ai.tool.type", json!("extension")),
                        ("fathom.tool.server", json!(server)),
                    ],
                );
                self.tools.insert((agent, call_id), open);
            }
            EventBody::ToolCallFinished { call_id, error_kind, .. } => {
                if let Some(open) = self.tools.remove(&(agent, call_id.as_str())) {
                    self.close(open, at, error_kind.as_deref());
                }
            }
            _ => {}
        }
    }

    /// What an event of an agent belongs to: its pass, which begins with it, or the sub-agent.
    fn parent(&mut self, agent: &'a str, event: &Event, at: i64) -> String {
        if let Some(open) = self.agents.get(agent) {
            return open.id.clone();
        }
        let open = self.open(
            &format!("pass {agent} {}", event.pass),
            self.root.clone(),
            format!("invoke_agent {agent}"),
            INTERNAL,
            at,
            vec![
                ("gen_ai.operation.name", json!("invoke_agent")),
                ("gen_ai.agent.name", json!(agent)),
                ("fathom.pass", json!(event.pass)),
            ],
        );
        let id = open.id.clone();
        self.agents.insert(agent, open);
        id
    }

    fn open(
        &self,
        key: &str,
        parent: String,
        name: String,
        kind: u8,
        began: i64,
        attributes: Vec<(&'static str, Value)>,
    ) -> Open {
        Open {
            id: digest(self.run_id, key, 16),
            parent,
            name: name.trim_end().to_owned(),
            kind,
            began,
            attributes,
        }
    }

    fn close(&mut self, open: Open, ended: i64, error: Option<&str>) {
        let mut facts = open.attributes;
        if let Some(kind) = error {
            facts.push(("error.type", json!(kind)));
        }
        let mut span = json!({
            "traceId": self.trace,
            "spanId": open.id,
            "name": open.name,
            "kind": open.kind,
            "startTimeUnixNano": nanos(open.began),
            "endTimeUnixNano": nanos(ended.max(open.began)),
            "attributes": attributes(&facts),
            "status": error.map_or_else(|| json!({}), |kind| json!({ "code": FAILED, "message": kind })),
        });
        if !open.parent.is_empty() {
            span["parentSpanId"] = json!(open.parent);
        }
        self.done.push(span);
    }
}

/// An id that is the same each time a run is exported: so many hexadecimal digits.
fn digest(run_id: &str, key: &str, digits: usize) -> String {
    let mut id = hex::encode(Sha256::digest(format!("{run_id}\n{key}")));
    id.truncate(digits);
    id
}

/// 64-bit integers are texts in protobuf's JSON.
fn nanos(ms: i64) -> String {
    (i128::from(ms) * 1_000_000).to_string()
}

fn attributes(facts: &[(&str, Value)]) -> Value {
    let known = facts.iter().filter(|(_, value)| !value.is_null());
    known.map(|(name, value)| json!({ "key": name, "value": any_value(value) })).collect()
}

fn any_value(value: &Value) -> Value {
    match value {
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => json!({ "intValue": integer.to_string() }),
            None => json!({ "doubleValue": number }),
        },
        Value::String(text) => json!({ "stringValue": text }),
        Value::Array(items) => {
            json!({ "arrayValue": { "values": items.iter().map(any_value).collect::<Vec<_>>() } })
        }
        Value::Null | Value::Object(_) => json!({ "stringValue": value.to_string() }),
    }
}
