//! Puts a history into the shape that native tool protocols insist on.
//!
//! Decides the pairing of calls and results: every call of an assistant message is answered right
//! after it, every result answers a call. Where that is not so (an interrupted run, a view that was cut) it is made so,
//! since servers refuse anything else for good.

use std::collections::HashMap;
use std::sync::Arc;

use core_protocol::{ContentBlock, Message, Role};

/// Stands in for a result that is missing.
pub(crate) const NO_RESULT: &str = "No result: the call was interrupted.";

/// One piece of a paired history.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// A message that is neither a result nor a reply with calls.
    Plain(&'a Message),
    /// A reply with calls, and one result for each call, in call order. None: there is no result.
    Calls(&'a Message, Vec<Option<&'a Message>>),
    /// A result without its call, to be told as text.
    Stray(&'a Message),
}

/// Pairs calls and results.
pub(crate) fn pair(messages: &[Arc<Message>]) -> Vec<Turn<'_>> {
    let mut turns = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let [message, after @ ..] = rest {
        rest = after;
        if message.role == Role::Tool {
            turns.push(Turn::Stray(message));
            continue;
        }
        if message.role != Role::Assistant || message.tool_calls.is_empty() {
            turns.push(Turn::Plain(message));
            continue;
        }
        let count = rest.iter().take_while(|message| message.role == Role::Tool).count();
        let (results, after) = rest.split_at(count);
        rest = after;
        let mut slots: HashMap<&str, Vec<usize>> = HashMap::new();
        for (position, call) in message.tool_calls.iter().enumerate().rev() {
            slots.entry(&call.id).or_default().push(position);
        }
        let mut paired: Vec<Option<&Message>> = vec![None; message.tool_calls.len()];
        let mut strays = Vec::new();
        for result in results {
            let slot = slots.get_mut(result.tool_call_id.as_deref().unwrap_or_default()).and_then(Vec::pop);
            match slot.and_then(|slot| paired.get_mut(slot)) {
                Some(place) => *place = Some(result),
                None => strays.push(Turn::Stray(result)),
            }
        }
        turns.push(Turn::Calls(message, paired));
        turns.extend(strays);
    }
    turns
}

/// The text of a message's blocks as a model without media is told: media are named, not shown.
pub(crate) fn text_of(blocks: &[ContentBlock]) -> String {
    let mut text = String::new();
    for block in blocks {
        let line = match block {
            ContentBlock::Text { text } => text.clone(),
            other => match note(other) {
                Some(note) => note,
                None => continue,
            },
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
    }
    text
}

/// What is said about a block that cannot be shown; none for thinking.
pub(crate) fn note(block: &ContentBlock) -> Option<String> {
    match block {
        ContentBlock::Image { .. } => Some("[image: this model does not take pictures]".to_owned()),
        ContentBlock::Audio { .. } => Some("[audio: this model does not take recordings]".to_owned()),
        ContentBlock::Video { .. } => Some("[video: this model does not take videos]".to_owned()),
        ContentBlock::File { uri, media_type } => Some(match media_type {
            Some(media_type) => format!("[file: {uri} ({media_type})]"),
            None => format!("[file: {uri}]"),
        }),
        ContentBlock::Text { .. } | ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. } => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use core_protocol::{Message, Role, ToolCall};

    use super::{Turn, pair};

    fn reply(ids: &[&str]) -> Arc<Message> {
        let mut message = Message::assistant("");
        message.tool_calls = ids
            .iter()
            .map(|id| ToolCall {
                id: (*id).to_owned(),
                server: "s".into(),
                tool: "t".into(),
                arguments: serde_json::Map::new(),
                span: None,
                server_span: None,
                repaired: None,
                provider_data: None,
            })
            .collect();
        Arc::new(message)
    }

    fn result(id: &str, text: &str) -> Arc<Message> {
        let mut message = Message::text(Role::Tool, text);
        message.tool_call_id = Some(id.to_owned());
        Arc::new(message)
    }

    fn show(messages: &[Arc<Message>]) -> String {
        let text = |message: &Message| message.joined_text();
        pair(messages)
            .iter()
            .map(|turn| match turn {
                Turn::Plain(message) => format!("plain {}", text(message)),
                Turn::Stray(message) => format!("stray {}", text(message)),
                Turn::Calls(_, results) => {
                    let results: Vec<_> =
                        results.iter().map(|result| result.map_or_else(|| "-".to_owned(), text)).collect();
                    format!("calls {}", results.join(","))
                }
            })
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[test]
    fn pairs_by_id_and_mends_what_does_not_pair() {
        let user = || Arc::new(Message::user("hi"));
        let check = |messages: &[Arc<Message>], expected: &str| assert_eq!(show(messages), expected);
        check(&[user(), reply(&["a", "b"]), result("b", "2"), result("a", "1")], "plain hi; calls 1,2");
        check(&[user(), reply(&["a", "b"]), result("a", "1"), user()], "plain hi; calls 1,-; plain hi");
        check(&[user(), reply(&["a"])], "plain hi; calls -");
        check(&[result("x", "lost"), user()], "stray lost; plain hi");
        check(&[reply(&["a"]), result("x", "lost"), result("a", "1")], "calls 1; stray lost");
        check(&[reply(&["a", "a"]), result("a", "1"), result("a", "2")], "calls 1,2");
        check(&[reply(&["a"]), result("a", "1"), result("a", "again")], "calls 1; stray again");
    }
}
