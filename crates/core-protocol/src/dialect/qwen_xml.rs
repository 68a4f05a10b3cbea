//! `qwen_xml`: `<tool_call>` around `<function=…>`, with one `<parameter=…>` for each argument.
//!
//! Decides where values end that are written without quotes and may hold tags themselves, and which
//! missing tags are forgiven: the outer opening tag, and `</parameter>` and `</function>` before the
//! next tag. A JSON object in place of `<function=…>` is read as `hermes` has it; it is also written so
//! where a value holds tags that could not be told from the call's own.

use serde_json::{Map, Value};
use std::collections::HashSet;

use super::hermes::{self, CLOSE, OPEN};
use super::{Dialect, Opener};
use crate::block::{Blank, BlockCall, BlockInput, BlockProgress, BlockReader, Look};
use crate::coerce::{Parameters, coerce};
use crate::render::{self, SchemaStyle};
use crate::{Span, ToolCall, ToolDefinition, names};

pub(super) const FUNCTION: &str = "<function=";
const FUNCTION_CLOSE: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const PARAMETER_CLOSE: &str = "</parameter>";
const TAGS: &[&str] = &[OPEN, CLOSE, FUNCTION, FUNCTION_CLOSE, PARAMETER, PARAMETER_CLOSE];
const OPENERS: &[Opener] = &[
    Opener { literal: OPEN, closer: CLOSE, bare: false },
    Opener { literal: FUNCTION, closer: FUNCTION_CLOSE, bare: false },
];
/// What may follow a value's closing tag.
const AFTER_VALUE: &[&str] = &[PARAMETER, PARAMETER_CLOSE, FUNCTION_CLOSE, CLOSE, OPEN, FUNCTION];
/// What may stand inside a value.
const IN_VALUE: &[&str] = &[PARAMETER_CLOSE, PARAMETER, FUNCTION_CLOSE, FUNCTION, CLOSE, OPEN];
/// Deepest that calls quoted inside a value are followed.
const MAX_QUOTED: u32 = 4;
/// Longest parameter name, in bytes.
const MAX_NAME: usize = 256;

/// The dialect of Qwen3-Coder models.
#[derive(Debug, Clone, Copy)]
pub struct QwenXml;

impl Dialect for QwenXml {
    fn name(&self) -> &str {
        "qwen_xml"
    }

    fn tags(&self) -> &[&'static str] {
        TAGS
    }

    fn openers(&self) -> &[Opener] {
        OPENERS
    }

    fn reader(&self, opener: usize, start: usize) -> Box<dyn BlockReader> {
        Box::new(if opener == 0 { Reader::new(start + OPEN.len()) } else { Reader::lone(start) })
    }

    fn render_call(&self, call: &ToolCall) -> String {
        let function = names::join(&call.server, &call.tool);
        let texts: Vec<(&String, String)> =
            call.arguments.iter().map(|(name, value)| (name, value_text(value))).collect();
        let is_plain = |(name, text): &(&String, String)| {
            is_plain_name(name) && name.len() <= MAX_NAME && !TAGS.iter().any(|tag| text.contains(tag))
        };
        if !is_plain_name(&function) || !texts.iter().all(is_plain) {
            return hermes::Hermes.render_call(call);
        }
        let mut written = format!("{OPEN}\n{FUNCTION}{function}>\n");
        for (name, text) in &texts {
            written.push_str(&format!("{PARAMETER}{name}>\n{text}\n{PARAMETER_CLOSE}\n"));
        }
        written.push_str(FUNCTION_CLOSE);
        written.push('\n');
        written.push_str(CLOSE);
        written
    }

    fn render_tools(&self, tools: &[ToolDefinition], style: SchemaStyle) -> String {
        render::tools_as_xml(tools, style)
    }
}

/// Whether a name is read back as it was written into a tag.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.trim() == name && !name.contains(['<', '>', '\n', '"', '\''])
}

/// A value without quotes: text as it is, everything else as JSON.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => render::spaced_json(value),
    }
}

#[derive(Debug)]
enum Stage {
    /// White space and perhaps a fence between the outer tag and the function's.
    Before { at: usize, fenced: bool },
    /// JSON instead of a function.
    Json(hermes::Reader),
    /// The function's name.
    Function { start: usize, from: usize },
    /// Between parameters.
    Parameters { at: usize },
    /// A parameter's name.
    Parameter { start: usize, from: usize },
    /// A parameter's value.
    Value(ValueSearch),
    /// Behind `</function>`.
    After { at: usize, fenced: bool },
}

