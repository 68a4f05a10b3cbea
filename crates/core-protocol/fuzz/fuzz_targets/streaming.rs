//! Any bytes, cut anywhere: the same result as the whole text gives, and events that add up to it.
#![no_main]

use core_protocol::{ParseEvent, ParsedReply, StreamError, StreamParser, ToolCall, parse_reply};
use core_protocol_fuzz::{Choice, assert_linear, known_tools, valid_part};
use libfuzzer_sys::fuzz_target;

/// What the events come to for somebody who only listens.
#[derive(Default)]
struct Heard {
    text: String,
    thinking: String,
    calls: Vec<ToolCall>,
    malformed: usize,
    reclassified: bool,
}

impl Heard {
    fn hear(&mut self, event: ParseEvent<'_>) {
        match event {
            ParseEvent::TextDelta(text) => self.text.push_str(text),
            ParseEvent::ThinkingDelta(text) => self.thinking.push_str(text),
            ParseEvent::Call(call) => self.calls.push(call.clone()),
            ParseEvent::Malformed(_) => self.malformed += 1,
            ParseEvent::Reclassify { from } => {
                self.reclassified = true;
                self.calls.retain(|call| call.span.is_some_and(|span| span.start < from));
            }
        }
    }

    fn check(&self, text: &str, reply: &ParsedReply) {
        assert_eq!(self.calls, reply.calls);
        if !self.reclassified {
            assert_eq!(self.text, reply.text(text));
            assert_eq!(self.thinking, reply.thinking(text));
            assert_eq!(self.malformed, reply.malformed.len());
        }
    }
}

// The input: options, the number of cuts, the length of each piece, the bytes.
fuzz_target!(|data: &[u8]| {
    let [choice, many, rest @ ..] = data else { return };
    let (cuts, bytes) = rest.split_at(usize::from(*many).min(rest.len()));
    let tools = known_tools();
    let options = Choice(*choice).options(&tools);
    if Choice(*choice).wants_growth() {
        let size = usize::from(*many % 64) + 1;
        assert_linear(valid_part(bytes), |text| {
            let mut parser = StreamParser::new(options);
            for piece in text.as_bytes().chunks(size) {
                parser.push(piece, |_| {});
            }
            parser.finish(|_| {}).expect("UTF-8");
        });
        return;
    }
    let mut heard = Heard::default();
    let mut parser = StreamParser::new(options);
    let mut left = bytes;
    for cut in cuts {
        let (piece, after) = left.split_at(usize::from(*cut).min(left.len()));
        parser.push(piece, |event| heard.hear(event));
        left = after;
    }
    parser.push(left, |event| heard.hear(event));
    match (parser.finish(|event| heard.hear(event)), std::str::from_utf8(bytes)) {
        (Ok(streamed), Ok(text)) => {
            assert_eq!(streamed.text, text);
            assert_eq!(streamed.reply, parse_reply(text, &options));
            heard.check(text, &streamed.reply);
        }
        (Err(StreamError::InvalidUtf8 { offset, read }), Err(error)) => {
            assert_eq!(offset, error.valid_up_to());
            assert_eq!(read.text.as_bytes(), &bytes[..offset]);
            assert_eq!(read.reply, parse_reply(&read.text, &options));
            heard.check(&read.text, &read.reply);
        }
        (found, wanted) => panic!("{found:?} for {wanted:?}"),
    }
});
