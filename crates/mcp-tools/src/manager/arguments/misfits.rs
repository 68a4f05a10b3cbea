//! Whether arguments fit a tool's schema.
//!
//! Decides only what is certain: what is missing, of the wrong type, beyond a bound, or not among the values that
//! there are. Whatever servers are known to be generous about (a number in quotes, a list as JSON text, null for what
//! may be left out) and every keyword that is not looked at here is left to the server.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::manager::words::nearest;

/// Misfits that are told at once.
const MOST_TOLD: usize = 4;
/// Pairs of schema and value that are looked at; a schema that needs more is left to the server.
const MOST_STEPS: u32 = 10_000;
/// Schemas inside one another; what is deeper is left to the server.
const MOST_DEPTH: u32 = 64;
/// Values that are listed where only some are allowed.
const MOST_VALUES: usize = 12;

/// What does not fit, a sentence each; none where nothing is known to be wrong.
pub(crate) fn misfits(schema: &Map<String, Value>, arguments: &Map<String, Value>) -> Vec<String> {
    found(schema, arguments, false)
}

/// What does not fit, a sentence each, where values must be of the types that the schema names.
pub(super) fn strict_misfits(schema: &Map<String, Value>, arguments: &Map<String, Value>) -> Vec<String> {
    found(schema, arguments, true)
}

fn found(schema: &Map<String, Value>, arguments: &Map<String, Value>, is_strict: bool) -> Vec<String> {
    let mut check = Check { root: schema, is_strict, steps: MOST_STEPS, depth: 0, found: Vec::new() };
    check.object(schema, arguments, "");
    check.found.truncate(MOST_TOLD);
    check.found
}

struct Check<'a> {
    root: &'a Map<String, Value>,
    /// Nothing is taken for a value of another type.
    is_strict: bool,
    steps: u32,
    depth: u32,
    found: Vec<String>,
}

impl<'a> Check<'a> {
    /// Whether a value fits; what does not is noted.
    fn value(&mut self, schema: &Value, value: &Value, path: &str) {
        let Value::Object(schema) = schema else { return };
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 || self.depth == MOST_DEPTH {
            return;
        }
        self.depth += 1;
        self.within(schema, value, path);
        self.depth -= 1;
    }

