//! `hermes`: `<tool_call>` around a JSON object with `name` and `arguments`.
//!
//! Decides where such a block ends, by reading its JSON, and what its keys may be called. A block whose
//! opening tag is missing is taken too: an object that begins a line and is followed by the closing tag.

use serde_json::{Map, Value};

use super::{Dialect, Opener};
use crate::arguments::{self, ParsedArguments};
use crate::block::{Blank, BlockCall, BlockInput, BlockProgress, BlockReader, Look};
use crate::json_reader::{JsonRead, JsonReader};
use crate::render::{self, SchemaStyle};
use crate::{ArgumentRepair, Span, ToolCall, ToolDefinition, names};

pub(super) const OPEN: &str = "<tool_call>";
pub(super) const CLOSE: &str = "</tool_call>";
const TAGS: &[&str] = &[OPEN, CLOSE];
const OPENERS: &[Opener] = &[
    Opener { literal: OPEN, closer: CLOSE, bare: false },
    Opener { literal: "{\"name\"", closer: CLOSE, bare: true },
    Opener { literal: "{ \"name\"", closer: CLOSE, bare: true },
];
/// Keys under which models write the arguments, the first that is there counts.
const ARGUMENT_KEYS: &[&str] = &["arguments", "parameters", "args", "input"];

/// The dialect of Hermes and Qwen models.
#[derive(Debug, Clone, Copy)]
pub struct Hermes;

impl Dialect for Hermes {
    fn name(&self) -> &str {
        "hermes"
    }

    fn tags(&self) -> &[&'static str] {
        TAGS
    }

    fn openers(&self) -> &[Opener] {
        OPENERS
    }

    fn reader(&self, opener: usize, start: usize) -> Box<dyn BlockReader> {
        Box::new(if opener == 0 { Reader::new(start + OPEN.len()) } else { Reader::bare(start) })
    }

    fn render_call(&self, call: &ToolCall) -> String {
        let name = Value::String(names::join(&call.server, &call.tool));
        let arguments = render::spaced_json(&call.arguments);
        format!("{OPEN}\n{{\"name\": {name}, \"arguments\": {arguments}}}\n{CLOSE}")
    }

    fn render_tools(&self, tools: &[ToolDefinition], style: SchemaStyle) -> String {
        let mut section = String::from("<tools>");
        for tool in tools {
            let definition = render::function_definition(tool);
            section.push('\n');
            section.push_str(&match style {
                SchemaStyle::Json => render::spaced_json(&definition),
                SchemaStyle::Python => crate::python_repr::repr(&definition),
            });
        }
        section.push_str("\n</tools>");
        section
    }
}

#[derive(Debug)]
enum Stage {
    /// White space and perhaps a fence before the JSON.
    Before {
        at: usize,
        fenced: bool,
    },
    Value(JsonReader),
    /// Behind the JSON, which ends at `end`; `at` is behind a fence, if there was one.
    After {
        end: usize,
        at: usize,
    },
    /// The closing tag is searched after JSON that cannot be read.
    Search {
        from: usize,
        resume: usize,
        offset: usize,
        problem: &'static str,
    },
}

/// Reads one block; shared with `qwen_xml` and `auto`.
#[derive(Debug)]
pub(super) struct Reader {
    start: usize,
    blank: Blank,
    stage: Stage,
    bare: bool,
}

impl Reader {
    /// A reader for what follows the opening tag.
    pub(super) fn new(start: usize) -> Self {
        Self {
            start,
            blank: Blank::default(),
            stage: Stage::Before { at: start, fenced: false },
            bare: false,
        }
    }

    /// A reader for an object without an opening tag.
    pub(super) fn bare(start: usize) -> Self {
        Self { start, blank: Blank::default(), stage: Stage::Value(JsonReader::new(start)), bare: true }
    }

    fn before(&mut self, input: &BlockInput<'_>, at: usize, fenced: bool) -> Option<BlockProgress> {
        let here = self.blank.skip(input, at);
        match input.fence_at(here) {
            Look::More => return Some(BlockProgress::More),
            Look::Found(after) if !fenced => {
                self.stage = Stage::Before { at: after, fenced: true };
                return None;
            }
            _ => {}
        }
        match input.text.as_bytes().get(here) {
            None if !input.complete => return Some(BlockProgress::More),
            None => return Some(BlockProgress::fault(here, "the text ends inside the call")),
            Some(b'{' | b'[') => self.stage = Stage::Value(JsonReader::new(here)),
            Some(_) => {
                return Some(BlockProgress::fault(
                    here,
                    "`<tool_call>` must be followed by {\"name\": …, \"arguments\": {…}}",
                ));
            }
        }
        None
    }

    fn value(&mut self, input: &BlockInput<'_>) -> Option<BlockProgress> {
        let Stage::Value(json) = &mut self.stage else { return None };
        let (at, suspect, problem) = match json.read(input.text, input.complete) {
            JsonRead::More if !input.complete => return Some(BlockProgress::More),
            JsonRead::More => (input.text.len(), json.suspect(), "the text ends inside the call"),
            JsonRead::End(end) => {
                self.stage = Stage::After { end, at: end };
                return None;
            }
            JsonRead::Broken { at, suspect, problem } => (at, suspect, problem),
        };
        if self.bare {
            return Some(BlockProgress::fault(at, problem));
        }
        self.stage = Stage::Search { from: suspect, resume: suspect, offset: at, problem };
        None
    }

