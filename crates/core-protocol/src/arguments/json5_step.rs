//! The JSON5 reading: comments, single quotes, trailing commas, bare keys.
//!
//! Decides which texts are shown to the JSON5 reader. That reader recurses, so size and depth are
//! bounded first; and it drops the backslash of escapes that it does not know, so texts with such
//! escapes are left to the repairer, which keeps them.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

use super::MAX_ARGUMENT_DEPTH;

/// Longest text that is read as JSON5, in bytes. What is longer is left to the repairer.
const MAX_BYTES: usize = 64 * 1024;

/// The value, where the text is JSON5 and nothing in it would be lost.
pub(super) fn read(text: &str) -> Option<Value> {
    if text.len() > MAX_BYTES || !is_safe(text.as_bytes()) {
        return None;
    }
    json5::from_str::<Finite>(text).ok().map(|finite| finite.0)
}

/// Whether the text is nested no deeper than allowed, brackets in strings counted too, and has only
/// escapes that mean the same to everyone.
fn is_safe(bytes: &[u8]) -> bool {
    let mut depth = 0usize;
    let mut escaped = false;
    for byte in bytes {
        if escaped {
            if !matches!(byte, b'"' | b'\'' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u' | b'x') {
                return false;
            }
            escaped = false;
            continue;
        }
        match byte {
            b'\\' => escaped = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_ARGUMENT_DEPTH {
                    return false;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

/// A value whose numbers are all finite: `NaN` and overflows are errors instead of silent nulls.
struct Finite(Value);

impl<'de> Deserialize<'de> for Finite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FiniteVisitor)
    }
}

struct FiniteVisitor;

impl<'de> Visitor<'de> for FiniteVisitor {
    type Value = Finite;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Finite, E> {
        Ok(Finite(Value::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Finite, E> {
        Ok(Finite(Value::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Finite, E> {
        Ok(Finite(Value::from(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Finite, E> {
        Ok(Finite(Value::from(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Finite, E> {
        Number::from_f64(value)
            .map(|number| Finite(Value::Number(number)))
            .ok_or_else(|| E::custom("not finite"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Finite, E> {
        Ok(Finite(Value::String(value.to_owned())))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Finite, E> {
        Ok(Finite(Value::String(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Finite, A::Error> {
        let mut items = Vec::new();
        while let Some(Finite(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Finite(Value::Array(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Finite, A::Error> {
        let mut members = Map::new();
        while let Some((key, Finite(value))) = access.next_entry::<String, Finite>()? {
            members.insert(key, value);
        }
        Ok(Finite(Value::Object(members)))
    }
}
