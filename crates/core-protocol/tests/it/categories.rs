//! What is known to break parsers of this kind, and the cases that show that it does not break ours.
//!
//! Decides nothing about parsing: it keeps the list complete, so that no category loses its cases.

use std::collections::HashSet;

use crate::table;

const TABLES: [&str; 7] = [
    include_str!("cases/shared.cases"),
    include_str!("cases/mcp_xml.cases"),
    include_str!("cases/hermes.cases"),
    include_str!("cases/qwen_xml.cases"),
    include_str!("cases/auto.cases"),
    include_str!("cases/arguments.cases"),
    include_str!("cases/boxed.cases"),
];
/// Tests that are no table cases.
const TESTS: &str = concat!(
    include_str!("stream.rs"),
    include_str!("properties.rs"),
    include_str!("custom_dialect.rs"),
    include_str!("names.rs"),
    include_str!("native.rs"),
);

/// Each category with names of cases, or of test functions (these with `fn`).
const CATEGORIES: &[(&str, &[&str])] = &[
    ("no call", &["plain text", "empty", "only white space"]),
    (
        "text that looks like a tag",
        &["angle brackets in prose", "tag in other case", "tag with a blank inside"],
    ),
    (
        "a partial tag at the end",
        &["half a tag at the end", "a lone bracket at the end", "half a closing tag"],
    ),
    ("a call inside closed thinking", &["call inside thinking", "call inside and after thinking"]),
    ("a call inside thinking that is not closed", &["thinking that is not closed"]),
    (
        "thinking opened by the chat template",
        &[
            "lone end of thinking",
            "thinking opened by the template",
            "opened by the template and by the model",
        ],
    ),
    ("several spans of thinking", &["several thoughts", "re-entry", "closers without end"]),
    (
        "an end marker cut at a lone bracket",
        &["a lone bracket at the end of thinking", "half an end of thinking at the end"],
    ),
    (
        "a closing tag that is missing at the end: complete arguments taken, incomplete ones not",
        &[
            "unclosed at the end, accepted",
            "unclosed at the end",
            "cut at the end, unclosed accepted",
            "incomplete but for a brace",
            "`</tool_call>` at the end, accepted",
        ],
    ),
    (
        "an opening tag that is missing",
        &["outer opening tag", "both outer tags", "opening tag missing", "missing opening tag"],
    ),
    (
        "a missing end of a parameter or a function",
        &["`</parameter>` before the next", "`</function>`", "`</parameter>` and `</function>`, then a call"],
    ),
    ("two calls in one piece, with text behind", &["fn two_calls_and_text_in_one_piece"]),
    (
        "text behind the last call, neither lost nor doubled",
        &["text after", "two calls, text between and after"],
    ),
    (
        "structural tags inside a value",
        &[
            "a parameter that the tool has not",
            "the same parameter",
            "a whole call",
            "second call with a literal of a tag",
            "a whole call quoted in an argument",
        ],
    ),
    (
        "tags, braces and separators inside JSON strings",
        &["closing tag in a string", "braces and quotes in a string", "markup in an argument"],
    ),
    (
        "the order of keys",
        &["arguments before name", "a key `name` in the arguments", "arguments first", "tool before server"],
    ),
    ("other names for the arguments", &["`parameters`", "`args`", "`input`"]),
    ("arguments that are a string", &["string with an object", "object in a string", "bare string"]),
    (
        "arguments that are missing, null or empty",
        &["missing", "null", "empty string", "no arguments element", "no parameters", "empty arguments"],
    ),
    (
        "types by the schema",
        &[
            "i from '5.0'",
            "ni from 'null'",
            "no from 'None'",
            "ns from 'null'",
            "b from 'True'",
            "e from 'red'",
            "ei from '2'",
            "p from '{\"x\": 1}'",
        ],
    ),
    (
        "Python's way of printing objects",
        &[
            "o from \"{'a': None, 'b': True}\"",
            "o from '\"{\\'a\\': 1}\"'",
            "no schema: Python's literals in an object",
        ],
    ),
    ("entities are kept as they are", &["entities and CDATA are kept", "entities stay", "entities are kept"]),
    (
        "one newline at each end of a value is dropped",
        &["only one newline is dropped", "indentation is kept", "Windows line ends"],
    ),
    (
        "a malformed block, then a good one",
        &["malformed, then whole", "whole, broken, whole", "broken between whole ones keeps ids"],
    ),
    (
        "a tool that nobody knows",
        &["unknown tool", "unknown tool is passed on", "unknown tool of a known server"],
    ),
    (
        "ids",
        &[
            "an id is kept",
            "an id with colons is kept",
            "own and given ids",
            "the same call twice",
            "five calls",
        ],
    ),
    ("empty pieces in the middle of a stream", &["fn empty_pieces_change_nothing"]),
    (
        "tags that a server strips as special tokens",
        &[
            "unclosed at the end with blanks, accepted",
            "opening tag missing, behind text",
            "both outer tags, two calls",
        ],
    ),
    (
        "stray closers, double openers, closers without end",
        &["closer too many", "two openers", "many openers", "closers only"],
    ),
    (
        "long names and names in Unicode",
        &["long names", "names in Unicode", "long", "names and values in Unicode"],
    ),
    ("duplicate keys", &["duplicate keys", "the last of two values counts"]),
    (
        "any split gives the same",
        &["fn every_split_in_two_gives_the_same", "fn any_split_gives_what_the_whole_text_gives"],
    ),
    ("CDATA", &["CDATA around the object", "CDATA is kept"]),
    (
        "code fences",
        &["call in a fence", "fence", "fence without language", "fence inside the tag", "fence inside"],
    ),
    ("JSON inside JSON", &["JSON inside JSON"]),
    ("an empty function name", &["empty tool name", "empty", "blank", "empty function name"]),
    (
        "a number beyond all bounds",
        &["numeric overflow", "a number beyond all bounds", "f from '1e999'", "large integer"],
    ),
    ("arguments over 10 KB", &["large arguments", "large argument", "large"]),
    (
        "an error in the middle of a stream",
        &["fn what_was_read_before_bad_bytes_is_kept", "cut at the end", "a whole call, then a cut one"],
    ),
    ("a dialect that misbehaves", &["fn a_dialect_that_breaks_the_rules_causes_no_panic"]),
    (
        "thinking tags inside arguments are data",
        &["thinking tag in an argument is data", "thinking in a value"],
    ),
    (
        "what was cut is never run because it can be mended",
        &[
            "arguments at the end that need mending",
            "arguments at the end in an open string",
            "cut inside the arguments, closers put back",
        ],
    ),
    ("dialects side by side", &["one of each", "one inside another's string"]),
    ("names that providers cut", &["fn tools_whose_names_coincide_are_told_apart"]),
];

#[test]
fn every_category_has_its_cases() {
    let names: HashSet<String> =
        TABLES.iter().flat_map(|table| table::read(table)).map(|case| case.name).collect();
    let is_there = |name: &str| match name.strip_prefix("fn ") {
        Some(function) => TESTS.contains(&format!("fn {function}(")),
        None => names.contains(name),
    };
    for (category, cases) in CATEGORIES {
        let missing: Vec<&&str> = cases.iter().filter(|name| !is_there(name)).collect();
        assert!(missing.is_empty(), "{category}: no case {missing:?}");
    }
}
