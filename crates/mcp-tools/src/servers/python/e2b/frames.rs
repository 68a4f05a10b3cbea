//! Messages of a stream in the Connect protocol: a byte of flags, a length of four bytes, JSON.
//!
//! Decides what a stream of a process's events says in the end; a stream that is cut says what came before.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

/// Flag of the message that ends a stream.
const END: u8 = 2;

/// One message as it is sent.
pub(super) fn framed(message: &Value) -> Vec<u8> {
    let json = message.to_string().into_bytes();
    let mut out = vec![0];
    out.extend_from_slice(&u32::try_from(json.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(json);
    out
}

/// What a process wrote and how it ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) output: String,
    /// None: nothing was heard of its end.
    pub(super) exit_code: Option<i64>,
    /// What went wrong with the stream.
    pub(super) problem: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message {
    event: Event,
    error: Option<Failure>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Event {
    data: Option<Data>,
    end: Option<End>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Data {
    stdout: Option<String>,
    stderr: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct End {
    /// Left out where it is 0.
    exit_code: i64,
    error: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Failure {
    code: String,
    message: String,
}

/// Reads a whole stream.
pub(super) fn read(mut stream: &[u8]) -> Ran {
    let mut ran = Ran::default();
    while let Some((head, rest)) = stream.split_at_checked(5) {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some((body, rest)) = rest.split_at_checked(length) else { break };
        stream = rest;
        let Ok(message) = serde_json::from_slice::<Message>(body) else { continue };
        if let Some(data) = message.event.data {
            for piece in [data.stdout, data.stderr].into_iter().flatten() {
                let bytes = STANDARD.decode(piece).unwrap_or_default();
                ran.output.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        if let Some(end) = message.event.end {
            ran.exit_code = Some(end.exit_code);
            // A status other than 0 is told as an error as well.
            ran.problem = end.error.filter(|problem| !problem.starts_with("exit status"));
        }
        if head[0] & END != 0
            && let Some(Failure { code, message }) = message.error
        {
            ran.problem = Some(format!("{code}: {message}"));
        }
    }
    ran
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn streams_are_read_to_their_end() {
        let mut stream = framed(&json!({ "event": { "start": { "pid": 7 } } }));
        stream.extend(framed(&json!({ "event": { "data": { "stdout": STANDARD.encode("out ") } } })));
        stream.extend(framed(&json!({ "event": { "data": { "stderr": STANDARD.encode("err") } } })));
        stream.extend(framed(
            &json!({ "event": { "end": { "exitCode": 3, "exited": true, "error": "exit status 3" } } }),
        ));
        stream.extend([2, 0, 0, 0, 2, b'{', b'}']);
        assert_eq!(read(&stream), Ran { output: "out err".into(), exit_code: Some(3), problem: None });
        assert_eq!(read(&stream[..stream.len() / 2]).exit_code, None);
        let mut refused = framed(&json!({ "error": { "code": "not_found", "message": "no bash" } }));
        refused[0] = END;
        assert_eq!(read(&refused).problem.as_deref(), Some("not_found: no bash"));
        assert_eq!(read(b"\x00\xff\xff\xff\xff{"), Ran::default());
    }
}
