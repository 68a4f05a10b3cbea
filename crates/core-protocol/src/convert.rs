//! Conversion of histories: from one spelling of calls to another, to native calls and back.
//!
//! Decides how calls and results are rewritten. Everything else of a message stays as it is: text,
//! `<think>` spans, media, and blocks that could not be read.

use crate::{ContentBlock, Dialect, Message, ParseOptions, Role, SegmentKind, ToolCall, parse_reply};

/// What stands for the result of a call whose result is part of another's.
const SHARED_RESULT: &str = "The result is given together with that of the first call.";

/// A text-protocol history in another dialect: calls in assistant messages and the results in the user
/// messages behind them are written anew.
#[must_use]
pub fn convert_history(messages: &[Message], from: &ParseOptions<'_>, to: &dyn Dialect) -> Vec<Message> {
    let mut converted = Vec::with_capacity(messages.len());
    let mut open: Vec<ToolCall> = Vec::new();
    for message in messages {
        let mut message = message.clone();
        match message.role {
            Role::Assistant => open = rewrite_calls(&mut message, from, to),
            Role::User if !open.is_empty() => rewrite_results(&mut message, &open, from.dialect, to),
            _ => {}
        }
        if message.role != Role::Assistant {
            open.clear();
        }
        converted.push(message);
    }
    converted
}

/// Writes the calls of an assistant message in the other dialect, and gives them.
fn rewrite_calls(message: &mut Message, from: &ParseOptions<'_>, to: &dyn Dialect) -> Vec<ToolCall> {
    let mut calls = Vec::new();
    for block in &mut message.content {
        let ContentBlock::Text { text } = block else { continue };
        let reply = parse_reply(text, from);
        if reply.calls.is_empty() {
            continue;
        }
        let mut rewritten = String::with_capacity(text.len());
        for segment in &reply.segments {
            match segment.kind {
                SegmentKind::Call(index) => {
                    if let Some(call) = reply.calls.get(index) {
                        rewritten.push_str(&to.render_call(call));
                    }
                }
                _ => rewritten.push_str(segment.span.of(text)),
            }
        }
        *text = rewritten;
        calls.extend(reply.calls);
    }
    calls
}

fn rewrite_results(message: &mut Message, calls: &[ToolCall], from: &dyn Dialect, to: &dyn Dialect) {
    let text = message.content.iter_mut().find_map(|block| match block {
        ContentBlock::Text { text } => Some(text),
        _ => None,
    });
    let Some(text) = text else { return };
    let results = results_of(text, calls, from);
    let results: Vec<(&ToolCall, String)> = calls.iter().zip(results).collect();
    *text = to.render_results(&results);
}

/// The texts of the results: one for each call if they can be told apart, else one for all.
fn results_of(text: &str, calls: &[ToolCall], dialect: &dyn Dialect) -> Vec<String> {
    match dialect.split_results(text) {
        Some(texts) if texts.len() == calls.len() => texts.into_iter().map(str::to_owned).collect(),
        Some(texts) => vec![texts.join("\n")],
        None => vec![text.to_owned()],
    }
}

/// A text-protocol history with native calls: assistant messages carry [`Message::tool_calls`], each
/// result is a message of [`Role::Tool`], `<think>` spans become thinking blocks.
///
/// Ids that the parser made up (`call_0`…) are numbered through the history, so that they are unique.
/// Where results cannot be told apart, the first call gets them all and the others a word about it.
#[must_use]
pub fn history_to_native(messages: &[Message], from: &ParseOptions<'_>) -> Vec<Message> {
    let mut converted = Vec::with_capacity(messages.len());
    let mut open: Vec<ToolCall> = Vec::new();
    let mut numbered = 0usize;
    for message in messages {
        match message.role {
            Role::Assistant => {
                let mut native = Message::new(Role::Assistant, Vec::new());
                for block in &message.content {
                    match block {
                        ContentBlock::Text { text } => take_apart(text, from, &mut native, &mut numbered),
                        other => native.content.push(other.clone()),
                    }
                }
                native.tool_calls.extend(message.tool_calls.iter().cloned());
                open = native.tool_calls.clone();
                converted.push(native);
            }
            Role::User if !open.is_empty() => {
                let texts = results_of(&message.joined_text(), &open, from.dialect);
                for (index, call) in open.iter().enumerate() {
                    let text = texts.get(index).map_or(SHARED_RESULT, String::as_str);
                    converted.push(Message {
                        tool_call_id: Some(call.id.clone()),
                        name: Some(crate::native::function_name(&call.server, &call.tool)),
                        ..Message::text(Role::Tool, text)
                    });
                }
                open.clear();
                let media: Vec<ContentBlock> = message
                    .content
                    .iter()
                    .filter(|block| !matches!(block, ContentBlock::Text { .. }))
                    .cloned()
                    .collect();
                if !media.is_empty() {
                    converted.push(Message::new(Role::User, media));
                }
            }
            _ => {
                open.clear();
                converted.push(message.clone());
            }
        }
    }
    converted
}

