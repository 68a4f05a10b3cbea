//! OpenRouter's `reasoning_details`: thinking that must come back exactly as it came.
//!
//! Decides how the pieces of a stream become the entries that a whole reply would have held: text grows,
//! other fields are set once, what is encrypted is never joined.

use serde_json::{Map, Value};

/// Fields that arrive in pieces.
const GROWING: &[&str] = &["text", "summary"];

/// The entries so far.
#[derive(Debug, Default)]
pub(super) struct DetailList {
    entries: Vec<Map<String, Value>>,
}

impl DetailList {
    /// Takes entries in. `whole`: they come all at once and are complete.
    pub(super) fn take(&mut self, pieces: Vec<Value>, whole: bool) {
        for piece in pieces {
            let Value::Object(piece) = piece else { continue };
            match self.entries.last_mut().filter(|last| !whole && continues(last, &piece)) {
                Some(last) => grow(last, piece),
                None => self.entries.push(piece),
            }
        }
    }

    /// The thinking that an entry holds in the clear.
    pub(super) fn text_of(entry: &Value) -> Option<&str> {
        GROWING.iter().find_map(|field| entry.get(*field)?.as_str()).filter(|text| !text.is_empty())
    }

    /// The entries, in order.
    pub(super) fn into_values(self) -> Vec<Value> {
        self.entries.into_iter().map(Value::Object).collect()
    }
}

/// Whether a piece belongs to the entry before it.
fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let same = |name: &str| last.get(name) == piece.get(name);
    let differ = |name: &str| match (last.get(name), piece.get(name)) {
        (Some(one), Some(other)) => !one.is_null() && !other.is_null() && one != other,
        _ => false,
    };
    same("type") && !differ("index") && !differ("id") && !piece.contains_key("data")
}

fn grow(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (last.get_mut(&name), value) {
            (Some(Value::String(grown)), Value::String(more)) if GROWING.contains(&name.as_str()) => {
                grown.push_str(&more);
            }
            (Some(known), _) if !known.is_null() => {}
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::DetailList;

    #[test]
    fn pieces_become_the_entries_of_a_whole_reply() {
        let check = |pieces: Value, expected: Value| {
            let mut list = DetailList::default();
            for piece in pieces.as_array().unwrap() {
                list.take(vec![piece.clone()], false);
            }
            assert_eq!(Value::Array(list.into_values()), expected);
        };
        check(
            json!([
                {"type": "reasoning.text", "text": "I ", "index": 0, "format": "anthropic-claude-v1", "signature": null},
                {"type": "reasoning.text", "text": "see.", "index": 0},
                {"type": "reasoning.text", "signature": "c2ln", "index": 0},
                {"type": "reasoning.encrypted", "data": "YQ==", "id": "rs_1", "index": 0},
                {"type": "reasoning.encrypted", "data": "Yg==", "id": "rs_1", "index": 0},
            ]),
            json!([
                {"type": "reasoning.text", "text": "I see.", "index": 0, "format": "anthropic-claude-v1", "signature": "c2ln"},
                {"type": "reasoning.encrypted", "data": "YQ==", "id": "rs_1", "index": 0},
                {"type": "reasoning.encrypted", "data": "Yg==", "id": "rs_1", "index": 0},
            ]),
        );
        check(
            json!([{"type": "reasoning.summary", "summary": "a", "index": 0}, {"type": "reasoning.summary", "summary": "b", "index": 1}]),
            json!([{"type": "reasoning.summary", "summary": "a", "index": 0}, {"type": "reasoning.summary", "summary": "b", "index": 1}]),
        );
    }

    #[test]
    fn entries_of_a_whole_reply_are_kept_apart() {
        let mut list = DetailList::default();
        let entry = json!({"type": "reasoning.text", "text": "a", "index": 0});
        list.take(vec![entry.clone(), entry.clone(), json!(3)], true);
        assert_eq!(list.into_values(), [entry.clone(), entry]);
    }
}
