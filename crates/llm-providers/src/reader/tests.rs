//! Questions, documents and whole conversations, from a table each.

use std::fmt::Write as _;

use core_protocol::{
    DialectName, Message, ParseOptions, Role, SchemaStyle, ToolCall, ToolDefinition, last_boxed, parse_reply,
    render_results, render_tool_section,
};
use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::decompose::nested;
use super::lexicon::Dimension;
use super::question::{Asks, Slot, analyse};
use super::sentences::sentences;
use super::spans::{SpanKind, spans};
use super::task::task;
use super::text::{stem_of, tokens};
use super::toolbox::tools_in_prompt;
use super::wording::{Note, Source, note_line, notes, safe};
use super::*;

#[test]
fn questions_ask_for_kinds() {
    let cases = [
        ("Who invented the hydraulic press?", Asks::Person),
        ("Who was Ada Lovelace?", Asks::Definition),
        ("What is photosynthesis?", Asks::Definition),
        ("When was the bridge opened?", Asks::Date),
        ("In which year was the bridge opened?", Asks::Year),
        ("Where does the river rise?", Asks::Place),
        ("Which river flows through Vienna?", Asks::Place),
        ("What is the capital of Austria?", Asks::Place),
        ("What is the name of the river in Vienna?", Asks::Place),
        ("How many arches does the bridge have?", Asks::Count),
        ("How many kilometres is it to the coast?", Asks::Quantity(Dimension::Length)),
        ("How tall is the tower?", Asks::Quantity(Dimension::Length)),
        ("How long did the siege last?", Asks::Quantity(Dimension::Duration)),
        ("How much does the bell weigh?", Asks::Quantity(Dimension::Mass)),
        ("What is the motto of the society?", Asks::Name),
        ("What did he study at Oxford?", Asks::Thing),
        ("What pen name did the doctor put on his booklet?", Asks::Name),
        ("How long was the captain held captive?", Asks::Quantity(Dimension::Duration)),
        ("Why did the dam fail?", Asks::Reason),
        ("Was the bridge built in 1850?", Asks::YesNo),
        ("Name the author of the treaty.", Asks::Person),
        ("The Rhine flows through which country?", Asks::Place),
    ];
    for (text, expected) in cases {
        assert_eq!(analyse(text).asks, expected, "{text}");
    }
}

#[test]
fn the_gap_has_a_side() {
    for (text, expected) in [
        ("Who discovered radium?", Slot::Before),
        ("What did she discover?", Slot::After),
        ("After whom was it named?", Slot::After),
        ("Who was the discoverer of radium?", Slot::Before),
    ] {
        assert_eq!(analyse(text).slot, expected, "{text}");
    }
    assert_eq!(analyse("What is the town named after?").preposition.as_deref(), Some("after"));
}

#[test]
fn nested_questions_come_apart() {
    let cases = [
        ("Where was the author of Emma born?", "Who was the author of Emma?", "Where was X born?"),
        (
            "What is the capital of the country where the Rhine rises?",
            "In which country the Rhine rises?",
            "What is the capital of X?",
        ),
        (
            "When was the university at which Euler studied founded?",
            "At which university Euler studied?",
            "When was X founded?",
        ),
        (
            "In what year did the man who designed the tower die?",
            "Which man designed the tower?",
            "In what year did X die?",
        ),
        (
            "What is the symbol of the element discovered by Curie?",
            "Which element was discovered by Curie?",
            "What is the symbol of X?",
        ),
    ];
    for (text, inner, outer) in cases {
        let parts = nested(text);
        assert_eq!(parts.as_ref().map(|parts| parts.inner.as_str()), Some(inner), "{text}");
        assert_eq!(parts.map(|parts| parts.outer("X")).as_deref(), Some(outer), "{text}");
    }
    for single in [
        "Who was the author of Emma?",
        "What is the capital of Austria?",
        "When was the bridge opened?",
        "Who designed the tower?",
        "",
    ] {
        assert_eq!(nested(single), None, "{single}");
    }
}

#[test]
fn words_share_stems() {
    for (a, b) in [
        ("invented", "inventor"),
        ("discovery", "discoverer"),
        ("wrote", "writer"),
        ("cities", "city"),
        ("deepest", "deep"),
        ("São", "sao"),
        ("translation", "translated"),
    ] {
        assert_eq!(stem_of(a), stem_of(b), "{a} {b}");
    }
    for (a, b) in [("river", "rival"), ("station", "state"), ("founded", "found"), ("king", "kin")] {
        assert_ne!(stem_of(a), stem_of(b), "{a} {b}");
    }
}

