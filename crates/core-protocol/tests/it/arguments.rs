//! Arguments: every table case must be read by the step that it names, and to what it says.

use core_protocol::{ArgumentError, ArgumentRepair, MAX_ARGUMENT_BYTES, parse_arguments};
use serde_json::Value;

use crate::table::{self, Case};

const TABLE: &str = include_str!("cases/arguments.cases");

/// The input of a case; written as JSON where it holds characters that a table cannot show.
pub(crate) fn input(case: &Case) -> String {
    if case.has("json") {
        serde_json::from_str(&case.input).expect("a JSON string")
    } else {
        case.input.clone()
    }
}

fn check(case: &Case) {
    let input = input(case);
    let (step, wanted) = case.expected.first().expect("an expectation");
    match parse_arguments(&input) {
        Ok(read) => {
            let found = match read.repaired {
                None => "strict",
                Some(ArgumentRepair::Json5) => "json5",
                Some(ArgumentRepair::Repaired) => "repaired",
            };
            let value = Value::Object(read.arguments);
            assert_eq!(format!("{found}: {value}"), format!("{step}: {}", parsed(wanted)), "{input}");
        }
        Err(error) => {
            assert_eq!(("error", error.kind()), (step.as_str(), wanted.as_str()), "{input}: {error}");
            assert_eq!(error.raw(), input.trim(), "the text is kept");
            assert!(!error.is_retryable());
        }
    }
}

fn parsed(wanted: &str) -> Value {
    serde_json::from_str(wanted).unwrap_or_else(|error| panic!("{wanted}: {error}"))
}

#[test]
fn table_cases() {
    let cases = table::read(TABLE);
    assert!(cases.len() >= 200, "{} cases", cases.len());
    table::run(&cases, check);
}

#[test]
fn too_long_is_an_error_that_says_so() {
    let error = parse_arguments(&" ".repeat(MAX_ARGUMENT_BYTES + 1)).expect_err("too long");
    assert_eq!(error.kind(), "too_large");
    assert!(error.to_string().contains("16777217"), "{error}");
}

#[test]
fn an_error_says_where() {
    let error = parse_arguments("hello\nworld").expect_err("prose");
    let ArgumentError::Unreadable { line, column, .. } = error else { panic!("{error}") };
    assert_eq!((line, column), (1, 1));
}

#[test]
fn comments_and_quotes_are_read_however_long_the_text_is() {
    let long = "x".repeat(100_000);
    let read = parse_arguments(&format!("{{/* note */ 'a': '{long}',}}")).expect("readable");
    assert_eq!(read.arguments["a"], Value::String(long));
    assert_eq!(read.repaired, Some(ArgumentRepair::Repaired));
}
