//! Turns what a server answered into blocks for the model.
//!
//! Decides how each kind of MCP content is shown: text stays text, images and recordings stay media,
//! resources, links and structured content become text.

use core_protocol::{ContentBlock, MediaSource};
use rmcp::model::{self, CallToolResult, ErrorData, ResourceContents};

use super::text::Neutraliser;

/// What is shown where a tool returned nothing.
const NOTHING: &str = "(The tool returned nothing.)";

/// The blocks of a result.
pub(crate) fn blocks(result: CallToolResult, neutraliser: &Neutraliser) -> Vec<ContentBlock> {
    let mut blocks: Vec<ContentBlock> =
        result.content.into_iter().map(|block| content_block(block, neutraliser)).collect();
    let has_text = blocks.iter().any(|block| matches!(block, ContentBlock::Text { .. }));
    // Servers repeat structured content as text for clients that do not know it; where they do not,
    // it is all there is.
    if let Some(structured) = result.structured_content.filter(|_| !has_text) {
        let text = serde_json::to_string_pretty(&structured).unwrap_or_else(|_| structured.to_string());
        blocks.push(ContentBlock::text(neutraliser.data(&text)));
    }
    if blocks.is_empty() {
        blocks.push(ContentBlock::text(NOTHING));
    }
    blocks
}

fn content_block(block: model::ContentBlock, neutraliser: &Neutraliser) -> ContentBlock {
    match block {
        model::ContentBlock::Text(text) => ContentBlock::text(neutraliser.data(&text.text)),
        model::ContentBlock::Image(image) => {
            ContentBlock::Image { source: base64(image.mime_type, image.data) }
        }
        model::ContentBlock::Audio(audio) => {
            ContentBlock::Audio { source: base64(audio.mime_type, audio.data) }
        }
        model::ContentBlock::Resource(resource) => resource_block(resource.resource, neutraliser),
        model::ContentBlock::ResourceLink(link) => {
            let mut text = format!("[Link to the resource {}: {}", link.name, link.uri);
            if let Some(media_type) = &link.mime_type {
                text.push_str(&format!(", {media_type}"));
            }
            if let Some(size) = link.size {
                text.push_str(&format!(", {size} bytes"));
            }
            text.push(']');
            if let Some(description) = &link.description {
                text.push('\n');
                text.push_str(description);
            }
            ContentBlock::text(neutraliser.data(&text))
        }
        // The protocol's types are open: a later version of it may bring further kinds.
        #[allow(unreachable_patterns, reason = "reached only with later versions of the protocol's types")]
        _ => ContentBlock::text("[Content of a kind that cannot be shown.]"),
    }
}

fn resource_block(resource: ResourceContents, neutraliser: &Neutraliser) -> ContentBlock {
    match resource {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            let kind = mime_type.map(|kind| format!(", {kind}")).unwrap_or_default();
            ContentBlock::text(neutraliser.data(&format!("[Resource {uri}{kind}]\n{text}")))
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            if kind.starts_with("image/") {
                ContentBlock::Image { source: base64(kind, blob) }
            } else if kind.starts_with("audio/") {
                ContentBlock::Audio { source: base64(kind, blob) }
            } else {
                let bytes = blob.len() / 4 * 3;
                let text = format!(
                    "[Resource {uri}: about {bytes} bytes of {kind}, which cannot be shown as text.]"
                );
                ContentBlock::text(neutraliser.data(&text))
            }
        }
        #[allow(unreachable_patterns, reason = "reached only with later versions of the protocol's types")]
        _ => ContentBlock::text("[A resource of a kind that cannot be shown.]"),
    }
}

fn base64(media_type: String, data: String) -> MediaSource {
    MediaSource::Base64 { media_type, data }
}

/// The words of a JSON-RPC error, with its data where there is any.
pub(crate) fn error_text(error: &ErrorData, neutraliser: &Neutraliser) -> String {
    let mut text = error.message.to_string();
    match &error.data {
        None | Some(serde_json::Value::Null) => {}
        Some(serde_json::Value::String(data)) => text.push_str(&format!("\n{data}")),
        Some(data) => text.push_str(&format!("\n{data}")),
    }
    neutraliser.data(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(result: serde_json::Value, expected: &[ContentBlock]) {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        assert_eq!(blocks(result, &Neutraliser::default()), expected);
    }

    #[test]
    fn every_kind_of_content_is_shown() {
        let png = || MediaSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() };
        let wav = MediaSource::Base64 { media_type: "audio/wav".into(), data: "AAAA".into() };
        check(json!({"content": [{"type": "text", "text": "a\u{0}b"}]}), &[ContentBlock::text("ab")]);
        check(json!({"content": []}), &[ContentBlock::text(NOTHING)]);
        check(
            json!({"content": [
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "x:1", "mimeType": "image/png", "blob": "AAAA"}},
            ]}),
            &[
                ContentBlock::Image { source: png() },
                ContentBlock::Audio { source: wav },
                ContentBlock::Image { source: png() },
            ],
        );
        check(
            json!({"content": [
                {"type": "resource", "resource": {"uri": "x:2", "mimeType": "text/plain", "text": "hello"}},
                {"type": "resource", "resource": {"uri": "x:3", "blob": "AAAAAAAA"}},
                {"type": "resource_link", "uri": "x:4", "name": "four", "size": 9, "description": "a file"},
            ]}),
            &[
                ContentBlock::text("[Resource x:2, text/plain]\nhello"),
                ContentBlock::text(
                    "[Resource x:3: about 6 bytes of application/octet-stream, which cannot be shown as text.]",
                ),
                ContentBlock::text("[Link to the resource four: x:4, 9 bytes]\na file"),
            ],
        );
    }

    #[test]
    fn structured_content_is_shown_where_there_is_no_text() {
        check(
            json!({"content": [], "structuredContent": {"a": 1}}),
            &[ContentBlock::text("{\n  \"a\": 1\n}")],
        );
        check(
            json!({"content": [{"type": "text", "text": "t"}], "structuredContent": {"a": 1}}),
            &[ContentBlock::text("t")],
        );
    }

    #[test]
    fn errors_keep_their_data() {
        let error = ErrorData::new(model::ErrorCode(-32602), "bad", Some(json!({"field": "q"})));
        assert_eq!(error_text(&error, &Neutraliser::default()), "bad\n{\"field\":\"q\"}");
    }
}
