//! Speed of the wire: `cargo bench -p llm-providers --bench wire`.
//!
//! Streams are read over a real connection on this machine, from a thread that writes bytes which were
//! made before; so the figures hold everything from the socket to the observer. A second copy of the
//! same bytes is read without looking at them, to show what the connection itself costs.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use core_protocol::{ContentBlock, Message, Role, ToolCall, ToolDefinition};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use llm_providers::{CallEvent, ChatRequest, Environment, LlmClient, LlmConfig, Registry};
use serde_json::{Map, Value, json};

fn main() {
    divan::main();
}

const MEGABYTE: usize = 1_000_000;
const WORDS: [&str; 8] = ["", "The river", " rises", " in", " the", " hills", " north", " of it.\n"];
const SENTENCE: &str = "The river rises in the hills north of the town, and in a wet year it floods the meadows. \
                        \"It always did,\" said the miller; his father had built the wall in 1874.\n";

/// A wire format, by a provider that speaks it.
#[derive(Debug, Clone, Copy)]
enum Format {
    Chat,
    Messages,
    Responses,
}

const FORMATS: [Format; 3] = [Format::Chat, Format::Messages, Format::Responses];

impl Format {
    fn config(self, address: &str) -> LlmConfig {
        let (provider, path) = match self {
            Self::Chat => ("vllm", "/v1"),
            Self::Messages => ("anthropic", ""),
            Self::Responses => ("openai_responses", "/v1"),
        };
        LlmConfig {
            provider: provider.to_owned(),
            model_name: "some-model".to_owned(),
            base_url: Some(format!("http://{address}{path}")),
            api_key: Some("sk-some-key".into()),
            // No counting of tokens beside what is measured.
            max_context_length: Some(100_000_000),
            ..LlmConfig::default()
        }
    }

    /// One piece of text as servers send it.
    fn piece(self, number: usize) -> String {
        // Numbers, as a text that repeats itself is no good reply and is asked for again.
        let word = match number % WORDS.len() {
            0 => format!("{number}. "),
            place => WORDS[place].to_owned(),
        };
        match self {
            Self::Chat => format!(
                "data: {}\n\n",
                json!({"id": "chatcmpl-5b0ae71cfa5d4f2b", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": "some-model",
                    "choices": [{"index": 0, "delta": {"content": word}, "logprobs": null, "finish_reason": null}]})
            ),
            Self::Messages => format!(
                "event: content_block_delta\ndata: {}\n\n",
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}})
            ),
            Self::Responses => format!(
                "event: response.output_text.delta\ndata: {}\n\n",
                json!({"type": "response.output_text.delta", "sequence_number": number, "item_id": "msg_68f0c0a35f588193b7c2c8f2b5b5d0a1",
                    "output_index": 0, "content_index": 0, "delta": word, "logprobs": [], "obfuscation": "aZ3kQp9x"})
            ),
        }
    }

    /// A whole stream of at least so many bytes.
    fn stream(self, bytes: usize) -> String {
        let event = |value: Value| {
            format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
        };
        let (start, end) = match self {
            Self::Chat => (
                String::new(),
                "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n".to_owned(),
            ),
            Self::Messages => (
                event(json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}))
                    + &event(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
                event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}))
                    + &event(json!({"type": "message_stop"})),
            ),
            Self::Responses => (
                event(json!({"type": "response.created", "response": {"status": "in_progress"}})),
                event(json!({"type": "response.completed", "response": {"status": "completed"}})),
            ),
        };
        let mut stream = start;
        let mut number = 0;
        while stream.len() < bytes {
            stream.push_str(&self.piece(number));
            number += 1;
        }
        stream + &end
    }
}

/// Answers every request on every connection with the same bytes, each connection on a thread of its own.
fn serve(body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let answer: Arc<[u8]> = (head + &body).into_bytes().into();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(
                move || while take_request(&stream) && (&stream).write_all(&answer).is_ok() {},
            );
        }
    });
    address
}

