//! Spans of a run for `tracing`, with the names and attributes of OpenTelemetry's conventions for generative AI.
//!
//! Decides those names only. Spans are at level debug under the target `gen_ai`: where no subscriber wants them they
//! cost a comparison. Texts are never among the attributes.

use core_protocol::Completion;
use tracing::field::{Empty, debug};
use tracing::{Span, debug_span};

const TARGET: &str = "gen_ai";

/// An agent at work, from its first request to its end.
pub(crate) fn agent(name: &str) -> Span {
    debug_span!(
        target: TARGET,
        "invoke_agent",
        otel.name = %format_args!("invoke_agent {name}"),
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = name,
    )
}

/// A call to the model with all its tries.
pub(crate) fn chat(call: u64) -> Span {
    debug_span!(
        target: TARGET,
        "chat",
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        fathom.call = call,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.r#type = Empty,
    )
}

/// What the model answered.
pub(crate) fn answered(span: &Span, completion: &Completion) {
    if span.is_disabled() {
        return;
    }
    span.record("gen_ai.response.finish_reasons", debug(&completion.finish_reason));
    if let Some(model) = &completion.model {
        span.record("gen_ai.response.model", model.as_str());
    }
    if let Some(usage) = &completion.usage {
        span.record("gen_ai.usage.input_tokens", usage.input);
        span.record("gen_ai.usage.output_tokens", usage.output);
    }
}

/// A tool call.
pub(crate) fn tool(id: &str, server: &str, tool: &str) -> Span {
    debug_span!(
        target: TARGET,
        "execute_tool",
        otel.name = %format_args!("execute_tool {tool}"),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        gen_ai.tool.call.id = id,
        fathom.server = server,
        error.r#type = Empty,
    )
}

/// What a call failed with.
pub(crate) fn failed(span: &Span, kind: &str) {
    span.record("error.type", kind);
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Write as _};
    use std::sync::{Arc, Mutex};

    use core_protocol::{FinishReason, Message, Usage};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Writes down every span and what is recorded on it.
    #[derive(Default)]
    struct Heard(Arc<Mutex<String>>);

    struct Fields<'a>(&'a mut String);

    impl Visit for Fields<'_> {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            let _ = write!(self.0, " {}={value:?}", field.name());
        }
    }

    impl Subscriber for Heard {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == TARGET
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            let mut text = self.0.lock().unwrap();
            text.push_str(span.metadata().name());
            span.record(&mut Fields(&mut text));
            text.push('\n');
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, values: &Record<'_>) {
            let mut text = self.0.lock().unwrap();
            text.push('+');
            values.record(&mut Fields(&mut text));
            text.push('\n');
        }

        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn names_are_those_of_the_conventions() {
        let heard = Heard::default();
        let text = Arc::clone(&heard.0);
        tracing::subscriber::with_default(heard, || {
            drop(agent("main"));
            let span = chat(3);
            let completion = Completion {
                message: Message::assistant("secret text"),
                finish_reason: FinishReason::Stop,
                usage: Some(Usage { input: 10, output: 2, ..Usage::default() }),
                model: Some("m-1".to_owned()),
            };
            answered(&span, &completion);
            failed(&tool("call-1", "web", "google_search"), "timeout");
        });
        let text = text.lock().unwrap();
        for part in [
            "invoke_agent otel.name=invoke_agent main gen_ai.operation.name=\"invoke_agent\" gen_ai.agent.name=\"main\"",
            "chat otel.kind=\"client\" gen_ai.operation.name=\"chat\" fathom.call=3",
            "gen_ai.response.model=\"m-1\"",
            "gen_ai.usage.input_tokens=10",
            "gen_ai.usage.output_tokens=2",
            "execute_tool otel.name=execute_tool google_search gen_ai.operation.name=\"execute_tool\"",
            "gen_ai.tool.call.id=\"call-1\"",
            "error.type=\"timeout\"",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("secret"), "{text}");
    }
}
