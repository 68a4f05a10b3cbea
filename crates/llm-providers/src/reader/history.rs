//! What has happened so far, read from the messages of a request.
//!
//! Decides what the calls in the history were and what came back. A retained view may have lost old results; then
//! the notes count that the reader left in its own replies. What to do next is left to `strategy`.

use core_protocol::{Message, ParseOptions, Role, ToolCall, boxed_answer, parse_reply};
use serde_json::Value;

use super::task::{Task, task};
use super::toolbox::{Tool, Toolbox};
use super::wording::{Note, notes};
use crate::ChatRequest;

/// What the last message wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The next step.
    Step,
    /// The final answer or report, without calls.
    FinalAnswer,
    /// A report on why it failed.
    FailureSummary,
}

/// One result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hit {
    /// What the reading tool takes.
    pub(super) place: String,
    /// The title.
    pub(super) title: String,
    /// The text shown.
    pub(super) snippet: String,
}

/// One step that was taken.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    /// A search and what it found; `failed` where it gave an error.
    Searched { query: String, hits: Vec<Hit>, text: String, failed: bool },
    /// A document that was opened.
    Opened { place: String, title: String, text: String, next: Option<u64>, failed: bool },
    /// A note of the reader's own.
    Noted(Note),
}

/// The history, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct History {
    /// The first message.
    pub(super) task: Task,
    /// The steps in order.
    pub(super) events: Vec<Event>,
    /// What is wanted now.
    pub(super) wanted: Wanted,
    /// Whether a note says that the last reply was discarded.
    pub(super) discarded: bool,
    /// The reader's own last reply, where it ended the search with an answer.
    pub(super) concluded: Option<String>,
}

/// What stands where a result was left out of the view.
const OMITTED: &str = "Tool result is omitted";

/// Words of the note that follows a rollback.
const DISCARDED: &[&str] =
    &["discarded", "rolled back", "was rejected", "not carried out", "duplicate query"];

impl History {
    /// Reads a request.
    pub(super) fn of(request: &ChatRequest, tools: &Toolbox) -> Self {
        let mut messages: Vec<&Message> = request
            .messages
            .iter()
            .map(AsRef::as_ref)
            .filter(|message| message.role != Role::System)
            .collect();
        // A beginning that the reply must go on with says nothing of its own.
        if request.continue_final_message && messages.last().is_some_and(|last| last.role == Role::Assistant)
        {
            messages.pop();
        }
        let first = messages.iter().position(|message| message.role == Role::User).unwrap_or(0);
        let blocks = messages.get(first).map(|message| texts(message)).unwrap_or_default();
        let (discarded, first_text) = match blocks.split_last() {
            Some((last, rest)) if !rest.is_empty() && is_discard_note(last) => (true, rest.join("\n\n")),
            _ => (false, blocks.join("\n\n")),
        };
        let mut history = Self {
            task: task(&first_text),
            events: Vec::new(),
            wanted: Wanted::Step,
            discarded: discarded && messages.len() == first + 1,
            concluded: None,
        };
        let mut at = first + 1;
        while let Some(message) = messages.get(at) {
            at += 1;
            if message.role == Role::Assistant {
                let end = (at..messages.len())
                    .find(|next| messages.get(*next).is_some_and(|message| message.role == Role::Assistant))
                    .unwrap_or(messages.len());
                let answers = messages.get(at..end).unwrap_or_default();
                history.turn(message, answers, tools, end == messages.len());
                at = end;
            } else {
                history.instruction(&message.joined_text(), at == messages.len());
            }
        }
        history
    }

