//! A native call out of what a server sent for it.
//!
//! Decides how arguments are read: empty means none, strict JSON first, mended only where the reply was
//! whole. A call cut off in its middle is never completed by guessing. Arguments that cannot be read
//! do not end a run: the call is kept and marked, so that its result can say what was wrong.

use core_protocol::{ArgumentRepair, ToolCall};
use serde_json::{Map, Value, json};

use crate::function_name::FunctionNames;

/// Field of [`ToolCall::provider_data`] that holds arguments which could not be read.
const UNREADABLE: &str = "unreadable_arguments";

/// The arguments of a native call as the model wrote them, where they could not be read. Such a call
/// must not be run; its result tells the model what is wrong.
#[must_use]
pub fn unreadable_arguments(call: &ToolCall) -> Option<&str> {
    call.provider_data.as_ref()?.get(UNREADABLE)?.as_str()
}

/// A call as it came.
#[derive(Debug, Default)]
pub(crate) struct RawCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) provider_data: Option<Value>,
}

impl RawCall {
    /// The call. `fallback_id` is its id where the server gave none; `whole`: the reply was not cut.
    pub(crate) fn read(self, names: &FunctionNames, fallback_id: String, whole: bool) -> ToolCall {
        let (server, tool) = names.resolve(&self.name);
        let mut provider_data = self.provider_data;
        let (arguments, repaired) = match arguments(&self.arguments, whole) {
            Some(read) => read,
            None => {
                let mut data = match provider_data.take() {
                    Some(Value::Object(data)) => data,
                    _ => Map::new(),
                };
                data.insert(UNREADABLE.to_owned(), Value::String(self.arguments));
                provider_data = Some(Value::Object(data));
                (Map::new(), None)
            }
        };
        ToolCall {
            id: if self.id.is_empty() { fallback_id } else { self.id },
            server,
            tool,
            arguments,
            span: None,
            server_span: None,
            repaired,
            provider_data,
        }
    }
}

fn arguments(raw: &str, whole: bool) -> Option<(Map<String, Value>, Option<ArgumentRepair>)> {
    let trimmed = raw.trim();
    if trimmed.is_empty() {
        return whole.then(|| (Map::new(), None));
    }
    match serde_json::from_str::<Value>(trimmed) {
        Ok(Value::Object(arguments)) => return Some((arguments, None)),
        Ok(Value::Null) => return Some((Map::new(), None)),
        // Some servers encode twice.
        Ok(Value::String(inner)) => {
            if let Ok(Value::Object(arguments)) = serde_json::from_str(&inner) {
                return Some((arguments, None));
            }
        }
        Ok(_) | Err(_) => {}
    }
    if !whole {
        return None;
    }
    let parsed = core_protocol::parse_arguments(trimmed).ok()?;
    Some((parsed.arguments, parsed.repaired))
}

/// The arguments of a call as they are sent back: an object always, what could not be read as one field
/// of it, so that the model sees what it wrote.
pub(crate) fn replayed_arguments(call: &ToolCall) -> Value {
    match unreadable_arguments(call) {
        Some(raw) => json!({ UNREADABLE: raw }),
        None => Value::Object(call.arguments.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{RawCall, replayed_arguments, unreadable_arguments};
    use crate::function_name::FunctionNames;

    #[track_caller]
    fn check(raw: &str, whole: bool, expected: serde_json::Value, unreadable: bool) {
        let call = RawCall { name: "s-t".into(), arguments: raw.into(), ..RawCall::default() };
        let call = call.read(&FunctionNames::default(), "call_0".into(), whole);
        assert_eq!(serde_json::Value::Object(call.arguments.clone()), expected, "{raw}");
        assert_eq!(unreadable_arguments(&call), unreadable.then_some(raw));
        assert!(replayed_arguments(&call).is_object());
        assert_eq!((call.id.as_str(), call.server.as_str(), call.tool.as_str()), ("call_0", "s", "t"));
    }

    #[test]
    fn reads_what_servers_send() {
        check(r#"{"a": 1}"#, true, json!({"a": 1}), false);
        check("", true, json!({}), false);
        check("null", true, json!({}), false);
        check(r#""{\"a\": 1}""#, true, json!({"a": 1}), false);
        check("{'a': 1,}", true, json!({"a": 1}), false);
    }

    #[test]
    fn a_cut_call_is_not_completed_by_guessing() {
        check(r#"{"code": "rm -rf /tmp/x"#, false, json!({}), true);
        check("", false, json!({}), true);
        check(r#"{"a": 1}"#, false, json!({"a": 1}), false);
        check("[1, 2]", false, json!({}), true);
    }
}
