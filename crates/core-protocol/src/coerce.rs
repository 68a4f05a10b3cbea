//! Typed values from plain text, by the schema of the parameter.
//!
//! Decides what `5`, `None` or `{'a': 1}` mean where a dialect writes values without quotes. Without a
//! schema a value is a string, unless it is a JSON object or list, for which `None`, `True` and `False`
//! are as good as JSON's words.

use serde_json::{Map, Number, Value};

use crate::arguments::read_value;

/// Deepest that alternatives inside alternatives of a schema are followed.
const SCHEMA_DEPTH: usize = 8;

/// The types that a schema allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Types {
    null: bool,
    integer: bool,
    number: bool,
    boolean: bool,
    object: bool,
    array: bool,
    string: bool,
}

impl Types {
    fn add(&mut self, name: &str) {
        match name {
            "null" => self.null = true,
            "integer" | "int" => self.integer = true,
            "number" | "float" => self.number = true,
            "boolean" | "bool" => self.boolean = true,
            "object" | "dict" => self.object = true,
            "array" | "list" => self.array = true,
            "string" | "str" => self.string = true,
            _ => {}
        }
    }

    /// `root` is the schema of the whole tool, in which references are looked up.
    fn gather(&mut self, schema: &Value, root: &Value, depth: usize) {
        if depth == 0 {
            return;
        }
        let Some(members) = schema.as_object() else { return };
        match members.get("type") {
            Some(Value::String(name)) => self.add(name),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).for_each(|name| self.add(name))
            }
            _ => {}
        }
        if members.get("nullable") == Some(&Value::Bool(true)) {
            self.null = true;
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            for part in members.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.gather(part, root, depth - 1);
            }
        }
        if let Some(target) =
            members.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'))
            && let Some(target) = root.pointer(target)
        {
            self.gather(target, root, depth - 1);
        }
        if !members.contains_key("type") {
            let listed = members.get("enum").and_then(Value::as_array).into_iter().flatten();
            for value in listed.chain(members.get("const")) {
                self.add(type_name(value));
            }
            if members.contains_key("properties") {
                self.object = true;
            }
            if members.contains_key("items") {
                self.array = true;
            }
        }
    }

    fn is_unknown(self) -> bool {
        self == Self::default()
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The parameters of a tool, by which its values are typed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters<'s> {
    root: &'s Value,
    properties: &'s Map<String, Value>,
}

impl<'s> Parameters<'s> {
    /// The parameters of a tool's input schema, if it names any.
    pub(crate) fn of(input_schema: &'s Value) -> Option<Self> {
        let properties = input_schema.get("properties")?.as_object()?;
        Some(Self { root: input_schema, properties })
    }

    /// Whether the tool has such a parameter.
    pub(crate) fn has(self, name: &str) -> bool {
        self.properties.contains_key(name)
    }
}

/// The value that a text stands for.
pub(crate) fn coerce(text: &str, name: &str, parameters: Option<Parameters<'_>>) -> Value {
    let mut types = Types::default();
    if let Some(parameters) = parameters
        && let Some(schema) = parameters.properties.get(name)
    {
        types.gather(schema, parameters.root, SCHEMA_DEPTH);
    }
    let trimmed = text.trim();
    if types.is_unknown() {
        return untyped(text, trimmed);
    }
    typed(trimmed, types).unwrap_or_else(|| Value::String(text.to_owned()))
}

fn untyped(text: &str, trimmed: &str) -> Value {
    let is_structure = trimmed.starts_with(['{', '[']);
    let read = |json: &str| serde_json::from_str::<Value>(json).ok();
    let value = is_structure.then(|| read(trimmed).or_else(|| read(&with_json_literals(trimmed)))).flatten();
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The text with Python's literals spelled as JSON's, strings left as they are.
fn with_json_literals(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let width = match first {
            '"' => string_width(rest),
            _ if is_word(first) => rest.find(|character| !is_word(character)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(width);
        spelled.push_str(match token {
            "None" => "null",
            "True" => "true",
            "False" => "false",
            token => token,
        });
        rest = after;
    }
    spelled
}

/// Bytes of the string literal that the text begins with.
fn string_width(text: &str) -> usize {
    let mut escaped = false;
    let closing = |(_, byte): &(usize, u8)| {
        let closes = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    };
    text.bytes().enumerate().skip(1).find(closing).map_or(text.len(), |(at, _)| at + 1)
}

/// The narrowest type that the text fits; none where only a string is left.
fn typed(text: &str, types: Types) -> Option<Value> {
    let is_null = matches!(text, "null" | "None");
    if is_null && (types.null || !types.string) {
        return Some(Value::Null);
    }
    if types.integer
        && let Some(integer) = integer(text)
    {
        return Some(integer);
    }
    if (types.number || types.integer)
        && let Some(number) = number(text)
    {
        return Some(number);
    }
    if types.boolean {
        match text {
            "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
            "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
            _ => {}
        }
    }
    if types.object || types.array {
        return structure(text, types);
    }
    None
}

/// `5`, and `5.0` where an integer is meant.
fn integer(text: &str) -> Option<Value> {
    if let Ok(value) = text.parse::<i64>() {
        return Some(Value::from(value));
    }
    if let Ok(value) = text.parse::<u64>() {
        return Some(Value::from(value));
    }
    let (whole, fraction) = text.split_once('.')?;
    if fraction.is_empty() || !fraction.bytes().all(|digit| digit == b'0') {
        return None;
    }
    whole.parse::<i64>().ok().map(Value::from)
}

fn number(text: &str) -> Option<Value> {
    if let Ok(value) = text.parse::<i64>() {
        return Some(Value::from(value));
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E')) {
        return None;
    }
    text.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number)
}

/// An object or a list: as JSON, as Python prints it, or either of them once more in a JSON string.
fn structure(text: &str, types: Types) -> Option<Value> {
    let fits = |value: &Value| (value.is_object() && types.object) || (value.is_array() && types.array);
    let opened: String;
    let mut text = text;
    if text.starts_with('"') {
        opened = serde_json::from_str(text).ok()?;
        text = opened.trim();
    }
    if !text.starts_with(['{', '[']) {
        return None;
    }
    read_value(text).ok().map(|(value, _)| value).filter(fits)
}
