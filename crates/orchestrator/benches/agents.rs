//! What the loop itself costs: the time of a turn as a run grows longer, and many agents in one process.
//!
//! The model is a server on loopback that answers at once, the tool returns 4 KB at once, every event is written as
//! JSON to nowhere. Each line is a figure with its unit and its aim, between tabs:
//!
//!     cargo bench -p orchestrator --bench agents
//!
//! A thousand agents need a thousand connections at each end: raise the limit on open files first (`ulimit -n 8192`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark reports and may fail"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use core_protocol::event::EventBody;
use core_protocol::{DialectName, ToolDefinition, ToolResult};
use llm_providers::{Environment, LlmClient, LlmConfig, ToolProtocol};
use mcp_tools::ToolOutcome;
use orchestrator::journal::NoJournal;
use orchestrator::{
    Agent, AgentConfig, AgentRole, Driver, EventSink, Finding, Machine, ModelFacts, Prompts, RunClock, Setup,
    SinkError, Stamp, Task, Tools,
};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Turns of the single runs.
const LENGTHS: [u32; 4] = [50, 100, 200, 400];
/// Agents at once, and the turns of each.
const AGENTS: usize = 1_000;
const TURNS: u32 = 20;

fn main() {
    let server = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = server.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    server.spawn(serve(listener));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client(&url);
        // The first run loads the tokenizer's tables.
        one(&client, 5).await;
        for turns in LENGTHS {
            let cost = one(&client, turns).await;
            let cost = cost.as_secs_f64() * 1000.0;
            println!("own time of a turn, run of {turns} turns\t{cost:.3}\tms\tat most 0.7");
        }
        many(&client).await;
    });
}

/// Own time of a turn: what is left of the wall time without waiting for the model and for tools.
async fn one(client: &LlmClient, turns: u32) -> Duration {
    let progress = AtomicU32::new(0);
    let summary = run(client, turns, &progress).await;
    assert_eq!(summary.turns, turns);
    let waited = Duration::from_millis(summary.llm_ms + summary.tool_ms);
    Duration::from_millis(summary.wall_ms).saturating_sub(waited) / turns
}

async fn many(client: &LlmClient) {
    let before = memory("VmRSS");
    let progress: Arc<Vec<AtomicU32>> = Arc::new((0..AGENTS).map(|_| AtomicU32::new(0)).collect());
    let slowest_at_first_end = Arc::new(AtomicU64::new(u64::MAX));
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..AGENTS {
        let (client, progress) = (client.clone(), Arc::clone(&progress));
        let slowest_at_first_end = Arc::clone(&slowest_at_first_end);
        tasks.spawn(async move {
            let summary = run(&client, TURNS, &progress[index]).await;
            let slowest = progress.iter().map(|turns| turns.load(Ordering::Relaxed)).min().unwrap_or(0);
            // Only the first to end sets it.
            let unset = u64::MAX;
            let _ = slowest_at_first_end.compare_exchange(
                unset,
                u64::from(slowest),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            summary.turns
        });
    }
    let mut turns = 0u64;
    while let Some(done) = tasks.join_next().await {
        turns += u64::from(done.expect("an agent ends"));
    }
    let took = began.elapsed();
    let (wall, memory) = (took.as_secs_f64(), memory("VmHWM") / 1024);
    println!("{AGENTS} agents of {TURNS} turns in one process: wall time\t{wall:.2}\ts");
    println!("  a turn of any of them\t{:.3}\tms", wall * 1000.0 / turns as f64);
    println!("  most memory, model server included\t{memory}\tMB\tat most 1000");
    println!("  memory before they began\t{}\tMB", before / 1024);
    println!(
        "  turns of {TURNS} that the slowest had made when the first ended\t{}\tturns",
        slowest_at_first_end.load(Ordering::Relaxed)
    );
}

async fn run(client: &LlmClient, turns: u32, progress: &AtomicU32) -> core_protocol::event::RunSummary {
    let config = AgentConfig { keep_tool_result: 5, ..AgentConfig::default() };
    let capabilities = client.capabilities();
    let setup = Setup {
        role: AgentRole { max_turns: turns, ..AgentRole::default() },
        config: Arc::new(config.clone()),
        prompts: Arc::new(Texts),
        agent: Agent::Main,
        tools: PageTool.definitions(),
        sub_agents: Arc::from([]),
        protocol: ToolProtocol::Text,
        dialect: DialectName::McpXml.dialect(),
        starts_in_thinking: false,
        model: ModelFacts {
            assistant_prefix: capabilities.assistant_prefix,
            images: capabilities.images,
            audio: capabilities.audio,
            max_context_length: client.max_context_length(),
            max_tokens: client.max_tokens(),
        },
        params: client.describe(),
    };
    let mut machine = Machine::new(setup, Task::question("What is asked here?"));
    let driver = Driver {
        client,
        tools: &PageTool,
        journal: &NoJournal,
        sink: &Counting { progress },
        cancel: CancellationToken::new(),
        limits: config.limits,
        agent: "main",
        started: Instant::now(),
        clock: RunClock::default(),
        sub_agents: None,
    };
    driver.drive(&mut machine).await
}

fn client(url: &str) -> LlmClient {
    let config = LlmConfig {
        provider: "openai_compatible".to_owned(),
        model_name: "scripted".to_owned(),
        base_url: Some(url.to_owned()),
        max_context_length: Some(10_000_000),
        ..LlmConfig::default()
    };
    LlmClient::from_config(&config, &Environment::default()).expect("a client")
}

/// A figure of this process in kilobytes.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|value| value.parse().ok()).unwrap_or(0)
}