/// Puts the pieces of a text into an assistant message.
fn take_apart(text: &str, from: &ParseOptions<'_>, native: &mut Message, numbered: &mut usize) {
    let reply = parse_reply(text, from);
    let thinking = reply.thinking(text);
    if !thinking.trim().is_empty() {
        native.content.push(ContentBlock::Thinking { text: thinking.trim().to_owned(), signature: None });
    }
    let said = reply.text(text);
    if !said.trim().is_empty() {
        native.content.push(ContentBlock::text(said.trim()));
    }
    for (index, mut call) in reply.calls.into_iter().enumerate() {
        if call.id == format!("call_{index}") {
            call.id = format!("call_{numbered}");
        }
        *numbered += 1;
        call.span = None;
        call.server_span = None;
        native.tool_calls.push(call);
    }
}

/// A history with native calls as text: calls are written at the end of the assistant's text, and the
/// results of one turn make one user message. Thinking blocks stay blocks.
#[must_use]
pub fn history_from_native(messages: &[Message], to: &dyn Dialect) -> Vec<Message> {
    let mut converted: Vec<Message> = Vec::with_capacity(messages.len());
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut waiting = messages.iter().peekable();
    while let Some(message) = waiting.next() {
        match message.role {
            Role::Assistant => {
                calls.clone_from(&message.tool_calls);
                converted.push(with_written_calls(message, to));
            }
            Role::Tool => {
                let mut turn = vec![message];
                while let Some(next) = waiting.next_if(|next| next.role == Role::Tool) {
                    turn.push(next);
                }
                converted.push(joined_results(&turn, &calls, to));
            }
            _ => converted.push(message.clone()),
        }
    }
    converted
}

fn with_written_calls(message: &Message, to: &dyn Dialect) -> Message {
    let mut message = message.clone();
    let calls = std::mem::take(&mut message.tool_calls);
    if calls.is_empty() {
        return message;
    }
    let written: Vec<String> = calls.iter().map(|call| to.render_call(call)).collect();
    let written = written.join("\n");
    match message.content.last_mut() {
        Some(ContentBlock::Text { text }) if !text.is_empty() => {
            text.push_str("\n\n");
            text.push_str(&written);
        }
        Some(ContentBlock::Text { text }) => *text = written,
        _ => message.content.push(ContentBlock::text(written)),
    }
    message
}

/// The results of one turn, in the order of the calls as far as they are known.
fn joined_results(turn: &[&Message], calls: &[ToolCall], to: &dyn Dialect) -> Message {
    let position = |message: &Message| {
        calls.iter().position(|call| message.tool_call_id.as_deref() == Some(call.id.as_str()))
    };
    let mut turn = turn.to_vec();
    turn.sort_by_key(|message| position(message).unwrap_or(usize::MAX));
    let unknown = ToolCall::new("", "", serde_json::Map::new());
    let results: Vec<(&ToolCall, String)> = turn
        .iter()
        .map(|message| {
            let call = position(message).and_then(|index| calls.get(index)).unwrap_or(&unknown);
            (call, message.joined_text())
        })
        .collect();
    let mut content = vec![ContentBlock::text(to.render_results(&results))];
    for message in &turn {
        content.extend(
            message.content.iter().filter(|block| !matches!(block, ContentBlock::Text { .. })).cloned(),
        );
    }
    Message::new(Role::User, content)
}
