//! Any text as arguments: an object that JSON can hold, or an error that keeps the text; what is
//! strict JSON is read as that, and time grows with the length.
#![no_main]

use core_protocol::{MAX_ARGUMENT_DEPTH, parse_arguments};
use core_protocol_fuzz::{assert_linear, choice_and_text};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = choice_and_text(data) else { return };
    if choice.wants_growth() {
        assert_linear(text, |text| drop(parse_arguments(text)));
        return;
    }
    match parse_arguments(text) {
        Ok(read) => {
            if let Ok(strict) = serde_json::from_str::<Map<String, Value>>(text) {
                assert_eq!((&strict, None), (&read.arguments, read.repaired));
            }
            assert!(depth(&read.arguments) <= MAX_ARGUMENT_DEPTH);
            let written = Value::Object(read.arguments.clone()).to_string();
            let again = parse_arguments(&written).expect("what was written is JSON");
            assert_eq!(again.repaired, None);
            assert_eq!(again.arguments, read.arguments);
        }
        Err(error) => {
            assert!(text.contains(error.raw()) && !error.to_string().is_empty());
            assert!(serde_json::from_str::<Map<String, Value>>(text).is_err(), "it is strict JSON: {error}");
        }
    }
});

/// Brackets that are open at once at the deepest place.
fn depth(members: &Map<String, Value>) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(of).max().unwrap_or(0),
            Value::Object(members) => depth(members),
            _ => 0,
        }
    }
    1 + members.values().map(of).max().unwrap_or(0)
}
