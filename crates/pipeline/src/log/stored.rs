//! How an event stands in the stored log: the same JSON as everywhere, with what would be long or written twice
//! replaced by a reference.
//!
//! Decides the references. Each is an object with one of these names, in the place of the value that it stands for:
//!
//! - `{"$blob": sha256, "bytes": n}`: a text of more than 64 KiB, kept in the file of that name in `blobs/`;
//! - `{"$parts": [text | {"$result": seq, "block": i, "bytes": n}, …]}`: a text of a message in pieces; a piece that
//!   is an object is the first `n` bytes of text block `i` of the result in the `tool_call_finished` of that number;
//! - `{"$ids": ["m1", "m3..m57/2", …]}`: a long list of ids; `m3..m57/2` is every second from `m3` up to `m57`;
//! - `{"$literal": value}`: an object of the event itself that has one of these names as a key.
//!
//! Short texts and short lists stand as they are.

use std::collections::VecDeque;

use core_protocol::ContentBlock;
use core_protocol::event::{Event, EventBody};
use serde_json::{Map, Value, json};

/// A result's text shorter than this is written again rather than referred to.
const SHORTEST_REFERENCE: usize = 512;
/// How much of the beginning of a result's text is looked for in a message.
const ANCHOR: usize = 128;
/// A list of at most this many ids is written as it is.
const SHORTEST_IDS: usize = 24;
/// Results that are remembered for the message that holds them.
const REMEMBERED: usize = 64;

/// Keys that mean a reference.
const NAMES: [&str; 4] = ["$blob", "$parts", "$ids", "$literal"];

/// Results whose texts the next message of their agent may hold.
#[derive(Debug, Default)]
pub(super) struct Results(VecDeque<Remembered>);

#[derive(Debug)]
struct Remembered {
    seq: u64,
    agent: String,
    block: usize,
    text: String,
}

impl Results {
    /// Remembers the texts of a result that was written.
    pub(super) fn remember(&mut self, event: &Event) {
        match &event.body {
            EventBody::ToolCallFinished { result, .. } => {
                for (block, content) in result.content.iter().enumerate() {
                    let Some(text) = content.as_text().filter(|text| text.len() >= SHORTEST_REFERENCE) else {
                        continue;
                    };
                    self.0.push_back(Remembered {
                        seq: event.seq,
                        agent: event.agent.clone(),
                        block,
                        text: text.to_owned(),
                    });
                }
                while self.0.len() > REMEMBERED {
                    self.0.pop_front();
                }
            }
            EventBody::LlmRequest { .. } => self.0.retain(|result| result.agent != event.agent),
            _ => {}
        }
    }

    /// The text in pieces, where it holds results of the agent; none where it holds none.
    fn pieces(&self, agent: &str, text: &str) -> Option<Vec<Value>> {
        let mut pieces = Vec::new();
        let mut rest = text;
        for result in self.0.iter().filter(|result| result.agent == agent) {
            let anchor = prefix(&result.text, ANCHOR);
            let Some(at) = rest.find(anchor) else { continue };
            let length = common(&rest[at..], &result.text);
            if length < SHORTEST_REFERENCE {
                continue;
            }
            if at > 0 {
                pieces.push(Value::from(&rest[..at]));
            }
            pieces.push(json!({ "$result": result.seq, "block": result.block, "bytes": length }));
            rest = &rest[at + length..];
        }
        if pieces.is_empty() {
            return None;
        }
        if !rest.is_empty() {
            pieces.push(Value::from(rest));
        }
        Some(pieces)
    }
}

/// At most so many bytes from the beginning.
fn prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Bytes that both begin with, up to the end of a character.
fn common(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    one.floor_char_boundary(same)
}