struct PageTool;

#[async_trait]
impl Tools for PageTool {
    fn definitions(&self) -> Arc<[ToolDefinition]> {
        Arc::from([ToolDefinition {
            server: "web".into(),
            name: "read_page".into(),
            description: "Read a page.".into(),
            input_schema: json!({"type": "object", "properties": {"url": {"type": "string"}}}),
        }])
    }

    async fn call(
        &self,
        _: &str,
        _: &str,
        arguments: Map<String, Value>,
        _: &CancellationToken,
    ) -> ToolOutcome {
        let text = format!("{} {}", arguments["url"], "A sentence of the page. ".repeat(170));
        ToolOutcome { result: ToolResult::text(text), failure: None }
    }

    fn is_repeatable(&self, _: &str, _: &str) -> bool {
        true
    }
}

/// Writes every event to nowhere and counts the turns.
struct Counting<'a> {
    progress: &'a AtomicU32,
}

impl EventSink for Counting<'_> {
    fn emit(&self, stamp: Stamp<'_>, body: EventBody) -> Result<(), SinkError> {
        if body.is_stored() {
            serde_json::to_writer(std::io::sink(), &body).map_err(|error| SinkError(error.to_string()))?;
        }
        self.progress.store(stamp.turn, Ordering::Relaxed);
        Ok(())
    }
}

struct Texts;

impl answer_generator::EndingPrompts for Texts {
    fn final_answer(&self, question: &str) -> String {
        format!("Give the answer in a box: {question}")
    }
    fn final_report(&self, question: &str) -> String {
        question.to_owned()
    }
    fn sub_agent_report(&self, subtask: &str) -> String {
        subtask.to_owned()
    }
    fn failure_summary(&self) -> String {
        String::new()
    }
    fn failure_summary_prefix(&self) -> String {
        String::new()
    }
    fn next_task(&self, question: &str, _: &[String]) -> String {
        question.to_owned()
    }
}

impl Prompts for Texts {
    fn system(&self, tool_section: &str) -> String {
        tool_section.to_owned()
    }
    fn rollback_hint(&self, _: core_protocol::event::RollbackReason, detail: &str) -> String {
        detail.to_owned()
    }
    fn sub_agent_task(&self, subtask: &str) -> String {
        subtask.to_owned()
    }
    fn findings(&self, _: &[Finding]) -> String {
        String::new()
    }
    fn compression(&self, _: u64) -> String {
        String::new()
    }
    fn compressed(&self, summary: &str) -> String {
        summary.to_owned()
    }
    fn compressed_go_on(&self) -> String {
        String::new()
    }
}

/// A model that asks for another page in every reply, and gives a box where one is asked for.
async fn serve(listener: TcpListener) {
    static PAGE: AtomicU64 = AtomicU64::new(0);
    while let Ok((connection, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut connection = connection;
            let mut bytes = Vec::new();
            while let Some(wants_box) = request(&mut connection, &mut bytes).await {
                let text = if wants_box {
                    "\\boxed{42}".to_owned()
                } else {
                    let page = PAGE.fetch_add(1, Ordering::Relaxed);
                    format!(
                        "<use_mcp_tool>\n<server_name>web</server_name>\n<tool_name>read_page</tool_name>\n\
                         <arguments>\n{{\"url\": \"https://example.org/{page}\"}}\n</arguments>\n</use_mcp_tool>"
                    )
                };
                let chunk = json!({
                    "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 100, "completion_tokens": 10}
                });
                let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                if connection.write_all(format!("{head}{body}").as_bytes()).await.is_err() {
                    break;
                }
            }
        });
    }
}

/// Reads one request: whether it asks for a box; none at the end of the connection.
async fn request(connection: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<bool> {
    let mut piece = [0; 16 * 1024];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length: usize = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .and_then(|value| value.trim().parse().ok())
                .unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let rest = bytes.split_off(end + 4 + length);
                let wants_box = bytes.windows(23).any(|window| window == b"Give the answer in a bo");
                *bytes = rest;
                return Some(wants_box);
            }
        }
        match connection.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}
