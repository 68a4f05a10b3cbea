//! `mcp_xml`: `<use_mcp_tool>` with `<server_name>`, `<tool_name>` and JSON `<arguments>`.
//!
//! Decides where such a block ends. The end of the arguments is found by reading their JSON; only where
//! that fails are the closing tags searched, and then a block is taken up to a closer that looks like
//! the end of the arguments and never beyond the next opening tag.

use super::{Dialect, Opener};
use crate::block::{
    Blank, BlockCall, BlockFault, BlockInput, BlockProgress, BlockReader, Look, read_arguments,
};
use crate::json_reader::{JsonRead, JsonReader};
use crate::{ArgumentRepair, Span, ToolCall, names, render};

const OPEN: &str = "<use_mcp_tool>";
const CLOSE: &str = "</use_mcp_tool>";
const ARGUMENTS_CLOSE: &str = "</arguments>";
const TAGS: &[&str] = &[OPEN, CLOSE, "<server_name>", "</server_name>", "<arguments>", ARGUMENTS_CLOSE];
const OPENERS: &[Opener] = &[Opener { literal: OPEN, closer: CLOSE, bare: false }];

/// What may stand between the parts of a block; the order is that of the indices used below.
const PARTS: &[&str] = &["<server_name>", "<tool_name>", "<arguments>", CLOSE];
const NAME_CLOSERS: [&str; 2] = ["</server_name>", "</tool_name>"];
/// What may follow `</arguments>`.
const AFTER_ARGUMENTS: &[&str] = &[CLOSE, "<server_name>", "<tool_name>"];

/// The dialect of `<use_mcp_tool>`; the default.
#[derive(Debug, Clone, Copy)]
pub struct McpXml;

impl Dialect for McpXml {
    fn name(&self) -> &str {
        "mcp_xml"
    }

    fn tags(&self) -> &[&'static str] {
        TAGS
    }

    fn openers(&self) -> &[Opener] {
        OPENERS
    }

    fn reader(&self, _opener: usize, start: usize) -> Box<dyn BlockReader> {
        Box::new(Reader::new(start + OPEN.len()))
    }

    fn render_call(&self, call: &ToolCall) -> String {
        let arguments = render::compact_json(&call.arguments);
        format!(
            "{OPEN}\n<server_name>{}</server_name>\n<tool_name>{}</tool_name>\n<arguments>\n{arguments}\n{ARGUMENTS_CLOSE}\n{CLOSE}",
            call.server, call.tool
        )
    }

    fn render_results(&self, results: &[(&ToolCall, String)]) -> String {
        let texts: Vec<&str> = results.iter().map(|(_, text)| text.as_str()).collect();
        texts.join("\n")
    }

    /// The texts stand bare, so only one is ever found.
    fn split_results<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        Some(vec![text])
    }
}

/// What is being read.
#[derive(Debug)]
enum Stage {
    /// White space and then a part.
    Between,
    /// A name: which, where its value begins, and from where its end is searched.
    Name { which: usize, start: usize, from: usize },
    /// White space and perhaps a fence before the arguments.
    BeforeValue { start: usize, at: usize, fenced: bool },
    /// Text before the arguments' first bracket.
    Prelude { start: usize, from: usize },
    /// The arguments' JSON.
    Value { start: usize, json: JsonReader },
    /// White space and perhaps a fence after the JSON, which ends at `end`.
    AfterValue { start: usize, end: usize, at: usize },
    /// The closing tags are searched, from `from`.
    Search(Box<Search>),
}

/// The search for closing tags after arguments that cannot be read as JSON.
#[derive(Debug)]
struct Search {
    /// Where the arguments begin.
    start: usize,
    /// From where on is still to be searched.
    from: usize,
    /// The first closer that was found, though what stands before it does not end in a brace.
    first: Option<(usize, usize)>,
    /// The fault to report if no closer is found.
    fault: BlockFault,
}

/// Reads one block; shared with `auto`.
#[derive(Debug)]
pub(super) struct Reader {
    at: usize,
    blank: Blank,
    stage: Stage,
    names: [Option<Span>; 2],
    /// The raw arguments and one past the `</arguments>` behind them.
    arguments: Option<Span>,
    /// Set where the text ended directly after complete JSON.
    unclosed: bool,
}