/// The event as it is stored, where that differs from how it is told; blobs are left to the caller.
pub(super) fn differs(event: &Event, line: &str, results: &Results) -> Option<Value> {
    let long_ids = |ids: &[String]| ids.len() > SHORTEST_IDS;
    let worth = match &event.body {
        EventBody::Message { message, .. } => {
            !results.0.is_empty()
                && message
                    .content
                    .iter()
                    .filter_map(ContentBlock::as_text)
                    .any(|t| t.len() >= SHORTEST_REFERENCE)
        }
        EventBody::LlmRequest { view, omitted, .. } => long_ids(view) || long_ids(omitted),
        _ => false,
    };
    let escaped = NAMES.iter().any(|name| line.contains(&format!("\"{name}\"")));
    if !worth && !escaped {
        return None;
    }
    let mut value = serde_json::to_value(event).ok()?;
    if escaped {
        escape(&mut value);
    }
    match &event.body {
        EventBody::Message { message, .. } => {
            for (index, block) in message.content.iter().enumerate() {
                let pieces = block.as_text().and_then(|text| results.pieces(&event.agent, text));
                if let (Some(pieces), Some(place)) =
                    (pieces, value.pointer_mut(&format!("/message/content/{index}/text")))
                {
                    *place = json!({ "$parts": pieces });
                }
            }
        }
        EventBody::LlmRequest { view, omitted, .. } => {
            for (name, ids) in [("view", view), ("omitted", omitted)] {
                if long_ids(ids)
                    && let Some(place) = value.get_mut(name)
                {
                    *place = json!({ "$ids": ranges(ids) });
                }
            }
        }
        _ => {}
    }
    Some(value)
}

/// Marks objects that would be taken for references.
fn escape(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(fields) => {
            fields.values_mut().for_each(escape);
            if NAMES.iter().any(|name| fields.contains_key(*name)) {
                let inner = std::mem::take(fields);
                fields.insert("$literal".to_owned(), Value::Object(inner));
            }
        }
        _ => {}
    }
}

/// Ids as ranges of equal steps.
fn ranges(ids: &[String]) -> Vec<String> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(first) = ids.get(at) {
        let mut length = 1;
        let mut step = 0;
        if let Some((stem, number)) = numbered(first) {
            let follows = |index: usize| {
                ids.get(index).and_then(|id| numbered(id)).filter(|(s, _)| *s == stem).map(|(_, n)| n)
            };
            if let Some(second) = follows(at + 1).filter(|second| *second > number) {
                step = second - number;
                length = 2;
                let mut expected = second.checked_add(step);
                while expected.is_some() && follows(at + length) == expected {
                    length += 1;
                    expected = expected.and_then(|number| number.checked_add(step));
                }
            }
        }
        if length > 2 {
            let last = &ids[at + length - 1];
            ranges.push(if step == 1 {
                format!("{first}..{last}")
            } else {
                format!("{first}..{last}/{step}")
            });
        } else {
            length = 1;
            ranges.push(first.clone());
        }
        at += length;
    }
    ranges
}

/// An id as what stands before its number, and the number. Only ids that are written back the same.
fn numbered(id: &str) -> Option<(&str, u64)> {
    if id.contains("..") || id.contains('/') {
        return None;
    }
    let stem = id.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &id[stem.len()..];
    let number: u64 = digits.parse().ok()?;
    (number.to_string() == digits).then_some((stem, number))
}

/// The ids that a range stands for; none where it is none.
fn expand(range: &str, ids: &mut Vec<Value>) -> Option<()> {
    let Some((first, rest)) = range.split_once("..") else {
        ids.push(Value::from(range));
        return Some(());
    };
    let (last, step) = rest.split_once('/').unwrap_or((rest, "1"));
    let ((stem, from), (other, to)) = (numbered(first)?, numbered(last)?);
    let step: u64 = step.parse().ok().filter(|step| *step > 0)?;
    if stem != other || to < from || (to - from) / step > 1_000_000 {
        return None;
    }
    ids.extend((0..=(to - from) / step).map(|index| Value::from(format!("{stem}{}", from + index * step))));
    Some(())
}

/// What a reader looks references up in.
pub(super) trait Sources {
    /// The text of a blob, or what is wrong with it.
    fn blob(&self, name: &str, bytes: u64) -> Result<String, Broken>;
    /// Text block `block` of the result in event `seq`.
    fn result(&self, seq: u64, block: usize) -> Option<&str>;
}

/// A reference that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Broken {
    /// A file of `blobs/` is not there or cannot be read.
    MissingBlob(String, String),
    /// A file of `blobs/` does not hold what its name says.
    DamagedBlob(String),
    /// Anything else, in words.
    Reference(String),
}

/// Puts what references stand for in their place.
pub(super) fn restore(value: &mut Value, sources: &dyn Sources) -> Result<(), Broken> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| restore(item, sources)),
        Value::Object(fields) => {
            let Some(name) = NAMES.iter().find(|name| fields.contains_key(**name)) else {
                return fields.values_mut().try_for_each(|value| restore(value, sources));
            };
            *value = match *name {
                "$blob" => blob(fields, sources)?,
                "$parts" => parts(fields, sources)?,
                "$ids" => ids(fields)?,
                _ => {
                    let mut inner = fields.shift_remove("$literal").unwrap_or_default();
                    if let Value::Object(fields) = &mut inner {
                        fields.values_mut().try_for_each(|value| restore(value, sources))?;
                    }
                    inner
                }
            };
            Ok(())
        }
        _ => Ok(()),
    }
}

