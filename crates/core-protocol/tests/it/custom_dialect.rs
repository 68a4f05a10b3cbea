//! A dialect of a user's own: nothing of the crate has to change for it.

use core_protocol::block::{BlockCall, BlockInput, BlockProgress, BlockReader, Look};
use core_protocol::json_reader::{JsonRead, JsonReader};
use core_protocol::{
    Dialect, DialectName, Message, Opener, Outcome, ParseOptions, SchemaStyle, ToolCall, convert_history,
    parse_arguments, parse_reply, render_call, render_results, render_tool_section,
};
use serde_json::{Map, json};

use crate::calls::known_tools;
use crate::stream::stream_reply;

/// `[CALL name]{…}[/CALL]`
struct Brackets;

const OPEN: &str = "[CALL ";
const CLOSE: &str = "[/CALL]";

impl Dialect for Brackets {
    fn name(&self) -> &str {
        "brackets"
    }

    fn tags(&self) -> &[&'static str] {
        &[OPEN, CLOSE]
    }

    fn openers(&self) -> &[Opener] {
        &[Opener { literal: OPEN, closer: CLOSE, bare: false }]
    }

    fn reader(&self, _opener: usize, start: usize) -> Box<dyn BlockReader> {
        Box::new(Reader { name: start + OPEN.len(), json: None })
    }

    fn render_call(&self, call: &ToolCall) -> String {
        format!("{OPEN}{}]{}{CLOSE}", call.tool, json!(call.arguments))
    }
}

struct Reader {
    name: usize,
    json: Option<(usize, JsonReader)>,
}

impl BlockReader for Reader {
    fn read(&mut self, input: &BlockInput<'_>) -> BlockProgress {
        if self.json.is_none() {
            match input.text[self.name..].find(']') {
                Some(end) => self.json = Some((self.name + end, JsonReader::new(self.name + end + 1))),
                None if input.complete => return BlockProgress::fault(self.name, "no `]`"),
                None => return BlockProgress::More,
            }
        }
        let Some((name_end, json)) = &mut self.json else { return BlockProgress::More };
        let end = match json.read(input.text, input.complete) {
            JsonRead::More if !input.complete => return BlockProgress::More,
            JsonRead::More => return BlockProgress::fault(input.text.len(), "the text ends"),
            JsonRead::End(end) => end,
            JsonRead::Broken { at, suspect, problem } => {
                return BlockProgress::fault_from(at, suspect, problem);
            }
        };
        match input.literal_at(end, &[CLOSE]) {
            Look::More => return BlockProgress::More,
            Look::Absent => return BlockProgress::fault(end, "`[/CALL]` is expected"),
            Look::Found(_) => {}
        }
        match parse_arguments(&input.text[*name_end + 1..end]) {
            Ok(read) => BlockProgress::Call(Box::new(BlockCall {
                end: end + CLOSE.len(),
                id: None,
                server: String::new(),
                server_span: None,
                tool: input.text[self.name..*name_end].to_owned(),
                arguments: read.arguments,
                repaired: read.repaired,
            })),
            Err(error) => BlockProgress::fault(end, error.to_string()),
        }
    }
}

#[test]
fn it_is_read_and_written_like_the_built_in_ones() {
    let options = ParseOptions::new(&Brackets);
    let call = ToolCall::new("", "look", Map::from_iter([("q".to_owned(), json!("[/CALL] é"))]));
    let written = render_call(&Brackets, &call);
    let text = format!("<think>{written}</think>a {written} [CALL x] b {written}[/CALL]");
    let reply = parse_reply(&text, &options);
    assert_eq!(reply.outcome(), Outcome::Calls);
    assert_eq!(reply.calls.len(), 2);
    assert_eq!(reply.calls[1].arguments, call.arguments);
    assert_eq!((reply.malformed.len(), reply.stray_tags.len()), (1, 1));
    for size in 1..20 {
        assert_eq!(stream_reply(text.as_bytes(), size, &options), reply, "in pieces of {size}");
    }
}

/// A reader that breaks every rule.
struct Liar(usize);

impl BlockReader for Liar {
    fn read(&mut self, input: &BlockInput<'_>) -> BlockProgress {
        match self.0 {
            0 => BlockProgress::More,
            1 => BlockProgress::fault_from(usize::MAX, usize::MAX, "x"),
            2 => BlockProgress::fault_from(0, 0, "x"),
            end => BlockProgress::Call(Box::new(BlockCall {
                end: if end == 3 { 0 } else { input.text.len() + 1 },
                id: None,
                server: String::new(),
                server_span: None,
                tool: String::new(),
                arguments: Map::new(),
                repaired: None,
            })),
        }
    }
}

struct Lying(usize);

impl Dialect for Lying {
    fn name(&self) -> &str {
        "lying"
    }
    fn tags(&self) -> &[&'static str] {
        &["é", ""]
    }
    fn openers(&self) -> &[Opener] {
        &[Opener { literal: "<x>", closer: "", bare: false }]
    }
    fn reader(&self, _opener: usize, _start: usize) -> Box<dyn BlockReader> {
        Box::new(Liar(self.0))
    }
    fn render_call(&self, _call: &ToolCall) -> String {
        String::new()
    }
}

#[test]
fn what_it_leaves_out_is_written_in_the_usual_way() {
    let call = ToolCall::new("", "look", Map::new());
    let results = [(&call, "one".to_owned()), (&call, "two".to_owned())];
    let written = render_results(&Brackets, &results);
    assert_eq!(Brackets.split_results(&written), Some(vec!["one", "two"]));
    let tools = known_tools();
    let section = render_tool_section(&Brackets, &tools, SchemaStyle::Json);
    assert_eq!(section, render_tool_section(DialectName::McpXml.dialect(), &tools, SchemaStyle::Json));

    let history = [Message::assistant(render_call(&Brackets, &call)), Message::user(written)];
    let hermes = DialectName::Hermes.dialect();
    let converted = convert_history(&history, &ParseOptions::new(&Brackets), hermes);
    assert_eq!(converted[0], Message::assistant(render_call(hermes, &call)));
    assert_eq!(convert_history(&converted, &ParseOptions::new(hermes), &Brackets)[0], history[0]);
}

#[test]
fn a_dialect_that_breaks_the_rules_causes_no_panic() {
    for lie in 0..5 {
        let dialect = Lying(lie);
        let reply = parse_reply("é <x> é <x>é", &ParseOptions::new(&dialect));
        assert_eq!(reply.outcome(), Outcome::MalformedOnly, "lie {lie}");
    }
}
