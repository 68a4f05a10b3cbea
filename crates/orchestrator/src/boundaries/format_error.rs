//! A reply without a call that can be run and with tags of the dialect in it: the model meant to call.

use core_protocol::ParsedReply;

/// What is wrong with the reply, in words; none where nothing is. Tags inside thinking do not count, the
/// parser does not report them. `calls_are_text` is false with native calls: a call in the text is none there.
#[must_use]
pub fn detect(reply: &ParsedReply, calls_are_text: bool) -> Option<String> {
    if !reply.calls.is_empty() {
        let misplaced = "the tool call stands in the text, where this model's own tool calls are due";
        return (!calls_are_text).then(|| misplaced.to_owned());
    }
    if let Some(block) = reply.malformed.first() {
        return Some(format!("the tool call at line {} cannot be read: {}", block.line, block.problem));
    }
    reply.stray_tags.first().map(|stray| format!("the tag {} stands outside any tool call", stray.tag))
}
