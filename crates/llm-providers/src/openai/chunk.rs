//! What is read of a chat completion, or of a chunk of one.
//!
//! Decides in which fields text, thinking, calls, usage and end are looked for. What they come to is
//! decided in the assembler.

use serde::Deserialize;
use serde_json::Value;

use crate::lenient_json::{List, Number, Object, Text, TextOr};
use crate::usage::WireUsage;

/// One chunk, or a whole completion.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    /// None: this is no chunk of a reply, but perhaps usage or an error.
    #[serde(borrow)]
    pub(super) choices: Option<List<Choice<'a>>>,
    usage: Object<Box<WireUsage>>,
    /// Groq's place for usage.
    x_groq: Object<Box<Groq>>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Groq {
    usage: Object<Box<WireUsage>>,
}

/// One of the answers that were asked for; only the first is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    index: Number,
    #[serde(borrow)]
    pub(super) delta: Object<Delta<'a>>,
    #[serde(borrow)]
    pub(super) message: Object<Box<Delta<'a>>>,
    #[serde(borrow)]
    pub(super) finish_reason: Text<'a>,
    /// The stop sequence at which the reply ended (vLLM).
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    usage: Object<Box<WireUsage>>,
}

/// A piece of a message, or a whole one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    /// Text, or a list of parts (Mistral's thinking models).
    #[serde(borrow)]
    pub(super) content: TextOr<'a>,
    #[serde(borrow)]
    reasoning_content: Text<'a>,
    #[serde(borrow)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: List<CallPiece<'a>>,
    /// Thinking in the form in which OpenRouter wants it back.
    pub(super) reasoning_details: List<Value>,
}

/// One element of `tool_calls`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallPiece<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    pub(super) index: Number,
    #[serde(borrow)]
    function: Object<Function<'a>>,
    /// Gemini's place for thought signatures.
    pub(super) extra_content: Option<Value>,
    /// Name and arguments without a `function` around them.
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: TextOr<'a>,
}

/// Name and arguments of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: TextOr<'a>,
}

impl<'a> Chunk<'a> {
    /// Whether this is a piece of a reply and nothing else.
    pub(super) fn is_plain(&self) -> bool {
        self.choices.is_some() && self.error.is_none()
    }

    /// The first of the answers, taken out.
    pub(super) fn take_choice(&mut self) -> Option<Choice<'a>> {
        let choices = self.choices.take()?;
        choices.0.into_iter().find(Choice::is_first)
    }

    /// The tokens, wherever they stand.
    pub(super) fn usage(&self) -> Option<core_protocol::Usage> {
        let groq = self.x_groq.0.as_ref().and_then(|groq| groq.usage.0.as_deref());
        let choices = self.choices.iter().flat_map(|choices| &choices.0);
        let choice = choices.filter(|choice| choice.is_first()).find_map(|choice| choice.usage.0.as_deref());
        [self.usage.0.as_deref(), choice, groq].into_iter().flatten().find_map(WireUsage::read)
    }
}

impl Choice<'_> {
    fn is_first(&self) -> bool {
        self.index.0.unwrap_or(0) == 0
    }
}

impl Delta<'_> {
    /// Thinking: servers have renamed the field, and some send both.
    pub(super) fn thinking(&self) -> Option<&str> {
        self.reasoning_content.get().or_else(|| self.reasoning.get())
    }
}

impl<'a> CallPiece<'a> {
    pub(super) fn name(&self) -> &str {
        match &self.function.0 {
            Some(function) => function.name.or_empty(),
            None => self.name.or_empty(),
        }
    }

    pub(super) fn arguments(&self) -> &TextOr<'a> {
        match &self.function.0 {
            Some(function) => &function.arguments,
            None => &self.arguments,
        }
    }
}