/// The search for the end of a value.
#[derive(Debug, Clone, Copy)]
struct ValueSearch {
    name: Span,
    start: usize,
    from: usize,
    /// Quoted parameters, functions and outer tags that are open.
    parameters: u32,
    functions: u32,
    outers: u32,
    /// A closing outer tag at which the value ends if it has no end of its own.
    candidate: Option<usize>,
}

/// Reads one block; shared with `auto`.
#[derive(Debug)]
pub(super) struct Reader {
    outer: bool,
    start: usize,
    blank: Blank,
    stage: Stage,
    function: Span,
    /// Names and values, in order.
    parameters: Vec<(Span, Span)>,
    /// The names, to be looked up: there may be very many.
    given: HashSet<String>,
}

impl Reader {
    /// A reader for what follows `<tool_call>`.
    pub(super) fn new(start: usize) -> Self {
        Self::at(start, true, Stage::Before { at: start, fenced: false })
    }

    /// A reader for a `<function=` at `start` without an outer tag.
    pub(super) fn lone(start: usize) -> Self {
        let name = start + FUNCTION.len();
        Self::at(start, false, Stage::Function { start: name, from: name })
    }

    fn at(start: usize, outer: bool, stage: Stage) -> Self {
        let function = Span::new(start, start);
        Self {
            outer,
            start,
            blank: Blank::default(),
            stage,
            function,
            parameters: Vec::new(),
            given: HashSet::new(),
        }
    }

    fn go(&mut self, stage: Stage) -> Option<BlockProgress> {
        self.stage = stage;
        None
    }

    fn before(&mut self, input: &BlockInput<'_>, at: usize, fenced: bool) -> Option<BlockProgress> {
        let here = self.blank.skip(input, at);
        match input.literal_at(here, &[FUNCTION, "{", "[", "```"]) {
            Look::More => Some(BlockProgress::More),
            Look::Found(0) => {
                let start = here + FUNCTION.len();
                self.go(Stage::Function { start, from: start })
            }
            Look::Found(1 | 2) => self.go(Stage::Json(hermes::Reader::new(self.start))),
            Look::Found(_) if !fenced => match input.fence_at(here) {
                Look::Found(after) => self.go(Stage::Before { at: after, fenced: true }),
                _ => Some(BlockProgress::More),
            },
            _ if input.ends_at(here) => Some(BlockProgress::fault(here, "the text ends inside the call")),
            _ => Some(BlockProgress::fault(
                here,
                "`<tool_call>` must be followed by `<function=…>` or by a JSON object",
            )),
        }
    }

    /// The name between `start` and the next `>`.
    fn name(input: &BlockInput<'_>, start: usize, from: usize) -> Look<(Span, usize)> {
        let rest = input.text.as_bytes().get(from..).unwrap_or_default();
        let Some(end) = memchr::memchr3(b'>', b'<', b'\n', rest).map(|found| from + found) else {
            return if input.complete { Look::Absent } else { Look::More };
        };
        if input.text.as_bytes().get(end) != Some(&b'>') {
            return Look::Absent;
        }
        let raw = Span::new(start, end).of(input.text);
        let name = raw.trim().trim_matches(['"', '\'']).trim();
        let left = raw.find(name).unwrap_or(0);
        Look::Found((Span::new(start + left, start + left + name.len()), end + 1))
    }

    fn function(&mut self, input: &BlockInput<'_>, start: usize, from: usize) -> Option<BlockProgress> {
        match Self::name(input, start, from) {
            Look::More => {
                self.stage = Stage::Function { start, from: input.text.len() };
                Some(BlockProgress::More)
            }
            Look::Absent => Some(BlockProgress::fault(start, "`<function=` is not closed by `>`")),
            Look::Found((name, after)) => {
                if let Some(problem) = names::fault(name.of(input.text)) {
                    return Some(BlockProgress::fault(start, problem));
                }
                self.function = name;
                self.go(Stage::Parameters { at: after })
            }
        }
    }

    fn parameters(&mut self, input: &BlockInput<'_>, at: usize) -> Option<BlockProgress> {
        let here = self.blank.skip(input, at);
        match input.literal_at(here, &[PARAMETER, FUNCTION_CLOSE, CLOSE, PARAMETER_CLOSE]) {
            Look::More => Some(BlockProgress::More),
            Look::Found(0) => {
                let start = here + PARAMETER.len();
                self.go(Stage::Parameter { start, from: start })
            }
            Look::Found(1) => self.go(Stage::After { at: here + FUNCTION_CLOSE.len(), fenced: false }),
            Look::Found(2) => Some(self.finish(input, here + CLOSE.len())),
            Look::Found(_) => self.go(Stage::Parameters { at: here + PARAMETER_CLOSE.len() }),
            Look::Absent if input.ends_at(here) => {
                Some(BlockProgress::fault(here, "the text ends before `</function>`"))
            }
            Look::Absent => Some(BlockProgress::fault(here, "`<parameter=…>` or `</function>` is expected")),
        }
    }

