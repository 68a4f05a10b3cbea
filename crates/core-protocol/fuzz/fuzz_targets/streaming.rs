//! Any bytes, cut anywhere: the same result as the whole text gives.
#![no_main]

use core_protocol::{DialectName, ParseOptions, StreamError, StreamParser, parse_reply};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, Vec<u8>, &[u8])| {
    let (choice, cuts, bytes) = input;
    let options = ParseOptions {
        starts_in_thinking: choice & 4 != 0,
        accept_unclosed_at_end: choice & 8 != 0,
        ..ParseOptions::new(DialectName::ALL[usize::from(choice) % 4].dialect())
    };
    let mut parser = StreamParser::new(options);
    let mut rest = bytes;
    for cut in cuts {
        let (piece, after) = rest.split_at(usize::from(cut).min(rest.len()));
        parser.push(piece, |_| {});
        rest = after;
    }
    parser.push(rest, |_| {});
    match (parser.finish(|_| {}), std::str::from_utf8(bytes)) {
        (Ok(streamed), Ok(text)) => assert_eq!(streamed.reply, parse_reply(text, &options)),
        (Err(StreamError::InvalidUtf8 { offset, read }), Err(error)) => {
            assert_eq!(offset, error.valid_up_to());
            assert_eq!(read.reply, parse_reply(&read.text, &options));
        }
        (found, wanted) => panic!("{found:?} for {wanted:?}"),
    }
});