/// What one step came to.
enum Step {
    On,
    Done(BlockProgress),
}

impl BlockReader for Reader {
    fn read(&mut self, input: &BlockInput<'_>) -> BlockProgress {
        // Where nearly all pieces of a large call end up: nothing has to be moved.
        if let Stage::Value { json, .. } = &mut self.stage
            && !input.complete
            && json.read_on(input.text)
        {
            return BlockProgress::More;
        }
        loop {
            let stage = std::mem::replace(&mut self.stage, Stage::Between);
            let step = match stage {
                Stage::Between => self.between(input),
                Stage::Name { which, start, from } => self.name(input, which, start, from),
                Stage::BeforeValue { start, at, fenced } => self.before_value(input, start, at, fenced),
                Stage::Prelude { start, from } => self.prelude(input, start, from),
                Stage::Value { start, json } => self.value(input, start, json),
                Stage::AfterValue { start, end, at } => self.after_value(input, start, end, at),
                Stage::Search(search) => self.search(input, search),
            };
            if let Step::Done(progress) = step {
                return progress;
            }
        }
    }
}

impl Reader {
    pub(super) fn new(at: usize) -> Self {
        Self {
            at,
            blank: Blank::default(),
            stage: Stage::Between,
            names: [None, None],
            arguments: None,
            unclosed: false,
        }
    }

    /// Waits for more text in the given stage.
    fn wait(&mut self, stage: Stage) -> Step {
        self.stage = stage;
        Step::Done(BlockProgress::More)
    }

    fn go(&mut self, stage: Stage) -> Step {
        self.stage = stage;
        Step::On
    }

    fn between(&mut self, input: &BlockInput<'_>) -> Step {
        let at = self.blank.skip(input, self.at);
        let part = match input.literal_at(at, PARTS) {
            Look::Found(part) => part,
            Look::More => return self.wait(Stage::Between),
            Look::Absent if input.accept_unclosed && input.ends_at(at) && self.arguments.is_some() => {
                self.unclosed = true;
                return self.finish(input, at, at);
            }
            Look::Absent => return Step::Done(BlockProgress::fault(at, self.expected(input, at))),
        };
        let after = at + PARTS.get(part).map_or(0, |literal| literal.len());
        match part {
            0 | 1 if self.names.get(part).is_some_and(Option::is_some) => {
                Step::Done(BlockProgress::fault(at, "a name is given twice in one call"))
            }
            0 | 1 => self.go(Stage::Name { which: part, start: after, from: after }),
            2 if self.arguments.is_some() => {
                Step::Done(BlockProgress::fault(at, "`<arguments>` is given twice in one call"))
            }
            2 => self.go(Stage::BeforeValue { start: after, at: after, fenced: false }),
            _ => self.finish(input, after, at),
        }
    }

