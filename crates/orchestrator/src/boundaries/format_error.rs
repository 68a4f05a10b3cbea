//! A reply without a readable call that still holds tags of the dialect: the model meant to call.

use core_protocol::ParsedReply;

/// What is wrong with the reply, in words; none where nothing is. Tags inside thinking do not count, the
/// parser does not report them.
#[must_use]
pub fn detect(reply: &ParsedReply) -> Option<String> {
    if !reply.calls.is_empty() {
        return None;
    }
    if let Some(block) = reply.malformed.first() {
        return Some(format!("the tool call at line {} cannot be read: {}", block.line, block.problem));
    }
    reply.stray_tags.first().map(|stray| format!("the tag {} stands outside any tool call", stray.tag))
}
