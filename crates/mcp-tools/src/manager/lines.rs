//! MCP over a pair of byte streams, one JSON-RPC message a line.
//!
//! Decides what happens to lines that are no messages: noise is logged and skipped, bytes that are no
//! UTF-8 are replaced, a response that is too long or does not fit the protocol becomes an error of the
//! call that it answers, so that no call waits for an answer that was thrown away.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;

use super::oversized::IdScanner;
use super::tail::Tail;

/// The longest message that is read, in bytes: what streamable HTTP takes too.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// Bytes that are read at once.
const READ_BUFFER: usize = 64 * 1024;
/// What a buffer that held a large message is shrunk to.
const KEPT_BUFFER: usize = 1024 * 1024;
/// Code of the errors that stand for answers which cannot be used.
pub(crate) const UNUSABLE_ANSWER: i32 = -32000;
/// How the words of such an answer begin; other servers give that code to errors of their own.
pub(crate) const UNUSABLE: &str = "the answer ";

/// The client's end of a line-based session.
#[derive(Debug)]
pub(crate) struct LineTransport<R, W> {
    server: Arc<str>,
    reader: LineReader<R>,
    writer: Arc<Mutex<Option<W>>>,
    noise: Arc<Tail>,
}

impl<R: AsyncRead + Unpin, W> LineTransport<R, W> {
    /// A session with a server of this name; lines that are no messages go to `noise`.
    pub(crate) fn new(server: Arc<str>, reader: R, writer: W, noise: Arc<Tail>) -> Self {
        Self {
            server,
            reader: LineReader::new(reader, MAX_MESSAGE),
            writer: Arc::new(Mutex::new(Some(writer))),
            noise,
        }
    }

    fn read_message(&self, line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
        let line = bare(line);
        if line.is_empty() {
            return None;
        }
        let problem = match serde_json::from_slice(line) {
            Ok(message) => return Some(message),
            Err(_) if std::str::from_utf8(line).is_err() => {
                return self.read_message(String::from_utf8_lossy(line).as_bytes());
            }
            Err(problem) => problem,
        };
        if let Ok(serde_json::Value::Object(fields)) = serde_json::from_slice(line) {
            let id = fields.get("id").and_then(request_id);
            if let Some(id) = id
                && !fields.contains_key("method")
            {
                let text = format!("{UNUSABLE}does not fit the protocol: {problem}");
                return Some(unusable(id, text));
            }
            tracing::debug!(server = %self.server, %problem, "a message that is not understood was skipped");
            return None;
        }
        tracing::debug!(server = %self.server, bytes = line.len(), "a line on stdout is no message");
        self.noise.push(line);
        None
    }
}

