//! Decides what is public; each module says what it decides itself.
//!
#![doc = include_str!("../README.md")]

mod arguments;
pub mod block;
mod boxed;
mod coerce;
mod completion;
mod convert;
pub mod dialect;
pub mod event;
pub mod json_reader;
mod message;
pub mod names;
pub mod native;
mod parse;
mod place;
mod python_repr;
mod render;
mod reply;
mod scanner;
mod schema;
mod stream;
mod tag_table;
mod tool;

pub use arguments::{
    ArgumentError, MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH, ParsedArguments, parse_arguments,
};
pub use boxed::{boxed_answer, boxed_answer_of_reply, last_boxed};
pub use completion::{Completion, FinishReason, Usage};
pub use convert::{convert_history, history_from_native, history_to_native};
pub use dialect::{Dialect, DialectName, Opener};
pub use message::{ContentBlock, MediaSource, Message, Role};
pub use parse::{ParseOptions, failure_summary_text, parse_reply};
pub use render::{SchemaStyle, correct_server_names, render_call, render_results, render_tool_section};
pub use reply::{MAX_MALFORMED, MalformedBlock, Outcome, ParsedReply, Segment, SegmentKind, StrayTag};
pub use schema::published_schemas;
pub use stream::{ParseEvent, StreamError, StreamParser, StreamedReply};
pub use tool::{ArgumentRepair, Span, ToolCall, ToolDefinition, ToolResult};