    fn parameter(&mut self, input: &BlockInput<'_>, start: usize, from: usize) -> Option<BlockProgress> {
        match Self::name(input, start, from) {
            Look::More => {
                self.stage = Stage::Parameter { start, from: input.text.len() };
                Some(BlockProgress::More)
            }
            Look::Found((name, after)) if !name.is_empty() => self.go(Stage::Value(ValueSearch {
                name,
                start: after,
                from: after,
                parameters: 0,
                functions: 0,
                outers: 0,
                candidate: None,
            })),
            Look::Found(_) => Some(BlockProgress::fault(start, "a parameter has no name")),
            Look::Absent => Some(BlockProgress::fault(start, "`<parameter=` is not closed by `>`")),
        }
    }

    fn value(&mut self, input: &BlockInput<'_>, mut search: ValueSearch) -> Option<BlockProgress> {
        loop {
            let Some(found) = input.find(search.from, b'<') else {
                if !input.complete {
                    search.from = input.text.len();
                    return self.more(search);
                }
                return match search.candidate {
                    Some(end) => self.end_value(input, search, end, end),
                    None => Some(BlockProgress::fault_from(
                        input.text.len(),
                        search.start,
                        "the text ends inside a parameter's value",
                    )),
                };
            };
            search.from = found;
            let tag = match input.literal_at(found, IN_VALUE) {
                Look::More => return self.more(search),
                Look::Absent => {
                    search.from = found + 1;
                    continue;
                }
                Look::Found(tag) => tag,
            };
            let after = found + IN_VALUE.get(tag).map_or(1, |literal| literal.len());
            match tag {
                // </parameter>
                0 if search.parameters > 0 => search.parameters -= 1,
                0 => {
                    let follows = self.blank.skip(input, after);
                    match input.literal_at(follows, AFTER_VALUE) {
                        Look::More => return self.more(search),
                        Look::Absent if !input.ends_at(follows) => {}
                        _ => return self.end_value(input, search, found, after),
                    }
                }
                // <parameter=
                1 if search.functions > 0 => search.parameters += 1,
                1 => match self.begins_parameter(input, &search, after) {
                    Look::More => return self.more(search),
                    Look::Found(()) => return self.end_value(input, search, found, found),
                    Look::Absent => search.parameters += 1,
                },
                // </function>
                2 if search.functions > 0 => {
                    search.functions -= 1;
                    search.parameters = 0;
                }
                2 => {
                    let follows = self.blank.skip(input, after);
                    match input.literal_at(follows, &[CLOSE, OPEN, FUNCTION]) {
                        Look::More => return self.more(search),
                        Look::Absent if self.outer && !input.ends_at(follows) => {}
                        _ => return self.end_value(input, search, found, found),
                    }
                }
                // <function= and <tool_call>
                3 | 5 => {
                    if let Some(end) = search.candidate {
                        return self.end_value(input, search, end, end);
                    }
                    let open = if tag == 3 { &mut search.functions } else { &mut search.outers };
                    *open += 1;
                    if *open > MAX_QUOTED {
                        return Some(BlockProgress::fault_from(
                            found,
                            search.start,
                            "a parameter's value is not closed by `</parameter>`",
                        ));
                    }
                }
                // </tool_call>
                _ if search.outers > 0 => search.outers -= 1,
                _ if search.functions > 0 => {}
                _ => search.candidate = search.candidate.or(Some(found)),
            }
            search.from = after;
        }
    }

    fn more(&mut self, search: ValueSearch) -> Option<BlockProgress> {
        self.stage = Stage::Value(search);
        Some(BlockProgress::More)
    }