fn blob(fields: &Map<String, Value>, sources: &dyn Sources) -> Result<Value, Broken> {
    match (fields["$blob"].as_str(), fields.get("bytes").and_then(Value::as_u64)) {
        (Some(name), Some(bytes)) => sources.blob(name, bytes).map(Value::from),
        _ => Err(Broken::Reference("`$blob` without name or length".to_owned())),
    }
}

fn parts(fields: &Map<String, Value>, sources: &dyn Sources) -> Result<Value, Broken> {
    let broken = || Broken::Reference("`$parts` refers to a result that is not there".to_owned());
    let mut text = String::new();
    for part in fields["$parts"].as_array().ok_or_else(broken)? {
        if let Some(piece) = part.as_str() {
            text.push_str(piece);
            continue;
        }
        if part.get("$blob").is_some() {
            let mut piece = part.clone();
            restore(&mut piece, sources)?;
            text.push_str(piece.as_str().ok_or_else(broken)?);
            continue;
        }
        let number = |name: &str| part.get(name).and_then(Value::as_u64).ok_or_else(broken);
        let (seq, block, bytes) = (number("$result")?, number("block")?, number("bytes")?);
        let whole = usize::try_from(block).ok().and_then(|block| sources.result(seq, block));
        let end = usize::try_from(bytes).map_err(|_| broken())?;
        text.push_str(whole.and_then(|whole| whole.get(..end)).ok_or_else(broken)?);
    }
    Ok(Value::from(text))
}

fn ids(fields: &Map<String, Value>) -> Result<Value, Broken> {
    let broken = || Broken::Reference("`$ids` is no list of ids".to_owned());
    let mut ids = Vec::new();
    for range in fields["$ids"].as_array().ok_or_else(broken)? {
        range.as_str().and_then(|range| expand(range, &mut ids)).ok_or_else(broken)?;
    }
    Ok(Value::Array(ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_ranges() {
        for (ids, expected) in [
            ("m1 m2 m3 m4", "m1..m4"),
            ("m1 m3 m5 m7 m8 m9", "m1..m7/2 m8 m9"),
            ("m1 m2 m4", "m1 m2 m4"),
            ("m1 s2.m1 s2.m2 s2.m3 m2", "m1 s2.m1..s2.m3 m2"),
            ("a b c", "a b c"),
            ("m01 m02 m03", "m01 m02 m03"),
            ("m3 m2 m1", "m3 m2 m1"),
            (
                "m18446744073709551613 m18446744073709551614 m18446744073709551615",
                "m18446744073709551613..m18446744073709551615",
            ),
            ("", ""),
        ] {
            let ids: Vec<String> = ids.split_whitespace().map(str::to_owned).collect();
            let ranges = ranges(&ids);
            assert_eq!(ranges.join(" "), expected);
            let mut value = json!({ "$ids": ranges });
            restore(&mut value, &Nothing).unwrap();
            assert_eq!(value, json!(ids));
        }
        for broken in ["m1..x5", "m1..m0", "m1..m5/0", "m1..m99999999"] {
            assert!(restore(&mut json!({ "$ids": [broken] }), &Nothing).is_err(), "{broken}");
        }
    }

    struct Nothing;
    impl Sources for Nothing {
        fn blob(&self, name: &str, _bytes: u64) -> Result<String, Broken> {
            Err(Broken::DamagedBlob(name.to_owned()))
        }
        fn result(&self, _seq: u64, _block: usize) -> Option<&str> {
            None
        }
    }

    #[test]
    fn objects_that_look_like_references_come_back() {
        for value in [
            json!({"arguments": {"$blob": "x", "bytes": 1}}),
            json!({"a": [{"$literal": {"$ids": ["m1"]}}], "b": {"$parts": 1, "c": {"$blob": 2}}}),
            json!({"$schema": "x", "$ref": "y"}),
        ] {
            let mut stored = value.clone();
            escape(&mut stored);
            restore(&mut stored, &Nothing).unwrap();
            assert_eq!(stored, value);
        }
    }
}