#[test]
fn documents_become_sentences() {
    let text = "# Oslo\n\nOslo is a **city**. Mr. J. Hansen lived here, see [the map](map.md). It grew.\n\n## Data\n\n\
                Area: 454 km2\n- first item\n| a | b |\n|---|---|\n";
    let found: Vec<(String, String)> =
        sentences(text).into_iter().map(|sentence| (sentence.heading, sentence.text)).collect();
    let expected = [
        ("Oslo", "Oslo is a city."),
        ("Oslo", "Mr. J. Hansen lived here, see the map."),
        ("Oslo", "It grew."),
        ("Oslo / Data", "Area: 454 km2"),
        ("Oslo / Data", "first item"),
        ("Oslo / Data", "a | b"),
    ];
    assert_eq!(found, expected.map(|(heading, text)| (heading.to_owned(), text.to_owned())));
}

#[test]
fn spans_are_found_by_form() {
    let cases = [
        ("It opened on 24 May 1883 in Brooklyn.", SpanKind::Date, "24 May 1883"),
        ("On May 24, 1883, it opened.", SpanKind::Date, "May 24, 1883"),
        ("It erupted on 26 and 27 August 1883.", SpanKind::Date, "26 and 27 August 1883"),
        ("It was founded in 1460.", SpanKind::Year, "1460"),
        ("It began in the 19th century.", SpanKind::Period, "19th century"),
        ("It covers 1,001,450 sq km of sand.", SpanKind::Quantity(Dimension::Area), "1,001,450 sq km"),
        ("The tower is 324 metres tall.", SpanKind::Quantity(Dimension::Length), "324 metres"),
        ("He led twenty-one elephants.", SpanKind::Number, "twenty-one"),
        ("It lays one to three eggs.", SpanKind::Number, "one to three"),
        ("She met Ludwig van Beethoven there.", SpanKind::Name, "Ludwig van Beethoven"),
        ("He studied at King's College then.", SpanKind::Name, "King's College"),
        ("They flew on Apollo 11 to it.", SpanKind::Name, "Apollo 11"),
        ("It means \"child of fire\" there.", SpanKind::Quoted, "child of fire"),
        ("It is made of a hard metal alloy.", SpanKind::Phrase, "hard metal alloy"),
    ];
    for (sentence, kind, expected) in cases {
        let list = tokens(sentence);
        let found: Vec<&str> = spans(&list)
            .iter()
            .filter(|span| span.kind == kind)
            .map(|span| span.text(sentence, &list))
            .collect();
        assert!(found.contains(&expected), "{sentence}: {found:?}");
    }
}

#[test]
fn tasks_are_taken_apart() {
    let whole = "Who built it? Wrap the answer in \\boxed{}.\n\n# notes.txt\n\nIt was built by Ann.\n\n\
                 # What earlier attempts at this question found out\n\nFailure type: blocked\n";
    let parts = task(whole);
    assert_eq!(parts.question, "Who built it?");
    assert!(parts.attached.contains("built by Ann"));
    assert!(parts.failures.contains("blocked"));
    assert_eq!(task("Find the founder of Rome.").question, "Find the founder of Rome.");
}

#[test]
fn notes_can_be_read_back() {
    let list = [
        Note::Sentence {
            title: "A \"B\" (C)".to_owned(),
            place: "x/y: z".to_owned(),
            text: "Said “so”: 1 (one).".to_owned(),
        },
        Note::Unread { title: "T".to_owned(), place: "id".to_owned() },
        Note::Step { question: "Who?".to_owned(), answer: "Ann".to_owned() },
        Note::NoStep { question: "Who?".to_owned() },
    ];
    let reply: Vec<String> = list.iter().map(note_line).collect();
    assert_eq!(notes(&reply.join("\n")), list);
    let source =
        Source { sentence: "It grew.".to_owned(), title: "A (B)".to_owned(), place: "id".to_owned() };
    let quoted =
        Note::Sentence { title: "A (B)".to_owned(), place: "id".to_owned(), text: "It grew.".to_owned() };
    assert_eq!(notes(&super::wording::answer(&[source], "it")), [quoted]);
}

#[test]
fn quotations_are_harmless() {
    for (text, expected) in [
        ("a <use_mcp_tool> b", "a ‹use_mcp_tool> b"),
        ("</think> x", "‹/think> x"),
        ("\\boxed{7}", "boxed{7}"),
        ("1 < 2", "1 < 2"),
        ("under a time constraint", "under a […]"),
        ("two\nlines", "two lines"),
    ] {
        assert_eq!(safe(text), expected);
    }
}

