//! JSON as Python prints it: `{'type': 'object', 'default': None}`.
//!
//! Decides the spelling only. Models whose training prompts were printed this way read it best.

use serde_json::Value;
use std::fmt::Write as _;

/// The value as `repr()` of the dictionary that Python's `json.loads` would make of it.
pub(crate) fn repr(value: &Value) -> String {
    let mut printed = String::new();
    write_value(value, &mut printed);
    printed
}

fn write_value(value: &Value, printed: &mut String) {
    match value {
        Value::Null => printed.push_str("None"),
        Value::Bool(true) => printed.push_str("True"),
        Value::Bool(false) => printed.push_str("False"),
        Value::Number(number) => write_number(number, printed),
        Value::String(text) => write_text(text, printed),
        Value::Array(items) => {
            printed.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    printed.push_str(", ");
                }
                write_value(item, printed);
            }
            printed.push(']');
        }
        Value::Object(members) => {
            printed.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                if index > 0 {
                    printed.push_str(", ");
                }
                write_text(key, printed);
                printed.push_str(": ");
                write_value(member, printed);
            }
            printed.push('}');
        }
    }
}

/// Python prints a float with an exponent from 1e16 up and below 1e-4, and at least two digits in it.
fn write_number(number: &serde_json::Number, printed: &mut String) {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        let _ = write!(printed, "{number}");
        return;
    };
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let scientific = format!("{float:e}");
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        let _ = write!(printed, "{mantissa}e{sign}{digits:0>2}");
    } else {
        let _ = write!(printed, "{float:?}");
    }
}

/// Single quotes, unless the text holds some and no double ones.
fn write_text(text: &str, printed: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    printed.push(quote);
    for character in text.chars() {
        match character {
            '\\' => printed.push_str("\\\\"),
            '\n' => printed.push_str("\\n"),
            '\r' => printed.push_str("\\r"),
            '\t' => printed.push_str("\\t"),
            _ if character == quote => {
                printed.push('\\');
                printed.push(character);
            }
            '\u{20}'..='\u{7e}' => printed.push(character),
            _ if is_printable(character) => printed.push(character),
            '\0'..='\u{ff}' => {
                let _ = write!(printed, "\\x{:02x}", u32::from(character));
            }
            '\u{100}'..='\u{ffff}' => {
                let _ = write!(printed, "\\u{:04x}", u32::from(character));
            }
            _ => {
                let _ = write!(printed, "\\U{:08x}", u32::from(character));
            }
        }
    }
    printed.push(quote);
}

/// Python escapes control, separator, private and surrogate characters; everything else it prints.
fn is_printable(character: char) -> bool {
    !(character.is_control()
        || character.is_whitespace()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{e000}'..='\u{f8ff}'
                | '\u{feff}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{fffe}'..='\u{ffff}'
                | '\u{e0000}'..='\u{10ffff}'
        ))
}
