//! A model server that does what a test says: a real HTTP server on 127.0.0.1 with scripted replies.
//!
//! Decides nothing by itself. It speaks three wire formats: a text reply is written as chat-completion
//! chunks, as Messages events where the request's path ends in `/messages`, or as Responses events where
//! it ends in `/responses`; where a request does not ask to stream, [`Reply::text`] is one JSON object.
//! Every request is recorded whole. Needs only `tokio` (net, io-util, rt, sync, time) and `serde_json`;
//! include it from any crate:
//!
//! ```ignore
//! #[path = "../../llm-providers/tests/support/scripted_server.rs"]
//! mod scripted_server;
//! use scripted_server::{Reply, ScriptedServer};
//!
//! let server = ScriptedServer::start(vec![
//!     Reply::status(429).header("retry-after", "1"),
//!     Reply::text("Hello.").usage(12, 3),
//!     Reply::text("").tool_call("call_1", "search-web", r#"{"q":"x"}"#),
//!     Reply::text("never whole").cut_after(40),
//!     Reply::text("never comes").stall_after(0),
//! ])
//! .await;
//! // … run against server.base_url() …
//! assert_eq!(server.requests()[0].body["model"], "some-model");
//! ```
//!
//! After the last reply of a list every further request gets status 500 with the words `the script is
//! over`; use [`ScriptedServer::start_with`] to decide by the request instead. Dropping the server ends it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[path = "scripted_wire.rs"]
mod scripted_wire;
use scripted_wire::{Chat, Wire, event};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null where it is none.
    pub body: Value,
    /// When it was read.
    pub at: Instant,
    /// Which connection it came over, from 0.
    pub connection: usize,
}

impl Request {
    /// A header's value, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The content of the last message or input item, where that is a string.
    pub fn last_content(&self) -> &str {
        ["messages", "input"]
            .iter()
            .find_map(|field| self.body[*field].as_array())
            .and_then(|m| m.last())
            .and_then(|m| m["content"].as_str())
            .unwrap_or("")
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// The body is complete.
    Whole,
    /// The connection is closed after so many bytes of the body.
    Cut(usize),
    /// Nothing more comes after so many bytes of the body; the connection stays open.
    Stall(usize),
    /// The connection is closed before the status line.
    Drop,
}

#[derive(Debug, Clone)]
enum Body {
    Bytes(Vec<u8>),
    Chat { reply: Chat, stream: Option<bool> },
}

/// What the server does with one request.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Body,
    end: End,
    /// Bytes written at once.
    piece: usize,
    /// Pause before the body, and before each piece of it.
    delay: Duration,
    pause: Duration,
    /// Written again and again, at this interval, while the reply is stalled.
    keep_alive: Option<(Vec<u8>, Duration)>,
}

impl Reply {
    fn new(status: u16, content_type: &str, body: Body) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            body,
            end: End::Whole,
            piece: usize::MAX,
            delay: Duration::ZERO,
            pause: Duration::ZERO,
            keep_alive: None,
        }
    }

    /// A reply of the model with this text, streamed if the request asks for it.
    pub fn text(text: impl Into<String>) -> Self {
        let reply = Chat { text: text.into(), ..Chat::default() };
        Self::new(200, "text/event-stream", Body::Chat { reply, stream: None })
    }

    /// As [`Reply::text`], streamed always.
    pub fn sse_text(text: impl Into<String>) -> Self {
        let reply = Chat { text: text.into(), ..Chat::default() };
        Self::new(200, "text/event-stream", Body::Chat { reply, stream: Some(true) })
    }

    /// As [`Reply::text`], as one JSON object always.
    pub fn json_text(text: impl Into<String>) -> Self {
        let reply = Chat { text: text.into(), ..Chat::default() };
        Self::new(200, "application/json", Body::Chat { reply, stream: Some(false) })
    }

    /// A bad status with an empty body; see [`Reply::body`].
    pub fn status(status: u16) -> Self {
        Self::new(status, "application/json", Body::Bytes(Vec::new()))
    }

    /// 200 with this JSON.
    pub fn json(value: &Value) -> Self {
        Self::new(200, "application/json", Body::Bytes(value.to_string().into_bytes()))
    }

    /// 200 with these bytes as an event stream, just as they are.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", Body::Bytes(bytes.into()))
    }

    /// 200 with these objects as the data of events, and `[DONE]`.
    pub fn chunks(values: &[Value]) -> Self {
        let mut text: String = values.iter().map(|value| format!("data: {value}\n\n")).collect();
        text.push_str("data: [DONE]\n\n");
        Self::raw(text)
    }

    /// 200 with named events; each object's `type` is its name.
    pub fn events(values: &[Value]) -> Self {
        Self::raw(values.iter().map(event).collect::<String>())
    }

    /// Closes the connection without an answer.
    pub fn drop_connection() -> Self {
        Self { end: End::Drop, ..Self::status(500) }
    }

    /// Sets a header, in place of one of that name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body, just as it is.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Body::Bytes(body.into());
        self
    }

    /// Tokens of prompt and reply, told in the last chunk.
    #[must_use]
    pub fn usage(self, input: u64, output: u64) -> Self {
        self.chat(|chat| chat.usage = Some((input, output, 0)))
    }

    /// As [`Reply::usage`]; `cached` of the prompt's tokens came from a cache.
    #[must_use]
    pub fn usage_cached(self, input: u64, output: u64, cached: u64) -> Self {
        self.chat(|chat| chat.usage = Some((input, output, cached)))
    }

    /// The finish reason, in the words of the wire format (`length`, `max_tokens`…).
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.chat(|chat| chat.finish = Some(reason.into()))
    }

    /// Thinking outside the text.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.chat(|chat| chat.reasoning = text.into())
    }

    /// A native call; `arguments` is JSON text.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, arguments: &str) -> Self {
        self.chat(|chat| chat.calls.push((id.into(), name.into(), arguments.into())))
    }

    /// Closes the connection after so many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.end = End::Cut(bytes);
        self
    }

    /// Goes silent after so many bytes of the body, with the connection open.
    #[must_use]
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.end = End::Stall(bytes);
        self
    }

    /// While stalled, writes these bytes at this interval.
    #[must_use]
    pub fn keep_alive(mut self, bytes: impl Into<Vec<u8>>, every: Duration) -> Self {
        self.keep_alive = Some((bytes.into(), every));
        self
    }

    /// Waits before the status line.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Writes the body in pieces of so many bytes, with a pause before each.
    #[must_use]
    pub fn pieces(mut self, bytes: usize, pause: Duration) -> Self {
        self.piece = bytes.max(1);
        self.pause = pause;
        self
    }

    /// The body as it would be written for a request.
    pub fn rendered(&self, request: &Request) -> Vec<u8> {
        match &self.body {
            Body::Bytes(bytes) => bytes.clone(),
            Body::Chat { reply, stream } => {
                let streams = stream.unwrap_or_else(|| request.body["stream"] == json!(true));
                match Wire::of(&request.path) {
                    wire if streams => reply.streamed(wire),
                    wire => reply.whole(wire).to_string(),
                }
                .into_bytes()
            }
        }
    }

    fn chat(mut self, change: impl FnOnce(&mut Chat)) -> Self {
        match &mut self.body {
            Body::Chat { reply, .. } => change(reply),
            Body::Bytes(_) => panic!("only a text reply has usage, calls and the like"),
        }
        self
    }
}

