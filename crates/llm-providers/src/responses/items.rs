//! The output items of a response while they stream in.
//!
//! Decides which item a piece belongs to: that of its item id, else that of its output index, else the
//! newest. Items interleave, some servers give them no ids, and some give an item another id in every
//! event. A finished item counts for more than the pieces that came before it.

use core_protocol::{ContentBlock, Message};
use serde_json::{Value, json};

use crate::native_call::{CallReader, RawCall};
use crate::proof::{REASONING_ITEM, seal};

/// Items that are kept; looking each piece's item up stays cheap.
const MOST_ITEMS: usize = 1024;
/// Field of a call's own data that holds the thinking which stood right before it.
pub(super) const REASONING_BEFORE: &str = "reasoning_before";

/// What the items of one kind are made of.
#[derive(Debug)]
pub(super) enum Content {
    /// What the model says.
    Message { text: String, refused: bool },
    /// What it thinks, and the item itself where it is to be sent back.
    Reasoning { text: String, item: Option<Value> },
    /// A call; its id is the call id.
    Call(RawCall),
    /// What is none of ours.
    Other,
}

#[derive(Debug)]
struct Slot {
    id: String,
    index: Option<u64>,
    content: Content,
}

/// The items so far.
#[derive(Debug, Default)]
pub(super) struct ItemTable {
    slots: Vec<Slot>,
}

/// What a finished item brought that its pieces had not.
#[derive(Debug, PartialEq)]
pub(super) enum News {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
}

/// Which item an event is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemRef<'a> {
    /// Empty where there is none.
    pub(super) id: &'a str,
    pub(super) index: Option<u64>,
}

impl ItemTable {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// An item begins.
    pub(super) fn begin(&mut self, index: Option<u64>, item: &Value) {
        let id = word(item, "id");
        if id.is_empty() || !self.slots.iter().any(|slot| slot.id == id) {
            self.add(id, index, Content::of(item));
        }
    }

    /// The content of the item that a piece belongs to; `new` where none of that kind has begun.
    pub(super) fn content(
        &mut self,
        of: ItemRef<'_>,
        fits: fn(&Content) -> bool,
        new: fn() -> Content,
    ) -> Option<&mut Content> {
        let place = match self.find(of).filter(|place| self.fits(*place, fits)) {
            Some(place) => place,
            None => self.add(of.id, of.index, new())?,
        };
        let slot = self.slots.get_mut(place)?;
        if slot.id.is_empty() {
            of.id.clone_into(&mut slot.id);
        }
        Some(&mut slot.content)
    }

    /// An item is finished. Gives what was not known of it.
    pub(super) fn finish(&mut self, index: Option<u64>, item: &Value) -> Option<News> {
        let place = self.find(ItemRef { id: word(item, "id"), index });
        self.put(place, index, item)
    }

    /// The response's own list of items.
    pub(super) fn finish_all(&mut self, output: &[Value]) -> Vec<News> {
        let mut news = Vec::new();
        for (position, item) in output.iter().enumerate() {
            let id = word(item, "id");
            let known = self.slots.iter().position(|slot| !id.is_empty() && slot.id == id);
            let place = known.or_else(|| (position < self.slots.len()).then_some(position));
            news.extend(self.put(place, u64::try_from(position).ok(), item));
        }
        news
    }

    fn put(&mut self, place: Option<usize>, index: Option<u64>, item: &Value) -> Option<News> {
        let finished = Content::of(item);
        let same = place.filter(|place| {
            self.slots.get(*place).is_some_and(|slot| {
                std::mem::discriminant(&slot.content) == std::mem::discriminant(&finished)
            })
        });
        match same.and_then(|place| self.slots.get_mut(place)) {
            Some(slot) => slot.content.complete(finished),
            None => {
                let news = finished.shown();
                self.add(word(item, "id"), index, finished)?;
                news
            }
        }
    }

    fn find(&self, of: ItemRef<'_>) -> Option<usize> {
        let by_id = || self.slots.iter().rposition(|slot| !of.id.is_empty() && slot.id == of.id);
        let by_index = || self.slots.iter().rposition(|slot| of.index.is_some() && slot.index == of.index);
        let newest = || {
            let place = self.slots.len().checked_sub(1).filter(|_| of.index.is_none());
            place.filter(|place| {
                of.id.is_empty() || self.slots.get(*place).is_some_and(|slot| slot.id.is_empty())
            })
        };
        by_id().or_else(by_index).or_else(newest)
    }

    fn fits(&self, place: usize, fits: fn(&Content) -> bool) -> bool {
        self.slots.get(place).is_some_and(|slot| fits(&slot.content))
    }

    fn add(&mut self, id: &str, index: Option<u64>, content: Content) -> Option<usize> {
        let place = self.slots.len();
        if place >= MOST_ITEMS {
            return None;
        }
        self.slots.push(Slot { id: id.to_owned(), index, content });
        Some(place)
    }

