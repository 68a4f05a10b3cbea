//! Writes the results of a turn into the history: one user message in text protocols, one tool message a call
//! with native calls.

use core_protocol::{ContentBlock, Dialect, Message, Role, ToolCall, ToolResult, render_results};
use llm_providers::ToolProtocol;

use super::state::TurnCalls;

/// How results are written.
#[derive(Clone, Copy)]
pub(crate) struct ResultStyle<'a> {
    pub(crate) protocol: ToolProtocol,
    pub(crate) dialect: &'a dyn Dialect,
    pub(crate) images: bool,
    pub(crate) audio: bool,
    pub(crate) scrape_limit: Option<usize>,
}

/// The messages that hold a turn's results.
pub(crate) fn messages(turn: &TurnCalls, style: ResultStyle<'_>) -> Vec<Message> {
    let mut texts = Vec::with_capacity(turn.results.len());
    let mut media = Vec::with_capacity(turn.results.len());
    for (planned, result) in turn.calls.iter().zip(&turn.results) {
        let (text, blocks) = split(result, style);
        texts.push(cut_scraped(&planned.call, text, style.scrape_limit));
        media.push(blocks);
    }
    match style.protocol {
        ToolProtocol::Text => vec![text_message(turn, texts, media, style)],
        ToolProtocol::Native => native_messages(turn, texts, media),
    }
}

fn text_message(
    turn: &TurnCalls,
    texts: Vec<String>,
    media: Vec<Vec<ContentBlock>>,
    style: ResultStyle<'_>,
) -> Message {
    let pairs: Vec<(&ToolCall, String)> = turn.calls.iter().map(|planned| &planned.call).zip(texts).collect();
    let mut text = render_results(style.dialect, &pairs);
    for note in &turn.notes {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(note);
    }
    let mut content = vec![ContentBlock::text(text)];
    content.extend(media.into_iter().flatten());
    Message::new(Role::User, content)
}

fn native_messages(turn: &TurnCalls, texts: Vec<String>, media: Vec<Vec<ContentBlock>>) -> Vec<Message> {
    let last = turn.calls.len().saturating_sub(1);
    turn.calls
        .iter()
        .zip(texts.into_iter().zip(media))
        .enumerate()
        .map(|(index, (planned, (mut text, blocks)))| {
            if index == last {
                for note in &turn.notes {
                    text.push('\n');
                    text.push_str(note);
                }
            }
            let mut content = vec![ContentBlock::text(text)];
            content.extend(blocks);
            Message {
                role: Role::Tool,
                content,
                tool_calls: Vec::new(),
                tool_call_id: Some(planned.model_id.clone()),
                name: Some(format!("{}-{}", planned.call.server, planned.call.tool)),
            }
        })
        .collect()
}

/// The text of a result, and the media that the model takes; other media are named in the text.
fn split(result: &ToolResult, style: ResultStyle<'_>) -> (String, Vec<ContentBlock>) {
    let mut text = result.joined_text();
    let mut blocks = Vec::new();
    for block in &result.content {
        let name = match block {
            ContentBlock::Image { .. } if style.images => None,
            ContentBlock::Audio { .. } if style.audio => None,
            ContentBlock::Image { .. } => Some("an image, which the model does not take"),
            ContentBlock::Audio { .. } => Some("a recording, which the model does not take"),
            ContentBlock::Video { .. } => Some("a video, which the model does not take"),
            ContentBlock::File { .. } => None,
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::RedactedThinking { .. } => continue,
        };
        if let ContentBlock::File { uri, .. } = block {
            push_line(&mut text, &format!("[file: {uri}]"));
        } else if let Some(name) = name {
            push_line(&mut text, &format!("[the tool also returned {name}]"));
        } else {
            blocks.push(block.clone());
        }
    }
    (text, blocks)
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Cuts the result of a scraping tool to the configured number of characters.
fn cut_scraped(call: &ToolCall, text: String, limit: Option<usize>) -> String {
    let Some(limit) = limit.filter(|_| call.tool.starts_with("scrape")) else { return text };
    match text.char_indices().nth(limit) {
        None => text,
        Some((end, _)) => {
            format!("[The first {limit} characters of a longer result.]\n{}", &text[..end])
        }
    }
}