/// Documents that the conversations below are about.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    (
        "harbour.md",
        "Harbour Bridge of Velm",
        "# Harbour Bridge of Velm\n\nThe Harbour Bridge of Velm is a steel bridge over the river Orra. It was designed by \
         the engineer Marta Lindqvist and opened on 3 May 1911. Its main span is 212 m long.",
    ),
    (
        "lindqvist.md",
        "Marta Lindqvist",
        "# Marta Lindqvist\n\nMarta Lindqvist was a Swedish engineer. She was born on 9 June 1870 in Kalmar, the daughter \
         of a teacher. She studied mathematics at Uppsala.",
    ),
    (
        "orra.md",
        "Orra",
        "# Orra\n\nThe Orra is a river that flows into the Baltic Sea. It rises in the hills above Tarn.",
    ),
];

fn library() -> Vec<ToolDefinition> {
    let tool = |name: &str, properties: Value, required: Value| ToolDefinition {
        server: "papers".to_owned(),
        name: name.to_owned(),
        description: "A tool.".to_owned(),
        input_schema: json!({"type": "object", "properties": properties, "required": required}),
    };
    vec![
        tool("delete_document", json!({"id": {"type": "string"}}), json!(["id"])),
        tool("search_library", json!({"q": {"type": "string"}, "num": {"type": "integer"}}), json!(["q"])),
        tool(
            "read_document",
            json!({"id": {"type": "string"}, "offset": {"type": "integer"}}),
            json!(["id"]),
        ),
    ]
}

fn web() -> Vec<ToolDefinition> {
    let tool = |name: &str, properties: Value, required: Value| ToolDefinition {
        server: "web".to_owned(),
        name: name.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object", "properties": properties, "required": required}),
    };
    vec![
        tool("google_search", json!({"q": {"type": "string"}, "gl": {"type": "string"}}), json!(["q"])),
        tool(
            "scrape_and_extract_info",
            json!({"url": {"type": "string"}, "info_to_extract": {"type": "string"}}),
            json!(["url", "info_to_extract"]),
        ),
    ]
}

/// Answers a call as the real tools do: documents that share a word with the query, or one document.
fn answer(tool: &str, arguments: &Map<String, Value>) -> String {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match tool {
        "search_library" | "google_search" => {
            let query: Vec<String> = tokens(&text("q")).into_iter().map(|token| token.stem).collect();
            let hits: Vec<Value> = DOCUMENTS
                .iter()
                .filter(|(_, _, body)| tokens(body).iter().any(|token| query.contains(&token.stem)))
                .map(|(id, title, body)| {
                    let snippet: String = body.lines().last().unwrap_or_default().chars().take(60).collect();
                    if tool == "search_library" {
                        json!({"id": id, "title": title, "snippet": snippet, "source": "s", "score": 1.0})
                    } else {
                        json!({"link": format!("https://x.example/{id}"), "title": title, "snippet": snippet})
                    }
                })
                .collect();
            json!({ if tool == "search_library" { "results" } else { "organic" }: hits }).to_string()
        }
        "read_document" | "scrape_and_extract_info" => {
            let place = if tool == "read_document" { text("id") } else { text("url") };
            let found = DOCUMENTS.iter().find(|(id, _, _)| place.ends_with(id));
            match found {
                Some((_, title, body)) if tool == "read_document" => {
                    json!({"title": title, "text": body}).to_string()
                }
                Some((_, _, body)) => json!({"success": true, "extracted_info": body}).to_string(),
                None => format!("Error: no document {place}"),
            }
        }
        other => format!("Unknown tool: {other}"),
    }
}