    /// One reply of the reader and what followed it.
    fn turn(&mut self, message: &Message, answers: &[&Message], tools: &Toolbox, is_last: bool) {
        let text = message.joined_text();
        self.events.extend(notes(&text).into_iter().map(Event::Noted));
        let mut calls = message.tool_calls.clone();
        if calls.is_empty() {
            calls = parse_reply(&text, &ParseOptions::new(tools.protocol.dialect())).calls;
        }
        self.concluded = (calls.is_empty() && boxed_answer(&text).is_some()).then_some(text);
        let mut results: Vec<String> = Vec::new();
        let mut instructions: Vec<String> = Vec::new();
        for answer in answers {
            if answer.role == Role::Tool {
                let place =
                    answer.tool_call_id.as_ref().and_then(|id| calls.iter().position(|call| call.id == *id));
                let place = place.unwrap_or(results.len());
                results.resize(results.len().max(place + 1), String::new());
                if let Some(slot) = results.get_mut(place) {
                    *slot = answer.joined_text();
                }
                continue;
            }
            let blocks = texts(answer);
            let mut rest = blocks.as_slice();
            if !calls.is_empty()
                && results.is_empty()
                && let Some((head, tail)) = rest.split_first()
            {
                if wanted_by(head, &self.task.question) == Wanted::Step {
                    results = split_results(tools, head, calls.len());
                    rest = tail;
                } else {
                    results.push(String::new());
                }
            }
            instructions.extend(rest.iter().map(|block| (*block).to_owned()));
        }
        for (index, call) in calls.iter().enumerate() {
            let result = results.get(index).map_or("", String::as_str);
            self.call(call, result, tools);
        }
        for instruction in instructions {
            self.instruction(&instruction, is_last);
        }
    }

    fn instruction(&mut self, text: &str, is_last: bool) {
        if !is_last {
            return;
        }
        match wanted_by(text, &self.task.question) {
            Wanted::Step => self.discarded |= is_discard_note(text),
            wanted => self.wanted = wanted,
        }
    }

    fn call(&mut self, call: &ToolCall, result: &str, tools: &Toolbox) {
        let value = |tool: &Tool| call.arguments.get(&tool.main).and_then(Value::as_str).map(str::to_owned);
        let result = result.trim();
        let lost = result.is_empty() || result.starts_with(OMITTED);
        let named =
            |tool: &&Tool| call.tool == tool.name || format!("{}-{}", call.server, call.tool) == tool.name;
        if let Some(tool) = tools.search.as_ref().filter(named) {
            let Some(query) = value(tool) else { return };
            let (hits, text, failed) =
                if lost { (Vec::new(), String::new(), false) } else { read_hits(result, tools) };
            self.events.push(Event::Searched { query, hits, text, failed });
        } else if let Some(tool) = tools.read.as_ref().filter(named) {
            let Some(place) = value(tool) else { return };
            let event = if lost {
                Event::Opened { place, title: String::new(), text: String::new(), next: None, failed: false }
            } else {
                let (title, text, next, failed) = read_document(result);
                Event::Opened { place, title, text, next, failed }
            };
            self.events.push(event);
        }
    }
}

