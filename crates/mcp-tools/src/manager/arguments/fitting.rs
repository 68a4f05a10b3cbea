//! Arguments as models write them.
//!
//! Decides what is taken for what a tool's schema asks for: a number or a truth in quotes, a list or an object as JSON
//! text, a whole number with a fraction of nothing, a number where a text is wanted. Anything else is left as it is.

use serde_json::{Map, Number, Value};

/// How deep lists and objects are looked into.
const MOST_DEPTH: u32 = 16;

/// The arguments, each in the type that the schema names where it can be had without guessing.
pub(super) fn fitted(schema: &Map<String, Value>, mut arguments: Map<String, Value>) -> Map<String, Value> {
    fit_fields(schema, &mut arguments, 0);
    arguments
}

fn fit_fields(schema: &Map<String, Value>, fields: &mut Map<String, Value>, depth: u32) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    for (name, value) in fields.iter_mut() {
        if let Some(Value::Object(schema)) = properties.get(name) {
            fit(schema, value, depth);
        }
    }
}

fn fit(schema: &Map<String, Value>, value: &mut Value, depth: u32) {
    let Some(Value::String(kind)) = schema.get("type").filter(|_| depth < MOST_DEPTH) else { return };
    if let Some(meant) = meant(kind, value) {
        *value = meant;
    }
    match value {
        Value::Object(fields) => fit_fields(schema, fields, depth + 1),
        Value::Array(items) => {
            if let Some(Value::Object(schema)) = schema.get("items") {
                items.iter_mut().for_each(|item| fit(schema, item, depth + 1));
            }
        }
        _ => {}
    }
}

/// The value of that type that is meant; none where it is of it already, or nothing certain.
fn meant(kind: &str, value: &Value) -> Option<Value> {
    match (kind, value) {
        ("integer", Value::String(text)) => match text.trim().parse::<i64>() {
            Ok(number) => Some(number.into()),
            Err(_) => whole(&Number::from_f64(text.trim().parse().ok()?)?),
        },
        ("integer", Value::Number(number)) => whole(number),
        ("number", Value::String(text)) => {
            text.trim().parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number)
        }
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("string", Value::Number(number)) => Some(Value::String(number.to_string())),
        ("array", Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_array),
        ("object", Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

/// `3.0` as `3`.
fn whole(number: &Number) -> Option<Value> {
    let value = number.as_f64().filter(|_| number.is_f64())?;
    // Whole numbers beyond this have no exact float.
    (value.fract() == 0.0 && value.abs() < 9e15).then(|| Value::from(value as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_meant_is_taken() {
        let schema = json!({"properties": {
            "q": {"type": "string"},
            "num": {"type": "integer"},
            "ratio": {"type": "number"},
            "deep": {"type": "boolean"},
            "ids": {"type": "array", "items": {"type": "string"}},
            "headers": {"type": "object", "properties": {"n": {"type": "integer"}}},
            "any": {},
            "two": {"type": ["string", "null"]}
        }});
        let Value::Object(schema) = schema else { panic!("an object") };
        for (given, expected) in [
            (
                json!({"num": "10", "ratio": " 0.5 ", "deep": "True"}),
                json!({"num": 10, "ratio": 0.5, "deep": true}),
            ),
            (json!({"num": 3.0, "q": 7, "ids": ["a", 2]}), json!({"num": 3, "q": "7", "ids": ["a", "2"]})),
            (
                json!({"ids": "[\"a\", 2]", "headers": "{\"n\": \"1\"}"}),
                json!({"ids": ["a", "2"], "headers": {"n": 1}}),
            ),
            // Nothing certain.
            (
                json!({"num": "ten", "deep": "yes", "ids": "a"}),
                json!({"num": "ten", "deep": "yes", "ids": "a"}),
            ),
            (
                json!({"ids": "{}", "headers": "[", "num": 1.5}),
                json!({"ids": "{}", "headers": "[", "num": 1.5}),
            ),
            (json!({"any": "1", "two": 1, "else": "1"}), json!({"any": "1", "two": 1, "else": "1"})),
            (json!({"q": null, "num": 1e300}), json!({"q": null, "num": 1e300})),
            (json!({"num": " 7.0"}), json!({"num": 7})),
            (json!({"num": "7.5"}), json!({"num": "7.5"})),
            (json!({"num": ""}), json!({"num": ""})),
        ] {
            let Value::Object(arguments) = given else { panic!("an object") };
            assert_eq!(Value::Object(fitted(&schema, arguments)), expected);
        }
    }
}
