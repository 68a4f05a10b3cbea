//! Native calls between the wire and the history.
//!
//! Decides what becomes of calls that cannot be run: a call cut off in its middle is never completed by
//! guessing, and arguments that cannot be read do not end a run. Such a call is kept and marked, so that
//! its result can say what was wrong, and goes back as one field, so that the model sees what it wrote.
//! How calls, names and arguments are spelled is decided in [`core_protocol::native`].

use core_protocol::native::{NativeShape, split_function_name};
use core_protocol::{ToolCall, ToolDefinition};
use serde_json::{Map, Value};

/// Field of [`ToolCall::provider_data`] that holds arguments which could not be read.
const UNREADABLE: &str = "unreadable_arguments";

/// The arguments of a native call as the model wrote them, where they could not be read. Such a call
/// must not be run; its result tells the model what is wrong.
#[must_use]
pub fn unreadable_arguments(call: &ToolCall) -> Option<&str> {
    call.provider_data.as_ref()?.get(UNREADABLE)?.as_str()
}

/// A call as it came, put together from its pieces.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RawCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON text, as far as it came.
    pub(crate) arguments: String,
    /// Fields of the provider's own, to be sent back unchanged.
    pub(crate) extra: Map<String, Value>,
}

/// How the calls of one reply are read.
pub(crate) struct CallReader<'a> {
    pub(crate) shape: &'a dyn NativeShape,
    pub(crate) tools: &'a [ToolDefinition],
    /// What the ids of calls without one begin with; unique within a history.
    pub(crate) id_prefix: &'a str,
    /// Whether the reply was not cut.
    pub(crate) whole: bool,
}

impl CallReader<'_> {
    /// The call. `position`: its place in the reply. `item` spells it in the provider's form.
    pub(crate) fn read(
        &self,
        position: usize,
        mut call: RawCall,
        item: impl FnOnce(&RawCall) -> Value,
    ) -> ToolCall {
        if call.id.is_empty() {
            call.id = format!("{}{position}", self.id_prefix);
        }
        let mut data = std::mem::take(&mut call.extra);
        if self.whole || is_object(&call.arguments) {
            let mut item = item(&call);
            if let Value::Object(fields) = &mut item {
                fields.extend(data.clone());
            }
            if let Some(read) = self.shape.read_calls(std::slice::from_ref(&item), self.tools).calls.pop() {
                return read;
            }
        }
        let (server, tool) = split_function_name(&call.name, self.tools);
        data.insert(UNREADABLE.to_owned(), Value::String(call.arguments));
        ToolCall {
            id: call.id,
            server,
            tool,
            arguments: Map::new(),
            span: None,
            server_span: None,
            repaired: None,
            provider_data: Some(Value::Object(data)),
        }
    }
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// A call as it is sent back, under this id. `echoed`: the fields of the provider's own that go with it;
/// others are another provider's, and a stranger refuses them.
pub(crate) fn replayed(shape: &dyn NativeShape, call: &ToolCall, id: &str, echoed: &[&str]) -> Value {
    let arguments = match unreadable_arguments(call) {
        Some(raw) => Map::from_iter([(UNREADABLE.to_owned(), Value::from(raw))]),
        None => call.arguments.clone(),
    };
    let data = call.provider_data.as_ref().and_then(Value::as_object);
    let kept: Map<String, Value> =
        echoed.iter().filter_map(|name| Some(((*name).to_owned(), data?.get(*name)?.clone()))).collect();
    shape.render_call(&ToolCall {
        id: id.to_owned(),
        server: call.server.clone(),
        tool: call.tool.clone(),
        arguments,
        span: None,
        server_span: None,
        repaired: None,
        provider_data: (!kept.is_empty()).then_some(Value::Object(kept)),
    })
}

#[cfg(test)]
mod tests {
    use core_protocol::native::{AnthropicBlocks, NativeShape, OpenAiChat, OpenAiResponses};
    use serde_json::{Value, json};

    use super::{CallReader, RawCall, replayed, unreadable_arguments};

    fn item(shape: &dyn NativeShape, call: &RawCall) -> Value {
        match shape.name() {
            "anthropic" => {
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
            }
            "openai_chat" => {
                json!({"id": call.id, "function": {"name": call.name, "arguments": call.arguments}})
            }
            _ => {
                json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments})
            }
        }
    }

    #[track_caller]
    fn check(raw: &str, whole: bool, expected: &Value, unreadable: bool) {
        let shapes: [&dyn NativeShape; 3] = [&OpenAiChat, &OpenAiResponses, &AnthropicBlocks];
        for shape in shapes {
            let reader = CallReader { shape, tools: &[], id_prefix: "call_7_", whole };
            let call = RawCall { name: "s-t".into(), arguments: raw.into(), ..RawCall::default() };
            let call = reader.read(2, call, |call| item(shape, call));
            assert_eq!(Value::Object(call.arguments.clone()), *expected, "{raw}");
            assert_eq!(unreadable_arguments(&call), unreadable.then_some(raw));
            assert_eq!((call.id.as_str(), call.server.as_str(), call.tool.as_str()), ("call_7_2", "s", "t"));
            let sent = replayed(shape, &call, &call.id, &[]);
            let again = shape.read_calls(std::slice::from_ref(&sent), &[]).calls.remove(0);
            let seen = if unreadable { json!({"unreadable_arguments": raw}) } else { expected.clone() };
            assert_eq!(Value::Object(again.arguments), seen, "{sent}");
            assert!(sent.get("unreadable_arguments").is_none(), "{sent}");
        }
    }

    #[test]
    fn reads_what_servers_send() {
        check(r#"{"a": 1}"#, true, &json!({"a": 1}), false);
        check("", true, &json!({}), false);
        check("null", true, &json!({}), false);
        check(r#""{\"a\": 1}""#, true, &json!({"a": 1}), false);
        check("{'a': 1,}", true, &json!({"a": 1}), false);
        check("[1, 2]", true, &json!({}), true);
    }

    #[test]
    fn a_cut_call_is_not_completed_by_guessing() {
        check(r#"{"code": "rm -rf /tmp/x"#, false, &json!({}), true);
        check("{'a': 1,}", false, &json!({}), true);
        check("", false, &json!({}), true);
        check(r#"{"a": 1}"#, false, &json!({"a": 1}), false);
        check("[1, 2]", false, &json!({}), true);
    }

    #[test]
    fn only_the_providers_own_fields_go_back() {
        let extra = json!({"extra_content": {"google": {"thought_signature": "c2ln"}}, "other": 1});
        let call = RawCall {
            id: "a".into(),
            name: "s-t".into(),
            arguments: "{}".into(),
            extra: extra.as_object().cloned().unwrap(),
        };
        let reader = CallReader { shape: &OpenAiChat, tools: &[], id_prefix: "", whole: true };
        let call = reader.read(0, call, |call| item(&OpenAiChat, call));
        let sent = replayed(&OpenAiChat, &call, "a", &["extra_content"]);
        assert_eq!(sent["extra_content"], extra["extra_content"]);
        assert!(sent.get("other").is_none());
        let elsewhere = replayed(&AnthropicBlocks, &call, "a", &[]);
        assert_eq!(elsewhere, json!({"type": "tool_use", "id": "a", "name": "s-t", "input": {}}));
    }
}