    /// Whether a `<parameter=` inside a value begins the next one: it is not there yet, and the tool
    /// has it, as far as that is known.
    fn begins_parameter(&self, input: &BlockInput<'_>, search: &ValueSearch, after: usize) -> Look<()> {
        let bytes = input.text.as_bytes();
        let window = bytes.get(after..(after + MAX_NAME).min(bytes.len())).unwrap_or_default();
        let Some(end) = memchr::memchr2(b'>', b'<', window).map(|found| after + found) else {
            let may_grow = !input.complete && window.len() < MAX_NAME;
            return if may_grow { Look::More } else { Look::Absent };
        };
        let name = Span::new(after, end).of(input.text).trim();
        if self.given.contains(name) || search.name.of(input.text) == name {
            return Look::Absent;
        }
        let known = self
            .definition(input.known_tools, input.text)
            .and_then(|tool| Parameters::of(&tool.input_schema));
        if known.is_none_or(|parameters| parameters.has(name)) { Look::Found(()) } else { Look::Absent }
    }

    fn end_value(
        &mut self,
        input: &BlockInput<'_>,
        search: ValueSearch,
        end: usize,
        next: usize,
    ) -> Option<BlockProgress> {
        self.given.insert(search.name.of(input.text).to_owned());
        self.parameters.push((search.name, Span::new(search.start, end)));
        self.go(Stage::Parameters { at: next })
    }

    fn after(&mut self, input: &BlockInput<'_>, at: usize, fenced: bool) -> Option<BlockProgress> {
        let here = self.blank.skip(input, at);
        match input.literal_at(here, &[CLOSE, FUNCTION, "```"]) {
            Look::More => Some(BlockProgress::More),
            Look::Found(0) => Some(self.finish(input, here + CLOSE.len())),
            // Several functions in one outer tag: each is a call.
            Look::Found(1) => Some(self.finish(input, here)),
            Look::Found(_) if self.outer && !fenced => self.go(Stage::After { at: here + 3, fenced: true }),
            _ if !self.outer => Some(self.finish(input, at)),
            _ if input.ends_at(here) && input.accept_unclosed => Some(self.finish(input, here)),
            _ if input.ends_at(here) => {
                Some(BlockProgress::fault(here, "the text ends before `</tool_call>`"))
            }
            _ => Some(BlockProgress::fault(here, "after `</function>`, `</tool_call>` is expected")),
        }
    }

    fn definition<'k>(&self, known: &'k [ToolDefinition], text: &str) -> Option<&'k ToolDefinition> {
        let name = self.function.of(text);
        let (server, tool) = names::split(name, known);
        let matching = |definition: &&ToolDefinition| {
            definition.name == tool && (server.is_empty() || definition.server == server)
        };
        known.iter().find(matching)
    }

    fn finish(&self, input: &BlockInput<'_>, end: usize) -> BlockProgress {
        let definition = self.definition(input.known_tools, input.text);
        let schema = definition.and_then(|tool| Parameters::of(&tool.input_schema));
        let mut arguments = Map::new();
        for (name, value) in &self.parameters {
            let name = name.of(input.text);
            let value = coerce(without_outer_newlines(value.of(input.text)), name, schema);
            arguments.insert(name.to_owned(), value);
        }
        let (server, tool) = names::split(self.function.of(input.text), input.known_tools);
        BlockProgress::Call(Box::new(BlockCall {
            end,
            id: None,
            server: server.to_owned(),
            server_span: None,
            tool: tool.to_owned(),
            arguments,
            repaired: None,
        }))
    }
}

/// The value without one newline at each end; where the first is a Windows one, the last is too.
fn without_outer_newlines(value: &str) -> &str {
    match value.strip_prefix("\r\n") {
        Some(inner) => inner.strip_suffix("\r\n").unwrap_or(inner),
        None => {
            let inner = value.strip_prefix('\n').unwrap_or(value);
            inner.strip_suffix('\n').unwrap_or(inner)
        }
    }
}

impl BlockReader for Reader {
    fn read(&mut self, input: &BlockInput<'_>) -> BlockProgress {
        loop {
            let progress = match &mut self.stage {
                Stage::Json(reader) => Some(reader.read(input)),
                Stage::Before { at, fenced } => {
                    let (at, fenced) = (*at, *fenced);
                    self.before(input, at, fenced)
                }
                Stage::Function { start, from } => {
                    let (start, from) = (*start, *from);
                    self.function(input, start, from)
                }
                Stage::Parameters { at } => {
                    let at = *at;
                    self.parameters(input, at)
                }
                Stage::Parameter { start, from } => {
                    let (start, from) = (*start, *from);
                    self.parameter(input, start, from)
                }
                Stage::Value(search) => {
                    let search = *search;
                    self.value(input, search)
                }
                Stage::After { at, fenced } => {
                    let (at, fenced) = (*at, *fenced);
                    self.after(input, at, fenced)
                }
            };
            if let Some(progress) = progress {
                return progress;
            }
        }
    }
}
