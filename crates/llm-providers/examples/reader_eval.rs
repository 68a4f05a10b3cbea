//! Measures the extractive reader on a question set: a plain search over a folder of Markdown files, or over a
//! file of JSON lines with `id`, `title` and `text`, answers its calls through the real provider trait.
//!
//! ```text
//! cargo run --release -p llm-providers --example reader_eval -- QUESTIONS.jsonl CORPUS… [--half even|odd] [--failures]
//! ```
//!
//! A question is a line `{"q": "…", "a": ["answer", "other spelling"], "kind": "single|two|none"}`; `none` marks a
//! question that the corpus does not answer.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use core_protocol::{Message, Role, ToolDefinition, last_boxed};
use futures_util::StreamExt;
use llm_providers::reader::ReaderProvider;
use llm_providers::{ChatRequest, Provider, StreamEvent};
use serde_json::{Value, json};

const FINAL: &str = "The search is over. Sum up and give the final answer to the question below. You must not call \
any tool now. Put the answer itself into \\boxed{}.\n\nThe question:\n\n";

struct Entry {
    id: String,
    title: String,
    text: String,
}

/// A plain BM25 index over whole documents.
struct Index {
    entries: Vec<Entry>,
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    average: f64,
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(|word| {
        let lower = word.to_lowercase();
        let short = lower
            .strip_suffix("ing")
            .or_else(|| lower.strip_suffix("ed"))
            .or_else(|| lower.strip_suffix('s'));
        short.filter(|stem| stem.len() > 3).map_or(lower.clone(), str::to_owned)
    })
}

impl Index {
    fn new(entries: Vec<Entry>) -> Self {
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let mut counts: HashMap<String, f64> = HashMap::new();
            let mut length = 0.0;
            for word in words(&entry.text) {
                *counts.entry(word).or_default() += 1.0;
                length += 1.0;
            }
            for word in words(&entry.title) {
                *counts.entry(word).or_default() += 2.0;
            }
            for (word, count) in counts {
                postings.entry(word).or_default().push((at, count));
            }
            lengths.push(length);
        }
        let average = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        Self { entries, postings, lengths, average }
    }

    fn search(&self, query: &str, limit: usize) -> Vec<(usize, f64)> {
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for word in words(query) {
            let Some(list) = self.postings.get(&word) else { continue };
            let n = self.entries.len() as f64;
            let idf = ((n - list.len() as f64 + 0.5) / (list.len() as f64 + 0.5) + 1.0).ln();
            for (at, count) in list {
                let norm = 1.2 * (0.25 + 0.75 * self.lengths[*at] / self.average);
                *scores.entry(*at).or_default() += idf * count * 2.2 / (count + norm);
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.truncate(limit);
        ranked
    }

    fn call(&self, tool: &str, arguments: &serde_json::Map<String, Value>) -> String {
        if tool == "search_library" {
            let query = arguments.get("q").and_then(Value::as_str).unwrap_or_default();
            let wanted: Vec<String> = words(query).collect();
            let results: Vec<Value> = self
                .search(query, 10)
                .into_iter()
                .map(|(at, score)| {
                    let entry = &self.entries[at];
                    json!({"id": entry.id, "title": entry.title, "source": "local", "snippet": snippet(&entry.text, &wanted), "score": score})
                })
                .collect();
            return json!({ "results": results }).to_string();
        }
        let id = arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        match self.entries.iter().find(|entry| entry.id == id) {
            Some(entry) => json!({"id": id, "title": entry.title, "text": entry.text}).to_string(),
            None => format!("Error: no document has the id {id}"),
        }
    }
}

/// About 300 characters with most of the wanted words.
fn snippet(text: &str, wanted: &[String]) -> String {
    let all: Vec<&str> = text.split_whitespace().collect();
    let window = 50.min(all.len());
    let (mut best, mut best_count) = (0, 0);
    for start in (0..=all.len() - window).step_by(10) {
        let count = all[start..start + window]
            .iter()
            .filter(|word| words(word).any(|stem| wanted.contains(&stem)))
            .count();
        if count > best_count {
            (best, best_count) = (start, count);
        }
    }
    all[best..best + window].join(" ")
}

fn load(path: &str) -> Result<Vec<Entry>, Box<dyn Error>> {
    let mut entries = Vec::new();
    if std::fs::metadata(path)?.is_dir() {
        for file in std::fs::read_dir(path)? {
            let file = file?.path();
            if file.extension().is_some_and(|ending| ending == "md") {
                let text = std::fs::read_to_string(&file)?;
                let title = text.lines().next().unwrap_or_default().trim_start_matches('#').trim().to_owned();
                let id = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                entries.push(Entry { id, title, text });
            }
        }
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        return Ok(entries);
    }
    for line in std::fs::read_to_string(path)?.lines() {
        let value: Value = serde_json::from_str(line)?;
        let get = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        entries.push(Entry { id: get("id"), title: get("title"), text: get("text") });
    }
    Ok(entries)
}

fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str, properties: Value, required: Value| ToolDefinition {
        server: "library".to_owned(),
        name: name.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object", "properties": properties, "required": required}),
    };
    vec![
        tool("search_library", json!({"q": {"type": "string"}, "num": {"type": "integer"}}), json!(["q"])),
        tool(
            "read_document",
            json!({"id": {"type": "string"}, "offset": {"type": "integer"}}),
            json!(["id"]),
        ),
    ]
}

