//! Any text in any dialect: no panic, segments without gaps, and calls that survive being written.
#![no_main]

use core_protocol::{DialectName, ParseOptions, failure_summary_text, parse_reply, render_call};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &str)| {
    let (choice, text) = input;
    let dialect = DialectName::ALL[usize::from(choice) % 4];
    let options = ParseOptions {
        starts_in_thinking: choice & 4 != 0,
        accept_unclosed_at_end: choice & 8 != 0,
        ..ParseOptions::new(dialect.dialect())
    };
    let reply = parse_reply(text, &options);
    let mut at = 0;
    for segment in &reply.segments {
        assert_eq!(segment.span.start, at);
        assert!(segment.span.end > at && text.is_char_boundary(segment.span.end));
        at = segment.span.end;
    }
    assert_eq!(at, text.len());
    let plain = ParseOptions::new(DialectName::McpXml.dialect());
    for call in &reply.calls {
        let written = render_call(plain.dialect, call);
        let again = parse_reply(&written, &plain);
        assert_eq!(again.calls.len(), 1, "{written}");
        assert_eq!(
            (&again.calls[0].server, &again.calls[0].tool, &again.calls[0].arguments),
            (&call.server, &call.tool, &call.arguments)
        );
    }
    let _ = failure_summary_text(text, &options);
});