async fn say(request: &ChatRequest) -> Message {
    let mut stream = ReaderProvider::new().stream(request).await.unwrap();
    let mut streamed = String::new();
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            StreamEvent::TextDelta(piece) => streamed.push_str(&piece),
            StreamEvent::Done(completion) => {
                assert_eq!(completion.message.joined_text(), streamed);
                return completion.message;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("no end");
}

const FINAL: &str = "The search is over. Give the final answer. You must not call any tool now. Put it into \\boxed{}.\n\nThe question:\n\n";

/// How a conversation is held.
struct Setting {
    tools: Vec<ToolDefinition>,
    dialect: Option<DialectName>,
    /// Keep only so many results in the view.
    keep: Option<usize>,
}

/// Plays the loop's part. Gives the final reply and the calls that were made.
async fn converse(question: &str, setting: &Setting) -> (String, Vec<ToolCall>) {
    let mut system = String::new();
    if let Some(name) = setting.dialect {
        let example = match name {
            DialectName::QwenXml => "<tool_call>\n<function=name>\n</function>\n</tool_call>",
            DialectName::Hermes => "<tool_call>{}</tool_call>",
            _ => "<use_mcp_tool></use_mcp_tool>",
        };
        let section = render_tool_section(name.dialect(), &setting.tools, SchemaStyle::Json);
        write!(system, "Call tools like this: {example}\n\n{section}\n\n# Objective\n\nWork.").unwrap();
    }
    let mut request = ChatRequest::new(system, vec![Arc::new(Message::user(question))]);
    if setting.dialect.is_none() {
        request.tools = setting.tools.clone().into();
    }
    let mut calls = Vec::new();
    for _ in 0..12 {
        let reply = say(&view(&request, setting.keep)).await;
        let text = reply.joined_text();
        let native = reply.tool_calls.clone();
        request.messages.push(Arc::new(reply));
        let made = match setting.dialect {
            Some(name) => {
                let mut options = ParseOptions::new(name.dialect());
                options.known_tools = &setting.tools;
                let parsed = parse_reply(&text, &options);
                assert!(parsed.malformed.is_empty() && parsed.stray_tags.is_empty(), "{text}");
                parsed.calls
            }
            None => native,
        };
        if made.is_empty() {
            break;
        }
        let results: Vec<(&ToolCall, String)> =
            made.iter().map(|call| (call, answer(&call.tool, &call.arguments))).collect();
        match setting.dialect {
            Some(name) => {
                request.messages.push(Arc::new(Message::user(render_results(name.dialect(), &results))));
            }
            None => {
                for (call, result) in results {
                    let mut message = Message::text(Role::Tool, result);
                    message.tool_call_id = Some(call.id.clone());
                    request.messages.push(Arc::new(message));
                }
            }
        }
        calls.extend(made);
    }
    request.messages.push(Arc::new(Message::user(format!("{FINAL}{question}"))));
    (say(&view(&request, setting.keep)).await.joined_text(), calls)
}

/// The retained view: old results are left out.
fn view(request: &ChatRequest, keep: Option<usize>) -> ChatRequest {
    let mut view = request.clone();
    let Some(keep) = keep else { return view };
    let results: Vec<usize> =
        (1..view.messages.len()).filter(|at| view.messages[*at].role == Role::User).collect();
    for at in results.iter().rev().skip(keep) {
        view.messages[*at] = Arc::new(Message::user("Tool result is omitted to save tokens."));
    }
    view
}

fn settings() -> Vec<Setting> {
    let mut list = vec![
        Setting { tools: library(), dialect: None, keep: None },
        Setting { tools: web(), dialect: Some(DialectName::McpXml), keep: None },
    ];
    for dialect in [DialectName::McpXml, DialectName::Hermes, DialectName::QwenXml] {
        list.push(Setting { tools: library(), dialect: Some(dialect), keep: None });
    }
    list.push(Setting { tools: library(), dialect: Some(DialectName::McpXml), keep: Some(1) });
    list
}

#[tokio::test]
async fn conversations_end_in_the_answer() {
    let cases = [
        ("Who designed the Harbour Bridge of Velm?", "Marta Lindqvist"),
        ("When was the Harbour Bridge of Velm opened?", "3 May 1911"),
        ("In which year was the Harbour Bridge of Velm opened?", "1911"),
        ("How long is the main span of the Harbour Bridge of Velm in metres?", "212"),
        ("Which river does the Harbour Bridge of Velm cross?", "Orra"),
        ("What did Marta Lindqvist study?", "mathematics"),
        ("Where was Marta Lindqvist born?", "Kalmar"),
        ("Where was the designer of the Harbour Bridge of Velm born?", "Kalmar"),
        ("Who was the first mayor of Velm?", "unknown"),
        ("What is the airspeed of a swallow?", "unknown"),
    ];
    for (number, setting) in settings().iter().enumerate() {
        for (question, expected) in cases {
            let (reply, calls) = converse(question, setting).await;
            assert_eq!(
                last_boxed(&reply),
                Some(expected),
                "setting {number}: {question}\n{reply}\n{calls:?}"
            );
            assert!(calls.len() <= 8, "{question}: {calls:?}");
            let mut seen: Vec<String> =
                calls.iter().map(|call| format!("{} {:?}", call.tool, call.arguments)).collect();
            let all = seen.len();
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), all, "{question}: a call was repeated: {calls:?}");
            assert!(calls.iter().all(|call| call.tool != "delete_document"));
        }
    }
}

