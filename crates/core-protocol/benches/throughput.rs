//! Speed of the parsers, in bytes per second: `cargo bench -p core-protocol`.
//!
//! The texts are made here, so that the figures can be had again anywhere.

use core_protocol::{
    DialectName, ParseOptions, StreamParser, ToolCall, last_boxed, parse_arguments, parse_reply, render_call,
};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use serde_json::json;

fn main() {
    divan::main();
}

const MEGABYTE: usize = 1_000_000;
const SENTENCE: &str = "The river rises in the hills north of the town, and in a wet year it floods the meadows. \
                        \"It always did,\" said the miller; his father had built the wall in 1874.\n";
const HEAD: &str = "<use_mcp_tool><server_name>s</server_name><tool_name>t</tool_name><arguments>";
const CALL: &str = "<use_mcp_tool>\n<server_name>tool-search</server_name>\n<tool_name>search</tool_name>\n<arguments>\n{\"query\": \"height of the tower\", \"limit\": 5}\n</arguments>\n</use_mcp_tool>";

/// Text of whole sentences, at least `bytes` long.
fn prose(bytes: usize) -> String {
    SENTENCE.repeat(bytes / SENTENCE.len() + 1)
}

fn parse(bencher: Bencher<'_, '_>, dialect: DialectName, text: &str) {
    let options = ParseOptions::new(dialect.dialect());
    bencher.counter(BytesCount::of_str(text)).bench(|| parse_reply(black_box(text), &options));
}

fn stream(bencher: Bencher<'_, '_>, dialect: DialectName, text: &str, size: usize) {
    let options = ParseOptions::new(dialect.dialect());
    bencher.counter(BytesCount::of_str(text)).bench(|| {
        let mut parser = StreamParser::new(options);
        for piece in black_box(text).as_bytes().chunks(size) {
            parser.push(piece, |event| {
                black_box(event);
            });
        }
        parser.finish(|_| {})
    });
}

mod whole {
    use super::*;

    #[divan::bench(args = DialectName::ALL)]
    fn prose_1mb(bencher: Bencher<'_, '_>, dialect: DialectName) {
        parse(bencher, dialect, &prose(MEGABYTE));
    }

    /// With the check for UTF-8 that streams need as well.
    #[divan::bench]
    fn prose_1mb_from_bytes(bencher: Bencher<'_, '_>) {
        let text = prose(MEGABYTE);
        let options = ParseOptions::new(DialectName::McpXml.dialect());
        bencher.counter(BytesCount::of_str(&text)).bench(|| {
            std::str::from_utf8(black_box(text.as_bytes())).map(|text| parse_reply(text, &options))
        });
    }

    #[divan::bench]
    fn prose_100kb(bencher: Bencher<'_, '_>) {
        parse(bencher, DialectName::McpXml, &prose(100_000));
    }

    #[divan::bench(args = DialectName::ALL)]
    fn half_thinking_1mb(bencher: Bencher<'_, '_>, dialect: DialectName) {
        let half = prose(MEGABYTE / 2);
        parse(bencher, dialect, &format!("<think>{half}</think>{half}{CALL}"));
    }

    #[divan::bench]
    fn markup_1mb_auto(bencher: Bencher<'_, '_>) {
        parse(bencher, DialectName::Auto, &"<p class=\"x\">some <b>bold</b> text</p>\n".repeat(26_000));
    }

    #[divan::bench]
    fn call_at_the_end_of_100kb(bencher: Bencher<'_, '_>) {
        parse(bencher, DialectName::McpXml, &format!("{}{CALL}", prose(100_000)));
    }

    #[divan::bench]
    fn one_call(bencher: Bencher<'_, '_>) {
        parse(bencher, DialectName::McpXml, CALL);
    }
}

mod hostile {
    use super::*;

    #[divan::bench(args = [10_000, 20_000, 40_000])]
    fn unclosed_openers(bencher: Bencher<'_, '_>, many: usize) {
        parse(bencher, DialectName::McpXml, &"<use_mcp_tool>".repeat(many));
    }

    #[divan::bench(args = [8_000, 80_000])]
    fn calls_without_closer(bencher: Bencher<'_, '_>, bytes: usize) {
        let call = format!("{HEAD}{{\"a\": \"b\"}}</arguments>");
        parse(bencher, DialectName::McpXml, &call.repeat(bytes / call.len()));
    }

    #[divan::bench(args = [100_000, 1_000_000])]
    fn unclosed_call_and_blanks(bencher: Bencher<'_, '_>, blanks: usize) {
        parse(bencher, DialectName::McpXml, &format!("{HEAD}{{\"a\": 1}}{}", " ".repeat(blanks)));
    }

