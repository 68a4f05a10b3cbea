//! Native calls out of streamed pieces.
//!
//! Decides which call a piece belongs to: by its id first, then by its index, then to the newest call.
//! Servers send index 0 for every call with different ids (Ollama, Grok), no index at all (Gemini), or
//! no ids; an id or a name is set once and never appended to.

use serde_json::Value;

use super::chunk::CallPiece;
use crate::lenient_json::TextOr;
use crate::native_call::RawCall;

/// The provider's own field of a call that must come back with it (Gemini's thought signatures).
pub(super) const EXTRA_CONTENT: &str = "extra_content";

/// Calls that are kept; nobody runs more, and looking each piece's call up stays cheap.
const MOST_CALLS: usize = 1024;

/// The calls of a reply while it streams in.
#[derive(Debug, Default)]
pub(super) struct CallTable {
    calls: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    call: RawCall,
    arguments: JsonEnd,
}

impl CallTable {
    /// Takes in one element of `tool_calls`.
    pub(super) fn take(&mut self, piece: CallPiece<'_>) {
        let id = piece.id.or_empty();
        let name = piece.name();
        let Some(slot) = self.slot(id, piece.index.0, name) else { return };
        if slot.call.id.is_empty() {
            id.clone_into(&mut slot.call.id);
        }
        if slot.call.name.is_empty() {
            name.clone_into(&mut slot.call.name);
        }
        match piece.arguments() {
            TextOr::Text(text) => {
                slot.arguments.feed(text);
                slot.call.arguments.push_str(text);
            }
            TextOr::Other(object @ Value::Object(_)) => {
                slot.call.arguments = object.to_string();
                slot.arguments = JsonEnd { depth: 0, opened: true, ..JsonEnd::default() };
            }
            TextOr::Absent | TextOr::Other(_) => {}
        }
        if let Some(extra) = piece.extra_content.filter(|extra| !extra.is_null()) {
            slot.call.extra.insert(EXTRA_CONTENT.to_owned(), extra);
        }
    }

    /// The calls in the order in which they began; pieces that never got a name are no calls.
    pub(super) fn into_calls(self) -> Vec<RawCall> {
        self.calls.into_iter().map(|slot| slot.call).filter(|call| !call.name.is_empty()).collect()
    }

    fn slot(&mut self, id: &str, index: Option<u64>, name: &str) -> Option<&mut Slot> {
        let newest = |calls: &[Slot], index: Option<u64>| match index {
            Some(index) => calls.iter().rposition(|slot| slot.index == Some(index)),
            None => calls.len().checked_sub(1),
        };
        let found = if id.is_empty() {
            newest(&self.calls, index).filter(|position| {
                // A name on a call that is complete already begins another call.
                name.is_empty()
                    || self.calls.get(*position).is_some_and(|slot| {
                        slot.call.name.is_empty() || (slot.call.name == name && !slot.arguments.is_complete())
                    })
            })
        } else {
            self.calls.iter().rposition(|slot| slot.call.id == id).or_else(|| {
                newest(&self.calls, index).filter(|position| {
                    index.is_some() && self.calls.get(*position).is_some_and(|slot| slot.call.id.is_empty())
                })
            })
        };
        let position = found.unwrap_or(self.calls.len());
        if position == self.calls.len() && position < MOST_CALLS {
            self.calls.push(Slot { index, ..Slot::default() });
        }
        self.calls.get_mut(position)
    }
}

/// Tells whether a JSON object that arrives in pieces has been closed, looking at each byte once.
#[derive(Debug, Default)]
struct JsonEnd {
    depth: usize,
    opened: bool,
    in_string: bool,
    escaped: bool,
}

impl JsonEnd {
    fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    self.opened = true;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.opened && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::super::chunk::CallPiece;
    use super::CallTable;

    #[track_caller]
    fn check(pieces: Value, expected: &[(&str, &str, &str)]) {
        let mut table = CallTable::default();
        for piece in pieces.as_array().unwrap() {
            if let Ok(piece) = CallPiece::deserialize(piece) {
                table.take(piece);
            }
        }
        let calls: Vec<_> =
            table.into_calls().into_iter().map(|call| (call.id, call.name, call.arguments)).collect();
        let calls: Vec<_> = calls.iter().map(|(i, n, a)| (i.as_str(), n.as_str(), a.as_str())).collect();
        assert_eq!(calls, expected);
    }

    fn piece(id: &str, index: Option<u64>, name: &str, arguments: &str) -> Value {
        let mut piece = json!({"function": {"arguments": arguments}});
        if !id.is_empty() {
            piece["id"] = json!(id);
        }
        if let Some(index) = index {
            piece["index"] = json!(index);
        }
        if !name.is_empty() {
            piece["function"]["name"] = json!(name);
        }
        piece
    }

    #[test]
    fn the_usual_way() {
        check(
            json!([
                piece("a", Some(0), "f", ""),
                piece("", Some(0), "", "{\"x\""),
                piece("b", Some(1), "g", ""),
                piece("", Some(1), "", "{}"),
                piece("", Some(0), "", ":1}"),
            ]),
            &[("a", "f", "{\"x\":1}"), ("b", "g", "{}")],
        );
    }

    #[test]
    fn index_always_zero_with_different_ids() {
        check(
            json!([
                piece("a", Some(0), "f", "{}"),
                piece("b", Some(0), "g", "{\"y\":"),
                piece("", Some(0), "", "2}")
            ]),
            &[("a", "f", "{}"), ("b", "g", "{\"y\":2}")],
        );
    }

    #[test]
    fn no_index() {
        check(
            json!([piece("a", None, "f", "{}"), piece("b", None, "f", "{\"n\":1}")]),
            &[("a", "f", "{}"), ("b", "f", "{\"n\":1}")],
        );
        check(
            json!([piece("a", None, "f", "{\"n\""), piece("", None, "", ":1}")]),
            &[("a", "f", "{\"n\":1}")],
        );
    }

    #[test]
    fn no_ids_at_all() {
        check(
            json!([piece("", None, "f", "{}"), piece("", None, "f", "{}")]),
            &[("", "f", "{}"), ("", "f", "{}")],
        );
        check(
            json!([
                piece("", Some(0), "f", "{\"a\":\"}\""),
                piece("", Some(0), "f", "}"),
                piece("", Some(1), "g", "")
            ]),
            &[("", "f", "{\"a\":\"}\"}"), ("", "g", "")],
        );
    }

    #[test]
    fn id_and_name_repeated_in_every_piece_are_set_once() {
        check(
            json!([
                piece("a", Some(0), "f", "{\"n\""),
                piece("a", Some(0), "f", ":1"),
                piece("a", Some(0), "f", "}")
            ]),
            &[("a", "f", "{\"n\":1}")],
        );
    }

    #[test]
    fn an_id_that_comes_late_is_taken() {
        check(json!([piece("", Some(0), "f", ""), piece("a", Some(0), "", "{}")]), &[("a", "f", "{}")]);
    }

    #[test]
    fn arguments_may_be_an_object() {
        check(
            json!([{"id": "a", "function": {"name": "f", "arguments": {"q": "x"}}}]),
            &[("a", "f", "{\"q\":\"x\"}")],
        );
        check(json!([{"index": 0}, {}, {"function": null}, null, 3]), &[]);
    }
}
