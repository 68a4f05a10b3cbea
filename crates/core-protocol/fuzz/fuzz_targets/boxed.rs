//! Any text: the last box is a piece of it, and an answer is what the box holds.
#![no_main]

use core_protocol::{boxed_answer, last_boxed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let content = last_boxed(text);
    if let Some(content) = content {
        assert!(text.contains(content));
    }
    if let Some(answer) = boxed_answer(text) {
        assert_eq!(Some(answer.as_str()), content);
    }
});
