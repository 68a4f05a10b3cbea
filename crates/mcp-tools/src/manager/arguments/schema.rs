//! Schemas of tools of this process: what arguments are judged by, and what of that models are shown.
//!
//! Decides what is left out: what models do not need and providers stumble over.

use rmcp::model::JsonObject;
use serde_json::Value;

/// What only generators of schemas need.
const NOISE: &[&str] = &["$schema", "title", "format", "default"];
/// What some providers refuse.
const BOUNDS: &[&str] = &["minimum", "maximum"];
/// What comes after all else, in this order: what a value is for after what it is.
const LAST: &[&str] = &["properties", "required", "description"];

/// The schema by which arguments are judged: without noise and without null as a second type, since whatever may be
/// null may be left out.
pub(crate) fn judged(schema: &JsonObject) -> JsonObject {
    pared(schema, &|object| {
        object.retain(|key, _| !NOISE.contains(&key.as_str()));
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                object.insert("type".into(), only);
            }
        }
    })
}

/// The schema that models are shown: what is judged by, without bounds of numbers.
pub(crate) fn shown(schema: &JsonObject) -> JsonObject {
    pared(&judged(schema), &|object| {
        object.retain(|key, _| !BOUNDS.contains(&key.as_str()));
        for key in LAST {
            if let Some(value) = object.shift_remove(*key) {
                object.insert((*key).into(), value);
            }
        }
    })
}

/// The schema with something taken out of it and of the schemas of all fields and items.
fn pared(schema: &JsonObject, pare: &dyn Fn(&mut JsonObject)) -> JsonObject {
    let mut schema = schema.clone();
    pare_object(&mut schema, pare);
    schema
}

fn pare_object(object: &mut JsonObject, pare: &dyn Fn(&mut JsonObject)) {
    pare(object);
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    for field in properties.into_iter().flat_map(JsonObject::values_mut) {
        field.as_object_mut().into_iter().for_each(|field| pare_object(field, pare));
    }
    if let Some(Value::Object(items)) = object.get_mut("items") {
        pare_object(items, pare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;
    use serde_json::json;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Example {
        /// What to do.
        title: String,
        /// How often.
        count: Option<u64>,
        /// Where.
        places: Vec<u8>,
    }

    #[test]
    fn only_what_a_model_needs_is_left() {
        let schema = schemars::schema_for!(Example).to_value();
        let schema = schema.as_object().expect("an object");
        let mut expected = json!({
            "type": "object",
            "properties": {
                "title": { "type": "string", "description": "What to do." },
                "count": { "type": "integer", "description": "How often." },
                "places": { "type": "array", "items": { "type": "integer" }, "description": "Where." }
            },
            "required": ["title", "places"]
        });
        assert_eq!(Value::Object(shown(schema)), expected);
        expected["properties"]["count"]["minimum"] = json!(0);
        expected["properties"]["places"]["items"]["minimum"] = json!(0);
        expected["properties"]["places"]["items"]["maximum"] = json!(255);
        assert_eq!(Value::Object(judged(schema)), expected);
    }
}
