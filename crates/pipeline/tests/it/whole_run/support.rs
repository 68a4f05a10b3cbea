//! A model that answers by what it is shown, tools that count, and a folder for the runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use core_protocol::event::{Event, EventBody};
use core_protocol::{Completion, FinishReason, Message, Role, Usage};
use llm_providers::{
    Capabilities, ChatRequest, EventStream, LlmClient, LlmConfig, LlmError, Price, Provider, StreamEvent,
    Tokenizer,
};
use mcp_tools::{ServerSpec, Transport, in_process};
use pipeline::config::{ConfigSources, resolve};
use pipeline::log::RunRecord;
use pipeline::{Interrupted, Opened, Pipeline, PipelineParts, Places, Question, RunReport};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::{self, JsonSchema};
use rmcp::{tool, tool_router};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

/// What the model says to a request.
pub(crate) type Script = dyn Fn(&Shown) -> String + Send + Sync;

/// A request, as far as a script looks.
pub(crate) struct Shown {
    /// Replies of the model that are shown.
    pub(crate) replies: usize,
    pub(crate) system: String,
    pub(crate) first: String,
    pub(crate) last: String,
    /// Of all messages: what differs from one request to the next.
    pub(crate) digest: u32,
    /// Whether a rollback hint stands at the end.
    pub(crate) hinted: bool,
    /// Whether the run shall come to its end.
    pub(crate) hurry: bool,
}

impl Shown {
    /// Whether the final answer is asked for.
    pub(crate) fn is_last(&self) -> bool {
        self.last.contains("\\boxed{")
    }
}

pub(crate) struct Scripted {
    script: Box<Script>,
    pub(crate) requests: Mutex<Vec<ChatRequest>>,
    /// Told to scripts.
    pub(crate) hurry: AtomicBool,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Scripted")
    }
}

#[async_trait]
impl Provider for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn model(&self) -> &str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn tokenizer(&self) -> Tokenizer {
        Tokenizer::QuarterOfBytes
    }

    async fn stream(&self, request: &ChatRequest) -> Result<EventStream, LlmError> {
        let text = |message: &Arc<Message>| message.joined_text();
        let shown = Shown {
            replies: request.messages.iter().filter(|message| message.role == Role::Assistant).count(),
            system: request.system.to_string(),
            first: request.messages.first().map(text).unwrap_or_default(),
            last: request.messages.last().map(text).unwrap_or_default(),
            digest: digest_of(request.messages.iter().map(text)),
            hurry: self.hurry.load(Ordering::Relaxed),
            hinted: request.messages.last().is_some_and(|message| message.content.len() > 1),
        };
        let said = (self.script)(&shown);
        self.requests.lock().unwrap().push(request.clone());
        let completion = Completion {
            message: Message::assistant(said.clone()),
            finish_reason: FinishReason::Stop,
            usage: Some(Usage { input: 1000, output: 10, ..Usage::default() }),
            model: Some("scripted-1".to_owned()),
        };
        let events = vec![Ok(StreamEvent::TextDelta(said)), Ok(StreamEvent::Done(Box::new(completion)))];
        Ok(Box::pin(futures_util::stream::iter(events)))
    }
}

fn digest_of(texts: impl Iterator<Item = String>) -> u32 {
    texts.flat_map(String::into_bytes).fold(1, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)))
}