fn texts(message: &Message) -> Vec<&str> {
    message
        .content
        .iter()
        .filter_map(|block| match block {
            core_protocol::ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn is_discard_note(text: &str) -> bool {
    text.len() < 1500 && DISCARDED.iter().any(|words| text.contains(words))
}

/// What a message of the user asks for, where it is not a result.
fn wanted_by(text: &str, question: &str) -> Wanted {
    if text.len() > 20_000 || text.trim_start().starts_with(['{', '[']) {
        return Wanted::Step;
    }
    let lower = text.to_lowercase();
    let no_tools = lower.contains("tool")
        && ["must not", "do not", "don't", "without", "not call", "no tool"]
            .iter()
            .any(|words| lower.contains(words));
    let types = ["incomplete", "blocked", "misdirected", "format_missed"]
        .iter()
        .filter(|kind| lower.contains(**kind))
        .count();
    if no_tools && (types >= 3 || lower.contains("failure type")) {
        return Wanted::FailureSummary;
    }
    let ending =
        ["final answer", "\\boxed", "summar", "sum up", "report"].iter().any(|words| lower.contains(words));
    // A page that was read may say such things too; the prompt also names the box or the question.
    let ours = text.contains("\\boxed") || !question.is_empty() && text.contains(question);
    if no_tools && ending && ours { Wanted::FinalAnswer } else { Wanted::Step }
}

fn split_results(tools: &Toolbox, text: &str, calls: usize) -> Vec<String> {
    let parts = tools.protocol.dialect().split_results(text).unwrap_or_else(|| vec![text]);
    if parts.len() < calls && calls > 1 {
        // Bare texts joined by newlines: only the reader of one call at a time is safe from guessing.
        return vec![text.to_owned(); 1];
    }
    parts.into_iter().map(str::to_owned).collect()
}

/// Keys under which results, texts and the like are found, best first.
const LISTS: &[&str] = &["results", "organic", "hits", "documents", "items", "data", "pages"];
const TITLES: &[&str] = &["title", "name", "heading"];
const PLACES: &[&str] = &["id", "link", "url", "uri", "path", "document_id"];
const SNIPPETS: &[&str] = &["snippet", "text", "content", "description", "extract", "summary", "passage"];
const TEXTS: &[&str] = &[
    "text",
    "content",
    "markdown",
    "extracted_info",
    "body",
    "page_content",
    "scraped_content",
    "result",
    "document",
    "output",
];
const NEXT: &[&str] = &["next_offset", "next", "continue_at", "offset_next"];

fn string<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| value.get(*key).and_then(Value::as_str)).filter(|text| !text.is_empty())
}

fn is_error(text: &str) -> bool {
    let start: String = text.chars().take(60).collect::<String>().to_lowercase();
    ["error", "[error", "unknown tool", "unknown server", "tool call failed", "failed to", "no document has"]
        .iter()
        .any(|words| start.starts_with(words))
}

fn read_hits(result: &str, tools: &Toolbox) -> (Vec<Hit>, String, bool) {
    let Ok(value) = serde_json::from_str::<Value>(result) else {
        let failed = is_error(result);
        return (Vec::new(), if failed { String::new() } else { result.to_owned() }, failed);
    };
    let wanted = tools.read.as_ref().map(|tool| tool.main.as_str());
    let list = match &value {
        Value::Array(list) => Some(list),
        _ => LISTS.iter().find_map(|key| value.get(*key).and_then(Value::as_array)).or_else(|| {
            value
                .as_object()?
                .values()
                .filter_map(Value::as_array)
                .find(|list| list.iter().any(Value::is_object))
        }),
    };
    let Some(list) = list else {
        return (
            Vec::new(),
            string(&value, TEXTS).unwrap_or_default().to_owned(),
            value.get("error").is_some(),
        );
    };
    let hits = list.iter().filter(|entry| entry.is_object()).map(|entry| {
        let place =
            wanted.and_then(|key| entry.get(key).and_then(Value::as_str)).or_else(|| string(entry, PLACES));
        Hit {
            place: place.unwrap_or_default().to_owned(),
            title: string(entry, TITLES).unwrap_or_default().to_owned(),
            snippet: string(entry, SNIPPETS).unwrap_or_default().to_owned(),
        }
    });
    (hits.filter(|hit| !hit.place.is_empty() || !hit.snippet.is_empty()).collect(), String::new(), false)
}

/// Title, text, where it goes on, and whether it is an error.
fn read_document(result: &str) -> (String, String, Option<u64>, bool) {
    let Ok(value) = serde_json::from_str::<Value>(result) else {
        let failed = is_error(result);
        return (String::new(), if failed { String::new() } else { result.to_owned() }, None, failed);
    };
    let title = string(&value, TITLES).unwrap_or_default().to_owned();
    let next = NEXT.iter().find_map(|key| value.get(*key).and_then(Value::as_u64));
    let mut text = match string(&value, TEXTS) {
        Some(text) => text.to_owned(),
        None => {
            let inner = TEXTS.iter().find_map(|key| value.get(*key)).filter(|inner| inner.is_object());
            let mut leaves = String::new();
            collect_leaves(inner.unwrap_or(&value), &mut leaves, 0);
            leaves
        }
    };
    let failed = value.get("success") == Some(&Value::Bool(false)) || string(&value, &["error"]).is_some();
    if failed {
        text.clear();
    }
    (title, text, next, failed)
}

/// The strings of a record that has no text of its own, with their keys.
fn collect_leaves(value: &Value, out: &mut String, depth: usize) {
    if depth > 12 {
        return;
    }
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Object(map) => {
            for (key, inner) in map {
                if inner.is_string() || inner.is_number() {
                    out.push_str(key);
                    out.push_str(": ");
                }
                if let Value::Number(number) = inner {
                    out.push_str(&number.to_string());
                    out.push('\n');
                }
                collect_leaves(inner, out, depth + 1);
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| collect_leaves(inner, out, depth + 1)),
        _ => {}
    }
}