    fn within(&mut self, schema: &Map<String, Value>, value: &Value, path: &str) {
        if let Some(target) = self.referred(schema) {
            self.value(target, value, path);
        }
        if let Some(Value::Array(all)) = schema.get("allOf") {
            all.iter().for_each(|one| self.value(one, value, path));
        }
        for key in ["anyOf", "oneOf"] {
            let Some(Value::Array(ways)) = schema.get(key) else { continue };
            if !ways.is_empty() && !ways.iter().any(|way| self.fits(way, value)) {
                let expected: Vec<String> =
                    ways.iter().filter_map(|way| self.expectation(way.as_object()?)).collect();
                let expected =
                    if expected.is_empty() { "something else".to_owned() } else { expected.join(" or ") };
                self.note(path, &expected, value);
                return;
            }
        }
        if !allowed_types(schema).is_none_or(|types| types.iter().any(|kind| self.is_of(kind, value))) {
            let expected = self.expectation(schema).unwrap_or_default();
            self.note(path, &expected, value);
            return;
        }
        if let Some(expected) =
            not_among(schema, value, self.is_strict).or_else(|| beyond_bounds(schema, value))
        {
            self.note(path, &expected, value);
            return;
        }
        match value {
            Value::Object(fields) => self.object(schema, fields, path),
            Value::Array(items) => {
                if let Some(schema @ Value::Object(_)) = schema.get("items") {
                    for (index, item) in items.iter().enumerate() {
                        self.value(schema, item, &format!("{path}[{index}]"));
                    }
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, fields: &Map<String, Value>, path: &str) {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> = match schema.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let strange: Vec<&str> =
            fields.keys().map(String::as_str).filter(|name| !properties.contains_key(*name)).collect();
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && !schema.contains_key("patternProperties");
        for name in &required {
            if fields.contains_key(*name) {
                continue;
            }
            let mut text = format!("`{}` is missing", at(name));
            if let Some(expected) =
                properties.get(*name).and_then(|schema| self.expectation(schema.as_object()?))
            {
                let _ = write!(text, "; it is to be {expected}");
            }
            if !is_closed && let Some(near) = nearest(name, strange.iter().copied()) {
                let _ = write!(text, "; `{}` is no argument", at(near));
            }
            self.found.push(text);
        }
        if is_closed {
            for name in &strange {
                let names = properties.keys().map(String::as_str);
                let advice = match nearest(name, names.clone()) {
                    Some(near) => format!("do you mean `{near}`?"),
                    None => format!(
                        "there are: {}",
                        names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                    ),
                };
                self.found.push(format!("`{}` is no argument; {advice}", at(name)));
            }
        }
        for (name, value) in fields {
            let Some(schema) = properties.get(name) else { continue };
            if value.is_null() && !required.contains(&name.as_str()) {
                continue;
            }
            self.value(schema, value, &at(name));
        }
    }

    fn fits(&mut self, schema: &Value, value: &Value) -> bool {
        let mut inner = Check { steps: self.steps, found: Vec::new(), ..*self };
        inner.value(schema, value, "");
        // What could not be looked at to its end may fit.
        let fits = inner.found.is_empty() || inner.steps == 0;
        self.steps = inner.steps;
        fits
    }

    /// The schema that a local `$ref` means.
    fn referred(&self, schema: &Map<String, Value>) -> Option<&'a Value> {
        let path = schema.get("$ref")?.as_str()?.strip_prefix("#/")?;
        let mut steps = path.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
        let first = self.root.get(&steps.next()?)?;
        steps.try_fold(first, |value, step| value.get(&step))
    }

    /// What a schema asks for, in words; none where it takes anything.
    fn expectation(&self, schema: &Map<String, Value>) -> Option<String> {
        if let Some(values) = values_of(schema) {
            return Some(values);
        }
        if let Some(target) = self.referred(schema) {
            // One step: what the words are worth does not grow with more.
            let target = target.as_object()?;
            return values_of(target).or_else(|| allowed_types(target).map(type_words));
        }
        allowed_types(schema).map(type_words)
    }

    fn is_of(&self, kind: &str, value: &Value) -> bool {
        is_of(kind, value) || (!self.is_strict && is_taken_for(kind, value))
    }

    fn note(&mut self, path: &str, expected: &str, value: &Value) {
        self.found.push(format!("`{path}` is to be {expected}, not {}", shown(value)));
    }
}

/// The types that a schema names; none where it takes any.
fn allowed_types(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

/// Whether a value is of a type.
fn is_of(kind: &str, value: &Value) -> bool {
    match (kind, value) {
        ("string", Value::String(_))
        | ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_))
        | ("null", Value::Null) => true,
        ("integer", Value::Number(number)) => number.is_i64() || number.is_u64(),
        ("string" | "number" | "integer" | "boolean" | "array" | "object" | "null", _) => false,
        // A type that JSON Schema does not have.
        _ => true,
    }
}

/// Whether servers take a value of another type for one of this.
fn is_taken_for(kind: &str, value: &Value) -> bool {
    match (kind, value) {
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
        ("number", Value::String(text)) => text.trim().parse::<f64>().is_ok_and(f64::is_finite),
        ("integer", Value::String(text)) => text.trim().parse::<i64>().is_ok(),
        ("boolean", Value::String(text)) => {
            ["true", "false"].iter().any(|word| text.trim().eq_ignore_ascii_case(word))
        }
        ("array", Value::String(text)) => text.trim_start().starts_with('['),
        ("object", Value::String(text)) => text.trim_start().starts_with('{'),
        _ => false,
    }
}

/// The values that are expected, where there are only some and this is none of them.
fn not_among(schema: &Map<String, Value>, value: &Value, is_strict: bool) -> Option<String> {
    // A number in quotes is taken for the number.
    let quoted = match value {
        Value::String(text) if !is_strict => text.trim().parse::<f64>().ok(),
        _ => None,
    };
    let is = |allowed: &Value| allowed == value || (quoted.is_some() && allowed.as_f64() == quoted);
    let found = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => values.iter().any(is),
        (None, Some(only)) => is(only),
        _ => true,
    };
    if found { None } else { values_of(schema) }
}

/// The numbers that are expected, where a number is less or more.
fn beyond_bounds(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let value = value.as_f64()?;
    let (least, most) = (schema.get("minimum"), schema.get("maximum"));
    let bound = |bound: Option<&Value>| bound.and_then(Value::as_f64);
    if bound(least).is_none_or(|least| value >= least) && bound(most).is_none_or(|most| value <= most) {
        return None;
    }
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("a number from {least} to {most}")),
        (Some(least), None) => Some(format!("a number of {least} or more")),
        (None, Some(most)) => Some(format!("a number of {most} or less")),
        (None, None) => None,
    }
}

fn values_of(schema: &Map<String, Value>) -> Option<String> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) if !values.is_empty() => {
            let mut shown: Vec<String> = values.iter().take(MOST_VALUES).map(Value::to_string).collect();
            if values.len() > MOST_VALUES {
                shown.push(format!("… ({} in all)", values.len()));
            }
            Some(format!("one of {}", shown.join(", ")))
        }
        (None, Some(only)) => Some(only.to_string()),
        _ => None,
    }
}

fn type_words(types: Vec<&str>) -> String {
    let word = |kind: &&str| {
        match *kind {
            "string" => "a string",
            "number" => "a number",
            "integer" => "a whole number",
            "boolean" => "true or false",
            "array" => "a list",
            "object" => "an object",
            other => other,
        }
        .to_owned()
    };
    types.iter().map(word).collect::<Vec<_>>().join(" or ")
}

