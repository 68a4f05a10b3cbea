//! Tools as providers insist on them.

use core_protocol::ToolDefinition;
use core_protocol::native::NativeShape;
use serde_json::{Value, json};

/// The tools in the provider's form, each with a schema that is an object with a type and properties,
/// without the address of the schema's own dialect.
pub(crate) fn render(shape: &dyn NativeShape, tools: &[ToolDefinition]) -> Vec<Value> {
    tools
        .iter()
        .map(|tool| {
            shape.render_tool(&ToolDefinition {
                input_schema: object_schema(&tool.input_schema),
                ..tool.clone()
            })
        })
        .collect()
}

fn object_schema(schema: &Value) -> Value {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.shift_remove("$schema");
    schema.entry("type").or_insert_with(|| json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::object_schema;

    #[test]
    fn is_an_object_always() {
        let check = |schema: Value, expected: Value| assert_eq!(object_schema(&schema), expected);
        check(json!({}), json!({"type": "object", "properties": {}}));
        check(Value::Null, json!({"type": "object", "properties": {}}));
        check(
            json!({"$schema": "x", "type": "object", "properties": {"a": {}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        );
    }
}