/// Reads one request; its head and body are all that comes before the answer.
fn take_request(mut stream: &TcpStream) -> bool {
    let mut request = Vec::new();
    let mut piece = [0u8; 64 * 1024];
    loop {
        if let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
            let length = head
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            if request.len() >= end + 4 + length.unwrap_or(0) {
                return true;
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return false,
            Ok(read) => request.extend_from_slice(&piece[..read]),
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn client(format: Format, address: &str) -> LlmClient {
    Registry::builtin().client(&format.config(address), &Environment::default()).unwrap()
}

mod reading {
    use super::*;

    /// From the socket to the observer.
    #[divan::bench(args = FORMATS)]
    fn event_stream_1mb(bencher: Bencher<'_, '_>, format: Format) {
        let body = format.stream(MEGABYTE);
        let counter = BytesCount::of_str(&body);
        let client = client(format, &serve(body));
        let request = ChatRequest::new("", vec![Arc::new(Message::user("What is it?"))]);
        let runtime = runtime();
        bencher.counter(counter).bench_local(|| {
            runtime.block_on(async {
                let mut pieces = 0usize;
                let observe = &mut |event: CallEvent<'_>| {
                    if let CallEvent::TextDelta(text) = event {
                        pieces += black_box(text).len();
                    }
                };
                client.complete(&request, observe).await.unwrap();
                pieces
            })
        });
    }

    /// The same bytes, only taken from the connection.
    #[divan::bench(args = FORMATS)]
    fn connection_alone_1mb(bencher: Bencher<'_, '_>, format: Format) {
        let body = format.stream(MEGABYTE);
        let counter = BytesCount::of_str(&body);
        let address = serve(body);
        let mut stream = TcpStream::connect(&address).unwrap();
        bencher.counter(counter).bench_local(|| {
            stream.write_all(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n").unwrap();
            let mut piece = [0u8; 64 * 1024];
            let mut left = MEGABYTE;
            while left > 0 {
                left = left.saturating_sub(black_box(stream.read(&mut piece).unwrap()));
            }
            // The head and what the body has beyond a megabyte.
            stream.set_nonblocking(true).unwrap();
            while stream.read(&mut piece).is_ok_and(|read| read > 0) {}
            stream.set_nonblocking(false).unwrap();
        });
    }
}

mod building {
    use super::*;

    /// A history of so many messages of about 2 kB: questions and replies, or calls and their results.
    fn history(messages: usize, native: bool) -> ChatRequest {
        let text = |number: usize| format!("{number}. {}", SENTENCE.repeat(12));
        let messages = (0..messages).map(|number| {
            let mut message = match (number % 2, native) {
                (0, true) if number > 0 => Message::text(Role::Tool, text(number)),
                (0, _) => Message::user(text(number)),
                _ => Message::assistant(text(number)),
            };
            if native && number % 2 == 1 {
                message
                    .content
                    .insert(0, ContentBlock::Thinking { text: SENTENCE.to_owned(), signature: None });
                message.tool_calls.push(ToolCall {
                    id: format!("call_{number}"),
                    server: "tool-search".to_owned(),
                    tool: "search".to_owned(),
                    arguments: Map::from_iter([("query".to_owned(), json!(SENTENCE))]),
                    span: None,
                    server_span: None,
                    repaired: None,
                    provider_data: None,
                });
            } else if message.role == Role::Tool {
                message.tool_call_id = Some(format!("call_{}", number - 1));
            }
            Arc::new(message)
        });
        let mut request = ChatRequest::new(SENTENCE.repeat(20), messages.collect());
        if native {
            request.tools = (0..12)
                .map(|number| ToolDefinition {
                    server: "tool-search".to_owned(),
                    name: format!("search_{number}"),
                    description: SENTENCE.to_owned(),
                    input_schema: json!({"type": "object", "properties": {"query": {"type": "string"}}}),
                })
                .collect();
        }
        request
    }

    fn build(bencher: Bencher<'_, '_>, format: Format, native: bool) {
        let request = history(400, native);
        let client = client(format, "127.0.0.1:9");
        let bytes = client.request_body(&request).unwrap().unwrap().len();
        bencher.counter(BytesCount::new(bytes)).bench(|| client.request_body(black_box(&request)));
    }

    #[divan::bench(args = FORMATS)]
    fn body_of_400_messages(bencher: Bencher<'_, '_>, format: Format) {
        build(bencher, format, false);
    }

    #[divan::bench(args = FORMATS)]
    fn body_of_400_messages_with_native_calls(bencher: Bencher<'_, '_>, format: Format) {
        build(bencher, format, true);
    }
}