type Script = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// The server. Ends when dropped.
pub struct ScriptedServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    count: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl ScriptedServer {
    /// Answers with these replies, in order.
    pub async fn start(replies: Vec<Reply>) -> Self {
        let replies = Mutex::new(replies.into_iter());
        Self::start_with(move |_| {
            replies.lock().unwrap().next().unwrap_or_else(|| Reply::status(500).body("the script is over"))
        })
        .await
    }

    /// Answers each request with what the function says.
    pub async fn start_with(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (counter, count) = watch::channel(0);
        let counter = Arc::new(counter);
        let script: Script = Arc::new(script);
        let recorded = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { break };
                let (script, recorded, counter) =
                    (Arc::clone(&script), Arc::clone(&recorded), Arc::clone(&counter));
                connections.spawn(async move {
                    let record = |request: &Request| {
                        recorded.lock().unwrap().push(request.clone());
                        counter.send_modify(|count| *count += 1);
                    };
                    let _ = serve(stream, number, &script, &record).await;
                });
            }
        });
        Self { address, requests, count, task }
    }

    /// The address for `llm.base_url` of every provider but Anthropic's: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The address without a path, for `llm.base_url` of an Anthropic provider.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// All requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The bodies of all requests so far.
    pub fn bodies(&self) -> Vec<Value> {
        self.requests().into_iter().map(|request| request.body).collect()
    }

    /// Waits until so many requests have arrived.
    pub async fn wait_for_requests(&self, count: usize) {
        self.count.clone().wait_for(|seen| *seen >= count).await.unwrap();
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    script: &Script,
    record: &(dyn Fn(&Request) + Sync),
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer, connection).await? {
        let reply = script(&request);
        record(&request);
        if !write_reply(&mut stream, &reply, &request).await? {
            return Ok(());
        }
    }
    Ok(())
}

async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    connection: usize,
) -> std::io::Result<Option<Request>> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or("").split(' ');
    let (method, path) = (words.next().unwrap_or("").to_owned(), words.next().unwrap_or("").to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse::<usize>().ok())
        .unwrap_or(0);
    let body_end = head_end + 4 + length;
    while buffer.len() < body_end {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = serde_json::from_slice(&buffer[head_end + 4..body_end]).unwrap_or(Value::Null);
    buffer.drain(..body_end);
    Ok(Some(Request { method, path, headers, body, at: Instant::now(), connection }))
}

/// Whether the connection can be used again.
async fn write_reply(stream: &mut TcpStream, reply: &Reply, request: &Request) -> std::io::Result<bool> {
    if reply.delay > Duration::ZERO {
        tokio::time::sleep(reply.delay).await;
    }
    let body = reply.rendered(request);
    let shown = match reply.end {
        End::Drop => return Ok(false),
        End::Whole => body.len(),
        End::Cut(bytes) | End::Stall(bytes) => bytes.min(body.len()),
    };
    let mut head = format!("HTTP/1.1 {} Scripted\r\ntransfer-encoding: chunked\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    for piece in body[..shown].chunks(reply.piece.min(body.len().max(1))) {
        if reply.pause > Duration::ZERO {
            tokio::time::sleep(reply.pause).await;
        }
        write_chunk(stream, piece).await?;
    }
    match reply.end {
        End::Whole => {
            stream.write_all(b"0\r\n\r\n").await?;
            Ok(true)
        }
        End::Cut(_) | End::Drop => Ok(false),
        End::Stall(_) => {
            let mut nothing = [0u8; 1];
            loop {
                let (bytes, every) =
                    reply.keep_alive.clone().unwrap_or((Vec::new(), Duration::from_secs(3600)));
                tokio::select! {
                    // The client has gone: so do we.
                    _ = stream.read(&mut nothing) => return Ok(false),
                    () = tokio::time::sleep(every) => {}
                }
                write_chunk(stream, &bytes).await?;
            }
        }
    }
}

async fn write_chunk(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
    stream.write_all(bytes).await?;
    stream.write_all(b"\r\n").await?;
    stream.flush().await
}