/// A value as it is repeated to the model: its kind, and the value where it is short.
fn shown(value: &Value) -> String {
    const SHORT: usize = 60;
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.chars().count() <= SHORT => format!("the string {value}"),
        Value::String(_) => "a long string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, arguments: &Value, expected: &[&str]) {
        let (Value::Object(schema), Value::Object(arguments)) = (schema, arguments) else {
            panic!("objects")
        };
        assert_eq!(misfits(schema, arguments), expected, "{arguments:?}");
    }

    #[test]
    fn what_is_certainly_wrong_is_told() {
        let schema = json!({
            "type": "object",
            "properties": {
                "q": {"type": "string"},
                "num": {"type": "integer"},
                "ratio": {"type": "number", "minimum": 0, "maximum": 1},
                "page": {"type": "integer", "minimum": 1},
                "deep": {"type": "boolean"},
                "lang": {"enum": ["en", "de"]},
                "kind": {"const": "web"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "place": {"$ref": "#/$defs/Place"},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "any": {}
            },
            "required": ["q"],
            "additionalProperties": false,
            "$defs": {"Place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]}}
        });
        for (arguments, expected) in [
            (json!({"q": "x"}), &[][..]),
            (json!({}), &["`q` is missing; it is to be a string"]),
            (
                json!({"query": "x"}),
                &["`q` is missing; it is to be a string", "`query` is no argument; do you mean `q`?"],
            ),
            (json!({"q": "x", "nums": 3}), &["`nums` is no argument; do you mean `num`?"]),
            (json!({"q": 5}), &["`q` is to be a string, not 5"]),
            (json!({"q": null}), &["`q` is to be a string, not null"]),
            (json!({"q": "x", "num": "ten"}), &["`num` is to be a whole number, not the string \"ten\""]),
            (json!({"q": "x", "num": 1.5}), &["`num` is to be a whole number, not 1.5"]),
            (json!({"q": "x", "ratio": [1]}), &["`ratio` is to be a number, not a list"]),
            (json!({"q": "x", "ratio": 1.5}), &["`ratio` is to be a number from 0 to 1, not 1.5"]),
            (json!({"q": "x", "page": 0}), &["`page` is to be a number of 1 or more, not 0"]),
            (json!({"q": "x", "deep": "yes"}), &["`deep` is to be true or false, not the string \"yes\""]),
            (
                json!({"q": "x", "lang": "fr"}),
                &["`lang` is to be one of \"en\", \"de\", not the string \"fr\""],
            ),
            (json!({"q": "x", "kind": "news"}), &["`kind` is to be \"web\", not the string \"news\""]),
            (json!({"q": "x", "tags": ["a", 2]}), &["`tags[1]` is to be a string, not 2"]),
            (json!({"q": "x", "tags": "a"}), &["`tags` is to be a list, not the string \"a\""]),
            (json!({"q": "x", "place": {}}), &["`place.lat` is missing; it is to be a number"]),
            (
                json!({"q": "x", "place": {"lat": "north"}}),
                &["`place.lat` is to be a number, not the string \"north\""],
            ),
            (json!({"q": "x", "place": 1}), &["`place` is to be an object, not 1"]),
            (
                json!({"q": "x", "limit": "few"}),
                &["`limit` is to be a whole number or null, not the string \"few\""],
            ),
        ] {
            check(&schema, &arguments, expected);
        }
        // What servers are generous about is theirs to judge.
        for arguments in [
            json!({"q": "x", "num": 3.0}),
            json!({"q": "x", "num": "10"}),
            json!({"q": "x", "page": "0", "ratio": 1}),
            json!({"q": "x", "num": null}),
            json!({"q": "x", "deep": "True"}),
            json!({"q": "x", "tags": "[\"a\"]"}),
            json!({"q": "x", "place": "{\"lat\": 1}"}),
            json!({"q": "x", "limit": null}),
            json!({"q": "x", "any": {"thing": []}}),
        ] {
            check(&schema, &arguments, &[]);
        }
    }

    #[test]
    fn odd_schemas_refuse_nothing_and_end() {
        for schema in [
            json!({}),
            json!({"properties": {"a": true, "b": {"type": "any"}, "c": {"type": 7}, "d": {"$ref": "#/nowhere"}, "e": {"$ref": "http://x"}}}),
            json!({"properties": {"a": {"$ref": "#/properties/a"}}}),
            json!({"properties": {"a": {"anyOf": []}}, "required": "a"}),
        ] {
            check(&schema, &json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}), &[]);
        }
        // Two ways at every level, none of which fits at the bottom: 2^40 steps if nothing bounded them.
        let mut value = json!("bottom");
        for _ in 0..40 {
            value = json!({"n": value});
        }
        let node = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}});
        let schema = json!({"properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"anyOf": [node.clone(), node]}}});
        check(&schema, &value, &[]);
    }

    #[test]
    fn only_a_few_misfits_are_told() {
        let names: Vec<String> = (0..50).map(|number| format!("n{number}")).collect();
        let schema = json!({"properties": {}, "required": names});
        let Value::Object(schema) = schema else { panic!("an object") };
        assert_eq!(misfits(&schema, &Map::new()).len(), MOST_TOLD);
    }
}
