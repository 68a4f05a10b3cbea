//! A model server that answers at once: a real HTTP server on loopback that streams a script. A reply depends on the
//! request alone, so any number of conversations can go on at the same time.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

/// Bytes of text that one event of a stream carries, about a token or two.
const PIECE: usize = 12;

/// What a reply's tool call is.
#[derive(Clone, Copy)]
pub struct Call {
    /// The tool's server.
    pub server: &'static str,
    /// The tool.
    pub tool: &'static str,
    /// Its arguments in this turn, JSON.
    pub arguments: fn(usize) -> String,
}

/// A search in the library that comes with the program.
pub const SEARCH: Call = Call {
    server: "library",
    tool: "search_library",
    arguments: |turn| json!({"q": format!("Kepler {turn}")}).to_string(),
};

/// A thing to do, noted in the planner.
pub const PLAN: Call = Call {
    server: "task_planner",
    tool: "add_todo",
    arguments: |turn| json!({"titles": [format!("look at source {turn}")]}).to_string(),
};

/// A server, for as long as this program runs.
pub struct Model {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
}

impl Model {
    /// Calls the tool in so many turns, then says that it knows enough, then answers with the number of the question
    /// (`number<7>` anywhere in the request), or 42.
    pub fn start(turns: usize, call: Call) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let requests = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&requests);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || serve(connection, &counter, turns, call));
            }
        });
        Ok(Self { address, requests })
    }

    /// What a client is told.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Requests that were answered so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

fn serve(mut connection: TcpStream, requests: &AtomicU64, turns: usize, call: Call) {
    // Answers are written whole; waiting for more of them would only delay them.
    let _ = connection.set_nodelay(true);
    let mut bytes = Vec::new();
    while let Some(body) = read_request(&mut connection, &mut bytes) {
        requests.fetch_add(1, Ordering::Relaxed);
        if connection.write_all(&response(&reply(&body, turns, call))).is_err() {
            return;
        }
    }
}

/// The text of the reply to a request.
fn reply(body: &str, turns: usize, call: Call) -> String {
    // Quotation marks inside of a text are escaped, so this stands only where a message begins.
    let turn = body.matches("\"role\":\"assistant\"").count();
    if turn > turns {
        let number = body.split_once("number<").and_then(|(_, rest)| rest.split_once('>'));
        return format!("The answer is \\boxed{{{}}}", number.map_or("42", |(number, _)| number));
    }
    if turn == turns {
        return "I have seen enough to answer.".to_owned();
    }
    let Call { server, tool, arguments } = call;
    let arguments = arguments(turn);
    format!(
        "Step {turn} looks for another part of what is asked; what is known so far does not settle it.\n\n\
         <use_mcp_tool>\n<server_name>{server}</server_name>\n<tool_name>{tool}</tool_name>\n<arguments>\n{arguments}\n\
         </arguments>\n</use_mcp_tool>"
    )
}

/// The reply as a stream, with its head.
fn response(text: &str) -> Vec<u8> {
    let mut body = String::new();
    let mut event = |delta: serde_json::Value, end: Option<&str>| {
        let chunk = json!({"id": "r", "object": "chat.completion.chunk", "model": "scripted",
                           "choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
        body.push_str(&format!("data: {chunk}\n\n"));
    };
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE));
        event(json!({"content": piece}), None);
        rest = after;
    }
    event(json!({}), Some("stop"));
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}});
    body.push_str(&format!("data: {usage}\n\ndata: [DONE]\n\n"));
    let mut whole = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    whole.push_str(&body);
    whole.into_bytes()
}

/// The body of the next request; none at the end of the connection.
fn read_request(connection: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<String> {
    let mut piece = [0; 64 * 1024];
    loop {
        if let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let length = content_length(&bytes[..head]);
            // The head is searched for once; the body is only waited for.
            let end = head + 4 + length;
            while bytes.len() < end {
                match connection.read(&mut piece) {
                    Ok(0) | Err(_) => return None,
                    Ok(read) => bytes.extend_from_slice(&piece[..read]),
                }
            }
            let rest = bytes.split_off(end);
            let body = String::from_utf8_lossy(&bytes[head + 4..]).into_owned();
            *bytes = rest;
            return Some(body);
        }
        match connection.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}
