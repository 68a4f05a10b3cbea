//! Any text as arguments: an object that JSON can hold, or an error.
#![no_main]

use core_protocol::parse_arguments;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    if let Ok(read) = parse_arguments(text) {
        let written = Value::Object(read.arguments.clone()).to_string();
        let again = parse_arguments(&written).expect("what was written is JSON");
        assert_eq!(again.repaired, None);
        assert_eq!(again.arguments, read.arguments);
    }
});
