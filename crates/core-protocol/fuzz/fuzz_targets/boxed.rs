//! Any text: the last box is what a plain reading finds, an answer is what the box holds, and time
//! grows with the length.
#![no_main]

use core_protocol::{boxed_answer, last_boxed};
use core_protocol_fuzz::{assert_linear, choice_and_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = choice_and_text(data) else { return };
    if choice.wants_growth() {
        assert_linear(text, |text| drop(boxed_answer(text)));
        return;
    }
    let content = last_boxed(text);
    assert_eq!(content, plain_last_boxed(text));
    if let Some(answer) = boxed_answer(text) {
        assert_eq!(Some(answer.as_str()), content);
    }
});

fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// The last box, found character by character.
fn plain_last_boxed(text: &str) -> Option<&str> {
    let mut last = None;
    let mut rest = text;
    while let Some(found) = rest.find("\\boxed") {
        rest = &rest[found + "\\boxed".len()..];
        let Some(inside) = rest.trim_start_matches(is_space).strip_prefix('{') else { continue };
        let mut depth = 1;
        let mut escaped = false;
        let end = inside.char_indices().find(|(_, character)| {
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let end = end.map_or(inside.len(), |(at, _)| at);
        last = Some(inside[..end].trim_matches(is_space));
        rest = &inside[end..];
    }
    last
}
