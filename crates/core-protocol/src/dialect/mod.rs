//! Dialects: which spelling of tool calls a text uses.
//!
//! Decides what a dialect has to offer ([`Dialect`]) and which ones are built in ([`DialectName`]).
//! Each dialect is one module; the scanner, the renderers and the conversion of histories know only
//! the trait, so that a dialect from another crate is as good as those here:
//!
//! ```
//! use core_protocol::block::{BlockCall, BlockInput, BlockProgress, BlockReader, Look};
//! use core_protocol::json_reader::{JsonRead, JsonReader};
//! use core_protocol::{Dialect, Opener, ParseOptions, ToolCall, parse_arguments, parse_reply, render_call};
//!
//! /// `[CALL name]{…}[/CALL]`
//! struct Brackets;
//!
//! const OPEN: &str = "[CALL ";
//! const CLOSE: &str = "[/CALL]";
//!
//! impl Dialect for Brackets {
//!     fn name(&self) -> &str {
//!         "brackets"
//!     }
//!
//!     fn tags(&self) -> &[&'static str] {
//!         &[OPEN, CLOSE]
//!     }
//!
//!     fn openers(&self) -> &[Opener] {
//!         &[Opener { literal: OPEN, closer: CLOSE, bare: false }]
//!     }
//!
//!     fn reader(&self, _opener: usize, start: usize) -> Box<dyn BlockReader> {
//!         Box::new(Reader { name: start + OPEN.len(), json: None })
//!     }
//!
//!     fn render_call(&self, call: &ToolCall) -> String {
//!         format!("{OPEN}{}]{}{CLOSE}", call.tool, serde_json::json!(call.arguments))
//!     }
//! }
//!
//! /// Keeps its place: where the name begins, and once that is read, its end and what reads the JSON.
//! struct Reader {
//!     name: usize,
//!     json: Option<(usize, JsonReader)>,
//! }
//!
//! impl BlockReader for Reader {
//!     fn read(&mut self, input: &BlockInput<'_>) -> BlockProgress {
//!         if self.json.is_none() {
//!             match input.text[self.name..].find(']') {
//!                 Some(end) => self.json = Some((self.name + end, JsonReader::new(self.name + end + 1))),
//!                 None if input.complete => return BlockProgress::fault(self.name, "`]` is expected"),
//!                 None => return BlockProgress::More,
//!             }
//!         }
//!         let Some((name_end, json)) = &mut self.json else { return BlockProgress::More };
//!         let end = match json.read(input.text, input.complete) {
//!             JsonRead::End(end) => end,
//!             JsonRead::More if !input.complete => return BlockProgress::More,
//!             JsonRead::More => return BlockProgress::fault(input.text.len(), "the text ends in the call"),
//!             JsonRead::Broken { at, suspect, problem } => {
//!                 return BlockProgress::fault_from(at, suspect, problem);
//!             }
//!         };
//!         match input.literal_at(end, &[CLOSE]) {
//!             Look::More => return BlockProgress::More,
//!             Look::Absent => return BlockProgress::fault(end, "`[/CALL]` is expected"),
//!             Look::Found(_) => {}
//!         }
//!         match parse_arguments(&input.text[*name_end + 1..end]) {
//!             Ok(read) => BlockProgress::Call(Box::new(BlockCall {
//!                 end: end + CLOSE.len(),
//!                 id: None,
//!                 server: String::new(),
//!                 server_span: None,
//!                 tool: input.text[self.name..*name_end].to_owned(),
//!                 arguments: read.arguments,
//!                 repaired: read.repaired,
//!             })),
//!             Err(error) => BlockProgress::fault(end, error.to_string()),
//!         }
//!     }
//! }
//!
//! let reply = "<think>[CALL no]{}[/CALL]</think>So: [CALL look]{\"for\": \"[/CALL]\"}[/CALL]";
//! let parsed = parse_reply(reply, &ParseOptions::new(&Brackets));
//! assert_eq!(parsed.calls.len(), 1);
//! assert_eq!(render_call(&Brackets, &parsed.calls[0]), "[CALL look]{\"for\":\"[/CALL]\"}[/CALL]");
//! ```
//!
//! The incremental parser reads it as well, and a history can be converted into it.

mod auto;
mod hermes;
mod mcp_xml;
mod qwen_xml;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::block::BlockReader;
use crate::render::{self, SchemaStyle};
use crate::{ToolCall, ToolDefinition};

pub use auto::Auto;
pub use hermes::Hermes;
pub use mcp_xml::McpXml;
pub use qwen_xml::QwenXml;

/// A built-in dialect, as it is named in configuration files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialectName {
    /// `<use_mcp_tool>` with server name, tool name and JSON arguments.
    #[default]
    McpXml,
    /// `<tool_call>` around a JSON object with `name` and `arguments`.
    Hermes,
    /// `<tool_call>` around `<function=…>` with one `<parameter=…>` for each argument.
    QwenXml,
    /// Reads any of the three; writes [`DialectName::McpXml`].
    Auto,
}

impl DialectName {
    /// Every built-in dialect.
    pub const ALL: [Self; 4] = [Self::McpXml, Self::Hermes, Self::QwenXml, Self::Auto];

    /// The dialect itself.
    #[must_use]
    pub fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::McpXml => &McpXml,
            Self::Hermes => &Hermes,
            Self::QwenXml => &QwenXml,
            Self::Auto => &Auto,
        }
    }

    /// The name in configuration files and on command lines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::McpXml => "mcp_xml",
            Self::Hermes => "hermes",
            Self::QwenXml => "qwen_xml",
            Self::Auto => "auto",
        }
    }

    /// The dialect of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == name)
    }
}

/// A tag at which a call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opener {
    /// The exact text. It begins with `<`, or with `{` where [`Opener::bare`] is set.
    pub literal: &'static str,
    /// The tag that ends such a block, by which the extent of a broken one is found.
    pub closer: &'static str,
    /// Whether it may as well be plain text: it counts only at the beginning of a line, and a block that
    /// cannot be read is text and no malformed block.
    pub bare: bool,
}

/// One spelling of tool calls.
///
/// Reading: the scanner looks for [`Dialect::openers`] outside thinking, and at each asks for a
/// [`BlockReader`], which finds out where the block ends and what it says. Writing: the renderers.
/// What [`Dialect::render_call`] writes, the reader must read back to the same call.
pub trait Dialect: Send + Sync {
    /// Its name, as in configuration files.
    fn name(&self) -> &str;

    /// The tags that betray a call that went wrong, when they stand outside of calls.
    fn tags(&self) -> &[&'static str];

    /// The tags at which a call begins. None may be the beginning of another.
    fn openers(&self) -> &[Opener];

    /// A reader for the block that begins at byte `start` with `self.openers()[opener]`.
    fn reader(&self, opener: usize, start: usize) -> Box<dyn BlockReader>;

    /// Writes a call. Names are written as they are; they must not hold tags.
    fn render_call(&self, call: &ToolCall) -> String;

    /// Writes the results of one turn's calls, in order, as the text of one user message. If not said
    /// otherwise, a `<tool_response>` element for each.
    fn render_results(&self, results: &[(&ToolCall, String)]) -> String {
        render::tool_responses(results)
    }

    /// The texts that [`Dialect::render_results`] put into a message; none where it cannot be told.
    fn split_results<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        render::split_tool_responses(text)
    }

    /// Writes the tool section of a system prompt. If not said otherwise, a heading for each server and
    /// each tool with its schema.
    fn render_tools(&self, tools: &[ToolDefinition], style: SchemaStyle) -> String {
        render::tools_by_server(tools, style)
    }
}
