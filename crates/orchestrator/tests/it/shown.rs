//! Messages of a request in short lines, and the order that they must have.

use std::collections::BTreeSet;
use std::sync::Arc;

use core_protocol::{ContentBlock, DialectName, Message, ParseOptions, Role, SegmentKind, parse_reply};
use llm_providers::ToolProtocol;

use crate::script::describe;

/// What stands in the place of a result that is not sent.
pub(crate) const OMITTED: &str = "Tool result is omitted to save tokens.";

/// The order that chat templates and native providers insist on.
pub(crate) fn check_order(messages: &[Arc<Message>], prefixed: bool, protocol: ToolProtocol) {
    let shown = || messages.iter().map(|message| show(message)).collect::<Vec<_>>().join("\n");
    assert!(!messages.is_empty(), "an empty request");
    assert_eq!(messages[0].role, Role::User, "a request begins with the task:\n{}", shown());
    if !prefixed {
        assert_ne!(messages[messages.len() - 1].role, Role::Assistant, "nothing to answer:\n{}", shown());
    }
    match protocol {
        ToolProtocol::Text => {
            for (index, message) in messages.iter().enumerate() {
                let expected = if index % 2 == 0 { Role::User } else { Role::Assistant };
                assert_eq!(message.role, expected, "roles do not alternate:\n{}", shown());
            }
        }
        ToolProtocol::Native => check_native_order(messages, &shown()),
    }
}

fn check_native_order(messages: &[Arc<Message>], shown: &str) {
    let mut seen = BTreeSet::new();
    let mut index = 0;
    while let Some(message) = messages.get(index) {
        index += 1;
        assert_ne!(message.role, Role::Tool, "a result without its call:\n{shown}");
        for call in &message.tool_calls {
            let answer = messages.get(index).filter(|answer| answer.role == Role::Tool);
            let answered = answer.and_then(|answer| answer.tool_call_id.as_deref());
            assert_eq!(answered, Some(call.id.as_str()), "a call without its result:\n{shown}");
            assert!(seen.insert(call.id.clone()), "the id {} is used twice:\n{shown}", call.id);
            index += 1;
        }
    }
}

/// One message in one line.
pub(crate) fn show(message: &Message) -> String {
    let text = message.joined_text();
    let mut shown = match message.role {
        Role::System => "system:".to_owned(),
        Role::User => "user:".to_owned(),
        Role::Assistant => "assistant:".to_owned(),
        Role::Tool => format!("tool {}:", message.tool_call_id.as_deref().unwrap_or("?")),
    };
    if !message.joined_thinking().is_empty() {
        shown.push_str(&format!(" {{{}}}", message.joined_thinking()));
    }
    if text == OMITTED {
        shown.push_str(" (omitted)");
    } else if message.role == Role::Assistant {
        shown.push_str(&calls_shortened(&text));
    } else if !text.is_empty() {
        shown.push_str(&format!(" {}", shortened(&text)));
    }
    for call in &message.tool_calls {
        shown.push_str(&format!(" [{} {}]", call.id, describe(&call.server, &call.tool, &call.arguments)));
    }
    for block in &message.content {
        match block {
            ContentBlock::Image { .. } => shown.push_str(" <image>"),
            ContentBlock::Audio { .. } => shown.push_str(" <audio>"),
            ContentBlock::Video { .. } => shown.push_str(" <video>"),
            ContentBlock::File { uri, .. } => shown.push_str(&format!(" <file {uri}>")),
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::RedactedThinking { .. } => {}
        }
    }
    shown
}

fn calls_shortened(text: &str) -> String {
    let parsed = parse_reply(text, &ParseOptions::new(DialectName::McpXml.dialect()));
    let mut shown = String::new();
    for segment in &parsed.segments {
        match segment.kind {
            SegmentKind::Call(index) => {
                let call = &parsed.calls[index];
                shown.push_str(&format!(" [{}]", describe(&call.server, &call.tool, &call.arguments)));
            }
            _ => {
                let piece = shortened(segment.span.of(text));
                if !piece.is_empty() {
                    shown.push_str(&format!(" {piece}"));
                }
            }
        }
    }
    shown
}

fn shortened(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &flat[..end]),
        None => flat,
    }
}