/// A line without what some programs put around it: a byte order mark, zero bytes, blanks.
fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let is_filler = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let start = line.iter().position(|byte| !is_filler(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !is_filler(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

fn request_id(value: &serde_json::Value) -> Option<RequestId> {
    match value {
        serde_json::Value::Number(number) => number.as_i64().map(RequestId::Number),
        serde_json::Value::String(text) => Some(RequestId::String(Arc::from(text.as_str()))),
        _ => None,
    }
}

fn unusable(id: RequestId, text: String) -> RxJsonRpcMessage<RoleClient> {
    JsonRpcMessage::error(ErrorData::new(ErrorCode(UNUSABLE_ANSWER), text, None), Some(id))
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let Some(writer) = writer.as_mut() else {
                return Err(io::Error::new(io::ErrorKind::NotConnected, "the session is closed"));
            };
            let written = match writer.write_all(&line).await {
                Ok(()) => writer.flush().await,
                Err(error) => Err(error),
            };
            match written {
                // Nobody reads any longer, which mostly means that the server has ended. What it said
                // before that is still to be read, and the end of its output ends the session.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => written,
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let read = match self.reader.next().await {
                Ok(Some(read)) => read,
                Ok(None) => return None,
                Err(error) => {
                    tracing::debug!(server = %self.server, %error, "reading from the server failed");
                    return None;
                }
            };
            let message = match read {
                Read::Line => {
                    let message = self.read_message(&self.reader.line);
                    self.reader.forget_line();
                    message
                }
                Read::Oversized { id, bytes } => {
                    tracing::warn!(server = %self.server, bytes, "a message was dropped for its length");
                    id.map(|id| {
                        let limit = MAX_MESSAGE / (1024 * 1024);
                        unusable(id, format!("{UNUSABLE}has {bytes} bytes; {limit} MiB can be read at most"))
                    })
                }
            };
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // Dropping the writer is what tells a server that the session is over. A send that is stuck in
        // a full pipe holds the lock for as long as the server does not read; it must not hold us.
        match Arc::clone(&self.writer).try_lock_owned() {
            Ok(mut writer) => drop(writer.take()),
            Err(_) => tracing::debug!(server = %self.server, "the session ended in the middle of a message"),
        }
        Ok(())
    }
}

/// What came off the stream.
#[derive(Debug, PartialEq)]
enum Read {
    /// A whole line is in [`LineReader::line`].
    Line,
    /// A line was longer than the limit and is gone.
    Oversized { id: Option<RequestId>, bytes: usize },
}

/// Reads lines of bounded length. A call to [`LineReader::next`] that is dropped loses nothing.
#[derive(Debug)]
struct LineReader<R> {
    stream: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
    /// The scanner of the line that is being thrown away and the bytes it has had.
    dropping: Option<(IdScanner, usize)>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(stream: R, limit: usize) -> Self {
        Self {
            stream: BufReader::with_capacity(READ_BUFFER, stream),
            line: Vec::new(),
            limit,
            dropping: None,
        }
    }

    /// The next line; none at the end of the stream. An unfinished last line is dropped.
    async fn next(&mut self) -> io::Result<Option<Read>> {
        loop {
            // Nothing is awaited between reading and consuming: that keeps the promise above.
            let available = self.stream.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let newline = available.iter().position(|&byte| byte == b'\n');
            let piece = &available[..newline.unwrap_or(available.len())];
            let taken = piece.len() + usize::from(newline.is_some());
            if let Some((scanner, bytes)) = self.dropping.as_mut() {
                scanner.feed(piece);
                *bytes += piece.len();
            } else if self.line.len() + piece.len() > self.limit {
                let mut scanner = IdScanner::default();
                scanner.feed(&self.line);
                scanner.feed(piece);
                self.dropping = Some((scanner, self.line.len() + piece.len()));
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            self.stream.consume(taken);
            if newline.is_some() {
                return Ok(Some(match self.dropping.take() {
                    Some((scanner, bytes)) => Read::Oversized { id: scanner.finish(), bytes },
                    None => Read::Line,
                }));
            }
        }
    }

    fn forget_line(&mut self) {
        self.line.clear();
        self.line.shrink_to(KEPT_BUFFER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(input: &[u8], limit: usize) -> Vec<String> {
        let mut reader = LineReader::new(input, limit);
        let mut seen = Vec::new();
        while let Some(read) = reader.next().await.unwrap() {
            seen.push(match read {
                Read::Line => String::from_utf8(reader.line.clone()).unwrap(),
                Read::Oversized { id, bytes } => format!("{bytes} bytes for {id:?}"),
            });
            reader.forget_line();
        }
        seen
    }

    #[tokio::test]
    async fn lines_are_bounded() {
        let long = format!("{{\"id\":5,\"result\":\"{}\"}}", "x".repeat(200_000));
        let input = format!("one\n\n{long}\ntwo\nunfinished");
        let seen = read_all(input.as_bytes(), 100_000).await;
        let dropped = format!("{} bytes for Some(Number(5))", long.len());
        assert_eq!(seen, ["one", "", dropped.as_str(), "two"]);
        assert_eq!(read_all(b"12345\n123456\n", 5).await, ["12345", "6 bytes for None"]);
    }

    #[test]
    fn a_line_is_a_message_an_error_or_noise() {
        let transport = LineTransport::new("s".into(), tokio::io::empty(), (), Arc::default());
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}"#, "error -1"),
            (r#"{"jsonrpc":"2.0","id":1,"error":"text instead of an object"}"#, "error -32000"),
            (r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, "error -32000"),
            (r#"{"id":1,"method":7}"#, "nothing"),
            ("Server listening on port 3", "nothing"),
            ("  ", "nothing"),
            ("\u{FEFF}", "nothing"),
            ("\0\0", "nothing"),
            ("\u{FEFF}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\0\r", "response"),
            ("[1,2]", "nothing"),
        ] {
            let read = match transport.read_message(line.as_bytes()) {
                Some(JsonRpcMessage::Response(_)) => "response".to_owned(),
                Some(JsonRpcMessage::Error(error)) => format!("error {}", error.error.code.0),
                Some(other) => format!("{other:?}"),
                None => "nothing".to_owned(),
            };
            assert_eq!(read, expected, "{line}");
        }
        let broken = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xFF\xC3b\"}]}}";
        let read = format!("{:?}", transport.read_message(broken));
        assert!(read.contains("a\u{FFFD}\u{FFFD}b"), "{read}");
        let noise = transport.noise.indented().unwrap();
        assert!(noise.contains("listening on port"), "{noise}");
    }
}