/// Searches, reads, and does something that must not be done twice.
#[derive(Clone, Default)]
pub(crate) struct Research {
    pub(crate) calls: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Query {
    q: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Mail {
    to: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Page {
    url: String,
    /// Characters of the page.
    size: usize,
}

impl Research {
    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

#[tool_router(server_handler)]
impl Research {
    #[tool(description = "Search.")]
    fn google_search(&self, Parameters(Query { q }): Parameters<Query>) -> String {
        self.note(format!("google_search {q}"));
        format!("{{\"organic\": [{{\"title\": \"About {q}\", \"link\": \"https://example.org/{q}\"}}]}}")
    }

    #[tool(description = "Read a page.")]
    fn scrape_website(&self, Parameters(Page { url, size }): Parameters<Page>) -> String {
        self.note(format!("scrape_website {url}"));
        let words = format!("Of {url} it is said: nothing is \"certain\".\n");
        words.repeat(size / words.len() + 1)
    }

    #[tool(description = "Send a mail.")]
    fn send_mail(&self, Parameters(Mail { to }): Parameters<Mail>) -> String {
        self.note(format!("send_mail {to}"));
        format!("sent to {to}")
    }
}

/// A call in the dialect `mcp_xml`.
pub(crate) fn call(server: &str, tool: &str, arguments: &serde_json::Value) -> String {
    format!(
        "<use_mcp_tool>\n<server_name>{server}</server_name>\n<tool_name>{tool}</tool_name>\n<arguments>\n{arguments}\n</arguments>\n</use_mcp_tool>"
    )
}

pub(crate) fn search(query: &str) -> String {
    call("research", "google_search", &serde_json::json!({ "q": query }))
}

pub(crate) struct Lab {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) model: Arc<Scripted>,
    pub(crate) research: Research,
    sets: Vec<String>,
    made: std::sync::OnceLock<Pipeline>,
}

impl Lab {
    pub(crate) fn new(script: impl Fn(&Shown) -> String + Send + Sync + 'static, sets: &[&str]) -> Self {
        let model = Arc::new(Scripted {
            script: Box::new(script),
            requests: Mutex::default(),
            hurry: AtomicBool::new(false),
        });
        let mut sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        sets.insert(0, "agent.main_agent.tools=[research]".to_owned());
        sets.insert(0, "llm.provider=openai_compatible".to_owned());
        Self {
            dir: tempfile::tempdir().unwrap(),
            model,
            research: Research::default(),
            sets,
            made: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn pipeline(&self) -> &Pipeline {
        self.made.get_or_init(|| self.make())
    }

    fn make(&self) -> Pipeline {
        let resolved =
            resolve(&ConfigSources { sets: self.sets.clone(), ..ConfigSources::default() }).unwrap();
        let path = |name: &str| self.dir.path().join(name);
        let price = Price { input: 1.0, output: 2.0, ..Price::default() };
        let config =
            LlmConfig { max_context_length: Some(1_000_000), price: Some(price), ..LlmConfig::default() };
        let provider: Arc<dyn Provider> = Arc::clone(&self.model) as _;
        let client = LlmClient::with_provider(provider, &config);
        let research = self.research.clone();
        let server = in_process("research", move || research.clone());
        let parts = PipelineParts {
            resolved,
            places: Places {
                here: self.dir.path().into(),
                data: path("data"),
                cache: path("cache"),
                runs: path("runs"),
            },
            configured: vec![ServerSpec::new("research", Transport::InProcess(server))],
            configured_in: "mcp.json".to_owned(),
            limiters: llm_providers::Limiters::default(),
            cassette: None,
        };
        Pipeline::with_client(parts, client)
    }

    pub(crate) async fn ask(&self, question: &str) -> RunReport {
        let question = Question { text: question.to_owned(), ..Question::default() };
        self.pipeline().ask(question, CancellationToken::new(), None).await.unwrap()
    }

    /// Goes on with the run in a directory, which must not be finished.
    pub(crate) async fn resume(&self, dir: &Path) -> RunReport {
        self.pipeline().resume(interrupted(dir), CancellationToken::new(), None).await.unwrap()
    }

    /// Forgets what was asked and called so far.
    pub(crate) fn forget(&self) {
        self.model.requests.lock().unwrap().clear();
        self.research.calls.lock().unwrap().clear();
    }

    pub(crate) fn asked(&self) -> usize {
        self.model.requests.lock().unwrap().len()
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.research.calls.lock().unwrap().clone()
    }
}

#[track_caller]
pub(crate) fn interrupted(dir: &Path) -> Interrupted {
    match Opened::open(dir, false).unwrap() {
        Opened::Interrupted(run) => *run,
        Opened::Finished(_) => panic!("the run is finished"),
    }
}

/// The directory of a run, copied with only the first bytes of its log.
pub(crate) fn cut(run: &Path, bytes: usize, into: &Path) -> PathBuf {
    std::fs::create_dir_all(into.join("blobs")).unwrap();
    let log = std::fs::read(run.join("events.jsonl")).unwrap();
    std::fs::write(into.join("events.jsonl"), &log[..bytes]).unwrap();
    if let Ok(blobs) = std::fs::read_dir(run.join("blobs")) {
        for blob in blobs {
            let blob = blob.unwrap();
            std::fs::copy(blob.path(), into.join("blobs").join(blob.file_name())).unwrap();
        }
    }
    into.to_owned()
}

/// What the run did, in words that are the same each time: the events that count, without times and numbers.
pub(crate) fn essence(record: &RunRecord) -> Vec<String> {
    let told = |event: &Event| {
        let mut value = serde_json::to_value(event).unwrap();
        match &event.body {
            EventBody::RunResumed { .. } | EventBody::LlmRetry { .. } => return None,
            EventBody::RunStarted { .. } => value = serde_json::json!({ "type": "run_started" }),
            EventBody::RunFinished(summary) => {
                value = serde_json::json!({ "answer": summary.answer, "turns": summary.turns, "usage": summary.usage,
                    "calls": summary.tool_calls, "rollbacks": summary.rollbacks, "cost": summary.cost_usd });
            }
            _ => {}
        }
        let fields = value.as_object_mut().unwrap();
        // Token counts learn from what servers say, one call behind or not.
        for name in ["seq", "ts", "run_id", "ms", "params", "estimated", "counts", "before", "after"] {
            fields.shift_remove(name);
        }
        Some(value.to_string())
    };
    record.valid_events().filter_map(told).collect()
}

/// Compares what two runs did and shows the first difference.
#[track_caller]
pub(crate) fn check_same(found: &[String], expected: &[String], place: &str) {
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    if let Some(at) = differs {
        panic!("{place}, event {at}:\n{}\nis not\n{}", found[at], expected[at]);
    }
    assert_eq!(found.len(), expected.len(), "{place}: events");
}

/// Events of each type.
pub(crate) fn count(record: &RunRecord) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in record.valid_events() {
        let value = serde_json::to_value(event).unwrap();
        *counts.entry(value["type"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    counts
}