    fn after(&mut self, input: &BlockInput<'_>, end: usize, at: usize) -> Option<BlockProgress> {
        let here = self.blank.skip(input, at);
        match input.literal_at(here, &[CLOSE, "```"]) {
            Look::More => Some(BlockProgress::More),
            Look::Found(0) => Some(self.finish(input, end, here + CLOSE.len(), here, false)),
            Look::Found(_) if at == end => {
                self.stage = Stage::After { end, at: here + 3 };
                None
            }
            Look::Absent if !self.bare && input.accept_unclosed && input.complete && input.ends_at(here) => {
                Some(self.finish(input, end, here, here, true))
            }
            _ if self.bare => Some(BlockProgress::fault(here, "no `</tool_call>` follows the object")),
            _ if input.ends_at(here) => {
                Some(BlockProgress::fault_from(here, end, "the text ends before `</tool_call>`"))
            }
            _ => {
                let problem = "something else than `</tool_call>` follows the object";
                self.stage = Stage::Search { from: end, resume: end, offset: here, problem };
                None
            }
        }
    }

    /// Looks for a closing tag behind a brace, before the next opening tag.
    fn search(&mut self, input: &BlockInput<'_>) -> Option<BlockProgress> {
        let Stage::Search { from, resume, offset, problem } = &mut self.stage else { return None };
        let (resume, offset) = (*resume, *offset);
        let problem = format!("the call cannot be read as JSON: {problem}");
        loop {
            let Some(found) = input.find(*from, b'<') else {
                if input.complete {
                    return Some(BlockProgress::fault_from(offset, resume, problem));
                }
                *from = input.text.len();
                return Some(BlockProgress::More);
            };
            *from = found;
            match input.literal_at(found, &[CLOSE, OPEN]) {
                Look::More => return Some(BlockProgress::More),
                Look::Absent => *from = found + 1,
                Look::Found(1) => return Some(BlockProgress::fault_from(offset, resume, problem)),
                Look::Found(_) => {
                    let raw = Span::new(self.start, found).of(input.text).trim_end();
                    if raw.strip_suffix("```").unwrap_or(raw).trim_end().ends_with('}') {
                        return Some(self.finish(input, found, found + CLOSE.len(), offset, false));
                    }
                    *from = found + 1;
                }
            }
        }
    }

    /// Reads the object in `start..end`.
    fn finish(
        &self,
        input: &BlockInput<'_>,
        end: usize,
        block_end: usize,
        fault_at: usize,
        unclosed: bool,
    ) -> BlockProgress {
        let raw = Span::new(self.start, end).of(input.text).trim();
        let raw = raw.strip_prefix("```").map_or(raw, |inside| {
            inside.trim_start_matches(|character: char| character.is_ascii_alphanumeric()).trim()
        });
        let (members, repaired) = match arguments::read_value(raw) {
            Ok((Value::Object(members), repaired)) => (members, repaired),
            Ok(_) => {
                return BlockProgress::fault_from(
                    self.start,
                    end,
                    "the call is not one JSON object with `name` and `arguments`",
                );
            }
            Err(error) => return BlockProgress::fault_from(fault_at, end, error.to_string()),
        };
        if unclosed && repaired == Some(ArgumentRepair::Repaired) {
            return BlockProgress::fault(fault_at, "the block is not closed and is not complete JSON");
        }
        match call_of(members, repaired, input.known_tools) {
            Ok(call) => BlockProgress::Call(Box::new(BlockCall { end: block_end, ..call })),
            Err(problem) => BlockProgress::fault_from(self.start, end, problem),
        }
    }
}

impl BlockReader for Reader {
    fn read(&mut self, input: &BlockInput<'_>) -> BlockProgress {
        loop {
            let progress = match self.stage {
                Stage::Before { at, fenced } => self.before(input, at, fenced),
                Stage::Value(_) => self.value(input),
                Stage::After { end, at } => self.after(input, end, at),
                Stage::Search { .. } => self.search(input),
            };
            if let Some(progress) = progress {
                return progress;
            }
        }
    }
}

/// The call that an object describes.
fn call_of(
    mut members: Map<String, Value>,
    repaired: Option<ArgumentRepair>,
    known_tools: &[ToolDefinition],
) -> Result<BlockCall, String> {
    // Some models wrap the call as the definition was: {"type": "function", "function": {…}}.
    if !members.contains_key("name")
        && let Some(Value::Object(function)) = members.get_mut("function")
    {
        let function = std::mem::take(function);
        members.extend(function);
    }
    let id = match members.remove("id") {
        Some(Value::String(id)) if !id.is_empty() => Some(id),
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => None,
    };
    let name = match members.remove("name") {
        Some(Value::String(name)) => name,
        Some(_) => return Err("`name` is not a string".to_owned()),
        None => return Err("the call has no `name`".to_owned()),
    };
    let name = name.trim();
    if let Some(problem) = names::fault(name) {
        return Err(problem.to_owned());
    }
    let arguments = ARGUMENT_KEYS.iter().find_map(|key| members.remove(*key));
    let read = match arguments {
        None | Some(Value::Null) => ParsedArguments { arguments: Map::new(), repaired: None },
        Some(Value::Object(arguments)) => ParsedArguments { arguments, repaired: None },
        Some(Value::String(text)) => arguments::parse_arguments(&text).map_err(|error| error.to_string())?,
        Some(_) => return Err("`arguments` is not a JSON object".to_owned()),
    };
    let (server, tool) = names::split(name, known_tools);
    Ok(BlockCall {
        end: 0,
        id,
        server: server.to_owned(),
        server_span: None,
        tool: tool.to_owned(),
        arguments: read.arguments,
        repaired: repaired.max(read.repaired),
    })
}