    #[divan::bench(args = [5_000, 50_000])]
    fn unclosed_strings(bencher: Bencher<'_, '_>, many: usize) {
        parse(bencher, DialectName::McpXml, &format!("{HEAD}{{\"a\": \"").repeat(many));
    }
}

mod streamed {
    use super::*;

    // The smallest pieces take so long that on a busy machine 1 MB would measure its other work.
    #[divan::bench(args = [4, 64, 4096])]
    fn prose_100kb(bencher: Bencher<'_, '_>, size: usize) {
        stream(bencher, DialectName::McpXml, &prose(100_000), size);
    }

    #[divan::bench(args = [4])]
    fn prose_100kb_auto(bencher: Bencher<'_, '_>, size: usize) {
        stream(bencher, DialectName::Auto, &prose(100_000), size);
    }

    #[divan::bench(args = [DialectName::McpXml, DialectName::Auto])]
    fn prose_1mb_in_4096(bencher: Bencher<'_, '_>, dialect: DialectName) {
        stream(bencher, dialect, &prose(MEGABYTE), 4096);
    }

    #[divan::bench]
    fn prose_100kb_as_str_in_4096(bencher: Bencher<'_, '_>) {
        let text = prose(100_000);
        let pieces: Vec<&str> =
            text.as_bytes().chunks(4096).filter_map(|p| std::str::from_utf8(p).ok()).collect();
        let options = ParseOptions::new(DialectName::McpXml.dialect());
        bencher.counter(BytesCount::of_str(&text)).bench(|| {
            let mut parser = StreamParser::new(options);
            for piece in black_box(&pieces) {
                parser.push_str(piece, |event| {
                    black_box(event);
                });
            }
            parser.finish(|_| {})
        });
    }

    fn large_call(bencher: Bencher<'_, '_>, bytes: usize, size: usize) {
        let arguments = json!({"text": prose(bytes)});
        let call = ToolCall::new("s", "t", arguments.as_object().cloned().unwrap_or_default());
        stream(bencher, DialectName::McpXml, &render_call(DialectName::McpXml.dialect(), &call), size);
    }

    #[divan::bench(args = [4, 64])]
    fn one_large_call_100kb(bencher: Bencher<'_, '_>, size: usize) {
        large_call(bencher, 100_000, size);
    }

    #[divan::bench]
    fn one_large_call_1mb_in_4096(bencher: Bencher<'_, '_>) {
        large_call(bencher, MEGABYTE, 4096);
    }
}

mod arguments {
    use super::*;

    fn read(bencher: Bencher<'_, '_>, text: &str) {
        bencher.counter(BytesCount::of_str(text)).bench(|| parse_arguments(black_box(text)));
    }

    #[divan::bench]
    fn strict(bencher: Bencher<'_, '_>) {
        read(bencher, &json!({"text": prose(100_000), "n": 1}).to_string());
    }

    #[divan::bench]
    fn repair_long_string(bencher: Bencher<'_, '_>) {
        read(bencher, &format!("{{\"text\": \"{}\", \"n\": True}}", prose(100_000).replace('"', "'")));
    }

    #[divan::bench]
    fn repair_bare_quotes(bencher: Bencher<'_, '_>) {
        read(bencher, &format!("{{\"text\": \"{}\", \"n\": True}}", prose(100_000)));
    }

    #[divan::bench]
    fn repair_code(bencher: Bencher<'_, '_>) {
        let line = "    if row[\\\"name\\\"] != None:\n        print(f\\\"{row} is at C:\\Users\\new\\\")\n";
        read(bencher, &format!("{{\"code\": \"{}\", \"timeout\": None}}", line.repeat(1_500)));
    }

    #[divan::bench]
    fn repair_records(bencher: Bencher<'_, '_>) {
        let record = "{'title': 'A history of the town and its mills', 'year': 1874, 'found': True, 'notes': ['first edition', 'in the library']}, ";
        read(bencher, &format!("{{'records': [{}]}}", record.repeat(800)));
    }
}

mod boxed {
    use super::*;

    #[divan::bench]
    fn last_of_100kb(bencher: Bencher<'_, '_>) {
        let text = format!("{}\\boxed{{42}} and so on.\n", prose(100_000));
        bencher.counter(BytesCount::of_str(&text)).bench(|| last_boxed(black_box(&text)).map(str::len));
    }

    #[divan::bench]
    fn many_boxes_in_100kb(bencher: Bencher<'_, '_>) {
        let text = "\\boxed{\\frac{1}{2}} or ".repeat(4_500);
        bencher.counter(BytesCount::of_str(&text)).bench(|| last_boxed(black_box(&text)).map(str::len));
    }
}