async fn ask(request: &ChatRequest) -> Result<Message, Box<dyn Error>> {
    let mut stream = ReaderProvider::new().stream(request).await.map_err(|error| format!("{error:?}"))?;
    while let Some(event) = stream.next().await {
        if let StreamEvent::Done(completion) = event.map_err(|error| format!("{error:?}"))? {
            return Ok(completion.message);
        }
    }
    Err("the stream ended without a completion".into())
}

struct Outcome {
    boxed: String,
    reply: String,
    turns: usize,
    trace: String,
}

async fn run(index: &Index, question: &str) -> Result<Outcome, Box<dyn Error>> {
    let mut request = ChatRequest::new("", vec![Arc::new(Message::user(question))]);
    request.tools = tools().into();
    let mut trace = String::new();
    let mut turns = 0;
    loop {
        let message = ask(&request).await?;
        turns += 1;
        writeln!(trace, "  | {}", message.joined_text().replace('\n', "\n  | "))?;
        let calls = message.tool_calls.clone();
        request.messages.push(Arc::new(message));
        if calls.is_empty() || turns > 20 {
            break;
        }
        for call in calls {
            let result = index.call(&call.tool, &call.arguments);
            writeln!(trace, "  > {} {}", call.tool, Value::Object(call.arguments.clone()))?;
            let mut answer = Message::text(Role::Tool, result);
            answer.tool_call_id = Some(call.id);
            request.messages.push(Arc::new(answer));
        }
    }
    request.messages.push(Arc::new(Message::user(format!("{FINAL}{question}"))));
    let reply = ask(&request).await?.joined_text();
    let boxed = last_boxed(&reply).unwrap_or_default().to_owned();
    Ok(Outcome { boxed, reply, turns, trace })
}

fn normal(text: &str) -> String {
    let kept: String = text
        .to_lowercase()
        .replace(',', "")
        .chars()
        .map(|c| if c.is_alphanumeric() || c == '.' { c } else { ' ' })
        .collect();
    kept.split_whitespace()
        .filter(|word| !matches!(*word, "the" | "a" | "an"))
        .collect::<Vec<_>>()
        .join(" ")
        .trim_matches('.')
        .to_owned()
}

#[derive(Default)]
struct Figures {
    asked: usize,
    exact: usize,
    quoted: usize,
    declined: usize,
    turns: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let failures = arguments
        .iter()
        .position(|argument| argument == "--failures")
        .map(|at| arguments.remove(at))
        .is_some();
    let half = arguments.iter().position(|argument| argument == "--half").map(|at| {
        arguments.remove(at);
        arguments.remove(at)
    });
    let only = arguments.iter().position(|argument| argument == "--only").map(|at| {
        arguments.remove(at);
        arguments.remove(at)
    });
    let (questions, corpora) = arguments.split_first().ok_or("which questions?")?;
    let mut entries = Vec::new();
    for path in corpora {
        entries.extend(load(path)?);
    }
    let index = Index::new(entries);
    let mut figures: BTreeMap<String, Figures> = BTreeMap::new();
    let started = Instant::now();
    let mut out = String::new();
    for (number, line) in std::fs::read_to_string(questions)?.lines().enumerate() {
        if half.as_deref().is_some_and(|half| (number % 2 == 0) != (half == "even")) || line.trim().is_empty()
        {
            continue;
        }
        let value: Value = serde_json::from_str(line)?;
        let question = value["q"].as_str().unwrap_or_default();
        if only.as_deref().is_some_and(|words| !question.contains(words)) {
            continue;
        }
        let kind = value["kind"].as_str().unwrap_or("single").to_owned();
        let gold: Vec<String> =
            value["a"].as_array().into_iter().flatten().filter_map(Value::as_str).map(normal).collect();
        let outcome = run(&index, question).await?;
        let answer = normal(&outcome.boxed);
        let declined = answer == "unknown";
        let exact = gold.contains(&answer);
        let reply = normal(outcome.reply.split("\\boxed").next().unwrap_or_default());
        let quoted = !declined && gold.iter().any(|answer| reply.contains(answer.as_str()));
        let entry = figures.entry(kind.clone()).or_default();
        entry.asked += 1;
        entry.exact += usize::from(exact);
        entry.quoted += usize::from(quoted);
        entry.declined += usize::from(declined);
        entry.turns += outcome.turns;
        let good = if kind == "none" { declined } else { exact };
        if failures && !good {
            writeln!(
                out,
                "\n[{kind}] {question}\n  wanted {:?}\n  got {:?}\n{}  = {}",
                value["a"],
                outcome.boxed,
                outcome.trace,
                outcome.reply.replace('\n', "\n  = ")
            )?;
        }
    }
    for (kind, figure) in &figures {
        let percent = |count: usize| 100.0 * count as f64 / figure.asked.max(1) as f64;
        writeln!(
            out,
            "{kind:8} {:4} asked  exact {:5.1} %  quoted {:5.1} %  declined {:5.1} %  {:.1} turns",
            figure.asked,
            percent(figure.exact),
            percent(figure.quoted),
            percent(figure.declined),
            figure.turns as f64 / figure.asked.max(1) as f64
        )?;
    }
    writeln!(out, "{:.2} s", started.elapsed().as_secs_f64())?;
    use std::io::Write as _;
    std::io::stdout().write_all(out.as_bytes())?;
    Ok(())
}