#[tokio::test]
async fn the_answer_is_quoted_with_its_source() {
    let setting = Setting { tools: library(), dialect: None, keep: None };
    let (reply, _) = converse("Where was Marta Lindqvist born?", &setting).await;
    assert!(reply.contains("“She was born on 9 June 1870 in Kalmar"), "{reply}");
    assert!(reply.contains("Marta Lindqvist (lindqvist.md)"), "{reply}");
}

#[tokio::test]
async fn what_is_attached_is_evidence() {
    let task = "Who owns the mill?\n\n# File: deed.md\n\nThe mill is owned by Agnes Holm. It stands in Tarn.";
    let request = ChatRequest::new("", vec![Arc::new(Message::user(task))]);
    let reply = say(&request).await.joined_text();
    assert_eq!(last_boxed(&reply), Some("Agnes Holm"), "{reply}");
}

#[tokio::test]
async fn a_discarded_reply_is_not_said_again() {
    let mut request =
        ChatRequest::new("", vec![Arc::new(Message::user("Who designed the Harbour Bridge of Velm?"))]);
    request.tools = library().into();
    let first = say(&request).await.tool_calls;
    let mut message = Message::user("Who designed the Harbour Bridge of Velm?");
    message.content.push(ContentBlock::text(
        "Your last message was discarded: the query was used before. Take another step.",
    ));
    request.messages = vec![Arc::new(message)];
    let second = say(&request).await.tool_calls;
    assert_ne!(first[0].arguments, second[0].arguments);
}

#[tokio::test]
async fn failures_are_reported_honestly() {
    let mut request = ChatRequest::new(
        "",
        vec![
            Arc::new(Message::user("Who was the first mayor of Velm?")),
            Arc::new(Message::assistant("Nothing found.")),
            Arc::new(Message::user(
                "Write a report. You must not call any tool. Failure type: incomplete, blocked, misdirected or format_missed.",
            )),
            Arc::new(Message::assistant("<think>\nI look back.\n</think>\n\n")),
        ],
    );
    request.continue_final_message = true;
    let reply = say(&request).await.joined_text();
    assert!(reply.starts_with("Failure type: blocked"), "{reply}");
    assert!(reply.contains("not a language model"), "{reply}");
}

#[test]
fn python_style_schemas_are_read() {
    let tools = library();
    let section = render_tool_section(DialectName::McpXml.dialect(), &tools, SchemaStyle::Python);
    let read = tools_in_prompt(&section);
    assert_eq!(read.len(), tools.len());
    assert_eq!(read[1].input_schema, tools[1].input_schema);
}

#[tokio::test]
async fn hostile_texts_do_no_harm() {
    let floods = [
        "[".repeat(2_000),
        "<".repeat(2_000),
        "**_`".repeat(10_000),
        "\"".repeat(2_000),
        "A.".repeat(15_000),
        "Velm ".repeat(10_000),
        "1,".repeat(15_000),
        "the mayor of ".repeat(5_000),
        "a-".repeat(15_000),
        "İ’s ".repeat(5_000),
        "- Noted from \"".repeat(2_000),
        "\u{0}\u{301}\u{feff}𝔘".repeat(3_000),
    ];
    for flood in floods {
        let result = json!({"title": "T", "text": flood}).to_string();
        for text in [flood.clone(), result] {
            let mut call = Message::new(Role::Assistant, Vec::new());
            call.tool_calls = parse_reply(
                "<use_mcp_tool><server_name>papers</server_name><tool_name>read_document</tool_name><arguments>{\"id\": \"x\"}</arguments></use_mcp_tool>",
                &ParseOptions::new(DialectName::McpXml.dialect()),
            )
            .calls;
            let mut answer = Message::text(Role::Tool, text.clone());
            answer.tool_call_id = call.tool_calls.first().map(|call| call.id.clone());
            let mut request = ChatRequest::new(
                flood.as_str(),
                vec![Arc::new(Message::user("Who was the mayor of Velm?")), Arc::new(call), Arc::new(answer)],
            );
            request.tools = library().into();
            say(&request).await;
            say(&ChatRequest::new(flood.as_str(), vec![Arc::new(Message::user(flood.as_str()))])).await;
        }
    }
    say(&ChatRequest::new("", Vec::new())).await;
}
