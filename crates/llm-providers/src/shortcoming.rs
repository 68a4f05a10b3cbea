//! What makes a reply not good enough, so that it is asked for again.

use core_protocol::{Completion, FinishReason};

use crate::repeat::has_repeated_tail;

/// The output limit was reached.
pub(crate) const LENGTH: &str = "length";
const REPETITION: &str = "repetition";

/// What makes a reply not good enough.
pub(crate) fn shortcoming(completion: &Completion) -> Option<&'static str> {
    if completion.finish_reason == FinishReason::Length {
        return Some(LENGTH);
    }
    let text = completion.message.joined_text();
    has_repeated_tail(&text).then_some(REPETITION)
}

/// The same for people.
pub(crate) fn shortcoming_words(kind: &str, completion: &Completion) -> String {
    if kind == LENGTH {
        let tokens =
            completion.usage.map_or_else(String::new, |usage| format!(" after {} tokens", usage.output));
        format!("the reply was cut off{tokens}")
    } else {
        "the reply ends in a loop".to_owned()
    }
}
