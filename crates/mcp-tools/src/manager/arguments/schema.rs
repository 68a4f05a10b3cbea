//! Schemas of tools' arguments as models are shown them.
//!
//! Decides what is left out: what providers stumble over and models do not need.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
#[cfg(feature = "library")]
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The schema of `T` without `$schema`, titles, number formats and nullable alternatives.
pub(super) fn arguments<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = schemars::schema_for!(T).to_value();
    pare(&mut schema);
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}

fn pare(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for key in ["$schema", "title", "format", "default", "minimum"] {
        object.remove(key);
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(pare);
    }
    if let Some(items) = object.get_mut("items") {
        pare(items);
    }
}

/// A count as models write it: a number, a number with a fraction, digits in quotes, nothing.
#[cfg(feature = "library")]
pub(super) fn lenient_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let wrong =
        |value: &Value| serde::de::Error::custom(format!("expected a number of 0 or more, not {value}"));
    let value = Value::deserialize(deserializer)?;
    let number = match &value {
        Value::Null => return Ok(None),
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => text.trim().parse::<f64>().ok(),
        Value::Number(number) => number.as_f64(),
        _ => None,
    };
    match number {
        Some(number) if number >= 0.0 && number.is_finite() => Ok(Some(number as u64)),
        _ => Err(wrong(&value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Example {
        /// What to do.
        title: String,
        /// How often.
        count: Option<u64>,
    }

    #[test]
    fn only_what_a_model_needs_is_left() {
        let expected = serde_json::json!({
            "type": "object",
            "properties": {
                "title": { "type": "string", "description": "What to do." },
                "count": { "type": "integer", "description": "How often." }
            },
            "required": ["title"]
        });
        assert_eq!(Value::Object(arguments::<Example>().as_ref().clone()), expected);
    }
}