    /// What is missing at `at`, in words.
    fn expected(&self, input: &BlockInput<'_>, at: usize) -> &'static str {
        match (self.names, self.arguments, input.ends_at(at)) {
            (_, Some(_), true) => "the text ends before `</use_mcp_tool>`",
            (_, _, true) => "the text ends inside the call",
            (_, Some(_), false) => "after `</arguments>`, `</use_mcp_tool>` is expected",
            ([None, _], None, false) => "`<server_name>` is expected inside `<use_mcp_tool>`",
            ([_, None], None, false) => "`<tool_name>` is expected after `</server_name>`",
            _ => "`<arguments>` is expected after the names",
        }
    }

    fn name(&mut self, input: &BlockInput<'_>, which: usize, start: usize, from: usize) -> Step {
        let Some(end) = input.find2(from, b'<', b'>') else {
            if input.complete {
                return Step::Done(BlockProgress::fault_from(
                    input.text.len(),
                    start,
                    "the text ends inside a name",
                ));
            }
            return self.wait(Stage::Name { which, start, from: input.text.len() });
        };
        let closers = NAME_CLOSERS.get(which..=which).unwrap_or_default();
        match input.literal_at(end, closers) {
            Look::More => self.wait(Stage::Name { which, start, from: end }),
            Look::Absent => Step::Done(BlockProgress::fault(
                end,
                if which == 0 {
                    "the server name is not closed by `</server_name>`"
                } else {
                    "the tool name is not closed by `</tool_name>`"
                },
            )),
            Look::Found(_) => {
                let raw = Span::new(start, end).of(input.text);
                let left = raw.len() - raw.trim_start().len();
                let name = raw.trim();
                let problem = if which == 0 && name.is_empty() { None } else { names::fault(name) };
                if let Some(problem) = problem {
                    return Step::Done(BlockProgress::fault(start, problem));
                }
                if let Some(slot) = self.names.get_mut(which) {
                    *slot = Some(Span::new(start + left, start + left + name.len()));
                }
                self.at = end + closers.first().map_or(0, |closer| closer.len());
                self.go(Stage::Between)
            }
        }
    }

    fn before_value(&mut self, input: &BlockInput<'_>, start: usize, at: usize, fenced: bool) -> Step {
        let here = self.blank.skip(input, at);
        match input.fence_at(here) {
            Look::More => return self.wait(Stage::BeforeValue { start, at, fenced }),
            Look::Found(after) if !fenced => {
                return self.go(Stage::BeforeValue { start, at: after, fenced: true });
            }
            _ => {}
        }
        match input.text.as_bytes().get(here) {
            None if !input.complete => self.wait(Stage::BeforeValue { start, at, fenced }),
            Some(b'{' | b'[' | b'"') => self.go(Stage::Value { start, json: JsonReader::new(here) }),
            _ => self.go(Stage::Prelude { start, from: here }),
        }
    }

    fn prelude(&mut self, input: &BlockInput<'_>, start: usize, from: usize) -> Step {
        let Some(found) = input.find2(from, b'{', b'<') else {
            if input.complete {
                return Step::Done(BlockProgress::fault_from(
                    input.text.len(),
                    start,
                    "the text ends inside the arguments",
                ));
            }
            return self.wait(Stage::Prelude { start, from: input.text.len() });
        };
        if input.text.as_bytes().get(found) == Some(&b'{') {
            return self.go(Stage::Value { start, json: JsonReader::new(found) });
        }
        match input.literal_at(found, &[ARGUMENTS_CLOSE, OPEN, CLOSE]) {
            Look::More => self.wait(Stage::Prelude { start, from: found }),
            Look::Found(0) => self.take_arguments(start, found),
            Look::Found(_) => {
                Step::Done(BlockProgress::fault(found, "the arguments are not closed by `</arguments>`"))
            }
            Look::Absent => self.go(Stage::Prelude { start, from: found + 1 }),
        }
    }

    fn value(&mut self, input: &BlockInput<'_>, start: usize, mut json: JsonReader) -> Step {
        match json.read(input.text, input.complete) {
            JsonRead::More if !input.complete => self.wait(Stage::Value { start, json }),
            JsonRead::More => {
                let suspect = json.suspect();
                self.seek(start, suspect, input.text.len(), "the text ends inside the arguments")
            }
            JsonRead::End(end) => self.go(Stage::AfterValue { start, end, at: end }),
            JsonRead::Broken { at, suspect, problem } => self.seek(start, suspect, at, problem),
        }
    }

    /// Begins the search for closing tags.
    fn seek(&mut self, start: usize, resume: usize, offset: usize, problem: &'static str) -> Step {
        let problem = std::borrow::Cow::Owned(format!(
            "the arguments cannot be read as JSON ({problem}) and no `</arguments></use_mcp_tool>` ends them"
        ));
        let fault = BlockFault { offset, resume, problem };
        self.go(Stage::Search(Box::new(Search { start, from: resume, first: None, fault })))
    }

    fn after_value(&mut self, input: &BlockInput<'_>, start: usize, end: usize, at: usize) -> Step {
        let here = self.blank.skip(input, at);
        match input.literal_at(here, &[ARGUMENTS_CLOSE, "```", CLOSE]) {
            Look::More => self.wait(Stage::AfterValue { start, end, at }),
            Look::Found(0) => self.take_arguments(start, here),
            Look::Found(1) if at == end => self.go(Stage::AfterValue { start, end, at: here + 3 }),
            Look::Found(2) => Step::Done(BlockProgress::fault(
                here,
                "the arguments are not closed: `</arguments>` is expected before `</use_mcp_tool>`",
            )),
            Look::Absent if input.accept_unclosed && input.complete && input.ends_at(here) => {
                self.arguments = Some(Span::new(start, end));
                self.unclosed = true;
                self.finish(input, here, here)
            }
            _ => self.seek(start, end, here, "something else than `</arguments>` follows the value"),
        }
    }

    fn take_arguments(&mut self, start: usize, end: usize) -> Step {
        self.arguments = Some(Span::new(start, end));
        self.at = end + ARGUMENTS_CLOSE.len();
        self.go(Stage::Between)
    }

    fn search(&mut self, input: &BlockInput<'_>, mut search: Box<Search>) -> Step {
        loop {
            let Some(found) = input.find(search.from, b'<') else {
                if input.complete {
                    return self.end_search(*search);
                }
                search.from = input.text.len();
                return self.wait(Stage::Search(search));
            };
            search.from = found;
            match input.literal_at(found, &[ARGUMENTS_CLOSE, OPEN]) {
                Look::More => return self.wait(Stage::Search(search)),
                Look::Absent => search.from = found + 1,
                Look::Found(1) => return self.end_search(*search),
                Look::Found(_) => {
                    let after = found + ARGUMENTS_CLOSE.len();
                    let follows = self.blank.skip(input, after);
                    let expected = if self.names.iter().all(Option::is_some) { 1 } else { 3 };
                    match input.literal_at(follows, AFTER_ARGUMENTS.get(..expected).unwrap_or_default()) {
                        Look::More => return self.wait(Stage::Search(search)),
                        Look::Absent => {}
                        Look::Found(_) if looks_whole(Span::new(search.start, found).of(input.text)) => {
                            return self.take_arguments(search.start, found);
                        }
                        Look::Found(_) if search.first.is_none() => search.first = Some((found, after)),
                        Look::Found(_) => {}
                    }
                    search.from = after;
                }
            }
        }
    }

    /// No further closer before the next opening tag or the end: the first one, if there was any.
    fn end_search(&mut self, search: Search) -> Step {
        match search.first {
            Some((end, _)) => self.take_arguments(search.start, end),
            None => Step::Done(BlockProgress::Malformed(search.fault)),
        }
    }

    /// All parts are there, or what is not there is missing for good.
    fn finish(&mut self, input: &BlockInput<'_>, end: usize, at: usize) -> Step {
        let [server, tool] = self.names;
        let (Some(server), Some(tool)) = (server, tool) else {
            let problem = if server.is_none() {
                "the call has no `<server_name>`"
            } else {
                "the call has no `<tool_name>`"
            };
            return Step::Done(BlockProgress::fault(at, problem));
        };
        let arguments = self.arguments.unwrap_or(Span::new(at, at));
        let read = match read_arguments(arguments.of(input.text)) {
            Ok(read) => read,
            Err(problem) => return Step::Done(BlockProgress::fault_from(arguments.start, at, problem)),
        };
        if self.unclosed && read.repaired == Some(ArgumentRepair::Repaired) {
            return Step::Done(BlockProgress::fault_from(
                arguments.start,
                at,
                "the block is not closed and its arguments are not complete JSON",
            ));
        }
        Step::Done(BlockProgress::Call(Box::new(BlockCall {
            end,
            id: None,
            server: server.of(input.text).to_owned(),
            server_span: Some(server),
            tool: tool.of(input.text).to_owned(),
            arguments: read.arguments,
            repaired: read.repaired,
        })))
    }
}

/// Whether raw arguments end as arguments should: with a brace, perhaps in a fence.
fn looks_whole(raw: &str) -> bool {
    let raw = raw.trim_end();
    raw.strip_suffix("```").unwrap_or(raw).trim_end().ends_with('}')
}
