//! The published JSON schemas of what others store and exchange.
//!
//! Decides which types are published. The files in `schema/` are printed from here, and a test fails
//! when they differ.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use crate::event::Event;
use crate::{Completion, Message, ParsedReply, ToolDefinition};

/// Each published schema with its name, in JSON Schema 2020-12.
#[must_use]
pub fn published_schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("event", schema_of::<Event>()),
        ("message", schema_of::<Message>()),
        ("completion", schema_of::<Completion>()),
        ("tool_definition", schema_of::<ToolDefinition>()),
        ("parsed_reply", schema_of::<ParsedReply>()),
    ]
}

fn schema_of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}
