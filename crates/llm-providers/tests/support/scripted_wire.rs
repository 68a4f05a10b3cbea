//! A scripted reply in each wire format.
//!
//! Decides how a text, thinking, calls and usage are spelled, streamed and as one object.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Chat,
    Messages,
    Responses,
}

impl Wire {
    /// The format of a request's path.
    pub(super) fn of(path: &str) -> Self {
        let path = path.split('?').next().unwrap_or("");
        if path.ends_with("/messages") {
            Self::Messages
        } else if path.ends_with("/responses") {
            Self::Responses
        } else {
            Self::Chat
        }
    }
}

/// What a model says.
#[derive(Debug, Clone, Default)]
pub(super) struct Chat {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<(String, String, String)>,
    pub(super) usage: Option<(u64, u64, u64)>,
    pub(super) finish: Option<String>,
}

/// An event that is named by its object's `type`.
pub(super) fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or("message"))
}

/// A text in a few pieces, as models send it.
fn split(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let size = (text.len() / 4).max(1);
    while !rest.is_empty() {
        let mut end = size.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

impl Chat {
    /// The reply as a stream.
    pub(super) fn streamed(&self, wire: Wire) -> String {
        match wire {
            Wire::Chat => self.chunks(),
            Wire::Messages => self.events(),
            Wire::Responses => self.response_events(),
        }
    }

    /// The reply as one object.
    pub(super) fn whole(&self, wire: Wire) -> Value {
        match wire {
            Wire::Chat => self.completion(),
            Wire::Messages => self.message(),
            Wire::Responses => self.response("completed"),
        }
    }

    fn chunks(&self) -> String {
        let chunk = |delta: Value, finish: Value| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice]})
        };
        let mut values = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
        values.extend(
            split(&self.reasoning).iter().map(|p| chunk(json!({"reasoning_content": p}), Value::Null)),
        );
        values.extend(split(&self.text).iter().map(|p| chunk(json!({"content": p}), Value::Null)));
        for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
            let first = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
            values.push(chunk(json!({"tool_calls": [first]}), Value::Null));
            for piece in split(arguments) {
                let more = json!({"index": index, "function": {"arguments": piece}});
                values.push(chunk(json!({"tool_calls": [more]}), Value::Null));
            }
        }
        values.push(chunk(json!({}), json!(self.finish_word("tool_calls", "stop"))));
        if let Some(usage) = self.chat_usage() {
            values.push(json!({"object": "chat.completion.chunk", "model": "scripted", "choices": [], "usage": usage}));
        }
        let mut text: String = values.iter().map(|value| format!("data: {value}\n\n")).collect();
        text.push_str("data: [DONE]\n\n");
        text
    }

    fn completion(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        if !self.calls.is_empty() {
            message["tool_calls"] = self
                .calls
                .iter()
                .map(|(id, name, arguments)| {
                    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
                })
                .collect();
        }
        let choice =
            json!({"index": 0, "message": message, "finish_reason": self.finish_word("tool_calls", "stop")});
        json!({"object": "chat.completion", "model": "scripted", "choices": [choice], "usage": self.chat_usage()})
    }

    fn chat_usage(&self) -> Option<Value> {
        self.usage.map(|(input, output, cached)| {
            json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
                "prompt_tokens_details": {"cached_tokens": cached}})
        })
    }

    fn events(&self) -> String {
        let usage = self.message_usage();
        let mut values = vec![
            json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "model": "scripted",
                "content": [], "usage": {"input_tokens": usage["input_tokens"],
                "cache_read_input_tokens": usage["cache_read_input_tokens"], "output_tokens": 1}}}),
            json!({"type": "ping"}),
        ];
        let mut index = 0;
        let mut block = |start: Value, deltas: Vec<Value>| {
            values.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
            values.extend(
                deltas
                    .into_iter()
                    .map(|d| json!({"type": "content_block_delta", "index": index, "delta": d})),
            );
            values.push(json!({"type": "content_block_stop", "index": index}));
            index += 1;
        };
        if !self.reasoning.is_empty() {
            let mut deltas: Vec<Value> = split(&self.reasoning)
                .iter()
                .map(|p| json!({"type": "thinking_delta", "thinking": p}))
                .collect();
            deltas.push(json!({"type": "signature_delta", "signature": "c2lnbmF0dXJl"}));
            block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
        }
        if !self.text.is_empty() {
            let deltas = split(&self.text).iter().map(|p| json!({"type": "text_delta", "text": p})).collect();
            block(json!({"type": "text", "text": ""}), deltas);
        }
        for (id, name, arguments) in &self.calls {
            let deltas = split(arguments)
                .iter()
                .map(|p| json!({"type": "input_json_delta", "partial_json": p}))
                .collect();
            block(json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas);
        }
        let stop = json!({"stop_reason": self.finish_word("tool_use", "end_turn"), "stop_sequence": null});
        values.push(json!({"type": "message_delta", "delta": stop, "usage": {"output_tokens": usage["output_tokens"]}}));
        values.push(json!({"type": "message_stop"}));
        values.iter().map(event).collect()
    }

    fn message(&self) -> Value {
        let mut content = Vec::new();
        if !self.reasoning.is_empty() {
            content
                .push(json!({"type": "thinking", "thinking": self.reasoning, "signature": "c2lnbmF0dXJl"}));
        }
        if !self.text.is_empty() {
            content.push(json!({"type": "text", "text": self.text}));
        }
        for (id, name, arguments) in &self.calls {
            let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        }
        json!({"type": "message", "id": "msg_1", "role": "assistant", "model": "scripted", "content": content,
            "stop_reason": self.finish_word("tool_use", "end_turn"), "usage": self.message_usage()})
    }

    fn message_usage(&self) -> Value {
        let (input, output, cached) = self.usage.unwrap_or((1, 1, 0));
        json!({"input_tokens": input - cached, "output_tokens": output, "cache_read_input_tokens": cached})
    }

    fn response_events(&self) -> String {
        let mut values = vec![
            json!({"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress",
                "model": "scripted", "output": [], "error": null}}),
            json!({"type": "response.in_progress", "response": {"id": "resp_1", "status": "in_progress"}}),
        ];
        let whole = self.response("completed");
        let output = whole["output"].as_array().cloned().unwrap_or_default();
        for (index, item) in output.iter().enumerate() {
            let mut begun = item.clone();
            let (kind, pieces) = match item["type"].as_str() {
                Some("message") => {
                    begun["content"] = json!([]);
                    ("response.output_text.delta", split(&self.text))
                }
                Some("reasoning") => {
                    begun["summary"] = json!([]);
                    ("response.reasoning_summary_text.delta", split(&self.reasoning))
                }
                _ => {
                    begun["arguments"] = json!("");
                    (
                        "response.function_call_arguments.delta",
                        split(item["arguments"].as_str().unwrap_or("")),
                    )
                }
            };
            values.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
            values.extend(pieces.iter().map(|piece| {
                json!({"type": kind, "item_id": item["id"], "output_index": index, "content_index": 0, "delta": piece})
            }));
            values.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        }
        let status = whole["status"].as_str().unwrap_or("completed");
        values.push(json!({"type": format!("response.{status}"), "response": whole}));
        values.iter().map(event).collect()
    }

    /// `done`: the status where no finish word is set. `length` and `content_filter` make it incomplete.
    fn response(&self, done: &str) -> Value {
        let mut output = Vec::new();
        if !self.reasoning.is_empty() {
            output.push(json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "b3BhcXVl",
                "summary": [{"type": "summary_text", "text": self.reasoning}]}));
        }
        if !self.text.is_empty() {
            output.push(json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": self.text, "annotations": []}]}));
        }
        for (number, (id, name, arguments)) in self.calls.iter().enumerate() {
            output.push(
                json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": name,
                "arguments": arguments, "status": "completed"}),
            );
        }
        let (status, why) = match self.finish.as_deref() {
            Some("length") => ("incomplete", json!({"reason": "max_output_tokens"})),
            Some("content_filter") => ("incomplete", json!({"reason": "content_filter"})),
            Some(other) => (other, Value::Null),
            None => (done, Value::Null),
        };
        let usage = self.usage.map(|(input, output, cached)| {
            json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output,
                "input_tokens_details": {"cached_tokens": cached}})
        });
        json!({"id": "resp_1", "object": "response", "status": status, "model": "scripted", "error": null,
            "incomplete_details": why, "output": output, "usage": usage})
    }

    fn finish_word<'a>(&'a self, with_calls: &'a str, without: &'a str) -> &'a str {
        self.finish.as_deref().unwrap_or(if self.calls.is_empty() { without } else { with_calls })
    }
}