    /// The message that the items make. Thinking keeps its place: before the text, or before the call
    /// that it led to; encrypted thinking behind the last call led to nothing, and is refused when it
    /// comes back. The second value: whether the model declined.
    pub(super) fn into_message(self, reader: &CallReader<'_>, mut message: Message) -> (Message, bool) {
        let mut declined = false;
        let mut before: Vec<Value> = Vec::new();
        for slot in self.slots {
            match slot.content {
                Content::Message { text, refused } => {
                    declined |= refused;
                    if !text.is_empty() {
                        message.content.push(ContentBlock::text(text));
                    }
                }
                Content::Reasoning { text, item: Some(item) } if !message.tool_calls.is_empty() => {
                    if !text.is_empty() {
                        message.content.push(ContentBlock::Thinking { text, signature: None });
                    }
                    before.push(item);
                }
                Content::Reasoning { text, item } => {
                    let signature = item.map(|item| seal(REASONING_ITEM, item));
                    if !text.is_empty() || signature.is_some() {
                        message.content.push(ContentBlock::Thinking { text, signature });
                    }
                }
                Content::Call(mut call) if !call.name.is_empty() => {
                    if !before.is_empty() {
                        let items = Value::Array(std::mem::take(&mut before));
                        call.extra.insert(REASONING_BEFORE.to_owned(), items);
                    }
                    let call = reader.read(message.tool_calls.len(), call, |call| {
                        json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments})
                    });
                    message.tool_calls.push(call);
                }
                Content::Call(_) | Content::Other => {}
            }
        }
        (message, declined)
    }
}

impl Content {
    /// What an item holds, as far as it is there.
    fn of(item: &Value) -> Self {
        match word(item, "type") {
            "message" => {
                let mut text = String::new();
                let mut refused = false;
                for part in list(item, "content") {
                    text.push_str(word(part, "text"));
                    refused |= part.get("type").and_then(Value::as_str) == Some("refusal");
                    text.push_str(word(part, "refusal"));
                }
                Self::Message { text, refused }
            }
            "reasoning" => {
                let parts: Vec<&str> = list(item, "summary")
                    .chain(list(item, "content"))
                    .map(|part| word(part, "text"))
                    .filter(|text| !text.is_empty())
                    .collect();
                Self::Reasoning { text: parts.join("\n\n"), item: kept_item(item) }
            }
            "function_call" => {
                let arguments = match item.get("arguments") {
                    Some(Value::String(text)) => text.clone(),
                    Some(object @ Value::Object(_)) => object.to_string(),
                    _ => String::new(),
                };
                let id = match word(item, "call_id") {
                    "" => word(item, "id"),
                    id => id,
                };
                Self::Call(RawCall {
                    id: id.to_owned(),
                    name: word(item, "name").to_owned(),
                    arguments,
                    ..RawCall::default()
                })
            }
            _ => Self::Other,
        }
    }

    /// Takes over what a finished item of the same kind holds. Gives what was not known of it.
    fn complete(&mut self, finished: Self) -> Option<News> {
        match (self, finished) {
            (Self::Message { text, refused }, Self::Message { text: whole, refused: declined }) => {
                *refused |= declined;
                more(text, whole).map(News::Text)
            }
            (Self::Reasoning { text, item }, Self::Reasoning { text: whole, item: whole_item }) => {
                *item = whole_item.or(item.take());
                // Summary and thinking may both have been streamed: what was seen is kept then.
                if text.is_empty() { more(text, whole).map(News::Thinking) } else { None }
            }
            (Self::Call(call), Self::Call(whole)) => {
                for (known, whole) in [
                    (&mut call.id, whole.id),
                    (&mut call.name, whole.name),
                    (&mut call.arguments, whole.arguments),
                ] {
                    if !whole.is_empty() {
                        *known = whole;
                    }
                }
                None
            }
            _ => None,
        }
    }

    fn shown(&self) -> Option<News> {
        match self {
            Self::Message { text, .. } if !text.is_empty() => Some(News::Text(text.clone())),
            Self::Reasoning { text, .. } if !text.is_empty() => Some(News::Thinking(text.clone())),
            _ => None,
        }
    }
}

/// Replaces a text by its whole; gives the end that was missing.
fn more(known: &mut String, whole: String) -> Option<String> {
    if whole.is_empty() || *known == whole {
        return None;
    }
    let missing = whole.strip_prefix(known.as_str()).map(str::to_owned);
    *known = whole;
    missing
}

/// A reasoning item that can be sent back: only its encrypted content tells the server what it was.
/// Fields without a value are left out, as they are refused in requests.
fn kept_item(item: &Value) -> Option<Value> {
    item.get("encrypted_content").and_then(Value::as_str).filter(|content| !content.is_empty())?;
    let fields = item.as_object()?.iter().filter(|(_, value)| !value.is_null());
    Some(Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect()))
}

pub(super) fn word<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}
